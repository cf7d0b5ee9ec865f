"""With a signed checkpoint a cut tail and a log written anew are seen, also where the writer holds the log's key."""

from __future__ import annotations

import base64
import hmac
import json
import logging
import shutil
from dataclasses import replace

import pytest

from clinsafe.errors import ClinsafeError
from clinsafe.oversight.checkpoint import Checkpointed, Statement, compare, files_in, make, read
from clinsafe.oversight.jsonl import JsonlLog
from clinsafe.oversight.sql import SqlLog
from tests.oversight.kit import KEY, NOON, chained, decision, ticking

SIGNER = b"a key that the log's account does not have"


def sign(data, key=SIGNER):
    return hmac.digest(key, data, "sha256")


def check(data, signature, moment):
    assert moment.tzinfo is not None
    return [] if hmac.compare_digest(sign(data), signature) else ["the signature does not hold"]


def new(path, n=6):
    """A log with n decisions; its id."""
    log = JsonlLog(path, KEY, sync=False, clock=ticking())
    log_id = log.create()
    for number in range(n):
        log.append(decision(number))
    return log, log_id


@pytest.fixture
def log(tmp_path):
    """Records 1-7, a checkpoint of record 8, records 9-11, a checkpoint of record 12, records 13 and 14."""
    made, log_id = new(tmp_path / "log.jsonl")
    for more in (3, 2):
        make(made, log_id, sign, tmp_path / "points", now=NOON)
        for number in range(more):
            made.append(decision(100 + number))
    made.log_id = log_id
    return made


def faults(log, folder, checker=check):
    held, bad = read(files_in(folder), checker)
    chain = log.inspect([one.statement.seq for one in held])
    return [*([chain.fault] if chain.fault else []), *bad, *compare(chain, held)]


def kinds(log, folder, checker=check):
    return [(one.kind, one.seq) for one in faults(log, folder, checker)]


def lines(log):
    return log.path.read_bytes().splitlines(keepends=True)


def test_an_honest_log_agrees_with_all_its_checkpoints(log, tmp_path):
    assert [path.name for path in files_in(tmp_path / "points")] == [
        "checkpoint-000000008.json", "checkpoint-000000012.json",
    ]  # fmt: skip
    assert faults(log, tmp_path / "points") == []
    statement = json.loads(files_in(tmp_path / "points")[0].read_text())["statement"]
    assert (statement["seq"], statement["count"], statement["log_id"], statement["key_id"]) == (
        8, 8, log.log_id, KEY.id,
    )  # fmt: skip
    assert statement["mac"] == list(log.rows())[7].mac


@pytest.mark.parametrize("kept", [0, 1, 7, 8, 11])
def test_a_cut_tail_is_seen(log, tmp_path, kept):
    log.path.write_bytes(b"".join(lines(log)[:kept]))
    found = kinds(log, tmp_path / "points")
    if kept == 0:
        assert found == [("missing", 1)]
    else:
        assert found[0] == ("truncated", kept + 1)


def test_a_tail_cut_behind_the_newest_checkpoint_is_not_seen_and_the_command_says_so(log, tmp_path):
    log.path.write_bytes(b"".join(lines(log)[:12]))
    assert faults(log, tmp_path / "points") == []  # tests/cli: "not known"


def test_a_log_written_anew_with_its_own_key_is_seen(log, tmp_path):
    other = chained(14, KEY, log.log_id, start=700)
    log.path.write_bytes(b"".join(row.line.encode() + b"\n" for row in other))
    assert log.verify() == ()  # the chain alone holds
    assert kinds(log, tmp_path / "points") == [("rewritten", 1)]


def test_a_cut_tail_that_honest_records_grew_over_is_seen(log, tmp_path):
    log.path.write_bytes(b"".join(lines(log)[:10]))
    later = JsonlLog(log.path, KEY, sync=False)  # a process that was started after the cut
    for number in range(9):
        later.append(decision(number))
    assert later.verify() == ()
    assert kinds(later, tmp_path / "points") == [("rewritten", 9)]


def test_of_a_log_written_anew_from_some_record_on_the_part_is_named(log, tmp_path):
    from clinsafe.oversight.chain import link

    rows = list(log.rows())[:9]
    while len(rows) < 14:
        rows.append(link(KEY, rows[-1].mac, len(rows) + 1, decision(500 + len(rows))))
    log.path.write_bytes(b"".join(row.line.encode() + b"\n" for row in rows))
    assert log.verify() == ()
    (found,) = faults(log, tmp_path / "points")
    assert (found.kind, found.seq) == ("rewritten", 9)
    assert "9 to 12" in found.detail


def test_an_altered_record_is_named_by_the_chain_and_not_once_more(log, tmp_path):
    log.path.write_bytes(log.path.read_bytes().replace(b'"n":101', b'"n":999', 1))
    assert kinds(log, tmp_path / "points") == [("changed", 10)]


def test_two_honest_logs_are_not_exchanged(log, tmp_path):
    other, _ = new(tmp_path / "other.jsonl", 20)
    shutil.copy(other.path, log.path)
    assert log.verify() == ()
    assert kinds(log, tmp_path / "points")[0][0] == "other_log"


