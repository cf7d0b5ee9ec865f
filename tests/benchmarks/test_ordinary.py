"""Unrelated pairs: real text about different things, no text twice, the same for everybody."""

from __future__ import annotations

import gzip
import json

import pytest

from clinsafe.benchmarks.ordinary import MEDQUAD, PUBMEDQA, unrelated
from clinsafe.errors import ContentError, UsageError

SENTENCE = "Sentence number {} says something of its own. It goes on about {} for a while."


def write(folder, name, rows):
    with gzip.open(folder / name, "wt") as stream:
        stream.writelines(json.dumps(row) + "\n" for row in rows)


@pytest.fixture
def folder(tmp_path):
    """Ten articles of three contexts, eight conditions of three answers."""
    contexts = [[SENTENCE.format(f"{a} {c} of an article", a) for c in range(3)] for a in range(10)]
    write(tmp_path, PUBMEDQA, [{"id": f"p{a}", "contexts": texts} for a, texts in enumerate(contexts)])
    answers = [
        {"condition": f"c{c}", "qtype": q, "answer": SENTENCE.format(f"{c} {q} of a condition", c)}
        for c in range(8)
        for q in ("information", "inheritance", "treatment")
    ]
    write(tmp_path, MEDQUAD, answers)
    return tmp_path


def test_no_text_is_used_twice_and_no_subject_meets_itself(folder):
    pairs = unrelated(folder, 1000)
    texts = [text for pair in pairs for text in (pair.query, pair.passage.split(". ")[0] + ".")]
    assert len(texts) == len(set(texts))
    assert len({pair.case for pair in pairs}) == len(pairs)
    for pair in pairs:
        _, one, other, _ = pair.case.split("-")
        assert one != other
        assert pair.role == "unrelated"
        assert not pair.conflicting
        assert pair.query.startswith("Sentence number")
        assert pair.query.endswith("its own.")


def test_it_yields_what_the_data_hold_and_leaves_lists_of_links_out(folder):
    pairs = unrelated(folder, 1000)
    assert 20 <= len(pairs) <= 23  # 30 contexts and 16 answers make 23 at most
    assert not any("treatment" in pair.query + pair.passage for pair in pairs)
    assert {pair.case.split("-")[0] for pair in pairs} == {"pubmedqa", "medquad"}


def test_two_runs_see_the_same_pairs_and_fewer_are_the_first_of_more(folder):
    every = unrelated(folder, 1000)
    assert unrelated(folder, 1000) == every
    for n in (0, 1, 7):
        assert unrelated(folder, n) == every[:n]


def test_repeated_beginnings_and_scraps_are_left_out(tmp_path):
    said = "This condition is inherited in a recessive pattern. "
    rows = [
        {"condition": f"c{n}", "qtype": "inheritance", "answer": f"{said}More of {n} here."} for n in range(9)
    ]
    write(tmp_path, MEDQUAD, rows)
    scraps = [{"id": f"p{n}", "contexts": ["Too short.", "See Table 2."]} for n in range(9)]
    write(tmp_path, PUBMEDQA, scraps)
    assert unrelated(tmp_path, 10) == []


def test_texts_of_one_subject_alone_make_no_pair(tmp_path):
    texts = [SENTENCE.format(n, n) for n in range(5)]
    rows = [{"condition": "c", "qtype": "information", "answer": text} for text in texts]
    write(tmp_path, MEDQUAD, rows)
    write(tmp_path, PUBMEDQA, [{"id": "p", "contexts": texts}])
    assert unrelated(tmp_path, 10) == []


def test_missing_and_damaged_files_are_one_line(tmp_path):
    with pytest.raises(UsageError, match="no such file"):
        unrelated(tmp_path, 5)
    for name in (PUBMEDQA, MEDQUAD):
        (tmp_path / name).write_bytes(b"not gzip")
    with pytest.raises(ContentError, match="not a gzipped"):
        unrelated(tmp_path, 5)


@pytest.mark.data
def test_the_real_data_yield_a_thousand_pairs_and_more(data):
    pairs = unrelated(data, 10_000)
    assert len(pairs) >= 3000
    texts = [text for pair in pairs for text in (pair.query, pair.passage)]
    assert len(set(texts)) == len(texts)
    assert all(len(pair.passage.split()) <= 200 for pair in pairs)
