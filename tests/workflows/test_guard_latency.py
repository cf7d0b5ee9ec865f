"""Timing the guard: who is timed, what counts as unchecked, and that a guard which fails or sleeps is seen."""

from __future__ import annotations

import json
import threading
import time
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from clinsafe.cli.app import app
from clinsafe.errors import UsageError
from clinsafe.protocols import Passage
from clinsafe.workflows.guard import build_stack
from clinsafe.workflows.guard_latency import (
    TOP,
    Asked,
    Call,
    Latency,
    drive,
    guarded,
    load_asked,
    measure,
    percentile,
    ranked,
)
from tests.mitigations.fakes import Scripted
from tests.perf import guard as perf

TEXTS = [f"Drug {name} lowers the {name} pressure. It is given daily." for name in "abcdefghijklmnop"]
ASKED = [Asked(f"query {n}", (Passage("a", "one"), Passage("b", "two"))) for n in range(24)]


def answer(unchecked=(), late=0):
    rows = [SimpleNamespace(unchecked={"negation": "late"} if at < late else {}) for at in range(2)]
    return SimpleNamespace(passages=rows[:1], withheld=rows[1:], unchecked=unchecked)


@pytest.mark.parametrize(
    ("share", "value"), [(50, 50), (95, 95), (99, 99), (99.5, 100), (100, 100), (0.1, 1)]
)
def test_a_percentile_is_a_value_that_was_measured(share, value):
    assert percentile(list(range(100, 0, -1)), share) == value


@pytest.mark.parametrize(("values", "share"), [([], 50), ([1.0], 0), ([1.0], 101)])
def test_no_percentile_of_nothing(values, share):
    with pytest.raises(ValueError, match="percentile"):
        percentile(values, share)


@pytest.mark.parametrize("callers", [1, 8])
def test_every_query_is_asked_once(callers):
    seen = []
    calls = drive(lambda one: seen.append(one.query) or answer(), ASKED, callers)
    assert sorted(seen) == sorted(one.query for one in ASKED)
    assert len(calls) == len(ASKED)
    assert all((c.passages, c.unchecked, c.whole) == (2, 0, True) for c in calls)


def test_callers_ask_at_the_same_time():
    together = threading.Barrier(8, timeout=20)  # breaks unless eight calls are under way at once
    assert len(drive(lambda _: together.wait() or answer(), ASKED, 8)) == len(ASKED)


def test_the_time_is_the_callers():
    (call,) = drive(lambda _: time.sleep(0.02) or answer(), ASKED[:1], 1)
    assert 20 <= call.milliseconds < 2000


def test_withheld_passages_count_and_what_is_unchecked_is_not_whole():
    late, pairs = drive(lambda one: answer(late=2) if one is ASKED[0] else answer(("pairs",)), ASKED[:2], 1)
    assert (late.passages, late.unchecked, late.whole) == (2, 2, False)
    assert (pairs.passages, pairs.unchecked, pairs.whole) == (2, 0, False)


@pytest.mark.parametrize("callers", [1, 8])
def test_a_guard_that_fails_is_not_a_fast_one(callers):
    def broken(_):
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        drive(broken, ASKED, callers)


def test_ways_and_yardsticks_take_turns_and_the_ratio_is_of_medians():
    order = []

    def way(name, seconds):
        return lambda one: (order.append(name), time.sleep(seconds))[1] or answer()

    found = measure({"slow": way("slow", 0.02), "fast": way("fast", 0)}, ASKED, callers=(1,),
                    yardsticks={"rule": lambda _: time.sleep(0.004)}, every=1)  # fmt: skip
    assert {key: len(calls) for key, calls in found.calls.items()} == {("slow", 1): 24, ("fast", 1): 24}
    assert len(found.yardsticks["rule"]) == 24
    assert order.index("fast", 2) < len(order) - 1 - order[::-1].index("slow")  # not one after the other
    assert found.ratio("slow", 1, "rule") > 1.5 > 0.5 > found.ratio("fast", 1, "rule")
    assert set(found.figures()) == {
        f"guard_latency.all.{way}_1_{what}"
        for way in ("slow", "fast")
        for what in ("p50_ms", "p95_ms", "p99_ms", "rule_ratio", "whole")
    }


def test_the_figures_say_how_many_calls_were_whole():
    calls = drive(lambda one: answer(late=int(one is ASKED[0])), ASKED, 1)
    whole = Latency({("stored", 1): calls}).figures()["guard_latency.all.stored_1_whole"]
    assert (whole.k, whole.n) == (23, 24)


