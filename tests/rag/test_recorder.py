"""The recorder around functions of every sort: it writes what happened, and changes nothing."""

from __future__ import annotations

import asyncio
import inspect
import logging
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from clinsafe.errors import UsageError
from clinsafe.guarded import GuardedAnswer, GuardedPassage
from clinsafe.protocols import Finding, Passage, Span
from clinsafe.rag.draft import Draft
from clinsafe.rag.trace import Trace, read_traces

PASSAGES = [
    {"id": "a", "text": "Allergic to penicillin.", "score": 0.9, "source": "notes"},
    {"id": "b", "text": "There is no allergy.", "score": 0.8},
]


class Wrong(Exception):
    """The application's own."""


def test_a_function_is_recorded_from_question_to_answer(record, traces):
    @record
    def answer(question: str, k: int = 2) -> dict[str, str]:
        """Its own words."""
        record.retrieved(PASSAGES)
        record.prompt(f"{PASSAGES[1]['text']} {question}", version="v1")
        record.generated(model="m-1", prompt_tokens=7)
        record.generated(prompt_tokens=3, completion_tokens=2)
        record.note(task="yes_no", slices={"intent": "allergy"}, relevance={"a": 1.0}, eligible=["a"])
        return {"answer": "Yes."}

    assert answer("Allergic?") == {"answer": "Yes."}
    assert (answer.__name__, answer.__doc__) == ("answer", "Its own words.")
    (trace,) = traces()
    assert trace["query"]["text"] == "Allergic?"
    assert trace["answer"]["text"] == "Yes."
    assert [(hit["id"], hit["rank"], hit["score"]) for hit in trace["retrieved"]] == [
        ("a", 1, 0.9),
        ("b", 2, 0.8),
    ]
    assert trace["context"] == [{"id": "b", "rank": 1, "span": [0, 20]}]
    assert trace["tokens"] == {"prompt": 10, "completion": 2}
    assert trace["versions"] == {"prompt": "v1", "model": "m-1"}
    assert (trace["task"], trace["outcome"], trace["relevance"]) == ("yes_no", "answered", {"a": 1.0})
    assert "reference" not in trace
    assert "cost" not in trace
    assert (record.written, record.failures) == (1, 0)


def test_every_sort_of_function_stays_what_it_is_and_is_recorded(record, traces):
    @record
    async def later(question: str) -> str:
        await asyncio.sleep(0)
        record.retrieved(PASSAGES[:1])
        return "later"

    @record
    def stream(question: str):
        record.retrieved(PASSAGES[:1])
        got = yield "str"
        yield f"eam{got or ''}"
        return "end"

    @record
    async def async_stream(question: str):
        record.retrieved(PASSAGES[:1])
        yield "async "
        await asyncio.sleep(0)
        yield "stream"

    assert inspect.iscoroutinefunction(later)
    assert inspect.isgeneratorfunction(stream)
    assert inspect.isasyncgenfunction(async_stream)

    def whole():
        nonlocal end
        end = yield from stream("q2")

    async def both() -> list[str]:
        return [await later("q1"), *[piece async for piece in async_stream("q3")]]

    end = None
    assert list(whole()) == ["str", "eam"]
    assert end == "end"
    assert asyncio.run(both()) == ["later", "async ", "stream"]
    assert [(t["query"]["text"], t["answer"]["text"]) for t in traces()] == [
        ("q2", "stream"), ("q1", "later"), ("q3", "async stream"),
    ]  # fmt: skip
    assert all([hit["id"] for hit in trace["retrieved"]] == ["a"] for trace in traces())
    assert all("first_chunk" in trace["timings"] for trace in traces() if trace["query"]["text"] != "q1")


def test_what_is_sent_and_thrown_into_a_stream_reaches_it(record, traces):
    def talk(question: str):
        said = yield "one"
        try:
            yield said
        except Wrong:
            yield "caught"

    async def async_talk(question: str):
        said = yield "one"
        try:
            yield said
        except Wrong:
            yield "caught"

    running = record(talk)("q")
    assert [next(running), running.send("two"), running.throw(Wrong())] == ["one", "two", "caught"]
    running.close()
    plain = record(lambda question: talk(question))("q")  # a generator that a plain function returns
    assert [next(plain), plain.send("two"), plain.throw(Wrong()), list(plain)] == ["one", "two", "caught", []]

    async def later() -> list[str]:
        running = record(async_talk)("q")
        said = [await running.__anext__(), await running.asend("two"), await running.athrow(Wrong())]
        return said + [piece async for piece in running]

    assert asyncio.run(later()) == ["one", "two", "caught"]
    assert [trace["outcome"] for trace in traces()] == ["stopped", "answered", "answered"]


