"""From texts to vectors, in chunks. A text that cannot be encoded gets a reason instead of a vector.

Encoding is resumable: vectors are stored as they are made, under a key that names model and texts, so
that an interrupted audit continues where it stopped.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from clinsafe.errors import ClinsafeError, ModelError
from clinsafe.protocols import Encoder, ModelIdentity, QueryEncoder, Vectors

CHUNK = 64
FAILED = "the model failed"

Progress: TypeAlias = Callable[[int, int], None]
Encode: TypeAlias = Callable[[Sequence[str]], Vectors]
Array: TypeAlias = NDArray[Any]
Rows: TypeAlias = Mapping[str, Vectors | str]
"""Text -> its vector, or the reason why it has none."""


def encode_sides(
    encoder: Encoder, texts: Sequence[str], *, store: Path | None = None, progress: Progress | None = None
) -> tuple[Rows, Rows]:
    """The vectors of all texts as queries and as passages; the very same ones unless it is a `QueryEncoder`.

    Raises:
        ModelError: the encoder raises on every text of the first chunk.
    """
    sides: list[tuple[str, Encode]] = [("", encoder.encode)]
    if isinstance(encoder, QueryEncoder):
        sides.append(("-query", encoder.encode_queries))
    made: list[dict[str, Vectors | str]] = []
    for number, (suffix, encode) in enumerate(sides):
        vectors: dict[str, Vectors | str] = {}
        for start in range(0, len(texts), CHUNK):
            chunk = texts[start : start + CHUNK]
            file = store / f"{store_key(encoder.identity, chunk)}{suffix}.npy" if store else None
            rows = list(_encode_chunk(encode, chunk, file))
            if start == 0 and all(isinstance(row, str) and row.startswith(FAILED) for row in rows):
                raise ModelError(
                    f"{rows[0]} on every text of the first {len(rows)}: this encoder does not work"
                )
            vectors |= zip(chunk, rows, strict=True)
            if progress:
                progress(number * len(texts) + min(start + CHUNK, len(texts)), len(sides) * len(texts))
        made.append(vectors)
    _of_one_dimension(made)
    return made[-1], made[0]


def _of_one_dimension(sides: Sequence[dict[str, Vectors | str]]) -> None:
    """The first vector says how long they are; another length is a reason, not a vector."""
    dimension = next((len(row) for rows in sides for row in rows.values() if not isinstance(row, str)), 0)
    for rows in sides:
        for text, row in rows.items():
            if not isinstance(row, str) and len(row) != dimension:
                rows[text] = f"the model returned {len(row)} dimensions, {dimension} before"


def _encode_chunk(encode: Encode, texts: Sequence[str], file: Path | None) -> Iterator[Vectors | str]:
    """One row or one reason per text, from the store if they are there."""
    rows: Vectors | str | None = stored(file, len(texts), 2, np.float32) if file else None
    if rows is None:
        rows = _attempt(encode, texts)
        if file and isinstance(rows, np.ndarray):
            keep(file, rows)
    if isinstance(rows, np.ndarray):
        yield from (_checked(row) for row in rows)
        return
    for text in texts:  # the chunk failed as a whole: find out which text does it
        single = _attempt(encode, [text])
        yield _checked(single[0]) if isinstance(single, np.ndarray) else single


def keep(file: Path, rows: Array) -> None:
    """Store a chunk whole or not at all. Without room the run goes on, only without this chunk to resume from."""
    temporary = file.with_suffix(".tmp.npy")
    try:
        np.save(temporary, rows, allow_pickle=False)
        temporary.replace(file)
    except OSError:
        temporary.unlink(missing_ok=True)


def _attempt(encode: Encode, texts: Sequence[str]) -> Vectors | str:
    try:
        raw = np.asarray(encode(texts))
        if np.iscomplexobj(raw):
            return "the model returned complex numbers"
        rows = raw.astype(np.float32)
    except Exception as error:  # a third-party model may raise anything; the case is then not measured
        # our own errors name no text; a stranger's may, and only its kind is repeated
        why = str(error) if isinstance(error, ClinsafeError) else type(error).__name__
        return f"{FAILED} ({why})"
    if rows.ndim != 2 or rows.shape[0] != len(texts) or rows.shape[1] == 0:
        return f"the model returned shape {rows.shape} where the number of texts was {len(texts)}"
    return rows


def _checked(row: Vectors) -> Vectors | str:
    if not np.isfinite(row).all():
        return "the vector holds a value that is not a finite number"
    if not np.linalg.norm(row) > 0:
        return "the vector is all zeros"
    return row


def stored(file: Path, rows: int, dimensions: int, kind: type[np.generic]) -> Array | None:
    """A chunk that was kept, if it is there and has the shape it should have."""
    try:
        found: Array = np.load(file, allow_pickle=False)
    except (OSError, ValueError, EOFError):
        return None
    return found if found.dtype == kind and found.ndim == dimensions and found.shape[0] == rows else None


def store_key(identity: ModelIdentity, texts: Iterable[str]) -> str:
    """File name of what one model computes from these texts."""
    parts = [identity.name, identity.revision, repr(sorted(identity.files.items())),
             repr(sorted(identity.settings.items())), *texts]  # fmt: skip
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]
