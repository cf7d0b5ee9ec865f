"""What `rag evaluate`, `report verify` and `compare` print of RAG evaluations, and their exit codes."""

from __future__ import annotations

import json
from io import StringIO
from pathlib import Path

import pytest
import typer
from rich.console import Console
from typer.testing import CliRunner

from clinsafe.cli.compare import compare
from clinsafe.cli.rag_table import print_rag
from clinsafe.cli.verification import verify
from clinsafe.errors import ClinsafeError, ReportError, UsageError
from clinsafe.protocols import ModelIdentity
from clinsafe.rag.insights import FILE
from clinsafe.reports.evidence import SystemIdentity
from clinsafe.reports.rag_changes import compare_rag, load_rag
from clinsafe.reports.rag_record import JSON_NAME, to_bytes
from clinsafe.workflows.rag_command import Evaluated
from tests.reports.rag_planted import items, record
from tests.reports.test_rag_check import signed_json

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def earlier():
    return record({"s": items(40, shift=0.4, sliced=False)}, by="readers")


@pytest.fixture(scope="module")
def later():
    """Far fewer hits and right answers on the same questions."""
    return record({"s": items(40, quadrant="correct_rejection", sliced=False)}, by="readers")


def printed(evidence, **more):
    stream = StringIO()
    fields = {"folder": Path("run"), "record": Path("run/rag.json"), "html": Path("run/rag.html"), "pdf": None,
              "signed": None, "notes": ["no renderer"]}  # fmt: skip
    print_rag(
        Console(file=stream, width=80, no_color=True, highlight=False), Evaluated(evidence, **(fields | more))
    )
    return stream.getvalue()


def call(command, *arguments, code=0):
    app = typer.Typer()
    app.command()(command)
    done = CliRunner().invoke(app, [str(one) for one in arguments], env={"COLUMNS": "80", "NO_COLOR": "1"})
    if isinstance(done.exception, ClinsafeError):
        raise done.exception
    assert done.exit_code == code, done.output
    return done.output


def saved(folder, evidence):
    folder.mkdir(exist_ok=True)
    (folder / JSON_NAME).write_bytes(to_bytes(evidence))
    return folder


# ── rag evaluate ───────────────────────────────────────────────────────────────────────────────


def test_the_table_has_80_columns_counts_and_what_to_do(earlier):
    text = printed(earlier, signed="DEVELOPMENT KEY - A", pdf=Path("run/rag.pdf"))
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    figure = earlier.systems[0].figures["retrieval.all.hit"]
    assert f"{figure['k']}/40 = " in text
    assert "right but not grounded" in text
    assert "judged by two clinicians of the ward" in text
    assert "line 7, question: is no text" in text
    assert "signed by DEVELOPMENT KEY - A" in text
    assert "report at run/rag.pdf" in text
    assert "note: no renderer" in text


def test_what_is_not_measured_is_said_and_a_fake_too():
    bare = record({"\x1b[31mx": items(4, sliced=False)}, by="unaudited")
    fake = bare.model_copy(update={"systems": [bare.systems[0].model_copy(update={"fake": True})]})
    text = " ".join(printed(fake).split())
    assert "CUE is not measured: no judge was audited" in text
    assert "grounded: effective use not measured" in text
    assert "a FAKE took part" in text
    assert "\x1b" not in text
    assert "2 tasks without a score" in text
    assert "FAKE" not in printed(bare)


def test_an_institutions_own_rules_are_not_answered_for_by_the_packaged_ones(earlier, later):
    assert "DANGER" in printed(earlier) or "WARNING" in printed(earlier)
    other = earlier.model_copy(update={"content": {**earlier.content, FILE: "0" * 64}})
    text = printed(other)
    assert "your own rules" in text
    assert "DANGER" not in text
    assert "WARNING" not in text


# ── compare ────────────────────────────────────────────────────────────────────────────────────


def test_a_worse_run_is_one_and_the_same_run_is_zero(earlier, later, tmp_path):
    a, b = saved(tmp_path / "a", earlier), saved(tmp_path / "b", later)
    text = call(compare, a, b / JSON_NAME, "--json", tmp_path / "rows.json", code=1)
    assert max(map(len, text.splitlines()[:-1])) <= 80
    assert "WORSE in Hit rate" in text
    assert "Effective use (CUE)" in text
    rows = json.loads((tmp_path / "rows.json").read_text())
    assert "retrieval.all.hit" in rows["regressed"]
    hit = next(row for row in rows["rows"] if row["key"] == "retrieval.all.hit")
    assert hit["difference"]["value"] < 0
    assert hit["worse"][0].startswith("q")
    assert "no regression" in call(compare, a, a)
    back = {row.key: row.verdict for row in compare_rag(later, earlier).rows}
    assert back["retrieval.all.hit"] == "improvement"


