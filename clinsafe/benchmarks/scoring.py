"""From cases to per-case pair scores. What cannot be scored is *not measured*, and the run goes on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from clinsafe.benchmarks.suite import SENTENCES, Case, Stratum
from clinsafe.benchmarks.vectors import CHUNK, FAILED, Progress, encode_sides, keep, store_key, stored
from clinsafe.errors import ModelError
from clinsafe.protocols import Encoder, PairScorer, TextPair, Vectors
from clinsafe.stats import NotMeasured

PAIRS = (
    ("a", "b"), ("b", "a"), ("a", "a_same"), ("b", "b_same"), ("a_same", "a"), ("a_same", "b"),
    ("b_same", "b"), ("b_same", "a"), ("a_same", "b_same"),
)  # fmt: skip
"""(query side, passage side) of every score that decision D1's figures need."""

UNRELATED = "a|other"
"""Name of one more score: a against the a of a case of another kind. It shows what a model gives to texts that have
nothing in common, without which no threshold means the same thing for two models."""

DECIMALS = 12
OUTSIDE = "the scorer returned a value outside -1 to 1; apply an activation (a sigmoid, a share) and name it"

PairScores: TypeAlias = Mapping[str, float]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What was measured on one case; everything a figure is derived from, and no text.

    `scores` maps ``"a|b"`` (query|passage) to the similarity, or is the reason why there is none.
    `split` is the suite's: limits are calibrated on ``dev`` and tried on ``test``.
    """

    id: str
    hazard: str
    subtype: str
    stratum: Stratum
    factor: float | None
    scores: PairScores | NotMeasured
    split: Literal["dev", "test"] = "test"


def score(
    system: Encoder | PairScorer,
    cases: Sequence[Case],
    *,
    store: Path | None = None,
    progress: Progress | None = None,
) -> list[CaseResult]:
    """Every pair in `PAIRS` and the unrelated one, per case, by whatever the system is."""
    if isinstance(system, Encoder):
        return score_with_encoder(system, cases, store=store, progress=progress)
    return score_with_scorer(system, cases, store=store, progress=progress)


def score_with_encoder(
    encoder: Encoder, cases: Sequence[Case], *, store: Path | None = None, progress: Progress | None = None
) -> list[CaseResult]:
    """Cosine of every pair, per case.

    Args:
        encoder: see the protocol; rows are normalised here again, so a scale error cannot hide.
        cases: the quads.
        store: folder for vectors already made; None keeps nothing.
        progress: called with (texts done, texts in all).

    Raises:
        ModelError: the encoder raises on every text of the first chunk; there is nothing to measure then.
    """
    texts = sorted({getattr(c, s) for c in cases for s in SENTENCES}, key=lambda t: (-len(t), t))
    queries, passages = encode_sides(encoder, texts, store=store, progress=progress)
    others = partners(cases)
    return [_result(case, _cosines(case, others.get(case.id), queries, passages)) for case in cases]


def score_with_scorer(
    scorer: PairScorer, cases: Sequence[Case], *, store: Path | None = None, progress: Progress | None = None
) -> list[CaseResult]:
    """The scorer's value of every pair, per case.

    Raises:
        ModelError: the scorer fails on every case of the first chunk.
    """
    others, results = partners(cases), []
    for start in range(0, len(cases), CHUNK):
        chunk = [(case, _texts(case, others.get(case.id))) for case in cases[start : start + CHUNK]]
        rows = _score_chunk(scorer, [list(named.values()) for _, named in chunk], store)
        if start == 0 and all(row is None for row in rows):
            raise ModelError(f"{FAILED} on every case of the first {len(chunk)}: this scorer does not work")
        for (case, named), row in zip(chunk, rows, strict=True):
            results.append(_result(case, NotMeasured(FAILED) if row is None else _named(list(named), row)))
        if start == 0 and all(r.scores == NotMeasured(OUTSIDE) for r in results):
            raise ModelError(OUTSIDE)
        if progress:
            progress(min(start + CHUNK, len(cases)), len(cases))
    return results


def _score_chunk(
    scorer: PairScorer, pairs: Sequence[list[TextPair]], store: Path | None
) -> Sequence[np.ndarray | None]:
    """One row of values per case, from the store if they are there; None where the scorer failed."""
    flat = [pair for case in pairs for pair in case]
    name = store_key(scorer.identity, (text for pair in flat for text in pair))
    file = store / f"{name}-pairs.npy" if store else None
    values = stored(file, len(flat), 1, np.float64) if file else None
    if values is None:
        values = _attempt_pairs(scorer, flat)
        if file and values is not None:
            keep(file, values)
    if values is None:  # the chunk failed as a whole: find out which case does it
        return [_attempt_pairs(scorer, case) for case in pairs]
    return np.split(values, np.cumsum([len(case) for case in pairs])[:-1])


def unmeasured(cases: Sequence[Case], why: str) -> list[CaseResult]:
    """Every case as not measured, for one reason."""
    return [_result(case, NotMeasured(why)) for case in cases]


def partners(cases: Sequence[Case]) -> dict[str, Case]:
    """Case id -> a case of another subject: half the list on, of another hazard and specialty if there is one.

    The same whatever the order of the cases, so that anybody can find it again.
    """
    found: dict[str, Case] = {}
    cases = sorted(cases, key=lambda case: case.id)
    kinds = [(case.hazard, case.specialty) for case in cases]
    there = set(kinds)
    for place, case in enumerate(cases):
        hazard, specialty = kinds[place]
        # one after another and no further than needed: thousands of cases would else be listed for each of them
        others = ((place + len(cases) // 2 + step) % len(cases) for step in range(len(cases)))
        others = (other for other in others if cases[other].id != case.id)
        first = next(others, None)
        if first is None:
            continue
        strange = None
        if any(h != hazard and s != specialty for h, s in there):
            strange = next(
                (o for o in chain([first], others) if kinds[o][0] != hazard and kinds[o][1] != specialty),
                None,
            )
        found[case.id] = cases[first if strange is None else strange]
    return found


def _texts(case: Case, other: Case | None) -> dict[str, TextPair]:
    pairs = {f"{q}|{p}": (getattr(case, q), getattr(case, p)) for q, p in PAIRS}
    return pairs if other is None else pairs | {UNRELATED: (case.a, other.a)}


def _attempt_pairs(scorer: PairScorer, pairs: Sequence[TextPair]) -> np.ndarray | None:
    try:
        values = np.asarray(scorer.score(pairs), dtype=np.float64)
    except Exception:  # a third-party model may raise anything; the case is then not measured
        return None
    return values if values.shape == (len(pairs),) else None


def _result(case: Case, scores: PairScores | NotMeasured) -> CaseResult:
    return CaseResult(case.id, case.hazard, case.subtype, case.stratum, case.factor, scores, case.split)


def _named(names: Sequence[str], values: Sequence[float] | np.ndarray) -> PairScores | NotMeasured:
    if not np.isfinite(values).all():
        return NotMeasured("the scorer returned a value that is not a number")
    if np.size(values) and float(np.abs(values).max()) > 1 + 1e-6:
        return NotMeasured(OUTSIDE)
    return {name: round(float(v), DECIMALS) for name, v in zip(names, values, strict=True)}


def _cosines(
    case: Case,
    other: Case | None,
    queries: Mapping[str, Vectors | str],
    passages: Mapping[str, Vectors | str],
) -> PairScores | NotMeasured:
    values: dict[str, float] = {}
    for name, (query, passage) in _texts(case, other).items():
        for side, row in zip(name.split("|"), (queries[query], passages[passage]), strict=True):
            if (
                isinstance(row, str) and name != UNRELATED
            ):  # another case's text must not cost this case its scores
                return NotMeasured(f"{side}: {row}")
        q, p = queries[query], passages[passage]
        if not isinstance(q, str) and not isinstance(p, str):
            values[name] = float(np.clip(_unit(q) @ _unit(p), -1.0, 1.0))
    return _named(list(values), list(values.values()))


def _unit(row: Vectors) -> np.ndarray:
    wide = np.asarray(row, dtype=np.float64)
    return np.asarray(wide / np.linalg.norm(wide))
