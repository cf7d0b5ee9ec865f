"""Writing an audit down: evidence first, so that whatever fails afterwards, the measurement is kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from clinsafe.content import Content
from clinsafe.errors import ClinsafeError, MissingDependency, RenderError, ReportError
from clinsafe.reports import pdf
from clinsafe.reports.evidence import PREDICATE, Evidence, RunStep, predicate, to_bytes
from clinsafe.reports.render import html
from clinsafe.reports.sign import prepare
from clinsafe.workflows.runs import RunFolder

if TYPE_CHECKING:
    from pyhanko.sign.timestamps import TimeStamper

    from clinsafe.reports.sign import SigningKey

Stage: TypeAlias = Callable[[str, int, int], None]
"""Called with (what is being done, steps done, steps in all)."""


def silent(_what: str, _done: int, _total: int) -> None:
    """A `Stage` that tells nobody."""


class Steps:
    """A `Stage` that passes everything on, and keeps when each step began."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self.taken: list[RunStep] = []

    def __call__(self, what: str, done: int, total: int) -> None:
        """Note the step if it is a new one, and pass it on."""
        if not self.taken or self.taken[-1].what != what:
            self.taken.append(RunStep(at=datetime.now(UTC).isoformat(timespec="seconds"), what=what))
        self._stage(what, done, total)


def write(
    evidence: Evidence,
    content: Content,
    run: RunFolder,
    key: SigningKey | None,
    stage: Stage,
    timestamper: TimeStamper | None = None,
) -> tuple[Path | None, Path, str | None, list[str]]:
    """Write evidence, HTML, PDF and signatures into the run folder.

    Args:
        evidence: as it is read back from its own bytes (canonical JSON sorts keys), so that the pages come out equal
            for every reader.
        content: where templates and fonts lie.
        run: the open run folder; closed afterwards.
        key: who signs, or None.
        stage: progress callback.
        timestamper: a timestamp authority, or None.

    Returns:
        (the PDF or None, the HTML, the name on the key or None, notes on what could not be made).

    Raises:
        ClinsafeError: the report could not be signed as asked; the unsigned one is kept.
    """
    notes: list[str] = []
    record = to_bytes(evidence)
    run.write("evidence.json", record)
    page = html(evidence, content)
    html_path = run.write("report.html", page)
    pdf_path: Path | None = None
    document: bytes | None = None
    try:
        with ThreadPoolExecutor(
            1
        ) as pool:  # the renderer is another process: meanwhile import what signing needs
            ready = pool.submit(prepare) if key is not None else None
            document = pdf.render(page, record, evidence.created, content)
            if ready is not None:
                ready.result()
        pdf_path = run.write("report.pdf", document)
    except (MissingDependency, RenderError) as error:
        notes.append(str(error))
    if key is not None:
        stage("Signing", 0, 0)
        try:
            _sign_record(record, evidence, key, run)
            if document is not None:
                notes += _sign_pages(document, key, run, timestamper)
        except ClinsafeError as error:
            run.finish()
            raise ReportError(
                f"{error}; the report in {run.path} is kept unsigned: `clinsafe report sign`"
            ) from None
    run.finish()
    return pdf_path, html_path, key.name if key else None, notes


def _sign_record(record: bytes, evidence: Evidence, key: SigningKey, run: RunFolder) -> None:
    from clinsafe.reports.dsse import attest

    envelope = attest({"evidence.json": record}, key, predicate_type=PREDICATE, predicate=predicate(evidence))
    run.write("evidence.dsse.json", json.dumps(envelope, indent=1))


def _sign_pages(
    document: bytes, key: SigningKey, run: RunFolder, timestamper: TimeStamper | None
) -> list[str]:
    """Sign the PDF, with a visible stamp where one can be drawn; notes on what could not be."""
    from clinsafe.reports.sign import sign_pdf
    from clinsafe.reports.stamp import Stamp, can_stamp

    stamp = Stamp() if can_stamp() else None
    signed = sign_pdf(document, key, meaning="author", stamp=stamp, timestamper=timestamper)
    run.write("report.pdf", signed)
    return (
        []
        if stamp
        else ["the signature is invisible; to print it on the page: pip install 'clinsafe[report]'"]
    )
