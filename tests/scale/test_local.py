"""Jobs on this machine: the same files however they are made, and nothing stops them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from clinsafe.corpus import read_corpus, windows
from clinsafe.errors import ClinsafeError, OutputExists, UsageError
from clinsafe.scale import workers as workers_module
from clinsafe.scale.local import Run, run_local
from clinsafe.scale.parts import Cut, Shard
from clinsafe.scale.process import process
from tests.scale.conftest import CUT, files, rows, write
from tests.scale.fakes import FakeJob

CANARY = "Mrs Canary Featherstone"


def test_the_rows_are_those_of_the_pure_function(run, corpus):
    summary, out = run()
    passages = [w for document in read_corpus(corpus) for w in windows(document, CUT.words, CUT.overlap)]
    expected = process(passages, FakeJob())
    found = [
        (row["id"], row["document"], row["start"], row["end"], row["sha256"], row["facts"], row["error"])
        for row in rows(out)
    ]
    assert found == [tuple(row) for row in expected]
    assert (summary.passages, summary.parts, summary.written, summary.errors) == (40, 5, 5, {})


def test_the_number_of_workers_changes_no_byte(run):
    assert files(run("one", workers=1)[1]) == files(run("three", workers=3)[1])


def test_facts_that_depend_on_the_order_of_a_set_are_the_same_in_every_process(run, tmp_path):
    corpus = write(tmp_path / "sets.jsonl", ["ORDER"] * 8)
    first, second = (files(run(out, corpus=corpus)[1]) for out in ("one", "two"))
    assert first == second
    assert os.environ.get("PYTHONHASHSEED") != "0"


def test_shards_in_any_order_make_the_very_same_files(run):
    _, whole = run("whole")
    for index in (2, 0, 1):
        run("shards", shard=Shard(index, 3))
    shards = whole.parent / "shards"
    assert files(shards) == files(whole)
    assert (shards / "_summary-2-of-3.json").is_file()


def test_a_shard_beyond_the_parts_has_nothing_to_do(run):
    summary, out = run(shard=Shard(6, 7))
    assert (summary.written, summary.passages) == (0, 40)
    assert not files(out)


def test_the_folder_can_be_read_as_one_table(run):
    pq = pytest.importorskip("pyarrow.parquet")
    _, out = run()
    table = pq.read_table(out)
    assert table.num_rows == 40
    said = json.loads(table.schema.metadata[b"clinsafe"])
    assert said["made_with"]["fingerprint"] == "1"
    assert said["cut"]["words"] == 20


# ── stopped and continued ──────────────────────────────────────────────────────────────────────


def test_finished_parts_are_kept_and_the_rest_is_done(run):
    _, out = run()
    whole = files(out)
    (out / "part-000003.parquet").unlink()
    kept = {path: path.stat().st_mtime_ns for path in out.glob("part-*")}
    summary, _ = run()
    assert (summary.kept, summary.written) == (4, 1)
    assert files(out) == whole
    assert kept == {path: path.stat().st_mtime_ns for path in kept}


def test_a_part_that_is_not_whole_is_done_again(run):
    _, out = run()
    whole = files(out)
    part = out / "part-000001.parquet"
    part.write_bytes(part.read_bytes()[:100])
    assert run()[0].written == 1
    assert files(out) == whole


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"job": FakeJob(version="2")}, "another models, rules or versions"),
        ({"cut": Cut(words=21, overlap=0, part=8, batch=4)}, "another layout, words or part size"),
        ({"corpus": "changed"}, "another corpus"),
    ],
)
def test_a_changed_corpus_cut_or_job_is_refused_and_nothing_is_touched(run, tmp_path, changes, said):
    _, out = run()
    before = files(out)
    if "corpus" in changes:
        changes = {"corpus": write(tmp_path / "notes.jsonl", ["another note"])}
    with pytest.raises(OutputExists, match=said):
        run(**changes)
    assert files(out) == before


def test_a_folder_with_something_else_in_it_is_refused(run, tmp_path):
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.doc").touch()
    with pytest.raises(OutputExists, match="holds no such job"):
        run()


def test_a_corpus_that_moved_is_the_same_corpus(run, corpus, tmp_path):
    run()
    (tmp_path / "elsewhere").mkdir()
    moved = corpus.rename(tmp_path / "elsewhere" / corpus.name)
    assert run(corpus=moved)[0].kept == 5


# ── poison ─────────────────────────────────────────────────────────────────────────────────────


def poisoned(tmp_path, **texts):
    found = [texts.get(f"at{n}", f"note {n}") for n in range(24)]
    return write(tmp_path / "poison.jsonl", found)


def test_passages_that_kill_or_raise_become_error_rows_and_all_others_are_done(run, tmp_path):
    corpus = poisoned(tmp_path, at5=f"KILL {CANARY}", at6=f"RAISE {CANARY}", at20="KILL")
    summary, out = run(corpus=corpus)
    found = rows(out)
    assert {n: row["error"] for n, row in enumerate(found) if row["error"]} == {
        5: "WorkerDied", 6: "ValueError", 20: "WorkerDied",
    }  # fmt: skip
    assert all((row["facts"] is None) == bool(row["error"]) for row in found)
    assert summary.errors == {"WorkerDied": 2, "ValueError": 1}
    assert len(found) == 24
    assert CANARY not in repr([row["error"] for row in found]) + (out / "_summary-0-of-1.json").read_text()


def test_a_worker_that_was_killed_once_costs_no_row(run, tmp_path):
    corpus = poisoned(tmp_path, at5=f"ONCE {tmp_path / 'once'}")
    summary, out = run(corpus=corpus)
    assert (summary.restarts, summary.errors) == (1, {})
    assert all(row["facts"] for row in rows(out))


def test_a_passage_that_hangs_is_given_up(run, tmp_path, monkeypatch):
    monkeypatch.setattr(workers_module, "BASE_SECONDS", 1.0)
    summary, out = run(corpus=poisoned(tmp_path, at5="HANG"), patience=0.1)
    assert [row["error"] for row in rows(out) if row["error"]] == ["WorkerHung"]
    assert summary.errors == {"WorkerHung": 1}


def test_a_worker_that_somebody_kills_is_replaced_and_the_files_are_the_same(run, tmp_path):
    slow = write(tmp_path / "slow.jsonl", [f"SLOW {n}" for n in range(48)])
    _, whole = run("whole", corpus=slow)
    killed = []

    def kill_one():
        deadline = time.monotonic() + 60
        while not killed and time.monotonic() < deadline:
            for pid in children():
                if list((tmp_path / "out").glob("part-*")):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)
                    break
            time.sleep(0.02)

    killer = threading.Thread(target=kill_one)
    killer.start()
    summary, out = run(corpus=slow)
    killer.join()
    assert killed
    assert summary.restarts >= 1
    assert files(out) == files(whole)


def children() -> list[int]:
    """Our worker processes; not the helper that counts shared resources."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            fields = path.read_text().rpartition(")")[2].split()
            line = path.with_name("cmdline").read_bytes()
        except OSError:
            continue
        if int(fields[1]) == os.getpid() and b"spawn_main" in line:
            found.append(int(path.parent.name))
    return found


