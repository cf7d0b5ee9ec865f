"""``clinsafe rag run``: what is printed and written, how it is gone on with, and what is refused in one line."""

from __future__ import annotations

import json
import signal
import subprocess
import time

import pytest
import typer
from typer.testing import CliRunner

from clinsafe.adapters import generators
from clinsafe.cli import rag_run
from clinsafe.cli.console import Stopped
from clinsafe.errors import ClinsafeError, ModelError, OfflineError, UsageError
from clinsafe.rag.trace import read_traces
from tests.adapters.chat_server import ChatServer, says
from tests.conftest import INTERRUPTIBLE

for _name in ("usearch", "bm25s", "filelock"):
    pytest.importorskip(_name)

app = typer.Typer()
app.command()(rag_run.run)


@pytest.fixture
def world(tmp_path):
    """Arguments for a corpus of 12 documents and 3 questions, one line of each bad."""
    corpus = [
        {"id": f"d{n}", "text": f"Drug{n} treats disease{n}. The dose is {n + 1} mg."} for n in range(12)
    ]
    questions = [
        {
            "id": f"q{n}",
            "question": f"What is the dose of drug{n}?",
            "reference": f"{n + 1} mg",
            "documents": [f"d{n}"],
        }
        for n in range(3)
    ]
    for name, rows in (
        ("corpus", [*corpus, {"id": "d0", "text": "again"}]),
        ("questions", [*questions, {"id": "q0"}]),
    ):
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ["--corpus", tmp_path / "corpus.jsonl", "--questions", tmp_path / "questions.jsonl", "-m", "fake:words",
            "--tokens", 16, "--overlap", 4, "--out", tmp_path / "run", "--offline"]  # fmt: skip


def run(*arguments):
    return CliRunner().invoke(app, [str(one) for one in arguments])


def lines(folder, name="rag-alpha-0.5"):
    return list(read_traces(folder / "traces" / f"{name}.jsonl"))


FAKE = ("--generator", "fake:extractive")


def test_a_run_prints_its_tables_in_80_columns_and_says_what_was_left_out(world, tmp_path):
    done = run(*world, *FAKE, "--alpha", 0, "--alpha", 1, "--setting", "rag", "--setting", "direct")
    assert done.exit_code == 0, done.output
    assert all(f"{label} " in done.output for label in ("rag alpha=0", "rag alpha=1", "direct"))
    assert max(len(line) for line in done.output.splitlines() if str(tmp_path) not in line) <= 80
    assert done.output.count("left out") == 2
    assert "fake" in done.output
    assert "\x1b" not in done.output
    assert [one.query_id for one in lines(tmp_path / "run", "rag-alpha-1")] == ["q0", "q1", "q2"]
    assert len(lines(tmp_path / "run", "direct")) == 3


def test_without_a_generator_it_retrieves(world, tmp_path):
    done = run(*world, "--k", 2, "--mmr", 0.5)
    assert done.exit_code == 0, done.output
    assert "retrieved" in done.output
    assert all(one.answer is None and len(one.context) == 2 for one in lines(tmp_path / "run"))


def test_a_dry_run_writes_loads_and_sends_nothing(world, tmp_path, monkeypatch):
    monkeypatch.setattr("clinsafe.adapters.encoders.load_model", None)
    monkeypatch.setattr(generators, "load_generator", None)
    done = run(
        *world,
        "--generator-url",
        "https://example.org/v1",
        "--generator-model",
        "m",
        "--dry-run",
        "--limit",
        2,
    )
    assert done.exit_code == 0, done.output
    assert not (tmp_path / "run").exists()
    row = next(line.split() for line in done.output.splitlines() if line.startswith("rag alpha"))
    assert row[2] == "2"
    assert row[4] == f"{2 * 512:,}"
    assert "0" in next(
        line.split() for line in run(*world, "--dry-run").output.splitlines() if "alpha" in line
    )


