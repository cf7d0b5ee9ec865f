"""``clinsafe report verify``: is this the report that was signed, and does it say what was measured?

Four questions, each answered by itself: is the signature good and the file whole; is the record complete; do the
per-case scores yield every stored figure and verdict; does rendering the record again give the very pages that
were signed. The last needs the same renderer; where that is not here, the answer is NOT_COMPARABLE, never a pass.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, TypeAlias

from clinsafe.benchmarks.suite import FOLDER, load_card, load_suite
from clinsafe.content import Content, sha256_file
from clinsafe.errors import ClinsafeError, ReportError
from clinsafe.reports import pdf
from clinsafe.reports.assess import differences
from clinsafe.reports.dsse import DsseCheck, check
from clinsafe.reports.evidence import CaseRecord, Evidence, criteria_hash, from_bytes, sha256, to_bytes
from clinsafe.reports.keys import default_folder
from clinsafe.reports.pdfcheck import PdfCheck, attachment, check_pdf
from clinsafe.reports.render import FONTS, TEMPLATES, html

Rerender: TypeAlias = Literal["IDENTICAL", "DIFFERENT", "NOT_COMPARABLE"]
LARGEST_FILE = 300_000_000
SIDECAR = "evidence.dsse.json"


@dataclass(frozen=True)
class Verification:
    """Facts about one file; `verdict` and `valid` follow from them.

    `figures` counts the stored figures and verdicts that were derived again; `faults` are those that differ.
    """

    file: Path
    signature: PdfCheck | DsseCheck
    evidence: Evidence
    evidence_sha256: str
    incomplete: tuple[str, ...]
    figures: int
    faults: tuple[str, ...]
    rerender: Rerender
    rerender_reason: str

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that speaks against the file, one line each."""
        pages = ("the pages are not what the evidence renders to",) if self.rerender == "DIFFERENT" else ()
        return (*self.signature.problems, *self.incomplete, *self.faults, *pages)

    @property
    def valid(self) -> bool:
        """No problem of any kind. A page comparison that could not be made is said, but is not a fault."""
        return not self.problems

    @property
    def verdict(self) -> str:
        """One line."""
        if not self.valid:
            more = len(self.problems) - 1
            return f"INVALID: {self.problems[0]}{f' (and {more} more)' if more else ''}"
        key = "; DEVELOPMENT key: proves nothing about who signed" if self.signature.development else ""
        pages = "" if self.rerender == "IDENTICAL" else "; pages not compared"
        suite = "" if suite_compared(self.evidence) else "; completeness not compared (another suite)"
        return f"VALID: signed by {self.signature.signer}{key}{pages}{suite}"

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "file": self.file.name,
            "valid": self.valid,
            "verdict": self.verdict,
            "signer": self.signature.signer,
            "development_key": self.signature.development,
            "evidence_sha256": self.evidence_sha256,
            "figures_derived": self.figures,
            "rerender": self.rerender,
            "rerender_reason": self.rerender_reason,
            "problems": list(self.problems),
        }


def verify(path: Path, trust: Sequence[Path] = ()) -> Verification:
    """Verify a signed ``report.pdf``, or an ``evidence.json`` with its DSSE sidecar.

    Args:
        path: the file.
        trust: certificates (PEM or DER) that are trusted; none means this user's development certificate.

    Raises:
        ReportError: not a report, or nothing in it can be read.
    """
    data = _read(path)
    certificates = trusted_certificates(trust)
    signature: PdfCheck | DsseCheck
    if data[:1024].lstrip().startswith(b"{"):
        record, signature = data, _check_sidecar(path, data, certificates)
        evidence = from_bytes(record, path.name)
        pages: tuple[Rerender, str] = ("NOT_COMPARABLE", "an evidence file has no pages")
    else:
        facts = check_pdf(data, certificates)
        record, signature = attachment(data), facts
        evidence = from_bytes(record)
        pages = _rerender(evidence, record, facts.first_revision or data)
    return Verification(
        file=path,
        signature=signature,
        evidence=evidence,
        evidence_sha256=sha256(record),
        incomplete=tuple(_incomplete(evidence, record)),
        figures=sum(len(s.figures) for s in evidence.systems) + len(evidence.assessment.get("gates", [])),
        faults=tuple(differences(evidence)),
        rerender=pages[0],
        rerender_reason=pages[1],
    )


