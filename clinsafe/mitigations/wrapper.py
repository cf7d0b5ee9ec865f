"""The guard around a retriever: read, compare, decide, mark, record; nothing is lost and nothing raises.

The work on one query runs in a watched call. What is not done at the deadline is *unchecked*: the passage is shown as
one that nobody looked at, never as one that is fine.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from threading import BoundedSemaphore

from clinsafe.guarded import Confirmation, Disagreement, GuardedAnswer, GuardedPassage, Stance
from clinsafe.mitigations.absence import absence_notes
from clinsafe.mitigations.annotation import annotate
from clinsafe.mitigations.asking import as_claim
from clinsafe.mitigations.confirmation import confirmations
from clinsafe.mitigations.deadline import Deadline, TimedOut
from clinsafe.mitigations.disagreement import disagreements
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.memory import Memory
from clinsafe.mitigations.packs import Packs
from clinsafe.mitigations.policy import Decision, LoadedPolicy, decide
from clinsafe.mitigations.stack import Comparison, Stack
from clinsafe.mitigations.stance import stance
from clinsafe.protocols import Finding, Passage
from clinsafe.text import Reading

SECONDS = 2.0  # for one query
MOST_LEFT = 64  # queries whose work goes on after their deadline; beyond that nothing new is begun
OVERLOADED = "the guard is overloaded"
LATE = "ran out of time"
log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())

Accept = Callable[[object], tuple[list[Passage], list[str]]]
Facts = Callable[[str, str], TextFacts]
Record = Callable[[GuardedAnswer], None]


@dataclass(frozen=True, slots=True)
class Checked:
    """What is known of one passage once the filters have looked."""

    facts: TextFacts
    comparison: Comparison
    stance: Stance | None
    grounds: tuple[Finding, ...] = ()


@dataclass(slots=True)
class _Work:
    """How far the work on one query is. The worker writes, the caller reads when the time is over."""

    query: TextFacts | None = None
    question: bool = False
    done: dict[int, Checked] = field(default_factory=dict)
    advice: dict[int, Comparison] = field(default_factory=dict)
    disagreements: tuple[Disagreement, ...] | None = None
    confirmations: tuple[Confirmation, ...] | None = None
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    over: bool = False

    def alive(self) -> bool:
        return not self.over


class RetrievalGuard:
    """Checks passages for a query; see `clinsafe.guard`, which wraps a whole retriever.

    Args:
        stack: the filters. Its own time limit ends filters that hang.
        policy: what is done with what is found.
        packs: words of the marks, of critical numbers and of absence.
        accept: reads what a retriever returned as passages, with notes on what was wrong with it.
        seconds: for one query; 0: no limit.
        facts: facts that were read before, by passage id and text; a passage without usable ones is read now.
        record: told of every answer; where it fails, the answer says so and asks for a person.
        advice: filters that may raise a flag and nothing else (an NLI model); asked last, and of the query alone: they
            give no stance and no disagreement.
        notes: lines for every answer.
        not_run: what this guard has not got, for every answer.
        remember: texts whose facts are kept in memory.
    """

    def __init__(
        self,
        stack: Stack,
        policy: LoadedPolicy,
        packs: Packs,
        accept: Accept,
        *,
        seconds: float = SECONDS,
        facts: Facts | None = None,
        record: Record | None = None,
        advice: Stack | None = None,
        notes: Sequence[str] = (),
        not_run: Sequence[str] = (),
        remember: int = 1000,
    ) -> None:
        self.stack, self.policy, self.packs, self.accept = stack, policy, packs, accept
        self.deadline = Deadline(seconds)
        self.record, self.advice = record, advice
        self.notes, self.not_run = tuple(notes), tuple(not_run)
        self._stored = facts
        self._memory = Memory(remember)
        self._left = BoundedSemaphore(MOST_LEFT)

    def check(self, query: str, passages: object, /, *, k: int | None = None) -> GuardedAnswer:
        """Guard these passages for this query; see `clinsafe.guarded.Guard`."""
        start = time.perf_counter()
        query = query if isinstance(query, str) else str(query)
        found, notes = self.accept(passages)
        if k is not None and len(found) > k:
            notes.append(
                f"the retriever gave {len(found)} passages for k = {k}; those after rank {k} are left out"
            )
            found = found[:k]
        work = self._watched(query, found)
        answer = self._answer(query, found, work, notes, start)
        return self._recorded(answer)

    # ── the watched part ───────────────────────────────────────────────────────────────────────

    def _watched(self, query: str, found: Sequence[Passage]) -> _Work:
        work = _Work()
        if not self._left.acquire(blocking=False):
            work.over, work.unchecked = True, (OVERLOADED,)
            return work
        with suppress(TimedOut):
            self.deadline.call(self._work, query, tuple(found), work)
        work.over = True
        return work

    def _work(self, query: str, found: Sequence[Passage], work: _Work) -> None:
        try:
            reading = self.stack.reader.read(query)
            claim = as_claim(reading)
            asked = self.stack.facts(claim) if claim is not None else None
            work.question = any(sentence.mood == "question" for sentence in reading.sentences)
            work.query = self.stack.facts(reading)
            for place, passage in enumerate(found):
                if work.over:
                    return
                work.done[place] = self._one(passage, work.query, asked, reading)
            read = [(passage, work.done[place].facts) for place, passage in enumerate(found)]
            about = asked or work.query
            answers = [(one.stance, one.grounds) for _, one in sorted(work.done.items()) if one.stance]
            pairs, left = disagreements(self.stack, about, read, work.alive, answers=answers, reading=reading)
            work.unchecked += left
            work.disagreements = pairs
            work.confirmations = confirmations(read, about, self.packs.critical)
            work.notes = self._absent(reading, work)
            self._advise(query, found, work)
        except Exception as error:  # noqa: BLE001 - a fault of ours must not lose the passages
            log.warning("the guard failed: %s", type(error).__name__)
            work.unchecked += (f"the guard failed with {type(error).__name__}",)
        finally:
            self._left.release()

    def _one(self, passage: Passage, query: TextFacts, asked: TextFacts | None, reading: Reading) -> Checked:
        facts = self._facts(passage)
        comparison = self.stack.compare(query, facts)
        if asked is None:
            return Checked(facts, comparison, None)
        said, grounds = stance(self.stack, asked, facts, query=reading, text=passage.text)
        return Checked(facts, comparison, said, grounds)

    def _facts(self, passage: Passage) -> TextFacts:
        return self._memory(passage.text, lambda text: self._found(passage.id, text))

    def _found(self, name: str, text: str) -> TextFacts:
        stored = self._stored(name, text) if self._stored is not None else None
        return stored if stored is not None and stored.by_filter else self.stack.read(text)

    def _absent(self, reading: Reading, work: _Work) -> tuple[str, ...]:
        stances = [work.done[place].stance for place in sorted(work.done)]
        return absence_notes(reading, stances, self.packs.absence)

    def _advise(self, query: str, found: Sequence[Passage], work: _Work) -> None:
        if self.advice is None:
            return
        asked = self.advice.read(query)
        for place, passage in enumerate(found):
            if work.over:
                return
            work.advice[place] = self.advice.compare(asked, self.advice.read(passage.text))

    # ── the answer ─────────────────────────────────────────────────────────────────────────────

    def _answer(
        self, query: str, found: Sequence[Passage], work: _Work, notes: Sequence[str], start: float
    ) -> GuardedAnswer:
        done = dict(work.done)  # the worker may still be writing
        checks = [
            self._advised(done.get(place) or self._unseen(work), place, work) for place in range(len(found))
        ]
        pairs = work.disagreements or ()
        decisions = [
            self._decide(passage, check, work, pairs, found)
            for passage, check in zip(found, checks, strict=True)
        ]
        rank = {place: number for number, place in enumerate(_order(decisions), start=1)}
        rows = [
            self._guarded(passage, place + 1, rank.get(place, 0), check, decision, pairs)
            for place, (passage, check, decision) in enumerate(zip(found, checks, decisions, strict=True))
        ]
        unchecked = self._unchecked(work, found, done)
        return GuardedAnswer(
            query=query,
            question=work.question,
            passages=tuple(sorted((row for row in rows if row.rank), key=lambda row: row.rank)),
            withheld=tuple(row for row in rows if not row.rank),
            disagreements=pairs,
            confirmations=work.confirmations or (),
            review=_review(found, decisions, unchecked),
            notes=(*notes, *work.notes, *self.notes),
            unchecked=unchecked,
            not_run=self.not_run,
            policy=self.policy.policy.name,
            policy_sha256=self.policy.sha256,
            seconds=time.perf_counter() - start,
        )

    def _unseen(self, work: _Work) -> Checked:
        why = work.unchecked[0] if work.unchecked else LATE
        return Checked(TextFacts({}), Comparison({}, dict.fromkeys(self.stack.filters, why)), None)

    def _advised(self, check: Checked, place: int, work: _Work) -> Checked:
        if self.advice is None:
            return check
        late = Comparison({}, dict.fromkeys(self.advice.filters, LATE))
        advice, own = work.advice.get(place, late), check.comparison
        both = Comparison({**own.by_filter, **advice.by_filter}, {**own.unchecked, **advice.unchecked})
        return replace(check, comparison=both)

    def _decide(
        self,
        passage: Passage,
        check: Checked,
        work: _Work,
        pairs: Sequence[Disagreement],
        found: Sequence[Passage],
    ) -> Decision:
        by_id = {one.id: one for one in found}
        mine = [
            (pair, by_id[pair.second if pair.first == passage.id else pair.first])
            for pair in pairs
            if passage.id in (pair.first, pair.second)
        ]
        return decide(
            self.policy.policy,
            passage,
            check.comparison.conflicts,
            question=work.question,
            unchecked=check.comparison.unchecked,
            disagreements=mine,
        )

    def _guarded(
        self,
        passage: Passage,
        retrieved: int,
        rank: int,
        check: Checked,
        decision: Decision,
        pairs: Sequence[Disagreement],
    ) -> GuardedPassage:
        conflicts, unchecked = check.comparison.conflicts, check.comparison.unchecked
        mine = [pair for pair in pairs if passage.id in (pair.first, pair.second)]
        try:
            marked = annotate(
                passage,
                check.facts,
                conflicts,
                check.stance,
                mine,
                decision.action,
                unchecked,
                self.packs.words,
            )
        except Exception as error:  # noqa: BLE001 - a fault of ours must not lose the passage, nor its flag
            log.warning("the marks failed: %s", type(error).__name__)
            unchecked = {**unchecked, "marks": f"failed with {type(error).__name__}"}
            marked = (
                f"[clinsafe | NOT CHECKED: marks, {type(error).__name__} | {decision.action}]\n{passage.text}"
            )
        return GuardedPassage(
            passage=passage,
            rank=rank,
            retrieved_rank=retrieved,
            action=decision.action,
            reasons=decision.reasons,
            findings=conflicts,
            stance=check.stance,
            confidence=_confidence(check, unchecked),
            unchecked=dict(unchecked),
            annotated=marked,
        )

    def _unchecked(
        self, work: _Work, found: Sequence[Passage], done: Mapping[int, Checked]
    ) -> tuple[str, ...]:
        lines = list(dict.fromkeys(work.unchecked))
        if late := len(found) - len(done):
            lines.append(
                f"{late} of {len(found)} passages: {LATE if OVERLOADED not in lines else OVERLOADED}"
            )
        if len(found) > 1 and work.disagreements is None and not late:
            lines.append(f"disagreements between passages: {LATE}")
        if work.query is not None and work.query.unchecked:
            lines += [f"the query, {name}: {why}" for name, why in sorted(work.query.unchecked.items())]
        return tuple(lines)

    def _recorded(self, answer: GuardedAnswer) -> GuardedAnswer:
        if self.record is None:
            return answer
        try:
            self.record(answer)
        except Exception as error:  # noqa: BLE001 - an answer that is not on record is handed on, and says so
            log.warning("the decision was not logged: %s", type(error).__name__)
            line = f"decision log: not written ({type(error).__name__})"
            return replace(answer, unchecked=(*answer.unchecked, line), review=(*answer.review, line))
        return answer


def _order(decisions: Sequence[Decision]) -> list[int]:
    """Places of the passages shown: those that are not demoted first, each group as it was retrieved."""
    shown = [place for place, decision in enumerate(decisions) if not decision.withheld]
    return sorted(shown, key=lambda place: "demote" in decisions[place].actions)


def _confidence(check: Checked, unchecked: Mapping[str, str]) -> float:
    if unchecked:
        return 0.0
    return max((finding.confidence for finding in check.comparison.conflicts), default=1.0)


def _review(
    found: Sequence[Passage], decisions: Sequence[Decision], unchecked: Sequence[str]
) -> tuple[str, ...]:
    lines = [
        f"passage {passage.id}: {'; '.join(decision.reasons)}"
        for passage, decision in zip(found, decisions, strict=True)
        if decision.actions & {"escalate", "withhold"}
    ]
    return (*lines, *(f"not checked: {line}" for line in unchecked))
