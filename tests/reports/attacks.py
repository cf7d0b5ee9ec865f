"""What an attacker can do to a signed report, as data: a document, whom the reader trusts, what must come out False."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import datetime
from io import BytesIO
from typing import Any

from clinsafe.reports.sign import SigningKey, sign_pdf
from tests.reports.signing import DAY, FORGED, LATER, NOW, World, sign_otherwise, update


def overlay(writer: Any) -> None:
    """Paint a white box over the page."""
    from pyhanko.pdf_utils.generic import StreamObject

    writer.add_stream_to_page(0, writer.add_object(StreamObject(stream_data=b"q 1 g 0 0 600 900 re f Q")))


def replace_evidence(writer: Any) -> None:
    """Point the attachment at other data."""
    from pyhanko.pdf_utils.generic import StreamObject, pdf_name

    embedded = writer.add_object(StreamObject(stream_data=FORGED))
    specification = writer.root["/Names"]["/EmbeddedFiles"]["/Names"][1]
    specification["/EF"][pdf_name("/F")] = embedded
    writer.update_container(specification["/EF"])


def retitle(writer: Any) -> None:
    """Change the title in the document information."""
    from pyhanko.pdf_utils.generic import TextStringObject, pdf_name

    information = writer.trailer["/Info"]
    information[pdf_name("/Title")] = TextStringObject("Another report")
    writer.update_container(information)


def form_filling(world: World) -> bytes:
    """Signed by the right key, but allowing forms to be filled in later."""
    from pyhanko.sign.fields import MDPPerm

    return sign_otherwise(world.unsigned, world.key, certify=True, docmdp_permissions=MDPPerm.FILL_FORMS)


def countersigned(world: World) -> bytes:
    """A second signature by the same key on a file that allows it."""
    return sign_otherwise(form_filling(world), world.key, field_name="Second")


def encrypted(world: World) -> bytes:
    """A copy that opens with an empty password."""
    from pyhanko.pdf_utils.reader import PdfFileReader
    from pyhanko.pdf_utils.writer import copy_into_new_writer

    writer: Any = copy_into_new_writer(PdfFileReader(BytesIO(world.unsigned)))
    output = BytesIO()
    writer.encrypt("owner", "")
    writer.write(output)
    return output.getvalue()


def lower_case(world: World) -> bytes:
    """The container's hex digits in the other case: the same signature to most programs."""
    start, end = world.gap
    return world.signed[:start] + world.signed[start:end].lower() + world.signed[end:]


def padded(world: World) -> bytes:
    """A byte hidden in the container's zero padding."""
    _, end = world.gap
    assert world.signed[end - 5 : end] == b"0000>"
    return world.signed[: end - 2] + b"1" + world.signed[end - 1 :]


def flipped(seed: int) -> Callable[[World], bytes]:
    """One bit of the signed range turned over."""

    def build(world: World) -> bytes:
        (start, end), chance = world.gap, random.Random(seed)
        place = chance.choice([*range(start), *range(end, len(world.signed))])
        bit = 1 << chance.randrange(8)
        return world.signed[:place] + bytes([world.signed[place] ^ bit]) + world.signed[place + 1 :]

    return build


@dataclass(frozen=True)
class Attack:
    """One row: a document, whom the reader trusts, when it is checked, which facts must come out False."""

    name: str
    build: Callable[[World], bytes]
    trust: Callable[[World], list[SigningKey]] = lambda world: [world.key]
    false: frozenset[str] | None = frozenset()  # None: any, the file may be past reading
    now: datetime = NOW
    problem: str = ""

    @property
    def valid(self) -> bool:
        """True for the rows in which nothing was attacked."""
        return self.false == frozenset() and not self.problem


def facts(*names: str) -> frozenset[str]:
    return frozenset(names)


