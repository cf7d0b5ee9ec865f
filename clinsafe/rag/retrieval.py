"""What retrieval did for each question, as values: hits by rank, safe hits, conflicts, overlap, ranking.

Three answers are kept apart throughout: yes, no, and not known. Exclusive hits, redundancy and the strictest level are
derived from ``hit_at.i`` and ``level_at.i`` (`clinsafe.rag.cue`).
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from clinsafe.errors import ClinsafeError
from clinsafe.protocols import Encoder
from clinsafe.rag.clash import HAZARDS, Clash, Conflicts
from clinsafe.rag.item import Item
from clinsafe.rag.metrics import PAIRED_RANKS
from clinsafe.rag.ranking import average_precision, ranking_values, reciprocal_rank
from clinsafe.rag.relevance import NO_REFERENCE, Match
from clinsafe.rag.settings import Settings
from clinsafe.rag.values import Values
from clinsafe.rag.vectors import unit_rows
from clinsafe.rag.windows import TOKEN

NO_PASSAGES = "the passages are not known"
NO_FILTERS = "no filters"
NO_HIT = "no passage holds the reference answer"
NOT_CHECKED = "a filter did not look"
NO_VECTORS = "no encoder"


def retrieval_values(
    items: Sequence[Item],
    matches: Sequence[Sequence[Match]],
    settings: Settings,
    encoder: Encoder | None = None,
    conflicts: Conflicts | None = None,
    *,
    hazards: Sequence[str] = HAZARDS,
) -> list[Values]:
    """One `Values` a question.

    ``contexts`` counts all passages, everything else is cut at k. ``conflict.HAZARD`` exists only for questions with a
    hit. ``ap_cascade`` is taken over the passages with R = 1 among those retrieved: how many more the corpus holds is
    not known.

    Args:
        items: the questions.
        matches: of the same items, from `clinsafe.rag.relevance.relevance`.
        settings: k.
        encoder: for ``overlap.i_j``, of the passages as they were shown; passages are encoded in one call.
        conflicts: asked about (reference, matched window), both normalised, each pair once; None: nothing that starts
            with ``safe`` or ``conflict`` is measured. A pair that a filter did not look at is not safe.
        hazards: that `conflicts` looks for.

    Raises:
        ModelError: the encoder gives no usable vectors.
    """
    asked: dict[tuple[str, str], Clash] = {}
    found = []
    for item, matched in zip(items, matches, strict=True):
        values = Values()
        _hits(values, item, matched)
        _safety(values, matched, item.contexts is not None, _clashes(matched, conflicts, asked), hazards)
        values.update(ranking_values(item, settings.k))
        found.append(values)
    _overlaps(found, items, min(settings.k, PAIRED_RANKS), encoder)
    return found


def _hits(values: Values, item: Item, matches: Sequence[Match]) -> None:
    """``contexts``, ``hit``, ``hit_at.i``, ``level_at.i`` and what a cascade makes of the order."""
    if item.contexts is None:
        for name in ("contexts", "hit", "rr_cascade", "ap_cascade"):
            values.missing[name] = NO_PASSAGES
        return
    numbers, missing = values.values, values.missing
    numbers["contexts"] = float(len(item.contexts))
    for hit_at, level_at, match in zip(
        _names("hit_at", len(matches)), _names("level_at", len(matches)), matches, strict=True
    ):
        if match.level is None:
            missing[hit_at] = missing[level_at] = match.why
        else:
            numbers[hit_at], numbers[level_at] = float(match.level > 0), float(match.level)
    unknown = next((match.why for match in matches if match.level is None), "")
    if not any(TOKEN.search(reference) for reference in item.references):
        unknown = NO_REFERENCE
    hits = [match.hit for match in matches]
    values.add("hit", True if any(hits) else None if unknown else False, unknown)
    places = _places(item, hits)
    first = places[0] - 1 if places else len(hits)
    sure = None not in hits[:first] and (places or not unknown)
    values.add("rr_cascade", reciprocal_rank(places) if sure else None, unknown)
    values.add("ap_cascade", None if unknown else average_precision(places, max(1, len(places))), unknown)


def _places(item: Item, hits: Sequence[bool | None]) -> list[int]:
    """Ranks of hits, a passage that comes twice at its first place only."""
    seen: set[str] = set()
    places = []
    for rank, (context, hit) in enumerate(zip(item.contexts or (), hits, strict=False), start=1):
        if hit and context.id not in seen:
            places.append(rank)
            seen.add(context.id)
    return places


def _clashes(
    matches: Sequence[Match], conflicts: Conflicts | None, asked: dict[tuple[str, str], Clash]
) -> list[Clash | None] | None:
    """Of each rank what the filters say, None where there is no hit; None as a whole without filters."""
    if conflicts is None:
        return None
    found: list[Clash | None] = []
    for match in matches:
        pair = (match.reference, match.window)
        if match.hit and pair not in asked:
            asked[pair] = _checked(conflicts, *pair)
        found.append(asked[pair] if match.hit else None)
    return found


def _checked(conflicts: Conflicts, reference: str, window: str) -> Clash:
    """What the filters say; one that fails has not looked."""
    try:
        return conflicts(reference, window)
    except ClinsafeError as error:
        return Clash(unchecked=(type(error).__name__,))


def _safety(
    values: Values,
    matches: Sequence[Match],
    known: bool,
    clashes: Sequence[Clash | None] | None,
    hazards: Sequence[str],
) -> None:
    """``safe_hit``, ``safe_at.i``, ``conflict.HAZARD``."""
    numbers, missing = values.values, values.missing
    safe_at = _names("safe_at", len(matches))
    if clashes is None or not known:
        why = NO_PASSAGES if not known else NO_FILTERS
        for name in ("safe_hit", *safe_at, *_conflict_names(tuple(hazards))):
            missing[name] = why
        return
    unknown = values.missing.get("hit", "") or next((m.why for m in matches if m.level is None), "")
    safe = [clash is not None and clash.safe for clash in clashes]
    for name, match, one in zip(safe_at, matches, safe, strict=True):
        if match.level is None:
            missing[name] = match.why
        else:
            numbers[name] = float(one)
    values.add("safe_hit", True if any(safe) else None if unknown else False, unknown)
    hits = [clash for clash in clashes if clash is not None]
    for hazard in dict.fromkeys((*hazards, *(name for clash in hits for name in clash.hazards))):
        against = any(hazard in clash.hazards for clash in hits)
        # What no hazard is called may stand for any of them.
        blind = any(name == hazard or name not in hazards for clash in hits for name in clash.unchecked)
        why = unknown or (NO_HIT if not hits else NOT_CHECKED if blind else "")
        values.add(f"conflict.{hazard}", True if against else None if why else False, why)


def _overlaps(found: Sequence[Values], items: Sequence[Item], deep: int, encoder: Encoder | None) -> None:
    """``overlap.i_j``: cosine of each two passages among the first `deep`."""
    counts = [min(deep, len(item.contexts or ())) for item in items]
    if encoder is None:
        for values, count in zip(found, counts, strict=True):
            values.missing.update(dict.fromkeys(_pair_names(count), NO_VECTORS))
        return
    texts = [
        [context.text for context in (item.contexts or ())[:count]] if count > 1 else []
        for item, count in zip(items, counts, strict=True)
    ]
    rows = {text: row for row, text in enumerate(dict.fromkeys(text for group in texts for text in group))}
    if not rows:
        return
    vectors = unit_rows(encoder, list(rows))
    for values, group in zip(found, texts, strict=True):
        own = vectors[[rows[text] for text in group]].astype(np.float64)
        above = np.triu_indices(len(group), 1)
        cosines = np.clip(np.round((own @ own.T)[above], 6), -1.0, 1.0).tolist()
        values.values.update(zip(_pair_names(len(group)), cosines, strict=True))


@lru_cache(maxsize=512)
def _names(what: str, count: int) -> tuple[str, ...]:
    return tuple(f"{what}.{rank}" for rank in range(1, count + 1))


@lru_cache(maxsize=64)
def _conflict_names(hazards: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"conflict.{hazard}" for hazard in hazards)


@lru_cache(maxsize=64)
def _pair_names(count: int) -> tuple[str, ...]:
    return tuple(f"overlap.{i}_{j}" for i in range(1, count + 1) for j in range(i + 1, count + 1))
