"""The pages: the same words in HTML and PDF, drawn without a system font, byte-identical, embedded fonts."""

from __future__ import annotations

import re
import subprocess

import pytest

from clinsafe.content import Content
from clinsafe.errors import MissingDependency, RenderError
from clinsafe.reports import pdf
from clinsafe.reports.charts import Distribution, alternative, similarity_svg
from clinsafe.reports.evidence import to_bytes
from clinsafe.reports.pdfcheck import attachment
from clinsafe.reports.render import html
from clinsafe.reports.words import missing_words


@pytest.fixture(scope="module")
def document(finished):
    return finished.pdf.read_bytes()


def text_of(document: bytes) -> str:
    import pypdfium2

    pages = pypdfium2.PdfDocument(document)
    return " ".join(page.get_textpage().get_text_range() for page in pages)


def squeeze(text: str) -> str:
    return re.sub(r"\W+", "", text)


def test_html_and_pdf_say_the_same_words_in_the_same_order(finished, document):
    page = finished.html.read_text(encoding="utf-8")
    assert missing_words(page, document) == []


def test_a_changed_or_exchanged_cell_is_missed(finished, document):
    """A word check that always finds everything would pass the test above."""
    page = finished.html.read_text(encoding="utf-8")
    cells = re.findall(r"<td>(\d/3 = [^<]+)</td>", page)
    first, other = cells[0], next(c for c in cells if c != cells[0])
    assert missing_words(page.replace(first, "0/3 = 0.00 [0.00, 0.71] x", 1), document)
    swapped = page.replace(first, "@@", 1).replace(other, first, 1).replace("@@", other, 1)
    assert missing_words(swapped, document)


def test_the_verdict_is_on_the_first_page_with_its_intervals(document):
    import pypdfium2

    first = pypdfium2.PdfDocument(document)[0].get_textpage().get_text_range()
    assert "HELD" in first
    assert "NOTFORRELEASE" in squeeze(first)  # the model is a fake
    for hazard in ("Negation", "Numerical", "Temporal", "Entity", "Hedging", "Quantifier"):
        assert hazard in first
    assert re.search(r"\d/3 = \d\.\d\d \[\d\.\d\d, \d\.\d\d\]", first)


def test_the_evidence_in_the_pdf_is_the_evidence(document, finished):
    assert (
        attachment(document)
        == to_bytes(finished.evidence)
        == (finished.folder / "evidence.json").read_bytes()
    )


def test_equal_input_gives_equal_bytes(finished, document):
    again = pdf.render(
        html(finished.evidence, Content()), to_bytes(finished.evidence), finished.evidence.created, Content()
    )
    assert again == document


def test_it_is_marked_pdf_a_3b_and_every_font_is_embedded(document):
    from io import BytesIO

    from pyhanko.pdf_utils.reader import PdfFileReader

    reader = PdfFileReader(BytesIO(document))
    metadata = reader.root["/Metadata"].data.decode()
    assert re.search(r"pdfaid:part\W+3", metadata)
    assert re.search(r"pdfaid:conformance\W+B", metadata)
    assert "/OutputIntents" in reader.root
    names = set()
    for number in range(reader.root["/Pages"]["/Count"]):
        page, _ = reader.find_page_for_modification(number)
        fonts = page.get_object()["/Resources"].get("/Font", {}).get_object()
        for font in fonts.values():
            descendant = font.get_object()["/DescendantFonts"][0].get_object()
            descriptor = descendant["/FontDescriptor"]
            assert any(key in descriptor for key in ("/FontFile", "/FontFile2", "/FontFile3"))
            names.add(str(descendant["/BaseFont"]))
    assert names
    assert all("DejaVu-Sans" in n or "DejaVuSans" in n or "CS-Sans" in n for n in names), names


def test_it_renders_where_no_font_is_installed(finished, tmp_path, monkeypatch):
    empty = tmp_path / "fonts.conf"
    empty.write_text('<?xml version="1.0"?><!DOCTYPE fontconfig SYSTEM "fonts.dtd"><fontconfig></fontconfig>')
    monkeypatch.setenv("FONTCONFIG_FILE", str(empty))
    evidence = finished.evidence
    page = pdf.render(html(evidence, Content()), to_bytes(evidence), evidence.created, Content())
    assert page.startswith(b"%PDF")


