"""The pages of a RAG evaluation: everything measured is said with its n, nothing unmeasured looks like a number."""

from __future__ import annotations

import re
from html import unescape

import pytest

from clinsafe.content import Content
from clinsafe.errors import ContentError, RenderError
from clinsafe.rag.figures import figures
from clinsafe.rag.metrics import metric_of
from clinsafe.rag.values import ItemRecord
from clinsafe.reports.rag_charts import Cell, Point, inline, intervals_svg, quadrants_svg, sweep_svg
from clinsafe.reports.rag_compared import alpha_of
from clinsafe.reports.rag_formats import Notes, ends, kept, ordered, result, shown_difference, value
from clinsafe.reports.rag_record import from_bytes, to_bytes
from clinsafe.reports.rag_render import html
from clinsafe.reports.rag_standing import standing_of
from clinsafe.stats import Estimate, NotMeasured, mean, rate_of
from tests.rag.auditing.labelled import HAZARDS
from tests.reports.rag_planted import JUDGE, SETTINGS, items, judge, record


def words(page):
    """The page's texts, in one line."""
    body = re.sub(r"<head>.*?</head>|<svg .*?</svg>", " ", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).replace("\u00a0", " ").split())


@pytest.fixture(scope="module")
def one():
    """59 questions, so that means have intervals; drawn once with pictures."""
    return record({"ward": items(59)})


@pytest.fixture(scope="module")
def page(one):
    return html(one, Content())


@pytest.fixture(scope="module")
def bare():
    """Nothing but hits of twelve questions: no answer, encoder, filter or judge."""
    found = [
        ItemRecord(
            id=f"q{i}", values={"hit": i % 2, "hit_at.1": i % 2}, missing={"correct": "there is no answer"}
        )
        for i in range(12)
    ]
    return record({"bare": found}, by="none", filters="", encoder=None)


def test_every_figure_of_all_questions_is_printed_with_count_or_n(one, page):
    text = words(page)
    standing = standing_of(one.judge, one.systems[0].items)
    for key, figure in figures(one.systems[0].items, SETTINGS, standing).items():
        if "@" not in key and isinstance(figure, Estimate):
            assert result(figure, metric_of(key)) in text, key


@pytest.mark.slow
def test_equal_records_give_equal_pages_whatever_the_order_of_their_systems_items(one, page):
    again = from_bytes(to_bytes(one))
    assert html(again, Content()) == page  # pictures too


def test_what_was_not_measured_says_why_in_words_and_is_no_zero(bare):
    text = words(html(bare, Content(), charts=False))
    assert "CUE NOT MEASURED" in text
    assert "there is no answer" in text
    assert "no judge was audited" in text
    assert "Nobody judged" in text
    assert "no filter looked" in text.lower()
    assert "6/12 = 50.0 % [21.1, 78.9]" in text
    assert "0/0" not in text
    assert not re.search(r"\bnan\b|[:=>] None\b", text)


def test_the_first_page_says_what_is_safe_to_say_by_bounds_and_not_by_values(page):
    start = words(page).split("2 Document control")[0]
    assert "CUE MEASURED" in start
    bound = rate_of(31, 59)
    assert f"at least {100 * bound.lower:.1f} % (31/59 seen)" in start
    assert "List-component F1: the reference is no list" in start


@pytest.mark.parametrize(
    ("by", "told", "silent"),
    [
        ("audited", "audited on 216 labelled answers", "CUE NOT MEASURED"),
        ("failed", "its upper bound must be at most 0.10", "CUE MEASURED"),
        ("unaudited", "unaudited word", "CUE MEASURED"),
        ("readers", "adherence declared by two clinicians of the ward on 8 answers", "CUE NOT MEASURED"),
    ],
)
def test_the_judge_is_named_with_what_its_word_is_worth(by, told, silent):
    text = words(html(record({"s": items(8, sliced=False)}, by=by), Content(), charts=False))
    assert told in text
    assert silent not in text
    if by == "failed":
        assert "72/72 = 100.0 %" in text  # the figure that failed
    if by == "audited":
        assert "adherence: answered prose 2" in text


def test_the_three_types_of_task_are_shown_and_one_without_questions_says_so(page):
    text = words(page)
    assert re.search(r"extraction 14/30 = 46.7 %", text)
    assert "mcq no such question" in text
    assert "By source" in text


def test_bad_lines_have_number_and_reason(page):
    assert "7 question is no text 9 the whole line not a JSON object" in words(page)


def test_a_fake_is_watermarked_and_said():
    fake = record({"s": items(4, sliced=False)}, encoder=None, by="none")
    fake = fake.model_copy(update={"systems": [fake.systems[0].model_copy(update={"fake": True})]})
    text = html(fake, Content(), charts=False)
    assert 'class="watermark"' in text
    assert "FAKE" in words(text)
    assert 'class="watermark"' not in html(
        record({"s": items(4, sliced=False)}, by="none"), Content(), charts=False
    )


