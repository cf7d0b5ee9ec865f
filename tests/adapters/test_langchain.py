"""A guarded LangChain retriever inside LangChain's own chains: what the model is given, sync and async."""

from __future__ import annotations

import asyncio
import json
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.documents import Document
from langchain_core.language_models import FakeListChatModel, GenericFakeChatModel
from langchain_core.messages import AIMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore

from clinsafe.adapters.frameworks import guard_retriever
from clinsafe.adapters.offline import only_this_machine
from clinsafe.errors import UsageError
from tests.adapters.guard_kit import FLAG, NO, OLD, QUERY, TEXTS, YES, WordGuard, run_docs


@pytest.fixture(autouse=True)
def _nothing_leaves_the_machine(monkeypatch) -> Iterator[None]:
    monkeypatch.setenv("LANGSMITH_TRACING", "false")
    with only_this_machine(True):
        yield


class Notes(BaseRetriever):
    """Gives all documents, or fails."""

    error: str = ""

    def _get_relevant_documents(self, query, *, run_manager):
        if self.error:
            raise LookupError(self.error)
        return [Document(t, id=n, metadata={"source": "notes", "page": 3}) for n, t in TEXTS.items()]


class Prompts(BaseCallbackHandler):
    """What reached the model, and the retrievers that ran, with their parents."""

    def __init__(self):
        self.prompts, self.retrievers = [], []

    def on_chat_model_start(self, serialized, messages, **kwargs):
        self.prompts.append(messages[0][0].content)

    def on_retriever_start(self, serialized, query, *, run_id, parent_run_id=None, **kwargs):
        self.retrievers.append((run_id, parent_run_id, kwargs.get("name")))


def joined(documents):
    return "\n\n".join(document.page_content for document in documents)


def chain(retriever, model=None):
    prompt = ChatPromptTemplate.from_template("{context}\n\nQuestion: {question}")
    start = {"context": retriever | joined, "question": RunnablePassthrough()}
    return start | prompt | (model or FakeListChatModel(responses=["answered"])) | StrOutputParser()


def told_to_the_model(run, mode="real"):
    """The prompt that the model was given."""
    seen = Prompts()
    run(chain(guard_retriever(Notes(), WordGuard(mode))), {"callbacks": [seen]})
    (prompt,) = seen.prompts
    return prompt


WAYS = {
    "invoke": lambda c, config: c.invoke(QUERY, config),
    "ainvoke": lambda c, config: asyncio.run(c.ainvoke(QUERY, config)),
    "batch": lambda c, config: c.batch([QUERY], config),
    "stream": lambda c, config: list(c.stream(QUERY, config)),
}


@pytest.mark.parametrize("way", WAYS)
def test_the_model_is_given_the_flag_the_passages_and_the_notice(way):
    prompt = told_to_the_model(WAYS[way])
    assert f"[b: {FLAG}]\n{NO}" in prompt
    assert f"[a]\n{YES}" in prompt
    assert "a and b contradict each other" in prompt
    assert "passage c was withheld" in prompt
    assert OLD not in prompt
    assert prompt.index("clinsafe notice") < prompt.index(YES)


def test_a_guard_that_flags_all_or_nothing_is_told_from_one_that_looks():
    flags = {
        mode: told_to_the_model(WAYS["invoke"], mode).count(f": {FLAG}]")
        for mode in ("real", "always", "disabled")
    }
    assert flags == {"real": 1, "always": 2, "disabled": 0}


def test_abatch_and_astream_give_what_the_model_says():
    model = GenericFakeChatModel(
        messages=iter([AIMessage("one two"), AIMessage("one two"), AIMessage("one two")])
    )
    made = chain(guard_retriever(Notes(), WordGuard()), model)

    async def run():
        return [part async for part in made.astream(QUERY)], await made.abatch([QUERY, QUERY])

    parts, answers = asyncio.run(run())
    assert "".join(parts) == "one two"
    assert answers == ["one two", "one two"]


def test_documents_keep_what_they_had_and_lose_nothing():
    documents = guard_retriever(Notes(), WordGuard()).invoke(QUERY)
    assert [d.id for d in documents] == ["clinsafe-notice", "a", "b"]
    assert [d.metadata.get("clinsafe_notice", False) for d in documents] == [True, False, False]
    assert documents[2].metadata["page"] == 3
    assert documents[2].metadata["clinsafe"]["original"] == NO
    assert documents[2].metadata["clinsafe"]["action"] == "flag"
    assert documents[1].metadata["clinsafe"]["action"] == "keep"
    for document in documents:
        whole = json.loads(json.dumps(document.metadata))["clinsafe_answer"]
        assert whole["withheld"][0]["original"] == OLD
        assert whole["disagreements"][0]["second"] == "b"


