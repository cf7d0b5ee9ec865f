"""The audit, as a story: fix the criteria, read the suite, measure the model, judge, write it down, sign.

This is a composition root: nothing is decided here, and every step is one call.
"""

from __future__ import annotations

import hashlib
import platform
import uuid
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING

from clinsafe.adapters.encoders import load_encoder
from clinsafe.adapters.lexical import TokenJaccard
from clinsafe.adapters.offline import refuse_connections
from clinsafe.benchmarks.scoring import score_with_encoder, score_with_scorer
from clinsafe.benchmarks.suite import SENTENCES, Case, SuiteCard, by_hazard, load_card, load_suite
from clinsafe.checklist.fmea import load_fmea
from clinsafe.checklist.gates import load_protocol
from clinsafe.checklist.hazards import load_hazards
from clinsafe.checklist.items import load_items
from clinsafe.content import Content
from clinsafe.errors import ClinsafeError, MissingDependency, RenderError, UsageError
from clinsafe.protocols import Encoder
from clinsafe.reports import pdf
from clinsafe.reports.assess import Assessment, assess, system
from clinsafe.reports.evidence import Criteria, Evidence, SuiteRecord, criteria_hash, to_bytes
from clinsafe.reports.render import FONTS, TEMPLATES, html
from clinsafe.version import VERSION
from clinsafe.workflows.runs import RunFolder, open_run

if TYPE_CHECKING:
    from clinsafe.reports.sign import SigningKey

Stage = Callable[[str, int, int], None]
"""Called with (what is being done, steps done, steps in all)."""

PREDICATE = "https://in-toto.io/attestation/test-result/v0.1"
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
    model: str | Encoder,
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
    if offline:
        refuse_connections()
    content = Content(overlay)
    cases = load_suite(content, hazards=hazards)
    criteria = _criteria(content, protocol, cases)
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
    if not isinstance(encoder, Encoder):
        raise UsageError(
            f"{type(encoder).__name__} is no encoder: it needs `encode(texts)` and `identity` (a ModelIdentity)"
        )
    now = datetime.now(UTC)
    named = isinstance(model, str)  # an object's code may have changed: its vectors are never taken up again
    run = open_run(
        out,
        model=encoder.identity.name,
        fingerprint=_fingerprint(encoder, criteria, cases) if named else uuid.uuid4().hex,
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
        again = "run the same command again to continue" if named else "an encoder object starts anew next time"
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
        suite=_suite_record(load_card(content), cases),
        criteria=criteria,
        criteria_sha256=criteria_hash(criteria),
        environment=_environment(),
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

    predicate = {
        "result": "PASSED" if evidence.assessment["released"] else "FAILED",
        "configuration": [{"name": "criteria", "digest": {"sha256": evidence.criteria_sha256}}],
    }
    envelope = attest({"evidence.json": record}, key, predicate_type=PREDICATE, predicate=predicate)
    run.write("evidence.dsse.json", json.dumps(envelope, indent=1))
    return None if document is None else sign_pdf(document, key, meaning="author")


def _criteria(content: Content, protocol: str | None, cases: Sequence[Case]) -> Criteria:
    present = by_hazard(cases)
    hazards = [h for h in load_hazards(content) if h.id in present]
    name, chosen = load_protocol(content, protocol, [h.id for h in hazards])
    fmea = load_fmea(content)
    if unrated := {h.id for h in hazards} - {mode.hazard for mode in fmea.failure_modes}:
        path = content.path("checklist/fmea.yaml")
        raise UsageError(f"{path}: no failure mode rates the severity of {', '.join(sorted(unrated))}")
    return Criteria(
        protocol_name=name,
        protocol=chosen,
        hazards=hazards,
        fmea=fmea,
        items=load_items(content),
    )


def _suite_record(card: SuiteCard, cases: Sequence[Case]) -> SuiteRecord:
    return SuiteRecord(
        title=card.title,
        version=card.suite_version,
        tier="written",
        counts={hazard: len(group) for hazard, group in by_hazard(cases).items()},
        authorship=card.authorship,
        second_reader=card.second_reader,
        clinician_review=card.clinician_review,
        not_covered=card.not_covered,
    )


def _fingerprint(encoder: Encoder, criteria: Criteria, cases: Sequence[Case]) -> str:
    identity = encoder.identity
    parts = [criteria_hash(criteria), identity.name, identity.revision, repr(sorted(identity.files.items())),
             repr(sorted(identity.settings.items())), VERSION]  # fmt: skip
    parts += [f"{case.id}\0{getattr(case, name)}" for case in cases for name in SENTENCES]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def _environment() -> dict[str, str]:
    from importlib.metadata import PackageNotFoundError, version

    found = {"python": platform.python_version(), "platform": f"{platform.system()} {platform.machine()}"}
    for name in ("numpy", "scipy", "torch", "transformers", "tokenizers", "sentence-transformers", "pydantic",
                 "rapidfuzz", "rfc8785", "pyhanko", "cryptography"):  # fmt: skip
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found | pdf.renderer_versions()
