"""From what a language model wrote to an answer, or to the fault that it has.

Each step mends the form alone: an object in a fence or in prose, another word for a field, a number written as text.
What a number is is never mended: NaN, infinity, 8 out of nothing, or -0.2 is a fault.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal, NoReturn, TypeAlias

Kind: TypeAlias = Literal[
    "refusal",
    "prose",
    "half JSON",
    "wrong type",
    "not a number",
    "out of range",
    "missing field",
    "contradictory",
]
ALIASES: Mapping[str, tuple[str, ...]] = {
    "score": ("score", "rating", "grade", "value"),
    "verdict": ("verdict", "label", "decision", "judgement", "judgment"),
    "rationale": ("rationale", "reason", "reasoning", "explanation", "justification"),
    "quotes": ("quotes", "quote", "evidence", "citations"),
}
LONGEST = 200_000  # characters looked at; an answer is a few hundred
OBJECTS = 20  # objects looked for in prose
_NUMBER = re.compile(r"(-?\d{1,6}(?:\.\d{1,17})?)\s*(?:(%)|/\s*(\d{1,6}(?:\.\d{1,6})?))?", re.ASCII)
_THOUGHTS = re.compile(r"\A\s*<think>.*?</think>", re.DOTALL)  # what a model thinks aloud is no answer
_NO_NUMBER = re.compile(r"[+-]?(?:nan|inf(?:inity)?)", re.IGNORECASE)
_REFUSES = re.compile(
    r"\b(?:i\s*(?:['’]m|am)\s+(?:sorry|unable|not\s+able)|i\s+(?:cannot|can['’]t|can\s+not|won['’]t|must\s+decline)"
    r"|as\s+an\s+ai\b|i\s+decline)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Answer:
    """A judge's answer in the right form; ``score`` in [0, 1]."""

    score: float
    verdict: str
    rationale: str
    quotes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Fault:
    """Why there is no answer: a kind, and a sentence for the model in our own words."""

    kind: Kind
    detail: str


class _NoNumber(ValueError):
    """NaN or infinity in the JSON."""


class _Twice(ValueError):
    """A field given twice."""


def read(text: str, verdicts: Mapping[str, tuple[float, float]]) -> Answer | Fault:
    """The answer in `text`, by the shortest way that gives one.

    Args:
        text: what the model wrote.
        verdicts: word -> range of scores that it may come with.
    """
    text = _THOUGHTS.sub("", text.strip().lstrip("\ufeff"))[:LONGEST]
    found: list[Answer | Fault] = [_answer(data, verdicts) for data in _objects(text)]
    answers = [one for one in found if isinstance(one, Answer)]
    if answers:
        if len({(one.score, one.verdict) for one in answers}) > 1:
            return Fault("contradictory", "it held several objects that do not agree")
        return answers[0]
    if found:
        return next(one for one in found if isinstance(one, Fault))
    return _without_object(text)


def _without_object(text: str) -> Fault:
    if "{" in text and re.search(r'\{\s*"', text):
        return Fault("half JSON", "it held a JSON object that is cut off or malformed")
    if _REFUSES.search(text[:2000]):
        return Fault("refusal", "it was a refusal")
    if text[:1] in '["-0123456789' and _parsed(text) is not None:
        return Fault("wrong type", "it was JSON but not an object")
    return Fault("prose", "it was not JSON")


def _objects(text: str) -> Iterator[Any]:
    """JSON objects: the whole text, else those in it that are not inside another; a `Fault` stands for a spoilt one."""
    whole = _parsed(text)
    if isinstance(whole, dict | Fault):
        yield whole
        return
    at, seen = text.find("{"), 0
    while at >= 0 and seen < OBJECTS:
        seen += 1
        try:
            data, length = _DECODER.raw_decode(text[at:])
        except _NoNumber:
            yield _not_finite()
            return
        except _Twice:
            yield Fault("contradictory", "it held a field twice")
            return
        except (ValueError, RecursionError):
            at = text.find("{", at + 1)
            continue
        yield data
        at = text.find("{", at + length)


def _parsed(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except _NoNumber:
        return _not_finite()
    except _Twice:
        return Fault("contradictory", "it held a field twice")
    except (ValueError, RecursionError):
        return None


def _not_finite() -> Fault:
    return Fault("not a number", "the score must be a number from 0 to 1")


def _refuse(_name: str) -> NoReturn:
    raise _NoNumber


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len({name for name, _ in pairs}) < len(pairs):
        raise _Twice
    return dict(pairs)


_DECODER = json.JSONDecoder(parse_constant=_refuse, object_pairs_hook=_once)


def _answer(data: Any, verdicts: Mapping[str, tuple[float, float]]) -> Answer | Fault:
    if isinstance(data, Fault):
        return data
    fields: dict[str, Any] = {}
    lower = {str(name).strip().lower().replace(" ", "_"): value for name, value in data.items()}
    for name, aliases in ALIASES.items():
        given = [lower[alias] for alias in aliases if alias in lower]
        if any(one != given[0] for one in given[1:]):
            return Fault("contradictory", f"{name} was given under two names with two values")
        if given:
            fields[name] = given[0]
    if "score" not in fields or "verdict" not in fields:
        return Fault("missing field", f"it had no {'score' if 'score' not in fields else 'verdict'}")
    score = _score(fields["score"])
    if isinstance(score, Fault):
        return score
    return _checked(score, fields, verdicts)


def _checked(
    score: float, fields: Mapping[str, Any], verdicts: Mapping[str, tuple[float, float]]
) -> Answer | Fault:
    verdict, rationale, quotes = fields["verdict"], fields.get("rationale", ""), fields.get("quotes", [])
    words = ", ".join(verdicts)
    if not isinstance(verdict, str) or not isinstance(rationale, str):
        return Fault("wrong type", "verdict and rationale are texts")
    quotes = [quotes] if isinstance(quotes, str) else quotes
    if not isinstance(quotes, list) or not all(isinstance(quote, str) for quote in quotes):
        return Fault("wrong type", "quotes is a list of texts")
    verdict = verdict.strip().strip(".").lower()
    if verdict not in verdicts:
        return Fault("wrong type", f"the verdict must be one of: {words}")
    low, high = verdicts[verdict]
    if not low <= score <= high:
        return Fault("contradictory", f"with the verdict {verdict} the score lies from {low:g} to {high:g}")
    return Answer(score, verdict, rationale.strip(), tuple(quotes))


def _score(value: Any) -> float | Fault:
    """A number, or one as text: ``0.8``, ``8/10``, ``80%``."""
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        return Fault("wrong type", "the score must be a number from 0 to 1")
    if isinstance(value, str):
        if _NO_NUMBER.fullmatch(value.strip()):
            return _not_finite()
        match = _NUMBER.fullmatch(value.strip())
        if match is None:
            return Fault("wrong type", "the score must be a number from 0 to 1")
        number, percent, whole = match.groups()
        if whole is not None and float(whole) <= 0:
            return _not_finite()
        value = float(number) / (100 if percent else float(whole) if whole else 1)
    if not 0 <= value <= 1:  # infinity from 1e999 too
        return Fault("out of range", "the score must be a number from 0 to 1")
    return float(value)
