"""The guard around a retriever: nothing lost, nothing raised, late is unchecked, and useless guards are told apart."""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.guarded import GuardedAnswer
from clinsafe.mitigations.deadline import KEPT
from clinsafe.mitigations.dummies import Constant
from clinsafe.mitigations.stack import Stack
from clinsafe.mitigations.wrapper import RetrievalGuard
from clinsafe.protocols import Fact, Filter, Finding, Passage, Reading, Span
from clinsafe.workflows.guarding import build_guard

QUERY = "The patient has a penicillin allergy."
RIGHT = "Known allergy to penicillin, with anaphylaxis in 2010."
WRONG = "The patient has no penicillin allergy."
OTHER = "The wound was dressed and the sutures were removed."


@pytest.fixture(scope="module")
def guard() -> RetrievalGuard:
    return build_guard(seconds=0)


def with_filters(guard: RetrievalGuard, seconds: float = 0, **filters: Filter) -> RetrievalGuard:
    """The same guard on other filters."""
    stack = Stack(filters, guard.stack.reader, seconds=1.0)
    return RetrievalGuard(stack, guard.policy, guard.packs, guard.accept, seconds=seconds)


class Sleeper:
    """A filter that takes its time over a passage with this word."""

    hazard = "negation"

    def __init__(self, seconds: float, word: str = "slow") -> None:
        self.seconds, self.word = seconds, word

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        if self.word in reading.text:
            time.sleep(self.seconds)
        return [Fact(self.hazard, Span(0, 1), {})]

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        return []


class Thrower(Sleeper):
    def read(self, reading: Reading, /) -> Sequence[Fact]:
        raise ValueError(reading.text)


def shown(answer: GuardedAnswer) -> list[str]:
    return [row.passage.text for row in answer.passages]


def test_the_contradicting_passage_is_shown_with_its_flag(guard: RetrievalGuard) -> None:
    answer = guard.check(QUERY, [WRONG, RIGHT, OTHER])
    assert shown(answer) == [WRONG, RIGHT, OTHER], "in place"
    wrong, right, other = answer.passages
    assert wrong.flagged
    assert [finding.hazard for finding in wrong.findings] == ["negation"]
    assert wrong.reasons[0] in wrong.annotated
    assert not other.flagged
    assert not [f for f in right.findings if f.verdict == "conflict"]
    assert answer.needs_review
    assert not answer.safe
    assert answer.policy == "default"
    assert len(answer.policy_sha256) == 64


def test_two_passages_that_disagree_on_what_is_asked(guard: RetrievalGuard) -> None:
    answer = guard.check("Does the patient have a penicillin allergy?", [WRONG, RIGHT, OTHER])
    assert answer.question
    assert [row.stance for row in answer.passages] == ["denies", "affirms", "silent"]
    assert [(pair.first, pair.second) for pair in answer.disagreements] == [
        (answer.passages[0].passage.id, answer.passages[1].passage.id)
    ]
    assert [row.flagged for row in answer.passages] == [True, True, False]
    assert answer.needs_review


def test_denied_by_all_is_said_to_be_unverified(guard: RetrievalGuard) -> None:
    answer = guard.check("Does the patient have a penicillin allergy?", [WRONG, OTHER])
    assert any("not verified" in note for note in answer.notes)
    affirmed = guard.check("Does the patient have a penicillin allergy?", [RIGHT, OTHER])
    assert not any("not verified" in note for note in affirmed.notes)


def test_useless_guards_are_told_apart(guard: RetrievalGuard) -> None:
    def flags(one: RetrievalGuard) -> list[bool]:
        return [row.flagged for row in one.check(QUERY, [WRONG, RIGHT, OTHER]).passages]

    assert flags(guard) == [True, True, False], "the right one disagrees with the wrong one, and says so"
    assert flags(with_filters(guard)) == [False, False, False], "disabled"
    assert flags(replace_findings(guard, "high", "")) == [True, True, True], "always"
    assert flags(with_filters(guard, never=Constant(False))) == [False, False, False]


@pytest.mark.parametrize("raw", [None, 5, {"text": 3}, [None, 7], object(), b"bytes", [b"x"]])
def test_what_is_no_answer_of_a_retriever_is_said_and_never_safe(guard: RetrievalGuard, raw: object) -> None:
    answer = guard.check(QUERY, raw)
    assert answer.passages == ()
    assert answer.notes


def test_nothing_found_is_no_fault(guard: RetrievalGuard) -> None:
    answer = guard.check(QUERY, [])
    assert answer.passages == ()
    assert not answer.needs_review


def test_missing_and_equal_ids_lose_no_passage(guard: RetrievalGuard) -> None:
    rows = [Passage("a", WRONG), Passage("a", RIGHT), Passage("", OTHER), Passage("a", WRONG)]
    answer = guard.check(QUERY, rows)
    assert shown(answer) == [WRONG, RIGHT, OTHER, WRONG]
    assert len({row.passage.id for row in answer.passages}) == 4


def test_nan_scores_and_a_wrong_order_are_noted_and_the_order_is_kept(guard: RetrievalGuard) -> None:
    rows = [Passage("a", OTHER, 0.1), Passage("b", RIGHT, float("nan")), Passage("c", WRONG, 0.9)]
    answer = guard.check(QUERY, rows)
    assert [row.passage.id for row in answer.passages] == ["a", "b", "c"]
    assert answer.notes


def test_never_more_than_k(guard: RetrievalGuard) -> None:
    answer = guard.check(QUERY, [OTHER, RIGHT, WRONG], k=2)
    assert shown(answer) == [OTHER, RIGHT]
    assert any("k = 2" in note for note in answer.notes)


