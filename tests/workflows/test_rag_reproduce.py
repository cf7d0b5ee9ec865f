"""The reproduction of Table III on a planted corpus: every figure by hand, and fooled instruments found out."""

from __future__ import annotations

import dataclasses

import pytest

from clinsafe.adapters.reference import FakeEncoder
from clinsafe.corpus import Document
from clinsafe.errors import UsageError
from clinsafe.rag.clash import Clash
from clinsafe.rag.fusion import SearchIndex
from clinsafe.rag.item import Context, Item
from clinsafe.rag.published import load_published
from clinsafe.rag.question import Question
from clinsafe.rag.relevance import Match
from clinsafe.workflows import rag_measure, rag_reproduce
from clinsafe.workflows.rag_reproduce import Plan, Way, at_random, literally, reproduce, ways
from clinsafe.workflows.rag_reproduce_table import printed_checks, table_of, told

for _name in ("usearch", "bm25s", "filelock"):
    pytest.importorskip(_name)

DRUGS = ("aspirin", "warfarin", "digoxin", "lithium", "insulin")
DOCUMENTS = [
    Document(f"d{n}", f"{drug} is given at {n + 1} mg daily.", f"d{n}") for n, drug in enumerate(DRUGS)
]
QUESTIONS = [
    # found first, and the reference stands there
    Question("q0", "aspirin dose", ("aspirin is given at 1 mg daily",), None, None, None, ("d0",)),
    # the right document comes first, and the reference stands nowhere
    Question("q1", "warfarin dose", ("keep out of reach",), None, None, None, ("d1",)),
    # another document is asked for by its words, and the right one is not among three
    Question("q2", "digoxin lithium insulin", ("aspirin is given at 1 mg daily",), None, None, None, ("d0",)),
    # found first; whether it is safe is the filter's word
    Question("q3", "lithium dose", ("lithium is given at 4 mg daily",), None, None, None, ("d3",)),
]  # fmt: skip
HAND = {"mrr": 0.5, "hit": 0.5, "exclusive_hit": 0.5, "label_mrr": 0.75, "label_hit": 0.75, "hit_substring": 0.5,
        "hit_words": 0.5, "safe_hit": 0.25, "dangerous_any": 0.5}  # fmt: skip


def no_lithium(reference, _text):
    return Clash(("numerical",)) if "lithium" in reference else Clash()


def plan(folder, **changes):
    made = Plan(
        sets={"pubmedqa": (DOCUMENTS, QUESTIONS)},
        ways=(Way("pubmedqa", "words", (0.0, 1.0)),),
        encoders={"words": FakeEncoder("words")},
        relevance=FakeEncoder("hash"),  # nothing is near anything: R is words alone
        folder=folder,
        conflicts=no_lithium,
    )
    return dataclasses.replace(made, **changes)


def measured(folder, **changes):
    found = reproduce(plan(folder, **changes))
    table = table_of(found, load_published())
    return {f"{line.system} {line.alpha}": line.figures for line in table.measured}, found, table


def by_hand(figures):
    return all(figures[name].value == pytest.approx(value) for name, value in HAND.items())


