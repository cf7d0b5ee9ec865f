"""The audit, as a story: fix the criteria, read the suite, measure the models and the guard, judge, write down, sign.

This is a composition root: nothing is decided here, and every step is one call.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from clinsafe.adapters.encoders import ModelOptions, is_endpoint, load_model
from clinsafe.adapters.offline import only_this_machine
from clinsafe.benchmarks.published import load_published
from clinsafe.benchmarks.scoring import CaseResult, score, unmeasured
from clinsafe.benchmarks.suite import Case
from clinsafe.checklist.gates import Gate
from clinsafe.content import Content, sha256_file
from clinsafe.errors import ClinsafeError, ModelError, UsageError
from clinsafe.protocols import Encoder, PairScorer
from clinsafe.reports.arithmetic import own_arithmetic
from clinsafe.reports.assess import Assessment, assess_all, compare, system
from clinsafe.reports.changes import changes
from clinsafe.reports.declaration import Declaration
from clinsafe.reports.evidence import Evidence, criteria_hash, limits, to_bytes
from clinsafe.reports.guard_record import GuardRecord
from clinsafe.reports.render import FONTS, TEMPLATES
from clinsafe.reports.soup import collect, of_system
from clinsafe.version import VERSION
from clinsafe.workflows import audit_guard
from clinsafe.workflows.baselines import baselines, labels
from clinsafe.workflows.prepare import Fixed, check_declaration, environment, fingerprint, fix, refuse_unfit
from clinsafe.workflows.runs import RunFolder, open_run
from clinsafe.workflows.write import Stage, Steps, silent, write

if TYPE_CHECKING:
    from pyhanko.sign.timestamps import TimeStamper

    from clinsafe.reports.sign import SigningKey

System: TypeAlias = Encoder | PairScorer


@dataclass(frozen=True)
class Subject:
    """One system to audit: a name with its own options, or an object that satisfies `Encoder` or `PairScorer`."""

    model: str | System
    options: ModelOptions = field(default_factory=ModelOptions)

    def load(self) -> System:
        """The system itself."""
        return load_model(self.model, self.options) if isinstance(self.model, str) else self.model


Subjects: TypeAlias = str | Path | System | Subject | Sequence[str | Path | System | Subject]


@dataclass(frozen=True)
class AuditResult:
    """A finished audit: the record, the verdicts, and where the files are.

    `assessments` has one entry for each system under test. `pdf` is None where the PDF could not be made; `notes` then
    says why. `signed` is the name on the key.
    """

    evidence: Evidence
    assessments: list[Assessment]
    folder: Path
    pdf: Path | None
    html: Path
    signed: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def assessment(self) -> Assessment:
        """The first system's."""
        return self.assessments[0]

    @property
    def held(self) -> list[str]:
        """Hazards that hold release for at least one system, in order."""
        return list(dict.fromkeys(hazard for a in self.assessments for hazard in a.held))

    @property
    def released(self) -> bool:
        """True where every gate of every system passed and all of them are real ones."""
        return all(a.released for a in self.assessments)

    @property
    def report(self) -> Path:
        """The document to open first."""
        return self.pdf or self.html


class Interrupted(ClinsafeError):
    """The user stopped the audit; what was computed is in the run folder."""

    exit_code = 130