@pytest.mark.slow
def test_systems_side_by_side_in_the_form_of_table_ii_with_a_sweep():
    several = record({f"rag alpha={a:g}": items(9, shift=a / 3, seed=3) for a in (1, 0)} | {"direct": items(7)},
                     by="failed")  # fmt: skip
    page = html(several, Content())
    text = words(page)
    assert "over the 7 questions that all systems have" in text
    assert "gemma-2-9b-it" in text
    assert "Sweep over alpha" in text
    assert "over the 9 questions that all have" in text
    assert "Holm’s correction counts all" in text
    assert "2 questions of rag alpha=1 alone and 0 of direct alone are left out" in text
    assert page.count("<svg") == page.count('role="img"')
    other = record(
        {"a": items(4), "b": [i.model_copy(update={"id": f"x{i.id}"}) for i in items(4)]}, by="none"
    )
    assert "no question is common" in words(html(other, Content(), charts=False))


@pytest.mark.parametrize(
    ("label", "alpha"),
    [("rag alpha=0.5", 0.5), ("alpha = 1", 1.0), ("x-alpha-0", 0.0), ("Alpha_0.25", 0.25), ("alphabet 1", None),
     ("alpha=2", None), ("alpha=0.5.1", None), ("", None), ("direct", None)],
)  # fmt: skip
def test_alpha_is_read_from_a_label(label, alpha):
    assert alpha_of(label) == alpha


def test_hostile_names_drive_nothing():
    evil = "<script>alert(1)</script>\x1b[2J\u202e{{ 7*7 }} $x^2$"
    page = html(
        record({evil: items(4), f"{evil} alpha=1": items(4)}, by="none", operator=evil),
        Content(),
        charts=False,
    )
    assert "<script>" not in page
    assert "\x1b" not in page
    assert "\u202e" not in page
    assert "{{ 7*7 }}" in words(page)


def test_a_broken_template_or_rule_file_is_one_line(overlay, one):
    root = overlay("reports/templates/rag/closing.html.j2", lambda text: text + "{% nothing %}")
    with pytest.raises(RenderError, match=r"closing.html.j2, line \d+") as caught:
        html(one, Content(root), charts=False)
    assert "\n" not in str(caught.value)
    root = overlay(
        "benchmarks/rag/insights.yaml", lambda text: text.replace("severity: good", "severity: fine")
    )
    with pytest.raises(ContentError, match="severity"):
        html(one, Content(root), charts=False)


# ── words and pictures ─────────────────────────────────────────────────────────────────────────


def test_how_figures_are_written():
    share, gap = metric_of("retrieval.all.hit"), metric_of("cue.all.accuracy_gap")
    assert value(rate_of(29, 59), share) == "29/59 = 49.2 %"
    assert ends(rate_of(0, 0), share) == ""
    assert result(rate_of(0, 0), share) == "not measured"
    flat = mean([0.5] * 12)
    assert result(flat, metric_of("generation.all.token_f1")) == "0.50 [not estimable], n = 12"
    assert result(Estimate(-0.1, -0.2, 0.01, 9, "m"), gap) == "-10.0 points [-20.0, +1.0], n = 9"
    assert shown_difference(Estimate(-0.00001, -0.1, 0.1, 9, "m"), share).startswith("+0.0 [-10.0")
    assert kept("1/2 = 50.0 % [1.0, 99.0]") == "1/2\u00a0=\u00a050.0\u00a0% [1.0,\u00a099.0]"


def test_ranks_are_in_the_order_of_numbers_and_hazards_in_theirs():
    keys = ["retrieval.all.hit_at.r10", "retrieval.all.hit_at.r2", "retrieval.all.hit", "retrieval.b.dangerous.any",
            "retrieval.a.dangerous.any"]  # fmt: skip
    assert ordered(keys, {"b": "B", "a": "A"}) == [keys[2], keys[1], keys[0], keys[3], keys[4]]


def test_each_method_and_reason_has_a_letter_of_its_own():
    notes = Notes()
    marks = [notes.mark(NotMeasured(f"reason {i}")) for i in range(30)]
    assert len(set(marks)) == 30
    assert notes.mark(NotMeasured("reason 3")) == marks[3]
    assert dict(notes.pairs)[marks[29]] == "not measured: reason 29"


def test_pictures_are_the_same_twice_and_say_everything_in_words():
    point = Point("hits $x$", 0.5, None, None, "1/2 = 50.0 %")
    cells = [Cell(name, "1/4 = 25.0 %\n[0.6, 80.6]", "good") for name in ("a", "b", "c", "d")]
    for draw in (
        lambda: intervals_svg("Title", [point], prefix="p"),
        lambda: quadrants_svg("CUE, n = 4", cells, found="found", prefix="p"),
        lambda: sweep_svg("Sweep", {"hit, n = 2": [(0.0, point), (1.0, point)]}, axis="alpha", prefix="p"),
    ):
        first = draw()
        assert first == draw()
        assert re.search(r'aria-label="[^"]*\d/\d = \d', first)
        assert "Helvetica" not in first


@pytest.mark.slow
def test_pictures_on_one_page_share_no_id():
    found = re.findall(
        r' id="([^"]+)"', html(record({"a": items(8), "b": items(4)}, by="readers"), Content())
    )
    assert len(found) == len(set(found))
    assert 'id="p-x"' in inline('<svg ><g id="x"/><use href="#x"/></svg>', "p", "t")


def test_the_planted_judge_earns_and_the_one_that_knows_nothing_does_not():
    assert standing_of(judge("audited"), []).earned
    assert not standing_of(judge("failed"), []).earned
    assert standing_of(judge("readers"), items(7)).n == 7
    assert JUDGE.name in standing_of(judge("audited"), []).word
    assert len(HAZARDS) == 6
