"""Writing an audit down: evidence first, so that whatever fails afterwards, the measurement is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from clinsafe.content import Content
from clinsafe.errors import MissingDependency, RenderError
from clinsafe.reports import pdf
from clinsafe.reports.evidence import PREDICATE, Evidence, predicate, to_bytes
from clinsafe.reports.render import html
from clinsafe.workflows.runs import RunFolder

if TYPE_CHECKING:
    from clinsafe.reports.sign import SigningKey

Stage: TypeAlias = Callable[[str, int, int], None]
"""Called with (what is being done, steps done, steps in all)."""


def silent(_what: str, _done: int, _total: int) -> None:
    """A `Stage` that tells nobody."""


def write(
    evidence: Evidence, content: Content, run: RunFolder, key: SigningKey | None, stage: Stage
) -> tuple[Path | None, Path, str | None, list[str]]:
    """Write evidence, HTML, PDF and signatures into the run folder.

    Args:
        evidence: as it is read back from its own bytes (canonical JSON sorts keys), so that the pages come out equal
            for every reader.

    Returns:
        (the PDF or None, the HTML, the name on the key or None, notes on what could not be made).
    """
    notes: list[str] = []
    record = to_bytes(evidence)
    run.write("evidence.json", record)
    page = html(evidence, content)
    html_path = run.write("report.html", page)
    document: bytes | None = None
    try:
        document = pdf.render(page, record, evidence.created, content)
    except (MissingDependency, RenderError) as error:
        notes.append(str(error))
    if key is not None:
        stage("Signing", 0, 0)
        document = _sign(record, document, evidence, key, run)
    pdf_path = run.write("report.pdf", document) if document is not None else None
    run.finish()
    return pdf_path, html_path, key.name if key else None, notes


def _sign(
    record: bytes, document: bytes | None, evidence: Evidence, key: SigningKey, run: RunFolder
) -> bytes | None:
    from clinsafe.reports.dsse import attest
    from clinsafe.reports.sign import sign_pdf

    envelope = attest({"evidence.json": record}, key, predicate_type=PREDICATE, predicate=predicate(evidence))
    run.write("evidence.dsse.json", json.dumps(envelope, indent=1))
    return None if document is None else sign_pdf(document, key, meaning="author")
