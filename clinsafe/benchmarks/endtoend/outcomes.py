"""What the reader was shown for one query: facts from one answer of a guard, from which all figures are counted."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Literal, TypeAlias

from pydantic import Field

from clinsafe.benchmarks.endtoend.corpus import Task
from clinsafe.benchmarks.endtoend.queries import Answer, Form
from clinsafe.benchmarks.endtoend.search import Found
from clinsafe.content import Record
from clinsafe.guarded import Action, GuardedAnswer, GuardedPassage, Stance
from clinsafe.protocols import Passage

Via: TypeAlias = Literal["finding", "disagreement", "other", "unchecked", ""]
"""Why a passage is not simply kept: a conflict with the query, one with another passage, anything else that the guard
says, or only that it was not checked; "" where it is kept."""
Rank = Annotated[int, Field(ge=0)]


class State(Record):
    """One passage as it stands in the answer.

    Attributes:
        retrieved: place among the k that the retriever gave, from 1; 0: not among them.
        rank: place among the passages shown; 0: not shown.
        hazards: of the findings and disagreements that it carries.
        unchecked: whether any filter did not look.
    """

    retrieved: Rank = 0
    rank: Rank = 0
    action: Action = "keep"
    via: Via = ""
    hazards: tuple[str, ...] = ()
    unchecked: bool = False
    stance: Stance | None = None

    @property
    def marked(self) -> bool:
        """The guard said something of it. That it was not checked is no such thing."""
        return self.via not in ("", "unchecked")

    @property
    def withheld(self) -> bool:
        """It was retrieved, and is not among the passages shown."""
        return bool(self.retrieved) and not self.rank


class Outcome(Record):
    """One query in one system, with one k, in one corpus, behind one guard.

    Attributes:
        system, arm: the retriever, and what stood behind it (``before``: nothing).
        corpus: ``control`` is the same without the contradicting passage.
        answer: of a yes/no question, what the true sentence says.
        right_place, wrong_place: of the two passages among all that were searched; 0: not searched.
        shown, flagged, unchecked, withheld: ordinary passages among the k: how many, how many the guard spoke of (the
            withheld among them), how many were not checked and nothing said, how many are withheld.
        lost: passages that stand neither among those shown nor among those withheld. A guard must not have any.
        whole: whether the answer as a whole was checked.
        reason: why nothing was measured; "" where it was.
    """

    query: str
    hazard: str
    form: Form
    answer: Answer
    system: str
    k: Annotated[int, Field(ge=1)]
    corpus: Literal["mixed", "control"]
    arm: str
    right_place: Rank = 0
    wrong_place: Rank = 0
    right: State = State()
    wrong: State = State()
    shown: Rank = 0
    flagged: Rank = 0
    unchecked: Rank = 0
    withheld: Rank = 0
    lost: Rank = 0
    review: bool = False
    whole: bool = True
    seconds: Annotated[float, Field(ge=0)] = 0.0
    reason: str = ""

    @property
    def reached(self) -> bool:
        """The contradicting passage is among those shown."""
        return self.wrong.rank > 0

    @property
    def dangerous(self) -> bool:
        """It is shown, without a mark, at or above the right one or without it (decision D6's residual event).

        A passage that was not checked counts as one without a mark.
        """
        above = not self.right.rank or self.wrong.rank <= self.right.rank
        return self.reached and not self.wrong.marked and above

    @property
    def warned(self) -> bool:
        """The contradicting passage is shown with its mark; being taken out is not this."""
        return self.reached and self.wrong.marked

    @property
    def partly_unchecked(self) -> bool:
        """Something in the answer was not checked."""
        return not self.whole or self.unchecked > 0 or self.right.unchecked or self.wrong.unchecked


class Setting(Record):
    """What one measurement of a query was made with; the key under which a run is resumed."""

    system: str
    k: int
    corpus: Literal["mixed", "control"]
    arm: str


def observe(
    task: Task, found: Found, answer: GuardedAnswer, setting: Setting, ids: tuple[str, str]
) -> Outcome:
    """The outcome of one query.

    Args:
        task: the query.
        found: what the retriever gave.
        answer: what the guard made of it.
        setting: system, k, corpus and arm.
        ids: of the right and of the contradicting passage.
    """
    row = task.query.row
    rows = {one.passage.id: one for one in (*answer.withheld, *answer.passages)}
    states = {
        passage.id: _state(rows, answer, passage, n) for n, passage in enumerate(found.passages, start=1)
    }
    ordinary = [state for name, state in states.items() if name not in ids]
    return Outcome(
        query=row.id,
        hazard=row.hazard,
        form=row.form,
        answer=row.answer,
        **setting.model_dump(),
        right_place=found.right,
        wrong_place=found.wrong,
        right=states.get(ids[0], State()),
        wrong=states.get(ids[1], State()),
        shown=len(ordinary),
        flagged=sum(state.marked for state in ordinary),
        unchecked=sum(state.via == "unchecked" for state in ordinary),
        withheld=sum(state.withheld for state in ordinary),
        lost=sum(passage.id not in rows for passage in found.passages),
        review=answer.needs_review,
        whole=not answer.unchecked,
        seconds=answer.seconds,
    )


def unguarded(query: str, passages: Sequence[Passage]) -> GuardedAnswer:
    """The answer without any guard: all passages as they were retrieved."""
    rows = (GuardedPassage(one, n, n, "keep", annotated=one.text) for n, one in enumerate(passages, start=1))
    return GuardedAnswer(query, False, tuple(rows))


def not_measured(task: Task, setting: Setting, reason: str) -> Outcome:
    """The query could not be searched."""
    row = task.query.row
    return Outcome(
        query=row.id,
        hazard=row.hazard,
        form=row.form,
        answer=row.answer,
        reason=reason,
        **setting.model_dump(),
    )


def _state(rows: dict[str, GuardedPassage], answer: GuardedAnswer, passage: Passage, retrieved: int) -> State:
    row = rows.get(passage.id)
    if row is None:
        return State(retrieved=retrieved)
    via = _via(row, answer)
    return State(
        retrieved=retrieved,
        rank=row.rank,
        action=row.action,
        via=via,
        hazards=tuple(sorted(set(_hazards(row, answer)))) if via else (),
        unchecked=bool(row.unchecked),
        stance=row.stance,
    )


def _via(row: GuardedPassage, answer: GuardedAnswer) -> Via:
    if row.action == "keep":
        return "unchecked" if row.unchecked else ""
    if any(finding.verdict == "conflict" for finding in row.findings):
        return "finding"
    if any(row.passage.id in (pair.first, pair.second) for pair in answer.disagreements):
        return "disagreement"
    return "unchecked" if row.unchecked else "other"


def _hazards(row: GuardedPassage, answer: GuardedAnswer) -> Iterator[str]:
    yield from (finding.hazard for finding in row.findings if finding.verdict == "conflict")
    for pair in answer.disagreements:
        if row.passage.id in (pair.first, pair.second):
            yield from (finding.hazard for finding in pair.findings)
