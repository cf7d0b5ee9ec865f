"""`clinsafe rag evaluate` put together: from what was asked for to instruments, measurement, record and report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinsafe.content import Content
from clinsafe.errors import ContentError, UsageError
from clinsafe.protocols import Encoder
from clinsafe.rag.auditing.record import JudgeAudit, load_judge_audit
from clinsafe.rag.formats import BadLine, read_items
from clinsafe.rag.generation.words import load_words
from clinsafe.rag.normalise import normaliser
from clinsafe.rag.settings import Settings
from clinsafe.rag.vectors import CachedEncoder
from clinsafe.reports.rag_record import RagEvidence
from clinsafe.workflows.rag_evaluate import Plan, evaluate, fingerprint
from clinsafe.workflows.rag_judges import JudgeOptions, build_judge
from clinsafe.workflows.rag_measure import Instruments
from clinsafe.workflows.rag_sources import sources_of
from clinsafe.workflows.runs import open_run
from clinsafe.workflows.write import Stage

if TYPE_CHECKING:
    from clinsafe.reports.sign import SigningKey

NONE = "none"
SHIPPED = "benchmarks/rag/audits/local.json"
"""The audit of the local judge as it is installed; of no use, and not used, once anything of that judge is changed."""


@dataclass(frozen=True, slots=True)
class Asked:
    """What the user asked for; see `clinsafe.cli.rag_evaluate`."""

    traces: Sequence[Path]
    labels: Sequence[str]
    format: str
    settings: Settings
    model: str
    judge: str
    judge_url: str | None
    judge_key_env: str | None
    judge_key_file: Path | None
    judge_audit: Path | None
    grader: str
    graded_by: str
    max_calls: int
    max_tokens: int
    cache: Path | None
    filters: Sequence[str] | None
    limit: int
    out: Path | None
    force: bool
    pdf: bool
    operator: str
    offline: bool


@dataclass(frozen=True, slots=True)
class Evaluated:
    """A finished evaluation; `pdf` is None where `notes` say why there is none."""

    evidence: RagEvidence
    folder: Path
    record: Path
    html: Path
    pdf: Path | None
    signed: str | None
    notes: Sequence[str]

    def flat(self) -> dict[str, Mapping[str, Any]]:
        """Metric key -> figure; with several systems each key carries the slice ``system=…``."""
        from clinsafe.rag.formats.fields import slice_value

        systems = self.evidence.systems
        if len(systems) == 1:
            return dict(systems[0].figures)
        found: dict[str, Mapping[str, Any]] = {}
        for system in systems:
            for key, figure in system.figures.items():
                name, _, slices = key.partition("@")
                parts = sorted(filter(None, [*slices.split(","), f"system={slice_value(system.label)}"]))
                found[f"{name}@{','.join(parts)}"] = figure
        return found


def run(asked: Asked, content: Content, key: SigningKey | None, stage: Stage) -> Evaluated:
    """Measure, make the record, write and sign the report.

    Raises:
        ClinsafeError: in its kinds; nothing that was measured is lost where a folder was begun.
    """
    from clinsafe.workflows.rag_write import write_rag

    sources = sources_of(asked.traces, asked.labels, asked.format)
    stage("Loading", 0, 0)
    instruments, audit = _instruments(asked, content)
    plan = Plan(sources, instruments, content, audit=audit, declared=asked.graded_by,
                operator=asked.operator, most=asked.limit)  # fmt: skip
    whole = "-".join(fingerprint(plan, source, _stamp(source.path)) for source in sources)
    folder = open_run(asked.out, model="rag", fingerprint=whole, force=asked.force, now=datetime.now(UTC))
    try:
        evidence = evaluate(_kept_in(plan, folder.store), stage)
        return write_rag(evidence, content, folder, key, stage, pdf=asked.pdf)
    finally:
        folder.close()


def _kept_in(plan: Plan, folder: Path) -> Plan:
    from dataclasses import replace

    return replace(plan, folder=folder)


def _stamp(path: Path) -> str:
    """Enough to tell another file; its hash is made when it is read."""
    stat = path.stat()
    return f"{path.name}:{stat.st_size}:{stat.st_mtime_ns}"


def dry(asked: Asked, content: Content, stage: Stage) -> list[str]:
    """What an evaluation would do, in lines: questions, bad lines, calls of the judge. Nobody is asked."""
    sources = sources_of(asked.traces, asked.labels, asked.format)
    lines = []
    instruments, *_ = _instruments(asked, content, measuring=False)
    planner = getattr(instruments.judge, "plan", None)
    for source in sources:
        questions = bad = calls = tokens = 0
        for entry in read_items(source.path, source.format):
            if isinstance(entry, BadLine):
                bad += 1
                continue
            questions += 1
            if planner is not None:
                planned = planner(instruments.tasks(entry))
                calls, tokens = calls + planned.calls, tokens + planned.prompt_tokens
            if questions == asked.limit:
                break
            if questions % 100 == 0:
                stage(f"Counting {source.label}", questions, 0)
        asks = f"; the judge would be sent {calls:,} calls of about {tokens:,} tokens" if planner else ""
        lines.append(f"{source.label}: {questions:,} questions, {bad:,} bad lines{asks}")
    return lines


def _instruments(
    asked: Asked, content: Content, *, measuring: bool = True
) -> tuple[Instruments, JudgeAudit | None]:
    """All that measures, and the audit of its judge."""
    from clinsafe.workflows.rag_conflicts import build_conflicts

    encoder = None if asked.model == NONE or not measuring else _encoder(asked)
    without = list(asked.filters or ()) == [NONE]
    conflicts = None if without or not measuring else build_conflicts(content, asked.filters or None)
    recorded = asked.judge.partition(":")[0] == "recorded"
    _refuse_odd(asked, recorded)
    judge = None
    if asked.judge != NONE and (measuring or asked.judge.startswith("openai")):
        options = JudgeOptions(
            content=content, encoder=None, conflicts=None, url=asked.judge_url,
            key_variable=asked.judge_key_env, key_file=asked.judge_key_file, cache=asked.cache,
            calls=asked.max_calls or None, tokens=asked.max_tokens or None, offline=asked.offline,
            grader=asked.grader or None,
        )  # fmt: skip
        judge = build_judge(asked.judge, options)
    load_words(content)  # now, so that its hash is among those that tell two runs apart
    made = Instruments(
        settings=asked.settings,
        normaliser=normaliser(content, asked.settings.normalisation),
        content=content,
        encoder=encoder,
        conflicts=conflicts,
        judge=judge,
        recorded=recorded,
        grader=asked.grader or asked.judge.partition(":")[2] if recorded else "",
    )
    return made, _audit(asked, made, content) if measuring else None


def _encoder(asked: Asked) -> CachedEncoder:
    from clinsafe.adapters.encoders import ModelOptions, load_model

    loaded = load_model(asked.model, ModelOptions(offline=asked.offline))
    if not isinstance(loaded, Encoder):
        raise UsageError(f"--model {asked.model} scores pairs; likeness of meaning needs an encoder, or none")
    return CachedEncoder(loaded)


def _refuse_odd(asked: Asked, recorded: bool) -> None:
    if asked.graded_by and not recorded:
        raise UsageError(
            "--graded-by names the readers of grades that came with the traces: --judge recorded"
        )
    if asked.grader and not recorded:
        raise UsageError("--grader chooses among grades that came with the traces: --judge recorded")
    if asked.judge_audit is not None and (recorded or asked.judge == NONE):
        raise UsageError("--judge-audit belongs to a judge that is asked: --judge local or openai:MODEL")


def _audit(asked: Asked, made: Instruments, content: Content) -> JudgeAudit | None:
    """The audit of exactly this judge; None where there is none, or where grades came with the traces."""
    from clinsafe.workflows.rag_audit import identity_of, load_kit

    path = asked.judge_audit
    if made.recorded or made.judge is None:
        return None
    if shipped := path is None and asked.judge == "local":
        try:
            path = content.path(SHIPPED)
        except ContentError:
            return None
    if path is None:
        return None
    kit = load_kit(Content(content.overlay))
    who = identity_of(made.judge.identity, "adherence", asked.settings.thresholds.adherence)
    try:
        return load_judge_audit(path, judge=who, answers_sha256=kit.answers.sha256)
    except ContentError:
        if shipped:  # of another encoder, other packs or another threshold: then this judge was not audited
            return None
        raise
