"""The callback inside LangChain's real chains: one trace a run, in every way to run them; the chain is unchanged."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("langchain_core")

from langchain_core.documents import Document
from langchain_core.language_models import FakeListLLM, GenericFakeChatModel
from langchain_core.messages import AIMessage, HumanMessage
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate, PromptTemplate
from langchain_core.retrievers import BaseRetriever
from langchain_core.runnables import RunnableLambda, RunnablePassthrough

from clinsafe.adapters.langchain import GuardedLangChainRetriever
from clinsafe.adapters.langchain_record import TraceHandler
from clinsafe.adapters.retrievers import passages
from clinsafe.rag.recorder import Recorder
from tests.adapters.guard_kit import NO, TEXTS, WordGuard

CANARY = "Marigold Quennell-Thrupp"


class Wrong(Exception):
    """The application's own."""


class Notes(BaseRetriever):
    """The kit's notes; the question's own words are the id of the last one, so that mixed-up runs show."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        if "broken" in query:
            raise Wrong(CANARY)
        own = Document(id=query.replace(" ", "-"), page_content=f"About {query}.")
        return [*(Document(id=name, page_content=text) for name, text in TEXTS.items()), own]


def model() -> GenericFakeChatModel:
    def said() -> Iterator[AIMessage]:
        usage = {"input_tokens": 11, "output_tokens": 3, "total_tokens": 14}
        while True:
            yield AIMessage("Ask a person.", usage_metadata=usage, response_metadata={"model_name": "fake-1"})

    return GenericFakeChatModel(messages=said())


def joined(documents: list[Document]) -> str:
    return "\n".join(one.page_content for one in documents)


def chain(retriever: Any = None, llm: Any = None) -> Any:
    prompt = ChatPromptTemplate.from_template("Notes: {context}\nQuestion: {question}")
    found = {"context": (retriever or Notes()) | joined, "question": RunnablePassthrough()}
    return found | prompt | (llm or model()) | StrOutputParser()


@pytest.fixture
def recorder(tmp_path: Path) -> Recorder:
    return Recorder(tmp_path / "traces.jsonl", passages, text=True)


@pytest.fixture
def traces(recorder: Recorder) -> Callable[[], list[dict[str, Any]]]:
    def read() -> list[dict[str, Any]]:
        if not recorder.path.exists():
            return []
        return [json.loads(line) for line in recorder.path.read_text("utf-8").split("\n") if line]

    return read


def ways() -> dict[str, Callable[[Any, str, Any], Any]]:
    async def astream(runnable: Any, question: str, config: Any) -> str:
        return "".join([piece async for piece in runnable.astream(question, config=config)])

    return {
        "invoke": lambda c, q, config: c.invoke(q, config=config),
        "ainvoke": lambda c, q, config: asyncio.run(c.ainvoke(q, config=config)),
        "batch": lambda c, q, config: c.batch([q], config=config)[0],
        "abatch": lambda c, q, config: asyncio.run(c.abatch([q], config=config))[0],
        "stream": lambda c, q, config: "".join(c.stream(q, config=config)),
        "astream": lambda c, q, config: asyncio.run(astream(c, q, config)),
    }


@pytest.mark.parametrize("way", ways())
def test_a_chain_is_recorded_whole_in_every_way_to_run_it(recorder, traces, way):
    handler = TraceHandler(recorder)
    assert ways()[way](chain(), "Allergic?", {"callbacks": [handler]}) == "Ask a person."
    (trace,) = traces()
    assert trace["query"]["text"] == "Allergic?"
    assert trace["answer"]["text"] == "Ask a person."
    assert trace["outcome"] == "answered"
    assert [(hit["id"], hit["rank"]) for hit in trace["retrieved"]] == [
        ("a", 1),
        ("b", 2),
        ("c", 3),
        ("Allergic?", 4),
    ]
    assert [row["id"] for row in trace["context"]] == ["a", "b", "c", "Allergic?"]
    start, end = trace["context"][1]["span"]
    assert trace["prompt"]["text"][start:end] == NO
    assert {"total", "retrieval", "generation"} <= set(trace["timings"])
    assert ("first_chunk" in trace["timings"]) == ("stream" in way)
    if "stream" not in way:  # the fake model tells nothing of a streamed answer; then it is absent, not 0
        assert trace["tokens"] == {"prompt": 11, "completion": 3}
        assert trace["versions"] == {"model": "fake-1"}
    else:
        assert "tokens" not in trace
    assert (recorder.failures, handler._runs) == (0, {})


def test_eight_threads_batches_and_tasks_never_mix(recorder, traces):
    config, one = (
        {"callbacks": [TraceHandler(recorder)]},
        chain(llm=RunnableLambda(lambda prompt: prompt.to_string())),
    )

    async def many() -> None:
        await asyncio.gather(*(one.ainvoke(f"task {n}", config=config) for n in range(10)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(lambda n: one.invoke(f"thread {n}", config=config), range(24)))
    one.batch([f"batch {n}" for n in range(10)], config={**config, "max_concurrency": 8})
    asyncio.run(many())
    found = traces()
    assert len(found) == 44
    for trace in found:
        question = trace["query"]["text"]
        assert trace["retrieved"][-1]["id"] == question.replace(" ", "-")
        assert trace["answer"]["text"].endswith(f"Question: {question}")


@pytest.mark.parametrize("way", ways())
def test_an_error_passes_through_as_it_is_and_is_recorded_by_its_kind(recorder, traces, way, caplog):
    with pytest.raises(Wrong, match=CANARY):
        ways()[way](chain(), "broken", {"callbacks": [TraceHandler(recorder)]})
    (trace,) = traces()
    assert (trace["outcome"], trace["error"], trace["query"]["text"]) == ("error", "Wrong", "broken")
    assert "answer" not in trace
    assert CANARY not in str(trace) + caplog.text


def test_a_guarded_retriever_is_taken_up_with_what_was_done(recorder, traces):
    guarded = GuardedLangChainRetriever(retriever=Notes(), guard=WordGuard())
    chain(guarded).invoke("Allergic?", config={"callbacks": [TraceHandler(recorder)]})
    (trace,) = traces()
    assert [hit["id"] for hit in trace["retrieved"]] == ["a", "b", "c", "Allergic?"]
    assert trace["retrieved"][1]["content"]["text"] == NO
    (guard,) = trace["guard"]
    assert {row["id"]: (row["action"], row["rank"], row["rules"]) for row in guard["passages"]} == {
        "a": ("keep", 1, []), "b": ("flag", 2, ["r1"]), "c": ("withhold", 0, []), "Allergic?": ("keep", 4, []),
    }  # fmt: skip
    assert guard["policy"] == "kit"
    assert [row["id"] for row in trace["context"]] == ["a", "b", "Allergic?"], (
        "what is withheld is no context"
    )
    assert "reranked" not in trace
    assert recorder.failures == 0


def test_a_guarded_retriever_without_callbacks_inside_is_taken_up_too(recorder, traces):
    guarded = GuardedLangChainRetriever(
        retriever=RunnableLambda(lambda query: Notes().invoke(query)), guard=WordGuard()
    )
    guarded.invoke("Allergic?", config={"callbacks": [TraceHandler(recorder)]})
    (trace,) = traces()
    assert [(hit["id"], hit["rank"]) for hit in trace["retrieved"]] == [
        ("a", 1),
        ("b", 2),
        ("c", 3),
        ("Allergic?", 4),
    ]
    assert trace["query"]["text"] == "Allergic?"


class Reranker(BaseRetriever):
    """Turns another retriever's documents round."""

    inner: Any

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        return self.inner.invoke(query, config={"callbacks": run_manager.get_child()})[::-1]


