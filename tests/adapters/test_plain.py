"""Functions and objects of every shape, sync and async, guarded."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from clinsafe.adapters.frameworks import guard_retriever
from clinsafe.adapters.plain import DEFAULT_K, GuardedRetriever
from clinsafe.errors import UsageError
from clinsafe.guarded import GuardedAnswer
from tests.adapters.guard_kit import QUERY, WordGuard, mappings, run_docs


class Recorder:
    """Makes retrievers of every shape, and remembers what they were called with."""

    def __init__(self):
        self.calls = []

    def rows(self, *call):
        self.calls.append(call)
        return mappings()


def test_functions_and_objects_are_called_as_they_want():
    seen = Recorder()

    class Retrieves:
        def retrieve(self, query, k, /):
            return seen.rows(query, k)

    class Invokes:
        def invoke(self, query, config=None, **kwargs):
            return seen.rows(query, config, kwargs)

    class Calls:
        def __call__(self, query, *, top_k=4):
            return seen.rows(query, top_k)

    shapes = [
        (lambda query: seen.rows(query), (QUERY,)),
        (lambda query, k: seen.rows(query, k), (QUERY, 2)),
        (lambda query, how_many: seen.rows(query, how_many), (QUERY, 2)),
        (lambda query, filters=None, limit=3: seen.rows(query, filters, limit), (QUERY, None, 2)),
        (Retrieves(), (QUERY, 2)),
        (Invokes(), (QUERY, None, {})),
        (Calls(), (QUERY, 2)),
    ]
    for retriever, call in shapes:
        guarded = guard_retriever(retriever, WordGuard(), k=2)
        for method in (guarded, guarded.retrieve, guarded.invoke):
            answer = method(QUERY)
            assert isinstance(answer, GuardedAnswer)
            assert seen.calls.pop() == call
            assert [p.action for p in answer.passages] == ["keep", "flag"]
        for later in (guarded.aretrieve, guarded.ainvoke):
            assert [p.action for p in asyncio.run(later(QUERY)).passages] == ["keep", "flag"]
            assert seen.calls.pop() == call


def test_k_is_the_callers_then_the_guards_then_the_retrievers_own():
    seen, guard = Recorder(), WordGuard()
    guarded = GuardedRetriever(lambda query, k=7: seen.rows(k), guard)
    guarded(QUERY)
    guarded(QUERY, 1)
    asyncio.run(guarded.aretrieve(QUERY, k=2))
    assert seen.calls == [(7,), (1,), (2,)]
    assert [k for *_, k in guard.seen] == [None, 1, 2]
    needs = GuardedRetriever(lambda query, k: seen.rows(k), guard)
    needs(QUERY)
    assert seen.calls[-1] == (DEFAULT_K,)
    assert guard.seen[-1][-1] is None  # a number that nobody asked for cuts nothing


@pytest.mark.parametrize("k", [0, -1, True, 2.5, "3"])
def test_k_that_is_no_count_is_refused(k):
    with pytest.raises(UsageError, match="k is how many"):
        guard_retriever(len, WordGuard(), k=k)
    with pytest.raises(UsageError, match="k is how many"):
        GuardedRetriever(lambda query: [], WordGuard()).retrieve(QUERY, k)


class Failure(Exception):
    pass


def fails(query):
    raise Failure("the index is gone")


def fails_half_way(query):
    yield "one"
    raise Failure("the index is gone")


async def fails_later(query):
    raise Failure("the index is gone")


@pytest.mark.parametrize("retriever", [fails, fails_half_way, fails_later])
def test_a_retriever_that_raises_never_looks_like_a_safe_answer(retriever):
    guarded = guard_retriever(retriever, WordGuard())
    with pytest.raises(Failure, match="the index is gone"):
        asyncio.run(guarded.ainvoke(QUERY))
    if retriever is not fails_later:
        with pytest.raises(Failure, match="the index is gone"):
            guarded(QUERY)


async def later(query, k=5):
    await asyncio.sleep(0)
    return mappings()[:k]


async def one_by_one(query):
    for row in mappings():
        yield row


class Later:
    async def retrieve(self, query):
        return mappings()


class OnlyLater:
    async def aretrieve(self, query):
        return mappings()


@pytest.mark.parametrize("retriever", [later, one_by_one, Later(), OnlyLater(), lambda query: later(query)])
def test_what_has_to_be_awaited_is_awaited_or_refused_in_one_line(retriever):
    guarded = guard_retriever(retriever, WordGuard())
    assert [p.action for p in asyncio.run(guarded.aretrieve(QUERY)).passages] == ["keep", "flag"]
    with pytest.raises(UsageError, match=r"await guarded\.aretrieve") as refused:
        guarded.retrieve(QUERY)
    assert "\n" not in str(refused.value)


def test_an_object_with_both_ways_is_asked_in_the_one_that_fits():
    class Both:
        def retrieve(self, query):
            return ["sync"]

        async def aretrieve(self, query):
            return ["async"]

    guarded = guard_retriever(Both(), WordGuard())
    assert guarded(QUERY).passages[0].passage.text == "sync"
    assert asyncio.run(guarded.ainvoke(QUERY)).passages[0].passage.text == "async"


def test_two_awaited_checks_overlap_and_leave_the_loop_free():
    barrier, threads = threading.Barrier(2, timeout=10), set()

    class Meets(WordGuard):
        def check(self, query, found, /, *, k=None):
            threads.add(threading.current_thread())
            barrier.wait()  # passes only while another check is running
            return super().check(query, found, k=k)

    guarded = guard_retriever(later, Meets())

    async def both():
        return await asyncio.gather(guarded.aretrieve(QUERY), guarded.aretrieve(QUERY))

    assert all(len(answer.passages) == 2 for answer in asyncio.run(both()))
    assert threading.main_thread() not in threads


def test_eight_threads_share_one_guarded_retriever():
    guarded = guard_retriever(lambda query: [query, f"no {query}"], WordGuard(wait=0.001))
    queries = [f"query {number}" for number in range(64)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(guarded, queries))
    for query, answer in zip(queries, answers, strict=True):
        assert answer.query == query
        assert [(p.passage.text, p.action) for p in answer.passages] == [
            (query, "keep"),
            (f"no {query}", "flag"),
        ]


@pytest.mark.parametrize("query", [None, 3, {"query": QUERY}])
def test_a_query_that_is_no_text_is_refused(query):
    guarded = guard_retriever(later, WordGuard())
    with pytest.raises(UsageError, match="a query is text"):
        guarded.retrieve(query)
    with pytest.raises(UsageError, match="a query is text"):
        asyncio.run(guarded.aretrieve(query))


@pytest.mark.parametrize("odd", [None, 3, "text", object(), Later])
def test_what_is_no_retriever_is_refused(odd):
    with pytest.raises(UsageError, match="retriever"):
        guard_retriever(odd, WordGuard())


def test_nothing_is_guarded_twice():
    with pytest.raises(UsageError, match="already"):
        guard_retriever(guard_retriever(later, WordGuard()), WordGuard())


def test_no_framework_is_imported_before_it_is_needed_and_a_missing_one_is_told():
    probe = """
import sys
from clinsafe.adapters.frameworks import guard_retriever
from clinsafe.errors import MissingDependency
guard_retriever(len, None)
frameworks = {"langchain": "langchain_core", "llamaindex": "llama_index", "haystack": "haystack"}
print([name for name in frameworks.values() if name in sys.modules])
for ours, name in frameworks.items():
    sys.modules[name] = None
    try:
        __import__(f"clinsafe.adapters.{ours}")
    except MissingDependency as error:
        print(error)
"""
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    none, *told = done.stdout.splitlines()
    assert none == "[]"
    for line, package in zip(told, ("langchain-core", "llama-index-core", "haystack-ai"), strict=True):
        assert line.endswith(f"pip install 'clinsafe[guard]' {package}")


@pytest.mark.slow
def test_the_documented_code_runs_with_the_real_guard():
    printed = run_docs("A function or an object")
    assert "40 keep" in printed
    assert "31 " in printed
    assert "31 keep" not in printed
    assert "found negation" in printed
    assert "No penicillin allergy" in printed
