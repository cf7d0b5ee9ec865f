"""The visible stamp: what it prints, where, and that the file stays PDF/A-3b."""

from __future__ import annotations

import shutil
import sys
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from io import BytesIO
from pathlib import Path
from typing import Any

import pytest

from clinsafe.content import Content
from clinsafe.errors import MissingDependency, UsageError
from clinsafe.reports import stamp as stamps
from clinsafe.reports.pdfcheck import check_pdf
from clinsafe.reports.render import FONTS
from clinsafe.reports.sign import REASONS, Meaning, SigningKey, prepare, sign_pdf
from clinsafe.reports.stamp import MM, Stamp, can_stamp, differs, lines
from tests.reports.attacks import encrypted
from tests.reports.pdfa import lint
from tests.reports.signing import DEVELOPMENT, NOW, World, run, update

pytest.importorskip("weasyprint")
pytest.importorskip("uharfbuzz")


@pytest.fixture(scope="module")
def world() -> World:
    return World()


@pytest.fixture(scope="module")
def stamped(world: World) -> bytes:
    """Signed by a development key, with everything that can be printed."""
    return sign_pdf(
        world.unsigned, world.key, meaning="approval", when=NOW, printed_name="Ada Lövelace", stamp=Stamp(),
        location="Köln",
    )  # fmt: skip


def with_pyhanko(document: bytes, key: SigningKey, style: Any) -> bytes:
    """A visible signature drawn by pyHanko's own means."""
    from pyhanko.pdf_utils.incremental_writer import IncrementalPdfFileWriter
    from pyhanko.sign import signers
    from pyhanko.sign.fields import SigFieldSpec

    signer = signers.PdfSigner(
        signers.PdfSignatureMetadata(field_name="Own", md_algorithm="sha256"),
        key.pyhanko_signer(),
        stamp_style=style,
        new_field_spec=SigFieldSpec("Own", on_page=-1, box=(40, 500, 300, 585)),
    )
    output: BytesIO = signer.sign_pdf(IncrementalPdfFileWriter(BytesIO(document)))
    return output.getvalue()


# ── what it says ───────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("meaning", REASONS)
def test_the_lines(world: World, meaning: Meaning) -> None:
    """Printed name, meaning, UTC time, certificate; a development key says what it is."""
    text = lines(world.key, meaning, NOW, printed_name="Ada", location="Köln")
    assert text[:2] == ("Ada", REASONS[meaning])
    joined = "\n".join(text)
    for part in (
        f"{NOW:%Y-%m-%d %H:%M:%S} UTC",
        "Köln",
        DEVELOPMENT + "A. Auditor",
        world.key.fingerprint[:16],
    ):
        assert part in joined
    assert "proves nothing about who signed" in joined
    assert world.key.fingerprint[:17] not in joined
    assert "nothing" not in "\n".join(lines(world.issued, meaning, NOW))
    assert lines(world.issued, meaning, NOW)[0] == "I. Ssued"


def test_one_time(world: World) -> None:
    """The stamp, /M and the check tell the same second, from a time with a zone and microseconds."""
    when = NOW.astimezone(timezone(timedelta(hours=5))).replace(microsecond=999_999)
    found = check_pdf(
        sign_pdf(world.unsigned, world.key, meaning="author", when=when, stamp=Stamp()),
        [world.key.certificate],
    )
    assert found.valid
    assert found.signed_at == NOW
    assert f"{NOW:%Y-%m-%d %H:%M:%S} UTC" in "\n".join(found.printed)


def test_the_check_reads_the_stamp(world: World, stamped: bytes) -> None:
    """Line by line as printed; an invisible signature prints nothing, and that is no problem."""
    found = check_pdf(stamped, [world.key.certificate])
    assert found.valid
    assert found.printed == lines(world.key, "approval", NOW, printed_name="Ada Lövelace", location="Köln")
    assert found.first_revision == world.unsigned
    assert check_pdf(world.signed, [world.key.certificate]).printed == ()