# ── what cannot start ──────────────────────────────────────────────────────────────────────────


def test_a_job_that_cannot_start_is_its_own_one_line_and_leaves_no_folder(run, tmp_path):
    with pytest.raises(UsageError, match=r"rules\.yaml:3: id: broken"):
        run(job=FakeJob(refuse="broken"))
    assert not (tmp_path / "out").exists()


def test_workers_that_die_as_they_start_end_the_job(run):
    with pytest.raises(ClinsafeError, match="ended 3 times as it started"):
        run(job=FakeJob(refuse="die"), workers=1)


def test_an_upgrade_in_the_middle_of_a_run_ends_it_before_two_versions_are_mixed(run, tmp_path):
    corpus = write(tmp_path / "once.jsonl", [f"ONCE {tmp_path / 'once'}", *["x"] * 60])
    with pytest.raises(UsageError, match="changed while the job ran"):
        run(corpus=corpus, job=FakeJob(moving=str(tmp_path / "starts")), workers=1)


def test_a_fault_in_the_code_of_a_job_is_told_as_what_it_is(run):
    with pytest.raises(ClinsafeError, match="cannot be started: NameError: no such thing"):
        run(job=FakeJob(refuse="typo"), workers=1)


def test_bad_records_are_counted_listed_and_left_out(run, tmp_path):
    path = tmp_path / "bad.jsonl"
    path.write_text('{"id": "a", "text": "one"}\n{"id": "b", "te' + CANARY + '\n{"id": "c", "text": "two"}\n')
    summary, out = run(corpus=path)
    assert [row["id"] for row in rows(out)] == ["a#0", "c#0"]
    assert summary.bad == 1
    assert f"{path}:2: not JSON" in summary.bad_records[0]
    assert CANARY not in (out / "_summary-0-of-1.json").read_text()


def test_a_full_disk_is_one_line_and_leaves_no_half_part(run, monkeypatch, tmp_path):
    pq = pytest.importorskip("pyarrow.parquet")

    def full(_table, path, **_):
        Path(path).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(pq, "write_table", full)
    with pytest.raises(UsageError, match="No space left on device"):
        run()
    assert not list((tmp_path / "out").glob("*part-*")) + list((tmp_path / "out").glob(".part-*"))


@pytest.mark.slow
def test_a_parent_that_is_killed_leaves_no_worker_and_the_run_goes_on_where_it_was(tmp_path):
    corpus = write(tmp_path / "slow.jsonl", [f"SLOW {n}" for n in range(200)])
    given = f"Path({str(corpus)!r}), Path({str(tmp_path / 'out')!r}), FakeJob(), CUT, workers=2"
    code = (
        "from pathlib import Path\nfrom clinsafe.scale.local import Run, run_local\n"
        "from tests.scale.conftest import CUT\nfrom tests.scale.fakes import FakeJob\n"
        f"if __name__ == '__main__':\n    run_local(Run({given}))\n"
    )
    script = tmp_path / "script.py"
    script.write_text(code)
    root = Path(__file__).parents[2]
    parent = subprocess.Popen([sys.executable, script], cwd=root, env=os.environ | {"PYTHONPATH": str(root)})
    out = tmp_path / "out"
    deadline = time.monotonic() + 120
    while len(list(out.glob("part-*"))) < 3 and time.monotonic() < deadline:
        time.sleep(0.05)
    left = [int(p) for p in Path(f"/proc/{parent.pid}/task/{parent.pid}/children").read_text().split()]
    parent.kill()
    parent.wait()
    assert left
    deadline = time.monotonic() + 30
    while any(alive(pid) for pid in left) and time.monotonic() < deadline:
        time.sleep(0.1)
    assert not any(alive(pid) for pid in left)
    summary = run_local(Run(corpus, out, FakeJob(), CUT, workers=2))
    assert summary.kept >= 3
    assert summary.kept + summary.written == 25
    assert len(rows(out)) == 200


def alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
