"""The guard in an audit: its stack and policy put to the pairs of the suite's test cases.

What was compared is kept in the run folder, a line a case, so that an audit that was stopped goes on where it was.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from clinsafe.benchmarks.filters import Pair, judge_all
from clinsafe.benchmarks.guarded_cases import gather, guarded_pairs
from clinsafe.benchmarks.suite import SENTENCES, Case
from clinsafe.content import Content
from clinsafe.plugins import available
from clinsafe.protocols import Passage
from clinsafe.reports.guard_record import GuardCase, GuardRecord
from clinsafe.version import VERSION
from clinsafe.workflows.guard import build_stack, filter_names
from clinsafe.workflows.guarding import NLI
from clinsafe.workflows.write import Stage

if TYPE_CHECKING:
    from clinsafe.mitigations.facts import TextFacts
    from clinsafe.mitigations.policy import LoadedPolicy
    from clinsafe.mitigations.stack import Stack

DEFAULT = "default"
PACKS = "mitigations/"
REMEMBERED = 64  # texts; those of one case follow one another


@dataclass(frozen=True)
class AuditGuard:
    """The guard as it is measured: what compares, what decides, and the hashes of what both have read."""

    stack: Stack
    policy: LoadedPolicy
    packs: Mapping[str, str]
    facts: dict[str, TextFacts] = field(default_factory=dict, repr=False)

    def __call__(self, query: str, passage: str) -> tuple[Mapping[str, bool | None], tuple[str, ...]]:
        """Whether the policy flags this passage for this query; None: a filter could not look, and nothing flags it."""
        from clinsafe.mitigations.policy import decide

        compared = self.stack.compare(self._read(query), self._read(passage))
        decision = decide(self.policy.policy, Passage("", passage), compared.conflicts)
        flagged = decision.action != "keep"
        return {"guard": flagged or (None if compared.unchecked else False)}, ()

    def _read(self, text: str) -> TextFacts:
        if text not in self.facts:
            if len(self.facts) >= REMEMBERED:
                self.facts.clear()
            self.facts[text] = self.stack.read(text)
        return self.facts[text]


def prepare(content: Content, policy: str | Path = DEFAULT) -> AuditGuard:
    """The guard, ready to compare; what is missing or malformed is said before a model is loaded.

    Args:
        content: content tree with its overlay; what the guard reads is hashed there.
        policy: name in ``mitigations/policies/``, or a YAML file.

    Raises:
        ClinsafeError: one line on what is wrong and what would be valid.
    """
    stack = build_stack(content)
    chosen = prepare_policy(policy, content)
    packs = {name: digest for name, digest in content.hashes.items() if name.startswith(PACKS)}
    return AuditGuard(stack, chosen, packs)


def prepare_policy(policy: str | Path, content: Content) -> LoadedPolicy:
    """The policy that decides what is flagged."""
    from clinsafe.mitigations.policy import load_policy

    return load_policy(policy, content, (*filter_names(content), NLI))


def measure(guard: AuditGuard, cases: Sequence[Case], store: Path | None, stage: Stage) -> GuardRecord:
    """What becomes of each test case's pairs.

    Args:
        guard: from `prepare`.
        cases: of one tier; the dev cases are left out.
        store: folder of what was computed before; None keeps nothing.
        stage: told how far the work is, in cases.
    """
    empty = _record(guard, [])
    file = None if store is None else store / f"guard-{_key(empty, cases)}.jsonl"
    done = _kept(file)
    groups: dict[str, list[Pair]] = {}
    for pair in guarded_pairs(cases):
        groups.setdefault(pair.case, []).append(pair)
    rows = []
    for number, (case, pairs) in enumerate(groups.items(), start=1):
        row = done.get(case)
        if row is None:
            (found,) = gather(judge_all(pairs, guard, _quiet))
            row = GuardCase(id=case, conflict=found.conflict, same_a=found.same_a, same_b=found.same_b)
            _keep(file, row)
        rows.append(row)
        stage("Comparing with the guard", number, len(groups))
    return _record(guard, rows)


def _record(guard: AuditGuard, rows: list[GuardCase]) -> GuardRecord:
    return GuardRecord(
        filters={name: _origin(name) for name in guard.stack.filters},
        packs=dict(sorted(guard.packs.items())),
        parser=guard.stack.reader.parser.name,
        policy=guard.policy.policy.name,
        policy_sha256=guard.policy.sha256,
        seconds=guard.stack.deadline.seconds,
        cases=rows,
    )


def _origin(name: str) -> str:
    """Distribution and version of a filter."""
    point = available("filters").get(name)
    owner = None if point is None else point.dist
    return "not stated" if owner is None else f"{owner.name} {owner.version}"


def _key(guard: GuardRecord, cases: Sequence[Case]) -> str:
    """Equal for runs that may share outcomes: the same guard, the same sentences, the same version."""
    parts = [VERSION, guard.model_dump_json()]
    parts += [f"{case.id}\0{getattr(case, name)}" for case in cases for name in SENTENCES]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:32]


def _kept(file: Path | None) -> dict[str, GuardCase]:
    """Outcomes of a stopped run; a line that was cut off is computed again."""
    if file is None or not file.is_file():
        return {}
    found = {}
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            row = GuardCase.model_validate(json.loads(line))
        except ValueError:
            continue
        found[row.id] = row
    return found


def _keep(file: Path | None, row: GuardCase) -> None:
    if file is not None:
        with file.open("a", encoding="utf-8") as stream:
            stream.write(f"{row.model_dump_json()}\n")


def _quiet(_what: str, _done: int, _total: int) -> None:
    """Progress is told by case, not by pair."""
