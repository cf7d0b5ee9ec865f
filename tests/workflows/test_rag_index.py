"""The index of a corpus: built, reused, resumed, refused; searched both ways, reranked, thinned out, guarded."""

from __future__ import annotations

import json

import numpy as np
import pytest

import clinsafe
from clinsafe.adapters.reference import FakeEncoder
from clinsafe.corpus import Document
from clinsafe.errors import ModelError, OfflineError, UsageError
from clinsafe.protocols import ModelIdentity, Retriever
from clinsafe.rag.chunks import WordPieces
from clinsafe.workflows import rag_index
from clinsafe.workflows.rag_index import MANIFEST, build_index, copy_vectors, open_index, tokenizer_of

for _name in ("usearch", "bm25s", "filelock"):
    pytest.importorskip(_name)

DRUGS = ["aspirin", "warfarin", "metformin", "insulin", "digoxin", "lithium"]
CORPUS = [
    Document(
        f"d{n}",
        f"{drug} is given for condition{n}. " + f"The dose of {drug} is {n} mg daily. " * 6,
        f"d{n}",
        {"date": f"2020-01-0{n + 1}"},
    )
    for n, drug in enumerate(DRUGS)
]


class Counting(FakeEncoder):
    """Counts texts, and can fail after some."""

    def __init__(self, fail_after=None, name="words"):
        super().__init__(name)
        self.seen, self.fail_after = 0, fail_after

    def encode(self, texts, /):
        if self.fail_after is not None and self.seen >= self.fail_after:
            raise KeyboardInterrupt
        self.seen += len(texts)
        return super().encode(texts)


def build(folder, encoder=None, corpus=CORPUS, **options):
    return build_index(
        corpus, encoder or FakeEncoder("words"), folder, **{"tokens": 16, "overlap": 4, **options}
    )


@pytest.fixture(scope="module")
def index(tmp_path_factory):
    built = build(tmp_path_factory.mktemp("index"))
    yield built
    built.close()


# ── building ───────────────────────────────────────────────────────────────────────────────────


def test_an_unchanged_corpus_is_not_built_again_and_says_so(tmp_path):
    encoder = Counting()
    first = build(tmp_path, encoder)
    seen = encoder.seen
    assert (first.reused, seen) == (False, len(first))
    again = build(tmp_path, encoder)
    assert (again.reused, again.version, encoder.seen) == (True, first.version, seen)
    assert [f.name for f in tmp_path.iterdir() if f.is_dir()] == [f"index-{first.version[:16]}"]


OTHER = {
    "a text": {"corpus": [*CORPUS[:-1], Document("d5", "lithium is given", "d5", CORPUS[-1].fields)]},
    "an id": {"corpus": [*CORPUS[:-1], Document("d6", CORPUS[-1].text, "d6", CORPUS[-1].fields)]},
    "a field": {"corpus": [*CORPUS[:-1], Document("d5", CORPUS[-1].text, "d5", {"date": "1999-01-01"})]},
    "the order": {"corpus": CORPUS[::-1]},
    "one fewer": {"corpus": CORPUS[:-1]},
    "tokens": {"tokens": 17},
    "overlap": {"overlap": 3},
    "the model": {"encoder": FakeEncoder("hash")},
    "the kind": {"exact": False},
}


@pytest.mark.parametrize("what", OTHER)
def test_a_change_of_anything_that_matters_makes_another_index(tmp_path, index, what):
    other = build(tmp_path, **OTHER[what])
    assert not other.reused
    assert other.version != index.version


def test_another_tokenizer_makes_another_index_and_the_batch_size_does_not(tmp_path, index):
    class Other(WordPieces):
        identity = "other"

    assert build(tmp_path / "a", tokenizer=Other()).version != index.version
    encoder = FakeEncoder("words")
    own = encoder.identity
    encoder.identity = ModelIdentity(own.name, settings={**own.settings, "batch_size": "7"}, fake=True)
    assert build(tmp_path / "b", encoder).version == index.version


def test_two_builds_are_the_same_to_the_byte(tmp_path):
    for name in ("a", "b"):
        build(tmp_path / name, exact=False).close()
    one, other = (sorted((tmp_path / name).rglob("*.*")) for name in ("a", "b"))
    assert [f.read_bytes() for f in one if f.is_file()] == [f.read_bytes() for f in other if f.is_file()]


