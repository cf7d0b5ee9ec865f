"""Small corpora, and what came out of a run."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from clinsafe.scale.local import Run, run_local
from clinsafe.scale.parts import Cut
from tests.scale.fakes import FakeJob

pq = pytest.importorskip("pyarrow.parquet")
CUT = Cut(words=20, overlap=0, part=8, batch=4)


def write(path: Path, texts) -> Path:
    path.write_text("".join(json.dumps({"id": f"d{n}", "text": text}) + "\n" for n, text in enumerate(texts)))
    return path


def rows(folder: Path):
    """All rows of an output folder, in the order of the corpus."""
    return [row for path in sorted(folder.glob("part-*.parquet")) for row in pq.read_table(path).to_pylist()]


def files(folder: Path):
    return {path.name: path.read_bytes() for path in sorted(folder.glob("part-*.parquet"))}


@pytest.fixture
def corpus(tmp_path):
    """Forty passages: five parts of eight."""
    return write(tmp_path / "notes.jsonl", [f"note {n}" for n in range(40)])


@pytest.fixture
def run(corpus, tmp_path):
    """Run a fake job over the corpus; keywords replace what `Run` is made of."""

    def go(out="out", **changes):
        given = {"corpus": corpus, "job": FakeJob(), "cut": CUT, "workers": 2} | changes
        return run_local(Run(out=tmp_path / out, **given)), tmp_path / out

    return go
