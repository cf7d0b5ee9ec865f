"""The hit function and the metrics as instruments: what their per-question values say of support."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.rag.auditing.claim import Claim, verdicts
from clinsafe.rag.auditing.measuring import INSTRUMENTS, PLAIN, Measuring, chosen
from clinsafe.rag.clash import Clash
from clinsafe.rag.values import Values

DENIED = Claim(
    ("It is not true that the patient has a penicillin allergy.", "Ward round at nine."),
    "the patient has a penicillin allergy",
)
OTHER = Claim(("Ward round at nine.",), "Warfarin was stopped on the second day")


def read(name: str, **values: float) -> bool | None:
    return Measuring._read(name, Values({key.replace("__", "."): value for key, value in values.items()}))


@pytest.mark.parametrize(
    ("level", "supported"),
    [
        (0, set()),
        (1, {"r_substring", "r_tokens"}),
        (2, {"r_tokens"}),
        (3, set()),
    ],
)
def test_a_level_of_the_cascade_holds_the_ones_before_it(level: int, supported: set[str]) -> None:
    said = {n for n in ("r_substring", "r_tokens") if read(n, level_at__1=0.0, level_at__2=float(level))}
    assert said == supported


@pytest.mark.parametrize(
    "name", ["r", "r_cosine", "safe_r", "semantic", "accuracy", "token_f1", "rouge_l", "fuzzy"]
)
def test_what_was_not_measured_is_no_verdict(name: str) -> None:
    assert read(name) is None


@pytest.mark.parametrize(
    ("name", "value", "edge"),
    [
        ("token_f1", "token_f1", 0.7),
        ("rouge_l", "rouge_l", 0.7),
        ("semantic", "semantic", 0.7),
        ("fuzzy", "fuzzy", 0.9),
        ("accuracy", "correct", 1.0),
        ("r", "hit", 1.0),
        ("safe_r", "safe_hit", 1.0),
    ],
)
def test_a_metric_supports_from_its_threshold_on(name: str, value: str, edge: float) -> None:
    assert read(name, **{value: edge}) is True
    assert read(name, **{value: edge - 0.01}) is False


def test_without_names_all_that_need_no_model_are_chosen() -> None:
    assert chosen(()) == PLAIN
    assert chosen((), everything=True) == INSTRUMENTS
    assert chosen(["fuzzy", "literal", "fuzzy"]) == ("fuzzy", "literal")
    with pytest.raises(UsageError, match="safe_r"):
        chosen(["bleu"])


@pytest.mark.parametrize("name", ["r_substring", "r", "token_f1"])
def test_an_answer_without_words_is_no_verdict(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.setattr(Measuring, "_measure", lambda _, how, tasks: [Values({"hit": 1.0}) for _ in tasks])
    assert verdicts(Measuring(Content()).instrument(name), [Claim(("text",), "")]) == [None]


def test_every_task_is_measured_once_for_all_that_read_it(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    def count(_: Measuring, how: str, tasks: Sequence[Claim]) -> list[Values]:
        measured.extend(f"{how} {task.answer}" for task in tasks)
        return [Values({"hit": 1.0, "safe_hit": 0.0, "level_at.1": 2.0}) for _ in tasks]

    monkeypatch.setattr(Measuring, "_measure", count)
    measuring = Measuring(Content())
    said = {
        n: verdicts(measuring.instrument(n), [DENIED, OTHER, DENIED])[0]
        for n in ("r", "safe_r", "r_substring")
    }
    assert said == {"r": True, "safe_r": False, "r_substring": False}
    assert measured == [f"hits {DENIED.answer}", f"hits {OTHER.answer}"]


def test_the_hit_function_calls_a_denial_supported_and_another_text_not() -> None:
    measuring = Measuring(Content(), conflicts=lambda *_: Clash(("negation",)))
    for name in ("literal", "r_substring", "r_tokens"):
        assert verdicts(measuring.instrument(name), [DENIED, OTHER]) == [True, False]
    assert verdicts(measuring.instrument("r"), [DENIED, OTHER]) == [True, None]  # level 3 needs an encoder
    alone = Claim(DENIED.contexts[:1], DENIED.answer)
    assert verdicts(measuring.instrument("safe_r"), [alone]) == [False]


def test_metrics_of_answers_give_a_verdict_without_a_model() -> None:
    measuring = Measuring(Content())
    for name in ("token_f1", "rouge_l", "fuzzy"):
        assert None not in verdicts(measuring.instrument(name), [DENIED, OTHER])
