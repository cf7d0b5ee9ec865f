"""The log in a file: every byte counts, a torn end is told, several processes write one chain."""

from __future__ import annotations

import os
import stat
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from clinsafe.errors import ClinsafeError, UsageError
from clinsafe.oversight.base import BrokenLog
from clinsafe.oversight.chain import Row
from clinsafe.oversight.jsonl import JsonlLog
from clinsafe.oversight.walk import inspect
from clinsafe.protocols import DecisionLog
from tests.oversight.kit import KEY, KEYS, OTHER, chained, decision, ticking, together

LINES = [row.line.encode() + b"\n" for row in chained(6)]
WHOLE = b"".join(LINES)


@pytest.fixture
def log(tmp_path):
    made = JsonlLog(tmp_path / "log.jsonl", KEY, sync=False, clock=ticking())
    made.create()
    return made


def filled(log, n=5):
    for number in range(n):
        log.append(decision(number))
    return log


def fault_of(path):
    return JsonlLog(path, KEY).inspect().fault


def test_it_is_a_decision_log_with_a_private_file(log):
    filled(log)
    kept: DecisionLog = log
    assert kept.verify() == ()
    assert stat.S_IMODE(log.path.stat().st_mode) == 0o600
    assert log.inspect().count == 6
    assert log.append(decision(9)).startswith("7:")


def places(line: bytes) -> list[int]:
    """Positions of every class of byte in a line: names, quotes, code, link, record, number, line end."""
    marks = (b'{"mac":"', b'","prev":"', b'","record":', b',"seq":', b"}\n")
    starts = [line.rindex(mark) for mark in marks]
    return sorted({at + step for at in starts for step in range(13) if at + step < len(line)})


@pytest.mark.parametrize("number", [0, 3, 5])
def test_a_flipped_bit_in_any_class_of_byte_is_found_in_its_line(tmp_path, number):
    path = tmp_path / "log.jsonl"
    before = sum(map(len, LINES[:number]))
    for at in places(LINES[number]):
        for bit in (0x01, 0x20):  # 0x20: another case of a letter, a blank for nothing
            data = bytearray(WHOLE)
            data[before + at] ^= bit
            path.write_bytes(data)
            fault = fault_of(path)
            assert fault is not None, (at, bit)
            assert (fault.seq, fault.place) == (number + 1, f"line {number + 1}"), (at, bit, fault)


@given(st.integers(0, len(WHOLE) - 1), st.integers(1, 255))
@example(len(WHOLE) - 1, 7)
@settings(max_examples=80)
def test_any_byte_changed_to_any_other_is_found_in_its_line(tmp_path_factory, at, flip):
    path = tmp_path_factory.getbasetemp() / f"flip-{os.getpid()}.jsonl"
    data = bytearray(WHOLE)
    data[at] ^= flip
    path.write_bytes(data)
    fault = fault_of(path)
    assert fault is not None
    assert fault.seq == WHOLE.count(b"\n", 0, at) + 1


@given(st.integers(0, len(WHOLE)), st.binary(min_size=1, max_size=3))
@settings(max_examples=50)
def test_bytes_put_in_anywhere_are_found(tmp_path_factory, at, more):
    path = tmp_path_factory.getbasetemp() / f"put-{os.getpid()}.jsonl"
    path.write_bytes(WHOLE[:at] + more + WHOLE[at:])
    fault = fault_of(path)
    assert fault is not None
    # bytes that repeat their neighbours can be said to stand one line further on
    assert fault.seq in (WHOLE.count(b"\n", 0, at) + 1, WHOLE.count(b"\n", 0, at) + 2)


@pytest.mark.parametrize("change", [
    lambda d: d.replace(b"\n", b"\r\n"), lambda d: b"\xef\xbb\xbf" + d, lambda d: d + b"\n", lambda d: d[:-1],
    lambda d: d.replace(b'{"mac"', b'{ "mac"', 1), lambda d: d.replace(b":1}", b":01}", 1), lambda d: b"",
    lambda d: d + b"x" * 1_100_000 + b"\n",
])  # fmt: skip
def test_the_same_records_written_otherwise_are_not_what_was_written(tmp_path, change):
    path = tmp_path / "log.jsonl"
    path.write_bytes(WHOLE)
    assert fault_of(path) is None
    path.write_bytes(change(WHOLE))
    assert fault_of(path) is not None