def test_a_retriever_that_calls_another_gives_what_was_reranked(recorder, traces):
    chain(Reranker(inner=Notes())).invoke("Allergic?", config={"callbacks": [TraceHandler(recorder)]})
    (trace,) = traces()
    assert [hit["id"] for hit in trace["retrieved"]] == ["a", "b", "c", "Allergic?"]
    assert [hit["id"] for hit in trace["reranked"]] == ["Allergic?", "c", "b", "a"]


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        ({"question": "Q?", "language": "en"}, {"answer": "A.", "context": []}),
        ({"input": "Q?", "chat_history": [HumanMessage("before")]}, {"output": "A."}),
        (
            {"messages": [HumanMessage("before"), AIMessage("so"), HumanMessage("Q?")]},
            {"messages": [AIMessage("A.")]},
        ),
        ([HumanMessage("Q?")], AIMessage([{"type": "text", "text": "A"}, {"type": "text", "text": "."}])),
    ],
)
def test_question_and_answer_are_found_in_what_chains_take_and_give(recorder, traces, asked, told):
    RunnableLambda(lambda _: told).invoke(asked, config={"callbacks": [TraceHandler(recorder)]})
    (trace,) = traces()
    assert (trace["query"]["text"], trace["answer"]["text"]) == ("Q?", "A.")


