"""``clinsafe report verify`` on a RAG evaluation: is it what was signed, and does it say what was measured?

Every figure is derived again from the questions' values, and the judge's standing, on which CUE hangs, from the judge's
audit in the record.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

from clinsafe.content import Content
from clinsafe.errors import ClinsafeError
from clinsafe.rag.figures import figures
from clinsafe.reports import rag_record as records
from clinsafe.reports import rag_render
from clinsafe.reports.approvals import CLOCKS
from clinsafe.reports.dsse import DsseCheck
from clinsafe.reports.evidence import sha256
from clinsafe.reports.pages import Pages
from clinsafe.reports.pdfcheck import PdfCheck
from clinsafe.reports.rag_record import RagEvidence, RagSystem
from clinsafe.reports.rag_standing import judge_faults, standing_of
from clinsafe.reports.rag_statement import PREDICATE, predicate
from clinsafe.reports.record_check import Form, Opened, RecordCheck, compare_pages, open_record
from clinsafe.stats import figure_to_json

SLACK = 1e-9  # the last bits of a bootstrap depend on the machine's linear algebra
LARGEST = 300_000_000  # bytes

FORM = Form(
    name="RAG evaluation",
    files=f"{records.PDF_NAME} or {records.JSON_NAME}",
    sidecar=records.SIDECAR,
    parse=records.from_bytes,
    predicate_type=PREDICATE,
    predicate=predicate,
    largest=LARGEST,
)


@dataclass(frozen=True)
class RagCheck(RecordCheck[RagEvidence]):
    """Facts about one file; `valid` follows from them.

    Attributes:
        figures: how many stored figures were derived again.
        record_only: a valid record is accepted though its pages could not be read here.
    """

    figures: int
    record_only: bool = False

    @property
    def accepted(self) -> bool:
        """Valid, and what the pages say was looked at or need not be: exit code 0."""
        return super().accepted or (self.valid and self.record_only)

    @property
    def remarks(self) -> tuple[str, ...]:
        """A fake is valid as a file, and is said."""
        return ("a FAKE took part: nothing of it may be published",) if self.record.fake else ()

    @property
    def time_text(self) -> str:
        """When it was signed, and by whose clock."""
        signature = self.signature
        if isinstance(signature, DsseCheck):
            return "not stated: a sidecar carries no time"
        if signature.signed_at is None:
            return "not stated"
        claimed = f"{signature.signed_at:%Y-%m-%d %H:%M:%S} UTC by the signer's own clock"
        if signature.timestamp is None:
            return f"{claimed}; no timestamp authority stands behind it"
        trusted = "trusted" if signature.timestamp_trusted else "NOT trusted, no credit given"
        return f"{claimed}; timestamp {signature.timestamp:%Y-%m-%d %H:%M:%S} UTC ({trusted})"

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return super().to_json() | {
            "record": records.KIND,
            "figures_derived": self.figures,
            "rerender_reason": self.rerender_reason,
            "signed": self.time_text,
            "fake": self.record.fake,
        }


def check_rag(
    path: Path, trust: Sequence[Path] = (), *, trust_tsa: Sequence[Path] = (), record_only: bool = False
) -> RagCheck:
    """Verify a signed ``rag.pdf``, or a ``rag.json`` with its DSSE sidecar.

    Args:
        path: the file.
        trust: certificates (PEM or DER) that are trusted; none means this user's development certificate.
        trust_tsa: certificates of timestamp authorities that are trusted beside them.
        record_only: accept a valid record whose pages could not be read here.

    Raises:
        ReportError: not such a record, or nothing in it can be read.
    """
    content = Content()
    opened = open_record(path, trust, FORM, trust_tsa=trust_tsa)
    record = opened.record
    return RagCheck(
        file=path,
        signature=opened.signature,
        record=record,
        record_sha256=sha256(opened.data),
        faults=(*_faults(opened, content), *differences(record), *opened.said),
        pages=None if opened.first_revision is None else _pages(opened, content),
        figures=sum(len(system.figures) for system in record.systems),
        record_only=record_only,
    )


def _faults(opened: Opened[RagEvidence], content: Content) -> list[str]:
    """What the record says of itself and is not so."""
    record, found = opened.record, []
    if records.to_bytes(record) != opened.data:
        found.append("the record is not in canonical form: it was edited, or written by another program")
    if records.settings_hash(record.settings) != record.settings_sha256:
        found.append("the settings are not those whose hash was fixed before the run")
    questions = len({item.id for system in record.systems for item in system.items})
    if record.questions != questions:
        found.append(f"the record says {record.questions} questions and holds {questions}")
    signature = opened.signature
    signed = signature.signed_at if isinstance(signature, PdfCheck) else None
    if signed is not None and signed < datetime.fromisoformat(record.created) - CLOCKS:
        found.append(f"the claimed time of signing, {signed:%Y-%m-%d}, lies before the record was written")
    return found + judge_faults(record, content)


def differences(record: RagEvidence) -> list[str]:
    """Stored figures that the questions' values do not yield, one line each."""
    found = []
    for system in record.systems:
        try:
            standing = standing_of(record.judge, system.items)
            derived = figures(system.items, record.settings, standing)
        except (ClinsafeError, ValueError) as error:
            found.append(f"{system.label}: no figure can be derived: {error}")
            continue
        found += _differing(system, {key: figure_to_json(figure) for key, figure in derived.items()})
    return found


def _differing(system: RagSystem, derived: Mapping[str, Mapping[str, Any]]) -> list[str]:
    found = []
    for key in sorted({*derived, *system.figures}):
        said, yields = system.figures.get(key), derived.get(key)
        if said is None:
            found.append(f"{system.label}: {key} is left out")
        elif yields is None:
            found.append(f"{system.label}: {key} does not follow from the questions")
        else:
            names = sorted(name for name in {*said, *yields} if not _same(said.get(name), yields.get(name)))
            found += [
                f"{system.label}: {key}.{name} says {_told(said, name)}, the questions yield {_told(yields, name)}"
                for name in names[:1]
            ]
    return found


def _same(said: Any, yields: Any) -> bool:
    numbers = all(isinstance(one, int | float) and not isinstance(one, bool) for one in (said, yields))
    return bool(abs(said - yields) <= SLACK) if numbers else said == yields


def _told(parts: Mapping[str, Any], name: str) -> str:
    return str(parts.get(name, "nothing"))[:80]


def _pages(opened: Opened[RagEvidence], content: Content) -> Pages:
    record = opened.record
    here = rag_render.content_hashes(content)
    return compare_pages(
        lambda charts: rag_render.html(record, content, charts=charts),
        opened,
        content,
        other=[name for name, digest in here.items() if record.content.get(name) != digest],
        created=record.created,
        environment=record.environment,
    )
