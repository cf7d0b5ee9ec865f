"""The files of a corpus, and the records in them: one line, one Parquet row, or one text file at a time."""

from __future__ import annotations

import codecs
import gzip
import json
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any, TypeAlias

from clinsafe.corpus.faults import NOT_TEXT, Fault
from clinsafe.corpus.pages import front_matter, html_text, pdf_text
from clinsafe.corpus.values import Layout
from clinsafe.errors import ContentError, MissingDependency, UsageError

RECORDS = (".jsonl", ".ndjson", ".jsonl.gz", ".ndjson.gz", ".parquet")
TEXTS = (".txt", ".md")
PAGES = (".html", ".htm", ".xhtml", ".pdf")
IN_FOLDERS = (*RECORDS, *TEXTS, ".markdown", *PAGES)
LONGEST = 64 << 20  # bytes of one line or text file; more is no document but a file of another kind
LONGEST_PDF = 256 << 20  # bytes; its pages are read one at a time, and most of it is pictures
BATCH = 256  # Parquet rows in memory at a time
BLOCK = 64 << 10  # bytes that are looked at for zeros, which no text holds

Record: TypeAlias = dict[str, Any]


def corpus_files(path: Path) -> list[tuple[Path, str]]:
    """The files of a corpus with the names that go into ids: the file's own, or its path in the folder.

    HTML and PDF are read in a folder, where each file is one document.

    Raises:
        UsageError: no such path, or no file of a kind that is read.
    """
    kinds = ", ".join((*RECORDS, *TEXTS))
    if path.is_dir():
        kinds = ", ".join(IN_FOLDERS)
        found = sorted(
            (file.relative_to(path).as_posix(), file)
            for file in path.rglob("*")
            if file.name.lower().endswith(IN_FOLDERS)
            and file.is_file()
            and not any(part.startswith(".") for part in file.relative_to(path).parts)
        )
        if not found:
            raise UsageError(f"{path}: no file in this folder is one of {kinds}")
        return [(file, name) for name, file in found]
    if not path.exists():
        raise UsageError(f"{path}: no such file or folder; a corpus is a folder or one of {kinds}")
    if not path.name.lower().endswith((*RECORDS, *TEXTS)):
        raise UsageError(f"{path}: not a corpus by its name; it is a folder or one of {kinds}")
    return [(path, path.name)]


def records(file: Path, name: str, layout: Layout) -> Iterator[tuple[int | None, Record | Fault]]:
    """The records of one file with their lines or rows, from 1; what cannot be read as a record is a `Fault`.

    Raises:
        UsageError: an empty file, or not of the kind that its name says. ContentError: a file that breaks off.
        MissingDependency: Parquet without pyarrow.
    """
    lowered = file.name.lower()
    if file.stat().st_size == 0 and lowered.endswith(RECORDS):
        raise UsageError(f"{file}: the file is empty")
    if lowered.endswith(".parquet"):
        yield from _parquet(file, layout)
    elif lowered.endswith(RECORDS):
        yield from _json_lines(file)
    else:
        found = _one_document(file)
        if isinstance(found, Fault):
            yield None, found
        else:
            text, fields = found
            yield None, {**fields, layout.id: name, **dict.fromkeys(layout.text, ""), layout.text[0]: text}


def _one_document(file: Path) -> tuple[str, dict[str, str]] | Fault:
    """Text and fields of a file that is one document."""
    kind = file.suffix.lower()
    most = LONGEST_PDF if kind == ".pdf" else LONGEST
    if file.stat().st_size > most:
        return Fault(None, f"is larger than {most >> 20} MB")
    if kind == ".pdf":
        return pdf_text(file, LONGEST)
    data = file.read_bytes()
    if b"\0" in data[:BLOCK]:
        return Fault(None, NOT_TEXT)
    if kind in PAGES:
        return html_text(data)
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return Fault(None, NOT_TEXT)
    text = text.replace("\r\n", "\n").replace("\r", "\n")  # as a file opened for text reads
    return (text, {}) if kind == ".txt" else front_matter(text)


