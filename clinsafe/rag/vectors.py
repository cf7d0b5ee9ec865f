"""Vectors of texts that come again and again: passages, windows and references, encoded once.

In memory the last so many; on disk, where a folder is given, all of them, so that a second run encodes nothing. A text
can be guessed back from its vector in part: the file is to be kept like the texts, and only its owner may read it.
"""

from __future__ import annotations

import hashlib
import json
import sqlite3
import threading
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np

from clinsafe.errors import ModelError
from clinsafe.protocols import Encoder, ModelIdentity, Vectors

CAPACITY = 20_000  # rows in memory; 31 MB at 384 dimensions
FILE = "vectors.sqlite"
STORED = 1024  # texts encoded and written at a time, so that a stopped run has what it made
SLACK = 1e-4  # how far from 1 the length of a row may be before it is made 1 again
_ASKED = 500  # keys in one question to SQLite
_SCHEMA = "CREATE TABLE IF NOT EXISTS vectors (key BLOB PRIMARY KEY, row BLOB NOT NULL) WITHOUT ROWID"


def unit_rows(encoder: Encoder, texts: Sequence[str]) -> Vectors:
    """Encode in one call and check: float32 (len(texts), dim), unit rows. Half a character is read as a question mark.

    Raises:
        ModelError: another shape, a value that is not finite, or a row of zeros.
    """
    rows = np.asarray(encoder.encode([_whole(text) for text in texts]), np.float32)
    name = encoder.identity.name
    if rows.ndim != 2 or len(rows) != len(texts) or (len(texts) and not rows.shape[1]):
        raise ModelError(f"{name}: gave vectors of shape {rows.shape} for {len(texts)} texts")
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not np.isfinite(lengths).all() or not (lengths > 0).all():
        bad = int((~np.isfinite(lengths) | (lengths == 0)).sum())
        raise ModelError(
            f"{name}: gave NaN, infinity or only zeros for {bad} of {len(texts)} texts; valid are unit vectors"
        )
    off = np.abs(lengths - 1) > SLACK
    return np.where(off, rows / lengths, rows).astype(np.float32, copy=False) if off.any() else rows


class CachedEncoder:
    """An `Encoder` that encodes no text twice.

    Args:
        encoder: what encodes.
        capacity: rows kept in memory, the longest unused first to go.
        folder: where rows are kept for the next run, by model and text; None: nowhere. A file that cannot be read or
            written is done without.

    Attributes:
        identity: the encoder's.
        encoded: how many texts the encoder was given.
    """

    def __init__(self, encoder: Encoder, capacity: int = CAPACITY, folder: Path | None = None) -> None:
        self.identity = encoder.identity
        self.encoded = 0
        self._encoder, self._capacity = encoder, max(0, capacity)
        self._rows: OrderedDict[bytes, Vectors] = OrderedDict()
        self._disk = VectorFile(folder / FILE, encoder.identity) if folder is not None else None
        self._dim = 0
        self._lock = threading.Lock()

    def encode(self, texts: Sequence[str], /) -> Vectors:
        """float32 (len(texts), dim), unit rows, in the order of the texts.

        Raises:
            ModelError: the encoder gives no usable vectors, or of another length than before.
        """
        keys = [_digest(text) for text in texts]
        with self._lock:
            found = self._known(dict.fromkeys(keys))
            missing = {key: text for key, text in zip(keys, texts, strict=True) if key not in found}
            step = STORED if self._disk is not None else max(1, len(missing))
            for start in range(0, len(missing), step):
                found.update(self._made(dict(list(missing.items())[start : start + step])))
            if not keys:
                return np.zeros((0, self._dim), np.float32)
            return np.stack([found[key] for key in keys])

    def close(self) -> None:
        """Close the file, if there is one; encoding goes on without it."""
        with self._lock:
            if self._disk is not None:
                self._disk.close()
                self._disk = None

    def __len__(self) -> int:
        """Rows in memory."""
        return len(self._rows)

    def _known(self, keys: Mapping[bytes, None]) -> dict[bytes, Vectors]:
        found = {}
        for key in keys:
            row = self._rows.get(key)
            if row is not None:
                self._rows.move_to_end(key)
                found[key] = row
        if self._disk is not None and len(found) < len(keys):
            stored = self._disk.get([key for key in keys if key not in found])
            for key, row in stored.items():
                if len(row) == (self._dim or len(row)):
                    self._dim = len(row)
                    found[key] = row
                    self._remember(key, row)
        return found

    def _made(self, missing: Mapping[bytes, str]) -> dict[bytes, Vectors]:
        rows = unit_rows(self._encoder, list(missing.values()))
        self.encoded += len(rows)
        if rows.shape[1] != (self._dim or rows.shape[1]):
            raise ModelError(
                f"{self.identity.name}: gave {rows.shape[1]} dimensions, {self._dim} before; one model has one number"
            )
        self._dim = rows.shape[1]
        # Copies: a row of the whole array would keep all of it in memory.
        made = {key: row.copy() for key, row in zip(missing, rows, strict=True)}
        for key, row in made.items():
            self._remember(key, row)
        if self._disk is not None:
            self._disk.put(made)
        return made

    def _remember(self, key: bytes, row: Vectors) -> None:
        row.flags.writeable = False
        self._rows[key] = row
        if len(self._rows) > self._capacity:
            self._rows.popitem(last=False)


