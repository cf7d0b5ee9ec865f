"""Haystack: a component that guards documents in a pipeline, sync and async. Needs ``haystack-ai``.

Haystack sends usage data to its makers unless ``HAYSTACK_TELEMETRY_ENABLED`` says no, and looks at it when it is first
imported. Where nobody has said anything, this module says no (decision D11); an application that imports ``haystack``
before it has to say so itself.
"""

from __future__ import annotations

import asyncio
import os
import threading
from dataclasses import replace
from typing import Any

from clinsafe import plugins
from clinsafe.adapters.documents import (
    NOTICE_ID,
    Checked,
    checked,
    notice,
    notice_metadata,
    passage_metadata,
    shown_text,
)
from clinsafe.adapters.plain import usable_k
from clinsafe.errors import MissingDependency, UsageError
from clinsafe.guarded import Guard, GuardedPassage

os.environ.setdefault("HAYSTACK_TELEMETRY_ENABLED", "False")

try:
    from haystack import Document, component, default_from_dict, default_to_dict
except ImportError as error:
    raise MissingDependency(
        "guarding a Haystack pipeline",
        error.name or "haystack-ai",
        "pip install 'clinsafe[guard]' haystack-ai",
    ) from error


@component
class ClinsafeGuard:
    """Checks a retriever's documents; connect it behind the last step that chooses or orders documents.

    Outputs: ``documents``, whose ``content`` is the annotated text, with a notice first where there is something to
    say about the answer; ``withheld``, documents taken out, with their original text; ``answer``, what concerns the
    answer as plain JSON (``needs_review``, ``disagreements`` …), for a router. ``meta["clinsafe"]`` of a document
    holds what was found and its ``original`` text.

    Args:
        policy: name of a policy, or path of a YAML file.
        k: at most so many documents are shown, the notice not counted.
        settings: further arguments of the guard that are plain values (``seconds``, ``filters``, ``model``).
        guard: a guard that is made already; a pipeline with one cannot be saved.

    Raises:
        UsageError: a guard together with a policy or settings of its own, or `k` is no number from 1.
    """

    def __init__(
        self,
        policy: str = "default",
        k: int | None = None,
        settings: dict[str, Any] | None = None,
        guard: Guard | None = None,
    ) -> None:
        if guard is not None and (policy != "default" or settings):
            raise UsageError("ClinsafeGuard takes a guard, or the policy and settings to make one, not both")
        self.policy, self.k, self.settings = str(policy), usable_k(k), dict(settings or {})
        self._handed = guard is not None
        self._guard = guard
        self._lock = threading.Lock()

    def warm_up(self) -> None:
        """Read the rule packs now and not at the first query."""
        self._made()

    @component.output_types(documents=list[Document], withheld=list[Document], answer=dict[str, Any])
    def run(self, query: str, documents: list[Document], k: int | None = None) -> dict[str, Any]:
        """Guard these documents for this query; see the class.

        Args:
            query: what is asked or claimed.
            documents: what was retrieved, best first.
            k: instead of the component's own.
        """
        many = usable_k(k) if k is not None else self.k
        done = checked(self._made(), query, documents, many, _beyond_text)
        shown = [_document(done, row, shown_text(row)) for row in done.answer.passages]
        if told := notice(done.answer):
            shown.insert(0, Document(id=NOTICE_ID, content=told, meta=notice_metadata(done.data)))
        withheld = [_document(done, row, row.passage.text) for row in done.answer.withheld]
        return {"documents": shown, "withheld": withheld, "answer": done.data}

    @component.output_types(documents=list[Document], withheld=list[Document], answer=dict[str, Any])
    async def run_async(self, query: str, documents: list[Document], k: int | None = None) -> dict[str, Any]:
        """`run`, without holding up the event loop."""
        return await asyncio.to_thread(self.run, query, documents, k)

    def to_dict(self) -> dict[str, Any]:
        """Plain values for a pipeline's YAML.

        Raises:
            UsageError: the guard was handed in: what is loaded again would be another one.
        """
        if self._handed:
            raise UsageError(
                "a pipeline whose ClinsafeGuard was handed a guard cannot be saved; name its policy instead: "
                "ClinsafeGuard(policy=...)"
            )
        return default_to_dict(self, policy=self.policy, k=self.k, settings=self.settings)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> ClinsafeGuard:
        """Read what `to_dict` gave."""
        return default_from_dict(cls, data)

    def _made(self) -> Guard:
        with self._lock:
            if self._guard is None:
                made: Guard = plugins.load("guards", "default")(self.policy, **self.settings)
                self._guard = made
            return self._guard


def _document(done: Checked, row: GuardedPassage, text: str) -> Document:
    item = done.item(row)
    document = item if isinstance(item, Document) else Document(meta=dict(row.passage.metadata))
    return replace(
        document,
        id=row.passage.id,
        content=text,
        meta=passage_metadata(document.meta, row, done.data),
        score=row.passage.score,
        embedding=None,  # they were the original text's
        sparse_embedding=None,
    )


def _beyond_text(item: Any) -> str:
    blob = getattr(item, "blob", None)
    return f"a file ({getattr(blob, 'mime_type', None) or 'type unknown'})" if blob is not None else ""