def test_an_error_passes_through_as_it_is_and_is_recorded_by_its_kind(record, traces):
    wrong = Wrong("secret words")

    @record
    def now(question: str):
        raise wrong

    @record
    async def later(question: str):
        raise wrong

    @record
    def stream(question: str):
        yield "half"
        raise wrong

    @record
    async def async_stream(question: str):
        yield "half"
        raise wrong

    async def drain() -> None:
        async for _ in async_stream("q"):
            pass

    calls = (
        lambda: now("q"),
        lambda: asyncio.run(later("q")),
        lambda: list(stream("q")),
        lambda: asyncio.run(drain()),
    )
    for call in calls:
        with pytest.raises(Wrong) as caught:
            call()
        assert caught.value is wrong
    with pytest.raises(Wrong), record.question("q"):
        raise wrong
    with pytest.raises(TypeError):
        now()
    found = traces()
    assert [(t["outcome"], t["error"]) for t in found] == [("error", "Wrong")] * 5 + [("error", "TypeError")]
    assert [t["answer"]["text"] for t in found if "answer" in t] == ["half", "half"]
    assert "secret" not in str(found)


def test_a_stream_that_is_closed_early_and_a_task_that_is_cancelled_are_stopped_not_wrong(record, traces):
    closed = []

    @record
    def stream(question: str):
        try:
            yield "half"
            yield "never"
        finally:
            closed.append(True)

    @record
    async def slow(question: str):
        await asyncio.sleep(60)

    async def cancelled() -> None:
        task = asyncio.create_task(slow("q"))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    running = stream("q")
    next(running)
    running.close()
    asyncio.run(cancelled())
    assert closed == [True]
    assert [(t["outcome"], t.get("answer", {}).get("text")) for t in traces()] == [
        ("stopped", "half"),
        ("stopped", None),
    ]


def test_a_waiting_stream_is_not_the_question_that_its_caller_answers(record, traces):
    @record
    def stream(question: str):
        yield "one"
        yield "two"

    running = stream("inner")
    with record.question("outer") as trace:
        next(running)
        record.retrieved(PASSAGES[:1])
        trace.answer("x")
    list(running)
    outer, inner = traces()
    assert [hit["id"] for hit in outer["retrieved"]] == ["a"]
    assert "retrieved" not in inner


def test_eight_threads_and_many_tasks_never_mix_their_questions(record, traces):
    @record
    def answer(question: str) -> str:
        record.retrieved([{"id": question, "text": question}])
        return f"to {question}"

    @record
    async def later(question: str) -> str:
        await asyncio.sleep(0)
        record.retrieved([{"id": question, "text": question}])
        await asyncio.sleep(0)
        return f"to {question}"

    async def many() -> None:
        await asyncio.gather(*(later(f"t{n}") for n in range(50)))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(answer, (f"q{n}" for n in range(200))))
    asyncio.run(many())
    found = traces()
    assert len({t["id"] for t in found}) == 250
    for t in found:
        assert t["answer"]["text"] == f"to {t['query']['text']}"
        assert [hit["id"] for hit in t["retrieved"]] == [t["query"]["text"]]


def test_a_question_inside_of_another_has_its_own_trace_and_another_recorder_its_own_file(
    record, make, tmp_path, traces
):
    from clinsafe.adapters.retrievers import passages
    from clinsafe.rag.recorder import Recorder

    other = Recorder(tmp_path / "other.jsonl", passages)
    with record.question("outer"), other.question("beside"):
        with record.question("inner"):
            record.answer("in")
        record.answer("out")
    assert [(t["query"]["text"], t["answer"]["text"]) for t in traces()] == [
        ("inner", "in"),
        ("outer", "out"),
    ]
    (beside,) = read_traces(other.path)
    assert beside.answer is None


def test_outside_of_a_question_nothing_is_recorded_and_nothing_fails(record, traces):
    record.retrieved(PASSAGES)
    record.prompt("x")
    record.note(nonsense=1)
    with record.stage("rerank"):
        pass
    assert traces() == []
    assert record.failures == 0


def finding(rule: str) -> Finding:
    return Finding(
        "negation",
        "conflict",
        "contradiction",
        "high",
        0.9,
        Span(0, 1),
        Span(0, 1),
        "",
        "",
        "",
        rule,
        "Words.",
    )