def test_demotion_stays_within_k() -> None:
    strict = build_guard("strict", seconds=0)
    moderate = replace_findings(strict, "moderate")
    answer = moderate.check(QUERY, ["conflict one", "two", "three"], k=2)
    assert [row.passage.text for row in answer.passages] == ["two", "conflict one"]
    assert [row.retrieved_rank for row in answer.passages] == [2, 1]


def replace_findings(guard: RetrievalGuard, severity: str, word: str = "conflict") -> RetrievalGuard:
    """A guard whose only filter finds something of this severity in passages with this word."""

    class Word:
        hazard = "negation"

        def read(self, reading: Reading, /) -> Sequence[Fact]:
            return [Fact(self.hazard, Span(0, 1), {"said": reading.text})]

        def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
            if word not in passage[0].normal["said"]:
                return []
            return [
                Finding(
                    self.hazard, "conflict", "contradiction", severity, 0.9,  # type: ignore[arg-type]
                    Span(0, 1), Span(0, 1), "a", "b", "c", "r", "It says otherwise.",
                )
            ]  # fmt: skip

    return with_filters(guard, word=Word())


def test_what_did_not_finish_is_unchecked_and_what_did_is_kept(guard: RetrievalGuard) -> None:
    slow = with_filters(guard, seconds=0.3, sleeper=Sleeper(5.0))
    start = time.monotonic()
    answer = slow.check("anything", ["quick", "slow one", "never reached"])
    assert time.monotonic() - start < 3
    first, second, third = answer.passages
    assert not first.unchecked
    assert set(second.unchecked) == set(third.unchecked) == {"sleeper"}
    assert second.flagged
    assert third.confidence == 0.0
    assert "NOT CHECKED" in third.annotated.upper()
    assert answer.needs_review
    assert any("2 of 3" in line for line in answer.unchecked)


def test_a_filter_that_throws_is_unchecked_and_its_words_stay_inside(guard: RetrievalGuard) -> None:
    answer = with_filters(guard, thrower=Thrower(0)).check("q", ["a secret phrase"])
    assert answer.passages[0].unchecked == {"thrower": "read: failed with ValueError"}
    assert "secret" not in " ".join((*answer.unchecked, *answer.review))


def test_threads_end_with_their_late_work(guard: RetrievalGuard) -> None:
    slow = with_filters(guard, seconds=0.01, sleeper=Sleeper(0.5))
    before = threading.active_count()
    for _ in range(40):
        slow.check("anything", ["slow"])
    assert threading.active_count() > before + 2 * KEPT, "work goes on"
    limit = time.monotonic() + 20
    while threading.active_count() > before + 2 * KEPT and time.monotonic() < limit:
        time.sleep(0.05)
    assert threading.active_count() <= before + 2 * KEPT, (
        "those of the guard and of its stack that wait for work"
    )


def test_many_callers_get_their_own_answers(guard: RetrievalGuard) -> None:
    wrong: list[str] = []

    def ask(number: int) -> None:
        mine = [f"{WRONG} Bed {number}.", f"{OTHER} Bed {number}."]
        for _ in range(3):
            answer = guard.check(f"{QUERY} Bed {number}.", mine)
            if shown(answer) != mine or not answer.passages[0].findings:
                wrong.append(str(number))

    callers = [threading.Thread(target=ask, args=(number,)) for number in range(8)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert wrong == []


def test_a_log_that_cannot_be_written_is_said_and_asks_for_a_person(guard: RetrievalGuard) -> None:
    def broken(answer: GuardedAnswer) -> None:
        raise OSError(answer.query)

    logged = RetrievalGuard(guard.stack, guard.policy, guard.packs, guard.accept, seconds=0, record=broken)
    answer = logged.check("a quiet question of one Mrs Smith", [OTHER])
    assert answer.needs_review
    assert not answer.safe
    assert "Smith" not in " ".join((*answer.unchecked, *answer.review))


@settings(max_examples=25)
@given(st.lists(st.text(max_size=80), max_size=4), st.text(max_size=60))
def test_any_text_comes_back_whole(guard: RetrievalGuard, texts: list[str], query: str) -> None:
    answer = guard.check(query, texts)
    assert [row.passage.text for row in answer.passages] == texts
    assert [row.rank for row in answer.passages] == list(range(1, len(texts) + 1))


def test_stored_facts_are_used_and_those_that_cannot_be_trusted_are_read_anew(guard: RetrievalGuard) -> None:
    read = {"a": guard.stack.read(WRONG)}
    asked: list[str] = []

    def stored(passage: str, text: str):  # type: ignore[no-untyped-def]
        asked.append(passage)
        empty = replace(read["a"], by_filter={}, unchecked={"negation": "read: other rules"})
        return read.get(passage, empty)

    with_store = RetrievalGuard(
        guard.stack, guard.policy, guard.packs, guard.accept, seconds=0, facts=stored, remember=0
    )
    answer = with_store.check(QUERY, [Passage("a", WRONG), Passage("b", WRONG)])
    assert asked == ["a", "b"]
    assert [bool(row.findings) for row in answer.passages] == [True, True]
    assert not answer.passages[1].unchecked


def test_a_fault_in_the_marks_loses_neither_the_passage_nor_its_flag(
    guard: RetrievalGuard, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise IndexError("a word of the text")

    monkeypatch.setattr("clinsafe.mitigations.wrapper.annotate", broken)
    answer = guard.check(QUERY, [WRONG, OTHER])
    assert shown(answer) == [WRONG, OTHER]
    assert answer.passages[0].flagged
    assert "NOT CHECKED" in answer.passages[1].annotated
    assert answer.passages[1].flagged
    assert not answer.safe
    assert "a word of the text" not in answer.context
