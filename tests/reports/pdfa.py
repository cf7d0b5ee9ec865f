"""A small lint for PDF/A-3b: the rules that signing could break, after ISO 19005-3. Not a certificate of conformity."""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from typing import Any

INVISIBLE, HIDDEN, PRINT, NO_VIEW, TOGGLE = 1 << 0, 1 << 1, 1 << 2, 1 << 5, 1 << 8


def lint(document: bytes) -> list[str]:
    """One line for each rule that `document` breaks."""
    from pyhanko.pdf_utils.reader import PdfFileReader

    reader: Any = PdfFileReader(BytesIO(document))
    if reader.encrypted:
        return ["encrypted (6.1.3)"]
    found = [*_file(document, reader), *_metadata(reader), *_attachments(reader)]
    for thing in _objects(reader):
        if _at(thing, "/Type") == "/Font":
            found += _font(thing)
        if "/JavaScript" in (_at(thing, "/S"), *thing):
            found.append("a script (6.5.1)")
    for number in range(int(reader.root["/Pages"]["/Count"])):
        for annotation in _at(reader.find_page_for_modification(number)[0].get_object(), "/Annots"):
            found += _annotation(annotation.get_object())
    return found


def _at(container: Any, *keys: str, default: Any = ()) -> Any:
    """What lies at the end of a path of keys; pyHanko's own ``get`` leaves references as they are."""
    for key in keys:
        if key not in container:
            return default
        container = container[key]
    return container


def _objects(reader: Any) -> Iterator[Any]:
    """Every dictionary (and the dictionary of every stream) that the document holds together."""
    from pyhanko.pdf_utils.generic import ArrayObject, DictionaryObject, IndirectObject

    waiting, seen = [reader.root], set()
    while waiting:
        thing = waiting.pop()
        if isinstance(thing, IndirectObject):
            if thing.reference in seen:
                continue
            seen.add(thing.reference)
            thing = thing.get_object()
        if isinstance(thing, DictionaryObject):
            yield thing
            waiting += [thing.raw_get(key) for key in thing]
        elif isinstance(thing, ArrayObject):
            waiting += [thing.raw_get(index) for index in range(len(thing))]


def _file(document: bytes, reader: Any) -> Iterator[str]:
    if "/ID" not in reader.trailer or len(reader.trailer["/ID"]) != 2:
        yield "no /ID (6.1.3)"
    if not re.search(rb"%%EOF\r?\n?$", document):
        yield "data after the end (6.1.3)"
    intents = [i for i in _at(reader.root, "/OutputIntents") if i["/S"] == "/GTS_PDFA1"]
    if len(intents) != 1 or "/DestOutputProfile" not in intents[0]:
        yield "no output intent with a profile (6.2.3)"


def _metadata(reader: Any) -> Iterator[str]:
    xmp = reader.root["/Metadata"].data.decode("utf-8") if "/Metadata" in reader.root else ""
    for name, value in (("part", "3"), ("conformance", "B")):
        said = re.search(rf'pdfaid:{name}(?:="|>)([^"<]*)', xmp)
        if not said or said[1] != value:
            yield f"pdfaid:{name} is not {value} (6.6.4)"


def _attachments(reader: Any) -> Iterator[str]:
    names = _at(reader.root, "/Names", "/EmbeddedFiles", "/Names")
    for specification in list(names)[1::2]:
        one = specification.get_object()
        if not {"/F", "/UF", "/AFRelationship", "/EF"} <= set(one):
            yield "a file specification lacks a key (6.8)"
        if "/Subtype" not in one["/EF"]["/F"]:
            yield "an attached file has no media type (6.8)"
    if names and "/AF" not in reader.root:
        yield "attachments are not associated (6.8)"


def _annotation(one: Any) -> Iterator[str]:
    flags = int(_at(one, "/F", default=0))
    if not flags & PRINT or flags & (INVISIBLE | HIDDEN | NO_VIEW | TOGGLE):
        yield f"annotation flags {flags} (6.3.2)"
    rectangle = [float(edge) for edge in one["/Rect"]]
    sized = rectangle[0] != rectangle[2] and rectangle[1] != rectangle[3]
    visible = sized and one["/Subtype"] not in ("/Link", "/Popup")
    if visible and set(_at(one, "/AP")) != {"/N"}:
        yield "an annotation without exactly a normal appearance (6.3.3)"
    if visible and re.search(rb"<(?:[0-9a-fA-F]{4})*?0000", one["/AP"]["/N"].data if "/AP" in one else b""):
        yield "a glyph that the font lacks (6.2.11.8)"


def _font(font: Any) -> Iterator[str]:
    if font["/Subtype"] == "/Type0":
        return  # its descendant has the program
    name, descriptor = font["/BaseFont"], _at(font, "/FontDescriptor")
    if not {"/FontFile", "/FontFile2", "/FontFile3"} & set(descriptor):
        yield f"{name} is not embedded (6.2.11.4)"
    elif font["/Subtype"] == "/CIDFontType2":
        if "/CIDToGIDMap" not in font:
            yield f"{name} has no map to glyphs (6.2.11.3.2)"
        if "/FontFile2" in descriptor:
            yield from _widths(name, font, descriptor["/FontFile2"].data)


def _widths(name: str, font: Any, program: bytes) -> Iterator[str]:
    """6.2.11.5: the widths in the file are those of the font program, in thousandths of an em."""
    from fontTools.ttLib import TTFont

    if font["/CIDToGIDMap"] != "/Identity":
        return
    loaded = TTFont(BytesIO(program), lazy=True)
    scale, metrics, order = 1000 / loaded["head"].unitsPerEm, loaded["hmtx"], loaded.getGlyphOrder()
    entries = iter(_at(font, "/W"))
    for first in entries:
        for offset, width in enumerate(next(entries)):
            if abs(float(width) - metrics[order[int(first) + offset]][0] * scale) > 1:
                yield f"{name} has other widths than its program (6.2.11.5)"
                return