def test_a_cut_tail_is_not_seen_by_the_chain_alone_and_the_process_that_wrote_it_sees_it(log):
    filled(log)
    lines = log.path.read_bytes().splitlines(keepends=True)
    log.path.write_bytes(b"".join(lines[:-2]))
    assert log.verify() == ()  # why checkpoints are there
    with pytest.raises(BrokenLog, match="gone"):
        log.append(decision(9))
    JsonlLog(log.path, KEY, sync=False).append(decision(9))


def test_what_is_appended_while_it_is_read_is_left_out(log):
    reading = filled(log).rows()
    next(reading)
    log.append(decision(9))
    assert [row.seq for row in reading] == [2, 3, 4, 5, 6]


@pytest.mark.parametrize("damage", ["torn", "line end changed", "changed", "other key", "rubbish", "empty"])
def test_nothing_is_appended_to_a_broken_end(log, damage):
    filled(log)
    data = log.path.read_bytes()
    made = {
        "torn": data[:-20], "line end changed": data[:-1] + b"x", "changed": data.replace(b'"n":4', b'"n":5'),
        "rubbish": data + b"rubbish\n", "empty": b"", "other key": data,
    }  # fmt: skip
    log.path.write_bytes(made[damage])
    writer = JsonlLog(log.path, OTHER if damage == "other key" else KEY, sync=False)
    with pytest.raises(BrokenLog) as caught:
        writer.append(decision(9))
    assert log.path.read_bytes() == made[damage]
    assert "nothing was appended" in str(caught.value) or "no log" in str(caught.value)


def test_a_torn_end_is_moved_aside_and_the_log_says_so(log):
    filled(log)
    data = log.path.read_bytes()
    log.path.write_bytes(data[:-20])
    before = data[: data[:-1].rindex(b"\n") + 1]
    writer = JsonlLog(log.path, KEY, sync=False)
    moved = writer.recover()
    assert moved is not None
    assert moved.read_bytes() == data[len(before) : -20]
    assert stat.S_IMODE(moved.stat().st_mode) == 0o600
    *_, last = writer.rows()
    assert isinstance(last, Row)
    assert (last.seq, last.record["event"], last.record["kept"]) == (6, "recovered", 0)
    assert last.record["tail_hmac"] == KEY.digest(moved.read_bytes().decode("latin-1"))
    writer.append(decision(10))
    assert writer.verify() == ()


def test_a_last_record_that_lacks_its_line_end_alone_stays(log):
    filled(log)
    data = log.path.read_bytes()
    log.path.write_bytes(data[:-1])
    writer = JsonlLog(log.path, KEY, sync=False)
    assert writer.recover() is None
    assert log.path.read_bytes().startswith(data)
    assert writer.inspect().count == 7
    assert writer.verify() == ()


def test_there_is_nothing_to_recover_in_a_whole_log_and_an_altered_one_is_not_mended(log):
    filled(log)
    data = log.path.read_bytes()
    assert log.recover() is None
    assert log.path.read_bytes() == data
    bad = data.replace(b'"n":4', b'"n":5') + b"torn"
    log.path.write_bytes(bad)
    with pytest.raises(BrokenLog):
        JsonlLog(log.path, KEY).recover()
    assert log.path.read_bytes() == bad


def test_a_log_is_opened_once_and_a_missing_one_is_said(tmp_path, log):
    with pytest.raises(UsageError, match="exists"):
        log.create()
    with pytest.raises(BrokenLog, match="init"):
        JsonlLog(tmp_path / "none.jsonl", KEY).append(decision(1))
    assert not (tmp_path / "none.jsonl").exists()