def test_a_guarded_answer_is_taken_up_with_what_was_done_and_withheld(record, traces):
    one, two, three = (Passage(name, f"text {name}", 0.5) for name in "abc")
    guarded = GuardedAnswer(
        "q", True,
        (
            GuardedPassage(two, 1, 2, "keep"),
            GuardedPassage(one, 2, 1, "demote", findings=(finding("neg.1"),), annotated="[!] text a"),
        ),
        (GuardedPassage(three, 0, 3, "withhold", unchecked={"nli": "secret words"}),),
        policy="default",
    )  # fmt: skip
    retrieve = record.watch(lambda query: guarded)

    @record
    def answer(question: str) -> str:
        record.prompt("\n".join(row.annotated or row.passage.text for row in retrieve(question).passages))
        return "x"

    answer("q")
    (trace,) = traces()
    assert [hit["id"] for hit in trace["retrieved"]] == ["a", "b", "c"]
    rows = trace["guard"][0]["passages"]
    assert [(row["id"], row["rank"], row["action"], row["rules"], row["unchecked"]) for row in rows] == [
        ("b", 1, "keep", [], []), ("a", 2, "demote", ["neg.1"], []), ("c", 0, "withhold", [], ["nli"]),
    ]  # fmt: skip
    assert trace["context"] == [
        {"id": "b", "rank": 1, "span": [0, 6]},
        {"id": "a", "rank": 2, "span": [7, 17]},
    ]
    assert "retrieval" in trace["timings"]
    assert "secret" not in str(trace["guard"])


def test_a_short_passage_inside_a_longer_one_is_not_context_by_itself(record, traces):
    with record.question("q"):
        record.retrieved([{"id": "short", "text": "5 mg"}, {"id": "long", "text": "Give 5 mg twice."}])
        record.prompt("Use: Give 5 mg twice.")
    (trace,) = traces()
    assert [row["id"] for row in trace["context"]] == ["long"]


def test_repeated_text_is_placed_once_a_passage_and_quickly(record, traces):
    text = "no " * 2000
    with record.question("q"):
        record.retrieved([{"id": f"p{n}", "text": text} for n in range(30)])
        record.prompt(text * 2)
    (trace,) = traces()
    assert [row["span"] for row in trace["context"]] == [[0, 6000], [6000, 12000]]
    assert trace["timings"]["total"] < 5000


def test_a_watched_retriever_still_returns_and_raises_what_it_did(record, traces):
    async def later(query: str) -> list[str]:
        return ["x"]

    def broken(query: str) -> list[str]:
        raise Wrong

    with record.question("q"):
        assert list(record.watch(lambda query: (text for text in ("a", "b")))("q")) == ["a", "b"]
        assert asyncio.run(record.watch(later)("q")) == ["x"]
        with pytest.raises(Wrong):
            record.watch(broken)("q")
    (trace,) = traces()
    assert [(hit["call"], hit["rank"]) for hit in trace["retrieved"]] == [(1, 1), (1, 2), (2, 1)]


# ── the recorder's own failures ────────────────────────────────────────────────────────────────


def test_a_file_that_cannot_be_written_never_breaks_the_application_and_is_said_once(
    record, caplog, tmp_path
):
    (tmp_path / "traces.jsonl").mkdir()

    @record
    def answer(question: str) -> str:
        return "fine"

    with caplog.at_level(logging.WARNING):
        assert [answer("secret q") for _ in range(5)] == ["fine"] * 5
    assert (record.written, record.failures) == (0, 5)
    assert len(caplog.records) == 1
    assert "secret" not in caplog.text


class Hostile:
    """Raises whatever is asked of it."""

    def __getattribute__(self, name: str):
        raise Wrong("secret words")

    def __iter__(self):
        raise Wrong("secret words")


@pytest.mark.parametrize(
    "tell",
    [
        lambda record: record.retrieved(Hostile()),
        lambda record: record.context(Hostile()),
        lambda record: record.prompt(None),
        lambda record: record.answer(7),
        lambda record: record.note(no_such_field=1),
        lambda record: record.note(slices="not a mapping"),
        lambda record: record.note(cost={"amount": float("nan"), "currency": "EUR"}),
        lambda record: record.took("rerank", -5.0),
        lambda record: record.generated(prompt_tokens="many"),
    ],
)
def test_what_cannot_be_recorded_is_counted_and_the_rest_of_the_trace_is_kept(record, traces, tell):
    @record
    def answer(question: str):
        tell(record)
        return "fine"

    assert answer("q") == "fine"
    (trace,) = traces()
    assert trace["query"]["text"] == "q"
    assert record.failures >= 1


