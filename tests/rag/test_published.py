"""The RAG-X paper's printed figures: whole, as printed, refused where they do not fit."""

from __future__ import annotations

import pytest

from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.rag.published import FILE, load_published, shares


@pytest.fixture(scope="module")
def published():
    return load_published()


def test_all_rows_of_the_three_tables_are_there_as_printed(published):
    assert (len(published.generation), len(published.retrieval), len(published.diagnosis)) == (9, 7, 6)
    cells = {(row.retriever, str(row.alpha)): row.cells for row in published.retrieval}
    assert str(cells["BM25", "0"]["pubmedqa"].recall) == "0.34"
    assert str(cells["Qwen3-Embedding-8B", "1.0"]["guidelineqa"].exclusive_hit) == "0.10"
    assert str(cells["MedCPT-Query-Encoder", "1.0"]["medquad"].mrr) == "0.30"


def test_the_counts_behind_table_iv_make_a_whole(published):
    counts = {row.metric: row.count for row in published.diagnosis}
    assert counts["effective_use"] + counts["information_blindness"] == counts["hit"]
    rest = published.sets["guidelineqa"].questions - counts["hit"] - counts["lucky_guess"]
    assert rest == 5  # the fourth quadrant, which the paper does not print


def test_every_share_of_whole_questions_is_handed_over_and_no_mean(published):
    found = list(shares(published))
    assert len(found) == 9 + 7 * 3 * 2 + 6
    assert {one.n for one in found} == {59, 500, 1000}
    assert not any("MRR" in one.about for one in found)


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("mrr: 0.65", "mrr: 1.65", "mrr"),
        ("mrr: 0.65", "mrr: .nan", "mrr"),
        (
            "retriever: NV-EmbedQA-E5-v5\n    alpha: 0.5",
            "retriever: NV-EmbedQA-E5-v5\n    alpha: 1.0",
            "twice",
        ),
        ("count: 29", "count: -1", "count"),
        ("      guidelineqa: {mrr: 0.32", "      guideline: {mrr: 0.32", "cells"),
    ],
)
def test_a_figure_that_cannot_be_is_refused_with_its_place(overlay, old, new, field):
    root = overlay(FILE, lambda text: text.replace(old, new, 1))
    with pytest.raises(ContentError, match=field):
        load_published(Content(root))
