"""What an evaluation depends on: thresholds with their sources, and which steps of normalisation are on.

The record of a run holds these; two runs are compared only where they agree.
"""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import Field, FiniteFloat, PositiveInt

from clinsafe.content import Record

Share: TypeAlias = Annotated[FiniteFloat, Field(ge=0, le=1)]
Step: TypeAlias = Literal["abbreviations", "ages", "gender", "case", "whitespace"]
Level: TypeAlias = Literal["substring", "tokens", "cosine"]
LEVELS: tuple[Level, ...] = ("substring", "tokens", "cosine")
STEPS: tuple[Step, ...] = ("abbreviations", "ages", "gender", "case", "whitespace")


class Thresholds(Record):
    """Where a number becomes a yes.

    Attributes:
        overlap: least share of the reference's tokens (multiset) in a passage, level 2 of R (RAG-X, III-B).
        overlap_tokens: references with fewer tokens have no level 2 (decision D9).
        cosine: least cosine of a window of a passage to the reference, level 3 of R (RAG-X, III-B).
        adherence: from here on an answer adheres (RAG-X, III-B).
        fuzzy: least normalised Indel similarity of answer and reference; the paper states none, so this one is ours.
        list_f1: least F1 over the components of a list (RAG-X, Table II).
        semantic: least cosine of answer and reference (RAG-X, Table II).
        redundancy: least cosine at which two passages overlap in meaning; ours.
    """

    overlap: Share = 0.80
    overlap_tokens: PositiveInt = 4
    cosine: Share = 0.75
    adherence: Share = 0.70
    fuzzy: Share = 0.90
    list_f1: Share = 0.70
    semantic: Share = 0.70
    redundancy: Share = 0.90


class Settings(Record):
    """What an evaluation depends on beside the traces and the models.

    Attributes:
        k: how many passages count; the paper's is 3.
        thresholds: where a number becomes a yes.
        normalisation: the steps that are on, in this order.
        levels: of R. Without ``cosine`` R is words alone: it finds less, and every hit rate is a lower bound of the
            paper's.
    """

    k: PositiveInt = 3
    thresholds: Thresholds = Thresholds()
    normalisation: tuple[Step, ...] = STEPS
    levels: tuple[Level, ...] = LEVELS
