"""The stack: all filters over one text or one pair. No filter's failure reaches the caller; it becomes *unchecked*."""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

from clinsafe.mitigations.deadline import Deadline, TimedOut
from clinsafe.mitigations.facts import TextFacts
from clinsafe.protocols import Fact, Filter, Finding, Span
from clinsafe.text import Reader, Reading

K = TypeVar("K")
T = TypeVar("T")
_Pairs = dict[str, tuple[tuple[Fact, ...], tuple[Fact, ...]]]
PATIENCE, REST = 3, 60.0  # time-outs in a row after which a filter is left alone, and for how many seconds
log = logging.getLogger(__name__)
log.addHandler(logging.NullHandler())  # a library is silent unless its user asks for a log


@dataclass(frozen=True, slots=True)
class Comparison:
    """What the stack found between two texts.

    Attributes:
        by_filter: filter name -> its findings, conflicts and compatible pairs, in the filters' order.
        unchecked: filter name -> why it could not compare. An unchecked pair is never a safe one.
    """

    by_filter: Mapping[str, tuple[Finding, ...]]
    unchecked: Mapping[str, str] = field(default_factory=dict)

    @property
    def findings(self) -> tuple[Finding, ...]:
        """All findings."""
        return tuple(finding for found in self.by_filter.values() for finding in found)

    @property
    def conflicts(self) -> tuple[Finding, ...]:
        """The findings whose verdict is conflict."""
        return tuple(finding for finding in self.findings if finding.verdict == "conflict")

    @property
    def conflict(self) -> bool:
        """Whether any filter found a conflict."""
        return bool(self.conflicts)

    @property
    def safe(self) -> bool:
        """No conflict, and every filter did look."""
        return not self.conflict and not self.unchecked


