"""A language model as a judge, against a real server on this machine that misbehaves in every way it can."""

from __future__ import annotations

import dataclasses
import json
import time

import pytest

from clinsafe.adapters import judge as judges
from clinsafe.adapters.exchange import Patience
from clinsafe.adapters.judge_budget import Budget
from clinsafe.errors import OfflineError, UsageError
from clinsafe.protocols import Judge, JudgeTask
from clinsafe.rag.judging.form import RubricForm
from clinsafe.rag.judging.rubrics import load_rubrics
from tests.adapters import embedding_server as es
from tests.adapters.chat_server import ChatServer, prompt_of, says
from tests.adapters.embedding_server import KEY, REMOTE

pytestmark = pytest.mark.usefixtures("clean_environment", "certificates_read_once")

CONTEXT = "Mr Canary has a rash on his arm."
GOOD = json.dumps({"score": 1, "verdict": "supported", "rationale": "It is said.", "quotes": ["has a rash"]})
USAGE = {"usage": {"prompt_tokens": 900, "completion_tokens": 40}}


def task(number=1, metric="adherence"):
    return JudgeTask(metric, "What is seen?", f"There is rash number {number}.", [CONTEXT])


@pytest.fixture(scope="module")
def form():
    return RubricForm(load_rubrics())


@pytest.fixture
def server():
    with ChatServer(lambda _prompt: GOOD).running() as running:
        yield running


@pytest.fixture
def connect(server, waits, form):
    def load(*, patience=None, url=None, **options):
        patience = Patience(**{"sleep": waits.append, **(patience or {})})
        return judges.load("served", url or server.url, form, patience=patience, **options)

    return load


def status(code, **headers):
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return lambda _request: es.Reply(code, b'{"error": {"message": "Canary"}}', named)


def refuses_formats(*kinds):
    """A service that answers 400 to these kinds of `response_format`, or to a seed."""

    def behave(request):
        asked = request.body.get("response_format", {}).get("type")
        if asked in kinds or ("seed" in kinds and "seed" in request.body):
            return status(400)(request)
        return says(GOOD)(request)

    return behave


def closes(_request):
    """The connection is gone without a word."""
    raise ConnectionAbortedError


def two_lengths(_request):
    return es.Reply(body=b'{"choices": [', headers={"Content-Length": "5000"})


def test_a_good_answer_is_scored_and_asked_for_in_the_right_form(server, connect):
    judge = connect()
    assert isinstance(judge, Judge)
    server.script = [says(GOOD, **USAGE)]
    said = judge.judge(task())
    assert (said.outcome, said.value, said.reason) == ("scored", 1.0, "supported")
    (request,) = server.requests
    body = request.body
    assert (body["temperature"], body["seed"], body["max_tokens"]) == (0, 0, 512)
    assert body["response_format"]["json_schema"]["schema"]["required"] == [
        "rationale",
        "quotes",
        "verdict",
        "score",
    ]
    assert CONTEXT in prompt_of(request)
    assert dataclasses.astuple(judge.spent) == (1, 900, 40, 0)


ONCE = {
    "no json": (es.raw(b'{"choices": ['), "error", "bad answer"),
    "empty body": (es.raw(b""), "error", "bad answer"),
    "html": (es.html, "error", "bad answer"),
    "huge body": (es.raw(b"x" * ((1 << 22) + 1)), "error", "bad answer"),
    "redirect": (es.redirect("https://elsewhere.example.org/secret-path"), "error", "bad answer"),
    "error with 200": (es.raw(b'{"error": {"message": "x"}}'), "error", "bad answer"),
    "no content": (says(None), "error", "no text"),
    "401": (status(401), "error", "access refused"),
    "404": (status(404), "error", "unknown model"),
    "413": (status(413), "error", "text refused"),
    "says refusal": (
        es.raw(b'{"choices": [{"message": {"content": null, "refusal": "No."}}]}'), "refused", "refusal",
    ),
    "filtered": (
        es.raw(b'{"choices": [{"message": {"content": ""}, "finish_reason": "content_filter"}]}'), "refused", "refusal",
    ),
    "refuses in prose": (says("I'm sorry, but I can't help with that."), "refused", "refusal"),
    "invented quote": (says(GOOD.replace("has a rash", "has no rash")), "unscored", "unverified quote"),
}  # fmt: skip


@pytest.mark.parametrize(("behave", "outcome", "reason"), ONCE.values(), ids=ONCE)
def test_a_fault_is_a_typed_outcome_and_the_next_task_is_judged(server, connect, behave, outcome, reason):
    judge = connect()
    server.script = [behave]
    said = judge.judge(task())
    assert (said.outcome, said.value, said.reason) == (outcome, None, reason)
    assert len(server.requests) == 1
    assert "Canary" not in str(said)
    assert judge.judge(task(2)).value == 1


