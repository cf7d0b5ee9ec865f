"""Grades that came with the traces, as a judge: what somebody else measured, looked up and never made up."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from clinsafe.protocols import Judgement, JudgeTask, ModelIdentity
from clinsafe.rag.item import Grade, Item
from clinsafe.rag.judging.needs import METRICS, failed, unscored

ALIASES = {
    "faithfulness": "adherence",
    "strict_faithfulness": "adherence",
    "groundedness": "adherence",
    "context_adherence": "adherence",
    "answer_relevance": "answer_relevancy",
    "response_relevancy": "answer_relevancy",
    "context_relevance": "context_relevancy",
    "retrieval_relevance": "context_relevancy",
    "answer_correctness": "correctness",
    "factual_correctness": "correctness",
}
"""What other tools call the same thing."""


class RecordedJudge:
    """A `Judge` that looks up `Item.grades`.

    A grade belongs to a question and its answer. Two graders that differ, or a grade outside [0, 1], give no score.

    Args:
        items: whose grades are known.
        grader: whose grades count; None: anybody's.
    """

    def __init__(self, items: Iterable[Item], grader: str | None = None) -> None:
        self._grades: dict[tuple[str, str, str], list[Grade]] = {}
        for item in items:
            for grade in item.grades:
                metric = _metric(grade.metric)
                if metric is not None and grader in (None, grade.grader):
                    key = (metric, item.question or "", item.answer or "")
                    self._grades.setdefault(key, []).append(grade)
        self.identity = ModelIdentity("recorded", settings={"grader": grader or "any"})

    def judge(self, task: JudgeTask, /) -> Judgement:
        """The grade that was recorded for this question, answer and metric."""
        grades = self._grades.get((task.metric, task.question, task.answer), [])
        if not grades:
            return unscored("not recorded")
        values = {grade.value for grade in grades}
        if len(values) > 1:
            return unscored("recorded grades disagree")
        value = values.pop()
        if value is None:
            return unscored(grades[0].reason or "recorded without a score")
        if not 0 <= value <= 1:  # NaN too
            return failed("recorded grade out of range")
        return Judgement("scored", float(value), "recorded")

    def judge_many(self, tasks: Sequence[JudgeTask], /) -> list[Judgement]:
        """In their order."""
        return [self.judge(task) for task in tasks]


def _metric(name: str) -> str | None:
    plain = name.strip().lower().replace("-", "_").replace(" ", "_")
    plain = ALIASES.get(plain, plain)
    return plain if plain in METRICS else None
