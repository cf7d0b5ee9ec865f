"""`clinsafe.record`, as an application uses it."""

from __future__ import annotations

import json

import pytest

import clinsafe
from clinsafe.errors import KeyFileError, UsageError
from clinsafe.oversight.keys import make_key

QUESTION = "Is Marigold allergic to penicillin?"


def test_what_is_written_is_what_was_asked_for(tmp_path):
    key = make_key(tmp_path / "keys" / "log.key")
    found = {}
    for name, options in {
        "bare": {},
        "keyed": {"key": tmp_path / "keys" / "log.key"},
        "whole": {"text": True},
    }.items():
        record = clinsafe.record(tmp_path / f"{name}.jsonl", corpus="notes-1", **options)

        @record
        def answer(question: str) -> str:
            record.retrieved([{"id": "n-1", "text": QUESTION}])  # noqa: B023 - called at once
            return question

        assert answer(QUESTION) == QUESTION
        found[name] = json.loads(record.path.read_text("utf-8"))
    assert found["bare"]["query"] == {"length": len(QUESTION)}
    assert found["keyed"]["query"] == {"length": len(QUESTION), "hmac": key.digest(QUESTION)}
    assert found["whole"]["query"] == {"length": len(QUESTION), "text": QUESTION}
    for trace in found.values():
        assert trace["corpus"] == "notes-1"
        assert trace["retrieved"][0]["id"] == "n-1"
    assert "Marigold" not in str((found["bare"], found["keyed"]))


def test_what_is_wrong_is_one_line(tmp_path):
    for error, options in ((UsageError, {"nonsense": 1}), (KeyFileError, {"key": tmp_path / "none"})):
        with pytest.raises(error) as caught:
            clinsafe.record(tmp_path / "t.jsonl", **options)
        assert "\n" not in str(caught.value)