TWICE = {
    "prose": ("It is well supported.", "prose"),
    "half json": (GOOD[:-9], "half JSON"),
    "nan": (GOOD.replace("1", "NaN"), "not a number"),
    "infinity": (GOOD.replace("1", "Infinity"), "not a number"),
    "out of range": (GOOD.replace("1", "10"), "out of range"),
    "wrong type": (GOOD.replace("1", "true"), "wrong type"),
    "wrong schema": ('{"grade": 1}', "missing field"),
    "verdict against score": (GOOD.replace('"supported"', '"contradicted"'), "contradictory"),
}


@pytest.mark.parametrize(("text", "reason"), TWICE.values(), ids=TWICE)
def test_a_malformed_answer_is_asked_for_once_more_and_then_an_error(server, connect, text, reason):
    judge = connect()
    server.script = [says(text), says(text)]
    said = judge.judge(task())
    assert (said.outcome, said.value, said.reason) == ("error", None, reason)
    assert len(server.requests) == 2
    again = prompt_of(server.requests[1])
    assert again.startswith(prompt_of(server.requests[0]))
    assert text not in again
    server.script = [says(text)]
    assert judge.judge(task()).value == 1


def test_a_service_is_good_after_two_failures_and_is_waited_for_as_it_asks(server, connect, waits):
    server.script = [status(429, Retry_After="7"), status(429)]
    judge = connect()
    assert judge.judge(task()).value == 1
    assert (waits[0], len(server.requests)) == (7, 3)
    assert judge.spent.calls == 3


@pytest.mark.parametrize("behave", [status(429), status(500), closes, two_lengths, es.hang,
                                    lambda r: es.Reply(body=says("x" * 900)(r).body, slow=True)],
                         ids=["429", "500", "closed", "two lengths", "hang", "drip"])  # fmt: skip
def test_a_service_that_stays_bad_is_left_alone_after_three_calls(server, connect, behave):
    server.script = [behave] * 50
    judge = connect(timeout=0.1, patience={"retries": 1})
    said = [judge.judge(task(number)) for number in range(5)]
    assert [one.reason for one in said] == ["busy"] * 3 + ["endpoint gone"] * 2
    assert all((one.outcome, one.value) == ("error", None) for one in said)
    assert len(server.requests) == 6


def test_nothing_waits_for_a_service_that_was_never_there(connect, waits):
    said = connect(url="http://127.0.0.1:9/v1").judge(task())
    assert (said.outcome, said.reason, waits) == ("error", "unreachable", [])


@pytest.mark.parametrize(
    ("kinds", "level", "requests"),
    [
        ((), "json_schema", 1),
        (("json_schema",), "json_object", 2),
        (("json_schema", "json_object"), "text", 3),
        (("json_schema", "json_object", "seed"), "bare", 4),
    ],
)
def test_what_form_a_service_knows_is_found_out_once(server, connect, kinds, level, requests):
    judge = connect()
    server.script = [refuses_formats(*kinds)] * 50
    assert judge.judge(task()).value == 1
    assert (judge.level, len(server.requests)) == (level, requests)
    assert judge.judge(task(2)).value == 1
    assert len(server.requests) == requests + 1


def test_a_text_that_is_refused_in_every_form_changes_no_form(server, connect):
    judge = connect()
    server.script = [status(400)] * 4
    assert judge.judge(task()).reason == "text refused"
    assert judge.judge(task(2)).value == 1
    assert judge.level == "json_schema"
    server.script = [status(400)]
    assert judge.judge(task(3)).reason == "text refused"
    assert not server.script


def test_what_no_judge_can_score_is_not_sent(server, connect):
    judge = connect()
    tasks = [
        JudgeTask("adherence", "Q?", "I don't know.", [CONTEXT]),
        JudgeTask("adherence", "Q?", "", [CONTEXT]),
    ]
    assert [one.reason for one in judge.judge_many(tasks)] == ["abstained", "empty answer"]
    assert not server.requests


# ── many, cache, budget ────────────────────────────────────────────────────────────────────────


def test_many_keep_their_order_whatever_comes_first(server, connect):
    def answer(prompt):
        number = int(prompt.partition("rash number ")[2].partition(".")[0])
        time.sleep(0.02 * (number % 3 == 0))
        return GOOD.replace('"score": 1', f'"score": {0.75 + number / 100}')

    server.answer = answer
    said = connect().judge_many([task(number) for number in (*range(12), 3)], workers=4)
    assert [one.value for one in said] == pytest.approx([0.75 + number / 100 for number in (*range(12), 3)])
    assert len(server.requests) == 12


@pytest.mark.parametrize("workers", [0, 1000])
def test_a_pool_is_bounded(connect, workers):
    with pytest.raises(UsageError):
        connect().judge_many([task()], workers=workers)


def test_a_second_run_asks_for_what_failed_alone(server, connect, tmp_path):
    server.script = [says(GOOD), says("prose"), says("prose"), says("I cannot help with that.")]
    tasks = [task(number) for number in range(4)]
    first = connect(cache=tmp_path / "kept").judge_many(tasks, workers=1)
    assert [one.outcome for one in first] == ["scored", "error", "refused", "scored"]
    sent = len(server.requests)
    again = connect(cache=tmp_path / "kept")
    assert (again.plan(tasks).cached, again.plan(tasks).calls) == (3, 1)
    second = again.judge_many(tasks, workers=1)
    assert [one.outcome for one in second] == ["scored", "scored", "refused", "scored"]
    assert (second[0], len(server.requests)) == (first[0], sent + 1)


