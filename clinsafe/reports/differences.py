"""Does a record say what its scores yield? Everything is derived again and compared."""

from __future__ import annotations

from typing import Any

from clinsafe.reports.arithmetic import own_arithmetic
from clinsafe.reports.assess import assess_all, compare, derive_figures
from clinsafe.reports.changes import changes
from clinsafe.reports.evidence import Evidence, SystemRecord
from clinsafe.stats import figure_to_json

CLOSE = 1e-9


def differences(evidence: Evidence) -> list[str]:
    """Every stored figure or verdict that the per-case scores do not yield, one line each."""
    try:
        return list(_differences(evidence))
    except (KeyError, ValueError, TypeError, AttributeError) as error:
        return [f"the figures cannot be derived from this record ({error})"]


def _differences(evidence: Evidence) -> list[str]:
    faults: list[str] = []
    derived: list[SystemRecord] = []
    for record in evidence.systems:
        found = derive_figures(record, evidence.criteria, evidence.guard)
        plain = {key: figure_to_json(f) for key, f in found.items()}
        faults += [f"{record.label}: {fault}" for fault in _compare(record.figures, plain, "")]
        derived.append(record.model_copy(update={"figures": plain}))
    assessed = assess_all(derived, evidence.criteria, evidence.answers, evidence.guard)
    faults += _compare(evidence.assessments, _plain([a.to_json() for a in assessed]), "assessment")
    faults += _compare(evidence.comparisons, _plain(compare(derived)), "comparison")
    subjects = [record for record in derived if record.role == "under test"]
    faults += _compare(evidence.changes, _plain(changes(evidence.previous, subjects, evidence)), "change")
    checked = own_arithmetic(derived, assessed, evidence.criteria, evidence.published)
    return faults + _compare(evidence.arithmetic, _plain(checked), "arithmetic")


def _plain(value: Any) -> Any:
    """Tuples as lists, as JSON has them."""
    if isinstance(value, dict):
        return {key: _plain(part) for key, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, list | tuple) else value


def _compare(stored: Any, derived: Any, where: str) -> list[str]:
    if isinstance(stored, dict) and isinstance(derived, dict):
        faults = []
        for key in sorted({*stored, *derived}):
            place = f"{where}.{key}" if where else key
            if key not in stored or key not in derived:
                faults.append(f"{place} is {'missing' if key in derived else 'not derived from the scores'}")
            else:
                faults += _compare(stored[key], derived[key], place)
        return faults
    if isinstance(stored, list) and isinstance(derived, list) and len(stored) == len(derived):
        return [
            f
            for i, (s, d) in enumerate(zip(stored, derived, strict=True))
            for f in _compare(s, d, f"{where}[{i}]")
        ]
    if _equal(stored, derived):
        return []
    return [f"{where} says {_short(stored)}, the scores yield {_short(derived)}"]


def _equal(stored: Any, derived: Any) -> bool:
    if isinstance(stored, bool) or isinstance(derived, bool) or not isinstance(derived, int | float):
        return bool(stored == derived)
    return isinstance(stored, int | float) and abs(stored - derived) <= CLOSE


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:60]
