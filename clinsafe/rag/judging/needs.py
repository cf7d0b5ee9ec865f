"""What a judge is asked for, and what it needs before it can be asked at all."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, get_args

from clinsafe.protocols import Judgement, JudgeTask
from clinsafe.rag.generation.abstention import abstains

Metric: TypeAlias = Literal["context_relevancy", "answer_relevancy", "adherence", "support", "correctness"]
METRICS: tuple[Metric, ...] = get_args(Metric)
Part: TypeAlias = Literal["question", "answer", "contexts", "reference"]
NEEDS: dict[str, tuple[Part, ...]] = {
    "context_relevancy": ("question", "contexts"),
    "answer_relevancy": ("question", "answer"),
    "adherence": ("answer", "contexts"),
    "support": ("answer", "contexts"),
    "correctness": ("answer", "reference"),
}
ABSTAINED = "abstained"
_OF_ANSWERS = ("answer_relevancy", "adherence", "correctness")
_WORD = re.compile(r"[^\W_]")


def unscored(reason: str, rationale: str = "") -> Judgement:
    """There is no score, for a reason that lies in the question or in the judge's limits."""
    return Judgement("unscored", None, reason, rationale)


def failed(reason: str) -> Judgement:
    """There is no score because something went wrong."""
    return Judgement("error", None, reason)


def unanswerable(task: JudgeTask) -> Judgement | None:
    """Why no judge can score this task; None where it can be asked.

    Reasons: ``unknown metric``, ``no question``, ``empty answer``, ``no contexts``, ``no reference``,
    ``one context at a time``, ``abstained``. An answer that declines is the caller's to count: it adheres to
    nothing and claims nothing.
    """
    if task.metric not in NEEDS:
        return unscored("unknown metric")
    given = {
        "question": task.question,
        "answer": task.answer,
        "contexts": " ".join(task.contexts),
        "reference": task.reference or "",
    }
    for part in NEEDS[task.metric]:
        if not _WORD.search(given[part]):
            return unscored("empty answer" if part == "answer" else f"no {part}")
    if task.metric == "context_relevancy" and len(task.contexts) != 1:
        return unscored("one context at a time")
    if task.metric in _OF_ANSWERS and abstains(task.answer):
        both = task.metric == "correctness" and abstains(task.reference or "")
        return None if both else unscored(ABSTAINED)
    return None