def test_an_older_checkpoint_in_the_place_of_a_newer_one_is_seen(log, tmp_path):
    first, second = files_in(tmp_path / "points")
    shutil.copy(first, second)
    assert kinds(log, tmp_path / "points") == [("checkpoint_missing", 12)]
    second.unlink()
    assert kinds(log, tmp_path / "points") == [("checkpoint_missing", 12)]
    first.unlink()
    assert kinds(log, tmp_path / "points") == [("checkpoint_missing", 12)]
    chain = log.inspect()
    assert compare(replace(chain, announced=0), []) == []  # none was ever made


def edit(path, change):
    found = json.loads(path.read_text())
    change(found)
    path.write_text(json.dumps(found))


CHANGES = {
    "signature gone": lambda f: f.update(signature=""),
    "signature field gone": lambda f: f.pop("signature"),
    "signature of another": lambda f: f.update(signature="AAAA"),
    "no base64": lambda f: f.update(signature="§"),
    "number": lambda f: f["statement"].update(seq=11, count=11),
    "count": lambda f: f["statement"].update(count=99),
    "code": lambda f: f["statement"].update(mac="0" * 64),
    "time": lambda f: f["statement"].update(time="2020-01-01T00:00:00.000Z"),
    "no time": lambda f: f["statement"].update(time="2020-13-41T00:00:00.000Z"),
    "log": lambda f: f["statement"].update(log_id="b" * 32),
    "key": lambda f: f["statement"].update(key_id="0" * 16),
    "a field more": lambda f: f["statement"].update(more=1),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_checkpoint_that_was_altered_is_no_checkpoint(log, tmp_path, name):
    newest = files_in(tmp_path / "points")[-1]
    edit(newest, CHANGES[name])
    found = faults(log, tmp_path / "points")
    assert found[0].kind == "checkpoint_invalid"
    assert found[0].place == newest.name


@pytest.mark.parametrize("data", [b"", b"[]", b"\xff", b"{" * 5000, b'{"statement": {}, "statement": {}}'])
def test_a_file_that_is_none_is_told(log, tmp_path, data):
    files_in(tmp_path / "points")[-1].write_bytes(data)
    assert ("checkpoint_invalid", 0) in kinds(log, tmp_path / "points")


def test_a_signed_statement_that_contradicts_itself_is_none(log, tmp_path):
    newest = files_in(tmp_path / "points")[-1]
    found = json.loads(newest.read_text())
    statement = Statement.model_validate(found["statement"] | {"count": 99})
    signature = base64.b64encode(sign(statement.data)).decode()
    newest.write_text(json.dumps({"statement": statement.model_dump(), "signature": signature}))
    assert faults(log, tmp_path / "points")[0].kind == "checkpoint_invalid"


def test_a_checker_that_says_yes_or_no_to_everything_would_be_seen(log, tmp_path):
    """What the tests above rest on: with these two checkers the honest and the forged case come out alike."""
    points = tmp_path / "points"
    assert faults(log, points, lambda *_: []) == []
    assert faults(log, points, lambda *_: ["no"]) != []
    edit(files_in(points)[-1], CHANGES["signature of another"])
    assert faults(log, points, lambda *_: []) == []
    assert faults(log, points) != []


@pytest.mark.parametrize("kind", ["file", "database"])
def test_checkpoints_are_made_on_the_way(tmp_path, kind):
    inner = JsonlLog(tmp_path / "l.jsonl", KEY, sync=False)
    if kind == "database":
        inner = SqlLog(f"sqlite:///{tmp_path}/l.db", KEY)
    log = Checkpointed(inner, inner.create(), sign, tmp_path / "points", every=5)
    receipts = [log.append(decision(n)) for n in range(12)]
    assert [int(path.stem[-9:]) for path in files_in(tmp_path / "points")] == [6, 11, 16]
    assert [r.partition(":")[0] for r in receipts] == [
        "2",
        "3",
        "4",
        "5",
        "7",
        "8",
        "9",
        "10",
        "12",
        "13",
        "14",
        "15",
    ]
    assert log.verify() == ()
    assert faults(inner, tmp_path / "points") == []
    if kind == "database":
        inner.close()


def test_a_signer_that_fails_never_takes_the_record_with_it_and_is_tried_again(tmp_path, caplog):
    inner = JsonlLog(tmp_path / "l.jsonl", KEY, sync=False)
    broken = [True]

    def moody(data):
        if broken[0]:
            raise RuntimeError("s3cr3t")
        return sign(data)

    log = Checkpointed(inner, inner.create(), moody, tmp_path / "points", every=3)
    with caplog.at_level(logging.WARNING):
        log.append(decision(1))
        assert log.append(decision(2)).startswith("3:")
    assert "RuntimeError" in log.trouble
    assert "RuntimeError" in caplog.text
    assert "s3cr3t" not in caplog.text + log.trouble
    broken[0] = False
    log.append(decision(3))
    assert log.trouble == ""
    assert len(files_in(tmp_path / "points")) == 1
    assert faults(inner, tmp_path / "points") == []


def test_a_signer_that_always_fails_does_not_fill_the_log(tmp_path):
    def never(data):
        raise RuntimeError

    inner = JsonlLog(tmp_path / "l.jsonl", KEY, sync=False)
    log = Checkpointed(inner, inner.create(), never, tmp_path / "points", every=100)
    for n in range(200):
        log.append(decision(n))
    announced = sum('"event":"checkpoint"' in row.text for row in inner.rows())
    assert 2 <= announced <= 20


def test_a_folder_that_cannot_be_written_is_one_line(log, tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ClinsafeError, match="cannot be written"):
        make(log, log.log_id, sign, tmp_path / "file" / "points")