class VectorFile:
    """Rows on disk, keyed by model and text. Every fault of the file means that nothing is known, never an error."""

    def __init__(self, file: Path, identity: ModelIdentity) -> None:
        self._model = _model(identity)
        self._connection: sqlite3.Connection | None = None
        try:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.touch(mode=0o600, exist_ok=True)
            connection = sqlite3.connect(file, check_same_thread=False, timeout=5)
            self._connection = connection
            connection.execute("PRAGMA journal_mode=WAL")
            connection.execute("PRAGMA synchronous=NORMAL")
            connection.execute(_SCHEMA)
            connection.commit()
        except (OSError, sqlite3.Error):
            self.close()

    def get(self, keys: Sequence[bytes]) -> dict[bytes, Vectors]:
        """The rows that are there and are unit vectors."""
        asked = {self._of(key): key for key in keys}
        names = list(asked)
        found: dict[bytes, Vectors] = {}
        if self._connection is None:
            return found
        try:
            for start in range(0, len(names), _ASKED):
                part = names[start : start + _ASKED]
                marks = ",".join("?" * len(part))
                rows = self._connection.execute(
                    f"SELECT key, row FROM vectors WHERE key IN ({marks})",  # noqa: S608 - question marks only
                    part,
                )
                for name, blob in rows:
                    row = _row(blob)
                    if row is not None:
                        found[asked[name]] = row
        except sqlite3.Error:
            self.close()
        return found

    def put(self, rows: Mapping[bytes, Vectors]) -> None:
        """Keep all of these, or none."""
        if self._connection is None:
            return
        try:
            with self._connection:
                self._connection.executemany(
                    "INSERT OR REPLACE INTO vectors VALUES (?, ?)",
                    [(self._of(key), row.astype("<f4").tobytes()) for key, row in rows.items()],
                )
        except sqlite3.Error:  # no room, or another process writes: the next run encodes these again
            self.close()

    def close(self) -> None:
        """Close the file; from here on nothing is known."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _of(self, key: bytes) -> bytes:
        return hashlib.blake2b(key, digest_size=16, key=self._model).digest()


def _row(blob: object) -> Vectors | None:
    if not isinstance(blob, bytes) or not blob or len(blob) % 4:
        return None
    row = np.frombuffer(blob, "<f4").astype(np.float32)
    return row if abs(float(np.linalg.norm(row)) - 1) <= 10 * SLACK else None


def _whole(text: str) -> str:
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def _digest(text: str) -> bytes:
    return hashlib.blake2b(_whole(text).encode(), digest_size=16).digest()


def _model(identity: ModelIdentity) -> bytes:
    """32 bytes that differ where files, revision or settings do."""
    parts = [
        identity.name,
        identity.revision,
        sorted(identity.files.items()),
        sorted(identity.settings.items()),
    ]
    return hashlib.sha256(json.dumps(parts).encode()).digest()
