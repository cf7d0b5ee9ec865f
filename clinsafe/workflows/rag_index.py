"""The index of a corpus for the reference pipeline: built once, kept in a folder, searched both ways.

A folder holds one index for each corpus, cut, tokenizer and model, named by the hash of these: ``index-<16 hex>``::

    chunks.sqlite   texts, offsets and fields, read as they are asked for
    vectors.npy     a unit row for each chunk, mapped into memory
    graph.usearch   the HNSW graph, from 10,000 chunks on
    order.npy       the place of each chunk by id: what ties are broken by
    bm25/           BM25's arrays
    manifest.json   what it is made of, and the SHA-256 of all of these; written last, so an index without is unfinished
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, TypeAlias

import numpy as np
from pydantic import ValidationError

from clinsafe.adapters import bm25_index, hnsw
from clinsafe.content import Record
from clinsafe.corpus import Document
from clinsafe.errors import ClinsafeError, MissingDependency, ModelError, UsageError
from clinsafe.protocols import Encoder, Index, Vectors
from clinsafe.rag.chunks import (
    OVERLAP,
    TOKENS,
    Chunk,
    ChunkStore,
    HubTokenizer,
    Tokenizer,
    WordPieces,
    write_chunks,
)
from clinsafe.rag.chunks import chunks as cut
from clinsafe.rag.fusion import SearchIndex

PATIENCE = 1.0  # seconds to wait for another build to end
PART = 1024  # chunks encoded before they are written; what an interrupted build loses at most
CHUNKS, VECTORS, GRAPH, ORDER, WORDS, MANIFEST = (
    "chunks.sqlite", "vectors.npy", "graph.usearch", "order.npy", "bm25", "manifest.json",
)  # fmt: skip
ANEW = "delete the folder to have it built anew"

Documents: TypeAlias = Sequence[Document] | Callable[[], Iterable[Document]]
Progress: TypeAlias = Callable[[str, int, int], None]
"""Stage (``chunks``, ``vectors``, ``graph``, ``words``), how many are done, of how many."""


class Manifest(Record):
    """What an index is made of.

    Attributes:
        version: SHA-256 of `made_of`; the name of the index in a trace.
        made_of: corpus, cut, tokenizer, model and kinds of index.
        documents, empty, chunks: of the corpus; `empty` ones have no text and no chunk.
        files: name -> SHA-256.
    """

    schema_version: Literal[1] = 1
    version: str
    made_of: Mapping[str, Any]
    documents: int
    empty: int
    chunks: int
    files: Mapping[str, str]


# ── building ───────────────────────────────────────────────────────────────────────────────────


def build_index(
    documents: Documents, encoder: Encoder, folder: Path | str, *, tokens: int = TOKENS, overlap: int = OVERLAP,
    tokenizer: Tokenizer | None = None, exact: bool | None = None, on_progress: Progress | None = None,
) -> SearchIndex:  # fmt: skip
    """The index of a corpus: the one that is there where nothing changed (``index.reused``), else a new one.

    A build that was interrupted goes on where it was.

    Args:
        documents: a list, or a function that opens the corpus; it is gone through twice.
        folder: holds all indexes of this user; made where it is missing.
        tokens, overlap: of the chunks, see `clinsafe.rag.chunks`.
        tokenizer: None takes the model's own where it can be had, else `WordPieces`; the manifest says which.
        exact: see `clinsafe.adapters.hnsw.HnswIndex`.
        on_progress: told what is done.

    Raises:
        UsageError: no text, an id twice, a corpus that can be gone through only once, another build at work, an index
            that differs from its manifest, a folder that cannot be written. ModelError: bad vectors.
        MissingDependency.
    """
    tell, opened = on_progress or _silent, _opener(documents)
    if tokens < 1 or not 0 <= overlap < tokens:
        raise UsageError(f"chunks of {tokens} tokens that share {overlap}: overlap must be less than tokens")
    tokenizer = tokenizer or tokenizer_of(encoder)
    digest, count, empty = _census(opened())
    made_of = {
        "corpus": {"sha256": digest, "documents": count},
        "chunks": {"tokens": tokens, "overlap": overlap, "tokenizer": tokenizer.identity},
        "model": _model(encoder),
        "index": {
            **bm25_index.SETTINGS,
            "exact": "by size" if exact is None else str(exact),
            **hnsw.settings(False),
        },
    }
    version = hashlib.sha256(_canonical(made_of)).hexdigest()
    place = Path(folder) / f"index-{version[:16]}"
    with _writing(place):
        if (place / MANIFEST).is_file():
            found = open_index(place, encoder)
            found.reused = True
            return found
        pieces = (cut(document, tokens, overlap, tokenizer) for document in opened() if document.text.strip())
        _chunks(place, pieces, count, tell)
        _fill(place, encoder, exact, tell)
        files = {name: _sha256(place / name) for name in _names(place)}
        with ChunkStore(place / CHUNKS) as store:
            manifest = Manifest(
                version=version, made_of=made_of, documents=count, empty=empty, chunks=len(store), files=files
            )
        _replace(place / MANIFEST, manifest.model_dump_json(indent=1).encode())
        return _opened(place, manifest, encoder, None)


def tokenizer_of(encoder: Any) -> Tokenizer:
    """The tokenizer of a model that shows one, through its prompts; `WordPieces` for any other."""
    while (inner := getattr(encoder, "_inner", None)) is not None:
        encoder = inner
    found = getattr(encoder, "tokenizer", None) or getattr(encoder, "_tokenizer", None)
    try:
        return HubTokenizer(found) if found is not None else WordPieces()
    except (UsageError, MissingDependency):
        return WordPieces()


def _silent(stage: str, done: int, total: int) -> None:
    """Nobody asked."""


def _opener(documents: Documents) -> Callable[[], Iterable[Document]]:
    if callable(documents):
        return documents
    given: object = documents
    if iter(documents) is given:
        raise UsageError("a corpus is gone through twice; give a list, or a function that opens it")
    return lambda: documents


def _census(documents: Iterable[Document]) -> tuple[str, int, int]:
    """(hash, documents, those without text) of a corpus."""
    digest, seen, empty = hashlib.sha256(), set[bytes](), 0
    for document in documents:
        try:
            (document.id + document.text).encode()
        except UnicodeEncodeError:
            raise UsageError(
                f"document {document.id!r} holds half a character (a lone surrogate), which no file can store"
            ) from None
        key = hashlib.blake2b(document.id.encode(), digest_size=16).digest()
        if key in seen:
            raise UsageError(f"document {document.id[:80]!r} is there twice; ids of a corpus must differ")
        seen.add(key)
        empty += not document.text.strip()
        digest.update(_canonical([document.id, document.text, dict(document.fields)]) + b"\n")
    if len(seen) == empty:
        raise UsageError(f"the corpus holds no text ({empty} empty documents); there is nothing to search")
    return digest.hexdigest(), len(seen), empty


def _canonical(value: Any) -> bytes:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":")).encode()


def _model(encoder: Encoder) -> dict[str, Any]:
    """What shapes the vectors; how many texts go through at once does not."""
    own = encoder.identity
    settings = {name: value for name, value in own.settings.items() if name != "batch_size"}
    return {"name": own.name, "revision": own.revision, "files": dict(own.files), "settings": settings}


@contextmanager
def _writing(place: Path) -> Iterator[None]:
    """The folder, to be written by one process; what the disk refuses is one line."""
    try:
        from filelock import FileLock, Timeout
    except ImportError as error:
        raise MissingDependency("building an index", "filelock", "pip install 'clinsafe[rag]'") from error
    try:
        place.mkdir(parents=True, exist_ok=True)
        with FileLock(f"{place}.lock", timeout=PATIENCE):
            yield
    except Timeout:
        raise UsageError(f"{place}: another process is building this index; wait for it") from None
    except ClinsafeError:  # some are an OSError too, and say better what is wrong
        raise
    except (OSError, sqlite3.Error) as error:
        raise UsageError(
            f"{place}: cannot be written ({error}); make room there, or name another folder"
        ) from error


def _chunks(place: Path, documents: Iterable[Iterator[Chunk]], count: int, tell: Progress) -> None:
    if (place / CHUNKS).is_file():
        return
    unfinished = place / f"{CHUNKS}.part"
    unfinished.unlink(missing_ok=True)

    def told() -> Iterator[Iterable[Chunk]]:
        for number, found in enumerate(documents, start=1):
            yield found
            tell("chunks", number, count)

    write_chunks(unfinished, told())
    unfinished.replace(place / CHUNKS)


def _fill(place: Path, encoder: Encoder, exact: bool | None, tell: Progress) -> None:
    """Vectors, order, graph and words of the chunks that are there."""
    with ChunkStore(place / CHUNKS) as store:
        count = len(store)
        if not (place / VECTORS).is_file():
            parts = list(_encoded(place, store, encoder, tell))
            hnsw.write_vectors(place / f"{VECTORS}.part", (hnsw.read_vectors(part) for part in parts), count)
            (place / f"{VECTORS}.part").replace(place / VECTORS)
        for part in place.glob("part-*.npy"):
            part.unlink()
        np.save(place / ORDER, store.order(), allow_pickle=False)
        small = count < hnsw.EXACT_BELOW if exact is None else exact
        if not small and not (place / GRAPH).is_file():
            tell("graph", 0, count)
            hnsw.build_graph(hnsw.read_vectors(place / VECTORS), place / f"{GRAPH}.part")
            (place / f"{GRAPH}.part").replace(place / GRAPH)
            tell("graph", count, count)
        tell("words", 0, count)
        bm25_index.build_bm25(store.texts(), place / WORDS)
        tell("words", count, count)


def _encoded(place: Path, store: ChunkStore, encoder: Encoder, tell: Progress) -> Iterator[Path]:
    """The parts of the matrix, in order; those that are there are not encoded again."""
    width: int | None = None
    for at in range(0, len(store), PART):
        part, rows = place / f"part-{at // PART:06}.npy", min(PART, len(store) - at)
        try:
            there: Any = hnsw.read_vectors(part).shape
        except (OSError, ValueError):
            there = None
        if there is None or there[0] != rows or there[1] != (width or there[1]):
            vectors = hnsw.check_vectors(encoder.encode(list(store.texts(at, at + rows))), width)
            if len(vectors) != rows:
                raise ModelError(
                    f"the encoder gave {len(vectors)} vectors for {rows} texts; it must give one for each"
                )
            with (place / f"{part.name}.new").open("wb") as stream:
                np.save(stream, vectors, allow_pickle=False)
            (place / f"{part.name}.new").replace(part)
            there = vectors.shape
        width = int(there[1])
        tell("vectors", at + rows, len(store))
        yield part


def _names(place: Path) -> list[str]:
    found = (file.relative_to(place).as_posix() for file in place.rglob("*") if file.is_file())
    return sorted(name for name in found if name != MANIFEST and not name.endswith((".part", ".new")))


def _sha256(file: Path) -> str:
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def _replace(file: Path, data: bytes) -> None:
    new = file.with_name(f"{file.name}.new")
    with new.open("wb") as stream:
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    new.replace(file)


# ── opening ────────────────────────────────────────────────────────────────────────────────────


def open_index(
    place: Path | str, encoder: Encoder | None = None, *, dense: Index | None = None, verify: bool = True
) -> SearchIndex:
    """An index that was built.

    Args:
        place: its own folder, ``index-…``.
        encoder: for queries; the one it was built with. None searches with vectors, or words alone.
        dense: searched in place of the index's own vectors: a `QdrantIndex` that `copy_vectors` filled.
        verify: compare all files with the manifest, about a second for each gigabyte.

    Raises:
        UsageError: an unfinished index, one that differs from its manifest, another model.
    """
    place = Path(place)
    manifest = read_manifest(place)
    if encoder is not None and manifest.made_of.get("model") != _model(encoder):
        raise UsageError(
            f"{place}: was built with another model or other settings of it than {encoder.identity.name!r}; build an "
            "index with this one"
        )
    if verify and (faults := differences(place, manifest)):
        raise UsageError(f"{place}: differs from its manifest: {'; '.join(faults[:5])}; {ANEW}")
    return _opened(place, manifest, encoder, dense)


def read_manifest(place: Path) -> Manifest:
    """The manifest of an index.

    Raises:
        UsageError: there is none, or it is damaged or was changed.
    """
    try:
        manifest = Manifest.model_validate_json((place / MANIFEST).read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{place}: holds no finished index ({MANIFEST} is missing); build it, which goes on where it was"
        ) from None
    except (OSError, ValidationError) as error:
        raise UsageError(f"{place / MANIFEST}: is damaged; {ANEW}") from error
    if hashlib.sha256(_canonical(manifest.made_of)).hexdigest() != manifest.version:
        raise UsageError(f"{place / MANIFEST}: what it says it is made of was changed; {ANEW}")
    return manifest


def differences(place: Path, manifest: Manifest) -> list[str]:
    """What is not as the manifest says, one phrase each; empty means intact."""
    faults = []
    for name, digest in manifest.files.items():
        if not (place / name).is_file():
            faults.append(f"{name} is missing")
        elif _sha256(place / name) != digest:
            faults.append(f"{name} was changed")
    needed = {CHUNKS, VECTORS, ORDER} - set(manifest.files)
    return faults + [f"{name} is not listed" for name in sorted(needed)]


def copy_vectors(index: SearchIndex, to: Index) -> None:
    """Add all vectors of an index to another one, under the ids of its chunks; a Qdrant collection, for example."""
    for at, part in hnsw.blocks(index.vectors):
        to.add(index.store.ids(range(at, at + len(part))), part)


def _opened(place: Path, manifest: Manifest, encoder: Encoder | None, dense: Index | None) -> SearchIndex:
    store = ChunkStore(place / CHUNKS)
    try:
        vectors = hnsw.read_vectors(place / VECTORS)
        order = np.load(place / ORDER, mmap_mode="r", allow_pickle=False).view(np.ndarray)
    except (OSError, EOFError, ValueError) as error:
        raise UsageError(f"{place}: cannot be opened; {ANEW}") from error
    if not len(store) == len(vectors) == len(order) == manifest.chunks:
        raise UsageError(f"{place}: its files are of different lengths; {ANEW}")
    graph = place / GRAPH if GRAPH in manifest.files else None
    rows = hnsw.DenseRows(vectors, order, graph)
    return SearchIndex(
        store,
        rows.search if dense is None else _ById(dense, store, order).search,
        bm25_index.load_bm25(place / WORDS, order).search,
        vectors,
        order,
        encoder,
        version=manifest.version,
        folder=place,
    )


class _ById:
    """Any `Index`, searched by row."""

    def __init__(self, index: Index, store: ChunkStore, order: hnsw.Order) -> None:
        self._index, self._store, self._order = index, store, order

    def search(self, vector: Vectors, k: int) -> tuple[hnsw.Rows, Any]:
        found = self._index.search(vector, k)
        try:
            rows = np.asarray(self._store.rows([name for name, _ in found]), np.int64)
        except KeyError as error:
            raise UsageError(
                f"the vectors hold {str(error)[:80]}, which this index does not; copy its vectors anew"
            ) from None
        return hnsw.best_rows(np.asarray([score for _, score in found], np.float32), rows, k, self._order)
