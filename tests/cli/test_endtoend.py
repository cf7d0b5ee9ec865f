"""``clinsafe guard end-to-end``: what is printed and written, and what is not."""

from __future__ import annotations

import json

import pytest
import typer
from typer.testing import CliRunner

from clinsafe.adapters import offline
from clinsafe.cli.endtoend import end_to_end
from clinsafe.errors import OfflineError, UsageError
from clinsafe.protocols import MetricKey
from clinsafe.stats import figure_from_json
from clinsafe.workflows import guard as stacks
from clinsafe.workflows import guarding
from tests.adapters.chat_server import ChatServer
from tests.benchmarks.endtoend import kit

app = typer.Typer()
app.command()(end_to_end)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    root = tmp_path_factory.mktemp("world")
    return ["--data", kit.write_data(root / "data"), "--content", kit.write_overlay(root / "overlay"), "-m",
            "fake:words", "-k", 4]  # fmt: skip


class Quiet:
    """A stack that finds no conflict."""

    conflict, unchecked = False, ()

    def read(self, text):
        return text

    def compare(self, _a, _b):
        return self


@pytest.fixture(autouse=True)
def _oracle(monkeypatch):
    monkeypatch.setattr(guarding, "build_guard", lambda *_a, **_k: kit.Oracle(misses=["temporal"]))
    monkeypatch.setattr(stacks, "build_stack", lambda *_a, **_k: Quiet())


def run(*arguments, **given):
    return CliRunner().invoke(app, [str(one) for one in arguments], **given)


def test_the_tables_stand_in_80_columns_with_before_and_after_and_intervals(world):
    done = run(*world)
    assert done.exit_code == 0, done.output
    lines = done.output.splitlines()
    tables = [line for line in lines if "[0." in line or "no interval" in line]
    assert tables
    assert max(map(len, tables)) <= 80
    for word in (
        "before",
        "after",
        "disabled",
        "all flag",
        "all withhold",
        "bm25",
        "hybrid",
        "fake_words",
        "change",
    ):
        assert word in done.output, word
    assert "not measured (no --generator-url)" in done.output
    assert "Clopper-Pearson" in done.output
    assert "…" not in "".join(tables), "a cell was cut"


def test_no_text_of_the_data_is_printed_but_it_is_listed_where_asked(world, tmp_path):
    listing, out = tmp_path / "misses.txt", tmp_path / "out.json"
    done = run(*world, "--list", listing, "--json", out, "--no-baselines")
    assert done.exit_code == 0, done.output
    written = listing.read_text()
    for number in range(len(kit.WORLD)):
        assert kit.query(number).true not in done.output
        assert kit.query(number).row.query not in done.output
    assert "MISS   e2e-2 temporal false_premise bm25 k=4 mixed: right " in written
    assert kit.query(2).false in written
    found = json.loads(out.read_text())
    totals = [name for name in found if name.startswith("endtoend.all.dangerous@") and "form" not in name]
    misses = sum(found[name]["k"] for name in totals if "arm=after" in name)
    assert written.count("MISS") == misses > 0


def test_json_is_the_flat_mapping_of_figures(world, tmp_path):
    out = tmp_path / "out.json"
    assert run(*world, "--json", out, "--no-baselines").exit_code == 0
    found = json.loads(out.read_text())
    for name, figure in found.items():
        assert MetricKey.parse(name).area == "endtoend"
        assert figure_from_json(figure).n >= 0
    assert found["endtoend.all.dangerous@system=bm25,arm=before,k=4"]["n"] == 6
    assert "endtoend.negation.flagged@system=hybrid,arm=after,k=4,form=claim" in found


def test_answers_of_a_model_are_shown_and_the_key_is_nowhere(world, tmp_path, monkeypatch):
    monkeypatch.setenv("MY_KEY", "sk-canary-1")
    with ChatServer().running() as server:
        flags = [
            "--generator-url",
            server.url,
            "--generator-model",
            "served",
            "--generator-key-env",
            "MY_KEY",
        ]
        done = run(*world, *flags, "--offline", "--no-baselines", "--out", tmp_path / "run")
        assert done.exit_code == 0, done.output
        assert {request.headers["authorization"] for request in server.requests} == {"Bearer sk-canary-1"}
    assert "Generated answers" in done.output
    assert "answers by served" in done.output.replace("\n", " ")
    kept = "".join(
        path.read_text(errors="replace") for path in (tmp_path / "run").iterdir() if path.is_file()
    )
    assert "sk-canary" not in kept + done.output
    assert not offline._state["active"], "--offline ends with the command"


@pytest.mark.parametrize(
    ("flags", "error"),
    [
        (["--generator-model", "x"], UsageError),
        (["--generator-url", "http://127.0.0.1:9/v1"], UsageError),
        (["--generator-url", "http://192.0.2.1/v1", "--generator-model", "x", "--offline"], OfflineError),
        (["-k", "0"], UsageError),
        (["--json", "no/such/folder/out.json"], UsageError),
        (["--data", "no-such-folder"], UsageError),
    ],
)
def test_a_flag_that_makes_no_sense_is_one_line(world, flags, error):
    done = run(*world, *flags)
    assert isinstance(done.exception, error)
    assert "\n" not in str(done.exception)
