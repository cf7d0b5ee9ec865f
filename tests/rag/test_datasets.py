"""PubMedQA and MedQuAD: small files of their form, and the real ones where they are."""

from __future__ import annotations

import gzip
import json
from collections import Counter

import pytest

from clinsafe.errors import ContentError, UsageError
from clinsafe.rag.datasets import medquad, pubmedqa

ABSTRACT = {
    "id": "1",
    "question": "Does it?",
    "contexts": ["A.", "B."],
    "long_answer": "It does.",
    "final_decision": "yes",
}
PAIR = {
    "id": "1-1",
    "condition": "c",
    "focus": "C",
    "qtype": "information",
    "question": "What is C?",
    "answer": "A thing.",
}


def written(path, *rows):
    data = b"".join((row if isinstance(row, bytes) else json.dumps(row).encode()) + b"\n" for row in rows)
    path.write_bytes(gzip.compress(data) if path.suffix == ".gz" else data)
    return path


@pytest.mark.parametrize("name", ["pubmedqa_pqal.jsonl.gz", "pubmedqa_pqal.jsonl"])
def test_pubmedqa_by_folder_and_by_file(tmp_path, name):
    path = written(tmp_path / name, ABSTRACT, {**ABSTRACT, "id": "2", "final_decision": "maybe"})
    documents, questions = pubmedqa(path)
    assert (documents, questions) == pubmedqa(tmp_path) == pubmedqa(str(path))
    assert [(d.id, d.text) for d in documents] == [("1", "A.\n\nB."), ("2", "A.\n\nB.")]
    one = questions[1]
    assert (one.documents, one.expected, one.references, one.task) == (("2",), "maybe", ("It does.",), "mcq")
    assert set(one.options) == {"yes", "no", "maybe"}


def test_medquad_leaves_treatment_out_of_documents_and_questions(tmp_path):
    rows = [PAIR, {**PAIR, "id": "1-2", "qtype": "frequency", "answer": "Rare."},
            {**PAIR, "id": "1-3", "qtype": "treatment", "answer": "links"}]  # fmt: skip
    documents, questions = medquad(written(tmp_path / "medquad_ghr.jsonl", *rows))
    assert [(d.id, d.text, d.fields) for d in documents] == [("c", "A thing.\n\nRare.", {"focus": "C"})]
    assert {q.id: (q.task, q.slices["qtype"], q.documents) for q in questions} == {
        "1-1": ("short_answer", "information", ("c",)),
        "1-2": ("extraction", "frequency", ("c",)),
    }


def test_a_smaller_sample_is_the_beginning_of_a_larger_one_whatever_the_order(tmp_path):
    rows = [{**PAIR, "id": f"{n}-1", "condition": f"c{n}"} for n in range(50)]
    one = medquad(written(tmp_path / "a.jsonl", *rows), 20)[1]
    other = medquad(written(tmp_path / "b.jsonl", *rows[::-1]), 10)[1]
    assert [q.id for q in other] == [q.id for q in one][:10]
    assert [q.id for q in one] != sorted(q.id for q in one)


@pytest.mark.parametrize(
    ("read", "row", "field"),
    [
        (pubmedqa, b'{"id": ', None),
        (pubmedqa, b"[]", None),
        (pubmedqa, b"\xff", None),
        (pubmedqa, {**ABSTRACT, "id": "1"}, "id"),
        (pubmedqa, {**ABSTRACT, "id": 7}, "id"),
        (pubmedqa, {**ABSTRACT, "id": "2", "contexts": []}, "contexts"),
        (pubmedqa, {**ABSTRACT, "id": "2", "contexts": "A."}, "contexts"),
        (pubmedqa, {**ABSTRACT, "id": "2", "contexts": ["A.", " "]}, "contexts"),
        (pubmedqa, {**ABSTRACT, "id": "2", "final_decision": "perhaps"}, "final_decision"),
        (pubmedqa, {**ABSTRACT, "id": "2", "long_answer": ""}, "long_answer"),
        (pubmedqa, {"id": "2", "contexts": ["A."], "final_decision": "no"}, "question"),
        (medquad, {**PAIR, "id": "1-1"}, "id"),
        (medquad, {**PAIR, "id": "2", "answer": None}, "answer"),
        (medquad, {**PAIR, "id": "2", "qtype": ""}, "qtype"),
        (medquad, {**PAIR, "id": "2", "question": "\ud800"}, "question"),
    ],
)
def test_bad_data_is_told_with_line_and_field(tmp_path, read, row, field):
    path = written(tmp_path / "d.jsonl", ABSTRACT if read is pubmedqa else PAIR, row)
    with pytest.raises(ContentError) as caught:
        read(path)
    assert (caught.value.line, caught.value.field) == (2, field)


@pytest.mark.parametrize("read", [pubmedqa, medquad])
def test_what_is_no_such_file_is_one_line(tmp_path, read):
    with pytest.raises(UsageError, match="no such file"):
        read(tmp_path / "gone.jsonl")
    with pytest.raises(UsageError, match="holds no"):
        read(tmp_path)
    (tmp_path / "d.jsonl").write_bytes(b"\n")
    with pytest.raises(UsageError, match="no record"):
        read(tmp_path / "d.jsonl")
    (tmp_path / "d.csv").write_bytes(b"a,b")
    with pytest.raises(UsageError, match="by its name"):
        read(tmp_path / "d.csv")


def test_no_question_is_refused(tmp_path):
    with pytest.raises(UsageError, match="at least 1"):
        medquad(tmp_path, 0)


@pytest.mark.data
def test_the_real_files(data):
    documents, questions = pubmedqa(data)
    assert len(documents) == len(questions) == 1000
    assert Counter(q.expected for q in questions) == {"yes": 552, "no": 338, "maybe": 110}
    documents, questions = medquad(data)
    assert (len(documents), len(questions)) == (1086, 500)
    assert {q.documents[0] for q in questions} <= {d.id for d in documents}
    assert set(Counter(q.slices["qtype"] for q in questions)) == {
        "information",
        "frequency",
        "genetic_changes",
        "inheritance",
    }
    by_id = {d.id: d.text for d in documents}
    assert all(q.references[0] in by_id[q.documents[0]] for q in questions)