def test_an_interrupted_build_goes_on_where_it_was(tmp_path, monkeypatch, index):
    monkeypatch.setattr(rag_index, "PART", 4)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, Counting(fail_after=8))
    (place,) = (f for f in tmp_path.iterdir() if f.is_dir())
    with pytest.raises(UsageError, match="no finished index"):
        open_index(place)
    encoder, told = Counting(), []
    whole = build(tmp_path, encoder, on_progress=lambda *step: told.append(step))
    assert encoder.seen == len(index) - 8
    assert whole.version == index.version
    assert np.array_equal(whole.vectors, index.vectors)
    assert [s for s in told if s[0] == "vectors"][-1] == ("vectors", len(index), len(index))
    assert not list(place.glob("part-*"))


def test_a_damaged_part_is_made_again(tmp_path, monkeypatch, index):
    monkeypatch.setattr(rag_index, "PART", 4)
    with pytest.raises(KeyboardInterrupt):
        build(tmp_path, Counting(fail_after=8))
    (part, *_) = tmp_path.rglob("part-000000.npy")
    part.write_bytes(part.read_bytes()[:100])
    assert np.array_equal(build(tmp_path).vectors, index.vectors)


@pytest.mark.parametrize(
    "name", ["chunks.sqlite", "vectors.npy", "order.npy", "bm25/data.csc.index.npy", "bm25/vocab.index.json"]
)
def test_a_changed_or_missing_file_is_refused_by_its_name(tmp_path, name):
    build(tmp_path).close()
    (file,) = tmp_path.rglob(name)
    data = file.read_bytes()
    file.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(UsageError, match=f"{name} was changed"):
        build(tmp_path)
    file.unlink()
    with pytest.raises(UsageError, match=f"{name} is missing"):
        build(tmp_path)


def test_a_changed_manifest_is_refused(tmp_path):
    build(tmp_path).close()
    (file,) = tmp_path.rglob(MANIFEST)
    record = json.loads(file.read_text())
    record["made_of"]["chunks"]["tokens"] = 999
    file.write_text(json.dumps(record))
    with pytest.raises(UsageError, match="was changed"):
        open_index(file.parent)
    record["made_of"]["chunks"]["tokens"] = 16
    del record["files"]["vectors.npy"]
    file.write_text(json.dumps(record))
    with pytest.raises(UsageError, match=r"vectors\.npy is not listed"):
        open_index(file.parent)
    for data in (b"", b"{}", b"\xff"):
        file.write_bytes(data)
        with pytest.raises(UsageError, match="is damaged"):
            open_index(file.parent)


def test_a_corpus_without_use_is_refused(tmp_path):
    for corpus, said in (
        ([*CORPUS, CORPUS[0]], "'d0' is there twice"),
        ([], "no text"),
        ([Document("a", " \n", "a")], "1 empty"),
        ([Document("a", "x\ud800", "a")], "half a character"),
        (iter(CORPUS), "gone through twice"),
    ):
        with pytest.raises(UsageError, match=said):
            build(tmp_path, corpus=corpus)
    with pytest.raises(UsageError, match="overlap"):
        build(tmp_path, tokens=4, overlap=4)


def test_an_empty_document_among_others_is_counted_and_left_out(tmp_path):
    found = build(tmp_path, corpus=lambda: iter([Document("e", " ", "e"), *CORPUS]))
    manifest = rag_index.read_manifest(found.folder)
    assert (manifest.documents, manifest.empty, manifest.chunks) == (7, 1, len(found))


def test_bad_vectors_are_refused_and_no_index_is_left(tmp_path):
    class Bad(FakeEncoder):
        def encode(self, texts, /):
            return super().encode(texts) * np.float32(np.nan)

    class Short(FakeEncoder):
        def encode(self, texts, /):
            return super().encode(texts[:-1])

    for kind, said in ((Bad, "NaN"), (Short, "one for each")):
        with pytest.raises(ModelError, match=said):
            build(tmp_path, kind("words"))
    assert not list(tmp_path.rglob(MANIFEST))


def test_what_a_model_says_of_the_network_is_not_taken_for_a_full_disk(tmp_path):
    class Offline(FakeEncoder):
        def encode(self, texts, /):
            raise OfflineError("offline")

    with pytest.raises(OfflineError, match=r"^offline$"):
        build(tmp_path, Offline("words"))


def test_one_build_at_a_time_and_a_place_that_is_no_folder(tmp_path, monkeypatch, index):
    from filelock import FileLock

    monkeypatch.setattr(rag_index, "PATIENCE", 0.05)

    with (
        FileLock(f"{tmp_path}/index-{index.version[:16]}.lock"),
        pytest.raises(UsageError, match="another process"),
    ):
        build(tmp_path)
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError, match="cannot be written"):
        build(tmp_path / "file")


def test_another_model_is_refused_at_opening(index):
    with pytest.raises(UsageError, match="another model"):
        open_index(index.folder, FakeEncoder("hash"))


