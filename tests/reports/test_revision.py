"""The revision that signs: a table of what the trusted key could slip into it, judged by ours and by broken checks."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from io import BytesIO
from typing import Any
from unittest.mock import patch

import pytest

from clinsafe.reports.pdfcheck import check_pdf
from clinsafe.reports.revision import revision_problems
from clinsafe.reports.sign import FIELD, REASONS, SigningKey, sign_pdf
from clinsafe.reports.stamp import Stamp, can_stamp
from tests.reports.attacks import overlay, replace_evidence, retitle
from tests.reports.signing import NOW, World, leftovers, render

pytest.importorskip("weasyprint")
pytest.importorskip("uharfbuzz")
Change = Callable[[Any], None]


@pytest.fixture(scope="module")
def world() -> World:
    return World()


def while_signing(
    document: bytes, key: SigningKey, first: Change | None = None, last: Change | None = None, **settings: Any
) -> bytes:
    """Our own signing, with a change made in the same revision: before the signature is placed, or when it is."""
    from pyhanko.pdf_utils import incremental_writer

    class Changing(incremental_writer.IncrementalPdfFileWriter):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            if first:
                first(self)

        def write(self, stream: Any) -> None:
            if last:
                last(self)
            super().write(stream)

    with patch.object(incremental_writer, "IncrementalPdfFileWriter", Changing):
        return sign_pdf(document, key, **({"meaning": "author", "when": NOW} | settings))


def with_pyhanko(document: bytes, key: SigningKey, name: str, box: Any, style: Any) -> bytes:
    """Certified as we do, with a stamp of one's own."""
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
    from pyhanko.sign import fields, signers

    metadata = signers.PdfSignatureMetadata(
        field_name=name, md_algorithm="sha256", subfilter=fields.SigSeedSubFilter.PADES, certify=True,
        docmdp_permissions=fields.MDPPerm.NO_CHANGES, reason=REASONS["author"],
    )  # fmt: skip
    place = fields.SigFieldSpec(name, on_page=0, box=box)
    signer = signers.PdfSigner(metadata, key.pyhanko_signer(), stamp_style=style, new_field_spec=place)
    output: BytesIO = signer.sign_pdf(IncrementalPdfFileWriter(BytesIO(document)))
    return output.getvalue()


def drawn(text: str = "All six hazards PASS", *, white: bool = False) -> Any:
    """A stamp of pyHanko, on a white ground if asked for."""
    from pyhanko.pdf_utils.content import RawContent
    from pyhanko.pdf_utils.layout import BoxConstraints
    from pyhanko.stamp import TextStampStyle

    area = RawContent(data=b"1 g 0 0 595 842 re f", box=BoxConstraints(width=595, height=842))
    return TextStampStyle(stamp_text=text, **({"background": area, "background_opacity": 1} if white else {}))


def root(name: str, value: Callable[[Any], Any]) -> Change:
    """An entry of the catalogue."""

    def change(writer: Any) -> None:
        from pyhanko.pdf_utils.generic import pdf_name

        writer.root[pdf_name(name)] = value(writer)
        writer.update_root()

    return change


def page(name: str, value: Callable[[Any], Any]) -> Change:
    """An entry of the first page."""

    def change(writer: Any) -> None:
        from pyhanko.pdf_utils.generic import pdf_name

        found = writer.find_page_for_modification(0)[0].get_object()
        found[pdf_name(name)] = value(writer)
        writer.update_container(found)

    return change


def in_field(name: str, value: Callable[[Any], Any]) -> Change:
    """An entry of the signature field, made when it is there."""

    def change(writer: Any) -> None:
        from pyhanko.pdf_utils.generic import pdf_name

        writer.root["/AcroForm"]["/Fields"][0][pdf_name(name)] = value(writer)

    return change


def in_form(name: str) -> Change:
    """An entry of the form."""

    def change(writer: Any) -> None:
        from pyhanko.pdf_utils.generic import BooleanObject, pdf_name

        writer.root["/AcroForm"][pdf_name(name)] = BooleanObject(True)

    return change


def script(_: Any) -> Any:
    from pyhanko.pdf_utils.generic import DictionaryObject, TextStringObject, pdf_name

    code = {pdf_name("/S"): pdf_name("/JavaScript"), pdf_name("/JS"): TextStringObject("app.alert('PASS')")}
    return DictionaryObject(code)


def note(writer: Any) -> Any:
    """A list with one annotation in it."""
    from pyhanko.pdf_utils.generic import ArrayObject, DictionaryObject, NumberObject, pdf_name

    box = ArrayObject(map(NumberObject, (0, 0, 600, 900)))
    square = {pdf_name("/Subtype"): pdf_name("/Square"), pdf_name("/Rect"): box}
    return ArrayObject([writer.add_object(DictionaryObject(square))])


def turned(writer: Any) -> None:
    """What the pages inherit."""
    writer.root["/Pages"]["/Rotate"] = number(180)(writer)
    writer.update_container(writer.root["/Pages"])