def run_audit(
    models: Subjects,
    *,
    options: ModelOptions | None = None,
    protocol: str | None = None,
    gates: Sequence[Gate] = (),
    suite: Path | None = None,
    hazards: Sequence[str] | None = None,
    guard: bool | str | Path = False,
    answers: Path | None = None,
    previous: Path | None = None,
    declaration: Declaration | None = None,
    settings: Path | None = None,
    out: Path | None = None,
    force: bool = False,
    overlay: Path | None = None,
    key: SigningKey | None = None,
    timestamper: TimeStamper | None = None,
    offline: bool = False,
    stage: Stage = silent,
) -> AuditResult:
    """Audit one or several models on one tier: the written suite, or a mined one.

    Args:
        models: alias, folder, hub id, ``endpoint:name``, ``plugin:name``, an object that satisfies `Encoder` or
            `PairScorer`, a `Subject` with options of its own, or a list of these.
        options: how models that are given by name are loaded.
        protocol: name in ``checklist/gates.yaml``, or the path of an institution's own; None is the default.
        gates: instead of the protocol's own gates.
        suite: file of a mined suite (tier ``generated``), its card beside it; None takes the written one.
        hazards: only these; None is all.
        guard: measure the guard in the same run, on the pairs of the suite's test cases: True takes the policy
            ``default``, a text is another policy's name or file. False leaves it out: then detection is 10, and nothing
            is met by mitigation.
        answers: the institution's answers to items 8 to 10.
        previous: an earlier audit (run folder, evidence.json or report.pdf) of the same cases and protocol; what
            changed since then stands in section R12.
        declaration: what people state about use, class, anomalies and who has to sign.
        settings: the ``clinsafe.yaml`` that all this came from; its hash goes into the evidence.
        out: run folder; None makes ``runs/<model>-<time>``, and continues an interrupted run there.
        force: replace what an audit wrote into `out` before.
        overlay: directory of controlled content that wins over the packaged one.
        key: from `clinsafe.reports.keys.load_key`; None leaves the report unsigned.
        timestamper: from `clinsafe.reports.timestamps.authority`; None leaves the signature to the signer's clock.
        stage: progress callback.

    Raises:
        ClinsafeError: one line on what is wrong and what would be valid.
    """
    declaration = declaration or Declaration()
    subjects = _subjects(models, options or ModelOptions(offline=offline))
    steps = Steps(stage)
    with only_this_machine(offline):
        steps("Fixing the criteria", 0, 0)
        fixed = fix(Content(overlay), protocol, hazards, gates, answers, previous, suite)
        fixed_at = datetime.now(UTC)
        check_declaration(declaration, fixed.regulatory, [h.id for h in fixed.criteria.hazards])
        if settings is not None:
            fixed.content.hashes[settings.name] = sha256_file(settings)
        guarding = _guard(fixed.content, guard)
        refuse_unfit([s.model for s in subjects if not isinstance(s.model, str)], declaration)
        systems = []
        for number, subject in enumerate(subjects, start=1):
            steps(f"Loading model {number} of {len(subjects)}", 0, 0)
            systems.append(subject.load())
        refuse_unfit(systems, declaration)
        # Without hashed files nothing says that the code behind a name is still the same: what such a system computed
        # is never taken up again.
        kept = [
            isinstance(subject.model, str) and bool(loaded.identity.files or loaded.identity.fake)
            for subject, loaded in zip(subjects, systems, strict=True)
        ]
        run = open_run(
            out,
            model=systems[0].identity.name,
            fingerprint=fingerprint(systems, fixed.criteria, fixed.cases) if any(kept) else uuid.uuid4().hex,
            force=force,
            now=fixed_at,
        )
        if run.resumed:
            steps(f"Continuing the run of {run.started}", 0, 0)
        try:
            results = [
                _score(loaded, fixed.cases, run if resume else None, steps, number, len(systems))
                for number, (loaded, resume) in enumerate(zip(systems, kept, strict=True), start=1)
            ]
            guarded = (
                None if guarding is None else audit_guard.measure(guarding, fixed.cases, run.store, steps)
            )
            steps("Measuring and judging", 0, 0)
            evidence, assessments = _judge(
                systems, results, fixed, run, steps, guarded,
                declaration=declaration,
                options={
                    "offline": str(offline).lower(),
                    "hazards": ", ".join(hazards) if hazards else "all",
                    "settings": settings.name if settings else "none",
                    "suite": fixed.suite.mined.file if fixed.suite.mined else fixed.suite.tier,
                    "guard": f"policy {guarded.policy}" if guarded else "not measured",
                },
            )  # fmt: skip
            stage("Writing the report", 0, 0)
            written = write(evidence, fixed.content, run, key, stage, timestamper)
            return AuditResult(evidence, assessments, run.path, *written)
        except KeyboardInterrupt:
            again = (
                "run the same command again to continue"
                if any(kept)
                else "but a model without hashed files starts anew next time"
            )
            raise Interrupted(f"stopped; what was computed is kept in {run.path}, {again}") from None
        finally:
            run.close()