def test_the_tokenizer_of_a_model_is_found_behind_its_prompts():
    class Shown:
        pass

    class Prompted:
        _inner = Shown()

    assert isinstance(tokenizer_of(FakeEncoder("words")), WordPieces)
    Shown.tokenizer = "no tokenizer"
    assert isinstance(tokenizer_of(Prompted()), WordPieces)
    from tests.rag.test_chunks import bert

    Shown.tokenizer = bert()
    assert tokenizer_of(Prompted()).identity.startswith("tokenizers sha256:")


# ── searching ──────────────────────────────────────────────────────────────────────────────────


def test_the_ends_of_alpha_are_the_rankings_themselves(index):
    query = "dose of warfarin"
    both = index.search(query, 5, 0.5)
    sparse, dense = index.search(query, 5, 0.0), index.search(query, 5, 1.0)
    assert [h.id for h in sparse.fused] == [h.id for h in both.sparse]
    assert [h.id for h in dense.fused] == [h.id for h in both.dense]
    assert (sparse.dense, dense.sparse) == (None, None)
    assert [p.id for p in dense.passages] == [h.id for h in dense.dense[:5]]
    assert "warfarin" in sparse.passages[0].text
    scores = {h.id: h.score for h in both.fused}
    first = both.fused[0].id
    ranks = [[h.id for h in ranking].index(first) + 1 for ranking in (both.dense, both.sparse)]
    assert scores[first] == pytest.approx(0.5 / (60 + ranks[0]) + 0.5 / (60 + ranks[1]))


def test_a_passage_says_where_it_stands_and_keeps_the_fields_of_its_document(index):
    (passage,) = index.search("digoxin", 1).passages
    at = passage.metadata
    source = next(d for d in CORPUS if d.id == at["document"])
    assert source.text[int(at["chunk_start"]) : int(at["chunk_end"])] == passage.text
    assert (passage.source, at["date"]) == ("d4", "2020-01-05")


def test_searching_together_is_searching_one_by_one(index):
    queries = ["insulin dose", "condition3", "insulin dose"]
    assert [f.passages for f in index.search_many(queries, 4)] == [
        index.search(q, 4).passages for q in queries
    ]
    assert index.search_many([]) == []
    with pytest.raises(UsageError, match="empty"):
        index.search_many(["insulin", ""])


def test_k_and_depth_above_the_size_give_all_there_is(index):
    found = index.search("warfarin dose", 10_000, 0.5, depth=1)
    assert len(found.dense) == len(index)
    assert len({p.id for p in found.passages}) == len(found.passages) == len(index)


def test_a_query_that_shares_no_word_finds_nothing_by_words(index):
    found = index.search("zebra", 3, 0.0, reranker=Longest(), mmr=0.5)
    assert (found.passages, found.sparse, found.fused, found.reranked) == ((), (), (), ())


class Longest:
    """Prefers the passage whose id comes last."""

    identity = ModelIdentity("longest")
    answer = None

    def score(self, pairs, /):
        return np.asarray([float(len(text)) for _, text in pairs]) if self.answer is None else self.answer


def test_a_reranker_reorders_the_best_and_both_orders_are_kept(index):
    found = index.search("warfarin dose", 3, reranker=Longest(), reranked=8)
    assert {h.id for h in found.reranked} == {h.id for h in found.fused[:8]}
    assert [h.id for h in found.reranked] != [h.id for h in found.fused[:8]]
    assert [h.score for h in found.reranked] == sorted((h.score for h in found.reranked), reverse=True)
    assert [p.id for p in found.passages] == [h.id for h in found.reranked[:3]]
    assert found.milliseconds["rerank"] <= found.milliseconds["total"]


@pytest.mark.parametrize("answer", [np.full(8, np.nan), np.ones(7), np.ones((8, 1)), np.full(8, np.inf)])
def test_a_reranker_without_a_number_for_each_is_refused(index, answer):
    bad = Longest()
    bad.answer = answer
    with pytest.raises(ModelError, match="longest"):
        index.search("warfarin dose", 3, reranker=bad, reranked=8)


def test_mmr_1_is_the_order_itself_and_less_brings_other_documents(index):
    query = "warfarin dose is 1 mg daily"
    plain = [p.id for p in index.search(query, 4).passages]
    assert [p.id for p in index.search(query, 4, mmr=1.0).passages] == plain
    varied = index.search(query, 4, mmr=0.3).passages
    assert len({p.source for p in varied}) > len({name.split("#")[0] for name in plain})
    assert varied[0].id == plain[0]