def test_name_and_place_are_in_the_signature(stamped: bytes) -> None:
    """Not only on the page: other programs show the dictionary's entries."""
    from pyhanko.pdf_utils.reader import PdfFileReader

    said = PdfFileReader(BytesIO(stamped)).embedded_signatures[0].sig_object
    assert (said["/Name"], said["/Location"]) == ("Ada Lövelace", "Köln")


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text, _: (*text[:2], "2020-01-01 00:00:00 UTC", *text[3:]), "another time"),
        (lambda text, _: (text[0], REASONS["review"], *text[2:]), "another meaning"),
        (
            lambda text, key: tuple(part.replace(key.fingerprint[:16], "0" * 16) for part in text),
            "certificate",
        ),
    ],
)
def test_a_stamp_that_says_otherwise(
    world: World, monkeypatch: pytest.MonkeyPatch, change: Any, told: str
) -> None:
    """A reader on paper sees nothing else: a stamp that differs from its signature is a problem."""
    real = stamps.lines
    monkeypatch.setattr(stamps, "lines", lambda *a, **k: change(real(*a, **k), world.key))
    document = sign_pdf(world.unsigned, world.key, meaning="approval", when=NOW, stamp=Stamp())
    found = check_pdf(document, [world.key.certificate])
    assert not found.valid
    assert len(found.problems) == 1
    assert told in found.problems[0]


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: ("Prof. E. Lse", *text[1:]), ["name"]),
        (lambda text: ("Prof. E. Lse", *text), ["name"]),
        (lambda text: (text[0] + " MD", *text[1:]), ["name"]),
        (lambda text: ("?" * len(text[0]), *text[1:]), ["name"]),
        (lambda text: text[1:], ["name"]),
        (lambda text: (text[0], REASONS["review"], *text[2:]), ["meaning"]),
        (lambda text: tuple(line.replace(" UTC", " EST") for line in text), ["time"]),
        (lambda text: tuple(line.replace("Köln", "Bonn") for line in text), ["place"]),
        (lambda text: (*text[:-2], f"SHA-256 of the certificate: {'0' * 16}…", text[-1]), ["certificate"]),
        (lambda text: ("E. Lse", REASONS["review"], *text[2:]), ["name", "meaning"]),
        (lambda text: (*text, "All hazards PASS"), ["wording"]),
        (lambda text: (*text[:2], "Co-signed: E. Lse", *text[2:]), ["wording"]),
        (lambda text: text[:-1], ["wording"]),
        (lambda text: tuple(line.replace("A. Auditor", "E. Lse") for line in text), ["wording"]),
        (lambda text: text, []),
        (lambda text: (*text[0].split(), *text[1:]), []),
    ],
)
def test_every_line_is_compared(world: World, change: Any, told: list[str]) -> None:
    """With the signature's own name, meaning, time and place, and with the certificate; line breaks are not."""
    text = change(lines(world.key, "approval", NOW, printed_name="Ada Lövelace", location="Köln"))
    said = {"/Reason": REASONS["approval"], "/Name": "Ada Lövelace", "/Location": "Köln"}
    assert differs(text, world.key, NOW, said) == told


def test_letters_that_the_font_lacks(world: World) -> None:
    """A question mark stands for one of them in the certificate's name, and for nothing else."""
    key = replace(world.issued, name="山田 A?")
    said = {"/Reason": REASONS["author"], "/Name": key.name}
    text = lines(key, "author", NOW)
    assert text[0] == "?? A?"
    assert differs(text, key, NOW, said) == []
    assert differs(("?? ??", *text[1:]), key, NOW, said) == ["name"]
    assert differs(text, key, NOW, said | {"/Name": "田山 A?"}) == ["name"], (
        "a chosen name has all its letters"
    )
    assert differs(text, key, None, said) == ["time"]
    assert differs(text, key, NOW, {}) == ["name", "meaning"]


