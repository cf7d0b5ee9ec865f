"""What a signature prints on the page: name, meaning, time, certificate (21 CFR 11.50(b)).

Drawn by pyHanko with the shipped font, embedded, so that the file stays PDF/A-3: pyHanko's own stamp uses Courier
without its font program. The font is cut to the letters used and brought to 1000 units an em first, because
pyHanko copies widths as they are and PDF counts in thousandths. (A second run of the page renderer would do, too, but
takes over a second, most of it for starting.)
"""

from __future__ import annotations

import logging
import textwrap
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from importlib.util import find_spec
from io import BytesIO
from typing import TYPE_CHECKING, Any, cast

from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.reports.render import FONTS
from clinsafe.reports.sign import FIELD, REASONS, Holder, Meaning, needs

if TYPE_CHECKING:
    from pyhanko.sign.validation import EmbeddedPdfSignature

MM = 72 / 25.4
A4_HEIGHT = 297 * MM
TIME = "%Y-%m-%d %H:%M:%S UTC"
FONT_SIZE, LEADING, MARGIN = 7, 10, 6  # points
_SHAPED = (
    0x0300  # first code point that needs the font's layout tables: combining accents, later right-to-left
)
_FOREIGN = 0x250  # the shipped font has every letter below
_LINE = 60  # letters of average width that fit across the usual box
_CLOCK = "(the signer's clock)"
_DEVELOPMENT = "DEVELOPMENT key: proves nothing about who signed"
_DRAWN = {  # what draws the stamp: a frame, and letters that a text stands for
    "q", "Q", "cm", "w", "RG", "re", "S", "BT", "ET", "Tf", "TL", "Td", "TJ", "BDC", "BMC", "EMC",
}  # fmt: skip


@dataclass(frozen=True)
class Stamp:
    """Where the stamp goes.

    Attributes:
        page: index from 0; negative numbers count from the end, -1 is the last page.
        box: left, bottom, right, top in PDF points from the page's lower left corner. The usual one is 92 x 30 mm at
            14 mm from the left and 60 mm from the top of an A4 page, which the last page of the report keeps free.

    `clinsafe report verify` accepts the usual place alone: elsewhere a stamp could cover what was signed. Another one
    is for documents that are checked by other means.
    """

    page: int = -1
    box: tuple[float, float, float, float] = (
        14 * MM,
        A4_HEIGHT - 90 * MM,
        106 * MM,
        A4_HEIGHT - 60 * MM,
    )


def can_stamp() -> bool:
    """Whether the packages that draw the stamp are installed; without them a signature is invisible."""
    return all(find_spec(package) for package in ("fontTools", "uharfbuzz", "pyhanko"))


def lines(
    key: Holder, meaning: Meaning, moment: datetime, *, printed_name: str | None = None, location: str = ""
) -> tuple[str, ...]:
    """The lines of the stamp. The name stands alone, so that one written from right to left comes out right.

    Letters that the shipped font lacks become "?" in what the certificate says. Raises UsageError for those that the
    user chose: a signature that cannot be read names nobody.
    """
    known = _letters()
    for what, text in (("name", printed_name), ("location", location)):
        missing = sorted({letter for letter in text or "" if ord(letter) not in known})
        if missing:
            raise UsageError(f"the {what} {text!r} has {missing[0]!r}, which the font of the report lacks; "
                             "write it in Latin, Greek, Cyrillic, Arabic or Hebrew letters")  # fmt: skip
    own = "".join(letter if ord(letter) in known else "?" for letter in key.name)
    return (
        *textwrap.wrap(printed_name or own, _LINE),
        REASONS[meaning],
        f"{moment:{TIME}} {_CLOCK}",
        *(textwrap.wrap(f"Place: {location}", _LINE) if location else ()),
        *textwrap.wrap(f"Certificate: {own}", _LINE),
        f"SHA-256 of the certificate: {key.fingerprint[:16]}…",
        *((_DEVELOPMENT,) if key.development else ()),
    )


def style(text: tuple[str, ...]) -> Any:
    """The stamp as pyHanko's ``TextStampStyle``; text that is too large for its box is made smaller.

    Raises MissingDependency without the packages that `can_stamp` asks for.
    """
    with needs("signing"):
        import uharfbuzz  # noqa: F401 - pyHanko's own complaint does not name it
        from pyhanko.pdf_utils import layout
        from pyhanko.pdf_utils.font import FontEngineFactory
        from pyhanko.pdf_utils.font.opentype import GlyphAccumulator
        from pyhanko.pdf_utils.text import TextBoxStyle
        from pyhanko.stamp import TextStampStyle

    class Shipped(FontEngineFactory):
        def create_font_engine(self, writer: Any, obj_stream: Any = None) -> Any:
            handle, new = BytesIO(_font("".join(text))), cast("Any", GlyphAccumulator)
            return new(writer, handle, FONT_SIZE, obj_stream=obj_stream)

    margins: Any = layout.Margins
    corner = layout.SimpleBoxLayoutRule(
        x_align=layout.AxisAlignment.ALIGN_MIN,
        y_align=layout.AxisAlignment.ALIGN_MAX,
        margins=margins.uniform(MARGIN),
    )
    return TextStampStyle(
        border_width=1,
        border_color=(0.11, 0.15, 0.2),
        text_box_style=TextBoxStyle(font=Shipped(), font_size=FONT_SIZE, leading=LEADING),
        inner_content_layout=corner,
        stamp_text="\n".join(text).replace("%", "%%"),
    )


