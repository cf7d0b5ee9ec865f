"""Any retriever: what it returned becomes our passages, and a plain callable or object becomes a guarded one.

Nothing here knows a framework. Documents of LangChain, LlamaIndex and Haystack are read by the shape they share.
"""

from __future__ import annotations

import datetime
import hashlib
import inspect
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any
from uuid import UUID

from clinsafe.protocols import Passage

TEXTS = ("text", "page_content", "content")
METADATA = ("metadata", "meta")
IDS = ("id", "_id", "id_")
SOURCES = ("source", "file_path", "file_name", "url", "title")
LISTS = ("passages", "documents", "results")
OWN = ("clinsafe", "clinsafe_answer", "clinsafe_notice")
"""Keys that the framework adapters write; read from a document they would be somebody else's claim to be checked."""


@dataclass(frozen=True, slots=True)
class Retrieved:
    """What a retriever returned, read.

    Attributes:
        passages: in the order given; every id is there once.
        items: what each passage was made of, in the same order.
        notes: what was wrong, one line each; they quote ids, never text.
    """

    passages: tuple[Passage, ...] = ()
    items: tuple[Any, ...] = ()
    notes: tuple[str, ...] = ()


def passages(raw: object) -> tuple[list[Passage], list[str]]:
    """What any retriever returned, as passages; reading them again changes nothing.

    Args:
        raw: an iterable of texts, `Passage`, mappings with ``text``, ``page_content`` or ``content``, (item, score)
            pairs, or documents of LangChain, LlamaIndex or Haystack; a mapping that holds such a list.

    Returns:
        The passages in the order given, and what was wrong, one line each. An item that has no id gets one made from
        its text; an id that comes again is told apart (``7``, ``7~2``). What is no passage is left out and noted.

    Raises:
        Only what iterating over `raw` raises: a retriever that fails half-way must not look like a short answer.
    """
    found = retrieved(raw)
    return list(found.passages), list(found.notes)


def retrieved(raw: object) -> Retrieved:
    """Like `passages`, with the items that they were made of."""
    given, notes = _listed(raw)
    pairs = [(_read(item), item) for item in given]
    read = [(passage, item) for passage, item in pairs if passage is not None]
    if strange := Counter(_kind(item) for passage, item in pairs if passage is None):
        kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(strange.items()))
        notes.append(f"{strange.total()} of {len(given)} items are no passages and were left out: {kinds}")
    found, more = _finite([passage for passage, _ in read])
    found, repeated = _distinct(found)
    return Retrieved(
        tuple(found), tuple(item for _, item in read), (*notes, *more, *repeated, *_unsorted(found))
    )


def _listed(raw: object) -> tuple[list[Any], list[str]]:
    """The items, and what was wrong with the list itself."""
    if raw is None:
        return [], ["the retriever returned None, not a list of passages"]
    if isinstance(raw, Mapping) and _text_of(raw) is None:
        for name in LISTS:
            if isinstance(raw.get(name), list | tuple):
                return list(raw[name]), []
        return [], ["the retriever returned a mapping without passages"]
    if not isinstance(raw, list | tuple) and _read(raw) is not None:
        return [raw], [f"the retriever returned one {_kind(raw)}, not a list of passages"]
    # A table's iterator gives the names of its columns, which would be read as texts.
    if not isinstance(raw, Iterable) or isinstance(raw, bytes | bytearray) or hasattr(raw, "columns"):
        return [], [f"the retriever returned {_kind(raw)}, which is no list of passages"]
    return list(raw), []


def _read(item: object) -> Passage | None:
    """One item as a passage; None where it is none."""
    if isinstance(item, Passage):
        return item
    try:
        return _passage(item)
    except Exception:  # noqa: BLE001 - a property of somebody's class may raise anything; then it is no passage
        return None


def _passage(item: Any) -> Passage | None:
    if isinstance(item, str):
        return Passage(_made(item), item)
    if isinstance(item, list | tuple) and len(item) == 2 and not hasattr(item, "text"):
        inner, score = item
        pair = score is None or (_number(score) is not None and not isinstance(score, str))
        found = _read(inner) if pair and not isinstance(inner, list | tuple) else None
        return found and replace(found, score=_number(score))
    text = _text_of(item)
    if text is None:
        return None
    node = getattr(item, "node", item)
    metadata = _first(node, METADATA)
    metadata = metadata if isinstance(metadata, Mapping) else {}
    name = next(
        (named for place in (node, metadata) for key in IDS if (named := _name(_get(place, key)))), ""
    )
    score = next((s for p in (item, metadata) if (s := _get(p, "score")) is not None), None)
    source = next(
        (s for p in (node, metadata) for key in SOURCES if isinstance(s := _get(p, key), str) and s), ""
    )
    beside = (
        {key: value for key, value in item.items() if _beside(key, value)}
        if isinstance(item, Mapping)
        else {}
    )
    return Passage(name or _made(text), text, _number(score), source, _words({**beside, **metadata}))