def test_another_name_on_the_page(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The whole way: the trusted key signs under one name and prints another."""
    real = stamps.lines
    monkeypatch.setattr(stamps, "lines", lambda *a, **k: ("Prof. E. Lse", *real(*a, **k)[1:]))
    document = sign_pdf(world.unsigned, world.key, meaning="approval", when=NOW, stamp=Stamp())
    found = check_pdf(document, [world.key.certificate])
    assert found.problems == ("The stamp on the page says another name than the signature.",)


def test_a_stamp_drawn_by_others(world: World) -> None:
    """Its words are not read; that it lies over the page is a problem."""
    from pyhanko.stamp import TextStampStyle

    document = with_pyhanko(world.unsigned, world.key, TextStampStyle(stamp_text="signed"))
    found = check_pdf(document, [world.key.certificate])
    assert found.printed == ()
    assert any("did not make lies over page 1" in line for line in found.problems)
    assert not any("stamp" in line for line in found.problems)


# ── what cannot be printed ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("bad", ["", "  ", "A\x1b[2J", "A\nB", "x" * 101, "山田太郎"])
@pytest.mark.parametrize("which", ["printed_name", "location"])
def test_what_cannot_be_printed(world: World, bad: str, which: str) -> None:
    """One line that says what would do; nothing is silently left out of a name."""
    if (bad, which) == ("", "location"):
        return  # no place was given
    with pytest.raises(UsageError) as caught:
        sign_pdf(world.unsigned, world.key, meaning="author", stamp=Stamp(), **{which: bad})  # type: ignore[arg-type]
    assert "\n" not in str(caught.value)


def test_a_certificate_in_other_letters_still_signs(world: World) -> None:
    """Its name was given by others; what the font lacks is a question mark, in a file that stays PDF/A."""
    key = replace(world.key, name="山田 A%s")
    document = sign_pdf(world.unsigned, key, meaning="author", stamp=Stamp())
    assert check_pdf(document, [world.key.certificate]).printed[0] == "?? A%s"
    assert lint(document) == []


@pytest.mark.parametrize("name", ["محمد العلي", "Ελένη", "Ана", "Nguyễn Thị Minh", "x\u0301 ffi"])
def test_names_of_other_scripts(world: World, name: str) -> None:
    """Those that the shipped font has, combining accents and right to left among them."""
    document = sign_pdf(world.unsigned, world.key, meaning="author", printed_name=name, stamp=Stamp())
    found = check_pdf(document, [world.key.certificate])
    assert found.valid
    assert found.printed[0] == name
    assert lint(document) == []


# ── where ──────────────────────────────────────────────────────────────────────────────────────


def test_the_box_that_the_report_keeps_free() -> None:
    """92 x 30 mm, 14 mm from the left and 60 mm from the top of A4."""
    left, bottom, right, top = Stamp().box
    assert (right - left, top - bottom) == pytest.approx((92 * MM, 30 * MM))
    assert (left, 297 * MM - top) == pytest.approx((14 * MM, 60 * MM))


def test_ink_in_the_box_and_nowhere_else(world: World, stamped: bytes) -> None:
    """Seen by another renderer: the page changes inside the box only, and the letters reach across it."""
    import pypdfium2

    pictures = []
    for document in (world.unsigned, stamped):
        with pypdfium2.PdfDocument(document) as pdf:
            if document is stamped:
                pdf.init_forms()
            pictures.append(pdf[0].render(scale=2).to_numpy()[..., 0].astype(int))
            height = pdf[0].get_height()
    rows, columns = (abs(pictures[0] - pictures[1]) > 60).nonzero()
    left, bottom, right, top = (2 * edge for edge in Stamp().box)
    assert len(rows) > 2000
    assert left - 2 <= columns.min() < left + 4
    assert right - 4 < columns.max() <= right + 2
    assert 2 * height - top - 2 <= rows.min()
    assert rows.max() <= 2 * height - bottom + 2
    inside = (rows > rows.min() + 6) & (rows < rows.max() - 6) & (columns > left + 6) & (columns < right - 6)
    letters = columns[inside]
    assert letters.max() - letters.min() < 0.8 * (right - left), "letters are spaced out: wrong widths"


@pytest.mark.parametrize("page", [0, -1])
def test_on_the_page_that_was_asked_for(world: World, page: int) -> None:
    document = sign_pdf(world.unsigned, world.key, meaning="author", stamp=Stamp(page))
    assert check_pdf(document, [world.key.certificate]).valid


@pytest.mark.parametrize(
    "wrong",
    [
        Stamp(7), Stamp(-8), Stamp(box=(0, 0, 9999, 50)), Stamp(box=(300, 10, 200, 50)), Stamp(box=(-5, 1, 9, 9)),
        Stamp(box=(float("nan"), 1, 9, 9)),
    ],
)  # fmt: skip
def test_no_such_place(world: World, wrong: Stamp) -> None:
    """With the pages or the edges that there are."""
    with pytest.raises(UsageError, match=r"give (-1 to 0|left, bottom, right, top)"):
        sign_pdf(world.unsigned, world.key, meaning="author", stamp=wrong)


# ── PDF/A ──────────────────────────────────────────────────────────────────────────────────────


def test_pdf_a_is_kept(world: World, stamped: bytes) -> None:
    """Unsigned, invisible and visible."""
    assert lint(world.unsigned) == lint(world.signed) == lint(stamped) == []


def test_pyhankos_own_stamps_break_it(world: World) -> None:
    """The lint can fail: Courier has no font program, and the shipped font as it is has 2048 units an em."""
    from pyhanko.pdf_utils.font import FontEngineFactory
    from pyhanko.pdf_utils.font.opentype import GlyphAccumulator
    from pyhanko.pdf_utils.text import TextBoxStyle
    from pyhanko.stamp import TextStampStyle

    found = lint(with_pyhanko(world.unsigned, world.key, TextStampStyle(stamp_text="signed")))
    assert len(found) == 1
    assert "Courier is not embedded" in found[0]

    class AsItIs(FontEngineFactory):
        def create_font_engine(self, writer: Any, obj_stream: Any = None) -> Any:
            handle = BytesIO(Content().path(FONTS[0]).read_bytes())
            return GlyphAccumulator(writer, handle, 10, obj_stream=obj_stream)

    style = TextStampStyle(stamp_text="signed", text_box_style=TextBoxStyle(font=AsItIs()))
    found = lint(with_pyhanko(world.unsigned, world.key, style))
    assert len(found) == 1
    assert "other widths" in found[0]


def without(key: str) -> Any:
    """A change that takes one entry out of the catalogue."""

    def change(writer: Any) -> None:
        del writer.root[key]
        writer.update_root()

    return change


@pytest.mark.parametrize(
    ("build", "told"),
    [
        (encrypted, "encrypted"),
        (lambda w: update(w.unsigned, without("/OutputIntents")), "output intent"),
        (lambda w: update(w.unsigned, without("/AF")), "not associated"),
        (lambda w: update(w.unsigned, without("/Metadata")), "pdfaid"),
        (lambda w: w.signed + b"more", "after the end"),
        (lambda w: w.signed.replace(b"/F 132", b"/F 130"), "annotation flags 130"),
    ],
)
def test_the_lint_fails(world: World, build: Any, told: str) -> None:
    assert told in " ".join(lint(build(world)))


def test_pdffonts_agrees(stamped: bytes, tmp_path: Path) -> None:
    """poppler lists every font as embedded and readable as text."""
    if shutil.which("pdffonts") is None:
        pytest.skip("pdffonts is not installed (Debian package poppler-utils)")
    (tmp_path / "report.pdf").write_bytes(stamped)
    rows = run("pdffonts", tmp_path / "report.pdf").stdout.splitlines()[2:]
    assert any("DejaVuSans" in row for row in rows)
    for row in rows:
        assert row.split()[-5:-2] == ["yes", "yes", "yes"]


# ── without the packages ───────────────────────────────────────────────────────────────────────


def test_without_the_packages(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """The signature can still be made, invisible; a stamp asks for the extra."""
    prepare()
    assert can_stamp()
    monkeypatch.setitem(sys.modules, "uharfbuzz", None)
    assert not can_stamp()
    prepare()
    assert check_pdf(sign_pdf(world.unsigned, world.key, meaning="author"), [world.key.certificate]).valid
    with pytest.raises(MissingDependency, match="uharfbuzz"):
        sign_pdf(world.unsigned, world.key, meaning="author", stamp=Stamp())


def test_the_clock_is_the_default(world: World) -> None:
    found = check_pdf(
        sign_pdf(world.unsigned, world.key, meaning="author", stamp=Stamp()), [world.key.certificate]
    )
    assert found.signed_at is not None
    assert abs(found.signed_at - datetime.now(UTC)) < timedelta(minutes=1)
