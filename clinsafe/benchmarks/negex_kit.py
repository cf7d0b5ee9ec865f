"""The NegEx test kit (github.com/chapmanbe/negex, Apache-2.0): is this concept negated in this sentence?

It has no held-out part. Rows whose SHA-256(id) is divisible by 3 are for tuning; figures are claimed on the rest.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from clinsafe.benchmarks.ordinary import rows
from clinsafe.errors import ContentError
from clinsafe.protocols import MetricKey
from clinsafe.stats import Estimate, Figure, NotMeasured, rate_of

NegationJudge: TypeAlias = Callable[[str, str], bool | None]
"""Sentence and concept -> negated or not; None where it did not find the concept, which counts as affirmed."""


@dataclass(frozen=True, slots=True)
class NegexRow:
    """One row; `claim` says that it belongs to the part on which figures may be claimed."""

    id: str
    concept: str
    sentence: str
    negated: bool
    claim: bool


def load_kit(path: Path) -> list[NegexRow]:
    """All rows of the kit.

    Raises:
        ContentError: a row lacks a field.
    """
    found = []
    for number, row in enumerate(rows(path), start=1):
        try:
            claim = int(hashlib.sha256(row["id"].encode()).hexdigest(), 16) % 3 != 0
            negated = row["negation"] == "negated"
            found.append(NegexRow(row["id"], row["concept"], row["sentence"], negated, claim))
        except (KeyError, AttributeError) as error:
            what = "a row needs id, concept, sentence and negation"
            raise ContentError(path, number, None, what) from error
    return found


def negex_figures(
    kit: Sequence[NegexRow], judge: NegationJudge, slice_: str | None = None
) -> dict[str, Figure]:
    """Precision, recall and F1 of *negated* on these rows.

    Returns:
        ``negex.negation.precision``, ``.recall`` (exact intervals), ``.f1_negated`` (no interval: F1 is no rate), and
        ``.not_found``, the share of concepts that the judge did not find.
    """
    answers = [judge(row.sentence, row.concept) for row in kit]
    pairs = [(row.negated, answer is True) for row, answer in zip(kit, answers, strict=True)]
    hits = pairs.count((True, True))
    said, true = hits + pairs.count((False, True)), hits + pairs.count((True, False))
    f1: Figure = NotMeasured("no negated row", len(kit))
    if said + true:
        f1 = Estimate(
            2 * hits / (said + true), None, None, len(kit), "F1 of negated; descriptive, no interval"
        )

    def key(metric: str) -> str:
        return str(MetricKey("negex", "negation", metric, None, slice_))

    return {
        key("f1_negated"): f1,
        key("precision"): rate_of(hits, said),
        key("recall"): rate_of(hits, true),
        key("not_found"): rate_of(answers.count(None), len(kit)),
    }