def field(stamp: Stamp, writer: Any) -> Any:
    """The signature field at its place. Raises UsageError for a page or a box that the document has not."""
    from pyhanko.sign.fields import SigFieldSpec

    pages = int(writer.root["/Pages"]["/Count"])
    if not -pages <= stamp.page < pages:
        raise UsageError(f"the stamp is for page {stamp.page}; the report has {pages}, so give "
                         f"{-pages} to {pages - 1}")  # fmt: skip
    page = writer.find_page_for_modification(stamp.page)[0].get_object()
    while "/MediaBox" not in page:
        page = page["/Parent"]
    x0, y0, x1, y1 = (float(edge) for edge in page["/MediaBox"])
    left, bottom, right, top = stamp.box
    if not (x0 <= left < right <= x1 and y0 <= bottom < top <= y1):
        raise UsageError(f"the stamp's box {stamp.box} does not lie on the page; give left, bottom, right, top in "
                         f"points within {x0:g}, {y0:g}, {x1:g}, {y1:g}")  # fmt: skip
    box: Any = stamp.box  # annotated as whole numbers, written as given
    return SigFieldSpec(FIELD, on_page=stamp.page, box=box)


def printed(signature: EmbeddedPdfSignature) -> tuple[str, ...]:
    """The lines of a stamp that this module drew, as a reader copies them; empty for any other, or for none.

    A stamp with a picture, an area, or letters without a line that tells what they are is another's.
    """
    from pyhanko.pdf_utils.content_stream_parser import parse_content_stream
    from pyhanko.pdf_utils.generic import StreamObject
    from pyhanko.pdf_utils.misc import PdfError

    widget = signature.sig_field
    place = widget.raw_get("/Rect") if "/Rect" in widget else [0] * 4
    if signature.field_name != FIELD or not any(place) or "/AP" not in widget or "/N" not in widget["/AP"]:
        return ()
    drawn = widget["/AP"].raw_get("/N").get_object()
    if not isinstance(drawn, StreamObject):
        return ()
    drawn.container_ref = drawn.container_ref or widget.container_ref
    try:
        return _read(parse_content_stream([drawn]))
    except (PdfError, ValueError, TypeError, KeyError, IndexError):  # as another program may draw it
        return ()


def _read(operators: Iterable[Any]) -> tuple[str, ...]:
    """The text of each line; empty if anything else is drawn."""
    found: list[str] = []
    told = [False]  # for each marked part that is open: does a text stand for its letters
    for operator in operators:
        if operator.op not in _DRAWN or (operator.op == "TJ" and not told[-1]):
            return ()
        if operator.op in ("BDC", "BMC"):
            told.append(len(operator.args) == 2 and "/ActualText" in operator.args[1])
            if told[-1]:
                found.append(str(operator.args[1]["/ActualText"]))
        elif operator.op == "EMC":
            told.pop()
    return tuple(found)


def differs(
    text: tuple[str, ...], key: Holder, moment: datetime | None, said: Mapping[str, Any]
) -> list[str]:
    """What a stamp says otherwise than its signature.

    Args:
        text: the lines of the stamp, see `printed`.
        key: the holder of the certificate.
        moment: the time that the signature claims.
        said: the signature's entries ``/Reason``, ``/Name`` and ``/Location``.

    Returns:
        Any of name, meaning, time, place, certificate; "wording" where only the rest differs.
    """
    name, reason, location = (str(said.get(entry, "")) for entry in ("/Name", "/Reason", "/Location"))
    time = "" if moment is None else f"{moment:{TIME}} {_CLOCK}"
    own = f"Certificate: {key.name}"
    digest = f"SHA-256 of the certificate: {key.fingerprint[:16]}…"
    end = text.index(reason) if reason in text else 1
    before, after = text[:end], "".join(text[end:])
    wrong = {
        "name": not name or not _same("".join(before), name, guess=name == key.name),
        "meaning": reason not in text,
        "time": time not in text,
        "place": bool(location) and _bare(f"Place: {location}") not in _bare(after),
        "certificate": digest not in text,
    }
    if any(wrong.values()):
        return [what for what, differing in wrong.items() if differing]
    rest = [reason, time, *([f"Place: {location}"] if location else []), own, digest]
    rest += [_DEVELOPMENT] if key.development else []
    return [] if _same(after, "".join(rest), guess=True) else ["wording"]


def _same(drawn: str, said: str, *, guess: bool) -> bool:
    """Equal but for breaks between lines; with `guess` a drawn "?" may stand for a letter that the font lacks."""
    drawn, said = _bare(drawn), _bare(said)
    return len(drawn) == len(said) and all(
        a == b or (guess and a == "?" and ord(b) >= _FOREIGN) for a, b in zip(drawn, said, strict=True)
    )


def _bare(text: str) -> str:
    return "".join(text.split())


def _letters() -> frozenset[int]:
    """The code points that the shipped font can draw."""
    with needs("signing"):
        from fontTools.ttLib import TTFont

    with TTFont(Content().path(FONTS[0]), lazy=True) as font:
        return frozenset(font["cmap"].getBestCmap())


def _font(text: str) -> bytes:
    """The shipped font, cut to `text`, with 1000 units an em."""
    with needs("signing"):
        from fontTools import subset
        from fontTools.ttLib import TTFont
        from fontTools.ttLib.scaleUpem import scale_upem

    logging.getLogger("fontTools").addHandler(logging.NullHandler())  # it tells of tables that it leaves out
    options = subset.Options(hinting=False, recalc_timestamp=False)  # hints do not survive another scale
    if all(ord(letter) < _SHAPED for letter in text.replace("…", "")):  # saves half the time
        options.drop_tables += ["GDEF", "GPOS", "GSUB", "kern"]
    buffer = BytesIO()
    with TTFont(Content().path(FONTS[0]), lazy=True) as font:
        cutter = subset.Subsetter(options)
        cutter.populate(text=text)
        cutter.subset(font)
        scale_upem(font, 1000)
        font.save(buffer)
    return buffer.getvalue()