ADDED = facts("covers_whole_file", "unmodified")
ATTACKS = [
    Attack("untouched", lambda w: w.signed),
    Attack("untouched, RSA", lambda w: w.by(w.rsa), lambda w: [w.other, w.rsa]),
    Attack("untouched, issued by a trusted authority", lambda w: w.by(w.issued), lambda w: [w.authority]),
    Attack("untouched, issued, trusted itself", lambda w: w.by(w.issued), lambda w: [w.issued]),
    Attack("nobody trusted", lambda w: w.signed, lambda w: [], facts("trusted")),
    Attack("another signer trusted", lambda w: w.signed, lambda w: [w.other, w.authority], facts("trusted")),
    Attack("evidence edited, rendered again, signed by another",
           lambda w: sign_pdf(w.forged, w.other, meaning="approval", when=NOW), false=facts("trusted")),
    Attack("unsigned", lambda w: w.unsigned, false=None),
    Attack("page painted over", lambda w: update(w.signed, overlay), false=ADDED),
    Attack("evidence replaced", lambda w: update(w.signed, replace_evidence), false=ADDED),
    Attack("title changed", lambda w: update(w.signed, retitle), false=ADDED),
    Attack("bytes appended", lambda w: w.signed + b"% after the end\n", false=facts("covers_whole_file")),
    Attack("one line break appended", lambda w: w.signed + b"\n", false=facts("covers_whole_file")),
    Attack("bytes put in front", lambda w: b"\n" + w.signed, false=None),
    Attack("changed before it was signed",
           lambda w: sign_pdf(update(w.unsigned, retitle), w.key, meaning="approval", when=NOW),
           false=facts("unmodified")),
    Attack("expired, trusted itself", lambda w: w.signed, now=LATER, false=facts("within_validity")),
    Attack("changed in place", lambda w: w.signed.replace(b"/Title", b"/Titlf", 1), false=facts("intact")),
    Attack("claims a time before its certificate",
           lambda w: sign_pdf(w.unsigned, replace(w.key, not_before=NOW - 999 * DAY), meaning="approval",
                              when=NOW - 200 * DAY),
           false=facts("within_validity")),
    Attack("not yet valid", lambda w: w.signed, now=NOW - 101 * DAY, false=facts("within_validity")),
    Attack("expired, issued", lambda w: w.by(w.issued), lambda w: [w.authority], now=LATER,
           false=facts("within_validity", "trusted")),
    Attack("no contentCommitment", lambda w: w.by(w.silent), lambda w: [w.silent], facts("key_usage_ok")),
    Attack("no contentCommitment, issued", lambda w: w.by(w.issued_silent), lambda w: [w.authority],
           facts("key_usage_ok", "trusted")),
    Attack("changes not forbidden", lambda w: sign_otherwise(w.unsigned, w.key),
           false=facts("certification_level_ok")),
    Attack("form filling allowed", form_filling, false=facts("certification_level_ok")),
    Attack("signed twice", countersigned, false=ADDED | {"certification_level_ok"}, problem="exactly one"),
    Attack("container in lower case", lower_case, problem="container"),
    Attack("container padding used", padded, problem="container"),
    Attack("last bytes missing", lambda w: w.signed[:-100], false=None),
    Attack("second half missing", lambda w: w.signed[: len(w.signed) // 2], false=None),
    Attack("signature cut off", lambda w: w.signed[: len(w.unsigned)], false=None),
    Attack("encrypted", encrypted, false=None, problem="encrypted"),
    Attack("only a header", lambda w: b"%PDF-1.7\n", false=None),
    Attack("no PDF", lambda w: b"PK\x03\x04 a zip file", false=None),
    Attack("empty", lambda w: b"", false=None),
    *(Attack(f"bit flipped, {seed}", flipped(seed), false=None) for seed in range(60)),
]  # fmt: skip

READABLE = [attack for attack in ATTACKS if attack.false is not None]
UNREADABLE = [attack for attack in ATTACKS if attack.false is None]
