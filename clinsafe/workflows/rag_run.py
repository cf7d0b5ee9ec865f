"""Run the reference pipeline over a set of questions: one trace each, kept as soon as it is made.

Every way of answering (a setting, and with retrieval a weight alpha) writes a file of traces of its own, and all of
them do a question before the next one is taken: a run that was stopped holds the same questions everywhere. A failure
is an outcome of its question, never an answer and never the end of the run; only models that answer nothing any more
end it.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.guarded import Guard
from clinsafe.rag.fusion import SearchIndex
from clinsafe.rag.question import Question
from clinsafe.rag.trace import BadLine, Trace
from clinsafe.workflows.rag_index import build_index
from clinsafe.workflows.rag_ledger import INDEX, RunState, TraceLedger, begin, claimed, ledgers, write_state
from clinsafe.workflows.rag_pipeline import Arm, Pipeline, Plan, arms
from clinsafe.workflows.write import Stage, silent

SHOWN_BAD = 100  # bad lines that are kept to be listed

__all__ = ["Arm", "Plan", "Summary", "arms", "guard_rules", "run"]


def guard_rules(policy: str, guard: Guard, content: Content) -> dict[str, str]:
    """What a guard's word depends on: policy, its hash, and a hash over the rule packs that were read."""
    packs = [[name, sha] for name, sha in sorted(content.hashes.items()) if name.startswith("mitigations/")]
    return {
        "policy": policy,
        "policy_sha256": guard.check("", []).policy_sha256,
        "rules_sha256": hashlib.sha256(json.dumps(packs).encode()).hexdigest(),
    }


@dataclass(slots=True)
class Summary:
    """What a run did.

    Attributes:
        state: as it stands in the folder.
        outcomes: label -> kind -> questions, those of earlier runs among them.
        tokens: label -> (prompt, completion).
        done: traces that were written now.
        bad: the first bad lines of the questions.
        bad_lines: all of them.
        stopped: why it ended early, "" where all is done.
        chunks: of the index; None without one.
        reused: whether the index was there.
    """

    state: RunState
    outcomes: dict[str, dict[str, int]] = field(default_factory=dict)
    tokens: dict[str, tuple[int, int]] = field(default_factory=dict)
    done: int = 0
    bad: list[BadLine] = field(default_factory=list)
    bad_lines: int = 0
    stopped: str = ""
    chunks: int | None = None
    reused: bool = False


def run(plan: Plan, stage: Stage = silent) -> Summary:
    """Answer all questions that are not answered yet.

    Raises:
        UsageError: no question that can be read; a folder that was begun with another plan, or cannot be written.
        What the corpus, the index and the models raise before the first question.
        KeyboardInterrupt: what was done is kept.
    """
    digest, count = _census(plan)
    with claimed(plan.out):
        index = _index(plan, stage) if any(one.setting != "direct" for one in plan.arms) else None
        try:
            pipeline = Pipeline(plan, index)
            made_of = pipeline.made_of(digest)
            state = begin(plan.out, pipeline.state(made_of))
            summary = Summary(
                state, chunks=len(index) if index else None, reused=bool(index and index.reused)
            )
            total = min(plan.limit or count, count)
            with ledgers(plan.out, state.files) as opened:
                _answer(plan, pipeline, opened, summary, total, stage)
            if not summary.stopped:
                summary.state = state.model_copy(update={"state": "finished"})
                write_state(plan.out, summary.state)
            return summary
        finally:
            if index is not None:
                index.close()


def _census(plan: Plan) -> tuple[str, int]:
    """(hash, number) of the questions; all of them, whatever the limit."""
    digest, count, first = hashlib.sha256(), 0, ""
    for one in plan.questions():
        if isinstance(one, BadLine):
            first = first or str(one)
            continue
        count += 1
        digest.update(json.dumps(_canonical(one), sort_keys=True).encode() + b"\n")
    if not count:
        raise UsageError(
            f"there is no question that can be read{f'; the first bad one: {first}' if first else ''}"
        )
    return digest.hexdigest(), count


def _canonical(one: Question) -> list[Any]:
    return [
        one.id, one.text, list(one.references), dict(one.options) if one.options else None, one.expected, one.task,
        list(one.documents) if one.documents is not None else None, dict(one.slices),
    ]  # fmt: skip


def _index(plan: Plan, stage: Stage) -> SearchIndex:
    if plan.documents is None or plan.encoder is None:
        raise UsageError("a corpus and an encoder are needed unless --setting direct is the only one")
    names = {
        "chunks": "Cutting",
        "vectors": "Encoding",
        "graph": "Building the graph",
        "words": "Counting words",
    }
    return build_index(
        plan.documents, plan.encoder, plan.index_folder or plan.out / INDEX, tokens=plan.tokens, overlap=plan.overlap,
        on_progress=lambda what, done, total: stage(names.get(what, what), done, total),
    )  # fmt: skip


def _answer(
    plan: Plan, pipeline: Pipeline, opened: Sequence[TraceLedger], summary: Summary, total: int, stage: Stage
) -> None:
    """All questions through all arms; failures at the end of a run that was stopped are done again another time."""
    pending: list[tuple[TraceLedger, Trace]] = []  # since models began to fail
    taken = 0
    for one in plan.questions():
        if isinstance(one, BadLine):
            summary.bad_lines += 1
            summary.bad += [one] if len(summary.bad) < SHOWN_BAD else []
            continue
        if taken == (plan.limit or -1) or pipeline.stopped:
            break
        taken += 1
        name = plan.kept.id(one.id, 0)
        for arm, ledger in zip(plan.arms, opened, strict=True):
            if name in ledger.done or pipeline.stopped:
                continue
            pending.append((ledger, pipeline.trace(one, arm)))
            if not pipeline.failing:
                summary.done += _flush(pending)
        stage("Answering" if plan.generator else "Retrieving", taken, total)
    summary.stopped = pipeline.stopped
    if not summary.stopped:
        summary.done += _flush(pending)
    for arm, ledger in zip(plan.arms, opened, strict=True):
        summary.outcomes[arm.label] = dict(sorted(ledger.outcomes.items()))
        summary.tokens[arm.label] = ledger.tokens


def _flush(pending: list[tuple[TraceLedger, Trace]]) -> int:
    count = len(pending)
    for ledger, trace in pending:
        ledger.append(trace)
    pending.clear()
    return count
