"""Values of a row as an item holds them: what is missing is None, what does not fit a `Fault` that quotes nothing."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any

from clinsafe.rag.item import Context, Grade, Task

LONGEST_ID = 200  # characters
SLICES = 16  # of one question
_LONGEST_SLICE = 40  # characters; more is a text
_HIDDEN = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ud800-\udfff]")
_SIGNS = {
    "≥": "ge",
    "≤": "le",
    "<": "lt",
    ">": "gt",
    "=": "eq",
    "%": "pct",
    "+": "plus",
    "&": "and",
    "@": "at",
}
_UNSAFE = re.compile(r"[^\w.\-/]+")
_UNSAFE_NAME = re.compile(r"[^a-z0-9_]+")
# Names of metadata that may tell who is spoken of, or that are different for every row: no group to compare by.
_NO_GROUP = re.compile(
    r"(?:^|_)(?:id|ids|uuid|name|patient|mrn|nhs|ssn|email|mail|phone|address|dob|birth|birthday|date|time|timestamp|"
    r"url|uri|path|file|filename|doi|user|session|title)(?:_|$)"
)
_TASKS: dict[str, Task] = {
    **dict.fromkeys(
        ("mcq", "mcqs", "mc", "multiple choice", "multiple choice question", "multiple choice questions", "multichoice",
         "choice", "yes no", "yes no maybe", "yesno", "boolean", "true false"), "mcq"),
    **dict.fromkeys(
        ("extraction", "information extraction", "info extraction", "ie", "extractive", "list", "list extraction",
         "information retrieval and extraction"), "extraction"),
    **dict.fromkeys(
        ("short answer", "short answers", "short answer question", "short answer questions", "sa", "saq", "factoid",
         "short", "shortanswer", "short answer generation"), "short_answer"),
}  # fmt: skip
TEXTS = ("text", "content", "page_content", "document", "passage", "chunk")
IDS = ("doc_id", "id", "passage_id", "chunk_id", "document_id")


class Fault(ValueError):
    """A field that cannot be read.

    Args:
        field: dotted name.
        why: what would be valid; quotes nothing.
    """

    def __init__(self, field: str, why: str) -> None:
        super().__init__(f"{field}: {why}")
        self.field, self.why = field, why


def missing(value: object) -> bool:
    """Whether a value says that it is not known: null, or the NaN that data frames write."""
    return value is None or (isinstance(value, float) and math.isnan(value))


def text(value: object, field: str) -> str | None:
    """A text; None where it is not known."""
    if missing(value):
        return None
    if not isinstance(value, str):
        raise Fault(field, "must be a text")
    if value.isascii():
        return value
    return value.encode("utf-8", "replace").decode()  # a lone surrogate cannot be written again


def texts(value: object, field: str) -> tuple[str, ...]:
    """One text or a list of them."""
    if missing(value):
        return ()
    if isinstance(value, str):
        return (str(text(value, field)),)
    if not isinstance(value, list):
        raise Fault(field, "must be a text or a list of texts")
    found = [text(one, f"{field}.{n}") for n, one in enumerate(value)]
    return tuple(one for one in found if one is not None)


def identifier(value: object, field: str) -> str | None:
    """An id: a short text or a whole number; None where there is none."""
    if missing(value) or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise Fault(field, "must be a text or a whole number")
    made = str(value).strip()
    if not made or len(made) > LONGEST_ID or _HIDDEN.search(made):
        raise Fault(field, f"must have 1 to {LONGEST_ID} characters and no control characters")
    return made


def score(value: object) -> float | None:
    """A finite number; what is none is not known."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        made = float(value)
    except OverflowError:
        return None
    return made if math.isfinite(made) else None


def contexts(value: object, field: str) -> tuple[tuple[Context, ...], bool] | None:
    """(passages, whether each has an id of its own): a text, a list of texts, or of objects with a text.

    None where they are not known, or where one of them has no text.
    """
    if missing(value):
        return None
    if isinstance(value, str | dict):
        value = [value]
    if not isinstance(value, list):
        raise Fault(field, "must be a text or a list")
    found: list[Context] = []
    known, all_named = True, True
    for n, one in enumerate(value):
        words, name, number = _passage(one, f"{field}.{n}")
        all_named = all_named and name is not None
        known = known and words is not None
        found.append(Context(name or f"rank-{n + 1}", words or "", number))
    return (tuple(found), all_named) if known else None


