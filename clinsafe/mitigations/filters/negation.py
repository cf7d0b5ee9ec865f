"""The negation filter: a thing denied here and affirmed there, in whatever words."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.mitigations.polarity.matching import match
from clinsafe.mitigations.polarity.mentions import Signer, read
from clinsafe.mitigations.polarity.rules import Rules, load_rules
from clinsafe.mitigations.polarity.signs import sign
from clinsafe.mitigations.polarity.wording import finding
from clinsafe.protocols import Fact, Finding
from clinsafe.text import Reading

ENGINES = ("own", "negspacy")


class NegationFilter:
    """Finds things that one text denies and the other affirms.

    Args:
        rules: the pack as look-up tables.
        signer: the engine that finds the scope of each cue.
    """

    hazard = "negation"

    def __init__(self, rules: Rules, signer: Signer = sign) -> None:
        self.rules, self.signer = rules, signer

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        """Signed things, and the words said around them."""
        return read(reading, self.rules, self.hazard, self.signer)

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        """Conflicts, and signed things on which both agree."""
        return [finding(pair, sure, self.hazard) for pair, sure in match(query, passage, self.rules.judge)]


def load(content: Content | None = None, engine: str = "own") -> NegationFilter:
    """The filter on the packaged rule pack, or an overlay's.

    Args:
        engine: ``own``, or ``negspacy`` (our terms and spans, its scope).

    Raises:
        UsageError: another engine.
        MissingDependency: negspacy is asked for and not installed.
    """
    if engine not in ENGINES:
        raise UsageError(f"{engine!r} is no negation engine; valid: {', '.join(ENGINES)}")
    rules = load_rules(content)
    if engine == "own":
        return NegationFilter(rules)
    from clinsafe.mitigations.polarity.negspacy import NegspacySigner

    return NegationFilter(rules, NegspacySigner(rules))