class Stopping(generators.Extractive):
    """Ctrl-C at the second prompt."""

    def __init__(self):
        self.left = 1

    def complete(self, prompt, /):
        self.left -= 1
        if self.left < 0:
            raise KeyboardInterrupt
        return super().complete(prompt)


def test_ctrl_c_says_how_to_go_on(world, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(generators, "load_generator", lambda *_a, **_k: Stopping())
        stopped = run(*world, *FAKE)
    assert isinstance(stopped.exception, Stopped)
    assert stopped.exception.exit_code == 130
    assert str(tmp_path / "run") in str(stopped.exception)
    assert len(lines(tmp_path / "run")) == 1
    assert run(*world, *FAKE).exit_code == 0
    assert [one.query_id for one in lines(tmp_path / "run")] == ["q0", "q1", "q2"]


def test_a_model_that_is_gone_ends_with_2_and_keeps_what_was_done(world, tmp_path, monkeypatch):
    monkeypatch.delenv("CLINSAFE_API_KEY", raising=False)
    with ChatServer(lambda _prompt: "5 mg").running() as server:
        server.script = [says("1 mg")]
        asked = ("--generator-url", server.url, "--generator-model", "m", "--limit", 1)
        assert run(*world, *asked).exit_code == 0
        url = server.url
    done = run(*world, "--generator-url", url, "--generator-model", "m")  # nobody listens there any more
    assert isinstance(done.exception, ModelError)
    assert "same command" in str(done.exception)
    assert "\n" not in str(done.exception)
    assert [one.answer.text for one in lines(tmp_path / "run")] == ["1 mg"]


def test_the_key_is_never_an_argument_and_never_told(world, monkeypatch):
    secret = "sk-canary-4f2a91"
    done = run(
        *world,
        "--generator-url",
        "http://127.0.0.1:9/v1",
        "--generator-model",
        "m",
        "--generator-key-env",
        secret,
    )
    assert isinstance(done.exception, UsageError)
    assert secret not in str(done.exception) + done.output


def test_an_endpoint_elsewhere_is_refused_offline(world):
    done = run(*world, "--generator-url", "http://192.0.2.1:9/v1", "--generator-model", "m")
    assert isinstance(done.exception, OfflineError)


def test_texts_can_be_left_out_with_a_key_alone(world, tmp_path):
    from clinsafe.oversight.keys import default_file, make_key

    assert isinstance(run(*world, *FAKE, "--no-text").exception, ClinsafeError)
    make_key(default_file())
    done = run(*world, *FAKE, "--no-text")
    assert done.exit_code == 0, done.output
    whole = (tmp_path / "run" / "traces" / "rag-alpha-0.5.jsonl").read_text()
    assert "dose" not in whole
    assert "not kept" in done.output


def pubmedqa(folder):
    rows = [
        {"id": str(n), "question": f"Does drug{n} help?", "contexts": [f"Drug{n} helped.", "A trial."],
         "long_answer": f"Drug{n} helps.", "final_decision": "yes"}
        for n in range(4)
    ]  # fmt: skip
    folder.mkdir()
    (folder / "pubmedqa_pqal.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return folder


def test_a_data_set_brings_corpus_and_questions(tmp_path):
    given = ["--dataset", "pubmedqa", "--data", pubmedqa(tmp_path / "data"), "-m", "fake:words", "--limit", 2, "--out",
             tmp_path / "run", *FAKE, "--setting", "long-context"]  # fmt: skip
    done = run(*given)
    assert done.exit_code == 0, done.output
    first, _ = lines(tmp_path / "run", "long-context")
    assert (first.task, first.expected, list(first.options)) == ("mcq", "yes", ["yes", "no", "maybe"])
    assert "Drug0 helped." in first.prompt.text


WRONG = {
    "no questions": ["--corpus", "{corpus}"],
    "no corpus": ["--questions", "{questions}"],
    "both": ["--dataset", "pubmedqa", "--corpus", "{corpus}"],
    "no such data set": ["--dataset", "guidelineqa"],
    "no such setting": ["--corpus", "{corpus}", "--questions", "{questions}", "--setting", "few-shot"],
    "no generator": ["--corpus", "{corpus}", "--questions", "{questions}", "--setting", "direct"],
    "a setting twice": ["--corpus", "{corpus}", "--questions", "{questions}", "--setting", "rag", "--setting", "rag"],
    "alpha of nothing": ["--questions", "{questions}", "--setting", "direct", "--alpha", "1", *FAKE],
    "two generators": ["--corpus", "{corpus}", "--questions", "{questions}", *FAKE, "--generator-url", "http://127.0.0.1:9"],
    "no such file": ["--corpus", "{corpus}", "--questions", "gone.jsonl"],
    "no such corpus": ["--corpus", "gone.jsonl", "--questions", "{questions}"],
    "too much overlap": ["--corpus", "{corpus}", "--questions", "{questions}", "--tokens", "4", "--overlap", "4"],
    "an encoder reranks": ["--corpus", "{corpus}", "--questions", "{questions}", "--rerank", "fake:words"],
    "a scorer encodes": ["--corpus", "{corpus}", "--questions", "{questions}", "-m", "token-jaccard:x"],
}  # fmt: skip


@pytest.mark.parametrize("what", WRONG)
def test_what_makes_no_sense_is_one_line(what, world, tmp_path):
    places = {"{corpus}": world[1], "{questions}": world[3]}
    given = [places.get(one, one) for one in WRONG[what]]
    done = run(*(() if "-m" in given else ("-m", "fake:words")), *given, "--out", tmp_path / "run")
    assert isinstance(done.exception, ClinsafeError), done.output
    assert done.exception.exit_code == 2
    assert "\n" not in str(done.exception)


def test_a_guard_by_its_policy(world, tmp_path, monkeypatch):
    from clinsafe.workflows import guarding

    whole = guarding.build_guard
    monkeypatch.setattr(guarding, "build_guard", lambda *a, **k: whole(*a, **{**k, "filters": ["numerical"]}))
    done = run(*world, *FAKE, "--guard", "strict", "--limit", 1)
    assert done.exit_code == 0, done.output
    (one,) = lines(tmp_path / "run")
    assert one.guard[0].policy == "strict"
    assert "[clinsafe | " in one.prompt.text
    assert isinstance(run(*world, *FAKE, "--limit", 1).exception, UsageError)  # another plan
    assert isinstance(run(*world, *FAKE, "--guard", "kind").exception, ClinsafeError)


def test_the_run_folder_is_asked_for(world):
    place = world.index("--out")
    done = run(*world[:place], *world[place + 2 :])
    assert isinstance(done.exception, UsageError)
    assert "--out" in str(done.exception)


@pytest.mark.slow
def test_a_real_ctrl_c_keeps_whole_lines(world, tmp_path):
    """A served model that hangs at the third prompt; SIGINT; the same command goes on."""
    script = (
        "import typer\nfrom clinsafe.cli import app, rag_run\napp.app = typer.Typer()\n"
        "app.app.command()(rag_run.run)\napp.main()"
    )
    with ChatServer(lambda _prompt: "5 mg").running() as server:
        from tests.adapters.embedding_server import hang

        server.script = [says("1 mg"), says("2 mg"), hang]
        asked = [*world, "--generator-url", server.url, "--generator-model", "m"]
        command = [*INTERRUPTIBLE, "-c", script, *map(str, asked)]
        with subprocess.Popen(command, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
            until = time.monotonic() + 60
            while len(server.requests) < 3 and process.poll() is None and time.monotonic() < until:
                time.sleep(0.05)
            process.send_signal(signal.SIGINT)
            _, said = process.communicate(timeout=30)
        assert process.returncode == 130, said
        assert "same command" in said.replace("\n", " ")
        assert [one.answer.text for one in lines(tmp_path / "run")] == ["1 mg", "2 mg"]
        assert run(*asked).exit_code == 0
    assert [one.answer.text for one in lines(tmp_path / "run")] == ["1 mg", "2 mg", "5 mg"]