def _passage(value: object, field: str) -> tuple[str | None, str | None, float | None]:
    if not isinstance(value, dict):
        return text(value, field), None, None
    key = next((key for key in TEXTS if key in value), None)
    if key is None:
        raise Fault(field, f"must hold a text; valid: {', '.join(TEXTS)}")
    name = next((key for key in IDS if not missing(value.get(key))), None)
    return (
        text(value[key], f"{field}.{key}"),
        identifier(value[name], f"{field}.{name}") if name else None,
        score(value.get("score")),
    )


def relevance(value: object, field: str) -> dict[str, float] | None:
    """Passage id -> grade."""
    if missing(value):
        return None
    if not isinstance(value, dict):
        raise Fault(field, "must be an object: passage id -> grade")
    made: dict[str, float] = {}
    for n, (name, grade) in enumerate(value.items()):
        number = score(grade)
        if number is None or number < 0:
            raise Fault(f"{field}.{n}", "must be a number of at least 0")
        made[str(identifier(name, f"{field}.{n}"))] = number
    return made


def identifiers(value: object, field: str) -> tuple[str, ...] | None:
    """Ids, each once."""
    if missing(value):
        return None
    if not isinstance(value, list):
        raise Fault(field, "must be a list of ids")
    made = [identifier(one, f"{field}.{n}") for n, one in enumerate(value)]
    if None in made:
        raise Fault(field, "must be a list of ids, none of them empty")
    return tuple(dict.fromkeys(str(one) for one in made))


def options(value: object, field: str) -> dict[str, str] | None:
    """Letter or word -> text; of a list the letters are A, B, C …"""
    if missing(value) or value in ({}, []):
        return None
    if isinstance(value, list) and len(value) <= 26:
        value = {chr(ord("A") + n): one for n, one in enumerate(value)}
    if not isinstance(value, dict):
        raise Fault(field, "must be an object: letter -> text, or a list of at most 26 texts")
    made: dict[str, str] = {}
    for n, (name, one) in enumerate(value.items()):
        words = text(one, f"{field}.{n}")
        if words is None:
            raise Fault(f"{field}.{n}", "must be a text")
        made[str(identifier(name, f"{field}.{n}"))] = words
    return made


def task(value: object) -> tuple[Task | None, str | None]:
    """(the paper's type of task, or None; what was said where it is none of them)."""
    if not isinstance(value, str):
        return None, None
    known = _TASKS.get(" ".join(re.sub(r"[^a-z]+", " ", value.lower()).split()))
    return (known, None) if known else (None, value)


def slices(*sources: tuple[object, bool]) -> dict[str, str]:
    """Groups by which results are told apart: short words and numbers, in a form that fits a metric key.

    Args:
        sources: (an object, whether its fields were meant as groups). Of metadata a field that may tell who is spoken
            of, or is another for each row, is left out.
    """
    made: dict[str, str] = {}
    for source, meant in sources:
        if not isinstance(source, Mapping):
            continue
        for key, value in source.items():
            name = slice_name(str(key)[:LONGEST_ID])
            word = slice_value(value)
            if not name or not word or name in made or (not meant and _NO_GROUP.search(name)):
                continue
            if len(made) >= SLICES:
                return made
            made[name] = word
    return made


def slice_name(name: str) -> str:
    """Lower case, letters, digits and ``_``; "" where nothing is left."""
    made = _UNSAFE_NAME.sub("_", name.lower()).strip("_")[:_LONGEST_SLICE]
    return made if not made or made[0].isalpha() else f"x_{made}"


def slice_value(value: object) -> str:
    """A short word or number as a metric key takes it, "" for anything else."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        number = score(value)
        return "" if number is None or len(f"{value}") > _LONGEST_SLICE else _UNSAFE.sub("_", f"{value}")
    if not isinstance(value, str) or len(value) > _LONGEST_SLICE or _HIDDEN.search(value):
        return ""
    for sign, word in _SIGNS.items():
        value = value.replace(sign, f"_{word}_")
    return re.sub("_{2,}", "_", _UNSAFE.sub("_", value)).strip("_")


def grades(grader: str, values: Mapping[str, Any], names: Sequence[str]) -> tuple[Grade, ...]:
    """A peer's metrics that came with a row; a NaN is unscored, never 0."""
    made = []
    for name in names:
        if name in values:
            number = score(values[name])
            fits = number is not None and 0 <= number <= 1
            made.append(Grade(grader, name, number if fits else None, "" if fits else "unscored"))
    return tuple(made)