def _text_of(item: Any) -> str | None:
    node = getattr(item, "node", item)
    if not isinstance(node, Mapping) and callable(content := getattr(node, "get_content", None)):
        text = content()  # a LlamaIndex node: without its metadata
    else:
        text = next((t for key in TEXTS if isinstance(t := _get(node, key), str)), None)
    if text is None and getattr(node, "blob", None) is not None:
        return ""  # a Haystack document that holds bytes alone: it was retrieved and is not lost
    return text if isinstance(text, str) else None


def _get(place: Any, key: str) -> Any:
    return place.get(key) if isinstance(place, Mapping) else getattr(place, key, None)


def _first(place: Any, keys: tuple[str, ...]) -> Any:
    return next((value for key in keys if (value := _get(place, key)) is not None), None)


def _name(value: Any) -> str:
    return str(value) if isinstance(value, str | int | UUID) and not isinstance(value, bool) else ""


def _made(text: str) -> str:
    return f"unnamed-{hashlib.sha256(text.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}"


def _number(value: Any) -> float | None:
    """A score, which may be NaN or infinite; None where it is no number."""
    if value is None or isinstance(value, bool):
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        return None


def _beside(key: object, value: object) -> bool:
    """Whether a key of a mapping, outside its metadata, says something about the passage: a date, a subject."""
    known = {*TEXTS, *METADATA, *IDS, "score", "source"}
    return key not in known and isinstance(value, str | int | float | datetime.date)


def _words(metadata: Mapping[Any, Any]) -> dict[str, str]:
    """Metadata as text. An unknown value is left out: two unknown subjects are not the same subject."""
    words: dict[str, str] = {}
    for key, value in metadata.items():
        if value is None or key in OWN or (isinstance(value, float) and math.isnan(value)):
            continue
        word = value.isoformat() if isinstance(value, datetime.date) else str(value)
        if word != "NaT":
            words[str(key)] = word
    return words


def _finite(found: list[Passage]) -> tuple[list[Passage], list[str]]:
    wrong = [p.score is not None and not math.isfinite(p.score) for p in found]
    if not any(wrong):
        return found, []
    mended = [replace(p, score=None) if bad else p for p, bad in zip(found, wrong, strict=True)]
    return mended, [f"{sum(wrong)} of {len(found)} scores are NaN or infinite and were left out"]


def _distinct(found: list[Passage]) -> tuple[list[Passage], list[str]]:
    """Every id once: findings, disagreements and the log name passages by it."""
    texts: dict[str, list[str]] = {}
    used = {p.id for p in found}
    named: list[Passage] = []
    for passage in found:
        seen = texts.setdefault(passage.id, [])
        seen.append(passage.text)
        name, number = passage.id, len(seen)
        while number > 1 and (name := f"{passage.id}~{number}") in used:
            number += 1
        used.add(name)
        named.append(passage if name == passage.id else replace(passage, id=name))
    notes = []
    for name, seen in texts.items():
        if len(set(seen)) > 1:
            notes.append(f"{len(seen)} passages of different text have the id {name!r}; they are told apart")
        elif len(seen) > 1:
            notes.append(f"passage {name!r} was retrieved {len(seen)} times")
    return named, notes


def _unsorted(found: list[Passage]) -> list[str]:
    scores = [p.score for p in found if p.score is not None]
    if all(one >= other for one, other in pairwise(scores)):
        return []
    return ["the scores do not fall from first to last; the order is the retriever's"]


def _kind(item: object) -> str:
    return "mapping without text" if isinstance(item, Mapping) else type(item).__name__


def materialised(raw: object) -> object:
    """A generator's items, taken now, so that what it raises reaches the caller."""
    return list(raw) if isinstance(raw, Iterator) else raw


def is_async(function: object) -> bool:
    """Whether calling it gives something to await."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 - an object with an async __call__
    )
