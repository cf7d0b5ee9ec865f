"""Countersignatures: who approved a signed report, in which role, and who is missing.

A signed report can never grow (see `pdfcheck`), so approvals lie beside it, in ``<report>.approvals.jsonl``: one
DSSE envelope a line, each over the SHA-256 of the signed PDF as it is on disk. Every line carries its number and
the SHA-256 of the line before it (without its line break), so an earlier line that was removed, moved or edited
shows. Lines cut off at the end leave a shorter file that holds: whoever stood there is then missing.

The role is the signer's own word. Whoever trusts a certificate decides whose word that is.
"""

from __future__ import annotations

import base64
import os
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from pydantic import AfterValidator, Field, StringConstraints, ValidationError

from clinsafe.content import Record
from clinsafe.errors import ReportError
from clinsafe.reports.dsse import check
from clinsafe.reports.evidence import canonical
from clinsafe.reports.pdfcheck import PdfCheck, check_pdf
from clinsafe.reports.sign import Holder, Meaning, holder_of, needs

if TYPE_CHECKING:
    from cryptography import x509

SUFFIX = ".approvals.jsonl"
PREDICATE_TYPE = "urn:clinsafe:approval:v1"
MOST_LINES = 100
LARGEST_LINE = 65_536  # bytes; a line with an RSA-4096 certificate has about 6,000
LARGEST_FILE = MOST_LINES * (LARGEST_LINE + 1)
LARGEST_REPORT = 300_000_000  # bytes
CLOCKS = timedelta(minutes=5)  # two people's clocks may differ by as much


def _plain(text: str) -> str:
    if not text.isprintable() or text != text.strip():
        raise ValueError("must be printable text on one line, without spaces around it")
    return text


def _moment(text: str) -> str:
    moment = datetime.fromisoformat(text)
    if moment.utcoffset() != timedelta() or moment.isoformat(timespec="seconds") != text:
        raise ValueError("must be a UTC time to the second, like 2026-11-30T09:00:00+00:00")
    return text


Name = Annotated[str, StringConstraints(min_length=1, max_length=200), AfterValidator(_plain)]
Comment = Annotated[str, StringConstraints(max_length=2000), AfterValidator(_plain)]


class Said(Record):
    """The predicate: what one person signs about the report."""

    name: Name
    role: Name
    meaning: Meaning
    time: Annotated[str, AfterValidator(_moment)]
    comment: Comment
    number: int = Field(ge=1, le=MOST_LINES)
    previous: str = Field(pattern=r"^([0-9a-f]{64})?$")


class _Subject(Record):
    name: str
    digest: dict[str, str]


class _Statement(Record):
    type_: str = Field(alias="_type")
    subject: list[_Subject] = Field(min_length=1, max_length=1)
    predicate_type: Literal["urn:clinsafe:approval:v1"] = Field(alias="predicateType")
    predicate: Said


class _Signature(Record):
    keyid: str
    sig: str
    cert: str


class _Envelope(Record):
    payload: str
    payload_type: str = Field(alias="payloadType")
    signatures: list[_Signature] = Field(min_length=1, max_length=1)


@dataclass(frozen=True)
class Approval:
    """One line as it was found. Believe `name`, `role` and the rest only where `valid`.

    Attributes:
        name, role, meaning, comment: as the signer gave them; printable, one line each.
        time: the time that the signer claims, UTC.
        signer: the certificate's common name. `fingerprint`: its SHA-256 (hex), "" where nothing is proven.
        development: signed with a development key, which proves nothing about who signed (a note, no problem).
        bound: signed by the key it names, about this very report, in its place in the order. Says nothing about
            trust.
        problems: one plain line each.
    """

    name: str
    role: str
    meaning: Meaning
    time: datetime
    comment: str
    signer: str
    fingerprint: str
    development: bool
    bound: bool
    problems: tuple[str, ...]

    @property
    def valid(self) -> bool:
        """Bound, by a trusted signer, and nothing else speaks against it."""
        return self.bound and not self.problems


