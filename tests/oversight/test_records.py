"""A decision's record: complete, and without a word of the texts (decision D11)."""

from __future__ import annotations

import json
import logging
import sqlite3
from dataclasses import fields, replace

import pytest

from clinsafe.errors import ClinsafeError, UsageError
from clinsafe.guarded import GuardedAnswer, GuardedPassage
from clinsafe.oversight.jsonl import JsonlLog
from clinsafe.oversight.records import record_of
from clinsafe.oversight.sql import SqlLog
from clinsafe.protocols import Finding, Passage
from tests.oversight.kit import CANARY, KEY, NOON, answer

PARTS = [CANARY, *CANARY.split(), CANARY.lower(), CANARY.upper(), CANARY[2:11]]


def recorded(given=None, **options):
    return record_of(given or answer(), digest=KEY.digest, now=NOON, **options)


def test_a_record_says_what_was_decided():
    found = recorded()
    assert (found["event"], found["time"], found["schema_version"]) == (
        "decision",
        "2026-01-31T12:00:00.000Z",
        1,
    )
    asked = answer().query
    assert found["query"] == {"hmac": KEY.digest(asked), "length": len(asked), "question": True}
    assert found["policy"] == {"name": "default", "sha256": "ab" * 32}
    assert found["milliseconds"] == 12.3
    first, second = found["passages"]
    assert (first["id"], first["retrieved"], first["shown"], first["action"]) == ("note-1", 1, 1, "flag")
    assert (first["stance"], first["confidence"]) == ("denies", 0.91)
    assert first["findings"] == [{
        "hazard": "negation", "rule": "negation.absence", "verdict": "conflict", "kind": "contradiction",
        "severity": "critical", "confidence": 0.91, "query_span": [0, 4], "passage_span": [3, 9],
    }]  # fmt: skip
    assert second["unchecked"] == [
        {"what": "numerical", "why": "timeout"}, {"what": "hedging", "why": "error"},
    ]  # fmt: skip
    (withheld,) = found["withheld"]
    assert (withheld["id"], withheld["shown"], withheld["action"], len(withheld["findings"])) == (
        "note-3", 0, "withhold", 2,
    )  # fmt: skip
    (pair,) = found["disagreements"]
    assert (pair["first"], pair["second"], pair["superseding"]) == ("note-1", "note-2", "note-2")
    assert found["review"] == {
        "needed": True, "lines": 2,
        "codes": ["escalated", "withheld", "disagreement", "unchecked", "confirmation"],
    }  # fmt: skip
    assert found["absence_not_verified"] is True
    assert found["not_run"] == ["nli", "other"]
    assert found["unchecked"] == [
        {"what": "disagreements", "why": "timeout"}, {"what": "other", "why": "timeout"},
        {"what": "other", "why": "other"},
    ]  # fmt: skip


@pytest.mark.parametrize(("line", "what", "why"), [
    ("3 of 10 passages: ran out of time", "passages", "timeout"),
    ("3 of 10 passages: the guard is overloaded", "passages", "overloaded"),
    ("disagreements between passages: ran out of time", "disagreements", "timeout"),
    ("disagreements: ran out of time, 3 of 9 pairs of passages were not compared", "disagreements", "timeout"),
    ("the query, negation: read: failed with ValueError", "query", "error"),
    ("the guard is overloaded", "guard", "overloaded"),
    ("the guard failed with ValueError", "guard", "error"),
])  # fmt: skip
def test_what_the_guard_says_it_did_not_check_has_a_code(line, what, why):
    given = GuardedAnswer("The wound is dry.", False, (), unchecked=(line,))
    assert recorded(given)["unchecked"] == [{"what": what, "why": why}]


def test_a_quiet_answer_is_recorded_as_quiet():
    found = recorded(GuardedAnswer("The wound is dry.", False, ()))
    assert found["review"] == {"needed": False, "codes": [], "lines": 0}
    assert (found["passages"], found["withheld"], found["absence_not_verified"]) == ([], [], False)


def test_no_word_of_the_texts_stands_in_a_record():
    for options in ({}, {"passage_id": "hashed"}):
        text = json.dumps(recorded(**options), ensure_ascii=False)
        assert not [part for part in PARTS if part in text]


def test_a_text_given_where_an_id_or_a_code_belongs_is_hashed_or_left_out():
    bad = answer(ids=(CANARY, f"{CANARY}\n", "x" * 129 + CANARY))
    one = bad.passages[0]
    odd = replace(one.findings[0], rule=CANARY, hazard=CANARY, kind=CANARY, severity=CANARY, verdict=CANARY)
    one = replace(one, findings=(odd,), action=CANARY, stance=CANARY, unchecked={CANARY: CANARY})
    bad = replace(bad, passages=(one,), policy=CANARY, policy_sha256=CANARY)
    found = recorded(bad)
    assert not [part for part in PARTS if part in json.dumps(found, ensure_ascii=False)]
    assert found["passages"][0]["id"] == "hmac:" + KEY.digest(CANARY)
    assert found["passages"][0]["action"] == "other"


