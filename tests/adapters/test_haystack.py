"""The guard component in real Haystack pipelines: what the prompt holds, sync and async, saved and loaded."""

from __future__ import annotations

import os

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"  # before Haystack is imported; see docs/frameworks.md

import asyncio
import json
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest
from haystack import Document, Pipeline
from haystack.components.builders import PromptBuilder
from haystack.components.retrievers.in_memory import InMemoryBM25Retriever
from haystack.dataclasses import ByteStream
from haystack.document_stores.in_memory import InMemoryDocumentStore

from clinsafe import plugins
from clinsafe.adapters.frameworks import guard_retriever
from clinsafe.adapters.haystack import ClinsafeGuard
from clinsafe.adapters.offline import only_this_machine
from clinsafe.errors import UsageError
from tests.adapters.guard_kit import FLAG, NO, OLD, QUERY, TEXTS, YES, WordGuard, run_docs

TEMPLATE = "{% for document in documents %}{{ document.content }}\n\n{% endfor %}Question: {{ query }}"


@pytest.fixture(autouse=True)
def _nothing_leaves_the_machine() -> Iterator[None]:
    with only_this_machine(True):
        yield


def documents() -> list[Document]:
    return [Document(id=name, content=text, meta={"page": 3}, score=0.5) for name, text in TEXTS.items()]


def pipeline(guard: ClinsafeGuard) -> Pipeline:
    store = InMemoryDocumentStore()
    store.write_documents([Document(id=n, content=f"Allergy and penicillin. {t}") for n, t in TEXTS.items()])
    made = Pipeline()
    made.add_component("retriever", InMemoryBM25Retriever(document_store=store))
    made.add_component("guard", guard)
    made.add_component("prompt", PromptBuilder(TEMPLATE, required_variables="*"))
    made.connect("retriever.documents", "guard.documents")
    made.connect("guard.documents", "prompt.documents")
    return made


INPUTS = {"retriever": {"query": QUERY}, "guard": {"query": QUERY}, "prompt": {"query": QUERY}}


def run(made: Pipeline, way: str):
    done = {"guard"}
    if way == "run":
        return made.run(INPUTS, include_outputs_from=done)
    return asyncio.run(made.run_async(INPUTS, include_outputs_from=done))


@pytest.mark.slow
@pytest.mark.parametrize("way", ["run", "run_async"])
def test_the_prompt_holds_the_flag_the_passages_and_the_notice(way):
    found = run(pipeline(ClinsafeGuard(guard=WordGuard())), way)
    prompt = found["prompt"]["prompt"]
    assert f"[b: {FLAG}]\nAllergy and penicillin. {NO}" in prompt
    assert YES in prompt
    assert "contradict each other" in prompt
    assert "passage c was withheld" in prompt
    assert OLD not in prompt
    assert prompt.index("clinsafe notice") < prompt.index(YES)
    assert [document.id for document in found["guard"]["withheld"]] == ["c"]
    assert OLD in found["guard"]["withheld"][0].content
    assert found["guard"]["answer"]["needs_review"] is False


@pytest.mark.slow
def test_a_guard_that_flags_all_or_nothing_is_told_from_one_that_looks():
    flags = {
        mode: run(pipeline(ClinsafeGuard(guard=WordGuard(mode))), "run")["prompt"]["prompt"].count(
            f": {FLAG}]"
        )
        for mode in ("real", "always", "disabled")
    }
    assert flags == {"real": 1, "always": 2, "disabled": 0}


def test_documents_keep_what_they_had_and_lose_nothing():
    given = documents()
    found = ClinsafeGuard(guard=WordGuard()).run(QUERY, given)
    notice, first, second = found["documents"]
    assert [notice.id, first.id, second.id] == ["clinsafe-notice", "a", "b"]
    assert second.meta["page"] == 3
    assert second.meta["clinsafe"]["original"] == NO
    assert second.score == 0.5
    assert json.loads(json.dumps(second.meta))["clinsafe_answer"]["withheld"][0]["original"] == OLD
    assert found["withheld"][0].meta["clinsafe"]["action"] == "withhold"
    assert given[1].content == NO  # the retriever's own documents are left alone


