"""The attacks that need a PDF library: each gives the bytes of a file."""

from __future__ import annotations

from io import BytesIO
from typing import Any
from unittest.mock import patch

from clinsafe.reports.sign import FIELD, REASONS, SigningKey, sign_pdf
from tests.reports.attacks import overlay
from tests.reports.signing import gap_of


def attach(writer: Any, record: bytes) -> None:
    """Another record in the place of the one that is attached."""
    from pyhanko.pdf_utils.generic import StreamObject, pdf_name

    specification = writer.root["/Names"]["/EmbeddedFiles"]["/Names"][1]
    specification["/EF"][pdf_name("/F")] = writer.add_object(StreamObject(stream_data=record))
    specification["/EF"].pop("/UF", None)
    writer.update_container(specification["/EF"])


def swapped_record(document: bytes, record: bytes) -> bytes:
    """An unsigned report written anew, in one revision, with another record attached and the same pages."""
    from pyhanko.pdf_utils.reader import PdfFileReader
    from pyhanko.pdf_utils.writer import copy_into_new_writer

    writer: Any = copy_into_new_writer(PdfFileReader(BytesIO(document)))
    attach(writer, record)
    output = BytesIO()
    writer.write(output)
    return output.getvalue()


def annotate(writer: Any) -> None:
    """A note on the first page."""
    from pyhanko.pdf_utils.generic import (
        ArrayObject,
        DictionaryObject,
        FloatObject,
        TextStringObject,
        pdf_name,
    )

    page = writer.find_page_for_modification(0)[0].get_object()
    note = DictionaryObject({
        pdf_name("/Type"): pdf_name("/Annot"), pdf_name("/Subtype"): pdf_name("/FreeText"),
        pdf_name("/Rect"): ArrayObject(map(FloatObject, (50, 700, 500, 800))),
        pdf_name("/Contents"): TextStringObject("All hazards PASS"),
        pdf_name("/DA"): TextStringObject("/Helv 24 Tf 0 g"),
    })  # fmt: skip
    page.setdefault(pdf_name("/Annots"), ArrayObject()).append(writer.add_object(note))
    writer.update_container(page)


def another_field(writer: Any) -> None:
    """A second place to sign, empty."""
    from pyhanko.sign.fields import SigFieldSpec, append_signature_field

    append_signature_field(writer, SigFieldSpec("Second", on_page=0, box=(50, 50, 200, 100)))


def countersigned(document: bytes, key: SigningKey) -> bytes:
    """A second signature, though the first forbids it."""
    from pyhanko.sign.signers.pdf_signer import PdfSigner

    with patch.object(PdfSigner, "_enforce_certification_constraints", lambda *_: None):
        return _sign(document, key, field="Second", certify=False)


def encrypted(document: bytes) -> bytes:
    """A copy that opens with an empty password."""
    from pyhanko.pdf_utils.reader import PdfFileReader
    from pyhanko.pdf_utils.writer import copy_into_new_writer

    writer: Any = copy_into_new_writer(PdfFileReader(BytesIO(document)))
    output = BytesIO()
    writer.encrypt("owner", "", pdf_mac=False)  # a MAC would look like a signature
    writer.write(output)
    return output.getvalue()


def painted_while_signing(document: bytes, key: SigningKey) -> bytes:
    """The signing revision paints over the first page; the first revision stays as it is."""
    from pyhanko.pdf_utils import incremental_writer

    class Painting(incremental_writer.IncrementalPdfFileWriter):  # type: ignore[misc]
        def __init__(self, *given: Any, **named: Any) -> None:
            super().__init__(*given, **named)
            overlay(self)

    with patch.object(incremental_writer, "IncrementalPdfFileWriter", Painting):
        return sign_pdf(document, key, meaning="author")


def courier(document: bytes, key: SigningKey) -> bytes:
    """With the stamp that pyHanko draws by itself."""
    from pyhanko.stamp import TextStampStyle

    return _sign(document, key, style=TextStampStyle(stamp_text="%(signer)s\n%(ts)s"), box=(50, 50, 250, 100))


def covered_by_its_stamp(document: bytes, key: SigningKey) -> bytes:
    """With a stamp that leaves nothing of the first page to be seen."""
    from pyhanko.stamp import TextStampStyle

    style = TextStampStyle(stamp_text="All six hazards PASS", background=_white(), background_opacity=1)
    return _sign(document, key, style=style, field="Own", box=(0, 0, 595, 842))


def transplanted(giver: bytes, taker: bytes) -> bytes:
    """The container of one report's signature in another report."""
    (start, end), (to, until) = gap_of(giver), gap_of(taker)
    given = giver[start + 1 : end - 1].rstrip(b"0")
    given += b"0" * (len(given) % 2)
    return taker[: to + 1] + given.ljust(until - to - 2, b"0") + taker[until - 1 :]


def without_timestamp(document: bytes) -> bytes:
    """The signature without what lies beside it, spelt as a signing program would."""
    from asn1crypto import cms, parser

    start, end = gap_of(document)
    container = bytes.fromhex(document[start + 1 : end - 1].decode())
    content = cms.ContentInfo.load(container[: parser.peek(container)])
    signer = content["content"]["signer_infos"][0]
    assert signer["unsigned_attrs"].native
    del signer["unsigned_attrs"]
    bare = content.dump(force=True).hex().upper().encode()
    return document[: start + 1] + bare.ljust(end - start - 2, b"0") + document[end - 1 :]


def _sign(
    document: bytes, key: SigningKey, *, field: str = FIELD, certify: bool = True, style: Any = None,
    box: tuple[float, float, float, float] | None = None,
) -> bytes:  # fmt: skip
    """Sign with pyHanko alone, by the rules that our check asks for and with a stamp of one's own."""
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
    from pyhanko.sign import fields, signers

    metadata = signers.PdfSignatureMetadata(
        field_name=field, md_algorithm="sha256", subfilter=fields.SigSeedSubFilter.PADES, certify=certify,
        docmdp_permissions=fields.MDPPerm.NO_CHANGES, reason=REASONS["author"],
    )  # fmt: skip
    place = fields.SigFieldSpec(field, on_page=0, box=box) if box else None
    signer = signers.PdfSigner(metadata, key.pyhanko_signer(), stamp_style=style, new_field_spec=place)
    output: BytesIO = signer.sign_pdf(IncrementalPdfFileWriter(BytesIO(document)))
    return output.getvalue()


def _white() -> Any:
    """A white area as the ground of a stamp."""
    from pyhanko.pdf_utils.content import RawContent
    from pyhanko.pdf_utils.layout import BoxConstraints

    return RawContent(data=b"1 g 0 0 595 842 re f", box=BoxConstraints(width=595, height=842))
