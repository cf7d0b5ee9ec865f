"""The policy decides: monotone, withholds on independent evidence alone, and no file may contradict itself."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.checklist.hazards import load_hazards
from clinsafe.content import Content, packaged_root
from clinsafe.errors import ContentError, UsageError
from clinsafe.guarded import ACTIONS, Disagreement
from clinsafe.mitigations.policy import SEVERITIES, Policy, decide, load_policy, policy_names
from clinsafe.protocols import Finding, Passage, Span

HAZARDS = (*(hazard.id for hazard in load_hazards(Content())), "nli")
ALL = [load_policy(name, Content(), HAZARDS).policy for name in policy_names(Content())]
OLD = Passage("old", "x", source="ward", metadata={"subject_id": "1", "date": "2020"})
NEW = Passage("new", "y", source="formulary", metadata={"subject_id": "1", "date": "2024"})


def finding(hazard: str = "negation", severity: str = "high", kind: str = "contradiction") -> Finding:
    return Finding(
        hazard, "conflict", kind, severity, 0.9, Span(0, 1), Span(0, 1), "a", "b", "c", "r", f"{hazard}."
    )  # type: ignore[arg-type]


FINDINGS = [finding(h, s, k) for h, s, k in product(HAZARDS, SEVERITIES, ("contradiction", "non_support"))]
DISAGREEMENTS = [
    (Disagreement("old", "new", (one,), superseding=later), NEW)
    for one in FINDINGS[::5]
    for later in ("", "new")
]


def test_the_default_keeps_and_flags_in_place() -> None:
    default = load_policy("default", Content(), HAZARDS).policy
    for hazard, severity in product(HAZARDS, SEVERITIES):
        asked = default.asks(finding(hazard, severity))
        assert asked in ("flag", "escalate")
    assert not default.withhold_on


def test_no_policy_keeps_what_was_not_checked() -> None:
    for policy in ALL:
        assert decide(policy, OLD, [], unchecked=["negation"]).action != "keep", policy.name


@given(
    st.sampled_from(ALL),
    st.lists(st.sampled_from(FINDINGS), max_size=4),
    st.lists(st.sampled_from(FINDINGS), max_size=3),
    st.lists(st.sampled_from(DISAGREEMENTS), max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_more_never_softens(policy, few, more, pairs, question, late) -> None:  # type: ignore[no-untyped-def]
    before = decide(policy, OLD, few, question=question)
    after = decide(
        policy, OLD, [*few, *more], question=question, unchecked=["x"] if late else (), disagreements=pairs
    )
    assert before.actions <= after.actions
    assert ACTIONS.index(before.action) <= ACTIONS.index(after.action)
    assert not before.withheld or after.withheld
    assert set(before.reasons) <= set(after.reasons)


@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
def test_a_graver_finding_never_gets_a_milder_action(policy: Policy) -> None:
    for hazard, kind in product(HAZARDS, ("contradiction", "non_support")):
        asked = [ACTIONS.index(policy.asks(finding(hazard, severity, kind))) for severity in SEVERITIES]
        assert asked == sorted(asked)


@pytest.mark.parametrize("question", [False, True])
@pytest.mark.parametrize("policy", ALL, ids=lambda policy: policy.name)
def test_what_is_done_rises_with_the_severity_too(policy: Policy, question: bool) -> None:
    for hazard, kind in product(HAZARDS, ("contradiction", "non_support")):
        found = [decide(policy, OLD, [finding(hazard, s, kind)], question=question) for s in SEVERITIES]
        assert [ACTIONS.index(one.action) for one in found] == sorted(
            ACTIONS.index(one.action) for one in found
        )


def test_conflict_with_the_query_alone_withholds_nothing() -> None:
    strict = load_policy("strict", Content(), HAZARDS).policy
    decision = decide(strict, OLD, [finding(severity="high")])
    assert not decision.withheld
    assert decision.action == "demote", "a moderate finding gets no more"
    assert "evidence that does not come from the query" in decision.reasons[0]


def test_what_a_later_record_of_the_same_subject_contradicts_is_withheld() -> None:
    strict = load_policy("strict", Content(), HAZARDS).policy
    pair = Disagreement("old", "new", (finding(severity="high"),), superseding="new")
    assert decide(strict, OLD, [], disagreements=[(pair, NEW)]).withheld
    assert not decide(strict, NEW, [], disagreements=[(pair, OLD)]).withheld, "the later one stays"
    undated = Disagreement("old", "new", (finding(severity="high"),))
    assert not decide(strict, OLD, [], disagreements=[(undated, NEW)]).withheld


def test_a_trusted_source_withholds_what_it_contradicts_and_never_the_other_way() -> None:
    strict = load_policy("strict", Content(), HAZARDS).policy
    policy = Policy.model_validate(
        strict.model_dump() | {"withhold_on": ["trusted"], "trusted": ["formulary"]}
    )
    pair = Disagreement("old", "new", (finding(severity="high"),))
    assert decide(policy, OLD, [], disagreements=[(pair, NEW)]).withheld
    assert not decide(policy, NEW, [], disagreements=[(pair, OLD)]).withheld


def test_a_question_demotes_nothing() -> None:
    strict = load_policy("strict", Content(), HAZARDS).policy
    assert decide(strict, OLD, [finding(severity="moderate")]).action == "demote"
    assert decide(strict, OLD, [finding(severity="moderate")], question=True).action == "flag"


@pytest.mark.parametrize(
    ("was", "becomes", "field", "says"),
    [
        ("note: flag, moderate: flag", "note: escalate, moderate: flag", "actions.all", "milder"),
        (
            "high: flag, critical: escalate",
            "high: withhold, critical: escalate",
            None,
            "withhold_on is empty",
        ),
        ("withhold_on: []", "withhold_on: [query]", "withhold_on", "the query wrong"),
        ("withhold_on: []", "withhold_on: [trusted]", None, "no action withholds"),
        ("unchecked: escalate", "unchecked: keep", "unchecked", "neither safe nor wrong"),
        ("non_support: flag", "non_support: withhold", "non_support", "not withheld"),
        ("disagreement: escalate", "disagreement: demote", "disagreement", "escalate"),
        ("  nli:", "  negatoin:", "actions.negatoin", "no such hazard; valid: all, negation"),
        ("  all:", "  negation:", "actions", "'all'"),
        ("moderate: flag, high", "moderate: hide, high", "actions.all.moderate", "withhold"),
        ("unchecked: escalate", "unchecked: escalate\nsoften: true", "soften", ""),
    ],
)
def test_a_policy_that_contradicts_itself_is_one_line(
    overlay: Callable[..., Path], was: str, becomes: str, field: str | None, says: str
) -> None:
    root = overlay("mitigations/policies/default.yaml", lambda text: text.replace(was, becomes, 1))
    with pytest.raises(ContentError) as error:
        load_policy("default", Content(root), HAZARDS)
    assert says in str(error.value)
    assert error.value.field == field
    assert "\n" not in str(error.value)


def test_names_paths_and_strangers(tmp_path: Path) -> None:
    assert policy_names(Content()) == ("default", "report", "strict")
    own = tmp_path / "ward.yaml"
    text = (packaged_root() / "mitigations/policies/default.yaml").read_text()
    own.write_text(text.replace("name: default", "name: ward"))
    assert load_policy(own, Content(), HAZARDS).policy.name == "ward"
    with pytest.raises(UsageError, match="there are: default, report, strict"):
        load_policy("lenient", Content(), HAZARDS)
    with pytest.raises(ContentError):
        load_policy(tmp_path / "none.yaml", Content(), HAZARDS)
