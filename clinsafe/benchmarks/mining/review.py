"""Reading a sample of mined cases blind: a reader sees two sentences at a time, not what they ought to be."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, TypeAlias

from clinsafe.benchmarks.mined import Review, Reviewed
from clinsafe.benchmarks.suite import Case, by_hazard
from clinsafe.content import Record
from clinsafe.errors import UsageError

Label: TypeAlias = Literal["contradict", "certainty", "same", "neither", "nonsense"]
LABELS: tuple[Label, ...] = ("contradict", "certainty", "same", "neither", "nonsense")
CERTAINTY = "hedging"  # the hazard whose conflict is a difference of certainty (decision D4)
PAIRS: tuple[tuple[str, str, Label], ...] = (
    ("a", "b", "contradict"),
    ("a", "a_same", "same"),
    ("b", "b_same", "same"),
)


class Question(Record):
    """Two sentences and, once a reader has answered, what they are to each other.

    Attributes:
        label: ``contradict`` (both cannot be true of the same patients), ``certainty`` (the same is said, once as a
            mere possibility or guess and once as a fact or as proven), ``same`` (each follows from the other),
            ``neither``, ``nonsense`` (one of them is no English or no medicine); None is not answered yet.
        remark: whatever the reader adds.
        reader: who answered; "" in a sheet that was filled elsewhere.
    """

    id: str
    first: str
    second: str
    label: Label | None = None
    remark: str = ""
    reader: str = ""


def sample(cases: Sequence[Case], n: int, seed: int) -> list[Case]:
    """n cases of each hazard (all, where there are fewer), drawn by hash."""
    chosen: list[Case] = []
    for group in by_hazard(cases).values():
        chosen += sorted(group, key=lambda case: _hash(seed, case.id))[:n]
    return chosen


def sheet(cases: Sequence[Case], seed: int) -> list[Question]:
    """Three questions a case, those of all cases shuffled, in either order of sentences."""
    questions = []
    for case in cases:
        for one, other, _ in PAIRS:
            name = _name(case, other, one, seed)
            texts = (getattr(case, one), getattr(case, other))
            first, second = texts if int(name[-1], 16) % 2 else texts[::-1]
            questions.append(Question(id=name, first=first, second=second))
    return sorted(questions, key=lambda question: question.id)


def judge(
    cases: Sequence[Case], answers: Iterable[Question], seed: int, reader: str
) -> tuple[Review, dict[str, list[str]]]:
    """How many cases a reader accepted: those all of whose three pairs were labelled as they ought to be.

    Returns:
        The review, over the cases that were answered whole, and case id -> what was said otherwise.

    Raises:
        UsageError: an answer to a question that this sample does not ask, to another text, or by another reader.
    """
    given = {answer.id: answer for answer in answers}
    texts = {question.id: (question.first, question.second) for question in sheet(cases, seed)}
    for said in given.values():
        if said.id in texts and texts[said.id] != (said.first, said.second):
            raise UsageError(
                f"{said.id}: its sentences are not those of the suite; the answers are to another text"
            )
        if said.reader not in ("", reader):
            raise UsageError(
                f"{said.id}: was answered by {said.reader!r}, not by {reader!r}; give another --answers"
            )
    ought: Mapping[str, tuple[Case, str, Label]] = {
        _name(case, other, one, seed): (case, f"{one}|{other}", label)
        for case in cases
        for one, other, label in PAIRS
    }
    if unknown := set(given) - set(ought):
        raise UsageError(f"{min(unknown)}: no question of this sample; suite, number or seed were others")
    wrong: dict[str, list[str]] = {}
    read: dict[str, list[str]] = {case.id: [] for case in cases}
    for name, (case, pair, label) in ought.items():
        answer = given.get(name)
        if answer is None or answer.label is None:
            continue
        read[case.id].append(pair)
        if answer.label != label and not (
            label == "contradict" and answer.label == "certainty" and case.hazard == CERTAINTY
        ):
            wrong.setdefault(case.id, []).append(
                f"{pair} is {answer.label}{f': {answer.remark}' if answer.remark else ''}"
            )
    hazards = {}
    for hazard, group in by_hazard(cases).items():
        whole = [case for case in group if len(read[case.id]) == len(PAIRS)]
        hazards[hazard] = Reviewed(accepted=sum(case.id not in wrong for case in whole), read=len(whole))
    return Review(reader=reader, blind=True, seed=seed, hazards=hazards), wrong


def _hash(seed: int, text: str) -> str:
    return hashlib.sha256(f"{seed}\t{text}".encode()).hexdigest()


def _name(case: Case, other: str, one: str, seed: int) -> str:
    return f"q-{_hash(seed, f'{case.id}|{one}|{other}')[:12]}"
