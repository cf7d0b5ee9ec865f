"""The revision that signs a report adds a signature and nothing else.

The report's own revision is rendered again and compared; what the signing revision draws is not. So every object in it
has a part that signing needs: the catalogue, the page with the signature's widget, the document information and its
XMP twin change in the entries that a signing program writes; all else is new and hangs from the signature field.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from io import BytesIO
from typing import TYPE_CHECKING, Any

from clinsafe.reports.sign import FIELD
from clinsafe.reports.stamp import Stamp, printed

if TYPE_CHECKING:
    from pyhanko.sign.validation import EmbeddedPdfSignature

CATALOGUE = {"/AcroForm", "/Perms", "/Extensions", "/Version"}
INFORMATION = {"/Producer", "/ModDate"}
DESCRIPTION = {"http://ns.adobe.com/pdf/1.3/Producer", "http://ns.adobe.com/xap/1.0/ModifyDate"}
FORM = {"/Fields", "/SigFlags"}
WIDGET = {"/FT", "/T", "/Type", "/Subtype", "/F", "/Rect", "/P", "/V", "/AP"}
SIGNATURE = {
    "/Type", "/Filter", "/SubFilter", "/Contents", "/ByteRange", "/M", "/Name", "/Reason", "/Location", "/Reference",
}  # fmt: skip
APPEARANCE = {"/Type", "/Subtype", "/BBox", "/Resources", "/Length", "/Filter"}
FONTS = {"/Type0", "/CIDFontType0", "/CIDFontType2"}  # a Type3 font draws whatever it likes
SHOWN = 132  # annotation flags: print, locked
ROUNDING = 0.01  # points; a signing program may write fewer digits of a box
_GAP = rb"(?:[\s\0]|%[^\r\n]*[\r\n])+"
_REFERENCE = re.compile(rb"(\d{1,10})" + _GAP + rb"\d{1,5}" + _GAP + rb"R")


def revision_problems(reader: Any, signature: EmbeddedPdfSignature, first_revision: bytes) -> list[str]:
    """What the second revision does beside signing, one plain line each; empty for a report that we signed.

    Args:
        reader: pyHanko's reader of a file with exactly two revisions.
        signature: its only one.
        first_revision: the bytes of the report before signing.
    """
    problems = widget_problems(reader, signature)
    faults = list(dict.fromkeys(_Revision(reader, signature, first_revision).faults()))
    if faults:
        shown = ", ".join(faults[:3]) + (" …" if len(faults) > 3 else "")
        problems.append(f"The revision that signs changes more than a signature needs: {shown}.")
    return problems


def widget_problems(reader: Any, signature: EmbeddedPdfSignature) -> list[str]:
    """What is wrong with what the signature shows on its page: it shows nothing, or our stamp in the box kept free."""
    from pyhanko.pdf_utils.generic import ArrayObject

    field = signature.sig_field
    box = field.raw_get("/Rect") if "/Rect" in field else None
    if not isinstance(box, ArrayObject) or len(box) != 4:
        return ["The place of the signature on its page cannot be read."]
    edges = [float(edge) for edge in box]
    if not any(edges):
        return []
    pages, page = list(_pages(reader)), _target(field, "/P")
    where = f"page {pages.index(page) + 1}" if page in pages else "a page"
    if signature.field_name != FIELD or not printed(signature):
        return [f"A drawing that this tool did not make lies over {where}."]
    usual = Stamp()
    kept_free = all(abs(a - b) < ROUNDING for a, b in zip(edges, usual.box, strict=True))
    if page != pages[usual.page] or not kept_free:
        return [f"The stamp lies over {where} and not in the box that the last page keeps free for it."]
    return []


class _Revision:
    """Two revisions of one file, the second of which signs."""

    def __init__(self, reader: Any, signature: EmbeddedPdfSignature, first_revision: bytes) -> None:
        xrefs = reader.xrefs
        self.reader, self.field, self.first = reader, signature.sig_field, first_revision
        self.place = _key(self.field.container_ref)
        self.before = {_key(ref) for ref in xrefs.explicit_refs_in_revision(0)}
        listing = xrefs.get_xref_container_info(1).stream_ref
        self.written = {_key(ref): ref for ref in xrefs.explicit_refs_in_revision(1) if ref != listing}
        self.added = self.written.keys() - self.before
        self.catalogue, self.information = (_target(reader.trailer, name) for name in ("/Root", "/Info"))
        self.page = _target(self.field, "/P")

    def faults(self) -> Iterator[str]:
        """A few words each."""
        yield from self._structure()
        roles = {self.catalogue: self._catalogue, self.page: self._page, self.information: self._information}
        metadata = _target(self.reader.root, "/Metadata")
        for key in sorted(self.written.keys() & self.before):
            old, new = (self.reader.get_object(self.written[key], revision=number) for number in (0, 1))
            if key == metadata and metadata is not None:
                yield from _metadata(old, new)
            elif key in roles and isinstance(old, dict) and isinstance(new, dict):
                yield from roles[key](old, new)
            else:
                yield f"object {key[0]} is another"
        yield from self._new()

    def _structure(self) -> Iterator[str]:
        """What readers find the objects by."""
        xrefs, trailer = self.reader.xrefs, self.reader.trailer
        old, new = trailer.flatten(0), trailer.flatten(1)
        kept = {name for name in {*old, *new} if name not in ("/ID", "/Size", "/Prev")}
        if any(_spelt(old, name) != _spelt(new, name) for name in kept) or _first(old) != _first(new):
            yield "the trailer is another"
        if set(xrefs.get_xref_data(1).freed) - {0} or xrefs.hybrid_xrefs_present:
            yield "objects are taken away"
        if xrefs.object_streams_used_in(1):
            yield "objects are hidden in streams"
        size = int(old["/Size"])
        if any(number < size or generation for number, generation in self.added):
            yield "numbers of the report are used again"
        streams = [self.reader.get_object(ref, revision=0).data for ref in xrefs.object_streams_used_in(0)]
        if any(int(number) >= size for text in (self.first, *streams) for number in _REFERENCE.findall(text)):
            yield "the report refers to what it does not have"  # and the second revision could supply it

    def _catalogue(self, old: Any, new: Any) -> Iterator[str]:
        yield from _others(old, new, CATALOGUE, "the catalogue")
        if "/AcroForm" in old or "/Perms" in old:
            yield "the report has a form already"
        form = _entry(new, "/AcroForm")
        fields = form.raw_get("/Fields") if "/Fields" in form else ()
        if set(form) != FORM or [_ref(one) for one in fields] != [self.place]:
            yield "the form holds more than the signature"
        permitted = _entry(new, "/Perms")
        signed = _target(self.field, "/V")
        if any(name != "/DocMDP" or _target(permitted, name) != signed for name in permitted):
            yield "/Perms in the catalogue"
        for name in ("/Extensions", "/Version"):
            if name in new and list(_references(new.raw_get(name))):
                yield f"{name} in the catalogue"

    def _page(self, old: Any, new: Any) -> Iterator[str]:
        """The widget is appended to the annotations, if there are any."""
        yield from _others(old, new, {"/Annots"}, "the page")
        if old.get("/Type") != "/Page" or self.page not in _pages(self.reader):
            yield "a page that is none"
        before, after = (one.raw_get("/Annots") if "/Annots" in one else [] for one in (old, new))
        lists = isinstance(before, list) and isinstance(after, list)
        if not lists or [*map(_ref, before), self.place] != [*map(_ref, after)]:
            yield "the annotations of the page"

    def _information(self, old: Any, new: Any) -> Iterator[str]:
        yield from _others(old, new, INFORMATION, "the document information")
        if any(name in new and not isinstance(new.raw_get(name), str | bytes) for name in INFORMATION):
            yield "the document information"

    def _new(self) -> Iterator[str]:
        """Everything new is the form, the field, its signature, or drawn by its appearance."""
        parts = {self.place: WIDGET, _target(self.field, "/V"): SIGNATURE}
        form = _target(self.reader.root, "/AcroForm")
        look = self.field.raw_get("/AP") if "/AP" in self.field else {}
        drawn = _target(look, "/N") if isinstance(look, dict) else None
        if self.field.get("/FT") != "/Sig" or self.field.get("/F") != SHOWN or (look and set(look) != {"/N"}):
            yield "the signature field"
        if drawn is not None:
            parts[drawn] = APPEARANCE
        for key, names in parts.items():
            if key not in self.added or set(self._get(key)) - names:
                yield (
                    "the signature field" if names is WIDGET else f"object {key and key[0]} of the signature"
                )
        if list(_references(self.field["/V"])) or any(_target(self.field, n) is None for n in ("/V", "/P")):
            yield "the signature refers to other objects"
        used = {key for key in (*parts, form) if key in self.added}
        if drawn in self.added:
            used |= yield from self._fonts(self._get(drawn))
        for key in sorted(self.added - used):
            yield f"object {key[0]} is no part of the signature"

    def _fonts(self, appearance: Any) -> Any:
        """The objects of the fonts that the appearance uses; yields what is none."""
        resources = appearance.raw_get("/Resources") if "/Resources" in appearance else {}
        if not isinstance(resources, dict) or set(resources) - {"/Font"}:
            yield "the stamp uses more than fonts"
            return set()
        found: set[Any] = set()
        waiting = list(_references(resources))
        while waiting:
            key = waiting.pop()
            if key in found:
                continue
            if key not in self.added:
                yield "the stamp uses objects of the report"
                continue
            found.add(key)
            value = self._get(key)
            kind, form = (
                (value.get("/Type"), value.get("/Subtype")) if isinstance(value, dict) else (None, None)
            )
            if kind not in (None, "/Font", "/FontDescriptor") or (kind == "/Font" and form not in FONTS):
                yield "the stamp uses more than fonts"
            waiting += _references(value)
        return found

    def _get(self, key: Any) -> Any:
        return self.reader.get_object(self.written[key]) if key in self.written else {}


def _others(old: Any, new: Any, allowed: set[str], what: str) -> Iterator[str]:
    """Entries that differ and must not."""
    for name in {**old, **new}:
        if name not in allowed and _spelt(old, name) != _spelt(new, name):
            yield f"{name} in {what}"


def _metadata(old: Any, new: Any) -> Iterator[str]:
    """XMP: another producer and time of change, the rest as it was."""
    from pyhanko.pdf_utils.generic import StreamObject
    from pyhanko.pdf_utils.metadata.xmp_xml import parse_xmp

    if not (isinstance(old, StreamObject) and isinstance(new, StreamObject)):
        yield "the XMP metadata"
        return
    yield from _others(old, new, {"/Length", "/Filter", "/DecodeParms"}, "the XMP metadata")
    try:
        said = [  # sets, as the parts are merged and each has the same rdf:about
            {
                (str(name), repr(value))
                for part in parse_xmp(BytesIO(one.data))
                for name, value in part
                if str(name) not in DESCRIPTION
            }
            for one in (old, new)
        ]
    except ValueError:
        said = [set(), {("", "cannot be read")}]
    if said[0] != said[1]:
        yield "the XMP metadata"


def _first(trailer: Any) -> Any:
    """The half of a file's identity that no later revision changes."""
    return trailer["/ID"][0] if "/ID" in trailer else None


