"""The pure function: a row for each passage, whatever one of them does, and never its text."""

from __future__ import annotations

import json

import pytest

from clinsafe.adapters.encoders import ModelOptions
from clinsafe.corpus import Document, Window, windows
from clinsafe.errors import ContentError, UsageError
from clinsafe.mitigations.facts import TextFacts
from clinsafe.scale.job import KINDS, Job, start
from clinsafe.scale.process import process, text_hash
from tests.scale.fakes import FakeJob

CANARY = "Mrs Canary Featherstone"


def passages(*texts):
    return [Window(f"d#{n}", text, 0, len(text), "d", "d") for n, text in enumerate(texts)]


def test_a_passage_that_raises_costs_only_its_own_row():
    rows = process(passages("one", f"RAISE {CANARY}", "three", f"EXIT {CANARY}"), FakeJob())
    assert [(row.value, row.error) for row in rows] == [
        ("3", ""),
        (None, "ValueError"),
        ("5", ""),
        (None, "SystemExit"),
    ]
    assert [row.id for row in rows] == ["d#0", "d#1", "d#2", "d#3"]
    assert rows[0].sha256 == text_hash("one")
    assert CANARY not in repr(rows)


def test_a_job_that_cannot_start_says_so_instead_of_failing_every_row():
    with pytest.raises(ContentError, match="broken"):
        process(passages("one"), FakeJob(refuse="broken"))


def test_an_unknown_job_is_one_line():
    with pytest.raises(UsageError, match="no job is called 'sing'"):
        Job("sing")
    assert {"read", "embed"} <= set(KINDS)


# ── read ───────────────────────────────────────────────────────────────────────────────────────

READ = Job(filters=("negation",), spacy="")


def test_read_gives_the_facts_that_the_stack_reads():
    from clinsafe.workflows.guard import build_stack

    text = "The patient has no penicillin allergy."
    (row,) = process(passages(text), READ)
    expected = build_stack(names=["negation"], model="").read(text)
    assert expected.by_filter["negation"]
    assert TextFacts.from_json(json.loads(row.value)) == expected


def test_a_late_filter_does_not_make_later_passages_unchecked():
    import time

    work = start(READ)
    reader = work.run.__self__  # type: ignore[attr-defined]

    class Sleeper:
        hazard = "negation"

        def read(self, reading):
            if "SLEEP" in reading.text:
                time.sleep(0.3)
            return []

        def compare(self, query, passage):
            return []

    stack = reader.stack
    reader.stack = type(stack)({"negation": Sleeper()}, stack.reader, 0.05)
    found = [TextFacts.from_json(json.loads(value)) for value in work.run(passages(*["SLEEP"] * 4, "awake"))]
    assert [bool(facts.unchecked) for facts in found] == [True, True, True, True, False]
    assert all("ran out of time" in facts.unchecked["negation"] for facts in found[:4])


def made(**changes):
    return start(Job(**{"filters": ("negation",), "spacy": ""} | changes)).made_with


def test_the_fingerprint_depends_on_the_rules_and_not_on_the_choice_of_filters(overlay, monkeypatch):
    monkeypatch.setattr("clinsafe.scale.reading.code_hash", lambda *_: "the same")
    root = overlay("mitigations/negation.yaml", lambda text: text + "\n# another\n")
    usual, other = made(), made(content=root)
    assert usual["fingerprint"] != other["fingerprint"]
    assert usual["rules"]["mitigations/negation.yaml"] != other["rules"]["mitigations/negation.yaml"]
    assert made(filters=("numerical",))["fingerprint"] == usual["fingerprint"]
    assert set(made(filters=("numerical",))["filters"]) == {"numerical"}


def test_the_fingerprint_depends_on_the_code_that_reads(monkeypatch, tmp_path):
    from clinsafe.scale import reading

    before = made()["fingerprint"]
    (tmp_path / "mitigations").mkdir()
    (tmp_path / "mitigations/x.py").write_text("changed")
    monkeypatch.setattr(reading.clinsafe, "__file__", str(tmp_path / "__init__.py"))
    assert made()["fingerprint"] != before


# ── embed ──────────────────────────────────────────────────────────────────────────────────────


def embedding(model):
    return Job("embed", model=model, options=ModelOptions(offline=True))


def test_embed_gives_unit_rows_of_the_width_it_says():
    import numpy as np

    job = embedding("fake:words")
    rows = process(passages("The patient has a fever.", "No fever."), job)
    assert {row.value.shape for row in rows} == {(start(job).width,)}
    assert {row.value.dtype for row in rows} == {np.dtype("float32")}
    assert np.allclose([np.linalg.norm(row.value) for row in rows], 1, atol=1e-5)


@pytest.mark.parametrize(("value", "kind"), [(float("nan"), "NotFinite"), (0.0, "ZeroVector")])
def test_a_vector_that_nobody_can_search_with_is_an_error(monkeypatch, value, kind):
    job = embedding("fake:words")
    work = start(job)
    encoder = work.run.__self__.encoder  # type: ignore[attr-defined]
    real = encoder.encode

    def encode(texts):
        vectors = real(texts)
        for number, text in enumerate(texts):
            if text == "bad":
                vectors[number] = value
        return vectors

    monkeypatch.setattr(encoder, "encode", encode)
    monkeypatch.setattr("clinsafe.scale.process.started", lambda _job: work)
    good, bad = process(passages("good", "bad"), job)
    assert not good.error
    assert (bad.value, bad.error) == (None, kind)


def test_embed_without_a_model_and_with_one_that_scores_pairs_is_one_line():
    with pytest.raises(UsageError, match="needs a model"):
        start(embedding(""))
    with pytest.raises(UsageError, match="gives no vectors"):
        start(embedding("token-jaccard:"))


def test_rows_do_not_depend_on_the_batch():
    document = Document("d", "The patient has no fever. " * 60, "d")
    rows = list(windows(document, 20, 5))
    assert process(rows, READ) == [row for window in rows for row in process([window], READ)]
