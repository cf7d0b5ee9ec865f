"""Qdrant as an index of vectors: one client from a folder on this machine to a cluster."""

from __future__ import annotations

import os
import uuid
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import urlsplit

from clinsafe.adapters.hnsw import check_vectors, one_vector
from clinsafe.errors import ClinsafeError, MissingDependency, UsageError
from clinsafe.protocols import Vectors

KEY = "QDRANT_API_KEY"
BATCH = 256  # vectors in one request
NAMES = uuid.UUID("5f0a7f6e-6f0b-5c1e-9d3e-2b4a9f3c7d10")  # Qdrant's own ids are UUIDs, made from ours


class QdrantIndex:
    """An `Index` in a Qdrant collection of cosines. Close it: a folder is locked while it is open.

    Args:
        collection: its name; it is made at the first `add`.
        path: folder for the embedded engine, which compares with all vectors and is meant for up to 20,000.
        url: address of a server or cluster, ``https://HOST:6333``. Its key is read from ``QDRANT_API_KEY`` and is
            sent over https, or to this machine, only.
        seconds: to wait for a server.

    Raises:
        UsageError: neither or both of path and url; an address with a password in it; a folder that is in use.
        MissingDependency: without qdrant-client.
    """

    def __init__(
        self, collection: str, *, path: Path | str | None = None, url: str | None = None, seconds: int = 30
    ) -> None:
        if (path is None) == (url is None):
            raise UsageError(
                "Qdrant needs a path (a folder on this machine) or a url (a server), and not both"
            )
        if not collection.strip():
            raise UsageError("Qdrant needs the name of a collection")
        package = library()
        self.collection, self._width = collection, 0
        if url is not None:
            key, port = _key_for(url), urlsplit(url).port or 6333
            with warnings.catch_warnings():  # a key over http goes to this machine alone, see `_key_for`
                warnings.filterwarnings("ignore", "Api key is used with an insecure connection")
                self._client = package.QdrantClient(
                    url=url, port=port, api_key=key, timeout=seconds, check_compatibility=False
                )
            return
        try:
            self._client = package.QdrantClient(path=str(path))
        except (RuntimeError, OSError, ValueError) as error:
            used = "already accessed" in str(error)
            why = "another program has it open; close that, or start a server" if used else "cannot be opened"
            raise UsageError(f"{path}: Qdrant's folder {why}") from error

    def __repr__(self) -> str:
        return f"QdrantIndex({self.collection!r})"

    def __enter__(self) -> QdrantIndex:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __len__(self) -> int:
        with _told():
            if not self._client.collection_exists(self.collection):
                return 0
            return int(self._client.count(self.collection, exact=True).count)

    def add(self, ids: Sequence[str], vectors: Vectors, /) -> None:
        """Add vectors, float32 (len(ids), dim), unit rows; an id that is there already gets its new vector.

        Raises:
            UsageError: lengths that differ, an id twice, a collection of another width. ModelError: bad vectors.
            ClinsafeError: the server does not answer, or refuses.
        """
        rows = check_vectors(vectors)
        if len(ids) != len(rows):
            raise UsageError(f"{len(ids)} ids and {len(rows)} vectors; there must be one for each")
        if len(set(ids)) != len(ids):
            raise UsageError("an id is given twice; ids in an index must differ")
        models = library().models
        with _told():
            self._open(rows.shape[1])
            for at in range(0, len(ids), BATCH):
                points = [
                    models.PointStruct(
                        id=str(uuid.uuid5(NAMES, name)), vector=row.tolist(), payload={"id": name}
                    )
                    for name, row in zip(ids[at : at + BATCH], rows[at : at + BATCH], strict=True)
                ]
                self._client.upsert(self.collection, points, wait=True)

    def search(self, vector: Vectors, k: int, /) -> Sequence[tuple[str, float]]:
        """(id, cosine) of the k nearest, best first, equal ones by id.

        Raises:
            UsageError: k below 1, a bad vector, no such collection. ClinsafeError: the server fails.
        """
        if k < 1:
            raise UsageError(f"k is {k}; at least one passage must be asked for")
        with _told():
            query = one_vector(vector, self._stored_width())
            found = self._client.query_points(
                self.collection, query=query.tolist(), limit=k, with_payload=["id"]
            ).points
        pairs = [(str((point.payload or {}).get("id", point.id)), float(point.score)) for point in found]
        return sorted(pairs, key=lambda pair: (-pair[1], pair[0]))

    def save(self, folder: str, /) -> None:
        """Nothing is left to do: Qdrant writes what it is given. UsageError: always, where a folder is named."""
        raise UsageError(
            f"{folder}: Qdrant keeps its vectors itself, in the path or server it was opened with; use its snapshots"
        )

    def close(self) -> None:
        """Let go of the folder or the connection."""
        self._client.close()

    def _open(self, width: int) -> None:
        models = library().models
        if not self._client.collection_exists(self.collection):
            self._client.create_collection(
                self.collection, models.VectorParams(size=width, distance=models.Distance.COSINE)
            )
        if (there := self._stored_width()) != width:
            raise UsageError(
                f"collection {self.collection!r} holds vectors of {there} numbers, not {width}; choose another"
            )

    def _stored_width(self) -> int:
        if not self._width:
            if not self._client.collection_exists(self.collection):
                raise UsageError(f"Qdrant has no collection {self.collection!r}; add vectors first")
            stored = self._client.get_collection(self.collection).config.params.vectors
            self._width = int(getattr(stored, "size", 0))
            if not self._width:
                raise UsageError(
                    f"collection {self.collection!r} has several kinds of vectors; choose one with a single kind"
                )
        return self._width


def _key_for(url: str) -> str | None:
    """The key from the environment; UsageError, which never repeats the address, where it must not be sent."""
    try:
        parts = urlsplit(url)
        host = parts.hostname
        _ = parts.port
    except ValueError:
        parts, host = urlsplit(""), None
    if parts.scheme not in ("http", "https") or not host:
        raise UsageError("Qdrant's address is not an http or https URL; give https://HOST:6333")
    if "@" in parts.netloc:
        raise UsageError(f"Qdrant's address holds a user or a password; the key is read from {KEY}")
    key = os.environ.get(KEY, "").strip()
    if key and parts.scheme != "https" and host not in ("localhost", "127.0.0.1", "::1"):
        raise UsageError(f"{KEY} would go over http for all to read; give an https address")
    return key or None


@contextmanager
def _told() -> Iterator[None]:
    """What the client raises, as one line that quotes neither address nor key."""
    from qdrant_client.common.client_exceptions import QdrantException
    from qdrant_client.http.exceptions import ApiException, UnexpectedResponse

    try:
        yield
    except UnexpectedResponse as error:
        raise ClinsafeError(
            f"Qdrant answered {error.status_code}; look at its log, and at {KEY} if it is 401 or 403"
        ) from None
    except (ApiException, QdrantException, OSError) as error:
        raise ClinsafeError(
            f"Qdrant does not answer ({type(error).__name__}); is the server up, and the address right?"
        ) from None


def library() -> Any:
    """The package; MissingDependency without it."""
    try:
        import qdrant_client
    except ImportError as error:
        raise MissingDependency(
            "a Qdrant index", "qdrant-client", "pip install 'clinsafe[qdrant]'"
        ) from error
    return qdrant_client
