"""From cases to per-case pair scores. What cannot be scored is *not measured*, and the run goes on.

Encoding is resumable: vectors are stored as they are made, under a key that names model and texts, so
that an interrupted audit continues where it stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import numpy as np

from clinsafe.benchmarks.suite import SENTENCES, Case, Stratum
from clinsafe.errors import ModelError
from clinsafe.protocols import Encoder, PairScorer, Vectors
from clinsafe.stats import NotMeasured

PAIRS = (
    ("a", "b"), ("b", "a"), ("a", "a_same"), ("b", "b_same"), ("a_same", "a"), ("a_same", "b"),
    ("b_same", "b"), ("b_same", "a"), ("a_same", "b_same"),
)  # fmt: skip
"""(query side, passage side) of every score that decision D1's figures need."""

CHUNK = 64
DECIMALS = 8
FAILED = "the model failed"

PairScores: TypeAlias = Mapping[str, float]
Progress: TypeAlias = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class CaseResult:
    """What was measured on one case; everything a figure is derived from, and no text.

    `scores` maps ``"a|b"`` (query|passage) to the similarity, or is the reason why there is none.
    """

    id: str
    hazard: str
    subtype: str
    stratum: Stratum
    factor: float | None
    scores: PairScores | NotMeasured


def score_with_encoder(
    encoder: Encoder, cases: Sequence[Case], *, store: Path | None = None, progress: Progress | None = None
) -> list[CaseResult]:
    """Cosine of every pair in `PAIRS`, per case.

    Args:
        encoder: see the protocol; rows are normalised here again, so a scale error cannot hide.
        cases: the quads.
        store: folder for vectors already made; None keeps nothing.
        progress: called with (texts done, texts in all).

    Raises:
        ModelError: the encoder raises on every text of the first chunk; there is nothing to measure then.
    """
    texts = sorted({getattr(c, s) for c in cases for s in SENTENCES}, key=lambda t: (-len(t), t))
    vectors: dict[str, Vectors | str] = {}
    dimension: int | None = None
    for start in range(0, len(texts), CHUNK):
        chunk = texts[start : start + CHUNK]
        rows = list(_encode_chunk(encoder, chunk, store))
        if start == 0 and all(isinstance(row, str) and row.startswith(FAILED) for row in rows):
            raise ModelError(f"{rows[0]} on every text of the first {len(rows)}: this encoder does not work")
        for text, row in zip(chunk, rows, strict=True):
            if not isinstance(row, str):
                dimension = dimension or len(row)
                if len(row) != dimension:
                    row = f"the model returned {len(row)} dimensions, {dimension} before"
            vectors[text] = row
        if progress:
            progress(min(start + CHUNK, len(texts)), len(texts))
    return [_result(case, _cosines(case, vectors)) for case in cases]


def score_with_scorer(scorer: PairScorer, cases: Sequence[Case]) -> list[CaseResult]:
    """The scorer's value of every pair in `PAIRS`, per case."""
    pairs = [(getattr(c, q), getattr(c, p)) for c in cases for q, p in PAIRS]
    values = np.asarray(scorer.score(pairs), dtype=np.float64).reshape(len(cases), len(PAIRS))
    return [_result(case, _named(row)) for case, row in zip(cases, values, strict=True)]


def _result(case: Case, scores: PairScores | NotMeasured) -> CaseResult:
    return CaseResult(case.id, case.hazard, case.subtype, case.stratum, case.factor, scores)


def _named(values: Sequence[float] | np.ndarray) -> PairScores | NotMeasured:
    if not np.isfinite(values).all():
        return NotMeasured("the scorer returned a value that is not a number")
    return {f"{q}|{p}": round(float(v), DECIMALS) for (q, p), v in zip(PAIRS, values, strict=True)}


def _cosines(case: Case, vectors: Mapping[str, Vectors | str]) -> PairScores | NotMeasured:
    rows = {name: vectors[getattr(case, name)] for name in SENTENCES}
    for name, row in rows.items():
        if isinstance(row, str):
            return NotMeasured(f"{name}: {row}")
    unit = {n: np.asarray(r, np.float64) / np.linalg.norm(np.asarray(r, np.float64)) for n, r in rows.items()}
    return _named([float(np.clip(unit[q] @ unit[p], -1.0, 1.0)) for q, p in PAIRS])


def _encode_chunk(encoder: Encoder, texts: Sequence[str], store: Path | None) -> Iterator[Vectors | str]:
    """One row or one reason per text, from the store if they are there."""
    file = store / f"{_key(encoder, texts)}.npy" if store else None
    rows: Vectors | str | None = _stored(file, len(texts)) if file else None
    if rows is None:
        rows = _attempt(encoder, texts)
        if file and isinstance(rows, np.ndarray):
            _keep(file, rows)
    if isinstance(rows, np.ndarray):
        yield from (_checked(row) for row in rows)
        return
    for text in texts:  # the chunk failed as a whole: find out which text does it
        single = _attempt(encoder, [text])
        yield _checked(single[0]) if isinstance(single, np.ndarray) else single


def _keep(file: Path, rows: Vectors) -> None:
    """Store a chunk whole or not at all. Without room the run goes on, only without this chunk to resume from."""
    temporary = file.with_suffix(".tmp.npy")
    try:
        np.save(temporary, rows, allow_pickle=False)
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)


def _attempt(encoder: Encoder, texts: Sequence[str]) -> Vectors | str:
    try:
        raw = np.asarray(encoder.encode(texts))
        if np.iscomplexobj(raw):
            return "the model returned complex numbers"
        rows = raw.astype(np.float32)
    except Exception as error:  # a third-party model may raise anything; the case is then not measured
        return f"{FAILED} ({type(error).__name__})"
    if rows.ndim != 2 or rows.shape[0] != len(texts) or rows.shape[1] == 0:
        return f"the model returned shape {rows.shape} for {len(texts)} text(s)"
    return rows


def _checked(row: Vectors) -> Vectors | str:
    if not np.isfinite(row).all():
        return "the vector holds a value that is not a finite number"
    if not np.linalg.norm(row) > 0:
        return "the vector is all zeros"
    return row


def _key(encoder: Encoder, texts: Sequence[str]) -> str:
    identity = encoder.identity
    parts = [identity.name, identity.revision, repr(sorted(identity.files.items())),
             repr(sorted(identity.settings.items())), *texts]  # fmt: skip
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _stored(file: Path, rows: int) -> Vectors | None:
    try:
        found = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    usable = found.dtype == np.float32 and found.ndim == 2 and found.shape[0] == rows
    return found if usable else None
