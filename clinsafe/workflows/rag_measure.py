"""What is measured on a batch of questions: retrieval, generation, and what the judge says; no figure is made here."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol

from clinsafe.content import Content
from clinsafe.protocols import Judgement, JudgeTask, ModelIdentity
from clinsafe.rag.clash import Conflicts
from clinsafe.rag.generation import generation_values
from clinsafe.rag.item import Item
from clinsafe.rag.judging.recorded import RecordedJudge
from clinsafe.rag.normalise import Normaliser
from clinsafe.rag.relevance import relevance
from clinsafe.rag.retrieval import retrieval_values
from clinsafe.rag.settings import Settings
from clinsafe.rag.values import ItemRecord, Values
from clinsafe.rag.vectors import CachedEncoder

CONTEXT, ANSWER, ADHERENCE = "context_relevancy", "answer_relevancy", "adherence"
JUDGED = (CONTEXT, ANSWER, ADHERENCE)
SAID = "judge "  # begins the reason of what a judge was asked and did not score; then its outcome


class BatchJudge(Protocol):
    """A judge that takes many tasks at once."""

    identity: ModelIdentity

    def judge_many(self, tasks: Sequence[JudgeTask], /) -> Sequence[Judgement]:
        """One judgement a task, in their order."""
        ...


@dataclass(slots=True)
class Instruments:
    """What measures.

    Attributes:
        settings: thresholds, k, steps.
        normaliser: of contexts, answers and references.
        content: content tree with the words of lists, choices and abstentions.
        encoder: for level 3 of R and semantic similarity; None: both are not measured.
        conflicts: the filters; None: nothing that starts with ``safe`` is measured.
        judge: None: nobody judges; ``recorded`` takes the grades that came with the traces.
        grader: with ``recorded``, whose grades; "" takes anybody's.
    """

    settings: Settings
    normaliser: Normaliser
    content: Content | None = None
    encoder: CachedEncoder | None = None
    conflicts: Conflicts | None = None
    judge: BatchJudge | None = None
    recorded: bool = False
    grader: str = ""

    def measure(self, items: Sequence[Item]) -> list[Values]:
        """One `Values` a question; all texts of the batch are encoded together."""
        normalise, thresholds = self.normaliser.normalise, self.settings.thresholds
        matches = relevance(items, normalise, self.settings, self.encoder)
        found = retrieval_values(items, matches, self.settings, self.encoder, self.conflicts)
        encode = self.encoder.encode if self.encoder is not None else None
        answers = generation_values(
            items, normalise, thresholds, encode, self.conflicts, content=self.content
        )
        judged = self._judged(items)
        for values, generated, said in zip(found, answers, judged, strict=True):
            values.update(generated)
            values.update(said)
        return found

    def _judged(self, items: Sequence[Item]) -> list[Values]:
        found = [Values() for _ in items]
        asked = [
            (row, name, task)
            for row, item in enumerate(items)
            for name, task in self._named(item, found[row])
        ]
        if self.judge is None:
            for values in found:
                for name in (CONTEXT, ANSWER, ADHERENCE):
                    values.add(name, None, "no judge")
            return found
        if self.recorded:  # a grade belongs to its question alone: two may read alike
            said = [RecordedJudge([items[row]], self.grader or None).judge(task) for row, _, task in asked]
        else:
            said = list(self.judge.judge_many([task for *_, task in asked])) if asked else []
        for (row, name, _), judgement in zip(asked, said, strict=True):
            value = judgement.value if judgement.outcome == "scored" else None
            found[row].add(name, value, f"{SAID}{judgement.outcome}: {judgement.reason or 'no reason given'}")
        for values in found:
            _mean_of_contexts(values)
        return found

    def tasks(self, item: Item) -> list[JudgeTask]:
        """What the judge would be asked about a question."""
        return [task for _, task in self._named(item, Values())]

    def _named(self, item: Item, values: Values) -> list[tuple[str, JudgeTask]]:
        """What can be asked of a question; what cannot is noted as missing."""
        contexts = None if item.contexts is None else [c.text for c in item.contexts][: self.settings.k]
        question, answer = item.question or "", item.answer or ""
        if self.recorded:  # grades are by question, not by passage
            names: tuple[str, ...] = JUDGED
            if item.answer is None:  # whatever a grade says: there is nothing that could adhere
                names = (CONTEXT,)
                for name in (ANSWER, ADHERENCE):
                    values.add(name, None, "there is no answer")
            return [(name, JudgeTask(name, question, answer, contexts or ())) for name in names]
        tasks: list[tuple[str, JudgeTask]] = []
        if item.question is None or contexts is None:
            values.add(CONTEXT, None, "the question or its passages are not known")
        for rank, text in enumerate(contexts or (), start=1):
            if item.question is not None:
                tasks.append((f"{CONTEXT}.{rank}", JudgeTask(CONTEXT, question, "", [text])))
        if item.answer is None or item.question is None:
            values.add(ANSWER, None, "the question or its answer is not known")
        else:
            tasks.append((ANSWER, JudgeTask(ANSWER, question, answer, ())))
        if item.answer is None or contexts is None:
            values.add(ADHERENCE, None, "the answer or the passages are not known")
        else:
            tasks.append((ADHERENCE, JudgeTask(ADHERENCE, question, answer, contexts)))
        return tasks


def _mean_of_contexts(values: Values) -> None:
    """Relevancy of a question's passages: their mean, where every one of them was scored."""
    if CONTEXT in values.values or CONTEXT in values.missing:
        return
    start = f"{CONTEXT}."
    scored = [value for name, value in values.values.items() if name.startswith(start)]
    lost = [why for name, why in values.missing.items() if name.startswith(start)]
    if lost or not scored:
        values.add(CONTEXT, None, lost[0] if lost else "there are no passages")
    else:
        values.add(CONTEXT, sum(scored) / len(scored))


def told(items: Iterable[ItemRecord]) -> tuple[dict[str, dict[str, int]], dict[str, int]]:
    """What a judge said, counted from the records: metric -> outcome -> tasks, and why tasks were not scored -> tasks.

    A question's relevancy of contexts is the mean of its passages', which are counted instead.
    """
    outcomes: dict[str, Counter[str]] = {}
    reasons: Counter[str] = Counter()
    for item in items:
        by_rank = any(name.startswith(f"{CONTEXT}.") for name in (*item.values, *item.missing))
        names = [name for name in (*item.values, *item.missing) if name.partition(".")[0] in JUDGED]
        for name in names:
            metric, why = name.partition(".")[0], item.missing.get(name, "")
            if (by_rank and name == CONTEXT) or (why and not why.startswith(SAID)):
                continue
            outcome, _, reason = why.removeprefix(SAID).partition(": ") if why else ("scored", "", "")
            outcomes.setdefault(metric, Counter())[outcome] += 1
            if why:
                reasons[f"{metric}: {reason}"] += 1
    plain = {metric: dict(sorted(found.items())) for metric, found in sorted(outcomes.items())}
    return plain, dict(sorted(reasons.items()))
