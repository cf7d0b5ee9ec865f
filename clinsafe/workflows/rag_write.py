"""Writing a RAG evaluation down: the record first, so that whatever fails afterwards, the measurement is kept."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from clinsafe.content import Content
from clinsafe.errors import ClinsafeError, MissingDependency, RenderError, ReportError
from clinsafe.reports import pdf as renderer
from clinsafe.reports import rag_render
from clinsafe.reports.rag_record import JSON_NAME, PDF_NAME, SIDECAR, RagEvidence, from_bytes, to_bytes
from clinsafe.reports.rag_statement import PREDICATE, predicate
from clinsafe.workflows.runs import RunFolder
from clinsafe.workflows.write import Stage

if TYPE_CHECKING:
    from clinsafe.reports.sign import SigningKey
    from clinsafe.workflows.rag_command import Evaluated

HTML_NAME = "rag.html"
OURS = (JSON_NAME, PDF_NAME, SIDECAR, HTML_NAME)


def write_rag(
    evidence: RagEvidence,
    content: Content,
    folder: RunFolder,
    key: SigningKey | None,
    stage: Stage,
    pdf: bool = True,
) -> Evaluated:
    """Write record, HTML, PDF and signatures into the run folder.

    Args:
        evidence: the record; the hashes of what shapes its pages are added to it.
        content: where templates, fonts and rules lie.
        folder: the open run folder; closed afterwards.
        key: who signs, or None.
        stage: progress callback.
        pdf: False leaves the PDF out.

    Raises:
        ClinsafeError: the report could not be signed as asked; the unsigned one is kept.
    """
    from clinsafe.workflows.rag_command import Evaluated

    notes: list[str] = []
    record = completed(evidence, content)
    data = to_bytes(record)
    record_path = folder.write(JSON_NAME, data)
    stage("Rendering", 0, 0)
    page = rag_render.html(record, content)
    html_path = folder.write(HTML_NAME, page)
    document: bytes | None = None
    pdf_path = None
    if pdf:
        try:
            document = renderer.render(page, data, record.created, content)
            pdf_path = folder.write(PDF_NAME, document)
        except (MissingDependency, RenderError) as error:
            notes.append(str(error))
    if key is not None:
        stage("Signing", 0, 0)
        try:
            notes += _sign(record, data, document, key, folder)
        except ClinsafeError as error:
            _finish(folder)
            raise ReportError(f"{error}; the report in {folder.path} is kept unsigned") from None
    _finish(folder)
    return Evaluated(
        evidence=record,
        folder=folder.path,
        record=record_path,
        html=html_path,
        pdf=pdf_path,
        signed=key.name if key else None,
        notes=notes,
    )


def completed(evidence: RagEvidence, content: Content) -> RagEvidence:
    """The record with the hashes of everything that shapes its pages, as every reader will see it."""
    shaped = {**evidence.content, **rag_render.content_hashes(content)}
    return from_bytes(to_bytes(evidence.model_copy(update={"content": dict(sorted(shaped.items()))})))


def _sign(
    record: RagEvidence, data: bytes, document: bytes | None, key: SigningKey, folder: RunFolder
) -> list[str]:
    """Sidecar and, where there is one, the PDF; notes on what could not be drawn."""
    from clinsafe.reports.dsse import attest
    from clinsafe.reports.sign import sign_pdf
    from clinsafe.reports.stamp import Stamp, can_stamp

    envelope = attest({JSON_NAME: data}, key, predicate_type=PREDICATE, predicate=predicate(record))
    folder.write(SIDECAR, json.dumps(envelope, indent=1))
    if document is None:
        return []
    stamp = Stamp() if can_stamp() else None
    folder.write(PDF_NAME, sign_pdf(document, key, meaning="author", stamp=stamp))
    return (
        []
        if stamp
        else ["the signature is invisible; to print it on the page: pip install 'clinsafe[report]'"]
    )


def _finish(folder: RunFolder) -> None:
    """Close the folder; files of an earlier run in it that were not written again go."""
    for name in set(OURS) - folder.written:
        (folder.path / name).unlink(missing_ok=True)
    folder.finish()
