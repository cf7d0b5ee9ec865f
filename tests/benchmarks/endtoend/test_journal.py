"""A run that was stopped goes on; what another guard did is left alone."""

from __future__ import annotations

import pytest

from clinsafe.benchmarks.endtoend.journal import TEXTS, Journal
from clinsafe.benchmarks.endtoend.outcomes import Setting, State, not_measured
from clinsafe.errors import UsageError
from tests.benchmarks.endtoend import kit

SETTING = Setting(system="bm25", k=5, corpus="control", arm="after")
MADE = {"version": "1", "policy": "a"}


def an_outcome():
    return not_measured(kit.task(), SETTING, "").model_copy(
        update={"wrong": State(retrieved=2, rank=1, action="flag", via="finding", hazards=("negation",))}
    )


def test_what_was_added_is_there_again(tmp_path):
    first = Journal(tmp_path / "run", MADE)
    first.add(an_outcome())
    first.add_text("model", "ab", "an answer\nof two lines")
    again = Journal(tmp_path / "run", MADE, {"minilm": "x"})
    assert again.outcome("e2e-0", SETTING) == an_outcome()
    assert again.outcome("e2e-0", SETTING.model_copy(update={"k": 10})) is None
    assert again.text("model", "ab") == "an answer\nof two lines"
    assert again.text("other", "ab") is None


@pytest.mark.parametrize("outcomes", [True, False])
def test_a_line_that_broke_off_is_measured_again_and_spoils_no_other(tmp_path, outcomes):
    first = Journal(tmp_path, MADE)
    first.add(an_outcome())
    first.add_text("model", "ab", "answer")
    path = next(tmp_path.glob("outcomes-*.jsonl")) if outcomes else tmp_path / TEXTS
    path.write_bytes(path.read_bytes().rstrip()[:-3])
    again = Journal(tmp_path, MADE)
    assert (again.outcome("e2e-0", SETTING) is None) == outcomes
    assert (again.text("model", "ab") is None) == (not outcomes)
    again.add(an_outcome())
    again.add_text("model", "ab", "answer")
    once_more = Journal(tmp_path, MADE)
    assert once_more.outcome("e2e-0", SETTING) == an_outcome()
    assert once_more.text("model", "ab") == "answer"


def test_outcomes_of_another_guard_are_not_taken_over_and_not_lost(tmp_path):
    Journal(tmp_path, MADE).add(an_outcome())
    Journal(tmp_path, MADE).add_text("model", "ab", "answer")
    other = Journal(tmp_path, MADE | {"policy": "b"})
    assert other.outcome("e2e-0", SETTING) is None
    assert other.text("model", "ab") == "answer", "the prompt is the same"
    assert Journal(tmp_path, MADE).outcome("e2e-0", SETTING) == an_outcome()


def test_a_folder_of_another_model_or_of_anything_else_is_refused(tmp_path):
    Journal(tmp_path / "run", MADE, {"minilm": "x"})
    Journal(tmp_path / "run", MADE, {"mine": "y"})
    with pytest.raises(UsageError, match="minilm was another model"):
        Journal(tmp_path / "run", MADE, {"minilm": "z"})
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "letters.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    (tmp_path / "odd").mkdir()
    (tmp_path / "odd" / "run.json").write_text("[1")
    for name in ("mine", "file", "odd"):
        with pytest.raises(UsageError):
            Journal(tmp_path / name, MADE)
    assert [path.name for path in (tmp_path / "mine").iterdir()] == ["letters.txt"]


def test_without_a_folder_nothing_is_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    journal = Journal(None, MADE)
    journal.add(an_outcome())
    assert journal.outcome("e2e-0", SETTING) == an_outcome()
    assert journal.vectors is None
    assert not list(tmp_path.iterdir())
