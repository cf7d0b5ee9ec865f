"""The labelled answers as a file: what is refused, where, and which labels may be used."""

from __future__ import annotations

import gzip
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clinsafe.content import Content, packaged_root
from clinsafe.errors import ContentError
from clinsafe.rag.auditing.answers import (
    ANSWERS,
    AnswerRow,
    copied_run,
    load_answers,
    load_answers_card,
    set_sha256,
)
from clinsafe.rag.auditing.readers import READERS, load_readers, settle
from clinsafe.stats import Estimate
from tests.rag.auditing.labelled import HAZARDS, jsonl, plain_rows, rows, said, write_overlay

Plain = dict[str, Any]
installed = pytest.mark.skipif(not (packaged_root() / ANSWERS).is_file(), reason="no labelled answers yet")
read = pytest.mark.skipif(not (packaged_root() / READERS).is_file(), reason="no readers' labels yet")


def test_a_sound_file_loads(tmp_path: Path) -> None:
    found = load_answers(Content(write_overlay(tmp_path, plain_rows())))
    assert len(found) == 216
    assert {row.hazard for row in found} == set(HAZARDS)


def test_a_judge_is_shown_neither_label_nor_note_nor_hazard() -> None:
    row = AnswerRow.model_validate(plain_rows(1)[0] | {"note": "SECRET", "question": "What of it?"})
    shown = repr(row.claim)
    assert "SECRET" not in shown
    assert "hazard" not in shown


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"kind": "maybe"}, "kind"),
        ({"kind": None}, "kind"),
        ({"contexts": []}, "contexts"),
        ({"contexts": ["ok text", ""]}, "contexts.1"),
        ({"contexts": "a text"}, "contexts"),
        ({"answer": " padded"}, "answer"),
        ({"answer": "two\nlines"}, "answer"),
        ({"answer": "bell \x07"}, "answer"),
        ({"answer": "x" * 2001}, "answer"),
        ({"answer": "..."}, "answer"),
        ({"question": ""}, "question"),
        ({"source": {"corpus": "elsewhere", "id": "1"}}, "source.corpus"),
        ({"source": {"corpus": "pubmedqa"}}, "source.id"),
        ({"source": "pubmedqa"}, "source"),
        ({"id": "Not An Id"}, "id"),
        ({"hazard": "laterality"}, "hazard"),
        ({"label": "supported"}, "label"),
    ],
)
def test_a_hostile_row_is_refused_with_file_line_and_field(tmp_path: Path, change: Plain, field: str) -> None:
    plain = plain_rows()
    plain[6] |= change
    with pytest.raises(ContentError) as caught:
        load_answers(Content(write_overlay(tmp_path, plain)))
    assert (caught.value.path.name, caught.value.line, caught.value.field) == ("answers.jsonl", 7, field)


def test_lines_are_counted_as_an_editor_counts_them(tmp_path: Path) -> None:
    plain = plain_rows()
    plain[3]["id"] = plain[1]["id"]
    root = write_overlay(tmp_path, plain)
    file = root / ANSWERS
    file.write_text("\n\n" + file.read_text("utf-8"), encoding="utf-8")
    with pytest.raises(ContentError, match="line 4") as caught:
        load_answers(Content(root))
    assert (caught.value.line, caught.value.field) == (6, "id")


def test_one_text_has_one_label(tmp_path: Path) -> None:
    plain = plain_rows()
    plain[20] |= {name: plain[0][name] for name in ("question", "contexts", "answer")}
    with pytest.raises(ContentError, match="same task") as caught:
        load_answers(Content(write_overlay(tmp_path, plain)))
    assert caught.value.line == 21


@pytest.mark.parametrize(
    ("keep", "field"),
    [
        (lambda row: int(row["source"]["id"]) <= 199, "id"),
        (lambda row: row["hazard"] != "hedging", "hazard"),
        (lambda row: row["hazard"] != "hedging" or row["kind"] != "not_stated", "hazard"),
    ],
)
def test_a_set_that_is_too_small_or_lacks_a_hazard_is_refused(
    tmp_path: Path, keep: Callable[[Plain], bool], field: str
) -> None:
    plain = [row for row in plain_rows(14 if field == "hazard" else 12) if keep(row)]
    with pytest.raises(ContentError) as caught:
        load_answers(Content(write_overlay(tmp_path, plain)))
    assert caught.value.field == field
    assert caught.value.line is None


def test_kinds_out_of_balance_are_refused(tmp_path: Path) -> None:
    plain = plain_rows()
    for row in plain[12:24]:
        row["kind"] = "supported"
    with pytest.raises(ContentError, match="share of") as caught:
        load_answers(Content(write_overlay(tmp_path, plain)))
    assert caught.value.field == "kind"


def settled(tmp_path: Path, readers: list[Plain]) -> Any:
    content = Content(write_overlay(tmp_path, plain_rows(), readers))
    found = load_answers(content)
    return settle(found, load_readers(content, found))


