"""Do two texts' facts agree? Each pair of facts gets a measure of agreeing and of disagreeing; the best pair decides.

An order is contradicted where what comes first here comes last there, and the other way round: one shared word on one
side is not enough. A state is contradicted where the same thing goes on here and does not there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from clinsafe.mitigations.align import mass as unremembered
from clinsafe.mitigations.bounds import within_bounds
from clinsafe.mitigations.order.fact import HAZARD
from clinsafe.mitigations.order.words import order_words, status_words
from clinsafe.protocols import Fact, Finding

LEAST = 0.7  # weight of shared keys that each side of an order must have
CORE = 4.0  # how much more a word of the core counts
SHARE = 0.2  # share of the smaller side's weight that must be shared
TARGET_SHARE = 0.5  # share of the smaller target's weight that two states must have in common
WHOLE_SHARE = 0.15  # and of the greater
ALIKE = 0.5  # share of the greater side that must be shared where one text says "during"
SPREAD = 0.4  # shares of the greater sides, added up, where only one side shares its core
HALF = 0.5  # how well, against a contradiction, both states must find their like for it to count for nothing
KIN = 0.25  # what a thing shared as a class weighs less than one shared by name
OFFSET_RATIO = 1.5  # spans of time further apart than this contradict each other

mass = lru_cache(maxsize=8192)(unremembered)
Normal = Mapping[str, Any]


_KEYS = {"early": "early_keys", "late": "late_keys"}
_CORES = {"early": "early_core_keys", "late": "late_core_keys"}
_OFF = {"early": "early_off", "late": "late_off"}
_WELL = {"early": "early_well", "late": "late_well"}


class Shared(NamedTuple):
    """What two sides share: weight of all keys, of the cores alone, and all as a share of the greater side (0-1)."""

    all: float
    core: float
    part: float


NOTHING = Shared(0.0, 0.0, 0.0)


class Pair(NamedTuple):
    """How two facts stand to one another; weights in keys, 0 for not at all."""

    query: int
    passage: int
    agree: float
    disagree: float
    why: str


def compare(query: Sequence[Fact], passage: Sequence[Fact]) -> list[Finding]:
    """Conflicts and compatible pairs, best aligned first.

    Raises:
        TooMuchToCompare: see `clinsafe.mitigations.bounds.within_bounds`.
    """
    return within_bounds(query, passage, _findings)


def _findings(query: Sequence[Fact], passage: Sequence[Fact]) -> list[Finding]:
    pairs = _pairs(query, passage)
    agreed: dict[tuple[str, int], float] = {}
    for pair in pairs:
        for side in (("q", pair.query), ("p", pair.passage)):
            agreed[side] = max(agreed.get(side, 0.0), pair.agree)
    findings: list[Finding] = []
    told: set[int] = set()  # query facts whose agreement is reported
    for pair in sorted(pairs, key=lambda p: (-max(p.agree, p.disagree), p.query, p.passage)):
        one, other = query[pair.query], passage[pair.passage]
        mine, theirs = agreed["q", pair.query], agreed["p", pair.passage]
        best = max(mine, theirs)
        if min(mine, theirs) >= HALF * pair.disagree and one.normal["type"] == "status":
            best = max(best, pair.disagree)  # both texts tell of a stop and of a resumption
        if pair.disagree > max(best, pair.agree):
            findings.append(_finding(one, other, "conflict", pair))
        elif pair.agree > pair.disagree and pair.query not in told:
            told.add(pair.query)
            findings.append(_finding(one, other, "compatible", pair))
    return findings


def _pairs(query: Sequence[Fact], passage: Sequence[Fact]) -> list[Pair]:
    """All pairs of facts that agree or disagree. Most share no key, so that is asked first."""
    others = [(j, fact.normal["keys"]) for j, fact in enumerate(passage)]
    pairs = []
    for i, one in enumerate(query):
        apart = one.normal["keys"].isdisjoint
        for j, keys in others:
            if not apart(keys):
                pair = _pair(i, j, one, passage[j])
                if pair is not None:
                    pairs.append(pair)
    return pairs


def _pair(i: int, j: int, one: Fact, other: Fact) -> Pair | None:
    if one.normal["type"] != other.normal["type"] or one.normal["whose"] != other.normal["whose"]:
        return None
    agree, disagree, why = (_order if one.normal["type"] == "order" else _status)(one, other)
    return Pair(i, j, agree, disagree, why) if agree or disagree else None


def _order(one: Fact, other: Fact) -> tuple[float, float, str]:
    a, b = one.normal, other.normal
    same = _both(_side(a, "early", b, "early"), _side(a, "late", b, "late"))
    turned = _both(_side(a, "early", b, "late"), _side(a, "late", b, "early"))
    if a["relation"] != b["relation"]:
        return 0.0, max(_named_alike(a, b, "early", "late"), _named_alike(a, b, "late", "early")), "relation"
    if a["relation"] == "during":
        return max(same, turned), 0.0, ""
    if same > turned and _apart(a["hours"], b["hours"]) and same >= 1.5:
        return 0.0, same, "offset"
    return (same, 0.0, "") if same > turned else (same, turned, "order")


def _named_alike(a: Normal, b: Normal, first: str, second: str) -> float:
    """How well two orders align where both sides must share their cores and much else; 0 where one does not."""
    early, late = _side(a, "early", b, first), _side(a, "late", b, second)
    enough = early.core and late.core and min(early.part, late.part) >= ALIKE
    return _both(early, late) if enough else 0.0


def _side(a: Normal, one: str, b: Normal, other: str) -> Shared:
    """What two sides share."""
    if a[_OFF[one]] != b[_OFF[other]]:  # stopping a thing is another event than giving it
        return NOTHING
    first, second = a[_KEYS[one]], b[_KEYS[other]]
    common = _shared(first, second)
    if not common:
        return NOTHING
    apart = a[_WELL[one]] != b[_WELL[other]]
    if apart and (a[_WELL[one]] or first - common) and (b[_WELL[other]] or second - common):
        return NOTHING  # "urine clear" and "urine bloodstained" are two findings of one thing
    shared, one_mass, other_mass = mass(common), mass(first), mass(second)
    if shared < LEAST or shared < SHARE * min(one_mass, other_mass):
        return NOTHING
    core = mass(_shared(a[_CORES[one]], b[_CORES[other]]))
    return Shared(shared, core, shared / max(one_mass, other_mass))


def _shared(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Keys in both. A class ("^antibiotic") counts only where one side names it: two antibiotics are not one thing."""
    common = one & other
    if not common:
        return common
    classes = [key for key in common if key[0] == "^"]
    if classes:
        common = common.difference(k for k in classes if ("@" + k[1:] in one) == ("@" + k[1:] in other))
    return common


