"""Is a signed record what was signed, and are the pages beside it what it renders to? For every kind of record.

What follows from a record's own content is another question for each kind: `clinsafe.reports.qualification_check` and
`clinsafe.reports.rag_check`.
"""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Generic, TypeVar

from clinsafe.content import Content
from clinsafe.errors import ClinsafeError, ReportError
from clinsafe.reports import pdf
from clinsafe.reports.dsse import DsseCheck, check
from clinsafe.reports.pages import Pages, Rerender
from clinsafe.reports.pdfcheck import PdfCheck, attachment, check_pdf
from clinsafe.reports.verify import trusted_certificates
from clinsafe.reports.words import missing_words

R = TypeVar("R")
UNREADABLE = (LookupError, TypeError, ValueError, ArithmeticError, AttributeError)
"""What a template or a view raises on a record that was edited by hand."""


@dataclass(frozen=True)
class Form(Generic[R]):
    """How one kind of record is read.

    Attributes:
        name: as a message calls it.
        files: its two files, as a message names them.
        sidecar: file name of its DSSE envelope.
        parse: (bytes, name for messages) -> record; raises ReportError.
        predicate_type, predicate: what the sidecar has to say about a record.
        largest: bytes; more is no such record.
    """

    name: str
    files: str
    sidecar: str
    parse: Callable[[bytes, str], R]
    predicate_type: str
    predicate: Callable[[R], Mapping[str, Any]]
    largest: int = 50_000_000


@dataclass(frozen=True)
class Opened(Generic[R]):
    """A record taken out of its file.

    Attributes:
        data: its bytes.
        said: what its sidecar says of it and should not.
        first_revision: the PDF as it was before signing; None for a JSON file.
    """

    record: R
    data: bytes = field(repr=False)
    signature: PdfCheck | DsseCheck
    said: tuple[str, ...] = ()
    first_revision: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True)
class RecordCheck(Generic[R]):
    """Facts about one file; `valid` follows from them. `pages` is None for a JSON file, which has none."""

    file: Path
    signature: PdfCheck | DsseCheck
    record: R
    record_sha256: str
    faults: tuple[str, ...]
    pages: Pages | None

    @property
    def problems(self) -> tuple[str, ...]:
        """Everything that speaks against the file, one line each."""
        differ = self.pages is not None and self.pages.answer == "DIFFERENT"
        pages = ("the pages are not what the record renders to",) if differ else ()
        return (*self.signature.problems, *self.faults, *pages)

    @property
    def valid(self) -> bool:
        """No problem of any kind, and a signature that holds."""
        return self.signature.valid and not self.problems

    @property
    def accepted(self) -> bool:
        """Valid, and what the pages say was looked at: exit code 0."""
        return self.valid and (self.pages is None or self.pages.read)

    @property
    def rerender(self) -> Rerender:
        """IDENTICAL, DIFFERENT or NOT_COMPARABLE."""
        return "NOT_COMPARABLE" if self.pages is None else self.pages.answer

    @property
    def rerender_reason(self) -> str:
        """One line on `rerender`."""
        return "a JSON file has no pages" if self.pages is None else self.pages.reason

    @property
    def remarks(self) -> tuple[str, ...]:
        """What the verdict of a valid file adds; no fault of the file."""
        return ()

    @property
    def verdict(self) -> str:
        """One line."""
        if not self.valid:
            return f"INVALID: {'; '.join(self.problems) or 'the signature does not hold'}"
        key = ("DEVELOPMENT key: proves nothing about who signed",) if self.signature.development else ()
        what = "VALID"
        if self.pages is not None and not self.pages.read:
            what = "VALID RECORD, PAGES NOT READ" + ("" if self.accepted else ", NOT ACCEPTED")
        elif self.pages is not None and self.pages.answer == "NOT_COMPARABLE":
            what = "VALID RECORD, PAGES NOT COMPARED"
        return "; ".join((f"{what}: signed by {self.signature.signer}", *key, *self.remarks))

    def to_json(self) -> dict[str, Any]:
        """For ``--json``."""
        return {
            "file": self.file.name,
            "valid": self.valid,
            "accepted": self.accepted,
            "verdict": self.verdict,
            "signer": self.signature.signer,
            "development_key": self.signature.development,
            "record_sha256": self.record_sha256,
            "rerender": self.rerender,
            "problems": list(self.problems),
        }