def test_an_answer_that_cannot_be_read_is_returned_all_the_same(record, traces):
    hostile = Hostile()
    assert record(lambda question: hostile)("q") is hostile
    assert "answer" not in traces()[0]


def test_text_that_is_no_unicode_is_recorded(record, traces):
    assert record(lambda question: "b\ud800")("a\u2028\ud800\n") == "b\ud800"
    assert (traces()[0]["query"]["text"], traces()[0]["answer"]["text"]) == ("a\u2028?\n", "b?")


@pytest.mark.parametrize(
    "options", [{"about": {"slices": 3}}, {"about": {"nonsense": "x"}}, {"about": {"cost": {"amount": 1}}}]
)
def test_what_is_wrong_from_the_start_is_told_at_once(make, options):
    with pytest.raises(UsageError):
        make(**options)


def test_a_place_that_cannot_be_is_told_at_once(tmp_path):
    from clinsafe.rag.recorder import Recorder

    for path in (tmp_path / "none" / "t.jsonl", tmp_path):
        with pytest.raises(UsageError):
            Recorder(path, lambda raw: ([], []))


# ── the file ───────────────────────────────────────────────────────────────────────────────────


def test_a_torn_line_spoils_only_itself(record, tmp_path):
    (tmp_path / "traces.jsonl").write_text('{"id": "torn')
    record(lambda question: "x")("q")
    bad, good = read_traces(record.path)
    assert not isinstance(bad, Trace)
    assert isinstance(good, Trace)


@pytest.mark.skipif(os.name != "posix", reason="permission bits")
def test_traces_can_be_read_by_their_owner_alone(record):
    record(lambda question: "x")("q")
    assert record.path.stat().st_mode & 0o077 == 0


PROCESS = """
import sys
from clinsafe.rag.appending import LineFile
from clinsafe.rag.trace import Trace, TraceText
file = LineFile(sys.argv[1])
for n in range(50):
    text = "x" * (20_000 if n % 10 == 0 else 10)
    head = {"time": "t", "tool": "0", "outcome": "answered"}
    file.append(Trace(id=f"{sys.argv[2]}-{n}", query=TraceText(length=len(text), text=text), **head).line())
"""


def test_several_processes_and_threads_write_whole_lines(tmp_path):
    path = tmp_path / "t.jsonl"
    commands = [[sys.executable, "-c", PROCESS, str(path), str(n)] for n in range(2)]
    running = [subprocess.Popen(command) for command in commands]
    from clinsafe.rag.appending import LineFile

    file = LineFile(path)
    line = Trace(id="mine", time="t", tool="0", outcome="answered").line()
    threads = [threading.Thread(target=lambda: [file.append(line) for _ in range(50)]) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [process.wait(60) for process in running] == [0, 0]
    found = list(read_traces(path))
    assert all(isinstance(trace, Trace) for trace in found)
    assert len(found) == 300
    assert len({trace.id for trace in found if isinstance(trace, Trace)}) == 101


def test_an_append_waits_for_the_lock_and_not_for_ever(tmp_path):
    from filelock import FileLock, Timeout

    from clinsafe.rag.appending import LineFile

    file = LineFile(tmp_path / "t.jsonl", patience=0.05)
    with FileLock(tmp_path / "t.jsonl.lock"), ThreadPoolExecutor(1) as pool, pytest.raises(Timeout):
        pool.submit(file.append, "mine").result()
    assert not file.path.exists()
    file.append("mine")
    assert file.path.read_text() == "mine\n"


def test_a_disk_that_fills_up_leaves_no_half_line(tmp_path, monkeypatch):
    import io

    from clinsafe.rag.appending import LineFile

    file = LineFile(tmp_path / "t.jsonl")
    file.append("first")

    class Full(io.FileIO):
        def write(self, data):
            if len(data) > 3:
                return super().write(bytes(data[:3]))
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fdopen", lambda handle, mode, buffering: Full(handle, mode))
    with pytest.raises(OSError, match="space"):
        file.append("second")
    assert (tmp_path / "t.jsonl").read_text() == "first\n"


def test_a_draft_says_no_more_than_it_must():
    draft = Draft(lambda raw: ([], []), None, print)  # type: ignore[arg-type]
    assert repr(draft) == "Draft()"
