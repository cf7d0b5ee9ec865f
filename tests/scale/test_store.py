"""Facts read before: found by id, and never trusted further than they can be."""

from __future__ import annotations

import json

import pytest

from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.scale import store as store_module
from clinsafe.scale.job import Job
from clinsafe.scale.local import Run, run_local
from clinsafe.scale.parts import Cut, Shard
from clinsafe.scale.reading import made_with
from clinsafe.scale.store import load_facts
from clinsafe.workflows.guard import build_stack
from tests.scale.conftest import write
from tests.scale.fakes import FakeJob

TEXTS = [
    "The patient has no penicillin allergy.",
    "The wound is dry.",
    "Fever was excluded.",
    "No chest pain.",
]
QUERY = "The patient has a penicillin allergy."


@pytest.fixture(scope="module")
def stack():
    return build_stack(names=["negation"], model="")


@pytest.fixture(scope="module")
def current(stack):
    return made_with(stack, Content())["fingerprint"]


@pytest.fixture(scope="module")
def stored(tmp_path_factory):
    folder = tmp_path_factory.mktemp("store")
    corpus = write(folder / "notes.jsonl", TEXTS * 40)
    job = Job(filters=("negation",), spacy="")
    run_local(Run(corpus, folder / "out", job, Cut(words=50, overlap=0, part=100, batch=10), workers=1))
    return folder / "out"


def test_stored_facts_give_what_reading_the_text_gives(stored, stack, current):
    facts = load_facts(stored, current)
    assert len(facts) == 160
    for number in (0, 1, 15, 16, 63, 64, 99, 100, 159):  # on both sides of row groups and parts
        text = TEXTS[number % 4]
        assert facts(f"d{number}#0", text) == facts(f"d{number}#0") == stack.read(text)
    result = stack.compare(stack.read(QUERY), facts("d0#0"))
    assert result.conflict
    assert not result.unchecked


def unsafe(stack, facts, why):
    """Compared with these facts nothing is safe, and the reason says why."""
    result = stack.compare(stack.read(QUERY), facts)
    assert not result.safe
    assert not result.findings
    assert why in result.unchecked["negation"]
    return True


def test_facts_of_other_rules_are_unchecked_and_never_safe(stored, stack, overlay):
    content = Content(overlay("mitigations/negation.yaml", lambda text: text + "\n# another\n"))
    other = made_with(build_stack(content, ["negation"], model=""), content)["fingerprint"]
    facts = load_facts(stored, other)
    assert facts.stale
    assert unsafe(stack, facts("d1#0"), "other rules or versions")


def test_facts_of_another_version_of_a_filters_package_are_unchecked(stored, stack, current, monkeypatch):
    monkeypatch.setattr(store_module, "package_of", lambda name: f"{name} 9.9")
    facts = load_facts(stored, current)
    assert not facts.stale
    assert unsafe(stack, facts("d1#0"), "other rules or versions")


def test_an_unknown_passage_and_a_changed_text_are_unchecked(stored, stack, current):
    facts = load_facts(stored, current)
    assert "d1#0" in facts
    assert "d1#1" not in facts
    assert unsafe(stack, facts("d1#1"), "no facts of this passage")
    assert unsafe(stack, facts("d1#0", "The wound is wet."), "another text")


def test_facts_of_one_filter_do_not_pass_for_those_of_two(stored, current):
    both = build_stack(names=["negation", "numerical"], model="")
    result = both.compare(both.read(QUERY), load_facts(stored, current)("d1#0"))
    assert "numerical" in result.unchecked


def test_without_a_fingerprint_the_rules_that_are_installed_count(stored):
    assert load_facts(stored, content=Content(), model="").stale is False


def test_ids_whose_hashes_collide_are_told_apart(stored, current, monkeypatch):
    import numpy as np

    monkeypatch.setattr(store_module, "_hash", lambda name: np.uint64(len(name)))
    facts = load_facts(stored, current)
    assert facts("d10#0", TEXTS[2]).by_filter
    assert "d1x#0" not in facts


def test_a_passage_that_failed_is_unchecked(tmp_path, stack):
    corpus = write(tmp_path / "n.jsonl", ["one", "RAISE"])
    run_local(Run(corpus, tmp_path / "out", FakeJob(), Cut(words=5, overlap=0), workers=1))
    facts = load_facts(tmp_path / "out", "1")
    assert facts("d1#0").unchecked == {"fake": "read: failed with ValueError"}


@pytest.mark.parametrize(
    "what", ["nothing", "unfinished", "a part is missing", "a part is damaged", "vectors"]
)
def test_what_is_no_finished_output_is_one_line(tmp_path, what):
    said = {
        "nothing": "no output of",
        "unfinished": "no shard has finished",
        "a part is missing": "1 of 3 parts are missing",
        "a part is damaged": "cannot be read as Parquet",
        "vectors": "not facts",
    }
    out = tmp_path / "out"
    if what != "nothing":
        run_local(
            Run(
                write(tmp_path / "n.jsonl", ["one", "two", "three"]),
                out,
                FakeJob(),
                Cut(part=1, batch=1),
                workers=1,
            )
        )
    if what == "unfinished":
        (out / "_summary-0-of-1.json").unlink()
    if what == "a part is missing":
        (out / "part-000001.parquet").unlink()
    if what == "a part is damaged":
        (out / "part-000001.parquet").write_bytes(b"PAR1")
    if what == "vectors":
        record = json.loads((out / "_job.json").read_text())
        (out / "_job.json").write_text(json.dumps(record | {"job": "embed"}))
    with pytest.raises(UsageError, match=said[what]):
        load_facts(out, "1")


def test_shards_are_complete_only_together(tmp_path):
    corpus = write(tmp_path / "n.jsonl", ["one", "two", "three"])
    cut = Cut(part=1, batch=1)
    for index in (0, 1):
        with pytest.raises(UsageError):
            load_facts(tmp_path / "out", "1")
        run_local(Run(corpus, tmp_path / "out", FakeJob(), cut, Shard(index, 2), workers=1))
    assert len(load_facts(tmp_path / "out", "1")) == 3
