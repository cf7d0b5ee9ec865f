"""Output files: Parquet, one row a passage, with the job's settings in the file's metadata."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from uuid import uuid4

from clinsafe.errors import MissingDependency, UsageError
from clinsafe.scale.process import Row

KEY = b"clinsafe"
GROUP = 16  # rows that have to be decoded to find one
INSTALL = "pip install 'clinsafe[scale]'"


def arrow() -> tuple[Any, Any]:
    """``pyarrow`` and ``pyarrow.parquet``.

    Raises:
        MissingDependency: with the line that installs them.
    """
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingDependency("working on a corpus", "pyarrow", INSTALL) from error
    return pa, pq


def schema(column: str, width: int | None, metadata: Mapping[str, Any]) -> Any:
    """The schema of an output file: the fields of `Row`, the value under the name of its column.

    Args:
        column: ``facts``, ``vector`` …
        width: length of a vector (float32), None for text.
        metadata: stored as JSON under the key ``clinsafe``.
    """
    pa, _ = arrow()
    value = pa.string() if width is None else pa.list_(pa.float32(), width)
    fields = [
        pa.field("id", pa.string(), nullable=False),
        pa.field("document", pa.string(), nullable=False),
        pa.field("start", pa.int64(), nullable=False),
        pa.field("end", pa.int64(), nullable=False),
        pa.field("sha256", pa.string(), nullable=False),
        pa.field(column, value),
        pa.field("error", pa.string(), nullable=False),
    ]
    return pa.schema(fields, {KEY: json.dumps(metadata, sort_keys=True).encode()})


def write_part(path: Path, rows: Sequence[Row], layout: Any) -> None:
    """Write a file whole or not at all.

    Raises:
        UsageError: it cannot be written.
    """
    pa, _ = arrow()
    columns = list(zip(*rows, strict=True))
    width = getattr(layout.field(5).type, "list_size", None)
    arrays = [
        _vectors(values, field.type, width) if number == 5 and width else pa.array(values, field.type)
        for number, (values, field) in enumerate(zip(columns, layout, strict=True))
    ]
    write_table(path, pa.Table.from_arrays(arrays, schema=layout))


def write_table(path: Path, table: Any) -> None:
    """Write a table whole or not at all; what a killed run left of this file goes.

    Raises:
        UsageError: it cannot be written.
    """
    _, pq = arrow()
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        for old in path.parent.glob(f".{path.name}.*.tmp"):
            old.unlink(missing_ok=True)
        pq.write_table(table, temporary, row_group_size=GROUP, compression="zstd")
        temporary.replace(path)
    except OSError as error:
        why = error.strerror or type(error).__name__
        raise UsageError(
            f"{path}: cannot be written ({why}); make room, and run the same command again"
        ) from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)


def read_metadata(path: Path) -> tuple[dict[str, Any], int] | None:
    """The job's metadata and the number of rows of an output file; None if it is none, or not whole."""
    pa, pq = arrow()
    try:
        with pq.ParquetFile(path) as file:
            found = file.schema_arrow.metadata or {}
            return json.loads(found[KEY]), int(file.metadata.num_rows)
    except (OSError, KeyError, ValueError, pa.ArrowException):
        return None


def read_errors(path: Path) -> list[str]:
    """The kinds of error in an output file, "" for rows that have a value."""
    _, pq = arrow()
    found: list[str] = pq.read_table(path, columns=["error"]).column("error").to_pylist()
    return found


def _vectors(values: Sequence[Any], kind: Any, width: int) -> Any:
    import numpy as np

    pa, _ = arrow()
    missing = np.array([value is None for value in values])
    flat = np.zeros((len(values), width), dtype=np.float32)
    for number, value in enumerate(values):
        if value is not None:
            flat[number] = value
    return pa.FixedSizeListArray.from_arrays(pa.array(flat.ravel()), type=kind, mask=pa.array(missing))
