"""What a run of the reference pipeline would send: counted from corpus and questions, with no model loaded.

Tokens are counted as words and signs and taken times `FACTOR`; what a model's own tokenizer makes of them is known only
when it runs. For retrieved passages the largest chunks of the corpus are counted: it is a bound, not a forecast.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Iterable
from dataclasses import dataclass

from clinsafe.corpus import Document
from clinsafe.rag.chunks import WordPieces, chunks
from clinsafe.rag.prompts import Prompts, Shown, build
from clinsafe.rag.question import Question
from clinsafe.rag.trace import BadLine
from clinsafe.workflows.rag_pipeline import Arm, Asked

FACTOR = (
    1.4  # tokens for a word or sign; clinical English has 1.2 to 1.5 in the vocabularies of today's models
)


@dataclass(slots=True)
class Estimate:
    """What one way of answering would send.

    Attributes:
        label: of it.
        prompts: how many.
        tokens: in all of them, about and at most.
        answers: tokens of all answers, at most.
    """

    label: str
    prompts: int = 0
    tokens: int = 0
    answers: int = 0


@dataclass(frozen=True, slots=True)
class Dry:
    """A dry run: nothing was sent and nothing written.

    Attributes:
        estimates: one for each way of answering.
        questions: that can be read.
        bad: those that cannot.
        documents, chunks: of the corpus.
    """

    estimates: tuple[Estimate, ...]
    questions: int
    bad: int
    documents: int
    chunks: int


def dry_run(
    questions: Asked, documents: Iterable[Document] | None, arms: tuple[Arm, ...], prompts: Prompts, *, k: int,
    tokens: int, overlap: int, answer: int, limit: int = 0, generates: bool = True,
) -> Dry:  # fmt: skip
    """Count prompts and tokens.

    Args:
        answer: tokens of one answer at most.
        generates: whether there is a generator; without one nothing is sent.
    """
    pieces, largest, whole = WordPieces(), list[int](), dict[str, int]()
    wanted = any(one.setting == "long-context" for one in arms)
    seen = count = 0
    for document in documents or ():
        seen += 1
        length = 0
        for chunk in chunks(document, tokens, overlap, pieces):
            count += 1
            length = chunk.first + chunk.tokens
            (heapq.heappush if len(largest) < k else heapq.heappushpop)(largest, chunk.tokens)
        if wanted and length:
            whole[document.id] = length
    estimates = tuple(Estimate(one.label) for one in arms)
    asked = bad = 0
    for question in questions():
        if isinstance(question, BadLine):
            bad += 1
            continue
        if limit and asked >= limit:
            break
        asked += 1
        for arm, estimate in zip(arms, estimates, strict=True):
            shown = _shown(question, arm, largest, whole)
            if generates and shown is not None:
                empty = build(prompts, arm.setting, question, [Shown("document#00", "") for _ in shown])
                size = len(pieces.offsets(empty.text)) + sum(shown)
                estimate.prompts += 1
                estimate.tokens += math.ceil(FACTOR * size)
                estimate.answers += answer
    return Dry(estimates, asked, bad, seen, count)


def _shown(question: Question, arm: Arm, largest: list[int], whole: dict[str, int]) -> list[int] | None:
    """Lengths of what is shown; None where no prompt is made."""
    if arm.setting == "direct":
        return []
    if arm.setting == "rag":
        return largest
    return [whole[name] for name in dict.fromkeys(question.documents or ()) if name in whole] or None