def number(value: int) -> Callable[[Any], Any]:
    def build(_: Any) -> Any:
        from pyhanko.pdf_utils.generic import NumberObject

        return NumberObject(value)

    return build


def hidden(writer: Any) -> None:
    """An object that nothing refers to."""
    writer.add_object(script(writer))


def described(writer: Any) -> None:
    """Another title in the XMP metadata; the one in the document information stays."""
    from pyhanko.pdf_utils.metadata.model import XmpStructure, XmpValue

    stream = writer.root["/Metadata"]
    stream.xmp.append(XmpStructure({_creator(): XmpValue("Somebody else")}))
    writer.update_container(stream)


def _creator() -> Any:
    from pyhanko.pdf_utils.metadata.model import ExpandedName

    return ExpandedName("http://purl.org/dc/elements/1.1/", "publisher")


def fonts(writer: Any) -> None:
    """The stamp with a picture among its resources."""
    from pyhanko.pdf_utils.generic import DictionaryObject, StreamObject, pdf_name

    look = writer.root["/AcroForm"]["/Fields"][0]["/AP"]["/N"]
    form = writer.add_object(StreamObject(stream_data=b"1 g 0 0 600 900 re f"))
    look["/Resources"][pdf_name("/XObject")] = DictionaryObject({pdf_name("/X"): form})


def painted_stamp(writer: Any) -> None:
    """An area beside the lines of our stamp."""
    look = writer.root["/AcroForm"]["/Fields"][0]["/AP"]["/N"]
    look._data = look.data + b" 1 g 0 0 260 85 re f"
    look._encoded_data = None


def two_pages() -> bytes:
    """With a link on each."""
    from weasyprint import HTML

    text = "<html lang=en><title>R</title><p id=a>One <a href='#b'>two</a><p id=b style='break-before: page'>Two "
    with leftovers():
        document: bytes = HTML(string=f"{text}<a href='#a'>one</a>").write_pdf(pdf_variant="pdf/a-3b")
    return document


def dangling(document: bytes) -> bytes:
    """A report whose page draws an object that is not there yet."""
    from pyhanko.pdf_utils.generic import ArrayObject, IndirectObject, pdf_name
    from pyhanko.pdf_utils.reader import PdfFileReader
    from pyhanko.pdf_utils.writer import copy_into_new_writer

    writer: Any = copy_into_new_writer(PdfFileReader(BytesIO(document)))
    found = writer.find_page_for_modification(0)[0].get_object()
    later = IndirectObject(9999, 0, writer)
    found[pdf_name("/Contents")] = ArrayObject([found.raw_get("/Contents"), later])
    output = BytesIO()
    with patch.object(type(writer), "import_object", lambda _, value, *__: value):
        writer.write(output)
    return output.getvalue()


@dataclass(frozen=True)
class Case:
    """One file, and what its problem says; "" for an honest one."""

    name: str
    build: Callable[[World], bytes]
    told: str = ""


def case(
    name: str, told: str, first: Change | None = None, last: Change | None = None, **settings: Any
) -> Case:
    return Case(name, lambda w: while_signing(w.unsigned, w.key, first, last, **settings), told)


MORE = "more than a signature needs"
DRAWING = "did not make lies over page 1"
CASES = [
    Case("invisible", lambda w: w.signed),
    Case("stamped", lambda w: sign_pdf(w.unsigned, w.key, meaning="author", stamp=Stamp())),
    Case("stamped, RSA, with all that can be printed",
         lambda w: sign_pdf(w.unsigned, w.rsa, meaning="approval", stamp=Stamp(), printed_name="אדה לוי " * 9,
                            location="Haifa " * 12)),
    Case("signed by pyHanko, invisible", lambda w: with_pyhanko(w.unsigned, w.key, "Own", None, None)),
    case("the page painted over", f"{MORE}.*page", overlay),
    case("the page painted over, stamped", f"{MORE}.*page", overlay, stamp=Stamp()),
    case("the evidence replaced", f"{MORE}.*object", replace_evidence),
    case("the title changed", f"{MORE}.*/Title", retitle),
    case("the XMP metadata changed", f"{MORE}.*XMP", described),
    case("a script that runs on opening", f"{MORE}.*/OpenAction", root("/OpenAction", script)),
    case("the revocation data of others", f"{MORE}.*/DSS", root("/DSS", script)),
    case("all pages turned", f"{MORE}.*object", turned),
    case("a page turned", f"{MORE}.*/Rotate", page("/Rotate", number(180))),
    case("a page with an action", f"{MORE}.*/AA", page("/AA", script)),
    case("a note on the page", f"{MORE}.*annotations", page("/Annots", note)),
    case("a form that draws itself anew", f"{MORE}.*form", last=in_form("/NeedAppearances")),
    case("a field with an action", f"{MORE}.*field", last=in_field("/A", script)),
    case("a field that asks to be drawn", f"{MORE}.*field", last=in_field("/MK", script)),
    case("a field that is not printed", f"{MORE}.*field", last=in_field("/F", number(0))),
    case("an object that nobody asked for", f"{MORE}.*no part", hidden),
    case("a picture in the stamp", f"{MORE}.*fonts", last=fonts, stamp=Stamp()),
    case("an area in our stamp", DRAWING, last=painted_stamp, stamp=Stamp()),
    Case("a reference to what came later", lambda w: sign_pdf(dangling(w.unsigned), w.key, meaning="author"),
         f"{MORE}.*does not have"),
    Case("a stamp of others over the page",
         lambda w: with_pyhanko(w.unsigned, w.key, "Own", (0, 0, 595, 841), drawn(white=True)), DRAWING),
    Case("the same under our name",
         lambda w: with_pyhanko(w.unsigned, w.key, FIELD, (0, 0, 595, 841), drawn(white=True)), DRAWING),
    Case("a stamp of others in our box",
         lambda w: with_pyhanko(w.unsigned, w.key, FIELD, Stamp().box, drawn()), DRAWING),
    Case("our stamp elsewhere",
         lambda w: sign_pdf(w.unsigned, w.key, meaning="author", stamp=Stamp(box=(100, 100, 360, 185))),
         "stamp lies over page 1 and not in the box"),
]  # fmt: skip
HONEST = {row.name for row in CASES if not row.told}


