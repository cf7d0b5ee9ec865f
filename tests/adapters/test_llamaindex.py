"""Guarded LlamaIndex retrievers and nodes inside a real query engine: what the model is given, sync and async."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from llama_index.core import VectorStoreIndex
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.embeddings import MockEmbedding
from llama_index.core.llms import CompletionResponse, CustomLLM, LLMMetadata
from llama_index.core.postprocessor import SimilarityPostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.response_synthesizers import ResponseMode
from llama_index.core.schema import (
    ImageNode,
    IndexNode,
    MediaResource,
    MetadataMode,
    Node,
    NodeWithScore,
    QueryBundle,
    TextNode,
)

from clinsafe.adapters.frameworks import guard_retriever
from clinsafe.adapters.llamaindex import ClinsafePostprocessor
from clinsafe.adapters.offline import only_this_machine
from clinsafe.errors import UsageError
from tests.adapters.guard_kit import FLAG, NO, OLD, QUERY, TEXTS, YES, WordGuard, run_docs


@pytest.fixture(autouse=True)
def _nothing_leaves_the_machine() -> Iterator[None]:
    with only_this_machine(True):
        yield


def nodes() -> list[NodeWithScore]:
    made = [TextNode(id_=n, text=t, metadata={"page": 3}, start_char_idx=5) for n, t in TEXTS.items()]
    return [NodeWithScore(node=node, score=0.9 - place / 10) for place, node in enumerate(made)]


class Fixed(BaseRetriever):
    """Gives these nodes, or raises."""

    def __init__(self, found: Any = None) -> None:
        super().__init__()
        self.found = nodes() if found is None else found

    def _retrieve(self, query_bundle: QueryBundle) -> list[NodeWithScore]:
        if isinstance(self.found, Exception):
            raise self.found
        return list(self.found)


class Echo(CustomLLM):
    """Keeps the prompts it is given."""

    prompts: list[str]

    @property
    def metadata(self) -> LLMMetadata:
        return LLMMetadata()

    def complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> CompletionResponse:
        self.prompts.append(prompt)
        return CompletionResponse(text="answered")

    def stream_complete(self, prompt: str, formatted: bool = False, **kwargs: Any) -> Any:
        self.prompts.append(prompt)
        yield CompletionResponse(text="answered", delta="answered")


def engine(guard, llm, where, **options):
    if where == "retriever":
        return RetrieverQueryEngine.from_args(guard_retriever(Fixed(), guard), llm=llm, **options)
    steps = [ClinsafePostprocessor(guard=guard)]
    return RetrieverQueryEngine.from_args(Fixed(), llm=llm, node_postprocessors=steps, **options)


@pytest.mark.parametrize("where", ["retriever", "postprocessor"])
@pytest.mark.parametrize("way", ["query", "aquery", "stream"])
def test_the_model_is_given_the_flag_the_passages_and_the_notice(where, way):
    llm = Echo(prompts=[])
    made = engine(WordGuard(), llm, where, streaming=way == "stream")
    answer = asyncio.run(made.aquery(QUERY)) if way == "aquery" else made.query(QUERY)
    assert str(answer) == "answered"
    (prompt,) = llm.prompts
    assert f"[b: {FLAG}]\n{NO}" in prompt
    assert f"[a]\n{YES}" in prompt
    assert "a and b contradict each other" in prompt
    assert "passage c was withheld" in prompt
    assert OLD not in prompt
    assert "page: 3" in prompt  # the nodes' own metadata
    assert prompt.count(NO) == 1  # and nothing of ours twice
    assert "retrieved_rank" not in prompt
    assert prompt.index("clinsafe notice") < prompt.index(YES)
    assert answer.source_nodes[2].metadata["clinsafe"]["original"] == NO


@pytest.mark.parametrize(
    "mode", [ResponseMode.REFINE, ResponseMode.TREE_SUMMARIZE, ResponseMode.SIMPLE_SUMMARIZE]
)
def test_every_way_of_writing_an_answer_sees_the_flag(mode):
    llm = Echo(prompts=[])
    engine(WordGuard(), llm, "retriever", response_mode=mode).query(QUERY)
    whole = "\n".join(llm.prompts)
    assert f"[b: {FLAG}]" in whole
    assert NO in whole
    assert "a and b contradict" in whole
    assert OLD not in whole


def test_a_guard_that_flags_all_or_nothing_is_told_from_one_that_looks():
    flags = {}
    for mode in ("real", "always", "disabled"):
        found = guard_retriever(Fixed(), WordGuard(mode)).retrieve(QUERY)
        flags[mode] = [
            f": {FLAG}]" in node.get_content(MetadataMode.LLM) for node in found if node.node_id in "ab"
        ]
    assert flags == {"real": [False, True], "always": [True, True], "disabled": [False, False]}


def test_nodes_keep_what_they_had_and_lose_nothing():
    found = guard_retriever(Fixed(), WordGuard()).retrieve(QUERY)
    assert [node.node_id for node in found] == ["clinsafe-notice", "a", "b"]
    assert [node.score for node in found] == [0.9, 0.9, 0.8]
    assert found[1].node.start_char_idx == 5
    for node in found:
        assert "original" not in node.get_content(MetadataMode.LLM)
        assert "original" not in node.get_content(MetadataMode.EMBED)
        whole = json.loads(json.dumps(node.metadata))["clinsafe_answer"]
        assert whole["withheld"][0]["original"] == OLD


def test_a_cut_off_behind_the_guard_does_not_drop_the_notice_before_the_nodes():
    steps = [ClinsafePostprocessor(guard=WordGuard()), SimilarityPostprocessor(similarity_cutoff=0.85)]
    made = RetrieverQueryEngine.from_args(Fixed(), llm=Echo(prompts=[]), node_postprocessors=steps)
    assert [node.node_id for node in made.retrieve(QueryBundle(QUERY))] == ["clinsafe-notice", "a"]


def test_a_node_that_points_elsewhere_cannot_exchange_its_text():
    elsewhere = TextNode(id_="other", text="unguarded")
    raw = [NodeWithScore(node=IndexNode(id_="i", text=NO, index_id="x", obj=elsewhere), score=0.5)]
    step = ClinsafePostprocessor(guard=WordGuard())
    guarded = guard_retriever(Fixed(step.postprocess_nodes(raw, query_str=QUERY)), WordGuard())
    assert [node.text for node in step.postprocess_nodes(raw, query_str=QUERY)] == [f"[i: {FLAG}]\n{NO}"]
    # Through a retriever, LlamaIndex follows the pointer first: then what it points to is what is checked.
    followed = guard_retriever(Fixed(raw), WordGuard()).retrieve(QUERY)
    assert [node.metadata["clinsafe"]["original"] for node in followed] == ["unguarded"]
    assert FLAG in guarded.retrieve(QUERY)[0].text


def test_equal_ids_survive_a_framework_that_drops_them():
    raw = [NodeWithScore(node=TextNode(id_="7", text=text), score=None) for text in (YES, NO)]
    found = ClinsafePostprocessor(guard=WordGuard()).postprocess_nodes(raw, query_str=QUERY)
    assert [node.metadata["clinsafe"]["original"] for node in found[1:]] == [YES, NO]
    assert "different text" in found[0].text


@pytest.mark.parametrize(
    "node",
    [
        ImageNode(id_="p", text=YES, image="aGk="),
        Node(id_="p", text_resource=MediaResource(text=YES), image_resource=MediaResource(data=b"aGk=")),
        Node(id_="p", text_resource=MediaResource(text=YES), audio_resource=MediaResource(data=b"aGk=")),
    ],
)
def test_an_image_is_kept_and_told_as_unchecked(node):
    notice, kept = ClinsafePostprocessor(guard=WordGuard()).postprocess_nodes(
        [NodeWithScore(node=node)], query_str=QUERY
    )
    assert type(kept.node) is type(node)
    assert kept.node.get_content(MetadataMode.NONE).startswith("[NOT CHECKED")
    assert YES in kept.node.get_content(MetadataMode.NONE)
    assert "not checked" in notice.text
    assert node.get_content() == YES  # the retriever's own is left alone


def test_a_plain_node_with_text_is_checked():
    node = Node(id_="p", text_resource=MediaResource(text=NO))
    found = ClinsafePostprocessor(guard=WordGuard()).postprocess_nodes(
        [NodeWithScore(node=node)], query_str=QUERY
    )
    assert found[-1].text == f"[p: {FLAG}]\n{NO}"


def test_a_retriever_that_raises_reaches_the_caller():
    guarded = guard_retriever(Fixed(LookupError("the index is gone")), WordGuard())
    with pytest.raises(LookupError, match="the index is gone"):
        guarded.retrieve(QUERY)
    with pytest.raises(LookupError, match="the index is gone"):
        asyncio.run(guarded.aretrieve(QUERY))


def test_without_the_query_the_postprocessor_refuses():
    step = ClinsafePostprocessor(guard=WordGuard())
    with pytest.raises(UsageError, match="query_str"):
        step.postprocess_nodes(nodes())
    found = asyncio.run(step.apostprocess_nodes(nodes(), query_str=QUERY))
    assert len(found) == 3


def test_awaited_checks_overlap():
    barrier = threading.Barrier(2, timeout=10)

    class Meets(WordGuard):
        def check(self, query, found, /, *, k=None):
            barrier.wait()
            return super().check(query, found, k=k)

    async def both(act):
        return await asyncio.gather(act(), act())

    guarded, step = guard_retriever(Fixed(), Meets()), ClinsafePostprocessor(guard=Meets())
    assert [len(found) for found in asyncio.run(both(lambda: guarded.aretrieve(QUERY)))] == [3, 3]
    done = asyncio.run(both(lambda: step.apostprocess_nodes(nodes(), query_str=QUERY)))
    assert [len(found) for found in done] == [3, 3]


def test_eight_threads_share_one_guarded_retriever():
    class Named(Fixed):
        def _retrieve(self, query_bundle):
            return [
                NodeWithScore(node=TextNode(id_=query_bundle.query_str, text=f"no {query_bundle.query_str}"))
            ]

    guarded = guard_retriever(Named(), WordGuard())
    with ThreadPoolExecutor(8) as pool:
        for number, found in enumerate(pool.map(guarded.retrieve, map(str, range(64)))):
            assert [(n.node_id, n.metadata["clinsafe"]["action"]) for n in found] == [(str(number), "flag")]


def test_an_index_and_k():
    index = VectorStoreIndex(nodes=[n.node for n in nodes()], embed_model=MockEmbedding(8))
    found = guard_retriever(index.as_retriever(similarity_top_k=3), WordGuard(), k=1).retrieve(QUERY)
    assert len([node for node in found if "clinsafe" in node.metadata]) <= 1
    with pytest.raises(UsageError, match="as_retriever"):
        guard_retriever(index, WordGuard())
    with pytest.raises(UsageError, match="ClinsafePostprocessor"):
        guard_retriever(index.as_query_engine(llm=Echo(prompts=[])), WordGuard())


def test_nothing_is_guarded_twice():
    with pytest.raises(UsageError, match="already"):
        guard_retriever(guard_retriever(Fixed(), WordGuard()), WordGuard())


@pytest.mark.slow
def test_the_documented_code_runs_with_the_real_guard():
    printed = run_docs("LlamaIndex")
    assert printed.count("Context information") == 2
    assert "not a source" in printed
    assert "found negation" in printed
