"""Two texts' facts side by side: which of them exchange, turn round or deny each other's roles."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from math import ceil

from clinsafe.mitigations.bounds import TooMuchToCompare
from clinsafe.mitigations.index import Effort, Index
from clinsafe.mitigations.roles import wording
from clinsafe.mitigations.roles.compare_edges import edges, effects
from clinsafe.mitigations.roles.compare_parts import pairs
from clinsafe.mitigations.roles.compare_stands import stands
from clinsafe.mitigations.roles.compare_targets import targets
from clinsafe.mitigations.roles.lexicon import Lexicon
from clinsafe.mitigations.roles.order import ALIKE, alike, exchange
from clinsafe.protocols import Fact, Finding

_EXCHANGE = 50  # pairs that looking at the order of two sentences counts for
_Forms = Mapping[str, Sequence[Fact]]


def compare(query: Sequence[Fact], passage: Sequence[Fact], lexicon: Lexicon) -> list[Finding]:
    """All findings of one pair of texts.

    Raises:
        TooMuchToCompare: the texts hold more statements of the same things than are compared, and what was compared
            does not conflict. A conflict stands whatever else they say.
    """
    asked, told = _by_form(query), _by_form(passage)
    steps = (
        edges(asked.get("edge", ()), told.get("edge", ()), lexicon),
        effects(asked.get("edge", ()), told.get("edge", ()), lexicon),
        targets(asked, told, lexicon),
        stands(asked.get("stand", ()), told.get("stand", ()), lexicon),
        pairs(asked.get("pair", ()), told.get("pair", ())),
        _orders(asked.get("order", ()), told.get("order", ()), lexicon),
        _kin(asked, told, False),
        _kin(told, asked, True),
    )
    found: list[Finding] = []
    left: TooMuchToCompare | None = None
    for step in steps:
        try:
            found.extend(step)  # what comes before the error is kept
        except TooMuchToCompare as error:
            left = error
    if left is not None and not any(finding.verdict == "conflict" for finding in found):
        raise left
    return found


def _by_form(facts: Iterable[Fact]) -> dict[str, list[Fact]]:
    forms: dict[str, list[Fact]] = {}
    for fact in facts:
        forms.setdefault(fact.normal["form"], []).append(fact)
    return forms


# ── order ──────────────────────────────────────────────────────────────────────────────────────


def _orders(query: Sequence[Fact], passage: Sequence[Fact], lexicon: Lexicon) -> Iterator[Finding]:
    """Sentences that say the same with two things exchanged; what is asked is no claim."""
    said = {fact.normal["words"] for fact in passage}
    effort, index = Effort(), Index([fact for fact in passage if not fact.normal["asked"]])
    for fact in query:
        normal = fact.normal
        if normal["asked"] or normal["words"] in said:
            continue
        keys = normal["keys"]
        for other in index.at(index.sharing("keys", keys, ceil(ALIKE * len(keys))), effort):
            if not alike(keys, other.normal["keys"]):
                continue
            effort.spend(_EXCHANGE)
            telling = frozenset(normal["telling"]) | frozenset(other.normal["telling"])
            swap = exchange(normal["words"], other.normal["words"], lexicon.symmetric, telling)
            if swap is not None:
                yield wording.order(fact, other, swap)


# ── people ─────────────────────────────────────────────────────────────────────────────────────


def _kin(mine: _Forms, theirs: _Forms, turned: bool) -> Iterator[Finding]:
    """A disease that `mine` gives to the patient and `theirs` only to a relative; what is asked is no claim."""
    if "relative" not in theirs or "own" not in mine:
        return
    settled = frozenset().union(
        *(fact.normal["keys"] for fact in (*theirs.get("own", ()), *mine.get("relative", ())))
    )
    effort, index = Effort(), Index([f for f in theirs["relative"] if not f.normal["asked"]])
    for fact in mine["own"]:
        if not fact.normal["claims"] or fact.normal["asked"]:
            continue
        for other in index.at(index.having("keys", fact.normal["keys"]), effort):
            if settled.isdisjoint(fact.normal["keys"] & other.normal["keys"]):
                yield wording.kin(fact, other, turned)
