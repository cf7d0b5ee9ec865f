"""The audit, as a story: fix the criteria, read the suite, measure the model, judge, write it down, sign.

This is a composition root: nothing is decided here, and every step is one call.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from clinsafe.adapters.encoders import load_encoder
from clinsafe.adapters.lexical import TokenJaccard
from clinsafe.adapters.offline import only_this_machine
from clinsafe.benchmarks.scoring import score_with_encoder, score_with_scorer
from clinsafe.benchmarks.suite import Case, load_card, load_suite
from clinsafe.content import Content
from clinsafe.errors import ClinsafeError, MissingDependency, RenderError
from clinsafe.protocols import Encoder
from clinsafe.reports import pdf
from clinsafe.reports.assess import Assessment, assess, system
from clinsafe.reports.evidence import (
    PREDICATE,
    Criteria,
    Evidence,
    criteria_hash,
    predicate,
    to_bytes,
)  # fmt: skip
from clinsafe.reports.render import FONTS, TEMPLATES, html
from clinsafe.version import VERSION
from clinsafe.workflows.prepare import environment, fingerprint, fix_criteria, refuse_unfit, suite_record
from clinsafe.workflows.runs import RunFolder, open_run

if TYPE_CHECKING:
    from clinsafe.reports.sign import SigningKey

Stage = Callable[[str, int, int], None]
"""Called with (what is being done, steps done, steps in all)."""

LIMITS = (
    "Bounds hold for this tier's sampling frame, not for your hospital's queries.",
    "Suite and tool share authors.",
    "Sentence pairs are not retrieval: a model that fails here may be safe behind a guard, and one that passes "
    "may still fail on long documents.",
    "English only.",
)


@dataclass(frozen=True)
class AuditResult:
    """A finished audit: the record, the verdicts, and where the files are.

    `pdf` is None where the PDF could not be made; `notes` then says why. `signed` is the name on the key.
    """

    evidence: Evidence
    assessment: Assessment
    folder: Path
    pdf: Path | None
    html: Path
    signed: str | None = None
    notes: list[str] = field(default_factory=list)

    @property
    def held(self) -> list[str]:
        """Hazards that hold release, in order."""
        return self.assessment.held

    @property
    def released(self) -> bool:
        """True where every gate passed and the model is a real one."""
        return self.assessment.released

    @property
    def report(self) -> Path:
        """The document to open first."""
        return self.pdf or self.html


class Interrupted(ClinsafeError):
    """The user stopped the audit; what was computed is in the run folder."""

    exit_code = 130


def run_audit(
    model: str | Path | Encoder,
    *,
    protocol: str | None = None,
    hazards: Sequence[str] | None = None,
    out: Path | None = None,
    force: bool = False,
    overlay: Path | None = None,
    key: SigningKey | None = None,
    operator: str = "not stated",
    declared_use: str = "not declared",
    declared_class: str = "not declared",
    revision: str | None = None,
    device: str | None = None,
    batch_size: int = 32,
    offline: bool = False,
    trust_remote_code: bool = False,
    stage: Stage | None = None,
) -> AuditResult:
    """Audit one embedding model on the written suite.

    Args:
        model: alias, folder, hub id, ``plugin:name``, or any object that satisfies `Encoder`.
        protocol: name in ``checklist/gates.yaml``; None is its default.
        hazards: only these; None is all.
        out: run folder; None makes ``runs/<model>-<time>``, and continues an interrupted run there.
        force: replace what an audit wrote into `out` before.
        overlay: directory of controlled content that wins over the packaged one.
        key: from `clinsafe.reports.keys.load_key`; None leaves the report unsigned.
        stage: progress callback.

    Raises:
        ClinsafeError: one line on what is wrong and what would be valid.
    """
    tell = stage or (lambda *_: None)
    model = str(model) if isinstance(model, Path) else model
    with only_this_machine(offline):
        content = Content(overlay)
        cases = load_suite(content, hazards=hazards)
        criteria = fix_criteria(content, protocol, cases)
        tell("Loading the model", 0, 0)
        encoder = (
            load_encoder(
                model,
                revision=revision,
                device=device,
                batch_size=batch_size,
                offline=offline,
                trust_remote_code=trust_remote_code,
            )
            if isinstance(model, str)
            else model
        )
        refuse_unfit(encoder, operator=operator, declared_use=declared_use, declared_class=declared_class)
        now = datetime.now(UTC)
        # Without hashed files nothing says that the code behind a name is still the same: vectors of such an encoder
        # are never taken up again.
        resumable = isinstance(model, str) and bool(encoder.identity.files or encoder.identity.fake)
        run = open_run(
            out,
            model=encoder.identity.name,
            fingerprint=fingerprint(encoder, criteria, cases) if resumable else uuid.uuid4().hex,
            force=force,
            now=now,
        )
        try:
            return _measure_and_write(
                encoder, cases, criteria, content, run, key, tell,
                declared=(operator, declared_use, declared_class),
                options={"offline": str(offline).lower()},
            )  # fmt: skip
        except KeyboardInterrupt:
            again = (
                "run the same command again to continue"
                if resumable
                else "but an encoder without hashed files starts anew next time"
            )
            raise Interrupted(f"stopped; what was computed is kept in {run.path}, {again}") from None
        finally:
            run.close()


def _measure_and_write(
    encoder: Encoder,
    cases: Sequence[Case],
    criteria: Criteria,
    content: Content,
    run: RunFolder,
    key: SigningKey | None,
    tell: Stage,
    *,
    declared: tuple[str, str, str],
    options: dict[str, str],
) -> AuditResult:
    results = score_with_encoder(
        encoder, cases, store=run.store, progress=lambda done, total: tell("Encoding the suite", done, total)
    )
    tell("Measuring and judging", 0, 0)
    lexical = TokenJaccard()
    subject = system(encoder.identity, results, criteria)
    baseline = system(lexical.identity, score_with_scorer(lexical, cases), criteria, baseline=True)
    assessment = assess(subject, criteria)
    for name in (*TEMPLATES, *FONTS):
        content.touch(name)
    operator, declared_use, declared_class = declared
    evidence = Evidence(
        tool={"name": "clinsafe", "version": VERSION},
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        criteria_fixed=run.started,
        operator=operator,
        declared_use=declared_use,
        declared_class=declared_class,
        options=options,
        content=dict(sorted(content.hashes.items())),
        suite=suite_record(load_card(content), cases),
        criteria=criteria,
        criteria_sha256=criteria_hash(criteria),
        environment=environment(),
        systems=[subject, baseline],
        assessment=assessment.to_json(),
        limits=list(LIMITS),
    )
    return _write(evidence, assessment, content, run, key, tell)


def _write(
    evidence: Evidence,
    assessment: Assessment,
    content: Content,
    run: RunFolder,
    key: SigningKey | None,
    tell: Stage,
) -> AuditResult:
    """Evidence first: whatever fails afterwards, the measurement is kept."""
    notes: list[str] = []
    record = to_bytes(evidence)
    run.write("evidence.json", record)
    tell("Writing the report", 0, 0)
    page = html(evidence, content)
    html_path = run.write("report.html", page)
    document: bytes | None = None
    try:
        document = pdf.render(page, record, evidence.created, content)
    except (MissingDependency, RenderError) as error:
        notes.append(str(error))
    if key is not None:
        tell("Signing", 0, 0)
        document = _sign(record, document, evidence, key, run)
    pdf_path = run.write("report.pdf", document) if document is not None else None
    run.finish()
    signed = key.name if key else None
    return AuditResult(evidence, assessment, run.path, pdf_path, html_path, signed, notes)


def _sign(
    record: bytes, document: bytes | None, evidence: Evidence, key: SigningKey, run: RunFolder
) -> bytes | None:
    import json

    from clinsafe.reports.dsse import attest
    from clinsafe.reports.sign import sign_pdf

    envelope = attest({"evidence.json": record}, key, predicate_type=PREDICATE, predicate=predicate(evidence))
    run.write("evidence.dsse.json", json.dumps(envelope, indent=1))
    return None if document is None else sign_pdf(document, key, meaning="author")
