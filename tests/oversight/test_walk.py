"""Every attack on the chain is seen, named, and its first altered record given; an honest log is intact."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest
import rfc8785

from clinsafe.errors import UsageError
from clinsafe.oversight.chain import GENESIS, Row, Unreadable, authentic, link, parse, refuse_text
from clinsafe.oversight.walk import Fault, inspect, walk
from tests.oversight.kit import KEY, KEYS, LOG_ID, OTHER, chained, decision, placed

N = 12
BOTH = {**KEYS, OTHER.id: OTHER}


def forged(seq: int, prev: str) -> Row:
    """A record made by somebody without the log's key."""
    return link(OTHER, prev, seq, decision(999))


def without(rows: Sequence[Row], *numbers: int) -> list[Row]:
    return [row for row in rows if row.seq not in numbers]


def changed(rows: Sequence[Row], which: int, **fields: object) -> list[Row]:
    return [replace(row, **fields) if row.seq == which else row for row in rows]


def put(rows: Sequence[Row], before: int, row: Row) -> list[Row]:
    at = before - 1
    return [*rows[:at], row, *rows[at:]]


def swapped(rows: Sequence[Row], first: int, second: int) -> list[Row]:
    out = list(rows)
    out[first - 1], out[second - 1] = out[second - 1], out[first - 1]
    return out


def renumbered(rows: Sequence[Row], gone: int) -> list[Row]:
    """A record cut out, and the numbers and links after it mended by somebody without the key."""
    out = without(rows, gone)
    for at in range(gone - 1, len(out)):
        out[at] = replace(out[at], seq=at + 1, prev=out[at - 1].mac)
    return out


HONEST = chained(N)
SECOND = chained(N, log_id="b" * 32, start=500)  # another log with the same key
ATTACKS: dict[str, tuple[Callable[[], Sequence[Row | Unreadable]], str, int]] = {
    "text changed": (lambda: changed(HONEST, 7, text=HONEST[6].text.replace('"n":6', '"n":7')), "changed", 7),
    "code changed": (lambda: changed(HONEST, 7, mac="0" * 64), "changed", 7),
    "link changed": (lambda: changed(HONEST, 7, prev="0" * 64), "changed", 7),
    "first changed": (lambda: changed(HONEST, 1, text=HONEST[0].text.replace("12:00", "12:01")), "changed", 1),
    "first's key changed": (lambda: changed(HONEST, 1, text=HONEST[0].text.replace(KEY.id, OTHER.id)), "changed", 1),
    "last changed": (lambda: changed(HONEST, N, text="{}"), "changed", N),
    "one cut out": (lambda: without(HONEST, 5), "missing", 5),
    "several cut out": (lambda: without(HONEST, 5, 6, 7), "missing", 5),
    "first cut out": (lambda: without(HONEST, 1), "missing", 1),
    "cut out, numbers mended": (lambda: renumbered(HONEST, 5), "changed", 5),
    "neighbours swapped": (lambda: swapped(HONEST, 5, 6), "reordered", 5),
    "far ones swapped": (lambda: swapped(HONEST, 3, 9), "reordered", 3),
    "first swapped": (lambda: swapped(HONEST, 1, 2), "reordered", 1),
    "moved to the end": (lambda: [*without(HONEST, 4), HONEST[3]], "reordered", 4),
    "doubled in place": (lambda: put(HONEST, 6, HONEST[4]), "duplicated", 6),
    "doubled at the end": (lambda: [*HONEST, HONEST[2]], "duplicated", N + 1),
    "a later one doubled": (lambda: put(HONEST, 5, HONEST[9]), "inserted", 5),
    "a forged one put in": (lambda: put(HONEST, 5, forged(5, HONEST[3].mac)), "inserted", 5),
    "a forged one at the end": (lambda: [*HONEST, forged(N + 1, HONEST[-1].mac)], "changed", N + 1),
    "one of another log put in": (lambda: put(HONEST, 5, SECOND[4]), "inserted", 5),
    "one of another log in its place": (lambda: changed(HONEST, 5, **vars_of(SECOND[4])), "changed", 5),
    "number changed": (lambda: changed(HONEST, 7, seq=8), "changed", 7),
    "written anew with another key": (lambda: chained(N, OTHER), "wrong_key", 1),
    "written anew, named after the old key": (
        lambda: relinked(OTHER, chained(N)), "changed", 1),
    "goes on with another key": (lambda: [*HONEST[:6], *relinked(OTHER, HONEST[6:], HONEST[5].mac)], "changed", 7),
    "a number left out by the key's holder": (
        lambda: [*HONEST[:4], link(KEY, HONEST[3].mac, 6, decision(6))], "missing", 5),
    "not readable": (lambda: [*HONEST[:6], Unreadable("line 7", "it is not UTF-8"), *HONEST[7:]], "unreadable", 7),
    "a line of rubbish put in": (lambda: put(HONEST, 7, Unreadable("line 7", "no record")), "inserted", 7),  # type: ignore[arg-type]
    "empty": (list, "missing", 1),
}  # fmt: skip


