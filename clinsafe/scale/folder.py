"""The output folder: what the job is, which parts are done, and what each shard found.

``_job.json`` says which corpus, cut, job and versions the parts belong to; another one is refused. Parts
(``part-000000.parquet`` …) appear whole or not at all, so a run that was stopped goes on where it was. Each shard
writes its ``_summary-0-of-1.json`` at the end.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any
from uuid import uuid4

from clinsafe.corpus import BadRecord
from clinsafe.errors import OutputExists, UsageError
from clinsafe.scale.job import Job
from clinsafe.scale.parts import Cut, Shard
from clinsafe.scale.process import Row
from clinsafe.scale.table import read_metadata, schema, write_part

SCHEMA_VERSION = 1
JOB = "_job.json"  # readers of a folder of Parquet files pass over names with _
SHOWN = 100  # bad records that a summary lists


@dataclass(slots=True)
class Summary:
    """What a run found.

    Attributes:
        passages: in the whole corpus.
        parts: in the whole corpus.
        written: parts that this run wrote; `kept`: that were there before.
        errors: kind of error -> passages of this shard without a value.
        bad: records that are no documents; `bad_records` has the first of them, one line each.
        restarts: workers that died or hung and were replaced.
        seconds: wall-clock time of the run.
    """

    passages: int = 0
    parts: int = 0
    written: int = 0
    kept: int = 0
    errors: dict[str, int] = field(default_factory=dict)
    bad: int = 0
    bad_records: list[str] = field(default_factory=list)
    restarts: int = 0
    seconds: float = 0.0

    def note(self, record: BadRecord) -> None:
        """Count a bad record."""
        self.bad += 1
        if len(self.bad_records) < SHOWN:
            self.bad_records.append(str(record))


@dataclass(frozen=True, slots=True)
class Folder:
    """An open output folder.

    Attributes:
        path: the folder.
        record: what ``_job.json`` and every part's metadata say.
        layout: Arrow schema of the parts.
    """

    path: Path
    record: Mapping[str, Any]
    layout: Any

    def part(self, number: int) -> Path:
        """The file of a part."""
        return self.path / part_name(number)

    def has(self, number: int, rows: int) -> bool:
        """Whether a part is there, whole, and of this job."""
        return read_metadata(self.part(number)) == (self.record, rows)

    def write(self, number: int, rows: Sequence[Row], summary: Summary) -> None:
        """Write a part and count it.

        Raises:
            UsageError: it cannot be written.
        """
        write_part(self.part(number), rows, self.layout)
        summary.written += 1
        count_errors(summary, (row.error for row in rows))

    def finish(self, shard: Shard, summary: Summary) -> None:
        """Write the shard's summary."""
        text = json.dumps({"schema_version": SCHEMA_VERSION, **asdict(summary)}, indent=1)
        write_json(self.path / f"_summary-{shard.index}-of-{shard.of}.json", text)


def part_name(number: int) -> str:
    """``part-000012.parquet``."""
    return f"part-{number:06}.parquet"


def count_errors(summary: Summary, kinds: Any) -> None:
    """Add the kinds of error of some rows; "" is none."""
    for kind in kinds:
        if kind:
            summary.errors[kind] = summary.errors.get(kind, 0) + 1


def open_folder(
    path: Path, job: Job, cut: Cut, corpus: Mapping[str, Any], made_with: Mapping[str, Any], width: int | None
) -> Folder:
    """Start an output folder, or go on with the one there is.

    Raises:
        OutputExists: the folder is about another corpus, cut, job or version, or holds something else.
        UsageError: it cannot be written.
    """
    record = {
        "schema_version": SCHEMA_VERSION,
        "job": job.name,
        "column": job.kind.column,
        "cut": cut.settings(),
        "corpus": dict(corpus),
        "made_with": json.loads(json.dumps(made_with)),
    }
    folder = Folder(path, record, schema(job.kind.column, width, record))
    if path.is_dir() and (path / JOB).is_file():
        _refuse_another(path, record)
        return folder
    if path.exists() and (
        not path.is_dir() or any(not entry.name.startswith(".") for entry in path.iterdir())
    ):
        raise OutputExists(f"{path}: exists and holds no such job; choose another --out")
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be made ({error.strerror or error}); choose another --out"
        ) from error
    write_json(path / JOB, json.dumps(record, indent=1, sort_keys=True))
    return folder


def read_record(path: Path) -> dict[str, Any]:
    """``_job.json`` of an output folder.

    Raises:
        UsageError: there is none, or it is no such file.
    """
    try:
        record = json.loads((path / JOB).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise UsageError(f"{path}: no output of `clinsafe guard annotate` ({JOB} cannot be read)") from error
    if not isinstance(record, dict) or record.get("schema_version") != SCHEMA_VERSION:
        raise UsageError(f"{path / JOB}: of another schema; this version reads {SCHEMA_VERSION}")
    return record


def _refuse_another(path: Path, record: Mapping[str, Any]) -> None:
    there = read_record(path)
    what = {
        "job": "job",
        "cut": "layout, words or part size",
        "corpus": "corpus",
        "made_with": "models, rules or versions",
    }
    for name, meant in what.items():
        if there.get(name) != record[name]:
            raise OutputExists(f"{path}: was begun with another {meant}; choose another --out")


def write_json(path: Path, text: str) -> None:
    """Write a small file whole or not at all.

    Raises:
        UsageError: it cannot be written.
    """
    temporary = path.with_name(f".{path.name}.{uuid4().hex}.tmp")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    except OSError as error:
        raise UsageError(f"{path}: cannot be written ({error.strerror or error}); make room there") from error
    finally:
        with suppress(OSError):
            temporary.unlink(missing_ok=True)