def _json_lines(file: Path) -> Iterator[tuple[int, Record | Fault]]:
    stream: IO[bytes] = gzip.open(file) if file.suffix.lower() == ".gz" else file.open("rb")  # type: ignore[assignment]  # noqa: SIM115
    number = 0
    with stream:
        try:
            while line := stream.readline(LONGEST):
                number += 1
                if number == 1:
                    _refuse_binary(file, line)
                    line = line.removeprefix(codecs.BOM_UTF8)
                if len(line) == LONGEST:
                    while line and not line.endswith(b"\n"):
                        line = stream.readline(LONGEST)
                    yield number, Fault(None, f"the line is longer than {LONGEST >> 20} MB")
                elif line.strip():
                    yield number, _json(line)
        except (gzip.BadGzipFile, EOFError, zlib.error) as error:
            raise ContentError(
                file, number + 1, None, "the gzip file breaks off or is damaged here"
            ) from error


def _refuse_binary(file: Path, block: bytes) -> None:
    if b"\0" in block[:BLOCK]:
        raise UsageError(
            f"{file}: {NOT_TEXT} but a binary file or UTF-16; a corpus of this name is JSON Lines in UTF-8"
        )


def _json(line: bytes) -> Record | Fault:
    try:
        text = line.decode()
    except UnicodeDecodeError:
        return Fault(None, NOT_TEXT)
    try:
        record = json.loads(text, object_pairs_hook=_once)
    except _Twice as error:
        return Fault(str(error)[:30], "the field is given twice")
    except json.JSONDecodeError as error:  # its message tells of the syntax alone
        return Fault(None, f"not JSON: {error.msg} at character {error.pos + 1}")
    except (ValueError, RecursionError):
        return Fault(None, "not JSON that can be read: nested too deeply, or a number too long")
    return record if isinstance(record, dict) else Fault(None, "not a JSON object")


class _Twice(ValueError):
    """A field that is given twice."""


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    record = dict(pairs)
    if len(record) != len(pairs):
        names = [name for name, _ in pairs]
        raise _Twice(next(name for name in names if names.count(name) > 1))
    return record


def _parquet(file: Path, layout: Layout) -> Iterator[tuple[int, Record | Fault]]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependency("a Parquet corpus", "pyarrow", "pip install 'clinsafe[scale]'") from error
    number = 0
    try:
        with pq.ParquetFile(file) as opened:
            names = _columns(file, opened.schema_arrow, layout)
            for batch in opened.iter_batches(batch_size=BATCH, columns=names):
                for row in range(batch.num_rows):
                    number += 1
                    yield number, _row(batch, row)
    except pa.ArrowException as error:
        what = "not a Parquet file" if not number else f"damaged after row {number}"
        raise UsageError(f"{file}: {what}") from error


def _columns(file: Path, schema: Any, layout: Layout) -> list[str]:
    """The columns that are read: those that the layout names, and those that may hold a short value."""
    import pyarrow as pa

    named = (layout.id if layout.id != Layout().id else "", layout.cluster)  # a usual id may be missing
    asked = [*layout.text, *filter(None, named)]
    if missing := [name for name in asked if name not in schema.names]:
        raise UsageError(f"{file}: no column {missing[0]!r}; there are: {', '.join(schema.names)}")
    kinds = pa.types
    plain = (kinds.is_string, kinds.is_large_string, kinds.is_integer, kinds.is_floating, kinds.is_boolean,
             kinds.is_dictionary)  # fmt: skip
    wanted = (layout.id, *asked)
    return [c.name for c in schema if c.name in wanted or any(is_kind(c.type) for is_kind in plain)]


def _row(batch: Any, row: int) -> Record | Fault:
    try:
        return dict(batch.slice(row, 1).to_pylist()[0])
    except UnicodeDecodeError:
        return Fault(None, NOT_TEXT)