def test_kinds_are_not_mixed_and_differences_of_measuring_are_refused(earlier, tmp_path):
    a = saved(tmp_path / "a", earlier)
    with pytest.raises(UsageError, match="one kind") as caught:
        call(compare, a, ROOT / "tests/golden/evidence-1.json")
    assert "\n" not in str(caught.value)
    other = earlier.model_copy(update={"encoder": SystemIdentity.of(ModelIdentity("bge"))})
    with pytest.raises(UsageError, match="encoder"):
        compare_rag(earlier, other)
    deeper = earlier.model_copy(update={"settings": earlier.settings.model_copy(update={"k": 5})})
    with pytest.raises(UsageError, match="k is 3"):
        compare_rag(earlier, deeper)
    with pytest.raises(UsageError, match="no system called 'x'"):
        compare_rag(earlier, earlier, system_a="x")
    fewer = record({"s": items(8, sliced=False)}, by="readers")
    with pytest.raises(UsageError, match="different questions"):
        compare_rag(earlier, fewer)


def test_several_systems_want_a_choice(tmp_path):
    two = record({"p": items(4, sliced=False), "q": items(4, seed=2, sliced=False)}, by="none")
    with pytest.raises(UsageError, match=r"--system-a: p, q"):
        compare_rag(two, two)
    assert compare_rag(two, two, system_a="p", system_b="q").b == "q"


def test_other_filters_or_judges_take_out_what_hangs_on_them(earlier):
    moved = earlier.model_copy(update={"filters": "0" * 64, "judge": None})
    found = compare_rag(earlier, moved)
    verdicts = {row.key: row.verdict for row in found.rows}
    assert verdicts["retrieval.all.safe_hit"] == verdicts["cue.all.effective_use"] == "not measured"
    assert verdicts["generation.all.adherence"] == "not measured"
    assert verdicts["retrieval.all.hit"] == "no difference shown"
    assert len(found.notes) == 2
    assert not compare_rag(earlier, earlier).notes


def test_a_fake_is_named(earlier):
    fake = earlier.model_copy(update={"encoder": earlier.encoder.model_copy(update={"fake": True})})
    assert compare_rag(fake, fake).fakes == ["A (s)", "B (s)"]


def test_only_rag_records_are_taken_for_such(tmp_path, earlier):
    assert load_rag(saved(tmp_path / "r", earlier)) == earlier
    assert load_rag(tmp_path) is None
    (tmp_path / "x").write_bytes(b"\xff not json")
    assert load_rag(tmp_path / "x") is None
    with pytest.raises(ReportError, match="cannot be read"):
        load_rag(tmp_path / "nothing")
    (tmp_path / "x").write_bytes(to_bytes(earlier).replace(b'"schema_version":1', b'"schema_version":9'))
    with pytest.raises(ReportError, match="schema_version"):
        load_rag(tmp_path / "x")


# ── report verify ──────────────────────────────────────────────────────────────────────────────


def test_verify_goes_by_the_kind_of_record(tmp_path, signing_key):
    evidence = record({"s": items(4, sliced=False)}, by="none")
    path = signed_json(tmp_path / "r", evidence, signing_key)
    (tmp_path / "trust.der").write_bytes(signing_key.certificate)
    text = call(verify, path, "--trust", tmp_path / "trust.der", "--json", tmp_path / "facts.json")
    assert "derived again from the questions, all equal" in text
    assert text.splitlines()[-1].startswith("VALID: signed by")
    assert json.loads((tmp_path / "facts.json").read_text())["accepted"] is True
    assert "INVALID" in call(verify, path, code=1)  # nobody is trusted
    with pytest.raises(UsageError, match="--suite"):
        call(verify, path, "--suite", tmp_path / "facts.json")
    path.write_bytes(path.read_bytes().replace(b'"questions":4', b'"questions":5'))
    assert "holds 4" in call(verify, path, "--trust", tmp_path / "trust.der", code=1)
