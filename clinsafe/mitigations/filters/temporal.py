"""The temporal filter: order of events, start and stop of treatments, past and current conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clinsafe.content import Content
from clinsafe.mitigations.bounds import unread
from clinsafe.mitigations.order.answer import answered, asks_which
from clinsafe.mitigations.order.compare import compare
from clinsafe.mitigations.order.course import asked_of, overtaken, spoken_of
from clinsafe.mitigations.order.fact import HAZARD
from clinsafe.mitigations.order.prefixed import phased, prefixed
from clinsafe.mitigations.order.relations import relations
from clinsafe.mitigations.order.rules import Rules, load_rules
from clinsafe.mitigations.order.scan import Scan
from clinsafe.mitigations.order.status import NOTHING, Thing, states
from clinsafe.mitigations.order.steps import listed, ranked, steps
from clinsafe.mitigations.order.timeline import timeline
from clinsafe.protocols import Fact, Finding
from clinsafe.text import Reading, Sentence

_DECIDES = frozenset(["done", "undone"])


class TemporalFilter:
    """Reads orders and states and compares them.

    Args:
        rules: the compiled pack.
    """

    hazard = HAZARD

    def __init__(self, rules: Rules) -> None:
        self.rules = rules

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        """All facts of a text, in the order of its sentences."""
        facts: list[Fact] = []
        before: Sentence | None = None
        said = NOTHING
        for sentence in reading.sentences:
            scan = self._scan(sentence)
            own: list[Fact] = []
            if scan is not None:
                own = list(self._sentence(reading, scan, self._earlier(scan, before), said))
            if before is not None and asks_which(before, self.rules):
                own += answered(reading, self._bare(before), scan or self._bare(sentence))
            facts += own
            said = spoken_of(own) if own else asked_of(sentence, self.rules)
            before = sentence
        return tuple(overtaken(facts))

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        """Conflicts and compatible pairs; raises where too much was left unread (see `clinsafe.mitigations.bounds`)."""
        return compare(query, passage)

    def _earlier(self, scan: Scan, before: Sentence | None) -> Scan | None:
        """The sentence before, where a step of this one may follow on it."""
        if (
            before is None
            or before.subject != scan.sentence.subject
            or not any(
                cue.value.kind in ("then", "earlier", "trailed", "before", "after") for cue in scan.cues
            )
        ):
            return None
        return self._bare(before)

    def _bare(self, sentence: Sentence) -> Scan:
        return Scan(sentence, self.rules, self.rules.finder.find(sentence.tokens))

    def _scan(self, sentence: Sentence) -> Scan | None:
        """The sentence made ready, or None where nothing in it can become a fact."""
        found = self.rules.finder.find(sentence.tokens)
        if any(cue.value.kind == "with" for cue in found["order"]) and not any(
            not match.value.isdisjoint(_DECIDES) for match in found["marks"]
        ):
            found["order"] = [cue for cue in found["order"] if cue.value.kind != "with"]
        points, prefixed = self._points(sentence)
        if points or prefixed or found["order"] or found["status"] or found["ranks"] or found["phases"]:
            return Scan(sentence, self.rules, found, points, prefixed)
        return None

    def _points(self, sentence: Sentence) -> tuple[bool, bool]:
        """Whether it may have two points in time, and whether it has a prefix of order."""
        prefixes, joined, pointers = self.rules.prefixes, self.rules.joined, self.rules.pointers
        suffixes = self.rules.suffixes
        points, prefixed = 0, False
        for token in sentence.tokens:
            lower = token.lower
            if lower in pointers or lower[0] in "0123456789":
                points += 1
            elif lower in prefixes or lower in joined or lower in suffixes:
                prefixed = True
        return points > 1, prefixed

    def _sentence(self, reading: Reading, scan: Scan, before: Scan | None, said: Thing) -> Iterator[Fact]:
        if scan.sentence.subject != "patient":
            return  # what a family history tells is a relative's
        if scan.cues:
            yield from relations(reading, scan)
            yield from steps(reading, scan, before)
            yield from listed(reading, scan)
        if scan.prefixed:
            yield from prefixed(reading, scan)
        if scan.phases:
            yield from phased(reading, scan)
        if scan.pointed:
            yield from timeline(reading, scan)
        yield from ranked(reading, scan)
        if scan.found:
            yield from states(reading, scan, said)
        keys = scan.keyset((0, len(scan.tokens))) if scan.cut else None
        if keys:  # what names nothing was no loss
            yield unread(HAZARD, reading.token_span(scan.tokens), keys)


def load(content: Content | None = None) -> TemporalFilter:
    """The filter on the packaged rules, or on those of a content tree.

    Raises:
        ContentError: a fault in ``mitigations/temporal.yaml``, by file, line and field.
    """
    return TemporalFilter(load_rules(content))