@pytest.fixture(scope="module")
def files(world: World) -> dict[str, bytes]:
    assert can_stamp()
    return {row.name: row.build(world) for row in CASES}


def trusted(world: World) -> list[bytes]:
    return [world.key.certificate, world.rsa.certificate]


@pytest.mark.parametrize("row", CASES, ids=lambda row: row.name)
def test_the_reason_is_the_true_one(world: World, files: dict[str, bytes], row: Case) -> None:
    """Every fact holds, for the trusted key signed it all; what else the revision did is named."""
    found = check_pdf(files[row.name], trusted(world))
    assert found.valid is not bool(row.told)
    if not row.told:
        assert found.problems == ()
        return
    assert found.trusted
    assert found.intact
    assert any(re.search(row.told, line) for line in found.problems), found.problems
    assert not any("damaged" in line or "\n" in line for line in found.problems)


def mistakes(files: dict[str, bytes], judge: Callable[[bytes], bool]) -> set[str]:
    """The rows that a judge gets wrong."""
    return {row.name for row in CASES if judge(files[row.name]) is bool(row.told)}


def test_broken_checks_fail_the_table(
    world: World, files: dict[str, bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that allows everything, one that allows nothing, and ours with this part taken out."""
    attacks = {row.name for row in CASES} - HONEST
    assert mistakes(files, lambda _: True) == attacks
    assert mistakes(files, lambda _: False) == HONEST
    assert len(attacks) > 20
    assert len(HONEST) == 4
    assert mistakes(files, lambda document: check_pdf(document, trusted(world)).valid) == set()
    for nothing in ([], ["No."]):
        monkeypatch.setattr(
            "clinsafe.reports.pdfcheck.revision_problems", lambda *_, said=nothing: list(said)
        )
        wrong = mistakes(files, lambda document: check_pdf(document, trusted(world)).valid)
        assert wrong == (HONEST if nothing else attacks)


def test_on_the_last_page_of_several(world: World) -> None:
    """The box is kept free there alone; links that the pages have already are no hindrance."""
    document = two_pages()
    for stamp, told in ((Stamp(), None), (Stamp(0), "over page 1"), (None, None)):
        found = check_pdf(sign_pdf(document, world.key, meaning="author", stamp=stamp), trusted(world))
        assert found.valid is (told is None), found.problems
        assert told is None or told in found.problems[0]
    first = check_pdf(
        while_signing(document, world.key, page("/Rotate", number(90)), stamp=Stamp()), trusted(world)
    )
    assert "object" in first.problems[0], "a page that carries no signature"


def test_what_readers_find_the_objects_by(world: World, files: dict[str, bytes]) -> None:
    """Objects taken away, numbers used again, objects in streams: told apart from what is changed."""
    from pyhanko.pdf_utils.reader import PdfFileReader

    def told(change: Change) -> str:
        reader: Any = PdfFileReader(BytesIO(files["stamped"]))
        signature = reader.embedded_signatures[0]
        change(reader)
        return " ".join(revision_problems(reader, signature, world.unsigned))

    assert told(lambda _: None) == ""
    assert "taken away" in told(lambda r: r.xrefs.get_xref_data(1).freed.update({6: 0}))
    assert "in streams" in told(lambda r: r.xrefs.get_xref_data(1).obj_streams_used.add(6))
    assert "used again" in told(lambda r: r.xrefs.get_xref_data(0).explicit_refs_in_revision.discard((7, 0)))


def test_the_attack_is_real(files: dict[str, bytes]) -> None:
    """The first revision is the untouched report, and a reader sees a white page all the same."""
    import pypdfium2

    assert files["the page painted over"].startswith(render(b'{"suite.all.auroc": 0.93}')[:1000])
    for name, darkest in (("invisible", 100), ("the page painted over", 256)):
        with pypdfium2.PdfDocument(files[name]) as pdf:
            assert darkest - 100 <= pdf[0].render().to_numpy().min() < darkest
