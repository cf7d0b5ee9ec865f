"""Every attack as a row: what lies on the disk, whom the reader trusts, and whether it can be found at all.

`ATTACKS` is data; the judges are in `judges`, the page that is made of both is docs/attacks.md (`table`). Random bits
are a campaign of their own (`flips`).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any, Literal, TypeAlias
from unittest.mock import patch

from clinsafe.reports import stamp as stamps
from clinsafe.reports.evidence import to_bytes
from clinsafe.reports.sign import SigningKey, sign_pdf
from clinsafe.reports.stamp import Stamp
from tests.attacks.reports import ROLES, World
from tests.attacks.tricks import (
    annotate,
    another_field,
    attach,
    countersigned,
    courier,
    covered_by_its_stamp,
    encrypted,
    painted_while_signing,
    swapped_record,
    transplanted,
    without_timestamp,
)
from tests.reports.approving import edited
from tests.reports.attacks import overlay, retitle
from tests.reports.signing import DAY, FORGED, gap_of, sign_otherwise, update
from tests.reports.tsa import stamper

Kind: TypeAlias = Literal["honest", "attack", "beyond", "harmless", "open"]
"""honest: nothing was attacked; attack: must be found; beyond: nobody can find it; harmless: nothing false is said;
open: could be found and is not yet."""
OPEN = "Can be found, and is not yet"
Build: TypeAlias = Callable[[World], bytes]


@dataclass(frozen=True)
class Attack:
    """One row.

    Attributes:
        name: as the table has it.
        group: the heading it stands under.
        build: the file; None is a file of 500 MB without content.
        why: what makes a judge say so, or why none can.
        kind: see `Kind`.
        trust: whom the reader trusts.
        sidecar: the approvals beside the file, if there are any.
        file: what it is called.
    """

    name: str
    group: str
    build: Build | None
    why: str
    kind: Kind = "attack"
    trust: Callable[[World], list[SigningKey]] = lambda w: [w.root]
    sidecar: Callable[[World], list[bytes]] | None = None
    file: str = "report.pdf"

    @property
    def heading(self) -> str:
        """What it stands under in the table."""
        return OPEN if self.kind == "open" else self.group

    @property
    def accepted(self) -> bool:
        """Whether our verification accepts it."""
        return self.kind != "attack"


def sign(document: bytes, key: SigningKey, **settings: Any) -> bytes:
    return sign_pdf(document, key, **({"meaning": "author"} | settings))


def claimed(w: World, key: SigningKey, when: datetime) -> bytes:
    """Signed at a time at which no signing program of ours would sign."""
    return sign(w.unsigned, replace(key, not_before=when - DAY, not_after=when + DAY), when=when)


def other_clock(w: World) -> bytes:
    """The timestamp of a trusted authority, an hour away from the time that the signer claims."""
    moment = datetime.now(UTC).replace(microsecond=0)
    with patch("clinsafe.reports.timestamps.checked", lambda given, _: given):
        clock = stamper(w.clock, moment)
        return sign(w.unsigned, w.signer, when=moment - timedelta(hours=1), timestamper=clock)


def stamp_says(w: World, change: Callable[[tuple[str, ...]], tuple[str, ...]]) -> bytes:
    real = stamps.lines
    with patch.object(stamps, "lines", lambda *a, **k: change(real(*a, **k))):
        return sign(w.unsigned, w.signer, stamp=Stamp())


def replaced(w: World) -> bytes:
    """Another record attached, as an update; its figures are better."""
    record = to_bytes(w.better_figure)

    def change(writer: Any) -> None:
        attach(writer, record)

    return update(w.signed, change)


def in_container(w: World, change: Callable[[bytes], bytes]) -> bytes:
    start, end = gap_of(w.signed)
    return w.signed[:start] + change(w.signed[start:end]) + w.signed[end:]


def certify_only(document: bytes, w: World) -> bytes:
    from pyhanko.sign.fields import MDPPerm

    return sign_otherwise(document, w.signer, certify=True, docmdp_permissions=MDPPerm.FILL_FORMS)


HONEST = partial(Attack, group="Nothing was attacked", kind="honest")
SIGNER = partial(Attack, group="The signer")
FILE = partial(Attack, group="The file")
CONTAINER = partial(Attack, group="The container of the signature")
RECORD = partial(Attack, group="The record and the pages, signed by the trusted key")
STAMP = partial(Attack, group="The stamp and the time")
APPROVALS = partial(Attack, group="Approvals beside the file", build=lambda w: w.awaiting)
BEYOND = partial(Attack, group="What nobody can find", kind="beyond")

CHANGE_AFTER = "The file grew after it was signed; the older signature still covers its own revision."
NOT_PDF_AWARE = "OpenSSL is given the signed ranges alone."
ATTACKS = [
    HONEST("P-256, no timestamp (B-B)", build=lambda w: w.signed, why="Issued by the trusted authority."),
    HONEST("RSA-2048, no timestamp", build=lambda w: sign(w.unsigned, w.rsa, meaning="review"),
           why="Issued by the trusted authority."),
    HONEST("timestamp of a trusted authority (B-T)",
           build=lambda w: w.timed, why="The root vouches for both."),
    HONEST("timestamp of an unknown authority",
           build=lambda w: sign(w.unsigned, w.signer, timestamper=stamper(w.unknown_clock)),
           why="It counts for nothing, and is said to; the signature stands without it."),
    HONEST("visible stamp", build=lambda w: sign(w.unsigned, w.signer, stamp=Stamp(), meaning="approval"),
           why="The stamp says what the signature says."),
    HONEST("visible stamp, timestamp, name in Hebrew, place",
           build=lambda w: sign(w.unsigned, w.signer, stamp=Stamp(), printed_name="אדה לוי", location="Haifa",
                                timestamper=stamper(w.clock)), why="The same."),
    HONEST("certificate expired since, timestamp of a trusted authority",
           build=lambda w: sign(w.unsigned, w.expiring(w.root), timestamper=stamper(w.clock)),
           why="It was valid at the time that the authority vouches for."),
    HONEST("self-signed certificate, given itself", build=lambda w: sign(w.unsigned, w.pinned),
           trust=lambda w: [w.pinned], why="NSS takes authorities alone as roots."),
    HONEST("development key", build=lambda w: sign(w.unsigned, w.development),
           trust=lambda w: [w.development], why="Accepted, and said to prove nothing about who signed."),
    HONEST("filed away under another name", build=lambda w: w.signed, file="2026-0042 (final).pdf",
           why="No name is part of what is signed."),
    HONEST("both roles have signed", build=lambda w: w.awaiting, sidecar=lambda w: w.approvals,
           why="Approvals lie beside the file; other programs do not read them."),

    SIGNER("self-signed, and not given", build=lambda w: sign(w.unsigned, w.pinned), why="Nobody vouches for it."),
    SIGNER("another signer, of an unknown authority", build=lambda w: sign(w.unsigned, w.stranger),
           why="Nobody vouches for it."),
    SIGNER("record edited and rendered again, signed by another", why="Nobody vouches for the signer.",
           build=lambda w: sign(w.drawn(w.better_figure), w.stranger)),
    SIGNER("self-signed certificate given itself, expired since", build=lambda w: sign(w.unsigned, w.expiring_alone),
           trust=lambda w: [w.expiring_alone], why="Without a trusted timestamp only the signer says when it was."),
    SIGNER("signed after its certificate expired", trust=lambda w: [w.expired],
           build=lambda w: claimed(w, w.expired, datetime.now(UTC)), why="Outside its validity, by its own word."),
    SIGNER("signed before its certificate began", trust=lambda w: [w.root],
           build=lambda w: claimed(w, w.signer, datetime.now(UTC) - 300 * DAY),
           why="Outside its validity, by its own word; the other two ask for today alone."),
    SIGNER("expired since, timestamp of an unknown authority",
           build=lambda w: sign(w.unsigned, w.expiring(w.root), timestamper=stamper(w.unknown_clock)),
           why="Such a timestamp does not prolong anything."),
    SIGNER("certificate without contentCommitment", build=lambda w: sign(w.unsigned, w.silent),
           trust=lambda w: [w.silent], why="It is not for signing documents."),

    FILE("page painted over", build=lambda w: update(w.signed, overlay), why=CHANGE_AFTER),
    FILE("evidence.json replaced", build=replaced, why=CHANGE_AFTER),
    FILE("title changed", build=lambda w: update(w.signed, retitle), why=CHANGE_AFTER),
    FILE("annotation added", build=lambda w: update(w.signed, annotate), why=CHANGE_AFTER),
    FILE("empty signature field added", build=lambda w: update(w.signed, another_field), why=CHANGE_AFTER),
    FILE("second signature, by another", build=lambda w: countersigned(w.signed, w.stranger), why=CHANGE_AFTER),
    FILE("one byte appended", build=lambda w: w.signed + b"\n", why="The signature must end with the file."),
    FILE("a page of bytes appended", build=lambda w: w.signed + b"% \n" * 1000,
         why="The signature must end with the file."),
    FILE("one byte in front", build=lambda w: b"\n" + w.signed, why="Every offset is wrong."),
    FILE("last byte cut off", build=lambda w: w.signed[:-1], why="The signed range ends past the file."),
    FILE("last 2,000 bytes cut off", build=lambda w: w.signed[:-2000], why="The signature is gone."),
    FILE("second half cut off", build=lambda w: w.signed[: len(w.signed) // 2], why="The signature is gone."),
    FILE("cut back to the unsigned report", build=lambda w: w.signed[: len(w.unsigned)],
         why="A whole PDF, and nobody signed it."),
    FILE("unsigned", build=lambda w: w.unsigned, why="Nobody signed it."),
    FILE("encrypted", build=lambda w: encrypted(w.unsigned), why="A report never is."),
    FILE("changed before it was signed, as an update", build=lambda w: sign(update(w.unsigned, retitle), w.signer),
         why="A report is one revision, and its signature the other."),
    FILE("later changes not forbidden", build=lambda w: sign_otherwise(w.unsigned, w.signer),
         why="A report must forbid every change."),
    FILE("filling in of forms allowed", build=lambda w: certify_only(w.unsigned, w),
         why="A report must forbid every change."),
    FILE("not a PDF", build=lambda w: b"PK\x03\x04 a zip file", why="There is nothing to check."),
    FILE("empty", build=lambda w: b"", why="There is nothing to check."),
    FILE("500 MB without content", build=None, why="It is not read at all."),

    CONTAINER("padding used for a note", build=lambda w: in_container(w, lambda gap: gap[:-5] + b"00AF>"),
              why="These bytes are signed by nobody; only one spelling is accepted."),
    CONTAINER("digits in lower case", build=lambda w: in_container(w, bytes.lower),
              why="The same signature in another spelling."),
    CONTAINER("signature of another report pasted in", build=lambda w: transplanted(w.signed, w.awaiting),
              why="It is over other bytes."),

    RECORD("figure edited in the record alone", why="The figures are derived from the scores again.",
           build=lambda w: sign(swapped_record(w.unsigned, to_bytes(w.better_figure)), w.signer)),
    RECORD("figure edited in the record, pages made from it",
           build=lambda w: sign(w.drawn(w.better_figure), w.signer),
           why="The figures are derived from the scores again."),
    RECORD("verdict changed in the pages alone", build=lambda w: sign(w.better_page, w.signer),
           why="The pages are rendered from the record again."),
    RECORD("record of another program, no JSON that fits",
           build=lambda w: sign(swapped_record(w.unsigned, FORGED), w.signer), why="It is no record."),
    RECORD("a failing case left out, counts and all figures made to follow",
           build=lambda w: sign(w.drawn(w.fewer_cases), w.signer), why="The installed suite has that case."),
    RECORD("invented pages, another renderer claimed", build=lambda w: sign(w.other_renderer, w.signer),
           why="Every printed cell of the record is looked for in the pages."),
    RECORD("invented pages, other templates claimed", build=lambda w: sign(w.other_templates, w.signer),
           why="Pages that cannot be read here are not accepted."),
    RECORD("page painted over in the revision that signs",
           build=lambda w: painted_while_signing(w.unsigned, w.signer),
           why="The first revision is what is rendered again; the one that signs may add a signature alone."),

    STAMP("another time in the stamp", why="A stamp of ours is read and compared.",
          build=lambda w: stamp_says(w, lambda s: tuple(_earlier(line) for line in s))),
    STAMP("another meaning in the stamp", why="A stamp of ours is read and compared.",
          build=lambda w: stamp_says(w, lambda s: tuple(t.replace("Authorship", "Approval") for t in s))),
    STAMP("another name in the stamp", why="A stamp of ours is read and compared.",
          build=lambda w: stamp_says(w, lambda s: ("Prof. E. Lse", *s[1:]))),
    STAMP("stamp in Courier, as pyHanko draws it", build=lambda w: courier(w.unsigned, w.signer),
          why="A signature is invisible, or has our stamp in the box that the report keeps free."),
    STAMP("stamp of another program that covers a page", build=lambda w: covered_by_its_stamp(w.unsigned, w.signer),
          why="A signature is invisible, or has our stamp in the box that the report keeps free."),
    STAMP("trusted timestamp an hour after the claimed time", build=other_clock, why="The two must agree."),
    STAMP("signed a day before the audit, by its own word",
          build=lambda w: sign(w.unsigned, w.signer, when=datetime.now(UTC) - DAY),
          why="No record can be signed before it was made."),

    APPROVALS("a name edited", why="Every line is signed.",
              sidecar=lambda w: [edited(w.approvals[0][:-1], "A. Auditor", "B. Auditor") + b"\n", w.approvals[1]]),
    APPROVALS("first line dropped", sidecar=lambda w: w.approvals[1:], why="Every line holds the hash of the last."),
    APPROVALS("last line dropped", sidecar=lambda w: w.approvals[:1], why="The record says which roles must sign."),
    APPROVALS("lines change places", sidecar=lambda w: w.approvals[::-1], why="Every line holds the hash of the last."),
    APPROVALS("file dropped", why="The record says which roles must sign."),
    APPROVALS("put beside another report", build=lambda w: w.awaiting_again, sidecar=lambda w: w.approvals,
              why="Every line is over the hash of its report."),
    APPROVALS("beside a report with one byte more", build=lambda w: w.awaiting + b"\n",
              sidecar=lambda w: w.approvals, why="Every line is over the hash of its report."),
    APPROVALS("a name edited where no role is required", build=lambda w: w.signed,
              sidecar=lambda w: [edited(w.approved(w.signed, {"Reviewer": w.rsa})[0][:-1], "R. Auditor", "B. Auditor"),
                                 b"\n"],
              why="An approval that does not verify is a problem, asked for or not."),
    APPROVALS("a role signed for by a stranger", why="Nobody vouches for the signer.",
              sidecar=lambda w: w.approved(w.awaiting, dict(zip(ROLES, (w.signer, w.stranger), strict=True)))),

    BEYOND("scores of one model under another's name", build=lambda w: sign(w.drawn(w.other_name), w.signer),
           why="Figures, verdicts and pages follow from the scores, and the signer vouches for those."),
    BEYOND("last approval dropped where no role is required", build=lambda w: w.signed,
           sidecar=lambda w: w.approved(w.signed, {"Reviewer": w.signer, "Manager": w.rsa})[:1],
           why="A shorter list that holds; name the roles in the declaration, then it is missed."),
    BEYOND("trusted timestamp taken off", why="It lies beside the signature, not under it; only the credit is lost.",
           build=lambda w: without_timestamp(w.timed)),
]  # fmt: skip


def _earlier(line: str) -> str:
    return f"2020{line[4:]}" if "(the signer's clock)" in line else line