class Stack:
    """Filters with one reader.

    Args:
        filters: name -> filter; built-ins are named after their hazard.
        reader: None makes one on the packaged vocabulary.
        seconds: time the filters may take for one text or pair before the one that runs is given up; 0: no limit.
    """

    def __init__(
        self, filters: Mapping[str, Filter], reader: Reader | None = None, seconds: float = 10.0
    ) -> None:
        self.filters = dict(filters)
        self.reader = reader or Reader()
        self.deadline = Deadline(seconds)
        self._late: Counter[str] = Counter()
        self._rests: dict[str, float] = {}

    def read(self, text: str) -> TextFacts:
        """Read one text with every filter, parsing whatever they ask for. What an index stores."""
        return self.facts(self.reader.read(text))

    def facts(self, reading: Reading) -> TextFacts:
        """The facts of a reading."""
        found, unchecked = self._each(
            list(self.filters), lambda name: tuple(self.filters[name].read(reading)), "read"
        )
        if reading.cut:
            unchecked = (
                dict.fromkeys(self.filters, "read: the text is too long, its end was not read") | unchecked
            )
        return TextFacts(found, unchecked)

    def compare(self, query: TextFacts, passage: TextFacts) -> Comparison:
        """All findings between two read texts."""
        return self.compare_all(query, (passage,))[0]

    def compare_all(self, query: TextFacts, passages: Sequence[TextFacts]) -> list[Comparison]:
        """`compare` with each passage in turn; quicker, for all of them are one watched call.

        Each pair still has the whole time limit: where all together take longer, what is left is compared pair by pair.
        """
        met = [self._met(query, passage) for passage in passages]
        done = self._ahead(met) if len(met) > 1 else {}
        compared = []
        for at, (passage, pairs) in enumerate(zip(passages, met, strict=True)):
            ahead = {name: done[at, name] for name in pairs if (at, name) in done}
            act = partial(self._pair, pairs)
            found, unchecked = self._each(list(pairs), act, "compare", ahead)
            reasons = {**self._missing(query, passage), **query.unchecked, **passage.unchecked, **unchecked}
            compared.append(
                Comparison(found, {name: why for name, why in reasons.items() if name in self.filters})
            )
        return compared

    def _met(self, query: TextFacts, passage: TextFacts) -> _Pairs:
        """Filter -> the facts of both sides that it is to compare; those with nothing to compare are left out."""
        pairs: _Pairs = {}
        for name in self.filters:
            asked = query.by_filter.get(name, ())
            near = passage.near(name, query.keys[name]) if asked else ()
            if near:
                pairs[name] = asked, near
        return pairs

    def _missing(self, query: TextFacts, passage: TextFacts) -> dict[str, str]:
        return {
            name: "read: the stored facts were made without this filter"
            for name in self.filters
            for side in (query, passage)
            if name not in side.by_filter and name not in side.unchecked
        }

    def _pair(self, pairs: _Pairs, name: str) -> tuple[Finding, ...]:
        return tuple(self.filters[name].compare(*pairs[name]))

    def _ahead(self, met: Sequence[_Pairs]) -> dict[tuple[int, str], tuple[Finding, ...] | BaseException]:
        """By place and filter what the filters say of these pairs, so far as they come in the time for one."""
        waiting = [(at, name) for at, pairs in enumerate(met) for name in pairs if not self._rest(name)]
        done: dict[tuple[int, str], tuple[Finding, ...] | BaseException] = {}
        try:
            self.deadline.call(_run, waiting, lambda task: self._pair(met[task[0]], task[1]), done)
        except TimedOut:
            waiting.clear()  # for the call goes on: it ends with the filter that it is at
        return dict(done)

    def _rest(self, name: str) -> bool:
        """Whether a filter is left alone for now; else each passage would wait for it again."""
        return time.monotonic() < self._rests.get(name, 0.0)

    def _each(
        self,
        names: Sequence[str],
        act: Callable[[str], tuple[T, ...]],
        what: str,
        ahead: Mapping[str, tuple[T, ...] | BaseException] | None = None,
    ) -> tuple[dict[str, tuple[T, ...]], dict[str, str]]:
        """Let these filters act, one after another in one watched call; one that runs out of time is left out.

        Args:
            ahead: what came of some of them before.
        """
        found: dict[str, tuple[T, ...]] = {}
        unchecked: dict[str, str] = {}
        done = dict(ahead or {})
        for name in names:
            if name not in done and self._rest(name):
                unchecked[name] = (
                    f"{what}: ran out of time {PATIENCE} times in a row, not asked for {REST:.0f} s"
                )
        while True:
            for name, result in list(done.items()):
                if isinstance(result, BaseException):
                    unchecked[name] = _reason(name, what, result)
                else:
                    found[name] = result
                    self._late[name] = 0
            waiting = [name for name in names if name not in found and name not in unchecked]
            if not waiting:
                return found, unchecked
            done = {}
            try:
                self.deadline.call(_run, waiting, act, done)
            except TimedOut as error:
                late = next((name for name in waiting if name not in done), None)
                if late is not None:  # None: the last one came back in this very moment
                    unchecked[late] = _reason(late, what, error)
                    self._late[late] += 1
                    if self._late[late] % PATIENCE == 0:
                        self._rests[late] = time.monotonic() + REST

    def check(self, query: str, passages: Sequence[str]) -> list[Comparison]:
        """Compare a query with passages that were not read before: only sentences that can matter are parsed."""
        reading = self.reader.read(query)
        asked = self.facts(reading)
        keys = frozenset().union(*(sentence.keys for sentence in reading.sentences))
        return self.compare_all(asked, [self.facts(self._narrowed(text, keys)) for text in passages])

    def _narrowed(self, text: str, keys: frozenset[str]) -> Reading:
        reading = self.reader.read(text)
        near: list[Span] = [
            reading.span(sentence.start, sentence.end)
            for sentence in reading.sentences
            if not keys.isdisjoint(sentence.keys)
        ]
        return reading.only(near)


def _run(
    tasks: Sequence[K], act: Callable[[K], tuple[T, ...]], done: dict[K, tuple[T, ...] | BaseException]
) -> None:
    for task in tasks:
        try:
            done[task] = act(task)
        except (Exception, SystemExit) as error:  # noqa: BLE001 - it may raise anything; the pair is unchecked
            done[task] = error


def _reason(name: str, what: str, error: BaseException) -> str:
    # The kind of error alone: its message may quote the text (decision D11).
    reason = "ran out of time" if isinstance(error, TimedOut) else f"failed with {type(error).__name__}"
    log.warning("filter %s could not %s: %s", name, what, reason)
    return f"{what}: {reason}"