def test_a_changed_key_goes_on_in_the_same_chain(log):
    filled(log)
    log.rotate(OTHER)
    log.append(decision(9))
    assert log.verify() == ()
    assert JsonlLog(log.path, OTHER, [KEY]).verify() == ()
    assert JsonlLog(log.path, KEY).verify() != ()
    JsonlLog(log.path, OTHER, sync=False).append(decision(10))
    with pytest.raises(BrokenLog):
        JsonlLog(log.path, KEY).append(decision(11))
    with pytest.raises(ClinsafeError, match="new one"):
        log.rotate(KEY)


def test_a_full_disk_leaves_the_log_as_it_was(log, monkeypatch):
    filled(log)
    data = log.path.read_bytes()

    def full(stream, text):
        stream.write(text.encode()[:30])
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(log, "_put", full)
    with pytest.raises(ClinsafeError, match="No space left"):
        log.append(decision(9))
    assert log.path.read_bytes() == data


class Counting:
    """A file that counts the bytes that are read."""

    def __init__(self, stream, tally):
        self._stream, self._tally = stream, tally

    def __getattr__(self, name):
        return getattr(self._stream, name)

    def read(self, *size):
        data = self._stream.read(*size)
        self._tally.append(len(data))
        return data


def test_what_an_append_reads_does_not_grow_with_the_log(tmp_path, monkeypatch):
    tally: list[int] = []
    usual = JsonlLog._opened

    @contextmanager
    def counted(self, mode):
        with usual(self, mode) as stream:
            yield Counting(stream, tally)

    monkeypatch.setattr(JsonlLog, "_opened", counted)
    read = {}
    for n in (200, 4_000):
        path = tmp_path / f"{n}.jsonl"
        path.write_bytes(b"".join(row.line.encode() + b"\n" for row in chained(n)))
        tally.clear()
        JsonlLog(path, KEY, sync=False).append(decision(1))
        read[n] = sum(tally)
    assert 0 < read[4_000] <= read[200] + 1_000
    assert read[4_000] < (tmp_path / "4000.jsonl").stat().st_size / 20


def test_a_record_longer_than_a_block_is_found_again(log):
    log.append({"event": "decision", "spans": list(range(20_000))})
    log.append(decision(2))
    assert log.verify() == ()
    size = log.path.stat().st_size
    with pytest.raises(UsageError, match="bytes"):  # in bytes, as a line is read again
        log.append({"event": "decision", "ids": ["\u6f22" * 100] * 4_000})
    assert log.path.stat().st_size == size


SCRIPT = """
from clinsafe.oversight.jsonl import JsonlLog
from tests.oversight.kit import KEY
log = JsonlLog(sys.argv[1], KEY, sync=False)
for n in range(50):
    log.append({"event": "decision", "process": int(sys.argv[2]), "n": n})
"""


@pytest.mark.slow
def test_four_processes_write_one_chain(log):
    together(SCRIPT, str(log.path))
    found = inspect(KEYS, log.rows())
    assert found.fault is None
    assert found.count == 201
    records = [row.record for row in log.rows()][1:]
    for process in range(4):  # nothing lost, nothing twice, each in its own order
        assert [r["n"] for r in records if r["process"] == process] == list(range(50))


def test_threads_of_one_process_write_one_chain(log):
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(8) as pool:
        receipts = list(pool.map(log.append, map(decision, range(100))))
    assert len(set(receipts)) == 100
    assert log.verify() == ()


def test_a_lock_that_is_kept_is_one_line_and_not_for_ever(log):
    from filelock import FileLock

    with FileLock(f"{log.path}.lock"), pytest.raises(ClinsafeError, match="locked"):
        JsonlLog(log.path, KEY, patience=0.05).append(decision(1))


def test_a_copy_without_a_lock_file_is_verified_and_gets_none(log, tmp_path):
    filled(log)
    copy = tmp_path / "copy" / "log.jsonl"
    copy.parent.mkdir()
    copy.write_bytes(log.path.read_bytes())
    assert JsonlLog(copy, KEY).verify() == ()
    assert [path.name for path in copy.parent.iterdir()] == ["log.jsonl"]
    with pytest.raises(UsageError):
        JsonlLog(Path(tmp_path / "none"), KEY).verify()
