"""The queries' file: every fault is told with its place, and another edition of the data is refused."""

from __future__ import annotations

import pytest

from clinsafe.benchmarks.endtoend import queries as q
from clinsafe.benchmarks.endtoend.documents import load_texts
from clinsafe.benchmarks.suite import load_card
from clinsafe.content import Content
from clinsafe.errors import ContentError, UsageError
from tests.benchmarks.endtoend import kit


def test_a_query_is_its_sentence_and_the_edited_one(queries):
    assert [one.true for one in queries] == [row[3] for row in kit.WORLD]
    assert queries[0].false == "Zorbitol does not relieve chest pain in adults."
    assert queries[3].false == "Lenta rash causes dorvan fever."
    assert all(one.true in one.document for one in queries)


def test_offsets_of_several_edits_count_in_the_sentence_as_it_was():
    assert q.edited("abcdef", [q.Edit(start=0, end=1, new="XYZ"), q.Edit(start=3, end=5, new="")]) == "XYZbcf"


def set_at(place, **said):
    return lambda rows: rows[place].update(said)


def in_source(place, **said):
    return lambda rows: rows[place]["source"].update(said)


FAULTS = {
    "unknown hazard": (set_at(2, hazard="laterality"), 3, "hazard"),
    "id twice": (set_at(4, id="e2e-0"), 5, "id"),
    "unknown form": (set_at(1, form="order"), 2, "form"),
    "no edit": (set_at(0, edits=[]), 1, "edits"),
    "edits overlap": (
        set_at(0, edits=[{"start": 0, "end": 5, "new": "x"}, {"start": 4, "end": 6, "new": "y"}]), 1, "edits",
    ),
    "edits out of order": (
        set_at(0, edits=[{"start": 5, "end": 6, "new": "x"}, {"start": 0, "end": 2, "new": "y"}]), 1, "edits",
    ),
    "edit backwards": (set_at(0, edits=[{"start": 6, "end": 5, "new": "x"}]), 1, "edits.0"),
    "edit of nothing": (set_at(0, edits=[{"start": 5, "end": 5, "new": ""}]), 1, "edits.0"),
    "negative offset": (set_at(0, edits=[{"start": -1, "end": 5, "new": "x"}]), 1, "edits.0.start"),
    "empty sentence": (in_source(3, start=9, end=9), 4, "source"),
    "no hash": (in_source(3, sha256="ab"), 4, "source.sha256"),
    "another corpus": (in_source(3, corpus="pubmed"), 4, "source.corpus"),
    "field too many": (set_at(5, text="a copy of the text"), 6, "text"),
}  # fmt: skip


@pytest.mark.parametrize(("change", "line", "field"), FAULTS.values(), ids=FAULTS)
def test_a_fault_in_the_file_names_line_and_field(tmp_path, change, line, field):
    with pytest.raises(ContentError) as caught:
        q.load_rows(Content(kit.write_overlay(tmp_path, change)))
    assert (caught.value.line, caught.value.field) == (line, field)


OTHER_DATA = {
    "another sentence there": in_source(1, start=3),
    "another hash": in_source(1, sha256="0" * 64),
    "no such document": in_source(1, document="d99"),
    "beyond its end": in_source(1, start=90_000, end=90_010),
    "a document of the other corpus": in_source(1, corpus="pubmedqa"),
}


@pytest.mark.parametrize("change", OTHER_DATA.values(), ids=OTHER_DATA)
def test_another_edition_of_the_data_is_refused_in_one_line(tmp_path, texts, change):
    rows = q.load_rows(Content(kit.write_overlay(tmp_path, change)))
    with pytest.raises(UsageError, match=r"1 of 6 sentences .*\(e2e-1\).*another edition"):
        q.resolve(rows, texts)


def test_edits_that_do_not_fit_or_change_nothing_are_refused(tmp_path, texts):
    beyond = set_at(0, edits=[{"start": 0, "end": 4000, "new": "x"}])
    same = set_at(0, edits=[{"start": 0, "end": 8, "new": "Zorbitol"}])
    for number, change in enumerate((beyond, same)):
        rows = q.load_rows(Content(kit.write_overlay(tmp_path / str(number), change)))
        with pytest.raises(UsageError, match="e2e-0"):
            q.resolve(rows, texts)


def test_what_a_small_set_lacks_is_said(queries):
    hazards = load_card(Content()).hazards
    rows = [one.row for one in queries]
    assert len(q.shortfalls(rows, hazards)) == 3
    assert any("hedging" in line for line in q.shortfalls(rows[:4], hazards))
    many = [row.model_copy(update={"form": form}) for form in q.FORMS for row in rows * 7]
    assert not q.shortfalls(many, hazards)


@pytest.mark.data
def test_the_packaged_queries_fit_the_data_and_item_8(data):
    content = Content()
    rows = q.load_rows(content)
    assert not q.shortfalls(rows, load_card(content).hazards)
    resolved = q.resolve(rows, load_texts(data))
    assert len(resolved) == len(rows)
    assert max(map(len, (one.row.query for one in resolved))) < 500
    words = kit.packaged().read_text(encoding="utf-8")
    assert not any(one.true in words for one in resolved), "no sentence of the corpora stands in the file"
