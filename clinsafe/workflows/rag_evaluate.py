"""Evaluate recorded traces, as a story: read, measure batch by batch, keep, derive every figure, make the record.

What is measured is written at once, one line a question, so that a stopped run goes on where it stopped; texts of one
batch are in memory at a time.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from clinsafe.content import Content, sha256_file
from clinsafe.errors import UsageError
from clinsafe.rag.figures import figures
from clinsafe.rag.formats import read_items
from clinsafe.rag.item import Item
from clinsafe.rag.trace import BadLine
from clinsafe.rag.values import record
from clinsafe.reports.evidence import SystemIdentity
from clinsafe.reports.rag_record import (
    BadRow,
    JudgeRecord,
    RagEvidence,
    RagSystem,
    SourceRecord,
    from_bytes,
    settings_hash,
    to_bytes,
)
from clinsafe.reports.rag_standing import standing_by
from clinsafe.stats import figure_to_json
from clinsafe.version import VERSION
from clinsafe.workflows.prepare import environment
from clinsafe.workflows.rag_measure import Instruments, told
from clinsafe.workflows.rag_records import Ledger
from clinsafe.workflows.write import Stage, silent

if TYPE_CHECKING:
    from clinsafe.rag.auditing.record import JudgeAudit

BATCH = 64  # questions
SHOWN = 100  # bad lines that are listed
LIMITS = (
    "R finds words and likeness, not meaning: a passage that contradicts the reference can count as a hit. Read every "
    "hit rate beside the safe hit rate and the dangerous hit rates, and those beside what the filters miss "
    "(docs/filters.md).",
    "The bounds hold for these questions on this corpus, not for your hospital.",
    "Hazards that no filter looks for: laterality, route, look-alike names, identity of the patient, population.",
)

WORDS_ALONE = (
    "R looked at words alone, without the level of meaning: every hit rate is a lower bound of the paper's, and what "
    "is made of misses (no-hit, lucky guess, accuracy gap, attribution error) an upper one."
)


@dataclass(frozen=True, slots=True)
class Source:
    """One file of traces.

    Attributes:
        label: the system's name in the record.
        path: the file.
        format: ``auto`` or one of `clinsafe.rag.formats.FORMATS`.
        setting: ``rag``, ``direct``, ``long-context`` or "".
        fake: a fake took part.
        versions: what made the traces, where it is known.
    """

    label: str
    path: Path
    format: str = "auto"
    setting: str = ""
    fake: bool = False
    versions: dict[str, list[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Plan:
    """An evaluation.

    Attributes:
        sources: at least one.
        instruments: what measures.
        content: content tree with its overlay.
        folder: where what was measured is kept while the run is on; None: nowhere.
        audit: its audit.
        declared: who graded, where the grades are human readers'.
        operator: as printed.
        most: questions of each file at most; 0: all.
    """

    sources: Sequence[Source]
    instruments: Instruments
    content: Content
    folder: Path | None = None
    audit: JudgeAudit | None = None
    declared: str = ""
    operator: str = "not stated"
    most: int = 0


def evaluate(plan: Plan, stage: Stage = silent) -> RagEvidence:
    """Measure all sources and make the record.

    Raises:
        UsageError: no source, two of one label, or a file without one question that can be read. What the readers,
            models and judges raise before anything is measured.
    """
    labels = [source.label for source in plan.sources]
    if not labels or len(set(labels)) != len(labels):
        raise UsageError("give each file of traces a label of its own: --label NAME, once a file")
    systems = [_system(plan, source, stage) for source in plan.sources]
    stage("Deriving the figures", 0, 0)
    made = _record(plan, systems)
    return from_bytes(to_bytes(made))  # as every reader will see it


def _system(plan: Plan, source: Source, stage: Stage) -> RagSystem:
    before = _stamp(source.path)
    digest = sha256_file(source.path) if source.path.is_file() else ""
    reader = read_items(source.path, source.format)
    bad: list[BadRow] = []
    bad_lines = 0
    with Ledger.open(plan.folder, source.label, fingerprint(plan, source, digest)) as ledger:
        batch: list[Item] = []
        for entry in reader:
            if isinstance(entry, BadLine):
                bad_lines += 1
                if len(bad) < SHOWN:
                    bad.append(BadRow(line=entry.number, field=entry.field, why=entry.why))
                continue
            if plan.most and len(ledger) + len(batch) >= plan.most and entry.id not in ledger:
                break
            if entry.id not in ledger:
                batch.append(entry)
            if len(batch) == BATCH:
                _measure(plan, batch, ledger)
                stage(f"Evaluating {source.label}", len(ledger), 0)
                batch = []
        if batch:
            _measure(plan, batch, ledger)
        items = ledger.records()
    if _stamp(source.path) != before:
        raise UsageError(
            f"{source.path}: changed while it was read; run the same command again when it is complete"
        )
    if not items:
        first = f"; the first bad line: {bad[0].line}: {bad[0].why}" if bad else ""
        raise UsageError(f"{source.path}: no question that can be read{first}")
    found = figures(items, plan.instruments.settings, standing_by(plan.declared, plan.audit, items))
    return RagSystem(
        label=source.label,
        setting=source.setting,
        source=SourceRecord(
            file=source.path.name,
            sha256=digest,
            format=reader.detected.format if reader.detected else "",
            bad=bad,
            bad_lines=bad_lines,
        ),
        versions=source.versions,
        fake=source.fake,
        items=items,
        figures={key: figure_to_json(figure) for key, figure in found.items()},
    )


def _stamp(path: Path) -> tuple[int, int]:
    """Size and time of change: the hash in the record must be of what was read."""
    stat = path.stat()
    return stat.st_size, stat.st_mtime_ns


def _measure(plan: Plan, batch: Sequence[Item], ledger: Ledger) -> None:
    measured = plan.instruments.measure(batch)
    ledger.append(record(item, values) for item, values in zip(batch, measured, strict=True))


def fingerprint(plan: Plan, source: Source, digest: str) -> str:
    """SHA-256 of everything that shapes what is measured on one file."""
    used = plan.instruments
    judge = used.judge.identity if used.judge is not None else None
    parts = [
        VERSION, digest, source.format, used.settings.model_dump(mode="json"), plan.most,
        repr(used.encoder.identity) if used.encoder else "", used.conflicts is not None,
        repr(judge), used.recorded, used.grader, sorted(plan.content.hashes.items()),
    ]  # fmt: skip
    return hashlib.sha256(json.dumps(parts, sort_keys=True, default=str).encode()).hexdigest()


def _record(plan: Plan, systems: list[RagSystem]) -> RagEvidence:
    used = plan.instruments
    return RagEvidence(
        tool={"name": "clinsafe", "version": VERSION},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        operator=plan.operator,
        settings=used.settings,
        settings_sha256=settings_hash(used.settings),
        normalisation=dict(used.normaliser.report()),
        encoder=SystemIdentity.of(used.encoder.identity) if used.encoder else None,
        filters=_filters(plan) if used.conflicts is not None else "",
        judge=_judge(plan, systems),
        content=dict(sorted(plan.content.hashes.items())),
        environment=environment(),
        limits=[*LIMITS, *([] if "cosine" in used.settings.levels else [WORDS_ALONE])],
        questions=len({item.id for system in systems for item in system.items}),
        systems=systems,
    )


def _judge(plan: Plan, systems: Sequence[RagSystem]) -> JudgeRecord | None:
    judge = plan.instruments.judge
    if judge is None:
        return None
    outcomes, reasons = told(item for system in systems for item in system.items)
    return JudgeRecord(
        identity=SystemIdentity.of(judge.identity),
        audit=plan.audit,
        declared=plan.declared,
        outcomes=outcomes,
        reasons=reasons,
        usage=_usage(judge),
    )


def _usage(judge: object) -> dict[str, int]:
    """What an endpoint was asked in this run, and the tokens of it; nothing for a judge that asks nobody."""
    spent = getattr(judge, "spent", None)
    return {} if spent is None else {name: int(value) for name, value in asdict(spent).items()}


def _filters(plan: Plan) -> str:
    """Hash over the rule packs that were read."""
    packs = [
        (name, digest)
        for name, digest in sorted(plan.content.hashes.items())
        if name.startswith("mitigations/")
    ]
    return hashlib.sha256(json.dumps(packs).encode()).hexdigest()
