"""Keys, two signed reports, honest approvals, and the table of attacks on them, for the tests of approvals."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from functools import cache, cached_property, lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from clinsafe.reports.approvals import (
    LARGEST_LINE,
    PREDICATE_TYPE,
    approvals_path,
)
from clinsafe.reports.countersign import add_approval
from clinsafe.reports.dsse import attest, pae
from clinsafe.reports.evidence import canonical
from clinsafe.reports.pdfcheck import PdfCheck, check_pdf
from clinsafe.reports.sign import SigningKey, holder_of, sign_pdf
from tests.reports.signing import leftovers

NOW = datetime.now(UTC).replace(microsecond=0)
MINUTE, DAY = timedelta(minutes=1), timedelta(days=1)
REVIEWER, OFFICER, MANAGER = "Clinical reviewer", "Clinical safety officer", "Quality manager"
EVERYONE = [REVIEWER, OFFICER, MANAGER]


def certify(
    name: str, *, issuer: SigningKey | None = None, commitment: bool = True, authority: bool = False,
    days: tuple[int, int] = (-100, 100), bits: int = 0,
) -> SigningKey:  # fmt: skip
    """A signing key whose certificate `issuer` signs (default: itself); RSA if `bits`, else P-256."""
    private: Any = rsa.generate_private_key(65537, bits) if bits else ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
    parent = x509.load_der_x509_certificate(issuer.certificate).subject if issuer else subject
    usage = x509.KeyUsage(not authority, commitment, False, False, False, authority, authority, False, False)
    certificate = (
        x509.CertificateBuilder(parent, subject, private.public_key(), x509.random_serial_number())
        .not_valid_before(NOW + days[0] * DAY)
        .not_valid_after(NOW + days[1] * DAY)
        .add_extension(x509.BasicConstraints(authority, None), critical=True)
        .add_extension(usage, critical=True)
        .sign(issuer.private if issuer else private, hashes.SHA256())
    )
    der = certificate.public_bytes(serialization.Encoding.DER)
    return SigningKey(**vars(holder_of(certificate)), certificate=der, private=private)


@lru_cache(maxsize=8)
def page(width: int) -> bytes:
    """A PDF of one page, as the renderer makes it; the width tells two of them apart."""
    from weasyprint import HTML

    html = f"<html lang=en><title>Report</title><style>@page {{ size: {width}pt 200pt }}</style><body></body></html>"
    with leftovers():
        document: bytes = HTML(string=html).write_pdf(
            pdf_variant="pdf/a-3b", pdf_identifier=b"clinsafe-testing"
        )
    return document


class World:
    """Keys, two signed reports and the honest sidecar of the first; each is made once."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @cached_property
    def auditor(self) -> SigningKey:
        return certify("A. Auditor")

    @cached_property
    def authority(self) -> SigningKey:
        return certify("Authority", authority=True, days=(-1000, 1000))

    @cached_property
    def reviewer(self) -> SigningKey:
        return certify("R. Reviewer", issuer=self.authority)

    @cached_property
    def officer(self) -> SigningKey:
        return certify("O. Officer")

    @cached_property
    def manager(self) -> SigningKey:
        return certify("M. Manager", bits=2048)

    @cached_property
    def stranger(self) -> SigningKey:
        return certify("M. Allory")

    @cached_property
    def silent(self) -> SigningKey:
        return certify("No commitment", commitment=False)

    @property
    def all(self) -> list[SigningKey]:
        return [self.auditor, self.authority, self.officer, self.manager]

    @cached_property
    def fresh(self) -> SigningKey:
        return certify("Valid from now", days=(0, 100))

    @cached_property
    def report(self) -> bytes:
        return sign_pdf(page(200), self.auditor, meaning="author", when=NOW - 60 * MINUTE)

    @cached_property
    def other_report(self) -> bytes:
        return sign_pdf(page(300), self.auditor, meaning="author", when=NOW - 60 * MINUTE)

    @cached_property
    def pdf(self) -> PdfCheck:
        return check_pdf(self.report, ders(self.all), now=NOW)

    @cached_property
    def lines(self) -> list[bytes]:
        """Three honest lines, made by `add_approval`."""
        path = self.folder / "report.pdf"
        path.write_bytes(self.report)
        for number, (role, key) in enumerate(
            zip(EVERYONE, (self.reviewer, self.officer, self.manager), strict=True)
        ):
            add_approval(path, key, name=key.name, role=role, meaning="approval", trust=ders(self.all),
                         comment=f"rêmark {number}", when=NOW + (number - 30) * MINUTE)  # fmt: skip
        return approvals_path(path).read_bytes().splitlines()

    def after(self, count: int, key: SigningKey | None = None, **changes: Any) -> list[bytes]:
        """The first `count` honest lines, and one more, properly signed, of a predicate with `changes`."""
        lines = self.lines[:count]
        said = {
            "name": "M.", "role": MANAGER, "meaning": "approval", "comment": "", "number": count + 1,
            "time": (NOW - 20 * MINUTE).isoformat(), "previous": sha256(lines[-1]).hexdigest() if lines else "",
        } | changes  # fmt: skip
        envelope = attest({"report.pdf": self.report}, key or self.manager, predicate_type=PREDICATE_TYPE,
                          predicate=said)  # fmt: skip
        return [*lines, canonical(envelope)]

    def resigned(
        self, change: Callable[[dict[str, Any]], object], spell: Callable[[bytes], bytes] = bytes
    ) -> list[bytes]:
        """The honest lines, the last with a changed statement, properly signed again by the officer."""
        *lines, last = self.after(2, self.officer)
        envelope = json.loads(last)
        statement = json.loads(base64.b64decode(envelope["payload"]))
        change(statement)
        payload = spell(canonical(statement))
        signature = self.officer.private.sign(pae(payload), ec.ECDSA(hashes.SHA256()))  # type: ignore[call-arg, arg-type]
        envelope["payload"] = base64.b64encode(payload).decode()
        envelope["signatures"][0]["sig"] = base64.b64encode(signature).decode()
        return [*lines, canonical(envelope)]


