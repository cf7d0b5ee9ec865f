"""The guard around a retriever, put together: filters, policy, controlled words, log."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.guarded import GuardedAnswer
from clinsafe.protocols import DecisionLog
from clinsafe.workflows.guard import build_stack, filter_names

if TYPE_CHECKING:
    from clinsafe.mitigations.facts import TextFacts
    from clinsafe.mitigations.filters.nli import NliFilter
    from clinsafe.mitigations.stack import Stack
    from clinsafe.mitigations.wrapper import RetrievalGuard

SECONDS = 2.0  # for one query
NLI = "nli"


def build_guard(
    policy: str | Path = "default",
    *,
    content: Content | None = None,
    filters: Sequence[str] | None = None,
    model: str | None = None,
    seconds: float = SECONDS,
    facts: Callable[[str, str], TextFacts] | None = None,
    nli: str | NliFilter | None = None,
    log: DecisionLog | None = None,
    digest: Callable[[str], str] | None = None,
    passage_ids: Literal["plain", "hashed"] = "plain",
) -> RetrievalGuard:
    """A guard that checks passages for a query.

    Args:
        policy: name in ``mitigations/policies/``, or a YAML file of your own.
        content: content tree with its overlay.
        filters: by entry-point name; None takes all that are installed.
        model: spaCy pipeline, for filters that ask for a parse.
        seconds: for one query; what is not done then is unchecked. 0: no limit.
        facts: facts that were read before (`clinsafe.scale.store.FactStore`).
        nli: alias, folder or hub id of a cross-encoder for natural language inference, or a filter that
            `clinsafe.workflows.nli_calibration.load_filter` made; None runs none, and every answer says so.
        log: where decisions are recorded, see `clinsafe.oversight`.
        digest: keyed hash of a text for the log; None takes that of the log's own key.
        passage_ids: ``hashed`` where the ids of passages identify a patient.

    Raises:
        ClinsafeError: one line on what is wrong and what would be valid.
    """
    if seconds < 0:
        raise UsageError(f"seconds is a time limit for one query, got {seconds}; 0 means none")
    content = content or Content()
    stack = build_stack(content, filters, model=model)
    from clinsafe.adapters.retrievers import passages
    from clinsafe.mitigations.filters.nli import NOT_RUN
    from clinsafe.mitigations.packs import load_packs
    from clinsafe.mitigations.policy import load_policy
    from clinsafe.mitigations.wrapper import RetrievalGuard

    chosen = load_policy(policy, content, (*filter_names(content), NLI))
    advice = _advice(stack, nli, content)
    record = _recorder(log, digest, passage_ids) if log is not None else None
    return RetrievalGuard(
        stack,
        chosen,
        load_packs(content),
        passages,
        seconds=seconds,
        facts=facts,
        record=record,
        advice=advice,
        notes=() if advice is None else (advice.filters[NLI].note,),  # type: ignore[attr-defined]
        not_run=(NOT_RUN,) if advice is None else (),
    )


def _advice(stack: Stack, nli: str | NliFilter | None, content: Content) -> Stack | None:
    """The filter of the NLI model, beside the stack."""
    from clinsafe.mitigations.stack import Stack

    if nli is None:
        return None
    from clinsafe.workflows.nli_calibration import load_filter

    found = load_filter(nli, content=content) if isinstance(nli, str) else nli
    return Stack({NLI: found}, stack.reader)


def _recorder(
    log: DecisionLog, digest: Callable[[str], str] | None, passage_ids: Literal["plain", "hashed"]
) -> Callable[[GuardedAnswer], None]:
    from clinsafe.oversight.records import record_of

    key = getattr(getattr(log, "log", log), "key", None)
    hashed: Callable[[str], str] | None = digest or getattr(key, "digest", None)
    if hashed is None:
        raise UsageError(
            f"a {type(log).__name__} has no key of its own; give digest=, a keyed hash of a text"
        )

    def record(answer: GuardedAnswer) -> None:
        log.append(record_of(answer, digest=hashed, now=datetime.now(UTC), passage_id=passage_ids))

    return record