def test_own_keys_win_and_what_is_not_there_is_absent(recorder, traces):
    handler = TraceHandler(recorder, question="frage", answer="antwort")
    one = RunnableLambda(lambda _: {"antwort": "A.", "answer": "no"})
    one.invoke({"frage": "Q?", "question": "no"}, config={"callbacks": [handler]})
    one.invoke({"question": "no"}, config={"callbacks": [handler]})
    first, second = traces()
    assert (first["query"]["text"], first["answer"]["text"]) == ("Q?", "A.")
    assert "query" not in second


def test_a_completion_model_and_several_calls_of_one_question(recorder, traces):
    rewrite = PromptTemplate.from_template("Rewrite: {question}") | FakeListLLM(responses=["better"])
    answer = PromptTemplate.from_template("Answer: {question}") | FakeListLLM(responses=["A."])
    (rewrite | answer).invoke({"question": "Q?"}, config={"callbacks": [TraceHandler(recorder)]})
    (trace,) = traces()
    assert trace["prompt"]["text"] == "Answer: better", "the last one is the one that was answered"
    assert trace["answer"]["text"] == "A."
    assert "tokens" not in trace


def test_inside_a_decorated_function_the_chain_adds_to_its_trace(recorder, traces):
    handler = TraceHandler(recorder)

    @recorder
    def answer(question: str) -> str:
        return chain().invoke(f"rewritten {question}", config={"callbacks": [handler]}) + " Yes."

    @recorder
    async def later(question: str) -> str:
        return await chain().ainvoke(f"rewritten {question}", config={"callbacks": [handler]}) + " Yes."

    answer("Q?")
    asyncio.run(later("Q?"))
    for trace in traces():
        assert (trace["query"]["text"], trace["answer"]["text"]) == ("Q?", "Ask a person. Yes.")
        assert trace["retrieved"][-1]["id"] == "rewritten-Q?"
    assert len(traces()) == 2


def test_the_handlers_own_failure_reaches_neither_the_chain_nor_a_log(recorder, traces, caplog, monkeypatch):
    from clinsafe.rag.draft import Draft

    def broken(*_: Any, **__: Any) -> None:
        raise Wrong(CANARY)

    for name in ("query", "retrieved", "prompt", "generated"):
        monkeypatch.setattr(Draft, name, broken)
    handler = TraceHandler(recorder)
    with caplog.at_level(logging.WARNING):
        for _ in range(3):
            assert chain().invoke("Q?", config={"callbacks": [handler]}) == "Ask a person."
    assert recorder.failures > 3
    assert len(caplog.records) == 1
    assert CANARY not in caplog.text


class Numbered(Notes):
    """Ids that tell nothing."""

    def _get_relevant_documents(self, query: str, *, run_manager: Any) -> list[Document]:
        found = super()._get_relevant_documents(query, run_manager=run_manager)
        return [one.model_copy(update={"id": f"d{n}"}) for n, one in enumerate(found)]


def test_without_text_no_word_is_written_or_logged(tmp_path, caplog, capfd):
    recorder = Recorder(tmp_path / "private.jsonl", passages)
    guarded = GuardedLangChainRetriever(retriever=Numbered(), guard=WordGuard())
    with caplog.at_level(logging.WARNING):
        chain(guarded).invoke(CANARY, config={"callbacks": [TraceHandler(recorder)], "tags": [CANARY]})
        with pytest.raises(Wrong):
            chain().invoke(
                f"broken {CANARY}", config={"callbacks": [TraceHandler(recorder)], "run_name": CANARY}
            )
    written = recorder.path.read_text("utf-8")
    assert written.count("\n") == 2
    assert '"id":"d3"' in written
    told = written + caplog.text + "".join(capfd.readouterr())
    assert [word for word in ("Marigold", "Quennell", "penicillin", "person") if word in told] == []