def ders(keys: Sequence[SigningKey]) -> list[bytes]:
    return [key.certificate for key in keys]


def text(lines: Sequence[bytes]) -> bytes:
    return b"".join(line + b"\n" for line in lines)


def edited(line: bytes, old: str, new: str) -> bytes:
    """A line whose statement was changed after signing."""
    envelope = json.loads(line)
    payload = base64.b64decode(envelope["payload"])
    assert old.encode() in payload
    envelope["payload"] = base64.b64encode(payload.replace(old.encode(), new.encode())).decode()
    return canonical(envelope)


def in_envelope(line: bytes, **changes: Any) -> bytes:
    """A line with other fields beside the signature."""
    envelope = json.loads(line)
    envelope["signatures"][0] |= changes
    return canonical(envelope)


def cert_of(line: bytes) -> str:
    return str(json.loads(line)["signatures"][0]["cert"])


@cache
def looked(document: bytes, trust: tuple[bytes, ...], now: datetime) -> PdfCheck:
    """`check_pdf`, once for each question: it takes a quarter of a second."""
    return check_pdf(document, trust, now=now)


def quick(document: bytes, trust: Sequence[bytes], *, now: datetime) -> PdfCheck:
    """In the place of `check_pdf`; while a test runs the clock stands still."""
    return looked(document, tuple(trust), NOW if abs(now - NOW) < 10 * MINUTE else now)


def add(report: Path, world: World, key: SigningKey, role: str = OFFICER, **settings: Any) -> Path:
    usual = {"name": "Ada", "meaning": "approval", "trust": ders([*world.all, key])}
    return add_approval(report, key, role=role, **(usual | settings))