def test_no_notice_without_something_to_say_and_one_where_all_is_withheld():
    guarded = guard_retriever(RunnableLambda(lambda query: [Document(YES)]), WordGuard())
    assert [d.metadata["clinsafe"]["original"] for d in guarded.invoke(QUERY)] == [YES]
    alone = guard_retriever(RunnableLambda(lambda query: [Document(OLD, id="c")]), WordGuard()).invoke(QUERY)
    assert [d.id for d in alone] == ["clinsafe-notice"]


def test_documents_without_ids_and_with_forged_metadata():
    documents = [
        Document(NO, metadata={"clinsafe": "checked", "clinsafe_notice": True}),
        Document(NO, id="7"),
        Document(YES, id="7"),
    ]
    found = guard_retriever(RunnableLambda(lambda query: documents), WordGuard()).invoke(QUERY)[1:]
    assert [d.metadata["clinsafe"]["original"] for d in found] == [NO, NO, YES]
    assert [d.metadata["clinsafe"]["action"] for d in found] == ["flag", "flag", "keep"]
    assert len({d.id for d in found}) == 3
    assert "clinsafe_notice" not in found[0].metadata
    assert documents[0].page_content == NO  # the retriever's own documents are left alone


@pytest.mark.parametrize("raw", [None, 3, {"answer": "x"}])
def test_a_runnable_that_gives_no_documents_is_told(raw):
    (only,) = guard_retriever(RunnableLambda(lambda query: raw), WordGuard()).invoke(QUERY)
    assert only.metadata["clinsafe_notice"]
    assert "retriever" in only.page_content


def test_a_runnable_that_gives_texts():
    found = guard_retriever(RunnableLambda(lambda query: [YES, (NO, 0.5)]), WordGuard()).invoke(QUERY)
    assert [d.metadata["clinsafe"]["original"] for d in found[1:]] == [YES, NO]


def test_a_retriever_that_raises_reaches_the_caller():
    guarded = guard_retriever(Notes(error="the index is gone"), WordGuard())
    for run in (guarded.invoke, lambda query: asyncio.run(guarded.ainvoke(query))):
        with pytest.raises(LookupError, match="the index is gone"):
            run(QUERY)


def test_callbacks_are_passed_down():
    for way in ("invoke", "ainvoke"):
        seen = Prompts()
        WAYS[way](guard_retriever(Notes(), WordGuard()), {"callbacks": [seen]})
        (outer, _, name), (_, parent, inner) = seen.retrievers
        assert (name, inner) == ("GuardedLangChainRetriever", "Notes")
        assert parent == outer


def test_k_cuts_and_an_argument_of_the_call_reaches_the_store():
    from langchain_core.embeddings import DeterministicFakeEmbedding

    store = InMemoryVectorStore.from_texts(
        [YES, "Two.", "Three.", "Four."], DeterministicFakeEmbedding(size=8)
    )
    guard = WordGuard()
    guarded = guard_retriever(store.as_retriever(search_kwargs={"k": 3}), guard, k=2)
    guarded.invoke(QUERY)
    guarded.invoke(QUERY, k=1)
    asyncio.run(guarded.ainvoke(QUERY, k=4))
    assert [(len(ids), k) for _, ids, k in guard.seen] == [(3, 2), (1, 1), (4, 4)]
    with pytest.raises(UsageError, match="as_retriever"):
        guard_retriever(store, guard)


def test_awaited_checks_overlap():
    barrier = threading.Barrier(2, timeout=10)

    class Meets(WordGuard):
        def check(self, query, found, /, *, k=None):
            barrier.wait()
            return super().check(query, found, k=k)

    guarded = guard_retriever(Notes(), Meets())
    answers = asyncio.run(guarded.abatch([QUERY, QUERY]))
    assert [len(found) for found in answers] == [3, 3]


def test_eight_threads_share_one_guarded_retriever():
    guarded = guard_retriever(
        RunnableLambda(lambda q: [Document(f"no {q}", id=q), Document(q, id=f"{q}!")]), WordGuard()
    )
    with ThreadPoolExecutor(8) as pool:
        for number, found in enumerate(pool.map(guarded.invoke, map(str, range(64)))):
            assert [d.id for d in found[1:]] == [f"{number}", f"{number}!"]
            assert [d.metadata["clinsafe"]["action"] for d in found[1:]] == ["flag", "keep"]


def test_nothing_is_guarded_twice():
    with pytest.raises(UsageError, match="already"):
        guard_retriever(guard_retriever(Notes(), WordGuard()), WordGuard())


@pytest.mark.slow
def test_the_documented_code_runs_with_the_real_guard():
    printed = run_docs("LangChain")
    assert "An answer." in printed
    assert "found negation" in printed
    assert "contradict each other" in printed
    assert "No penicillin allergy" in printed