def _both(first: Shared, second: Shared) -> float:
    """The lesser of two sides, where both share enough and at least one shares its core; else 0."""
    if not first.all or not second.all or not (first.core or second.core):
        return 0.0
    if not (first.core and second.core) and first.part + second.part < SPREAD:
        return 0.0
    return min(s.all + CORE * s.core for s in (first, second)) + 0.01 * (first.all + second.all)


def _apart(one: float, other: float) -> bool:
    return bool(one and other) and max(one, other) / min(one, other) > OFFSET_RATIO


def _status(one: Fact, other: Fact) -> tuple[float, float, str]:
    a, b = one.normal, other.normal
    if (
        a["asked"]
        or b["asked"]
        or (a["weak"] and b["weak"])
        or (a["axis"] == "onset") != (b["axis"] == "onset")
    ):
        return 0.0, 0.0, ""
    if (a["now"] and b["overtaken"]) or (b["now"] and a["overtaken"]):
        return 0.0, 0.0, ""
    if (a["window"] or b["window"]) and (a["on"] == b["on"] or not (a["through"] or b["through"])):
        return 0.0, 0.0, ""  # what is held until a day is given after it; only "without a break" gainsays it
    common = _shared(a["target_keys"], b["target_keys"])
    shared = mass(common)
    one_mass, other_mass = mass(a["target_keys"]), mass(b["target_keys"])
    if shared < max(LEAST, TARGET_SHARE * min(one_mass, other_mass), WHOLE_SHARE * max(one_mass, other_mass)):
        return 0.0, 0.0, ""
    shared -= KIN * sum(key[0] == "^" for key in common)
    if a["on"] == b["on"]:
        apart = (a["later"] and b["at_once"]) or (b["later"] and a["at_once"])
        return (0.0 if apart else shared), 0.0, ""
    return 0.0, shared, "weak" if a["weak"] or b["weak"] else "status"


def _finding(one: Fact, other: Fact, verdict: str, pair: Pair) -> Finding:
    a, b = one.normal, other.normal
    order = a["type"] == "order"
    words = order_words(a, b, verdict, pair.why) if order else status_words(a, b, verdict)
    weight = max(pair.agree, pair.disagree)
    confidence = min(0.95, 0.6 + 0.12 * weight) - (0.2 if pair.why == "weak" else 0.0)
    severity = "note" if verdict == "compatible" else _severity(one, other, pair.why)
    return Finding(
        HAZARD,
        "conflict" if verdict == "conflict" else "compatible",
        "non_support" if pair.why == "weak" else "contradiction",
        severity,  # type: ignore[arg-type]
        round(confidence, 2),
        one.span,
        other.span,
        words.query,
        words.passage,
        other.cue or one.cue,
        other.rule,
        words.sentence,
    )


def _severity(one: Fact, other: Fact, why: str) -> str:
    if why == "weak" or why == "offset":
        return "moderate"
    treatment = one.normal.get("axis") == "treatment" or other.normal.get("axis") == "treatment"
    return "high" if one.normal["type"] == "order" or treatment else "moderate"
