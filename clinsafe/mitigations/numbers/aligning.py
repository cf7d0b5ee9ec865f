"""How sure it is that two facts speak of the same thing: a common owner, common words, nothing that sets them apart."""

from __future__ import annotations

from typing import Any

from clinsafe.mitigations.align import mass
from clinsafe.mitigations.numbers.convert import factor
from clinsafe.mitigations.numbers.equal import close
from clinsafe.mitigations.numbers.pairs import Pair

SUBJECT_WEIGHT = 0.5
LEAST_CONTEXT = 0.36  # without a common drug or analyte
LEAST_SHARE = 0.5  # the same for shares and for values without an owner: a text of results has many
LEAST_WITH_SUBJECT = 0.08
_STATISTICS = frozenset(["p value", "odds ratio"])  # every study has them
_SPANS = 120.0  # times; spans that differ more are of different things
_COMPLEMENT = 1.0  # per cent points within which two shares add up to 100


def unit_swap(one: Any, other: Any) -> bool:
    """The same number in two units that measure different things (mg and mg/kg, mL and units)."""
    if not one["unit"] or not other["unit"] or one["role"] != other["role"] or one["role"] == "interval":
        return False
    if one["raw"] != other["raw"] and not _same_base(one, other):
        return False
    if not one["forms"] or not other["forms"] or (one["raw"] == (1.0, 1.0) and not one["drug"]):
        return False
    dims = [fact["forms"][0][0].removesuffix("/time") for fact in (one, other)]
    if dims[0] == dims[1] or any(dim.startswith("pair") for dim in dims):
        return False
    if {dim.partition("/")[0] for dim in dims} == {"eq", "mole"}:
        return False
    known = factor(one["pint"], other["pint"]) if one["pint"] and other["pint"] else 0.0
    return not close(one["raw"][0] * known, other["raw"][0], 0.01 * abs(other["raw"][0])) if known else True


def _same_base(one: Any, other: Any) -> bool:
    """1 mg/kg and 1 mg, whatever the unit they are printed in."""
    if not one["forms"] or not other["forms"]:
        return False
    form, second = one["forms"][0], other["forms"][0]
    return (
        form[0].partition("/")[0] == second[0].partition("/")[0]
        and close(form[1], second[1], 0.0)
        and close(form[2], second[2], 0.0)
    )


def clash(one: frozenset[str], other: frozenset[str]) -> bool:
    """Whether two sets of "kind:value" name different values of one kind."""
    if not one or not other:
        return False
    kinds = {name.partition(":")[0]: name for name in other}
    return any(kinds.get(name.partition(":")[0], name) != name for name in one)


def denied(one: Any) -> bool:
    """Whether the words before a value reject it ("rather than 10 mg")."""
    return "denied:rejected" in one["quality_keys"]


def _event(one: Any) -> bool:
    """Whether an interval says how often something happens ("eight migraines a month")."""
    return any(name.startswith("event:") for name in one["quality_keys"])


def _changed(one: frozenset[str]) -> frozenset[str]:
    return frozenset(name for name in one if name.startswith("change:"))


def align(pair: Pair) -> float:
    """How sure it is that two facts speak of the same thing: 0 if not, else up to 1."""
    one: Any = pair.query.normal
    other: Any = pair.passage.normal
    if (one["role"] != other["role"] and not _open_role(one, other)) or _complement(one, other, pair):
        return 0.0
    if denied(one) != denied(other):
        return 0.0
    if clash(one["quality_keys"], other["quality_keys"]) or _changed(one["quality_keys"]) != _changed(
        other["quality_keys"]
    ):
        return 0.0
    if one["role"] == "interval" and _event(one) != _event(other):
        return 0.0  # how often something happens, and how often a drug is taken
    if one["role"] == "span" and _other_span(pair):
        return 0.0
    if one["role"] in ("measure", "span") and (
        one["raw"][0] in other["idle"] or other["raw"][0] in one["idle"]
    ):
        return 0.0  # the other text may say the same further on: "212; it fell to 34"
    if pair.why == "limit" and (one["reversed"] or "") != (other["reversed"] or ""):
        return 0.0
    shared = bool(one["subject_keys"] & other["subject_keys"])
    if one["subject"] and other["subject"] and not shared:
        return 0.0
    context = _context(one, other)
    if shared:
        least = LEAST_SHARE if one["subject"] in _STATISTICS else LEAST_WITH_SUBJECT
        return SUBJECT_WEIGHT + 0.5 * context if context >= least else 0.0
    shares = one["role"] == other["role"] == "measure" and (
        not (one["subject"] or other["subject"]) or bool(pair.forms[0] and pair.forms[0][0] == "%")
    )
    least = LEAST_SHARE if shares else LEAST_CONTEXT
    return 0.5 * context if context >= least else 0.0


def _other_span(pair: Pair) -> bool:
    """Whether two spans are of different sorts: a length and an offset, two starting points, minutes and a year."""
    one: Any = pair.query.normal
    other: Any = pair.passage.normal
    if one["raw"] == other["raw"]:
        return False
    if one["relation"] and other["relation"] and one["relation"] != other["relation"]:
        return True
    starts, others = one["anchor_keys"], other["anchor_keys"]
    if starts and others and starts.isdisjoint(others):
        return True  # 2 days after surgery, 3 days after the fever began
    return _far_apart(pair)  # 30 minutes of ischaemia, 1 year of follow-up


def _far_apart(pair: Pair) -> bool:
    form, second = pair.forms
    if form is None or second is None:
        return False
    small, large = sorted((form[1], second[1]))
    return bool(large > _SPANS * small)


def _open_role(one: Any, other: Any) -> bool:
    """A dose and a measured value are of one sort only while one of them has no owner."""
    return {one["role"], other["role"]} == {"dose", "measure"} and not (one["subject"] and other["subject"])


def _context(one: Any, other: Any) -> float:
    """Share of common words: those near the numbers, and those of the shorter sentence."""
    near = _covered(one["near_keys"], one["near_mass"], other["context_keys"])
    near += _covered(other["near_keys"], other["near_mass"], one["context_keys"])
    shorter, longer = (one, other) if one["context_mass"] <= other["context_mass"] else (other, one)
    return 0.3 * near + 0.4 * _covered(
        shorter["context_keys"], shorter["context_mass"], longer["context_keys"]
    )


def _covered(keys: frozenset[str], whole: float, others: frozenset[str]) -> float:
    return mass(keys & others) / whole if whole else 0.0


def _complement(one: Any, other: Any, pair: Pair) -> bool:
    """20 % died, 80 % survived."""
    form, second = pair.forms
    if (
        not form
        or not second
        or form[0] != "%"
        or second[0] != "%"
        or (one["subject"] and one["subject"] == other["subject"] and one["firm"])
    ):
        return False
    return bool(abs(form[1] + second[1] - 100) <= _COMPLEMENT)