@dataclass(frozen=True)
class Attack:
    """One row: what lies on the disk, whom the reader trusts, when; `counted` are the roles that must count."""

    name: str
    build: Callable[[World], bytes]
    counted: Sequence[str] | None = None  # None: nothing was attacked, everyone counts
    valid: bool = False
    report: Callable[[World], bytes] = lambda w: w.report
    trust: Callable[[World], list[SigningKey]] = lambda w: w.all
    now: datetime = NOW

    @property
    def roles(self) -> list[str]:
        return EVERYONE if self.counted is None else list(self.counted)


TWO, ONE = EVERYONE[:2], EVERYONE[:1]
ATTACKS = [
    Attack("untouched", lambda w: text(w.lines), valid=True),
    Attack("untouched, the reviewer trusted directly", lambda w: text(w.lines), valid=True,
           trust=lambda w: [w.reviewer, w.officer, w.manager]),
    Attack("only the first", lambda w: text(w.lines[:1]), ONE, valid=True),
    Attack("the last line taken off", lambda w: text(w.lines[:2]), TWO, valid=True),
    Attack("role edited, first line",
           lambda w: text([edited(w.lines[0], REVIEWER, MANAGER), *w.lines[1:]]), []),
    Attack("role edited, last line", lambda w: text([*w.lines[:2], edited(w.lines[2], MANAGER, OFFICER)]), TWO),
    Attack("comment edited", lambda w: text([*w.lines[:2], edited(w.lines[2], "mark 2", "mark 3")]), TWO),
    Attack("time edited", lambda w: text([*w.lines[:2], edited(w.lines[2], "+00:00", "+00:01")]), TWO),
    Attack("middle line removed", lambda w: text([w.lines[0], w.lines[2]]), ONE),
    Attack("first line removed", lambda w: text(w.lines[1:]), []),
    Attack("lines swapped", lambda w: text([w.lines[0], w.lines[2], w.lines[1]]), ONE),
    Attack("last line cut off", lambda w: text(w.lines)[:-50], TWO),
    Attack("last line break missing", lambda w: text(w.lines)[:-1], TWO),
    Attack("line ends as on Windows", lambda w: text(w.lines).replace(b"\n", b"\r\n"), []),
    Attack("blank line between", lambda w: text([w.lines[0], b"", *w.lines[1:]]), ONE),
    Attack("moved to another report", lambda w: text(w.lines), [], report=lambda w: w.other_report),
    Attack("the report grew", lambda w: text(w.lines), [], report=lambda w: w.report + b"%\n"),
    Attack("the report's container edited", lambda w: text(w.lines), [],
           report=lambda w: w.report.replace(b"0000>", b"0001>", 1)),
    Attack("signer not trusted", lambda w: text(w.after(2, w.stranger)), TWO),
    Attack("nobody trusted", lambda w: text(w.lines), [], trust=lambda w: []),
    Attack("expired", lambda w: text(w.lines), [], now=NOW + 101 * DAY),
    Attack("not valid yet", lambda w: text(w.lines), [], now=NOW - 101 * DAY),
    Attack("certificate not for documents", lambda w: text(w.after(2, w.silent)), TWO,
           trust=lambda w: [*w.all, w.silent]),
    Attack("last line replayed", lambda w: text([*w.lines, w.lines[2]])),
    Attack("first line replayed", lambda w: text([*w.lines, w.lines[0]])),
    Attack("number given twice", lambda w: text(w.after(2, number=2)), TWO),
    Attack("number left out", lambda w: text(w.after(2, number=4)), TWO),
    Attack("follows another line", lambda w: text(w.after(2, previous="0" * 64)), TWO),
    Attack("follows none", lambda w: text(w.after(2, previous="")), TWO),
    Attack("first follows one", lambda w: text(w.after(0, previous="0" * 64)), []),
    Attack("time in the future", lambda w: text(w.after(2, time=(NOW + 10 * MINUTE).isoformat())), TWO),
    Attack("year 9999", lambda w: text(w.after(2, time="9999-12-31T23:59:59+00:00")), TWO),
    Attack("year 1", lambda w: text(w.after(2, time="0001-01-01T00:00:00+00:00")), TWO),
    Attack("before the report was signed", lambda w: text(w.after(0, time=(NOW - DAY).isoformat())), []),
    Attack("before the line above", lambda w: text(w.after(2, time=(NOW - 50 * MINUTE).isoformat())), TWO),
    Attack("before its certificate", lambda w: text(w.after(2, w.fresh)), TWO,
           trust=lambda w: [*w.all, w.fresh]),
    Attack("no zone", lambda w: text(w.after(2, time="2026-11-30T09:00:00")), TWO),
    Attack("no role", lambda w: text(w.after(2, role="")), TWO),
    Attack("role of spaces", lambda w: text(w.after(2, role="  ")), TWO),
    Attack("role with hidden letters", lambda w: text(w.after(2, role=MANAGER + "\u202e")), TWO),
    Attack("name of two lines", lambda w: text(w.after(2, name="M.\nsigned: everyone")), TWO),
    Attack("no meaning", lambda w: text(w.after(2, meaning="rejection")), TWO),
    Attack("number as text", lambda w: text(w.after(2, number="3")), TWO),
    Attack("number as a fraction", lambda w: text(w.after(2, number=3.5)), TWO),
    Attack("number too large", lambda w: text(w.after(2, number=2**53 - 1)), TWO),
    Attack("a field more", lambda w: text(w.after(2, withdrawn=True)), TWO),
    Attack("another type of statement",
           lambda w: text(w.resigned(lambda s: s.update(predicateType="https://example.org/note"))), TWO),
    Attack("no in-toto statement", lambda w: text(w.resigned(lambda s: s.update(_type="x"))), TWO),
    Attack("two files", lambda w: text(w.resigned(lambda s: s["subject"].append(s["subject"][0]))), TWO),
    Attack("no file", lambda w: text(w.resigned(lambda s: s["subject"].clear())), TWO),
    Attack("statement spelt otherwise",
           lambda w: text(w.resigned(lambda s: None, lambda b: b.replace(b'":', b'": ', 1))), TWO),
    Attack("a field twice",
           lambda w: text(w.resigned(lambda s: None, lambda b: b.replace(b'"role"', b'"role":"x","role"'))), TWO),
    Attack("line spelt otherwise", lambda w: text([*w.lines[:2], w.lines[2].replace(b'":', b'": ', 1)]), TWO),
    Attack("certificate spelt otherwise",
           lambda w: text([*w.lines[:2], in_envelope(w.lines[2], cert=cert_of(w.lines[2]) + "\n")]), TWO),
    Attack("key id left out", lambda w: text([*w.lines[:2], in_envelope(w.lines[2], keyid="")]), TWO),
    Attack("another's certificate",
           lambda w: text([*w.lines[:2], in_envelope(w.lines[2], cert=cert_of(w.lines[1]))]), TWO),
    Attack("empty", lambda w: b"", []),
    Attack("one line break", lambda w: b"\n", []),
    Attack("no JSON", lambda w: b"hello\n", []),
    Attack("other JSON", lambda w: b"[]\n{}\nnull\n1\n", []),
    Attack("not UTF-8", lambda w: text([*w.lines[:2], b"\xff\x00"]), TWO),
    Attack("deep nesting", lambda w: text([*w.lines[:2], b"[" * 60_000]), TWO),
    Attack("deep nesting in the payload",
           lambda w: text(w.resigned(lambda s: None, lambda b: b"[" * 40_000)), TWO),
    Attack("a long number", lambda w: text([*w.lines[:2], b"1" * 60_000]), TWO),
    Attack("a long line", lambda w: text([*w.lines[:2], b" " * LARGEST_LINE + w.lines[2]]), TWO),
    Attack("a line of 100 MB", lambda w: text([*w.lines, b"x" * 100_000_000]), []),
    Attack("a million lines", lambda w: text(w.lines) + b"\n" * 1_000_000, []),
]  # fmt: skip
HONEST = {attack.name for attack in ATTACKS if attack.valid}
