"""The guard put together: the public call, its log, stored facts, an adviser, and bad settings."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import clinsafe
from clinsafe.errors import ClinsafeError, UsageError
from clinsafe.oversight.jsonl import JsonlLog
from clinsafe.oversight.keys import LogKey
from clinsafe.protocols import Fact, Finding, Reading, Span
from clinsafe.workflows.guarding import build_guard

CANARY = "Zanzibar Quillfeather"
WRONG = f"{CANARY} has no penicillin allergy."
QUERY = f"{CANARY} has a penicillin allergy."
KEY = LogKey(b"k" * 32)


def find(query: str, k: int = 5) -> list[str]:
    return [WRONG, f"The wound of {CANARY} was dressed."][:k]


@pytest.fixture
def log(tmp_path: Path) -> JsonlLog:
    made = JsonlLog(tmp_path / "decisions.jsonl", KEY)
    made.create()
    return made


def test_one_line_wraps_a_function() -> None:
    answer = clinsafe.guard(find)(QUERY)
    assert [row.passage.text for row in answer.passages] == find("")
    assert answer.passages[0].flagged
    assert not answer.passages[1].flagged
    assert answer.not_run, "no NLI model was given"
    assert clinsafe.guard(find, k=1)(QUERY).passages[0].passage.text == WRONG


def test_what_the_retriever_raises_reaches_the_caller() -> None:
    def broken(query: str) -> list[str]:
        raise TimeoutError("index down")

    with pytest.raises(TimeoutError, match="index down"):
        clinsafe.guard(broken)(QUERY)


@pytest.mark.parametrize(
    ("options", "says"),
    [
        ({"polcy": "strict"}, "no argument 'polcy'"),
        ({"policy": "lenient"}, "there are: default, report, strict"),
        ({"seconds": -1}, "0 means none"),
        ({"filters": ["nonesuch"]}, "nonesuch"),
        ({"facts": "no/such/folder"}, "no/such/folder"),
    ],
)
def test_bad_settings_are_one_line(options: dict[str, object], says: str) -> None:
    with pytest.raises(ClinsafeError) as error:
        clinsafe.guard(find, **options)  # type: ignore[arg-type]
    assert says in str(error.value)
    assert "\n" not in str(error.value)


def test_decisions_are_recorded_without_their_words_and_the_chain_holds(log: JsonlLog) -> None:
    guarded = clinsafe.guard(find, log=log)
    guarded(QUERY)
    guarded("Does the patient have a penicillin allergy?")
    assert log.verify() == ()
    written = log.path.read_text()
    assert written.count('"decision"') == 2
    assert "Zanzibar" not in written
    hashed = clinsafe.guard(find, log=log, passage_ids="hashed")
    assert hashed(QUERY).policy == "default"
    assert log.verify() == ()


def test_a_broken_chain_is_told_with_the_answer(log: JsonlLog) -> None:
    guarded = clinsafe.guard(find, log=log)
    guarded(QUERY)
    log.path.write_text(log.path.read_text().replace('"decision"', '"decisoin"'))
    answer = clinsafe.guard(find, log=JsonlLog(log.path, KEY))(QUERY)
    assert [row.passage.text for row in answer.passages] == find("")
    assert any(line.startswith("decision log: not written") for line in answer.unchecked)
    assert answer.needs_review


def test_a_log_without_a_key_is_refused() -> None:
    class Log:
        def append(self, record: object, /) -> str:
            return ""

        def verify(self) -> Sequence[str]:
            return ()

    with pytest.raises(UsageError, match="digest="):
        build_guard(log=Log())  # type: ignore[arg-type]


class Adviser:
    """Contradicts everything, or takes its time."""

    hazard = "nli"
    note = "NLI guardrail: a test's."

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        return [Fact(self.hazard, Span(0, 1), {})]

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        return [
            Finding(
                "nli", "conflict", "contradiction", "note", 0.9, Span(0, 1), Span(0, 1), "", "", "", "nli.x",
                "The model sees a contradiction.",
            )
        ]  # fmt: skip


class Silent(Adviser):
    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        return []


class Broken(Adviser):
    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        raise RuntimeError(CANARY)


def test_an_adviser_raises_a_flag_and_clears_none() -> None:
    def flags(nli: object) -> list[bool]:
        answer = build_guard(seconds=0, nli=nli).check(QUERY, find(""))  # type: ignore[arg-type]
        assert answer.not_run == ()
        return [row.flagged for row in answer.passages]

    assert flags(Silent()) == [True, False]
    assert flags(Adviser()) == [True, True]
    assert flags(Broken()) == [True, True], "one that could not look leaves the passage unchecked"


def test_an_adviser_gives_no_stance_and_no_disagreement() -> None:
    guard = build_guard(seconds=0, nli=Adviser())  # type: ignore[arg-type]
    answer = guard.check(
        "Does the patient have a penicillin allergy?", ["The wound was dressed.", "He walks."]
    )
    assert [row.stance for row in answer.passages] == ["silent", "silent"]
    assert answer.disagreements == ()