def _pages(reader: Any) -> Iterator[Any]:
    """The pages in order, as pairs of number and generation; neither revision may change the tree of them."""
    waiting, seen = [_target(reader.root, "/Pages")], set()
    while waiting:
        key = waiting.pop()
        if key is None or key in seen:
            continue
        seen.add(key)
        node = reader.get_object(_reference(reader, key))
        if "/Kids" in node:
            waiting += [_ref(kid) for kid in reversed(node["/Kids"])]
        else:
            yield key


def _reference(reader: Any, key: tuple[int, int]) -> Any:
    from pyhanko.pdf_utils.generic import Reference

    return Reference(*key, pdf=reader)


def _key(reference: Any) -> tuple[int, int]:
    return reference.idnum, reference.generation


def _ref(value: Any) -> tuple[int, int] | None:
    """Where a raw value points to; None for a value that stands here itself."""
    from pyhanko.pdf_utils.generic import IndirectObject

    return (value.idnum, value.generation) if isinstance(value, IndirectObject) else None


def _target(dictionary: Any, name: str) -> tuple[int, int] | None:
    return _ref(dictionary.raw_get(name)) if name in dictionary else None


def _entry(dictionary: Any, name: str) -> Any:
    """What an entry holds or points to (`get` gives the pointer); an empty dictionary where there is none."""
    found = dictionary[name] if name in dictionary else None  # noqa: SIM401
    return found if isinstance(found, dict) else {}


def _references(value: Any) -> Iterator[tuple[int, int]]:
    """Every reference inside a value, at any depth."""
    from pyhanko.pdf_utils.generic import ArrayObject, DictionaryObject

    if (key := _ref(value)) is not None:
        yield key
    elif isinstance(value, DictionaryObject):
        for name in value:
            yield from _references(value.raw_get(name))
    elif isinstance(value, ArrayObject):
        for index in range(len(value)):
            yield from _references(value.raw_get(index))


def _spelt(dictionary: Any, name: str) -> bytes | None:
    """An entry as it is written: a name and a string of the same letters differ, which `==` does not tell."""
    if name not in dictionary:
        return None
    stream = BytesIO()
    dictionary.raw_get(name).write_to_stream(stream, None)
    return stream.getvalue()