def test_k_cuts_and_the_call_wins():
    guard = WordGuard()
    step = ClinsafeGuard(guard=guard, k=2)
    step.run(QUERY, documents())
    step.run(QUERY, documents(), k=1)
    assert [k for *_, k in guard.seen] == [2, 1]
    with pytest.raises(UsageError, match="k is how many"):
        ClinsafeGuard(k=0)


def test_a_document_without_text_is_kept_and_told_as_unchecked():
    picture = Document(id="p", blob=ByteStream(b"...", mime_type="image/png"))
    found = ClinsafeGuard(guard=WordGuard()).run(QUERY, [picture])
    notice, kept = found["documents"]
    assert kept.blob == picture.blob
    assert "image/png" in notice.content
    assert found["answer"]["needs_review"]


@pytest.mark.slow
def test_a_saved_pipeline_loads_again_with_its_policy(monkeypatch):
    asked = []

    def load(kind, name):
        return lambda policy, **settings: asked.append((kind, name, policy, settings)) or WordGuard()

    monkeypatch.setattr(plugins, "load", load)
    text = pipeline(ClinsafeGuard(policy="strict", k=3, settings={"seconds": 0.5})).dumps()
    assert asked == []  # nothing is read before it is needed
    loaded = Pipeline.loads(text, allowed_modules=["clinsafe.adapters.haystack"])
    assert loaded.to_dict()["components"] == Pipeline.loads(text, unsafe=True).to_dict()["components"]
    assert loaded.to_dict()["components"]["guard"]["init_parameters"] == {
        "policy": "strict",
        "k": 3,
        "settings": {"seconds": 0.5},
    }
    assert f"[b: {FLAG}]" in run(loaded, "run")["prompt"]["prompt"]
    run(loaded, "run_async")
    assert asked == [("guards", "default", "strict", {"seconds": 0.5})]


def test_a_guard_of_ones_own_is_never_saved_as_another():
    with pytest.raises(UsageError, match="cannot be saved"):
        pipeline(ClinsafeGuard(guard=WordGuard())).dumps()
    with pytest.raises(UsageError, match="not both"):
        ClinsafeGuard(policy="strict", guard=WordGuard())


def test_awaited_checks_overlap():
    barrier = threading.Barrier(2, timeout=10)

    class Meets(WordGuard):
        def check(self, query, found, /, *, k=None):
            barrier.wait()
            return super().check(query, found, k=k)

    step = ClinsafeGuard(guard=Meets())

    async def both():
        return await asyncio.gather(step.run_async(QUERY, documents()), step.run_async(QUERY, documents()))

    assert [len(found["documents"]) for found in asyncio.run(both())] == [3, 3]


def test_eight_threads_share_one_component_and_make_one_guard(monkeypatch):
    made = []
    monkeypatch.setattr(plugins, "load", lambda kind, name: lambda policy: made.append(policy) or WordGuard())
    step = ClinsafeGuard()

    def one(number):
        return step.run(QUERY, [Document(id=str(number), content=f"no {number}")])["documents"][0]

    with ThreadPoolExecutor(8) as pool:
        for number, document in enumerate(pool.map(one, range(64))):
            assert (document.id, document.meta["clinsafe"]["action"]) == (str(number), "flag")
    assert made == ["default"]


def test_a_haystack_retriever_is_sent_to_its_pipeline():
    with pytest.raises(UsageError, match="ClinsafeGuard"):
        guard_retriever(InMemoryBM25Retriever(document_store=InMemoryDocumentStore()), WordGuard())


@pytest.mark.slow
def test_importing_the_component_first_leaves_telemetry_off(tmp_path):
    probe = "import clinsafe.adapters.haystack; from haystack.telemetry import _telemetry; print(_telemetry.telemetry)"
    bare = {name: value for name, value in os.environ.items() if name != "HAYSTACK_TELEMETRY_ENABLED"}
    done = subprocess.run(
        [sys.executable, "-c", probe],
        env=bare | {"HOME": str(tmp_path)},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "None"
    assert not (tmp_path / ".haystack").exists()


def test_a_guard_is_registered_for_loaded_pipelines():
    assert "default" in plugins.available("guards")


@pytest.mark.slow
def test_the_documented_code_runs_with_the_real_guard():
    printed = run_docs("Haystack")
    assert "Question: The patient is allergic" in printed
    assert "not a source" in printed
    assert "found negation" in printed