def test_a_query_gets_the_passages_that_speak_of_it():
    found = ranked(TEXTS)
    assert [one.query for one in found] == [text.split(". ")[0] for text in TEXTS]
    assert all(
        len(one.passages) == TOP and one.passages[0].text == text
        for one, text in zip(found, TEXTS, strict=True)
    )


def test_without_data_there_is_no_timing(monkeypatch, tmp_path):
    monkeypatch.delenv("CLINSAFE_DATA", raising=False)
    with pytest.raises(UsageError, match="data folder"):
        load_asked(None, 20)


class Slow(Scripted):
    """Takes a while for each text it reads."""

    texts = 0

    def read(self, reading):
        Slow.texts += 1
        time.sleep(0.03)
        return super().read(reading)


def test_nothing_is_remembered_facts_are_not_read_again_and_a_deadline_leaves_the_rest_unchecked():
    stack = build_stack(names=["negation"], model="")
    stack.filters["negation"] = Slow("compatible")
    one = Asked("Is it raised?", tuple(Passage(f"p{n}", f"text number {n}") for n in range(6)))
    ask, before = guarded(stack), Slow.texts
    ask(one)
    first, before = Slow.texts - before, Slow.texts
    ask(one)
    assert Slow.texts - before == first >= 7  # each passage again
    before = Slow.texts
    known = stack.read("known")
    guarded(stack, facts=lambda _id, _text: known)(one)
    assert Slow.texts - before <= 1 + 2  # the query, and the claim that it asks about
    (late,) = drive(guarded(stack, seconds=0.1), [one], 1)
    assert 0 < late.unchecked < 7
    assert not late.whole
    assert late.milliseconds < 1000


@pytest.mark.data
def test_on_the_command_line(tmp_path, data):
    out = tmp_path / "out.json"
    asked = [
        "guard",
        "bench",
        "--latency",
        "20",
        "--stack",
        "never",
        "--spacy",
        "",
        "--data",
        data,
        "--json",
        out,
    ]
    done = CliRunner().invoke(app, [str(part) for part in asked])
    assert done.exit_code == 0, done.output
    found = json.loads(out.read_text())
    assert {name.split(".")[2].rsplit("_", 2)[0] for name in found if name.endswith("_ms")} == {
        "stored_1", "stored_8", "unstored_1", "unstored_8",
    }  # fmt: skip
    assert "NOT WHOLLY CHECKED" not in done.output
    assert "20 queries" in done.output


@pytest.mark.parametrize(
    ("results", "named", "facts", "stages"),
    [
        ({}, None, False, list(perf.STAGES)),
        ({"prepare": {}, "latency": {}}, None, True, ["deadlines", "cold", "where", "memory", "memory_log"]),
        ({"prepare": {}, "memory": {}}, ["cold"], False, ["prepare", "cold"]),
        ({stage: {} for stage in perf.STAGES}, None, False, []),
        ({"memory": {}}, ["memory"], False, ["memory"]),
    ],
)
def test_a_run_goes_on_where_it_stopped(results, named, facts, stages):
    assert perf.todo(results, named, facts) == stages


@pytest.mark.parametrize(("each", "slope"), [(0.0, 0.0), (0.001, 10.0)])
def test_growth_is_told_from_what_fills_up_at_first(each, slope):
    points = [
        (seen, 100 + min(seen, 20_000) / 1000 + each * max(0, seen - 20_000))
        for seen in range(0, 100_001, 5000)
    ]
    found = perf.flatness(points)
    assert found["from_passages"] == 20_000
    assert found["mb_per_10000"] == pytest.approx(slope)
    assert found["difference_mb"] == pytest.approx(each * 80_000)


def test_what_a_deadline_leaves_is_counted_by_passage_and_by_query():
    found = perf.left(
        [Call(1, 10, 4, False), Call(2, 10, 0, True), Call(3, 10, 0, False), Call(9, 10, 0, True)]
    )
    assert (found["passages_unchecked"]["k"], found["passages_unchecked"]["n"]) == (4, 40)
    assert found["passages_unchecked"]["low"] < 100 == found["passages_unchecked"]["per_1000"]
    assert (found["queries_with_unchecked"]["k"], found["queries_not_whole"]["k"]) == (1, 2)
    assert found["p99_ms"] == 9


def test_passages_come_in_tens_with_names_of_their_own():
    found = list(perf.in_tens(str(n) for n in range(35)))
    assert [one.query for one in found] == ["0", "10", "20"]
    assert len({p.id for one in found for p in one.passages}) == 30
