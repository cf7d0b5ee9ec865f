"""The cache and the budget of judges: damage, two writers, limits."""

from __future__ import annotations

import json
import threading

import pytest

from clinsafe.adapters.judge_budget import Budget, BudgetSpent, estimate
from clinsafe.adapters.judge_cache import JudgeCache, key_of
from clinsafe.errors import UsageError
from clinsafe.protocols import Judgement

KEY = key_of("a")
SCORED = Judgement("scored", 0.5, "partly", "why")


@pytest.fixture
def cache(tmp_path):
    return JudgeCache(tmp_path / "kept")


def only_file(tmp_path):
    (path,) = (tmp_path / "kept").rglob("*.json")
    return path


@pytest.mark.parametrize(
    "kept", [SCORED, Judgement("refused", None, "refusal"), Judgement("unscored", None, "x")]
)
def test_what_was_kept_comes_back(cache, kept):
    cache.put(KEY, kept)
    assert cache.get(KEY) == kept
    assert cache.get(key_of("b")) is None


def test_an_error_is_not_kept(cache):
    cache.put(KEY, Judgement("error", None, "busy"))
    assert cache.get(KEY) is None


@pytest.mark.parametrize(
    "damage",
    [
        b"",
        b"{",
        b"\xff\xfe",
        b"[" * 200_000,
        b"x" * ((1 << 20) + 5),
        json.dumps({"key": KEY}).encode(),
        json.dumps({"key": KEY, "outcome": "scored", "value": 7, "reason": "", "rationale": ""}).encode(),
        json.dumps({"key": KEY, "outcome": "scored", "value": None, "reason": "", "rationale": ""}).encode(),
        json.dumps({"key": KEY, "outcome": "scored", "value": True, "reason": "", "rationale": ""}).encode(),
        json.dumps({"key": KEY, "outcome": "refused", "value": 0, "reason": "", "rationale": ""}).encode(),
        json.dumps(
            {"key": key_of("b"), "outcome": "scored", "value": 1, "reason": "", "rationale": ""}
        ).encode(),
        b'{"key": "%s", "outcome": "scored", "value": NaN, "reason": "", "rationale": ""}' % KEY.encode(),
    ],
)
def test_a_damaged_file_is_passed_over_and_written_anew(cache, tmp_path, damage):
    cache.put(KEY, SCORED)
    only_file(tmp_path).write_bytes(damage)
    assert cache.get(KEY) is None
    cache.put(KEY, SCORED)
    assert cache.get(KEY) == SCORED


def test_many_writers_of_one_key_leave_one_whole_file(tmp_path):
    caches = [JudgeCache(tmp_path / "kept") for _ in range(4)]
    threads = [
        threading.Thread(target=lambda one=one: [one.put(KEY, SCORED) for _ in range(20)]) for one in caches
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert caches[0].get(KEY) == SCORED
    assert len(list((tmp_path / "kept").rglob("*.*"))) == 1


def test_an_interrupted_write_leaves_nothing(cache, tmp_path, monkeypatch):
    def stop(*_arguments):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.replace", stop)
    with pytest.raises(KeyboardInterrupt):
        cache.put(KEY, SCORED)
    assert not [path for path in (tmp_path / "kept").rglob("*") if path.is_file()]


def test_a_folder_that_is_a_file_is_refused(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(UsageError):
        JudgeCache(tmp_path / "file")


def test_keys_differ_where_joined_texts_would_not():
    assert len({key_of(["a", "b"]), key_of(["ab"]), key_of(["a"], ["b"]), key_of(["a", "b", None])}) == 4
    assert key_of("\ud800")


# ── budget ─────────────────────────────────────────────────────────────────────────────────────


def test_tokens_under_way_count_until_they_are_known():
    budget = Budget(tokens=300)
    held = budget.reserve(100, 100)
    with pytest.raises(BudgetSpent):
        budget.reserve(60, 60)
    budget.settle(held, (50, 10))
    budget.settle(budget.reserve(100, 100), None)
    assert (budget.spent.prompt, budget.spent.completion, budget.spent.estimated) == (150, 110, 1)


def test_estimates_grow_where_the_service_counts_more():
    budget = Budget(tokens=1000)
    budget.settle(budget.reserve(100, 10), (300, 10))
    assert budget.reserve(100, 10).prompt == 300


def test_a_lost_request_may_have_been_paid_for():
    budget = Budget(calls=1)
    budget.lost(budget.reserve(100, 50))
    assert (budget.spent.calls, budget.spent.prompt) == (1, 100)
    with pytest.raises(BudgetSpent):
        budget.reserve(1, 1)


def test_a_budget_of_nothing_allows_nothing_and_one_below_it_is_refused():
    with pytest.raises(BudgetSpent):
        Budget(calls=0).reserve(1, 1)
    with pytest.raises(UsageError):
        Budget(tokens=-1)


def test_an_estimate_is_generous():
    assert estimate("word " * 300) >= 300
    assert estimate("血压升高") >= 4
    assert estimate("\ud800") > 0
