"""Add an approval to a signed report: what would not check is never written, and nothing there is lost."""

from __future__ import annotations

import os
import time
import unicodedata
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path

from pydantic import ValidationError

from clinsafe.errors import ReportError, UsageError
from clinsafe.reports.approvals import (
    LARGEST_REPORT,
    PREDICATE_TYPE,
    Approvals,
    Said,
    approvals_path,
    digest,
    examine,
    load,
    read,
    why,
)
from clinsafe.reports.dsse import attest
from clinsafe.reports.evidence import canonical
from clinsafe.reports.pdfcheck import check_pdf
from clinsafe.reports.sign import Meaning, SigningKey

PATIENCE = 10.0  # seconds to wait for another approval that is being written


def add_approval(
    report: Path, key: SigningKey, *, name: str, role: str, meaning: Meaning, trust: Sequence[bytes],
    comment: str = "", when: datetime | None = None,
) -> Path:  # fmt: skip
    """Sign an approval of `report` and append it; returns the sidecar's path.

    Args:
        report: a signed PDF.
        key: the approver's.
        name, role: printed name (21 CFR 11.50) and role; 1 to 200 printable characters.
        meaning: author, review, approval or responsibility.
        trust: certificates (DER) of whom the approver trusts; the report's signer must be among them.
        comment: at most 2,000 printable characters.
        when: the time to claim (default: the clock); without a zone, local time.

    Raises:
        UsageError: a text that does not fit.
        ReportError: the report is unsigned, altered or by an untrusted signer; its approvals are damaged or of
            another report; the approval would not hold (certificate or time); another is being written; the file
            cannot be written. Whatever was there stays as it was.
    """
    now = datetime.now(UTC)
    first = _said(name, role, meaning, comment, (when or now).astimezone(UTC))
    document = read(report, LARGEST_REPORT)
    pdf = check_pdf(document, trust, now=now)
    if not pdf.valid:
        raise ReportError(f"{report}: only a whole, signed report of a trusted signer is approved; "
                          f"{pdf.problems[0]}")  # fmt: skip
    sidecar = approvals_path(report)

    def longer(before: bytes | None) -> bytes:
        found = Approvals((), ()) if before is None else examine(before, document, trust, pdf, now)
        if not found.intact:
            fault = (*found.problems, *(line for e in found.entries if not e.bound for line in e.problems))[0]
            raise ReportError(f"{sidecar}: nothing can be added to damaged approvals or to those of another "
                              f"report ({fault}); put the file aside and have everyone sign again")  # fmt: skip
        lines = (before or b"").split(b"\n")[:-1]
        place = {"number": len(lines) + 1, "previous": digest(lines[-1]) if lines else ""}
        predicate = first.model_dump() | place
        envelope = attest({report.name: document}, key, predicate_type=PREDICATE_TYPE, predicate=predicate)
        after = (before or b"") + canonical(envelope) + b"\n"
        made = examine(after, document, [*trust, key.certificate], pdf, now)
        if not (made.intact and made.entries and made.entries[-1].valid):
            fault = (*made.problems, *(line for e in made.entries[-1:] for line in e.problems))[0]
            raise ReportError(f"{report}: this approval would not hold, so it was not added: {fault}")
        return after

    _rewrite(sidecar, longer)
    return sidecar


def _said(name: str, role: str, meaning: str, comment: str, when: datetime) -> Said:
    """The predicate without its place; raises UsageError naming the option that does not fit."""
    texts = {"name": name, "role": role, "comment": comment}
    plain = {field: unicodedata.normalize("NFC", text.strip()) for field, text in texts.items()}
    moment = when.replace(microsecond=0).isoformat(timespec="seconds")
    try:
        return Said.model_validate({**plain, "meaning": meaning, "time": moment, "number": 1, "previous": ""})
    except ValidationError as error:
        raise UsageError(f"an approval's {why(error)}") from error


def _rewrite(path: Path, make: Callable[[bytes | None], bytes]) -> None:
    """Replace a file by what `make` gives for its content, whole or not at all, one writer at a time.

    The new file is made under a name that only one can have, which is the lock, and then takes the old one's
    place: works on shared folders and on Windows, and leaves nothing behind.
    """
    lock, patience = Path(f"{path}.lock"), time.monotonic() + PATIENCE
    try:
        handle = _claim(lock, patience)
        try:
            with os.fdopen(handle, "wb") as stream:
                stream.write(make(load(path)))
                stream.flush()
                os.fsync(stream.fileno())
            if path.exists():
                lock.chmod(path.stat().st_mode & 0o777)
            lock.replace(path)
        except BaseException:
            lock.unlink(missing_ok=True)
            raise
    except OSError as error:
        raise ReportError(
            f"{path}: cannot be written ({error.strerror or error}); nothing was added"
        ) from error


def _claim(lock: Path, until: float) -> int:
    """An open, new file; waits while another one has it."""
    while True:
        try:
            return os.open(lock, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
        except FileExistsError:
            if time.monotonic() > until:
                raise ReportError(f"{lock}: another approval is being written; if none is, for it was stopped "
                                  "half-way, delete this file") from None  # fmt: skip
            time.sleep(0.05)