def test_every_field_of_the_guards_values_was_thought_of():
    """A field that is new has to be recorded or left out on purpose."""
    assert {f.name for f in fields(GuardedAnswer)} == {
        "query", "question", "passages", "withheld", "disagreements", "confirmations", "review", "notes", "unchecked",
        "not_run", "policy", "policy_sha256", "seconds",
    }  # fmt: skip
    assert {f.name for f in fields(GuardedPassage)} == {
        "passage", "rank", "retrieved_rank", "action", "reasons", "findings", "stance", "confidence", "unchecked",
        "annotated",
    }  # fmt: skip
    assert {f.name for f in fields(Finding)} == {
        "hazard", "verdict", "kind", "severity", "confidence", "query_span", "passage_span", "query_normal",
        "passage_normal", "cue", "rule", "sentence",
    }  # fmt: skip


def test_ids_can_be_hashed_and_stay_equal_to_themselves():
    found = recorded(passage_id="hashed")
    ids = [one["id"] for one in found["passages"]]
    assert ids == ["hmac:" + KEY.digest("note-1"), "hmac:" + KEY.digest("note-2")]
    assert found["disagreements"][0]["first"] == ids[0]
    assert found["confirmations"][0]["passage"] == ids[0]
    assert (
        recorded(answer(ids=("hmac:x", "b", "c")))["passages"][0]["id"] != "hmac:x"
    )  # cannot pass for a hash
    with pytest.raises(UsageError, match="plain or hashed"):
        recorded(passage_id="none")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_number_that_is_none_is_null(value):
    given = answer()
    given = replace(given, seconds=value, passages=(replace(given.passages[0], confidence=value),))
    assert recorded(given)["milliseconds"] is None
    assert recorded(given)["passages"][0]["confidence"] is None


def test_the_canary_is_in_no_log_no_database_no_message_and_no_logging(tmp_path, caplog, capfd):
    caplog.set_level(logging.DEBUG)
    caplog.set_level(logging.DEBUG, logger="sqlalchemy.engine")
    file, base = (
        JsonlLog(tmp_path / "log.jsonl", KEY, sync=False),
        SqlLog(f"sqlite:///{tmp_path}/log.db", KEY),
    )
    said: list[str] = []
    for log in (file, base):
        log.create()
        log.append(recorded())
        log.append(recorded(answer(ids=(CANARY, CANARY + " 2", CANARY + " 3"))))
        for bad in ({"event": CANARY}, {"event": "x", CANARY: 1}, {"event": "x", "n": {CANARY}}):
            with pytest.raises(
                ClinsafeError
            ) as caught:  # a caller who hands in text is told without its text
                log.append(bad)
            said.append(repr(caught.value) + str(caught.value) + repr(caught.value.__cause__))
    assert file.verify() == base.verify() == ()
    assert "SQL parameters hidden" in caplog.text
    assert "clinsafe_log" in caplog.text  # the search would find what was logged
    # a text that got in by force is not repeated by who finds it; SQLAlchemy's own log of rows is off by default
    caplog.set_level(logging.WARNING, logger="sqlalchemy.engine")
    file.path.write_text(file.path.read_text() + f"{CANARY}\n")
    with sqlite3.connect(tmp_path / "log.db") as raw:
        raw.execute("insert into clinsafe_log values (4, ?, ?, ?, ?)", [CANARY] * 4)
    raw.close()
    said += [*file.verify(), *base.verify()]
    for log in (file, base):
        with pytest.raises(ClinsafeError) as caught:
            log.append(recorded())
        said.append(str(caught.value))
    base.close()
    assert len(said) == 10
    seen = " ".join(said) + caplog.text + "".join(capfd.readouterr())
    assert not [part for part in PARTS if part in seen]


def test_the_canary_is_not_in_the_bytes_on_disk(tmp_path):
    file, base = (
        JsonlLog(tmp_path / "log.jsonl", KEY, sync=False),
        SqlLog(f"sqlite:///{tmp_path}/log.db", KEY),
    )
    for log in (file, base):
        log.create()
        log.append(recorded())
    on_disk = b"".join(path.read_bytes() for path in tmp_path.iterdir())
    base.close()
    assert b"note-1" in on_disk  # the search would find what is there
    assert not [part for part in PARTS if part.encode() in on_disk]


def test_an_id_that_was_made_of_a_text_is_hashed_with_the_key() -> None:
    from clinsafe.adapters.retrievers import passages

    made = passages(["a short text that can be guessed"])[0][0].id
    row = GuardedPassage(Passage(made, "a short text that can be guessed"), 1, 1, "keep")
    answer = GuardedAnswer("q", False, (row,))
    found = record_of(answer, digest=lambda text: f"keyed{len(text)}", now=NOON)
    assert found["passages"][0]["id"] == f"hmac:keyed{len(made)}"