def _guard(content: Content, guard: bool | str | Path) -> audit_guard.AuditGuard | None:
    if not guard:
        return None
    return audit_guard.prepare(content, audit_guard.DEFAULT if guard is True else guard)


def _subjects(models: Subjects, options: ModelOptions) -> list[Subject]:
    listed = [models] if isinstance(models, str | Path) or not isinstance(models, Sequence) else list(models)
    if not listed:
        raise UsageError("there is no model to audit; give at least one")
    named = [str(m) if isinstance(m, Path) else m for m in listed]
    # beside an endpoint, what is said of an endpoint is for it alone; without one it is refused when a model is loaded
    shared = any(isinstance(m, str) and is_endpoint(m) for m in named)
    return [
        m
        if isinstance(m, Subject)
        else Subject(m, options.meant_for(m) if shared and isinstance(m, str) else options)
        for m in named
    ]


def _score(
    loaded: System, cases: Sequence[Case], run: RunFolder | None, stage: Stage, number: int, count: int
) -> list[CaseResult]:
    """The scores of one system. Beside others, one that does not work at all is not measured: theirs are kept."""
    try:
        return score(
            loaded,
            cases,
            store=run.store if run else None,
            progress=lambda done, total: stage(f"Scoring model {number} of {count}", done, total),
        )
    except ModelError as error:
        if count == 1:
            raise
        return unmeasured(cases, str(error))


def _judge(
    systems: Sequence[System],
    results: Sequence[list[CaseResult]],
    fixed: Fixed,
    run: RunFolder,
    steps: Steps,
    guard: GuardRecord | None,
    *,
    declaration: Declaration,
    options: dict[str, str],
) -> tuple[Evidence, list[Assessment]]:
    """The whole record: figures, verdicts, comparisons, and the arithmetic check on all of it."""
    identities = [loaded.identity for loaded in systems]
    names = labels([identity.name for identity in identities])
    criteria, content = fixed.criteria, fixed.content
    subjects = [
        system(loaded.identity, found, criteria, label=name, guard=guard)
        for loaded, found, name in zip(systems, results, names, strict=True)
    ]
    records = [*subjects, *baselines(identities, results, fixed.cases, criteria, names)]
    assessments = assess_all(records, criteria, fixed.answers, guard)
    published = load_published(content)
    for name in (*TEMPLATES, *FONTS):
        content.touch(name)
    evidence = Evidence(
        tool={"name": "clinsafe", "version": VERSION},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        criteria_fixed=run.started,
        declaration=declaration,
        options=options,
        content=dict(sorted(content.hashes.items())),
        suite=fixed.suite,
        criteria=criteria,
        criteria_sha256=criteria_hash(criteria),
        answers=fixed.answers,
        environment=environment(),
        systems=records,
        guard=guard,
        assessments=[a.to_json() for a in assessments],
        comparisons=compare(records),
        published=published,
        arithmetic=own_arithmetic(records, assessments, criteria, published),
        limits=limits(fixed.suite.tier, guarded=guard is not None),
        regulatory=fixed.regulatory,
        soup=[*(of_system(record) for record in subjects), *collect()],
        steps=steps.taken,
        previous=fixed.previous,
        changes=[],
    )
    evidence = evidence.model_copy(update={"changes": changes(fixed.previous, subjects, evidence)})
    # As it is read back from its bytes: canonical JSON sorts keys, and the pages must come out equal for every reader.
    return Evidence.model_validate(json.loads(to_bytes(evidence))), assessments
