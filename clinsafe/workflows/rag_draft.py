"""The trace of one question of the reference pipeline, as it comes about."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from clinsafe.adapters.generators import Completion
from clinsafe.adapters.local_generator import PromptTooLong
from clinsafe.errors import ClinsafeError
from clinsafe.guarded import GuardedAnswer
from clinsafe.protocols import Passage
from clinsafe.rag.fusion import Found, Hit
from clinsafe.rag.keeping import Kept
from clinsafe.rag.prompts import Prompt, Setting, Shown
from clinsafe.rag.question import Question
from clinsafe.rag.trace import Trace, TraceText
from clinsafe.version import VERSION


class Draft:
    """What was told of one question so far.

    Args:
        kept: whether texts are written.
        setting: what the model is shown.
        versions: of what answers.

    Attributes:
        error: why there is no answer; None where nothing failed.
    """

    def __init__(self, kept: Kept, setting: Setting, versions: Mapping[str, str]) -> None:
        self.kept, self._versions = kept, dict(versions)
        self.error: ClinsafeError | None = None
        self._begun, self._time = time.perf_counter(), datetime.now(UTC)
        self._times: dict[str, float] = {}
        self._fields: dict[str, Any] = {}
        self._setting, self._texts = setting, dict[str, str]()

    def took(self, name: str, begun: float) -> None:
        """A stage is over."""
        self._times[name] = (time.perf_counter() - begun) * 1000

    def found(self, found: Found) -> None:
        """What was retrieved: all of the fused ranking, with the texts of what is shown."""
        self._texts = {one.id: one.text for one in found.passages}
        sources: dict[str, Passage] = {one.id: one for one in found.passages}
        self._times |= {name: ms for name, ms in found.milliseconds.items() if name != "total"}
        self._times["retrieval"] -= found.milliseconds.get("rerank", 0.0)
        self._fields["retrieved"] = self._hits(found.fused, sources)
        if found.reranked is not None:
            self._fields["reranked"] = self._hits(found.reranked, {})
        self._fields["context"] = [
            {"id": self._id(one.id), "rank": rank} for rank, one in enumerate(found.passages, start=1)
        ]

    def _hits(self, hits: Sequence[Hit], shown: Mapping[str, Passage]) -> list[dict[str, Any]]:
        rows = []
        for rank, one in enumerate(hits, start=1):
            row: dict[str, Any] = {"id": self._id(one.id), "rank": rank, "score": one.score}
            if one.id in shown:
                row["content"] = self.kept.text(shown[one.id].text)
                if self.kept.texts and shown[one.id].source:
                    row["source"] = shown[one.id].source
            rows.append(row)
        return rows

    def guarded(self, answer: GuardedAnswer) -> None:
        """What the guard did, and what is shown now."""
        rows = [
            {
                "id": self._id(one.passage.id), "retrieved_rank": one.retrieved_rank, "rank": one.rank,
                "action": one.action, "rules": [self.kept.code(f.rule) for f in one.findings if f.rule],
                "unchecked": [self.kept.code(name) for name in one.unchecked],
            }
            for one in (*answer.passages, *answer.withheld)
        ]  # fmt: skip
        told = {"policy": self.kept.code(answer.policy or "unnamed"), "needs_review": answer.needs_review}
        self._fields["guard"] = [{**told, "disagreements": len(answer.disagreements), "passages": rows}]
        self._fields["context"] = [
            {"id": self._id(one.passage.id), "rank": one.rank} for one in answer.passages
        ]

    def asked(self, prompt: Prompt, shown: Sequence[Shown]) -> None:
        """The prompt; a passage has a span where its own text, without the guard's marks, stands in it."""
        self._fields["prompt"] = self.kept.text(prompt.text)
        self._versions["prompt"] = prompt.version
        if self._setting == "direct":
            return
        rows = []
        for rank, (one, span) in enumerate(zip(shown, prompt.spans, strict=True), start=1):
            row: dict[str, Any] = {"id": self._id(one.id), "rank": rank}
            if self._texts.get(one.id, one.text) == one.text:
                row["span"] = span
            rows.append(row)
        self._fields["context"] = rows

    def answered(self, found: Completion) -> None:
        """The answer."""
        self._fields["answer"] = self.kept.text(found.text)
        if found.usage is not None:
            self._fields["tokens"] = {"prompt": found.usage[0], "completion": found.usage[1]}

    def done(
        self, name: str, question: Question, eligible: tuple[str, ...] | None, corpus: str | None
    ) -> Trace:
        """The trace."""
        self._times["total"] = (time.perf_counter() - self._begun) * 1000
        kept = self.kept
        if isinstance(self.error, PromptTooLong):  # it was never sent
            sent = self._fields["prompt"]
            self._fields["prompt"] = TraceText(length=sent.length, hmac=sent.hmac)
        ids = None if eligible is None else [self._id(one) for one in eligible]
        references = [kept.text(one) for one in question.references]
        options = {kept.code(key): kept.text(text) for key, text in (question.options or {}).items()}
        fields: dict[str, Any] = {
            **self._fields,
            "query": kept.text(question.text),
            "query_id": self._id(question.id),
            "task": question.task or ("mcq" if question.options else None),
            "slices": {kept.code(key): kept.code(value) for key, value in question.slices.items()} or None,
            "corpus": corpus,
            "eligible": ids,
            "relevance": None if ids is None else dict.fromkeys(ids, 1.0),
            "reference": references[0] if len(references) == 1 else None,
            "references": references if len(references) > 1 else None,
            "expected": None if question.expected is None else kept.code(question.expected),
            "options": options or None,
            "versions": self._versions,
            "timings": {key: round(max(ms, 0.0), 3) for key, ms in self._times.items()},
            "error": None if self.error is None else type(self.error).__name__,
        }
        return Trace.model_validate(
            {
                **fields,
                "id": name,
                "time": self._time.isoformat(timespec="milliseconds").replace("+00:00", "Z"),
                "tool": VERSION,
                "outcome": "answered" if self.error is None else "error",
            }
        )

    def _id(self, name: str) -> str:
        return self.kept.id(name, 0)