def trusted_certificates(paths: Sequence[Path]) -> list[bytes]:
    """DER certificates to trust; raises ReportError naming a file that is none."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    development = default_folder() / "development.pem"
    chosen = list(paths) or ([development] if development.is_file() else [])
    found = []
    for path in chosen:
        data = _read(path)
        try:
            loader = (
                x509.load_pem_x509_certificate if b"-----BEGIN" in data else x509.load_der_x509_certificate
            )
            found.append(loader(data).public_bytes(Encoding.DER))
        except ValueError as error:
            raise ReportError(f"{path}: not a certificate in PEM or DER form") from error
    return found


def _check_sidecar(path: Path, record: bytes, certificates: Sequence[bytes]) -> DsseCheck:
    from cryptography import x509

    sidecar = path.with_name(SIDECAR)
    if not sidecar.is_file():
        return DsseCheck(problems=(f"not signed: there is no {SIDECAR} beside the evidence",))
    try:
        envelope = json.loads(_read(sidecar))
    except ValueError:
        envelope = {}
    trust = [x509.load_der_x509_certificate(c) for c in certificates]
    return check(envelope, {path.name: record}, trust)


def _incomplete(evidence: Evidence, record: bytes) -> list[str]:
    """What is missing from the record: its canonical form, criteria that hash, cases that are not there."""
    faults = []
    if to_bytes(evidence) != record:
        faults.append("the record is not in canonical form: it was edited, or written by another program")
    if criteria_hash(evidence.criteria) != evidence.criteria_sha256:
        faults.append("the acceptance criteria are not the ones that were hashed before the run")
    for system in evidence.systems:
        ids = [case.id for case in system.cases]
        if len(set(ids)) < len(ids):
            faults.append(f"{system.identity.name}: a case is recorded twice")
        if dict(Counter(case.hazard for case in system.cases)) != evidence.suite.counts:
            faults.append(f"{system.identity.name}: the number of cases differs from the suite's")
        faults += _missing_cases(evidence, system.cases, system.identity.name)
    return faults


def _missing_cases(evidence: Evidence, cases: Sequence[CaseRecord], name: str) -> list[str]:
    """Compared with the installed suite; a record made with another one cannot be called complete."""
    content = Content()
    hazards = [h for h in evidence.suite.counts if h in load_card(content).counts]
    files = [f"{FOLDER}/{hazard}.jsonl" for hazard in hazards]
    same = all(sha256_file(content.path(f)) == evidence.content.get(f) for f in files)
    if len(hazards) < len(evidence.suite.counts) or not same:
        return []
    expected = {case.id: case for case in load_suite(content, hazards=hazards)}
    missing = sorted(set(expected) - {case.id for case in cases})
    faults = (
        [f"{name}: {len(missing)} case(s) of the suite are missing, first {missing[0]}"] if missing else []
    )
    for case in cases:
        true = expected.get(case.id)
        if true is not None and (case.hazard, case.subtype, case.stratum, case.factor) != (
            true.hazard, true.subtype, true.stratum, true.factor,
        ):  # fmt: skip
            faults.append(f"{name}: case {case.id} is not described as in the suite")
            break
    return faults


def suite_compared(evidence: Evidence) -> bool:
    """Whether the installed suite is the very one of the record, so that no case can be missing unseen."""
    content = Content()
    files = [f"{FOLDER}/{hazard}.jsonl" for hazard in load_card(content).counts]
    return set(evidence.suite.counts) <= set(load_card(content).counts) and all(
        sha256_file(content.path(f)) == evidence.content.get(f)
        for f in files
        if Path(f).stem in evidence.suite.counts
    )


def _rerender(evidence: Evidence, record: bytes, first_revision: bytes) -> tuple[Rerender, str]:
    here = pdf.renderer_versions()
    changed = [n for n, v in here.items() if evidence.environment.get(n) != v]
    if changed:
        return "NOT_COMPARABLE", f"another version of {', '.join(changed)} is installed here"
    content = Content()
    other = [n for n in (*TEMPLATES, *FONTS) if evidence.content.get(n) != sha256_file(content.path(n))]
    if other:
        return "NOT_COMPARABLE", f"the report was made with another {', '.join(other)}"
    try:
        pages = pdf.render(html(evidence, content), record, evidence.created, content)
    except ClinsafeError as error:
        return "NOT_COMPARABLE", str(error)
    except Exception as error:  # a record edited by hand may lack what the template needs
        return "DIFFERENT", f"the record cannot be rendered ({type(error).__name__})"
    if pages == first_revision:
        return "IDENTICAL", "the pages are byte for byte what the evidence renders to"
    return "DIFFERENT", "the pages differ from what the evidence renders to"


def _read(path: Path) -> bytes:
    try:
        if path.stat().st_size > LARGEST_FILE:
            raise ReportError(f"{path}: larger than {LARGEST_FILE // 1_000_000} MB, not a clinsafe report")
        return path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror or error}") from error
