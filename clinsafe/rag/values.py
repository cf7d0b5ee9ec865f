"""What was measured on one question: names and numbers, never a text.

Every measuring function returns `Values`; a run writes one `ItemRecord` a question; every printed figure is derived
from those records alone (`clinsafe.rag.figures`), so that a reader of the evidence can derive it again. What happened
or did not is 1.0 or 0.0. What could not be measured has a reason instead of a number and enters no figure.

Names (i and j are ranks from 1; see `clinsafe.rag.metrics` for the list with ranges and directions)::

    contexts                 how many passages there were
    hit  hit_at.i            R(c, reference) = 1 for any passage; for the passage at rank i       (decision D9)
    level_at.i               which level fired: 0 none, 1 substring, 2 token recall, 3 cosine
    safe_hit  safe_at.i      a hit without a clinical conflict in the matched window
    conflict.HAZARD          a matched window contradicts the reference in this hazard
    overlap.i_j              embedding cosine of two passages
    recall precision ap rr ndcg      from graded relevance; recall without a relevant passage is not measured
    rr_cascade ap_cascade    the same from R
    covered                  the corpus holds an eligible passage
    exact fuzzy rouge_l token_f1 token_precision token_recall semantic list_f1
    abstained  correct  correct_by.CRITERION     the paper's rule (Table II) and which of its criteria were met
    contradicts.HAZARD  safe_correct             the answer contradicts the reference; correct without that
    chosen.OPTION  undecided  mcq_correct        of a multiple choice
    context_relevancy  context_relevancy.i  answer_relevancy  adherence       a judge's, in [0, 1]
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from pydantic import FiniteFloat

from clinsafe.content import Record
from clinsafe.rag.item import Item


@dataclass(slots=True)
class Values:
    """Names to numbers, and names to the reason why there is no number.

    A name is in one of the two, never in both.
    """

    values: dict[str, float] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)

    def add(self, name: str, value: float | bool | None, why: str = "") -> None:
        """Keep a number, or the reason for None (a few words, the same for every question of that kind)."""
        if value is None:
            self.missing[name] = why or "not measured"
        else:
            self.values[name] = float(value)

    def update(self, other: Values) -> None:
        """Take all of another's."""
        self.values.update(other.values)
        self.missing.update(other.missing)


class ItemRecord(Record):
    """One question in the evidence.

    Attributes:
        id: of the question.
        slices: group -> value; the type of task is the slice ``task``.
        values: name -> number.
        missing: name -> why there is no number.
    """

    id: str
    slices: Mapping[str, str] = {}
    values: Mapping[str, FiniteFloat]
    missing: Mapping[str, str] = {}


def record(item: Item, measured: Values) -> ItemRecord:
    """The record of one question; the type of its task becomes a slice."""
    slices = {**item.slices, **({"task": item.task} if item.task else {})}
    return ItemRecord(id=item.id, slices=slices, values=measured.values, missing=measured.missing)
