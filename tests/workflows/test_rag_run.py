"""The reference pipeline over a small corpus: traces of every stage, swept, guarded, without texts."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from clinsafe.adapters.reference import FakeEncoder
from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.protocols import ModelIdentity
from clinsafe.rag.formats import read_items
from clinsafe.rag.fusion import SearchSettings
from clinsafe.rag.item import Item
from clinsafe.rag.keeping import Kept
from clinsafe.rag.prompts import Prompts, load_prompts
from clinsafe.rag.trace import BadLine
from clinsafe.workflows.rag_dry import dry_run
from clinsafe.workflows.rag_ledger import STATE, read_run
from clinsafe.workflows.rag_run import arms, run
from tests.workflows.rag_kit import CORPUS, QUESTIONS, Longest, Marking, Scripted, planner, traces

for _name in ("usearch", "bm25s", "filelock"):
    pytest.importorskip(_name)


@pytest.fixture(scope="module")
def prompts() -> Prompts:
    return load_prompts(Content())


@pytest.fixture(scope="module")
def indexes(tmp_path_factory):
    """One index for all tests: that it is reused is shown elsewhere."""
    return tmp_path_factory.mktemp("indexes")


@pytest.fixture
def plan(prompts, indexes, tmp_path):
    return planner(prompts, indexes, tmp_path)


# ── the chain ──────────────────────────────────────────────────────────────────────────────────


def test_a_trace_tells_every_stage(plan):
    made = plan()
    summary = run(made)
    assert (summary.done, summary.stopped) == (4, "")
    assert summary.outcomes == {"rag alpha=0.5": {"answered": 4}}
    for question, one in zip(QUESTIONS, traces(made), strict=True):
        assert (one.query_id, one.query.text, one.outcome) == (question.id, question.text, "answered")
        assert one.answer.text in " ".join(document.text for document in CORPUS)
        assert one.reference.text == question.references[0]
        assert one.slices == dict(question.slices)
        assert len(one.context) == 3
        assert [hit.rank for hit in one.retrieved] == list(range(1, len(one.retrieved) + 1))
        shown = {hit.id: hit.content.text for hit in one.retrieved if hit.content}
        assert len(shown) == 3
        for passage in one.context:
            start, end = passage.span
            assert one.prompt.text[start:end] == shown[passage.id]
        assert one.reranked is None
        assert set(one.eligible) == set(one.relevance)
        assert {name.partition("#")[0] for name in one.eligible} == set(question.documents)
        assert len(one.eligible) > 1
        assert {"retrieval", "encode", "dense", "sparse", "generation", "total"} <= set(one.timings)
        assert one.tokens.prompt > one.tokens.completion > 0
        assert one.versions.prompt == made.prompts.versions["rag_short_answer"]
        assert one.versions.model.startswith("fake:")
        assert one.versions.embedding.startswith("fake:")
        assert one.corpus
        assert one.versions.index


def test_what_it_writes_is_what_the_evaluation_reads(plan):
    made = plan()
    run(made)
    items = list(read_items(made.out / made.arms[0].file))
    assert all(isinstance(one, Item) for one in items)
    assert [one.id for one in items] == [one.id for one in QUESTIONS]
    assert all(len(one.contexts) == 3 and one.answer and one.references and one.relevance for one in items)


def test_the_folder_says_what_it_is_and_that_a_fake_took_part(plan):
    made = plan()
    state = run(made).state
    assert read_run(made.out) == state
    assert (state.state, state.fake, state.text) == ("finished", True, True)
    (file,) = state.files
    assert (file.setting, file.alpha) == ("rag", 0.5)
    assert set(file.versions) == {"index", "embedding", "model", "prompt"}
    assert not run(plan(out=made.out.parent / "real", generator=Scripted("x"), encoder=Real())).state.fake


class Real(FakeEncoder):
    """Not marked as a fake."""

    def __init__(self):
        super().__init__("words")
        self.identity = ModelIdentity(name="real", settings=self.identity.settings)


def test_reranked_passages_keep_both_ranks(plan):
    made = plan(reranker=Longest(), search=SearchSettings(k=2, mmr=0.7))
    run(made)
    for one in traces(made):
        assert {hit.id for hit in one.reranked} <= {hit.id for hit in one.retrieved}
        assert [hit.id for hit in one.reranked] != [hit.id for hit in one.retrieved][: len(one.reranked)]
        assert len(one.context) == 2
        assert one.versions.reranker.startswith("reranker ")
        assert "rerank" in one.timings


def test_a_sweep_makes_a_file_for_each_way(plan):
    made = plan(arms=arms(["rag", "direct", "long-context"], [0, 0.5, 1]))
    summary = run(made)
    labels = ["rag alpha=0", "rag alpha=0.5", "rag alpha=1", "direct", "long-context"]
    assert [one.label for one in summary.state.files] == list(summary.outcomes) == labels
    assert len({one.file for one in summary.state.files}) == 5
    words, _, vectors, direct, whole = (traces(made, n) for n in range(5))
    assert {"sparse", "dense"} & set(words[0].timings) == {"sparse"}
    assert words[0].versions.embedding is None
    assert {"sparse", "dense"} & set(vectors[0].timings) == {"dense"}
    for one in direct:
        assert one.retrieved is one.context is one.relevance is one.eligible is None
        assert "mg daily" not in one.prompt.text
    for question, one in zip(QUESTIONS, whole, strict=True):
        (shown,) = one.context
        document = next(d for d in CORPUS if d.id == question.documents[0])
        assert one.prompt.text[slice(*shown.span)] == document.text
        assert one.retrieved is None


def test_without_a_generator_answers_are_unknown(plan):
    made = plan(generator=None)
    run(made)
    for one in traces(made):
        assert one.answer is one.prompt is one.tokens is None
        assert len(one.context) == 3
    assert all(len(one.contexts) == 3 for one in read_items(made.out / made.arms[0].file))
    with pytest.raises(UsageError, match="generator"):
        plan(generator=None, arms=arms(["direct"], []))


def test_what_is_relevant_is_known_empty_or_not_known(plan):
    questions = [
        replace(QUESTIONS[0], id="known", documents=("d0", "d1", "d0")), replace(QUESTIONS[0], id="none", documents=()),
        replace(QUESTIONS[0], id="gap", documents=("gone",)), replace(QUESTIONS[0], id="unknown", documents=None),
    ]  # fmt: skip
    made = plan(questions, arms=arms(["rag", "long-context"], [0.5]))
    run(made)
    known, none, gap, unknown = traces(made)
    assert {name.partition("#")[0] for name in known.eligible} == {"d0", "d1"}
    assert none.eligible == gap.eligible == ()
    assert none.relevance == {}
    assert unknown.eligible is unknown.relevance is None
    assert [one.error for one in traces(made, 1)] == [None, "NoDocument", "NoDocument", "NoDocument"]
    assert len(traces(made, 1)[0].context) == 2


def test_the_model_sees_what_the_guard_marks(plan):
    made = plan(guard=Marking(), guard_rules={"policy": "strict"}, generator=Scripted("5 mg"))
    run(made)
    assert made.generator.prompts[0].count("[clinsafe | FLAGGED]\n| ") == 2
    for one, item in zip(traces(made), read_items(made.out / made.arms[0].file), strict=True):
        (guard,) = one.guard
        assert (guard.policy, guard.needs_review) == ("strict", True)
        assert [row.rank for row in guard.passages] == [1, 2, 0]
        assert len(one.context) == 2
        withheld = next(hit.content.text for hit in one.retrieved if hit.id == guard.passages[2].id)
        assert withheld not in one.prompt.text
        assert f"WITHHELD {guard.passages[2].id}" in one.prompt.text
        assert "guard" in one.timings
        assert all(
            "clinsafe" not in passage.text for passage in item.contexts
        )  # measured on what was retrieved
    assert read_run(made.out).files[0].versions["guard"] == ("policy strict",)


def test_the_packaged_guard_in_the_chain(plan):
    from clinsafe.workflows.guarding import build_guard
    from clinsafe.workflows.rag_run import guard_rules

    tree = Content()
    guard = build_guard("default", content=tree, filters=["numerical"], seconds=0)
    rules = guard_rules("default", guard, tree)
    made = plan(QUESTIONS[:1], guard=guard, guard_rules=rules, generator=Scripted("x"))
    run(made)
    assert all(len(one) == 64 for name, one in rules.items() if name.endswith("sha256"))
    assert "[clinsafe | " in made.generator.prompts[0]
    assert traces(made)[0].guard[0].passages[0].action in ("keep", "flag")


def test_without_texts_nothing_is_told_and_ids_still_fit(plan):
    asked = [replace(QUESTIONS[0], id="Mr Canary's question"), *QUESTIONS[1:]]
    made = plan(asked, kept=Kept(False, lambda text: f"{hash(text) & (2**256 - 1):064x}"[-64:]))
    run(made)
    whole = (made.out / made.arms[0].file).read_text()
    for text in ("Canary", "mg daily", "What is", "treats"):
        assert text not in whole
    assert all(one.answer.length and one.answer.text is None for one in traces(made))
    assert run(made).done == 0  # the hashed id is known again
    assert not run(made).state.text


def test_ways_that_make_no_sense_are_refused():
    for settings, alphas in ((["rag"], []), ([], [0.5]), (["rag"], [0.5, 0.5]), (["direct", "direct"], []),
                             (["rag"], [1.5]), (["rag"], [float("nan")])):  # fmt: skip
        with pytest.raises(UsageError):
            arms(settings, alphas)


def test_a_dry_run_bounds_what_is_sent(plan, prompts):
    ways = arms(["rag", "direct", "long-context"], [0.5])
    asked = [*QUESTIONS, replace(QUESTIONS[0], id="q9", documents=None), BadLine(9, "id", "x")]
    found = dry_run(lambda: iter(asked), CORPUS, ways, prompts, k=3, tokens=32, overlap=8, answer=10)
    assert (found.questions, found.bad, found.documents) == (5, 1, 12)
    assert [one.prompts for one in found.estimates] == [5, 5, 4]
    assert [one.answers for one in found.estimates] == [50, 50, 40]
    made = plan(asked, arms=ways, generator=Scripted("x"))
    run(made)
    for number, one in enumerate(found.estimates):
        words = [len(t.prompt.text.split()) for t in traces(made, number) if t.prompt]
        assert sum(words) < one.tokens < 4 * sum(words)
    nothing = dry_run(
        lambda: iter(asked), CORPUS, ways[:1], prompts, k=3, tokens=32, overlap=8, answer=10, generates=False
    )
    assert nothing.estimates[0].prompts == 0


def test_the_state_is_json_that_others_can_read(plan):
    made = plan(QUESTIONS[:1])
    run(made)
    state = json.loads((made.out / STATE).read_text())
    assert state["plan"]["corpus"]
    assert (made.out / state["files"][0]["file"]).is_file()