@dataclass(frozen=True)
class Approvals:
    """All lines, in their order. No file is no fault: ask `missing` whether anyone has approved.

    `problems`: of the file as a whole. `notes`: what a reader should know and is no fault.
    """

    entries: tuple[Approval, ...]
    problems: tuple[str, ...]
    notes: tuple[str, ...] = ()

    @property
    def valid(self) -> bool:
        """Nothing speaks against anything in the file."""
        return not self.problems and all(entry.valid for entry in self.entries)

    @property
    def intact(self) -> bool:
        """Every line is about this report and in its place, whoever signed it: another may be added."""
        return not self.problems and all(entry.bound for entry in self.entries)

    @property
    def all_problems(self) -> tuple[str, ...]:
        """Of the file and of every entry, one line each."""
        of_entries = (f"{e.role} ({e.name}): {line}" for e in self.entries for line in e.problems)
        return (*self.problems, *of_entries)

    def roles(self) -> list[str]:
        """Roles of the valid entries, in their order, each once. Those of development keys count; see `notes`."""
        return list({_folded(e.role): e.role for e in reversed(self.entries) if e.valid}.values())[::-1]

    def missing(self, required: Sequence[str]) -> list[str]:
        """Those of `required` in whose role nobody validly signed; capitals and outer spaces do not count."""
        there = {_folded(role) for role in self.roles()}
        wanted = {_folded(role): role.strip() for role in reversed(required)}
        return [role for folded, role in reversed(wanted.items()) if folded not in there]


def approvals_path(report: Path) -> Path:
    """Where the approvals of a report lie."""
    return report.with_name(report.name + SUFFIX)


def check_approvals(report: Path, trust: Sequence[bytes], *, now: datetime | None = None) -> Approvals:
    """Check the approvals beside `report` against trusted certificates (DER; signers' own or issuers').

    `now` (default: the clock) is the moment of the check: certificates must be valid then, and at the time that
    each signer claims. Whether the report itself is whole and trusted is not asked here; see `check_pdf`.
    No sidecar gives ``Approvals((), ())``; a damaged one gives problems, never an exception.

    Raises:
        ReportError: there are approvals, but the report cannot be read or is no PDF.
        KeyFileError: a trusted certificate cannot be read.
    """
    moment = (now or datetime.now(UTC)).astimezone(UTC)
    try:
        sidecar = load(approvals_path(report))
    except ReportError as error:
        return Approvals((), (f"{error}.",))
    if sidecar is None:
        return Approvals((), ())
    document = read(report, LARGEST_REPORT)
    return examine(sidecar, document, trust, check_pdf(document, trust, now=moment), moment)


def examine(
    sidecar: bytes, document: bytes, trust: Sequence[bytes], pdf: PdfCheck, now: datetime
) -> Approvals:
    """Check a sidecar's bytes against a report's; `pdf` is what `check_pdf` found in it. Never raises for junk."""
    with needs("verifying"):
        from cryptography import x509

    roots = [x509.load_der_x509_certificate(der) for der in trust]
    *lines, rest = sidecar.split(b"\n", MOST_LINES + 1)
    if len(sidecar) > LARGEST_FILE or len(lines) > MOST_LINES:
        return Approvals((), (f"The approvals are larger than {MOST_LINES} lines of {LARGEST_LINE:,} bytes; "
                              "not read.",))  # fmt: skip
    problems = [f"Line {len(lines) + 1} of the approvals is cut off."] if rest else []
    if not sidecar:
        problems.append("The file of approvals is empty.")
    entries: list[Approval] = []
    place = _Place(1, "", pdf.signed_at if pdf.intact else None, True)
    for line in lines:
        try:
            entry = _entry(line, place, document, roots, now)
        except ValueError as error:
            problems.append(f"Line {place.number} of the approvals is no approval ({why(error)}).")
            place = _Place(place.number + 1, digest(line), place.latest, False)
        else:
            entries.append(entry)
            latest = max(entry.time, place.latest or entry.time) if entry.valid else place.latest
            place = _Place(place.number + 1, digest(line), latest, entry.bound)
    return Approvals(tuple(entries), tuple(problems), tuple(_notes(entries, pdf)))


@dataclass(frozen=True)
class _Place:
    """Where a line stands: what it must say, the latest time before it, whether all before it was bound."""

    number: int
    previous: str
    latest: datetime | None
    whole: bool


