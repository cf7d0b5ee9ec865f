"""The blind second reader: labels of people or models who did not write the cases, tied to the text they read.

Two sentences contradict only if a reader says so. A sentence that was changed after it was read counts as unread.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from clinsafe.benchmarks.suite import FOLDER, Case
from clinsafe.content import Content, Record
from clinsafe.stats import Estimate, rate_of

Label = Literal["contradiction", "same", "neither"]
INTENDED: dict[str, Label] = {"a|b": "contradiction", "a|a_same": "same", "b|b_same": "same"}


class Reading(Record):
    """The label of one pair; `text_sha256` ties it to the sentences that were read."""

    id: str
    pair: Literal["a|b", "a|a_same", "b|b_same"]
    label: Label
    text_sha256: str


def pair_hash(case: Case, pair: str) -> str:
    """First 16 hex digits of the SHA-256 of the two sentences of a pair."""
    left, right = pair.split("|")
    return hashlib.sha256(f"{getattr(case, left)}\n{getattr(case, right)}".encode()).hexdigest()[:16]


def second_reader(content: Content, cases: Sequence[Case]) -> tuple[list[tuple[str, str]], list[str]]:
    """(facts, problems): agreement of intent and reader with Cohen's kappa, and every pair where they part."""
    labels = content.jsonl(f"{FOLDER}/second_reader.jsonl", Reading)
    readings: dict[tuple[str, str], Reading] = {(r.id, r.pair): r for r in labels}
    table = Counter[tuple[str, str]]()
    problems = [
        f"{i}: {p} was labelled twice"
        for (i, p), k in Counter((r.id, r.pair) for r in labels).items()
        if k > 1
    ]
    for case in cases:
        for pair, intended in INTENDED.items():
            reading = readings.get((case.id, pair))
            if reading is None or reading.text_sha256 != pair_hash(case, pair):
                problems.append(
                    f"{case.id}: {pair} was {'changed since the' if reading else 'not read by a'} second reader"
                )
                continue
            table[intended, reading.label] += 1
            if reading.label != intended:
                problems.append(
                    f"{case.id}: the second reader calls {pair} {reading.label!r}, not {intended!r}"
                )
    agreed, n = sum(k for (x, y), k in table.items() if x == y), table.total()
    agreement = rate_of(agreed, n)
    text = "none"
    if isinstance(agreement, Estimate) and agreement.low is not None:
        text = f"κ = {kappa(table):z.3f}, agreement {agreed}/{n} [{agreement.low:.3f}, {agreement.high:.3f}] exact 95 %"
    return [("second reader, blind", text)], problems


def kappa(table: Counter[tuple[str, str]]) -> float:
    """Cohen's kappa of a table (first label, second label) -> count."""
    n = table.total()
    rows, columns = Counter[str](), Counter[str]()
    for (first, second), count in table.items():
        rows[first] += count
        columns[second] += count
    observed = sum(count for (first, second), count in table.items() if first == second) / n
    expected = sum(rows[label] * columns[label] for label in rows) / n**2
    return 1.0 if expected == 1 else (observed - expected) / (1 - expected)
