"""Decision D11, whole: a phrase that stands for a patient goes through everything that the guard leaves behind.

The phrase is in queries, passages, their metadata and the cases of a suite. It may come back in the answer, which is
for the one who asked; it must stand in no log, trace, warning, error, metric, evidence record or PDF.
"""

from __future__ import annotations

import json
import logging
import sqlite3
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path

import pypdfium2
import pytest
from typer.testing import CliRunner

import clinsafe
from clinsafe.cli.app import app
from clinsafe.errors import ClinsafeError
from clinsafe.oversight.jsonl import JsonlLog
from clinsafe.oversight.keys import LogKey
from clinsafe.oversight.sql import SqlLog
from clinsafe.protocols import Fact, Finding, Passage, Reading
from clinsafe.workflows.audit import run_audit
from clinsafe.workflows.guarding import build_guard
from tests.tiers import mined, write_mined

CANARY = "Zaphenia Quibblethorpe"
WORDS = tuple(CANARY.lower().split())
KEY = LogKey(bytes(range(32)))
PASSAGES = [
    Passage(f"note of {CANARY}", f"{CANARY} has no penicillin allergy.", 0.9, f"ward of {CANARY}"),
    Passage("2", f"Known allergy to penicillin ({CANARY}), warfarin 50 mg daily.", metadata={"date": "2024"}),
    Passage("2", f"{CANARY} has a penicillin allergy; warfarin 5 mg daily.", float("nan")),
]
QUERIES = (
    f"Does {CANARY} have a penicillin allergy?",
    f"{CANARY} takes warfarin 5 mg and is allergic to penicillin.",
)


def leaks(text: str | bytes) -> list[str]:
    shown = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
    return [word for word in WORDS if word in shown.lower()]


class Broken:
    """Fails with the text in its message."""

    hazard = "negation"

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        raise ValueError(reading.text)

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        return []


def test_the_phrase_would_be_found() -> None:
    assert leaks(f"a note on {CANARY}") == list(WORDS)
    answer = build_guard(seconds=0).check(QUERIES[0], PASSAGES)
    assert leaks(answer.context), "the answer is for the one who asked"


def test_logs_traces_and_warnings_hold_no_word_of_it(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    caplog.set_level(logging.DEBUG)
    lines, table = JsonlLog(tmp_path / "log.jsonl", KEY), SqlLog(f"sqlite:///{tmp_path}/log.db", KEY)
    for log in (lines, table):
        log.create()
    record = clinsafe.record(tmp_path / "traces.jsonl")
    for log in (lines, table):
        whole = build_guard(seconds=0, log=log)
        late = build_guard(seconds=1e-9, log=log)
        failing = build_guard(seconds=0, log=log)
        failing.stack.filters["broken"] = Broken()
        for guard in (whole, late, failing):
            for query in QUERIES:
                with record.question(query) as trace:
                    given = guard.check(query, PASSAGES)
                    trace.retrieved(given)
                    trace.answer(given.context)
    table.close()
    with closing(sqlite3.connect(tmp_path / "log.db")) as database:
        dumped = "\n".join(database.iterdump())
    assert (tmp_path / "log.jsonl").read_text().count('"decision"') == dumped.count('"decision"') == 6
    assert not leaks(dumped)
    for path in tmp_path.iterdir():
        assert not leaks(path.read_bytes()), path.name
    assert caplog.records, "the failing filter was told"
    assert not leaks(caplog.text)
    assert not leaks("".join(capfd.readouterr()))


def test_errors_hold_no_word_of_it() -> None:
    def broken(query: str) -> list[str]:
        return 7  # type: ignore[return-value]

    answer = clinsafe.guard(broken)(QUERIES[0])
    assert not leaks(" ".join((*answer.notes, *answer.unchecked, *answer.review)))
    failing = build_guard(seconds=0)
    failing.stack.filters["broken"] = Broken()
    shown = failing.check(QUERIES[0], PASSAGES)
    assert not leaks(" ".join(why for row in shown.passages for why in row.unchecked.values()))


def test_metrics_hold_no_word_of_it(tmp_path: Path) -> None:
    cases = tmp_path / "cases.jsonl"
    rows = [
        {"id": f"c{n}", "category": "negation", "query": QUERIES[1], "passage": p.text, "label": label}
        for n, (p, label) in enumerate(zip(PASSAGES, ("conflict", "safe", "safe"), strict=True))
    ]
    cases.write_text("\n".join(map(json.dumps, rows)))
    out = tmp_path / "figures.json"
    done = CliRunner().invoke(
        app, ["guard", "bench", "--cases", str(cases), "--no-baselines", "--json", str(out)]
    )
    assert done.exit_code == 0, done.output
    assert not leaks(out.read_text())


@pytest.mark.slow
def test_evidence_and_pdf_hold_no_word_of_it(few, tmp_path: Path) -> None:  # type: ignore[no-untyped-def]
    marked = [
        case.model_copy(
            update={side: f"{getattr(case, side)} ({CANARY})" for side in ("a", "b", "a_same", "b_same")}
        )
        for case in mined(few)
    ]
    suite = write_mined(tmp_path, marked)
    result = run_audit("fake:words", suite=suite, out=tmp_path / "run", guard=True)
    assert result.pdf is not None
    with pypdfium2.PdfDocument(result.pdf) as document:
        text = "".join(page.get_textpage().get_text_bounded() for page in document)
    assert "negation" in text
    assert not leaks(text)
    for path in (tmp_path / "run").rglob("*"):
        if path.is_file():
            assert not leaks(path.read_bytes()), path.name


def test_a_wrong_policy_file_is_told_without_its_words(tmp_path: Path) -> None:
    own = tmp_path / "ward.yaml"
    own.write_text(f"name: ward\nabout: {CANARY}\n")
    with pytest.raises(ClinsafeError) as error:
        build_guard(own)
    assert not leaks(str(error.value))