def vars_of(row: Row) -> dict[str, object]:
    return {"seq": row.seq, "prev": row.prev, "mac": row.mac, "text": row.text}


def relinked(key: object, rows: Sequence[Row], prev: str = GENESIS) -> list[Row]:
    """The same records with codes of another key."""
    out: list[Row] = []
    for row in rows:
        out.append(link(key, out[-1].mac if out else prev, row.seq, row.record))  # type: ignore[arg-type]
    return out


@pytest.mark.parametrize("name", ATTACKS)
def test_each_attack_is_named_with_the_first_altered_record(name):
    attack, kind, seq = ATTACKS[name]
    rows = attack()
    fault = walk(KEYS, [replace(row, place=f"line {n}") for n, row in enumerate(rows, start=1)])
    assert fault is not None
    assert (fault.kind, fault.seq) == (kind, seq), fault
    if rows:  # where it shows: the line at which the walk stopped
        assert fault.place == f"line {seq}"
    assert f"record {seq}" in str(fault)
    assert "\n" not in str(fault)


@pytest.mark.parametrize("n", [1, 2, N])
def test_an_honest_log_is_intact(n):
    found = inspect(KEYS, chained(n), wanted=[1, n])
    assert found.fault is None
    assert (found.count, found.log_id, found.key_id) == (n, LOG_ID, KEY.id)
    assert found.macs == {1: HONEST[0].mac, n: HONEST[n - 1].mac}


def faults_of(verifier: Callable[..., Fault | None]) -> int:
    """Answers that a verifier gets wrong: on each attack and on as many honest logs."""
    wrong = 0
    for attack, _, seq in ATTACKS.values():
        found = verifier(KEYS, attack())
        wrong += found is None or found.seq != seq
    return wrong + sum(verifier(KEYS, chained(n)) is not None for n in range(1, len(ATTACKS) + 1))


def codes_alone(keys, rows):
    """A verifier that forgets the links."""
    for n, row in enumerate(rows, start=1):
        if not authentic(row, KEY):
            return Fault("changed", n, "", "")
    return None


def links_alone(keys, rows):
    """A verifier that forgets the key."""
    prev = GENESIS
    for n, row in enumerate(rows, start=1):
        if isinstance(row, Unreadable) or (row.seq, row.prev) != (n, prev):
            return Fault("changed", n, "", "")
        prev = row.mac
    return None


def test_no_verifier_that_looks_less_passes_for_this_one():
    assert faults_of(walk) == 0
    half = len(ATTACKS)
    assert faults_of(lambda keys, rows: None) == half  # disabled, or always intact
    assert faults_of(lambda keys, rows: Fault("changed", 1, "", "")) >= half  # always altered
    assert faults_of(codes_alone) >= 8
    assert faults_of(links_alone) >= 5


def test_what_is_after_a_changed_key_needs_that_key():
    rows = chained(4)
    rotated = link(KEY, rows[-1].mac, 5, {"event": "rotated", "key_id": OTHER.id})
    resumed = link(OTHER, rotated.mac, 6, {"event": "resumed"})
    later = link(OTHER, resumed.mac, 7, decision(7))
    whole = placed([*rows, rotated, resumed, later])
    assert walk(BOTH, whole) is None
    fault = walk(KEYS, whole)
    assert fault is not None
    assert (fault.kind, fault.seq) == ("wrong_key", 6)
    assert OTHER.id in fault.detail
    back = link(KEY, later.mac, 8, decision(8))  # who has the old key alone cannot go on
    fault = walk(BOTH, placed([*whole, back]))
    assert fault is not None
    assert (fault.kind, fault.seq) == ("wrong_key", 8)


def test_a_row_is_rfc_8785_and_its_code_covers_number_link_and_record():
    row = link(KEY, GENESIS, 3, {"b": [1, 2.5, None, True], "a": "é"})
    whole = json.loads(row.line)
    assert rfc8785.dumps(whole).decode() == row.line
    assert rfc8785.dumps({k: whole[k] for k in ("prev", "record", "seq")}) == row.body
    assert parse(row.line.encode(), "x") == replace(row, place="x")
    for other in (replace(row, seq=4), replace(row, prev="1" * 64), replace(row, text="{}")):
        assert not authentic(other, KEY)
    assert authentic(row, KEY)
    assert not authentic(row, OTHER)


@pytest.mark.parametrize("record", [
    {"note": "the patient is allergic"}, {"a": {"b": ["x", "two words"]}}, {"two words": 1}, {"a": "tab\there"},
    {"a": "x" * 201}, {"a": "nul\x00"}, {"a": "no\u00a0break"},
])  # fmt: skip
def test_a_record_that_holds_text_is_refused_and_not_quoted(record):
    with pytest.raises(UsageError) as caught:
        refuse_text(record)
    assert "words" not in str(caught.value)
    assert "allergic" not in str(caught.value)


@pytest.mark.parametrize("record", [{"a": float("nan")}, {"a": 2**60}, {"a": {1, 2}}, {"a": "\ud800"}])
def test_what_is_no_json_is_refused(record):
    with pytest.raises(UsageError):
        link(KEY, GENESIS, 1, record)