def test_a_vector_alone_is_searched_with_and_needs_alpha_1(index):
    vector = FakeEncoder("words").encode(["warfarin dose"])[0]
    assert index.search(vector, 3, 1.0).passages == index.search("warfarin dose", 3, 1.0).passages
    with pytest.raises(UsageError, match="no words"):
        index.search(vector, 3, 0.5)
    with pytest.raises(UsageError, match="no words"):
        index.search(vector, 3, 1.0, reranker=Longest())
    for bad, said in ((np.full(64, np.nan), "NaN"), (np.ones(64), "length 1"), (vector[:3], "64")):
        with pytest.raises(UsageError, match=said):
            index.search(bad, 3, 1.0)
        with pytest.raises(UsageError, match=said):
            index.search("warfarin", 3, 0.5, vector=bad)


@pytest.mark.parametrize(
    ("query", "options", "said"),
    [
        ("", {}, "empty"),
        ("x" * 1_000_000, {}, "1,000,000"),
        ("a\ud800", {}, "half a character"),
        ("a", {"k": 0}, "k is 0"),
        ("a", {"alpha": 1.5}, "alpha"),
        ("a", {"mmr": 2.0}, "mmr"),
    ],
)
def test_a_search_that_makes_no_sense_is_refused(index, query, options, said):
    with pytest.raises(UsageError, match=said):
        index.search(query, **options)


def test_without_a_model_words_are_still_searched(index):
    opened = open_index(index.folder)
    assert opened.search("warfarin", 3, 0.0).passages == index.search("warfarin", 3, 0.0).passages
    with pytest.raises(UsageError, match="without a model"):
        opened.search("warfarin", 3, 0.5)


def test_the_query_side_of_a_model_is_asked(tmp_path):
    class Apart(FakeEncoder):
        def encode_queries(self, texts, /):
            return self.encode(["warfarin"] * len(texts))

    assert "warfarin" in build(tmp_path, Apart("words")).search("lithium", 1, 1.0).passages[0].text


def test_the_graph_is_searched_where_it_was_asked_for(tmp_path, index):
    graph = build(tmp_path, exact=False)
    assert (graph.folder / rag_index.GRAPH).is_file()
    assert not (index.folder / rag_index.GRAPH).exists()
    assert graph.search("lithium dose", 5).passages == index.search("lithium dose", 5).passages


@pytest.mark.slow
def test_qdrant_in_place_of_the_own_vectors_finds_the_same(tmp_path, index):
    pytest.importorskip("qdrant_client")
    from clinsafe.adapters.qdrant import QdrantIndex

    with QdrantIndex("chunks", path=tmp_path) as dense:
        copy_vectors(index, dense)
        other = open_index(index.folder, FakeEncoder("words"), dense=dense)
        assert [p.id for p in other.search("insulin dose", 5).passages] == [
            p.id for p in index.search("insulin dose", 5).passages
        ]
        dense.add(["stranger"], FakeEncoder("words").encode(["insulin dose"]))
        with pytest.raises(UsageError, match="stranger"):
            other.search("insulin dose", 5)


# ── as a retriever ─────────────────────────────────────────────────────────────────────────────


@pytest.mark.slow
def test_the_real_guard_wraps_the_retriever_and_flags_the_contradiction(tmp_path):
    texts = [
        "The patient has no penicillin allergy.",
        "Metformin 500 mg is given daily.",
        "The knee was replaced.",
    ]
    corpus = [Document(f"n{n}", text, f"n{n}") for n, text in enumerate(texts)]
    seen = []
    retriever = build(tmp_path, corpus=corpus).retriever(2, 0.5, on_found=seen.append)
    assert isinstance(retriever, Retriever)
    query = "The patient has a penicillin allergy."
    assert [p.id for p in retriever.retrieve(query, 1)] == ["n0#0"]
    answer = clinsafe.guard(retriever, k=2).retrieve(query)
    assert answer.passages[0].passage.id == "n0#0"
    assert any(f.hazard == "negation" for f in answer.passages[0].findings)
    assert all(not p.findings for p in answer.passages[1:])
    assert seen[-1].fused[0].id == "n0#0"
    assert len(retriever.retrieve(query)) == 2


@pytest.mark.slow
def test_the_real_model_finds_by_meaning_and_its_own_tokenizer_cuts(tmp_path, minilm):
    texts = [
        "Myocardial infarction was confirmed.",
        "The ankle is sprained.",
        "Insulin lowers blood glucose.",
    ]
    corpus = [Document(f"n{n}", text, f"n{n}") for n, text in enumerate(texts)]
    found = build_index(corpus, minilm, tmp_path)
    assert found.search("heart attack", 1, 1.0).passages[0].id == "n0#0"
    assert (
        rag_index.read_manifest(found.folder).made_of["chunks"]["tokenizer"].startswith("tokenizers sha256:")
    )