def test_a_renderer_that_dies_is_an_error_not_a_dead_command(finished, monkeypatch):
    monkeypatch.setattr(
        subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, -11, "", "Pango-CRITICAL")
    )
    with pytest.raises(RenderError, match=r"died \(signal 11\).*font.*kept"):
        pdf.render("<p>x</p>", b"{}", finished.evidence.created, Content())


@pytest.mark.parametrize(
    ("stderr", "words"),
    [
        ("ModuleNotFoundError: No module named 'weasyprint'", r"pip install 'clinsafe\[audit\]'"),
        ("OSError: cannot load library 'libpango-1.0-0'", "apt-get install"),
    ],
)
def test_a_missing_renderer_says_how_to_install_it(finished, monkeypatch, stderr, words):
    monkeypatch.setattr(subprocess, "run", lambda *a, **k: subprocess.CompletedProcess(a, 1, "", stderr))
    with pytest.raises(MissingDependency, match=words):
        pdf.render("<p>x</p>", b"{}", finished.evidence.created, Content())


def test_without_a_renderer_the_audit_still_ends_with_html_and_signed_evidence(
    small_suite, tmp_path, monkeypatch, signing_key
):
    from clinsafe.reports.verify import verify
    from clinsafe.workflows.audit import run_audit

    def missing(*_):
        raise MissingDependency("making the PDF", "the Pango libraries", "apt-get install …")

    monkeypatch.setattr(pdf, "render", missing)
    result = run_audit("fake:words", out=tmp_path / "run", overlay=small_suite, key=signing_key)
    assert result.pdf is None
    assert result.report == result.html
    assert "Pango" in result.notes[0]
    certificate = tmp_path / "trust.der"
    certificate.write_bytes(signing_key.certificate)
    checked = verify(result.folder / "evidence.json", [certificate])
    assert checked.valid, checked.problems
    assert checked.verdict.startswith("VALID: signed by")  # a record has no pages to compare


def test_charts_are_deterministic_accessible_and_safe_to_inline_twice():
    chart = Distribution("Negation & co", [0.9, 0.8], [0.99, 0.7], [0.85])
    svg = similarity_svg(chart)
    assert svg == similarity_svg(chart)
    assert 'role="img"' in svg
    assert "1 above the lowest limit" in alternative(chart)
    ids = re.findall(r' id="([^"]+)"', svg)
    other = re.findall(r' id="([^"]+)"', similarity_svg(Distribution("Temporal", [0.9], [0.8], [0.85])))
    assert len(ids) == len(set(ids))
    assert not set(ids) & set(other)
    assert set(re.findall(r'href="#([^"]+)"', svg)) <= set(ids)


def test_a_chart_of_nothing_says_so():
    chart = Distribution("Negation", [], [], [0.85])
    assert "nothing was measured" in alternative(chart)
    assert similarity_svg(chart).startswith("<svg")


@pytest.mark.slow
def test_unmeasured_figures_are_printed_as_such_never_as_zero_or_a_pass(small_suite, tmp_path, few):
    from clinsafe.adapters.reference import FakeEncoder
    from clinsafe.workflows.audit import run_audit

    class Silent(FakeEncoder):
        def encode(self, texts, /):
            rows = super().encode(texts)
            rows[:] = float("nan")
            return rows

    result = run_audit(Silent("hash"), out=tmp_path / "run", overlay=small_suite)
    page = result.html.read_text(encoding="utf-8")
    assert len(result.held) == 6
    assert not result.released
    assert {g.decision for g in result.assessment.gates} == {"INCONCLUSIVE"}
    assert {a.answer for a in result.assessment.items} == {"not assessed"}
    summary = page[page.index('class="summary"') : page.index('class="reading"')]
    assert summary.count("not measured") == 18
    assert "0/" not in summary
    assert "✓" not in summary
    assert result.pdf is not None


def test_nothing_is_cut_at_the_edge_of_a_page(document):
    """Every letter lies inside the margins: a table that is too wide would run over the right one."""
    import pypdfium2

    margin = 12 * 72 / 25.4  # points; the style sheet leaves 14 mm
    for number, page in enumerate(pypdfium2.PdfDocument(document), 1):
        width, text = page.get_size()[0], page.get_textpage()
        boxes = [text.get_charbox(i) for i in range(text.count_chars()) if text.get_text_range(i, 1).strip()]
        cells = [b for b in boxes if b[3] - b[1] < 12]  # letters of the page, not of the watermark
        assert all(margin <= b[0] and b[2] <= width - margin for b in cells), number