def open_record(
    path: Path,
    trust: Sequence[Path],
    form: Form[R],
    *,
    trust_tsa: Sequence[Path] = (),
    attached: Callable[[bytes], bytes] = attachment,
) -> Opened[R]:
    """Read a signed PDF, or a JSON record with its DSSE sidecar, and check the signature.

    Args:
        path: the file.
        trust: certificates (PEM or DER) that are trusted; none means this user's development certificate.
        form: which kind of record.
        trust_tsa: certificates of timestamp authorities that are trusted beside them.
        attached: takes the record out of a PDF.

    Raises:
        ReportError: not such a record, or nothing in it can be read.
    """
    data, certificates = read_file(path, form), trusted_certificates(trust)
    if data[:1024].lstrip().startswith(b"{"):
        record = form.parse(data, path.name)
        signature, said = _sidecar(path, data, record, form, certificates)
        return Opened(record, data, signature, said)
    authorities = trusted_certificates(trust_tsa) if trust_tsa else []
    facts = check_pdf(data, certificates, trust_tsa=authorities)
    inside = attached(data)
    record = form.parse(inside, "the attached record")
    return Opened(record, inside, facts, first_revision=facts.first_revision or data)


def compare_pages(
    page: Callable[[bool], str],
    opened: Opened[Any],
    content: Content,
    *,
    other: Sequence[str],
    created: str,
    environment: Mapping[str, str],
) -> Pages:
    """Are the pages what the record renders to? Byte by byte with the same renderer, by their words without it.

    Args:
        page: (with charts?) -> the HTML of the record.
        opened: with a `first_revision`.
        content: where templates and fonts lie.
        other: files that shape the pages and are not installed here as the record names them.
        created: of the record.
        environment: of the record: versions of the renderer among others.
    """
    document = opened.first_revision or b""
    if other:
        named = ", ".join(name.rpartition("/")[2] for name in other)
        return Pages("NOT_COMPARABLE", f"the record was made with another {named}", read=False)
    changed = [n for n, v in pdf.renderer_versions().items() if environment.get(n) != v]
    try:
        if changed:
            return _words(page(False), document, ", ".join(changed))
        drawn = pdf.render(page(True), opened.data, created, content)
    except ClinsafeError as error:
        return Pages("NOT_COMPARABLE", str(error), read=False)
    except UNREADABLE as error:
        return Pages("DIFFERENT", f"the record cannot be rendered ({type(error).__name__})", read=False)
    if drawn == document:
        return Pages("IDENTICAL", "the pages are byte for byte what the record renders to", read=True)
    return Pages("DIFFERENT", "the pages differ from what the record renders to", read=False)


def read_file(path: Path, form: Form[Any]) -> bytes:
    """The bytes of a file that may be such a record.

    Raises:
        ReportError: not a file, not readable, or far too large.
    """
    try:
        if path.exists() and not path.is_file():
            raise ReportError(f"{path}: not a file; give {form.files}")
        if path.stat().st_size > form.largest:
            raise ReportError(f"{path}: larger than {form.largest // 1_000_000} MB, not a {form.name}")
        return path.read_bytes()
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror or error}") from error


def _words(page: str, document: bytes, changed: str) -> Pages:
    missing = missing_words(page, document)
    if missing:
        said = f"the pages do not say what the record says, for example {missing[0][:60]!r}"
        return Pages("DIFFERENT", said, read=False)
    reason = f"another version of {changed} is installed here; every word was found in the pages, in order"
    return Pages("NOT_COMPARABLE", reason, read=True)


def _sidecar(
    path: Path, data: bytes, record: R, form: Form[R], certificates: Sequence[bytes]
) -> tuple[DsseCheck, tuple[str, ...]]:
    from cryptography import x509

    beside = path.with_name(form.sidecar)
    if not beside.is_file():
        return DsseCheck(problems=(f"not signed: there is no {form.sidecar} beside the record",)), ()
    try:
        envelope = json.loads(read_file(beside, form))
    except (ValueError, RecursionError):
        envelope = {}
    trust = [x509.load_der_x509_certificate(c) for c in certificates]
    found = check(envelope, {path.name: data}, trust)
    try:
        payload = json.loads(base64.b64decode(envelope["payload"]))
        said = payload["predicateType"], payload["predicate"]
    except (ValueError, KeyError, TypeError, RecursionError):
        return found, ()  # the signature check has said so
    if said != (form.predicate_type, form.predicate(record)):
        return found, ("the sidecar's statement is not what the record says",)
    return found, ()