@pytest.fixture(scope="module")
def done(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ragx")
    return (*measured(folder), folder)


def test_bm25_gives_the_figures_that_were_worked_out_by_hand(done):
    figures = done[0]["bm25 0"]
    got = {name: figures[name].value for name in HAND}
    assert got == pytest.approx(HAND)
    assert figures["hit"].n == 4
    assert figures["dangerous_any"].n == 2


def test_what_nobody_judged_is_not_measured_and_no_zero(done):
    assert told(done[0]["bm25 0"]["context_relevancy"]) == "-"
    assert not hasattr(done[0]["bm25 0"]["context_relevancy"], "value")


@pytest.mark.parametrize(
    "says", [Match(1, 1.0, "r", 0, 1, "w"), Match(0, 0.0)], ids=["always yes", "always no"]
)
def test_a_relevance_function_that_knows_nothing_is_found_out(tmp_path, monkeypatch, says):
    monkeypatch.setattr(
        rag_measure, "relevance", lambda items, *_: [tuple(says for _ in i.contexts) for i in items]
    )
    figures, *_ = measured(tmp_path)
    assert not by_hand(figures["bm25 0"])
    assert figures["bm25 0"]["label_hit"].value == HAND["label_hit"]  # the labels are not R's


def test_a_retriever_that_finds_nothing_is_found_out(tmp_path, monkeypatch):
    search = SearchIndex.search

    def disabled(self, *given, **named):
        return dataclasses.replace(search(self, *given, **named), passages=(), fused=())

    monkeypatch.setattr(SearchIndex, "search", disabled)
    figures, *_ = measured(tmp_path)
    assert figures["bm25 0"]["hit"].value == 0
    assert not by_hand(figures["bm25 0"])


def test_a_finished_run_measures_nothing_again(done, monkeypatch):
    table, _, _, folder = done
    asked = []
    monkeypatch.setattr(
        rag_measure, "relevance", lambda items, *_: asked.extend(items) or [() for _ in items]
    )
    again, *_ = measured(folder)
    assert {item.id for item in asked} <= {"warm"}
    assert {name: told(figure) for name, figure in again["bm25 0"].items()} == {
        name: told(figure) for name, figure in table["bm25 0"].items()
    }


def test_a_run_that_was_stopped_goes_on_and_ends_with_the_same_figures(done, tmp_path):
    calls = 0

    def tired(reference, text):
        nonlocal calls
        calls += 1
        if calls > 1:
            raise KeyboardInterrupt
        return no_lithium(reference, text)

    with pytest.raises(KeyboardInterrupt):
        reproduce(plan(tmp_path, conflicts=tired))
    figures, *_ = measured(tmp_path)
    assert {k: told(v) for k, v in figures["bm25 0"].items()} == {
        k: told(v) for k, v in done[0]["bm25 0"].items()
    }


def test_the_limit_holds_for_traces_and_figures(tmp_path):
    figures, found, _ = measured(tmp_path, limit=1)
    assert figures["bm25 0"]["hit"].n == 1
    assert found.evidence.questions == 1


def test_published_rows_stand_beside_measured_ones_of_the_same_data_set_and_the_record_is_a_fakes(done):
    _, found, table, _ = done
    assert {line.dataset for line in table.published} == {"pubmedqa"}
    assert {(line.retriever, line.alpha) for line in table.published} >= {
        ("BM25", "0"),
        ("NV-EmbedQA-E5-v5", "1"),
    }
    assert table.alphas("pubmedqa") == ["0", "1"]
    assert found.evidence.fake
    assert table.to_json()["measured"][0]["figures"]["hit"]["value"] == 0.5


# ── the word instead of the answer ─────────────────────────────────────────────────────────────


def asked(name, expected, *texts):
    contexts = tuple(Context(f"{name}{n}", text) for n, text in enumerate(texts))
    return Item(name, "q", contexts, expected=expected)


WORDS = [
    asked("a", "no", "Diagnosis was late.", "We do not know."),
    asked("b", "no", "Cured.", "There was no relapse."),
    asked("c", "yes", "No effect was seen.", "None."),
    asked("d", "maybe", "Perhaps."),
    Item("e", "q", (Context("e0", "no"),)),
]


@pytest.mark.parametrize(
    ("how", "hits", "first", "alone"),
    [("inside words", 2, 1.5, 0), ("at the start of a word", 2, 1.0, 0), ("as a word", 1, 0.5, 0)],
)
def test_a_literal_answer_is_found_inside_other_words_whatever_was_retrieved(how, hits, first, alone):
    found = literally(WORDS, how)
    assert found is not None
    assert (found.n, found.hits, found.first, found.alone) == (4, hits, first, alone)
    assert found.by_word == {"maybe": (0, 1), "no": (hits, 2), "yes": (0, 1)}


def test_passages_at_random_are_the_same_each_time_and_each_once():
    found = at_random(DOCUMENTS, QUESTIONS)
    assert found == at_random(DOCUMENTS, QUESTIONS)
    assert all(len({c.id for c in item.contexts}) == 3 for item in found)
    assert len({tuple(c.id for c in item.contexts) for item in found}) > 1
    assert all(len(item.contexts) == 1 for item in at_random(DOCUMENTS[:1], QUESTIONS))


def test_without_an_expected_option_there_is_nothing_to_look_for():
    assert literally([Item("a", "q", (Context("x", "no"),))]) is None
    assert literally([]) is None


# ── the paper's own arithmetic ─────────────────────────────────────────────────────────────────


def test_table_iv_can_be_whole_questions_and_three_accuracies_of_table_ii_cannot():
    faults = [one for one in printed_checks(load_published()) if one.fault]
    assert len(faults) == 3
    assert all(one.where == "Table II" and "direct" in one.stated for one in faults)


# ── what is asked for ──────────────────────────────────────────────────────────────────────────


def test_bm25_is_measured_once_and_the_first_model_once_more_on_short_chunks():
    labels = [way.label(alpha) for way in ways(["medquad"], ["minilm", "bge"]) for alpha in way.alphas]
    assert labels == [
        "medquad bm25",
        "medquad minilm alpha=0.5",
        "medquad minilm alpha=1",
        "medquad bge alpha=0.5",
        "medquad bge alpha=1",
        "medquad minilm alpha=1 tokens=256",
    ]
    assert len({way.folder for way in ways(["medquad", "pubmedqa"], ["minilm", "bge"])}) == 6


@pytest.mark.parametrize(("sets", "models"), [(["x"], ["a"]), (["medquad"], []), (["medquad"], ["a", "a"])])
def test_what_cannot_be_asked_for_is_refused(sets, models):
    with pytest.raises(UsageError):
        ways(sets, models)


@pytest.mark.data
@pytest.mark.slow
def test_real_questions_are_found_in_a_corpus_of_their_documents(data, minilm, tmp_path):
    documents, questions = rag_reproduce.DATASETS["medquad"](data)
    sizes = {one.id: len(one.text) for one in documents}
    few = sorted(questions, key=lambda one: (sizes[one.documents[0]], one.id))[:3]  # short ones: few windows
    kept = [one for one in documents if any(one.id in (q.documents or ()) for q in few)]
    found = reproduce(
        plan(
            tmp_path,
            sets={"medquad": (kept, few)},
            ways=(Way("medquad", "minilm", (0.0, 1.0)),),
            encoders={"minilm": minilm},
            relevance=minilm,
            conflicts=None,
        )
    )
    lines = {line.system: line.figures for line in table_of(found, load_published()).measured}
    for name in ("bm25", "minilm"):
        assert lines[name]["label_hit"].k == len(few) > 0
        assert lines[name]["hit"].k == len(few)
    assert not found.literal
