"""``clinsafe guard annotate``: what a person and a scheduler see."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner

from clinsafe.cli.annotate import annotate
from clinsafe.errors import ClinsafeError, UsageError
from clinsafe.scale.store import load_facts
from tests.conftest import INTERRUPTIBLE
from tests.scale.conftest import files, rows, write

CANARY = "Mrs Canary Featherstone"
READ = ("--filter", "negation", "--spacy", "", "--workers", 1)


def annotated(corpus, out, *options):
    app = typer.Typer()
    app.command()(annotate)
    return CliRunner().invoke(app, list(map(str, (corpus, "--out", out, *options))))


def refused(corpus, out, *options) -> str:
    done = annotated(corpus, out, *options)
    assert isinstance(done.exception, ClinsafeError), done.output
    assert not Path(out).exists()
    return str(done.exception)


@pytest.fixture
def notes(tmp_path):
    return write(tmp_path / "notes.jsonl", ["The patient has no penicillin allergy.", "The wound is dry."])


def test_a_corpus_is_read_and_the_facts_are_found_again(notes, tmp_path):
    notes.write_text(notes.read_text() + f'{{"id": "x", "tex {CANARY}\n')
    done = annotated(notes, tmp_path / "out", *READ)
    assert done.exit_code == 0, done.output
    assert "2 passages in 1 part" in done.output
    assert "1 record left out" in done.output
    assert f"{notes}:3" in done.output.replace("\n", "")
    assert CANARY not in done.output
    assert max(map(len, done.output.replace(str(tmp_path), "").splitlines())) <= 80
    made_with = load_facts(tmp_path / "out", "x").fingerprint
    assert load_facts(tmp_path / "out", made_with)("d0#0").by_filter["negation"]


def test_the_same_command_again_keeps_what_is_there(notes, tmp_path):
    annotated(notes, tmp_path / "out", *READ)
    done = annotated(notes, tmp_path / "out", *READ)
    assert done.exit_code == 0
    assert "1 were there before" in done.output


def test_shards_words_and_layout_are_taken(tmp_path):
    path = tmp_path / "n.jsonl"
    path.write_text('{"pmid": 7, "parts": ["one two three", "four five"]}\n')
    options = ("--layout", "id=pmid,text=parts", "--words", 2, "--overlap", 0, "--part", 1, *READ)
    for shard in ("1/2", "0/2"):
        done = annotated(path, tmp_path / "out", "--shard", shard, *options)
        assert done.exit_code == 0, done.output
    assert "2 of the parts are of shard 0/2" in done.output
    assert [row["id"] for row in rows(tmp_path / "out")] == ["7#0", "7#1", "7#2"]


def test_vectors_are_written_by_the_encoder_that_is_named(notes, tmp_path):
    done = annotated(notes, tmp_path / "out", "--job", "embed", "--model", "fake:words", "--workers", 1)
    assert done.exit_code == 0, done.output
    first, second = (row["vector"] for row in rows(tmp_path / "out"))
    assert len(first) == len(second) > 1
    with pytest.raises(UsageError, match="not facts"):
        load_facts(tmp_path / "out", "x")


@pytest.mark.slow
def test_real_vectors_are_those_that_the_encoder_gives(notes, tmp_path, minilm):
    import numpy as np

    done = annotated(
        notes, tmp_path / "out", "--job", "embed", "--model", "minilm", "--workers", 1, "--offline"
    )
    assert done.exit_code == 0, done.output
    expected = minilm.encode(["The patient has no penicillin allergy.", "The wound is dry."])
    assert np.allclose([row["vector"] for row in rows(tmp_path / "out")], expected, atol=1e-5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--job", "sing"), "there are: read, embed"),
        (("--job", "mine"), "there are: read, embed"),
        (("--model", "minilm"), "for --job embed"),
        (("--backend", "onnx"), "for --job embed"),
        (("--job", "embed"), "needs a model"),
        (("--job", "embed", "--model", "fake:words", "--filter", "negation"), "for --job read"),
        (("--shard", "2/2"), "i from 0 to n-1"),
        (("--layout", "body"), "the form is"),
        (("--words", 5, "--overlap", 5), "overlap less than words"),
        (("--filter", "laterality", "--workers", 1), "no filter is called 'laterality'"),
    ],
)
def test_a_wrong_option_is_one_line_and_leaves_no_folder(notes, tmp_path, options, said):
    assert said in refused(notes, tmp_path / "out", *options)


def test_no_corpus_is_told_before_any_worker_starts(tmp_path):
    begun = time.monotonic()
    assert "no such file" in refused(tmp_path / "gone.jsonl", tmp_path / "out")
    assert time.monotonic() - begun < 5


@pytest.mark.slow
def test_ctrl_c_ends_it_at_once_without_a_traceback_and_it_can_go_on(tmp_path):
    corpus = write(tmp_path / "n.jsonl", ["The patient has no fever and no pain. " * 40] * 200)
    code = (
        "import typer\nfrom clinsafe.cli.annotate import annotate\nfrom clinsafe.cli import app\n"
        "app.app.command('annotate')(annotate)\nif __name__ == '__main__': app.main()\n"
    )
    script = tmp_path / "command.py"
    script.write_text(code)
    out = tmp_path / "out"
    line = [*INTERRUPTIBLE, script, "annotate", corpus, "--out", out, "--part", "32", "--filter", "negation"]
    process = subprocess.Popen(line, stderr=subprocess.PIPE, text=True, start_new_session=True)
    deadline = time.monotonic() + 120
    while not list(out.glob("part-*")) and time.monotonic() < deadline:
        time.sleep(0.05)
    os.killpg(process.pid, signal.SIGINT)
    said = process.communicate(timeout=30)[1]
    assert process.returncode == 130
    assert "Traceback" not in said
    assert said.strip() == "clinsafe: stopped"
    before = files(out)
    assert before
    assert subprocess.run(line, check=False).returncode == 0
    assert before.items() <= files(out).items()
