"""What a decision leaves in the log: ids, offsets, rule ids, codes and keyed hashes. No patient text (decision D11).

Cues, normal forms, sentences, reasons and notes are words of the texts, or quote them: none of them is recorded.
Whatever should be an id or a code and does not look like one is recorded as ``other``.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias, get_args

from clinsafe.errors import UsageError
from clinsafe.guarded import ACTIONS, Disagreement, GuardedAnswer, GuardedPassage, Stance
from clinsafe.protocols import Finding, Severity, Span, Verdict
from clinsafe.version import VERSION

SCHEMA_VERSION = 1
Digest: TypeAlias = Callable[[str], str]
PassageIds: TypeAlias = Literal["plain", "hashed"]
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+-]{0,79}")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_HASHED = "hmac:"
_MADE = "unnamed-"  # an id that the guard made of a text is a plain hash of it, which can be guessed
_WHY = {  # what a reason for "not checked" holds -> its code
    "times in a row": "resting", "out of time": "timeout", "failed with": "error", "too long": "too_long",
    "made without this filter": "not_read", "overloaded": "overloaded",
}  # fmt: skip
_PARTS = (  # how a line on what was not checked at all begins -> its code
    (re.compile(r"\d+ of \d+ passages:"), "passages"),
    (re.compile(r"disagreements"), "disagreements"),
    (re.compile(r"the query,"), "query"),
    (re.compile(r"the guard "), "guard"),
)


def stamp(now: datetime) -> str:
    """UTC to the millisecond, ``2026-01-31T12:00:00.000Z``; a time without a zone counts as local."""
    return now.astimezone(UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def record_of(
    answer: GuardedAnswer, *, digest: Digest, now: datetime, passage_id: PassageIds = "plain"
) -> dict[str, Any]:
    """The record of one answer.

    Args:
        answer: the guard's.
        digest: keyed hash of a text, see `clinsafe.oversight.keys.LogKey.digest`.
        now: when it was given.
        passage_id: ``hashed`` where ids identify a patient. An id that holds a blank or is longer than 128 letters is
            hashed in any case: it may be a text.

    Raises:
        UsageError: `passage_id` is neither of the two.
    """
    if passage_id not in get_args(PassageIds):
        raise UsageError(f"passage ids are recorded {' or '.join(get_args(PassageIds))}, not {passage_id!r}")

    def named(id_: str) -> str:
        own = 0 < len(id_) <= 128 and not id_.startswith((_HASHED, _MADE)) and _no_blank(id_)
        if passage_id == "plain" and own:
            return id_
        return _HASHED + digest(id_)

    return {
        "schema_version": SCHEMA_VERSION,
        "event": "decision",
        "time": stamp(now),
        "tool": VERSION,
        "policy": {
            "name": _code(answer.policy),
            "sha256": answer.policy_sha256 if _SHA256.fullmatch(answer.policy_sha256) else "",
        },
        "query": {"hmac": digest(answer.query), "length": len(answer.query), "question": bool(answer.question)},
        "passages": [_passage(one, named) for one in answer.passages],
        "withheld": [_passage(one, named) for one in answer.withheld],
        "disagreements": [_disagreement(one, named) for one in answer.disagreements],
        "confirmations": [
            {"passage": named(one.passage), "span": [int(n) for n in one.span]} for one in answer.confirmations
        ],
        "review": _review(answer),
        "absence_not_verified": any("absence not verified" in note.lower() for note in answer.notes),
        "notes": len(answer.notes),
        "unchecked": [_part_unchecked(line) for line in answer.unchecked],
        "not_run": ["nli" if "NLI" in line else "other" for line in answer.not_run],
        "milliseconds": _number(1000 * answer.seconds, 1),
    }  # fmt: skip


def _passage(one: GuardedPassage, named: Callable[[str], str]) -> dict[str, Any]:
    return {
        "id": named(one.passage.id),
        "retrieved": int(one.retrieved_rank),
        "shown": int(one.rank),
        "action": _one_of(one.action, ACTIONS),
        "stance": "" if one.stance is None else _one_of(one.stance, get_args(Stance)),
        "confidence": _number(one.confidence, 4),
        "findings": [_finding(finding) for finding in one.findings],
        "unchecked": [_unchecked(name, why) for name, why in one.unchecked.items()],
    }


def _finding(one: Finding) -> dict[str, Any]:
    return {
        "hazard": _code(one.hazard),
        "rule": _code(one.rule),
        "verdict": _one_of(one.verdict, get_args(Verdict)),
        "kind": _one_of(one.kind, ("contradiction", "non_support")),
        "severity": _one_of(one.severity, get_args(Severity)),
        "confidence": _number(one.confidence, 4),
        "query_span": _span(one.query_span),
        "passage_span": _span(one.passage_span),
    }


def _disagreement(one: Disagreement, named: Callable[[str], str]) -> dict[str, Any]:
    return {
        "first": named(one.first),
        "second": named(one.second),
        "superseding": named(one.superseding) if one.superseding else "",
        "findings": [_finding(finding) for finding in one.findings],
    }


def _review(answer: GuardedAnswer) -> dict[str, Any]:
    """Why a person has to look, as codes read off the answer itself: the lines may quote the texts."""
    everything = (*answer.passages, *answer.withheld)
    codes = {
        "escalated": any(one.action == "escalate" for one in everything),
        "withheld": bool(answer.withheld),
        "disagreement": bool(answer.disagreements),
        "unchecked": bool(answer.unchecked) or any(one.unchecked for one in everything),
        "confirmation": bool(answer.confirmations),
    }
    found = [code for code, holds in codes.items() if holds] or ["other"]
    return {
        "needed": answer.needs_review,
        "codes": found if answer.needs_review else [],
        "lines": len(answer.review),
    }


def _unchecked(name: str, why: str) -> dict[str, str]:
    reason = next((code for words, code in _WHY.items() if words in why), "other")
    return {"what": _code(name.strip()), "why": reason}


def _part_unchecked(line: str) -> dict[str, str]:
    return _unchecked(next((code for begin, code in _PARTS if begin.match(line)), "other"), line)


def _code(text: str) -> str:
    return text if not text or _CODE.fullmatch(text) else "other"


def _one_of(value: str, valid: Iterable[str]) -> str:
    return value if value in tuple(valid) else "other"


def _span(span: Span) -> list[int]:
    return [int(span.start), int(span.end)]


def _number(value: float, digits: int) -> float | None:
    return round(float(value), digits) if math.isfinite(value) else None


def _no_blank(text: str) -> bool:
    return text.isprintable() and " " not in text
