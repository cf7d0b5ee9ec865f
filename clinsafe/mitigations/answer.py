"""One sentence of a passage beside the question: what it answers, and on what grounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from clinsafe.guarded import Stance
from clinsafe.mitigations import plain_words
from clinsafe.mitigations.question import Question, past_condition
from clinsafe.mitigations.topic import Line, bare, covered, gainsays
from clinsafe.protocols import Fact, Finding

Answer = tuple[Stance, tuple[Finding, ...]]
_NAMED = 0.75  # share of what is asked that a sentence must name for an agreement to affirm
_UNLIKELY, _POSSIBLE, _PROBABLE, _ASSERTED = 1, 2, 3, 4  # levels of certainty (decision D4)
_OPEN = (2, -2)  # signs of what is left open


@dataclass(frozen=True, slots=True)
class Answering:
    """One sentence of a passage.

    Attributes:
        question: what is asked.
        line: the sentence.
        facts: filter name -> its facts in this sentence.
        findings: of the comparison of the question with the passage, those in this sentence.
    """

    question: Question
    line: Line
    facts: plain_words.Facts
    findings: Sequence[Finding]

    def answer(self) -> Answer | None:
        """The sentence's answer and its grounds; None where it is silent."""
        if self._supposed():
            return None
        sides = [(self._side(one), one) for one in self.findings if gainsays(one, self._at(one))]
        denials = tuple(finding for side, finding in sides if side == "denies")
        signed = any(finding.hazard == "negation" for finding in denials)
        doubts = tuple(  # "no sign of infection" is unlikely and denied: denied
            finding
            for side, finding in sides
            if side == "uncertain" and not (signed and self._level(finding) == _UNLIKELY)
        )
        if doubts:
            return "uncertain", doubts
        if denials:  # "X may be secondary to Y" gainsays that X causes Y no more surely than it says so
            return ("uncertain" if not signed and self._hedged(_POSSIBLE) else "denies"), denials
        if len(sides) < len(self.findings):
            return None
        return (
            self._affirmed(tuple(finding for side, finding in sides if side == "affirms")) or self._denied()
        )

    def _affirmed(self, agreed: tuple[Finding, ...]) -> Answer | None:
        if not self._met():
            return None
        named = covered(self.question.keys, self.line.keys) >= _NAMED
        if not agreed or not named or self._only_past(agreed) or self._denied_besides(agreed):
            plain = plain_words.states(self.question, self.line, self.facts)
            if plain is None or self._over():
                return None
            agreed = (*agreed, plain)
        return ("uncertain" if self._hedged() else "affirms"), agreed

    def _denied(self) -> Answer | None:
        plain = plain_words.denies(self.question, self.line, self.facts)
        if plain is None:
            return None
        return ("uncertain" if self._hedged() else "denies"), (plain,)

    # ── findings ──────────────────────────────────────────────────────────────────────────────

    def _side(self, finding: Finding) -> Stance:
        if finding.hazard == "hedging":
            return self._certainty(finding)
        if finding.hazard == "negation" and any(
            fact.normal.get("sign") in _OPEN for fact in self._at(finding)
        ):
            return "uncertain" if finding.verdict == "conflict" else "affirms"
        return "denies" if finding.verdict == "conflict" else "affirms"

    def _certainty(self, finding: Finding) -> Stance:
        asked, said = self.question.levels.get(finding.query_span, _ASSERTED), self._level(finding)
        if said is None or said < 0:
            return "silent"
        if asked >= _ASSERTED:
            return "affirms" if said >= _ASSERTED else "uncertain" if said else "denies"
        if finding.verdict == "compatible":
            return "affirms"
        if asked == 0:  # "has it been ruled out"
            return "denies" if said >= _ASSERTED else "uncertain"
        return "affirms" if said > asked else "uncertain" if said else "denies"

    def _level(self, finding: Finding) -> int | None:
        """The certainty that the passage has where the finding lies; None for other findings."""
        if finding.hazard != "hedging":
            return None
        return next((fact.normal["level"] for fact in self._at(finding) if "level" in fact.normal), None)

    def _at(self, finding: Finding) -> list[Fact]:
        return [fact for fact in self.facts.get(finding.hazard, ()) if fact.span == finding.passage_span]

    # ── what bars an affirmation ──────────────────────────────────────────────────────────────

    def _supposed(self) -> bool:
        """ "If she is allergic, …": spoken of, not claimed."""
        if self.question.conditional:
            return False
        negation = self.facts.get("negation", ())
        return any(fact.normal.get("asked") or fact.normal.get("if") for fact in negation) or any(
            fact.normal.get("level") == -1 and self._touches(fact) for fact in self.facts.get("hedging", ())
        )

    def _met(self) -> bool:
        """Whether each order, quantity, number and role that is asked is found here."""
        agreed = [finding for finding in self.findings if finding.verdict == "compatible"]
        met = {(finding.hazard, finding.query_span) for finding in agreed}
        filters = {finding.hazard for finding in agreed}
        full = covered(self.question.keys, self.line.keys) >= plain_words.ALL
        return all(
            (name, fact.span) in met
            or (name == "temporal" and name in filters)
            or (name == "entity_swap" and full and "negation" in filters)
            for name, fact in self.question.decisive
        )

    def _only_past(self, agreed: Sequence[Finding]) -> bool:
        """Whether all that is found here is said of the past, and the question asks for now."""
        if self.question.past:
            return False
        facts = [fact for finding in agreed for fact in self._at(finding)]
        return self._over() or (bool(facts) and all(fact.normal.get("past") for fact in facts))

    def _over(self) -> bool:
        """Whether the temporal filter says that what is asked about is over, and the question asks for now."""
        if self.question.past:
            return False
        return any(past_condition(fact) and self._touches(fact) for fact in self.facts.get("temporal", ()))

    def _denied_besides(self, agreed: Sequence[Finding]) -> bool:
        """ "MRI is *contraindicated*": no sign agrees, and the sentence has a word that turns the meaning round."""
        if any(finding.hazard == "negation" for finding in agreed):
            return False
        return plain_words.turned(self.question, self.line, self.facts)

    def _hedged(self, least: int = _UNLIKELY) -> bool:
        """Whether what is asked about is called possible or probable here, and the question does not ask for that."""
        if any(level < _ASSERTED for level in self.question.levels.values()):
            return False
        return any(
            least <= fact.normal.get("level", -1) <= _PROBABLE and self._touches(fact)
            for fact in self.facts.get("hedging", ())
        )

    def _touches(self, fact: Fact) -> bool:
        normal = fact.normal
        keys = normal.get("core_keys") or normal.get("target_keys") or normal.get("keys") or ()
        return not self.question.keys.isdisjoint(map(bare, keys))
