"""All that an endpoint's judge needs to know of rubrics: what to send, and what came back."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from clinsafe.protocols import Judgement, JudgeTask
from clinsafe.rag.judging import repair
from clinsafe.rag.judging.needs import unanswerable, unscored
from clinsafe.rag.judging.prompt import again, prompt
from clinsafe.rag.judging.quotes import unverified
from clinsafe.rag.judging.rubrics import Rubric

VERSION = "1"  # of the prompt's build and of the reading; part of the identity
UNVERIFIED = "unverified quote"


class RubricForm:
    """Tasks to prompts, answers to judgements; `clinsafe.adapters.judge.Form`.

    Args:
        rubrics: by metric, from `clinsafe.rag.judging.rubrics.load_rubrics`.
    """

    def __init__(self, rubrics: Mapping[str, Rubric]) -> None:
        self._rubrics = dict(rubrics)
        self.digests: Mapping[str, str] = {
            name: hashlib.sha256(f"{VERSION}:{rubric.digest}".encode()).hexdigest()
            for name, rubric in self._rubrics.items()
        }

    def unanswerable(self, task: JudgeTask) -> Judgement | None:
        """Why this task is not sent at all."""
        return unanswerable(task) or (None if task.metric in self._rubrics else unscored("unknown metric"))

    def prompt(self, task: JudgeTask, fault: str = "") -> str:
        """What is sent; with the fault of an earlier answer the second time."""
        first = prompt(self._rubrics[task.metric], task)
        return again(first, fault) if fault else first

    def schema(self, task: JudgeTask) -> dict[str, Any]:
        """The JSON schema of the answer."""
        return self._rubrics[task.metric].schema_of_answer

    def read(self, task: JudgeTask, text: str) -> Judgement | tuple[str, str]:
        """The judgement, or the kind of fault and what to tell the model."""
        rubric = self._rubrics[task.metric]
        found = repair.read(text, rubric.verdicts)
        if isinstance(found, repair.Fault):
            if found.kind == "refusal":
                return Judgement("refused", None, "refusal")
            return found.kind, found.detail
        if rubric.quotes == "required":
            if found.score > 0 and not found.quotes:
                return "missing field", "a score above 0 needs quotes, copied from the passages"
            if wrong := unverified(found.quotes, task.contexts):
                told = json.dumps({"unverified": len(wrong), "of": len(found.quotes)})
                return unscored(UNVERIFIED, told)
        return Judgement("scored", found.score, found.verdict, _sendable(found.rationale))


def _sendable(text: str) -> str:
    """Without halves of surrogate pairs, which JSON can hold and no file can."""
    return text.encode("utf-8", "replace").decode()