def test_labels_are_those_that_both_readers_gave(tmp_path: Path) -> None:
    readers = said(plain_rows(), "one", "two")
    readers[0]["label"] = "contradicted"  # differs from two
    readers[1]["label"] = readers[217]["label"] = "not_stated"  # both differ from the writer
    del readers[2]
    labels = settled(tmp_path, readers)
    first, second, third = (row.id for row in rows()[:3])
    assert not labels.provisional
    assert len(labels.of) == 214
    assert labels.disagreed == (first,)
    assert labels.unread == (third,)
    assert labels.overruled == (second,)
    assert labels.of[second] == "not_stated"
    assert set(labels.agreement) == {("writer", "one"), ("writer", "two"), ("one", "two")}
    one_two = labels.agreement["one", "two"]
    assert isinstance(one_two, Estimate)
    assert one_two.n == 215
    assert one_two.value < 1


def test_with_one_reader_all_is_provisional(tmp_path: Path) -> None:
    labels = settled(tmp_path, said(plain_rows(), "one"))
    assert labels.provisional
    assert len(labels.of) == 216
    assert len(labels.unread) == 216


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"id": "nobody"}, "id"),
        ({"reader": "writer"}, "reader"),
        ({"reader": "two words"}, "reader"),
        ({"label": "yes"}, "label"),
        ({"adherence": 1.5}, "adherence"),
        ({"kind": "supported"}, "kind"),
        ({"id": "negation-supported-1"}, "id"),
    ],
)
def test_a_hostile_reader_is_refused(tmp_path: Path, change: Plain, field: str) -> None:
    readers = said(plain_rows(), "one", "two")
    readers[4] |= change
    with pytest.raises(ContentError) as caught:
        settled(tmp_path, readers)
    assert (caught.value.path.name, caught.value.line, caught.value.field) == (
        "answers_readers.jsonl",
        5,
        field,
    )


def test_adherence_that_is_no_number_is_refused(tmp_path: Path) -> None:
    readers = said(plain_rows(), "one", "two")
    root = write_overlay(tmp_path, plain_rows(), readers)
    file = root / READERS
    file.write_text(
        file.read_text("utf-8").replace('"label"', '"adherence": NaN, "label"', 1), encoding="utf-8"
    )
    with pytest.raises(ContentError) as caught:
        load_readers(Content(root), rows())
    assert caught.value.line == 1
    assert caught.value.field == "adherence"


def test_the_hash_is_of_texts_and_labels_whatever_their_order() -> None:
    some = rows(1)
    labels = {row.id: row.kind for row in some}
    here = set_sha256(some, labels)
    assert set_sha256(some[::-1], labels) == here
    assert set_sha256([some[0].model_copy(update={"note": "other"}), *some[1:]], labels) == here
    assert set_sha256([some[0].model_copy(update={"answer": "other"}), *some[1:]], labels) != here
    assert set_sha256(some, labels | {some[0].id: "not_stated"}) != here


def test_a_run_of_eight_words_is_found_whatever_its_case_and_points() -> None:
    source = "One, two three (four) five; six seven eight nine ten."
    assert copied_run("well: TWO three four five six seven eight nine", source) == (
        "two three four five six seven eight nine"
    )
    assert copied_run("two three four five six seven eight and nine", source) is None
    assert copied_run("", source) is None


def test_the_card_names_all_hazards_and_says_that_no_clinician_has_read() -> None:
    card = load_answers_card(Content())
    assert card.hazards == list(HAZARDS)
    assert "no clinician" in card.clinician_review
    assert "language models" in card.readers
    assert card.rules.total >= 200
    assert card.rules.per_hazard >= 30


@installed
def test_the_installed_answers_keep_the_rules() -> None:
    assert len(load_answers(Content())) >= 200


@read
def test_the_installed_readers_agree_beyond_chance() -> None:
    content = Content()
    found = load_answers(content)
    labels = settle(found, load_readers(content, found))
    kappas = [
        k.value for pair, k in labels.agreement.items() if "writer" not in pair and isinstance(k, Estimate)
    ]
    assert not labels.provisional
    assert min(kappas) > 0.6


@installed
@pytest.mark.data
def test_sources_exist_and_none_of_their_text_is_copied(data: Path) -> None:
    texts: dict[tuple[str, str], str] = {}
    with gzip.open(data / "pubmedqa_pqal.jsonl.gz", "rt", encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            texts["pubmedqa", row["id"]] = " ".join([row["question"], *row["contexts"], row["long_answer"]])
    with gzip.open(data / "medquad_ghr.jsonl.gz", "rt", encoding="utf-8") as stream:
        for row in map(json.loads, stream):
            texts["medquad_ghr", row["id"]] = f"{row['question']} {row['answer']}"
    for row in load_answers(Content()):
        source = texts.get((row.source.corpus, row.source.id))
        assert source is not None, f"{row.id}: no row {row.source.id} in {row.source.corpus}"
        for text in (row.question, *row.contexts, row.answer):
            assert copied_run(text, source) is None, row.id


def test_the_overlay_may_hold_the_readers_alone(tmp_path: Path) -> None:
    root = write_overlay(tmp_path, plain_rows())
    answers = Content(root).path(ANSWERS)
    assert answers.is_relative_to(root)
    shutil.rmtree(root / "benchmarks" / "rag")
    (root / READERS).parent.mkdir(parents=True)
    (root / READERS).write_text(jsonl(said(plain_rows(), "one")), encoding="utf-8")
    assert len(load_readers(Content(root), rows())) == 216