def test_another_model_seed_rubric_or_task_is_judged_anew(server, connect, tmp_path, form):
    options = {"cache": tmp_path / "kept"}
    connect(**options).judge(task())
    connect(seed=1, **options).judge(task())
    connect(**options).judge(task(metric="support"))
    connect(**options).judge(dataclasses.replace(task(), contexts=[CONTEXT, "x"]))
    changed = RubricForm(load_rubrics())
    changed.digests = dict.fromkeys(form.digests, "0" * 64)
    judges.load("served", server.url, changed, **options).judge(task())
    judges.load("other", server.url, form, **options).judge(task())
    assert len(server.requests) == 6


def test_ctrl_c_leaves_a_cache_from_which_the_run_goes_on(server, connect, tmp_path, monkeypatch):
    tasks = [task(number) for number in range(6)]
    judge = connect(cache=tmp_path / "kept")
    judge_one, seen = judge.judge, []

    def interrupted(one):
        seen.append(one)
        if len(seen) == 3:
            raise KeyboardInterrupt
        return judge_one(one)

    monkeypatch.setattr(judge, "judge", interrupted)
    with pytest.raises(KeyboardInterrupt):
        judge.judge_many(tasks, workers=1)
    again = connect(cache=tmp_path / "kept")
    assert again.plan(tasks).cached >= 2
    assert all(one.value == 1 for one in again.judge_many(tasks))
    assert not list(tmp_path.rglob("*.part"))


def test_the_budget_of_calls_counts_retries_and_stops_before_it_is_passed(server, connect):
    server.script = [status(500), status(500)]
    judge = connect(budget=Budget(calls=4))
    said = judge.judge_many([task(number) for number in range(5)], workers=1)
    assert [one.reason for one in said] == ["supported", "supported", *["budget"] * 3]
    assert [one.outcome for one in said[2:]] == ["unscored"] * 3
    assert (len(server.requests), judge.spent.calls) == (4, 4)


def test_the_budget_of_tokens_stops_before_it_is_passed(server, connect):
    server.script = [says(GOOD, **USAGE)] * 10
    judge = connect(budget=Budget(tokens=4000))
    said = judge.judge_many([task(number) for number in range(8)], workers=3)
    spent = judge.spent
    assert spent.prompt + spent.completion <= 4000
    assert {one.reason for one in said} == {"supported", "budget"}
    assert spent.calls == len(server.requests) == sum(one.value == 1 for one in said)


def test_a_plan_sends_nothing_and_says_what_would_be_sent(server, connect, tmp_path):
    judge = connect(cache=tmp_path / "kept")
    judge.judge(task(1))
    silent = JudgeTask("adherence", "Q?", "", [CONTEXT])
    plan = judge.plan([task(1), task(2), task(2), task(3), silent])
    assert (plan.tasks, plan.not_asked, plan.cached, plan.calls) == (5, 1, 2, 2)
    assert 1500 < plan.prompt_tokens < 4000
    assert plan.completion_tokens == 2 * 512
    assert len(server.requests) == 1


# ── secrets ────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def key_file(tmp_path):
    path = tmp_path / "key"
    path.write_text(f"{KEY}\n")
    path.chmod(0o600)
    return path


def test_the_key_comes_from_a_file_and_goes_nowhere_else(server, connect, key_file, tmp_path):
    judge = connect(key_file=key_file, cache=tmp_path / "kept")
    judge.judge(task())
    assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
    kept = [path.read_text() for path in (tmp_path / "kept").rglob("*.json")]
    assert KEY not in f"{judge!r} {judge.identity} {vars(judge)} {kept}"
    assert all(path.stat().st_mode & 0o077 == 0 for path in (tmp_path / "kept").rglob("*"))


def test_a_key_file_that_others_may_read_is_refused(connect, key_file):
    key_file.chmod(0o644)
    with pytest.raises(UsageError, match="chmod 600"):
        connect(key_file=key_file)


@pytest.mark.parametrize("content", ["", "two words", "ä", "a\nb"])
def test_a_file_that_holds_no_key_is_refused_and_not_quoted(connect, key_file, content):
    key_file.write_text(content)
    with pytest.raises(UsageError, match="--judge-key-file"):
        connect(key_file=key_file)


def test_faults_of_the_address_name_the_judges_flags(connect, key_file, tmp_path):
    with pytest.raises(UsageError, match="--judge-url"):
        connect(url="ftp://x")
    with pytest.raises(UsageError, match="not by both"):
        connect(key_file=key_file, key_variable="X")
    with pytest.raises(UsageError, match="--judge-key-env"):
        connect(key_variable="UNSET_KEY")
    with pytest.raises(UsageError, match="--judge-key-file"):
        connect(key_file=tmp_path / "none")
    with pytest.raises(OfflineError):
        connect(url=REMOTE, offline=True)