def _entry(
    line: bytes, place: _Place, document: bytes, roots: Sequence[x509.Certificate], now: datetime
) -> Approval:
    """Read and check one line; raises ValueError where it is no approval at all."""
    if len(line) > LARGEST_LINE:
        raise ValueError(f"longer than {LARGEST_LINE:,} bytes")
    envelope = _Envelope.model_validate_json(line)
    payload = base64.b64decode(envelope.payload, validate=True)
    statement = _Statement.model_validate_json(payload)
    said, plain = statement.predicate, envelope.model_dump(by_alias=True)
    # the digest says which report it is; its name may change when it is filed away
    facts = check(plain, {statement.subject[0].name: document}, roots, now=now)
    claimed, fingerprint, doubts = datetime.fromisoformat(said.time), "", []
    faults = list(_out_of_place(said, place))
    if facts.intact:
        holder, pem = _certificate(envelope.signatures[0].cert)
        fingerprint = holder.fingerprint
        if not holder.not_before <= claimed <= holder.not_after:
            doubts.append(f"It claims {said.time}, when the signer's certificate was not valid.")
        plain["signatures"][0] |= {"keyid": fingerprint, "cert": pem}
        if canonical(plain) != line or canonical(statement.model_dump(by_alias=True)) != payload:
            faults.append("The line is not in its one canonical spelling, so it was edited.")
    # differences, not sums: a claimed year of 1 or 9999 must not overflow
    if claimed - now > CLOCKS:
        doubts.append(f"It claims {said.time}, a time in the future.")
    if place.latest is not None and place.latest - claimed > CLOCKS:
        doubts.append(f"It claims {said.time}, a time before that of the report or of a line above.")
    return Approval(
        name=said.name, role=said.role, meaning=said.meaning, time=claimed, comment=said.comment,
        signer=facts.signer, fingerprint=fingerprint, development=facts.development,
        bound=facts.intact and facts.subjects_match and not faults,
        problems=(*facts.problems, *faults, *doubts),
    )  # fmt: skip


def _out_of_place(said: Said, place: _Place) -> Iterator[str]:
    if (said.number, said.previous) != (place.number, place.previous):
        yield (f"It says it is number {said.number} and stands at line {place.number}, or does not follow the line "
               "before it: lines were removed, moved, repeated or edited.")  # fmt: skip
    elif not place.whole:
        yield "A line before it is damaged, so nothing shows that it stands in its place."


def _certificate(text: str) -> tuple[Holder, str]:
    """The holder, and the one way in which the certificate is written as PEM."""
    from cryptography import x509
    from cryptography.hazmat.primitives.serialization import Encoding

    certificate = x509.load_pem_x509_certificate(text.encode())
    return holder_of(certificate), certificate.public_bytes(Encoding.PEM).decode()


def _notes(entries: Sequence[Approval], pdf: PdfCheck) -> Iterator[str]:
    """What a reader should know about the valid entries: development keys, and one key for two people's work."""
    keys: dict[str, dict[str, Approval]] = {}
    for entry in entries:
        if entry.valid:
            keys.setdefault(entry.fingerprint, {}).setdefault(_folded(entry.role), entry)
    for fingerprint, held in keys.items():
        roles, signer = " and ".join(entry.role for entry in held.values()), next(iter(held.values())).signer
        if len(held) > 1:
            yield f"{roles}: signed with one key, that of {signer}"
        if fingerprint == pdf.fingerprint and pdf.intact:
            yield f"{roles}: signed with the key that signed the report, that of {signer}"
        if next(iter(held.values())).development:
            yield f"{roles}: signed with a DEVELOPMENT key, which proves nothing about who signed"


def why(error: Exception) -> str:
    """One short line; of a validation error the first fault."""
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False, include_input=False)[0]
        field = ".".join(str(step) for step in first["loc"])
        message = str(first["msg"]).removeprefix("Value error, ")
        text = f"{field}: {message}" if field else message
    else:
        text = str(error) or type(error).__name__
    return "".join(letter if letter.isprintable() else "?" for letter in text[:160])


def _folded(role: str) -> str:
    return unicodedata.normalize("NFC", role.strip()).casefold()


def digest(line: bytes) -> str:
    """Hex SHA-256 of a line without its line break."""
    return sha256(line).hexdigest()


def read(path: Path, most: int) -> bytes:
    """A regular file of at most `most` bytes; raises ReportError for any other, or one that cannot be read."""
    try:
        if not path.is_file():
            raise ReportError(f"{path}: {'not a file' if path.exists() else 'no such file'}")
        with path.open("rb") as stream:
            data = stream.read(most + 1)
    except OSError as error:
        raise ReportError(f"{path}: cannot be read: {error.strerror or error}") from error
    if len(data) > most:
        raise ReportError(f"{path}: larger than {most:,} bytes")
    return data


def load(sidecar: Path) -> bytes | None:
    """Its bytes, or None where there is none."""
    return read(sidecar, LARGEST_FILE) if os.path.lexists(sidecar) else None
