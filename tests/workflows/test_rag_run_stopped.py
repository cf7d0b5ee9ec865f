"""The reference pipeline when it is stopped, gone on with, refused, and when models fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from clinsafe.adapters.chat import NoText
from clinsafe.adapters.exchange import EndpointBusy, EndpointGone, Patience
from clinsafe.adapters.generators import Endpoint, load_generator
from clinsafe.adapters.local_generator import PromptTooLong
from clinsafe.adapters.reference import FakeEncoder
from clinsafe.content import Content
from clinsafe.corpus import Document
from clinsafe.errors import OutputExists, UsageError
from clinsafe.rag.formats import read_items
from clinsafe.rag.fusion import SearchSettings
from clinsafe.rag.keeping import Kept
from clinsafe.rag.prompts import Prompts, load_prompts
from clinsafe.rag.question import Question
from clinsafe.rag.trace import BadLine, Trace
from clinsafe.workflows.rag_ledger import STATE, claimed, read_run
from clinsafe.workflows.rag_run import arms, run
from tests.adapters.chat_server import ChatServer, says
from tests.adapters.embedding_server import Reply, hang, html
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


# ── stopped, gone on, refused ──────────────────────────────────────────────────────────────────


def told(found: list[Trace]):
    """What must be equal however often a run was stopped."""
    return [one.model_copy(update={"time": "", "timings": None}) for one in found]


@pytest.fixture
def uninterrupted(plan, tmp_path):
    made = plan(out=tmp_path / "whole", generator=Scripted("5 mg"), arms=arms(["rag", "direct"], [0.5]))
    run(made)
    return [told(traces(made, n)) for n in (0, 1)]


@pytest.mark.parametrize("after", [0, 1, 3, 5])
def test_a_run_that_was_stopped_goes_on(plan, uninterrupted, after):
    ways = arms(["rag", "direct"], [0.5])
    script = ["5 mg"] * after + [KeyboardInterrupt()]
    with pytest.raises(KeyboardInterrupt):
        run(plan(generator=Scripted(*script), arms=ways))
    made = plan(generator=Scripted("5 mg"), arms=ways)
    assert read_run(made.out).state == "unfinished"
    summary = run(made)
    assert (summary.done, len(made.generator.prompts)) == (8 - after, 8 - after)
    assert [told(traces(made, n)) for n in (0, 1)] == uninterrupted
    assert summary.state.state == "finished"
    assert run(made).done == 0


@pytest.mark.parametrize("cut", [1, 40, "line"])
def test_half_a_line_is_cut_off_and_done_again(plan, cut):
    made = plan(generator=Scripted("5 mg"))
    run(made)
    file, before = made.out / made.arms[0].file, told(traces(made))
    data = file.read_bytes()
    last = len(data) - data.rstrip(b"\n").rfind(b"\n") - 1
    file.write_bytes(data[: -(last - 1 if cut == "line" else cut)])
    summary = run(made)
    assert summary.done == 1
    assert told(traces(made)) == before
    assert summary.outcomes["rag alpha=0.5"] == {"answered": 4}


def test_a_whole_line_that_is_no_trace_is_not_written_over(plan):
    made = plan()
    run(made)
    file = made.out / made.arms[0].file
    lines = file.read_bytes().split(b"\n")
    file.write_bytes(b"\n".join([lines[0], b"{}", *lines[2:]]))
    damaged = file.read_bytes()
    with pytest.raises(UsageError, match="line 2"):
        run(made)
    assert file.read_bytes() == damaged


OTHER = {
    "corpus": lambda: {"documents": [*CORPUS[:-1], Document("d11", "another text", "d11")]},
    "index": lambda: {"tokens": 31},
    "embedding": lambda: {"encoder": FakeEncoder("hash")},
    "questions": lambda: {
        "questions": lambda: iter([replace(QUESTIONS[0], references=("else",)), *QUESTIONS[1:]])
    },
    "settings": lambda: {"search": SearchSettings(k=2)},
    "generator": lambda: {"generator": Scripted("y")},
    "guard": lambda: {"guard": Marking(), "guard_rules": {"policy": "strict"}},
    "reranker": lambda: {"reranker": Longest()},
    "texts": lambda: {"kept": Kept(False, lambda _text: "0" * 64)},
}


@pytest.mark.parametrize("what", OTHER)
def test_another_plan_does_not_go_on(plan, what):
    made = plan(QUESTIONS[:1])
    run(made)
    before = (made.out / made.arms[0].file).read_bytes()
    with pytest.raises(UsageError, match=what) as caught:
        run(replace(made, **OTHER[what]()))
    assert "\n" not in str(caught.value)
    assert (made.out / made.arms[0].file).read_bytes() == before
    assert run(made).done == 0


def test_another_prompt_does_not_go_on(plan, overlay):
    from clinsafe.rag.prompts import FILE

    made = plan(QUESTIONS[:1])
    run(made)
    other = load_prompts(
        Content(overlay(FILE, lambda text: text.replace("three sentences", "two sentences")))
    )
    with pytest.raises(UsageError, match="prompts"):
        run(replace(made, prompts=other))


def test_a_sample_is_the_beginning_of_a_larger_one(plan):
    made = plan(limit=1)
    assert run(made).done == 1
    assert run(replace(made, limit=3)).done == 2
    assert run(replace(made, limit=0)).done == 1
    assert [one.query_id for one in traces(made)] == [one.id for one in QUESTIONS]


def test_a_folder_of_something_else_or_in_use_is_left_alone(plan):
    made = plan()
    made.out.mkdir()
    (made.out / "thesis.txt").write_text("mine")
    with pytest.raises(OutputExists):
        run(made)
    (made.out / "thesis.txt").unlink()
    with claimed(made.out), pytest.raises(OutputExists, match="another run"):
        run(made)
    (made.out / STATE).write_text("{}")
    with pytest.raises(UsageError, match="damaged"):
        run(made)


# ── what goes wrong ────────────────────────────────────────────────────────────────────────────


def test_questions_that_cannot_be_searched_are_outcomes(plan):
    odd = [Question("empty", "   "), Question("long", "w " * 50_001), Question("sign", "?"), QUESTIONS[0]]
    made = plan(odd)
    summary = run(made)
    empty, long, sign, good = traces(made)
    assert (empty.outcome, long.outcome, empty.answer, long.answer) == ("error", "error", None, None)
    assert empty.error == long.error == "UsageError"
    assert sign.outcome == good.outcome == "answered"
    assert sum(n for kind, n in summary.outcomes["rag alpha=0.5"].items() if kind != "answered") == 2
    assert [one.answer for one in read_items(made.out / made.arms[0].file)][:2] == [None, None]


def test_bad_lines_are_told_and_good_ones_done(plan):
    summary = run(plan([BadLine(1, "id", "is missing"), *QUESTIONS, BadLine(6, "", "not JSON")]))
    assert (summary.bad_lines, [one.number for one in summary.bad], summary.done) == (2, [1, 6], 4)
    for questions in ([], [BadLine(1, "id", "is missing")]):
        with pytest.raises(UsageError, match="no question"):
            run(plan(questions))


FAILING = [
    (NoText("x"), "NoText"),
    (PromptTooLong("x"), "PromptTooLong"),
    (EndpointBusy("x"), "EndpointBusy"),
]


@pytest.mark.parametrize(("error", "kind"), FAILING)
def test_one_failure_is_an_outcome_and_no_answer(plan, error, kind):
    made = plan(generator=Scripted("a", error, "b"))
    summary = run(made)
    first, failed, *rest = traces(made)
    assert (failed.outcome, failed.error, failed.answer, failed.tokens) == ("error", kind, None, None)
    assert failed.retrieved
    assert [first.answer.text, *(one.answer.text for one in rest)] == ["a", "b", "b"]
    assert summary.outcomes["rag alpha=0.5"] == {"answered": 3, kind: 1}
    assert summary.tokens["rag alpha=0.5"] == (30, 6)
    assert (failed.prompt.text is None) == (kind == "PromptTooLong")  # what was not sent is not written


def test_prompts_that_all_fail_do_not_end_a_run(plan):
    summary = run(plan(generator=Scripted(NoText("x")), failures=2))
    assert (summary.stopped, summary.outcomes["rag alpha=0.5"]) == ("", {"NoText": 4})


def test_failures_in_a_row_end_the_run_and_are_done_again(plan):
    made = plan(generator=Scripted("a", EndpointBusy("x")), failures=2)
    summary = run(made)
    assert "2 failures in a row" in summary.stopped
    assert (summary.done, len(made.generator.prompts), summary.state.state) == (1, 3, "unfinished")
    assert [one.query_id for one in traces(made)] == ["q0"]
    again = run(plan(generator=Scripted("b")))
    assert (again.done, again.outcomes["rag alpha=0.5"]) == (3, {"answered": 4})


def test_a_failure_that_lasts_ends_the_run_at_once(plan):
    made = plan(generator=Scripted("a", "b", EndpointGone("gone for good"), "c"))
    summary = run(made)
    assert (summary.stopped, summary.done) == ("gone for good", 2)


def test_an_encoder_that_is_gone_ends_the_run_too(plan):
    class Gone(FakeEncoder):
        def encode(self, texts, /):
            if len(texts) == 1:
                raise EndpointBusy("x")
            return super().encode(texts)

    summary = run(plan(encoder=Gone("words")))
    assert summary.stopped
    assert summary.done == 0


@pytest.fixture
def server(monkeypatch):
    for name in ("http_proxy", "https_proxy", "all_proxy", "CLINSAFE_API_KEY", "OPENAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)
    with ChatServer(lambda prompt: "5 mg" if "passage" in prompt else "?").running() as running:
        yield running


def test_a_served_model_that_fails_hangs_and_says_nothing(plan, server):
    from clinsafe.adapters import chat

    server.script = [says(""), hang, html, says("5 mg", usage={"prompt_tokens": 3, "completion_tokens": 1})]
    patience = Patience(retries=0, failures=9, sleep=lambda _seconds: None)
    inner = chat.load("served", server.url, timeout=0.2, patience=patience)
    made = plan(generator=Endpoint(inner))
    summary = run(made)
    assert [one.error for one in traces(made)] == ["NoText", "EndpointBusy", "BadAnswer", None]
    assert traces(made)[3].tokens.completion == 1
    assert summary.outcomes["rag alpha=0.5"]["answered"] == 1
    assert traces(made)[3].versions.model.startswith("served ")


def test_a_served_model_that_refuses_the_key_is_asked_once(plan, server):
    server.script = [lambda _request: Reply(401, b"{}")] * 4
    summary = run(plan(generator=load_generator(url=server.url, model="served")))
    assert (summary.done, len(server.requests)) == (0, 1)
    assert "key" in summary.stopped
