"""A file of JSON as rows: JSON Lines of any length, compressed or not, or one array that fits into memory."""

from __future__ import annotations

import gzip
import hashlib
import json
import re
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from clinsafe.errors import UsageError
from clinsafe.rag.trace import BadLine

LONGEST = 64_000_000  # bytes of a line
WHOLE = 256_000_000  # bytes of a file that is one JSON document, uncompressed
_BOM = b"\xef\xbb\xbf"
_GZIP = b"\x1f\x8b"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_\-]{0,39}")


@dataclass(frozen=True, slots=True)
class Row:
    """One JSON object of a file.

    Attributes:
        number: 1-based line, or place in the array.
        data: the object.
        size: bytes it took.
    """

    number: int
    data: dict[str, Any]
    size: int


def rows(path: Path) -> Iterator[Row | BadLine]:
    """The objects of a file, one line in memory at a time. What is none comes as `BadLine`, which quotes nothing.

    A file that is one array, or one object with a list ``results``, is read as a whole up to `WHOLE` bytes.

    Raises:
        UsageError: the file cannot be read, or is one document of more than `WHOLE` bytes.
    """
    number = 0
    try:
        with _opened(path) as stream:
            for number, line in enumerate(_lines(stream), start=1):
                if number == 1 and line is not None and _is_whole(path, line):
                    yield from _document(path, line, stream)
                    return
                if line is None:
                    yield BadLine(number, "", f"longer than {LONGEST // 1_000_000} MB")
                elif line.strip():
                    yield from _parsed(number, line)
    except (EOFError, gzip.BadGzipFile, zlib.error):
        yield BadLine(number + 1, "", "the compressed file is damaged from here on, or ends too early")
    except OSError as error:
        raise UsageError(f"{path}: cannot be read ({error.strerror}); traces are JSON Lines") from None


def _opened(path: Path) -> IO[bytes]:
    with path.open("rb") as stream:
        compressed = stream.read(2) == _GZIP
    return gzip.open(path, "rb") if compressed else path.open("rb")  # type: ignore[return-value]


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """Lines; None for one that is too long, which is not held in memory."""
    first = True
    for line in iter(lambda: stream.readline(LONGEST), b""):
        long = len(line) >= LONGEST and not line.endswith(b"\n")
        while long and (rest := stream.readline(LONGEST)) and not rest.endswith(b"\n"):
            pass
        if long:
            yield None
        else:
            yield line.removeprefix(_BOM) if first else line
        first = False


def _is_whole(path: Path, line: bytes) -> bool:
    """Whether the first line begins one document: an array, an object over several lines, a report."""
    text = line.strip()
    if text.startswith(b"[") or text == b"{":
        return True
    plain = path.name.removesuffix(".gz")
    return plain.endswith(".json") or (text.startswith(b"{") and b'"results"' in text[:200])


def _document(path: Path, line: bytes, stream: IO[bytes]) -> Iterator[Row | BadLine]:
    rest = stream.read(WHOLE)
    if len(line) + len(rest) > WHOLE:
        raise UsageError(
            f"{path}: one JSON document of more than {WHOLE // 1_000_000} MB; write it as JSON Lines, one object a line"
        )
    whole = line + rest
    try:
        data: Any = _loads(whole)
    except (ValueError, RecursionError) as error:
        if line.strip().startswith(b"[") or line.strip() == b"{":
            where = error.lineno if isinstance(error, json.JSONDecodeError) else 1
            yield BadLine(where, "", f"begins as one JSON document and is none ({_kind(error)})")
            return
        for number, one in enumerate(whole.split(b"\n"), start=1):  # named .json, written as JSON Lines
            if one.strip():
                yield from _parsed(number, one)
        return
    found = data.get("results", [data]) if isinstance(data, dict) else data
    if not isinstance(found, list):
        yield BadLine(
            1, "", "neither JSON Lines nor an array of objects, nor an object with a list of results"
        )
        return
    size = len(whole) // max(1, len(found))
    for number, one in enumerate(found, start=1):
        yield Row(number, one, size) if isinstance(one, dict) else BadLine(number, "", "not a JSON object")


def _parsed(number: int, line: bytes) -> Iterator[Row | BadLine]:
    try:
        data = _loads(line)
    except (ValueError, RecursionError) as error:
        yield BadLine(number, "", f"not JSON ({_kind(error)})")
        return
    yield Row(number, data, len(line)) if isinstance(data, dict) else BadLine(number, "", "not a JSON object")


def _kind(error: BaseException) -> str:
    return {
        "UnicodeDecodeError": "not UTF-8 text",
        "_TwiceError": "a field is given twice",
        "RecursionError": "nested too deeply",
    }.get(type(error).__name__, type(error).__name__)


class _TwiceError(ValueError):
    pass


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    made = dict(pairs)
    if len(made) != len(pairs):
        raise _TwiceError
    return made


_DECODER = json.JSONDecoder(object_pairs_hook=_once)


def _loads(data: bytes) -> Any:
    return _DECODER.decode(data.decode("utf-8"))


def fingerprint(name: str) -> int:
    """64 bits of an id, the same in every process: what is remembered of it."""
    return int.from_bytes(hashlib.blake2b(name.encode("utf-8", "replace"), digest_size=8).digest())


def named(parts: tuple[int | str, ...]) -> str:
    """A dotted field name; a part that may be text of the file is ``*``."""
    return ".".join(str(part) if isinstance(part, int) or _NAME.fullmatch(part) else "*" for part in parts)
