"""What happens to a passage: the policy decides, on what the filters report (decision D3).

Monotone by construction: every finding asks for actions, the passage gets all that are asked for, and the file is
refused where a graver finding would ask for a milder one.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import Field, StringConstraints, field_validator, model_validator

from clinsafe.content import Content, Record, load_yaml, sha256_file
from clinsafe.errors import ContentError, UsageError
from clinsafe.guarded import ACTIONS, Action, Disagreement, Evidence
from clinsafe.protocols import Finding, Passage, Severity

FOLDER = "mitigations/policies"
SEVERITIES: tuple[Severity, ...] = get_args(Severity)
EVERY = "all"
DEPENDENT = "withholding needs evidence that does not come from the query"


class Actions(Record):
    """The action for each severity of one hazard."""

    note: Action
    moderate: Action
    high: Action
    critical: Action

    @model_validator(mode="after")
    def _rises(self) -> Actions:
        asked = [(severity, self.of(severity)) for severity in SEVERITIES]
        for (lower, milder), (higher, graver) in pairwise(asked):
            if ACTIONS.index(graver) < ACTIONS.index(milder):
                raise ValueError(
                    f"{lower} asks for {milder} and {higher} only for {graver}; a graver finding never gets a milder "
                    f"action (in order: {', '.join(ACTIONS)})"
                )
        return self

    def of(self, severity: Severity) -> Action:
        """The action for one severity."""
        action: Action = getattr(self, severity)
        return action


class Policy(Record):
    """A file of ``mitigations/policies/``; the words are explained in ``default.yaml``."""

    name: Annotated[str, StringConstraints(pattern=r"^[a-z][a-z0-9_-]{0,39}$")]
    about: Annotated[str, StringConstraints(min_length=1, max_length=300)]
    actions: Annotated[dict[str, Actions], Field(min_length=1)]
    non_support: Action
    disagreement: Literal["keep", "flag", "escalate"]
    unchecked: Action
    withhold_on: list[Evidence] = Field(default_factory=list)
    trusted: list[Annotated[str, StringConstraints(min_length=1)]] = Field(default_factory=list)

    @field_validator("actions")
    @classmethod
    def _has_all(cls, actions: dict[str, Actions]) -> dict[str, Actions]:
        if EVERY not in actions:
            raise ValueError(f"give the row {EVERY!r}: it holds for every hazard without a row of its own")
        return actions

    @field_validator("unchecked")
    @classmethod
    def _closed(cls, action: Action) -> Action:
        if action in ("keep", "withhold"):
            raise ValueError(
                "a passage that was not checked is neither safe nor wrong; valid: flag, demote, escalate"
            )
        return action

    @field_validator("non_support")
    @classmethod
    def _no_contradiction(cls, action: Action) -> Action:
        if action == "withhold":
            raise ValueError(
                "a passage that does not support is not withheld; valid: keep, flag, demote, escalate"
            )
        return action

    @field_validator("withhold_on")
    @classmethod
    def _independent(cls, evidence: list[Evidence]) -> list[Evidence]:
        if "query" in evidence:
            raise ValueError(
                f"{DEPENDENT}: the passage may be the truth and the query wrong; valid: superseded, trusted"
            )
        return evidence

    @model_validator(mode="after")
    def _withholds_on_something(self) -> Policy:
        withholding = [name for name, row in self.actions.items() if "withhold" in row.model_dump().values()]
        if withholding and not self.withhold_on:
            raise ValueError(
                f"actions.{withholding[0]} withholds and withhold_on is empty; {DEPENDENT}: superseded, trusted"
            )
        if self.withhold_on and not withholding:
            raise ValueError("withhold_on is given and no action withholds; empty it, or let one withhold")
        if ("trusted" in self.withhold_on) != bool(self.trusted):
            raise ValueError(
                "withhold_on names 'trusted' and `trusted` names the sources, both or neither of them"
            )
        return self

    def asks(self, finding: Finding) -> Action:
        """What one finding asks for."""
        action = self.actions.get(finding.hazard, self.actions[EVERY]).of(finding.severity)
        if finding.kind == "non_support" and action != "keep":
            return min(action, self.non_support, key=ACTIONS.index)
        return action

    def shown(self, finding: Finding) -> Action:
        """What a finding that may not withhold asks for instead: no less than a milder finding of its hazard gets."""
        row = self.actions.get(finding.hazard, self.actions[EVERY])
        milder = [row.of(severity) for severity in SEVERITIES[: SEVERITIES.index(finding.severity)]]
        return "demote" if "demote" in milder else "flag"


@dataclass(frozen=True, slots=True)
class Decision:
    """What is done with one passage.

    Attributes:
        actions: all that are asked for; empty keeps the passage.
        reasons: why, one line each, without words of any text but those of the findings' sentences.
    """

    actions: frozenset[Action]
    reasons: tuple[str, ...]

    @property
    def action(self) -> Action:
        """The gravest."""
        return max(self.actions, key=ACTIONS.index, default="keep")

    @property
    def withheld(self) -> bool:
        """Whether the passage is taken out; an escalation beside it brings it not back."""
        return "withhold" in self.actions


def decide(
    policy: Policy,
    passage: Passage,
    findings: Sequence[Finding],
    *,
    question: bool = False,
    unchecked: Collection[str] = (),
    disagreements: Iterable[tuple[Disagreement, Passage]] = (),
) -> Decision:
    """The decision on one passage.

    Args:
        policy: what asks for what.
        passage: the passage.
        findings: its conflicts with the query.
        question: the query asks; then a finding is on what it presupposes, and is flagged at most (decision D2).
        unchecked: names of filters that did not look.
        disagreements: those this passage takes part in, each with the other passage.
    """
    asked: dict[tuple[Action, str], None] = {}
    for finding in findings:
        if finding.verdict == "conflict":
            action, why = policy.asks(finding), finding.sentence
            if action == "withhold":
                action, why = policy.shown(finding), f"{why} (shown: {DEPENDENT})"
            if action == "demote" and question:
                action = "flag"
            asked[action, why] = None
    for disagreement, other in disagreements:
        why = f"disagrees with passage {other.id}: {disagreement.findings[0].sentence}"
        if disagreement.superseding == other.id:
            why = f"superseded by passage {other.id}, which is later: {disagreement.findings[0].sentence}"
        asked[policy.disagreement, why] = None
        if (ground := _ground(policy, disagreement, passage, other)) and any(
            policy.asks(finding) == "withhold" for finding in disagreement.findings
        ):
            asked["withhold", f"withheld, {ground}: {why}"] = None
    if unchecked:
        names = ", ".join(sorted(unchecked))
        action = "flag" if policy.unchecked == "demote" and question else policy.unchecked
        asked[action, f"not checked: {names}"] = None
    kept = {key: None for key in asked if key[0] != "keep"}
    return Decision(frozenset(action for action, _ in kept), tuple(dict.fromkeys(why for _, why in kept)))


def _ground(policy: Policy, disagreement: Disagreement, passage: Passage, other: Passage) -> str:
    """Independent evidence against `passage`; "" where there is none that the policy allows."""
    if "superseded" in policy.withhold_on and disagreement.superseding == other.id:
        return "a later passage of the same subject says otherwise"
    trusted = other.source in policy.trusted and passage.source not in policy.trusted
    return "a trusted source says otherwise" if "trusted" in policy.withhold_on and trusted else ""


@dataclass(frozen=True, slots=True)
class LoadedPolicy:
    """A policy and the SHA-256 of its file."""

    policy: Policy
    sha256: str


def policy_names(content: Content) -> tuple[str, ...]:
    """Names of the policies there are, an overlay's among them."""
    return content.names(FOLDER, ".yaml")


def load_policy(name: str | Path, content: Content, hazards: Collection[str]) -> LoadedPolicy:
    """A policy by name, or the path of an institution's own file.

    Args:
        name: ``default``, another of `policy_names`, or a path that ends in ``.yaml`` or ``.yml``.
        content: the content tree with its overlay.
        hazards: what a row may be named after besides ``all``.

    Raises:
        UsageError: no policy of that name.
        ContentError: with file, line and field; also where the file contradicts itself.
    """
    known = policy_names(content)
    if isinstance(name, str) and name in known:
        path = content.touch(f"{FOLDER}/{name}.yaml")
    elif Path(name).suffix in (".yaml", ".yml"):
        path = Path(name)
    else:
        raise UsageError(
            f"no policy is called {str(name)!r}; there are: {', '.join(known)}, or a .yaml file of your own"
        )
    policy = load_yaml(path, Policy)
    if strangers := sorted(set(policy.actions) - {EVERY, *hazards}):
        raise ContentError(
            path, None, f"actions.{strangers[0]}", f"no such hazard; valid: {', '.join((EVERY, *hazards))}"
        )
    return LoadedPolicy(policy, sha256_file(path))
