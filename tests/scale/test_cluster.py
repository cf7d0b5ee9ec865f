"""The same job on Ray: the same files, whoever dies on the way."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from clinsafe.corpus import read_corpus
from clinsafe.errors import MissingDependency
from clinsafe.scale.cluster import PartWorker, Plan, _get, _put, run_ray
from clinsafe.scale.folder import Summary
from clinsafe.scale.local import Run, quiet, run_local, todo
from clinsafe.scale.parts import corpus_identity
from tests.scale.conftest import CUT, files, rows, write
from tests.scale.fakes import FakeJob

ROOT = Path(__file__).parents[2]


@pytest.mark.alone
@pytest.mark.slow
@pytest.mark.skipif(importlib.util.find_spec("ray") is None, reason="Ray is not installed")
def test_ray_writes_the_files_of_a_local_run_though_a_worker_is_killed_and_passages_are_poison(tmp_path):
    texts = [f"SLOW {n}" for n in range(64)]
    texts[20], texts[21] = "KILL Mrs Canary", "RAISE Mrs Canary"
    corpus = write(tmp_path / "notes.jsonl", texts)
    run_local(Run(corpus, tmp_path / "local", FakeJob(), CUT, workers=2))
    line = [sys.executable, Path(__file__).with_name("on_ray.py"), corpus, tmp_path / "ray"]
    done = subprocess.run(
        line,
        cwd=ROOT,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=500,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout.splitlines()[-1])
    assert said["killed"]
    assert said["stats"] == "0"
    assert said["summary"]["errors"] == {"WorkerDied": 1, "ValueError": 1}
    assert said["summary"]["passages"] == 64
    assert files(tmp_path / "ray") == files(tmp_path / "local")
    assert "Canary" not in done.stdout + done.stderr
    left = {path.name for path in (tmp_path / "ray").iterdir()} - set(files(tmp_path / "ray"))
    assert left == {"_job.json", "_summary-0-of-1.json"}  # the passages' text is gone


def planned(run, tmp_path, **record):
    """What `run_ray` gives to a Ray worker, made without Ray."""
    _, out = run()
    said = json.loads((out / "_job.json").read_text()) | record
    for path in out.glob("part-*"):
        path.unlink()
    staged = tmp_path / "staged"
    given = Run(tmp_path / "notes.jsonl", out, FakeJob(), CUT)
    from clinsafe.scale.folder import Folder
    from clinsafe.scale.table import schema

    folder = Folder(out, said, schema("facts", None, said))
    numbers = [_put(part, staged, quiet) for part in todo(given, folder, Summary())]
    return Plan(FakeJob(), CUT.batch, 5.0, out, staged, said, None), numbers


def test_what_runs_on_ray_does_a_part_as_a_local_run_does(run, tmp_path):
    _, whole = run("whole")
    plan, numbers = planned(run, tmp_path)
    assert numbers == [0, 1, 2, 3, 4]
    worker = PartWorker(plan)
    found = worker({"part": numbers})
    again = worker({"part": numbers[:1]})
    worker.workers.__exit__(None, None, None)
    assert found["passages"] == [8] * 5
    assert files(plan.out) == files(whole)
    assert json.loads(again["summary"][0])["written"] == 0


def test_a_node_with_other_rules_is_refused(run, tmp_path):
    from clinsafe.errors import UsageError

    plan, _ = planned(run, tmp_path, made_with={"fingerprint": "another", "filters": {}})
    with pytest.raises(UsageError, match="other models, rules or versions"):
        PartWorker(plan)


def test_passages_come_back_from_their_file_as_they_went_in(run, tmp_path, corpus):
    plan, numbers = planned(run, tmp_path)
    back = [row for number in numbers for row in _get(number, plan.staged).rows]
    assert [row.text for row in back] == [document.text for document in read_corpus(corpus)]
    assert len({row.id for row in back}) == len(back) == 40


@pytest.mark.parametrize(
    ("module", "extra", "drive"),
    [("ray", "ray", run_ray), ("pyarrow", "scale", run_ray), ("pyarrow", "scale", run_local)],
)
def test_without_its_library_the_line_that_installs_it_is_printed(
    monkeypatch, tmp_path, corpus, module, extra, drive
):
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(MissingDependency, match=rf"pip install 'clinsafe\[{extra}\]'"):
        drive(Run(corpus, tmp_path / "out", FakeJob(), CUT, workers=1))
    assert not (tmp_path / "out").exists()
    assert corpus_identity(corpus)["files"] == 1
    assert rows(tmp_path / "out") == []
