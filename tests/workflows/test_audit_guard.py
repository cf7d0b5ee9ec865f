"""The guard in an audit: measured on test cases alone, credited by its bounds, derived again, resumable."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
import yaml

from clinsafe.benchmarks.scoring import score
from clinsafe.content import Content, sha256_file
from clinsafe.errors import UsageError
from clinsafe.mitigations.dummies import Constant
from clinsafe.mitigations.stack import Stack
from clinsafe.reports import pdf, view
from clinsafe.reports.assess import assess_all, system
from clinsafe.reports.changes import compare_audits
from clinsafe.reports.complete import incomplete
from clinsafe.reports.differences import differences
from clinsafe.reports.evidence import canonical, from_bytes, limits, to_bytes
from clinsafe.text import Reader
from clinsafe.workflows import audit_guard
from clinsafe.workflows.audit import Interrupted, run_audit
from clinsafe.workflows.prepare import fix_criteria
from clinsafe.workflows.write import silent
from tests.conftest import write_small
from tests.mitigations.fakes import Broken, throw
from tests.tiers import mined, write_mined
from tests.workflows.test_audit import oracle, real

pytestmark = pytest.mark.usefixtures("shared_intervals")
HAZARDS = ("negation", "numerical", "temporal", "entity_swap", "hedging", "quantifier")


class Always(Constant):
    """Calls everything a grave conflict: the policy passes over notes."""

    def __init__(self) -> None:
        super().__init__(True)

    def compare(self, query, passage):
        return [replace(one, severity="high") for one in super().compare(query, passage)]


class Knows(Always):
    """Calls a pair a conflict if it is one of these."""

    def __init__(self, pairs) -> None:
        super().__init__()
        self.pairs = pairs

    def read(self, reading):
        return [replace(one, normal={"text": reading.text}) for one in super().read(reading)]

    def compare(self, query, passage):
        known = (query[0].normal["text"], passage[0].normal["text"]) in self.pairs
        return super().compare(query, passage) if known else []


@pytest.fixture(scope="module", autouse=True)
def _drawn():
    """Pages have tests of their own; here they would only cost time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pdf, "render", lambda *_: b"%PDF-1.7 stand-in")
        patch.setattr(view, "similarity_svg", lambda _: "<svg></svg>")
        yield


@pytest.fixture(scope="module")
def reader():
    return Reader(Content(), "")


@pytest.fixture(scope="module")
def cases(few):
    """Of each hazard one dev case and two test cases."""
    return mined(few)


@pytest.fixture(scope="module")
def content(cases, tmp_path_factory):
    """The small suite of these, and a limit on false alarms that two test cases a hazard can show."""
    root = tmp_path_factory.mktemp("content") / "small"
    write_small(
        root, [case.model_copy(update={"tier": "written", "subtype": subtype(case)}) for case in cases]
    )
    rules = yaml.safe_load(Content().path("checklist/fmea.yaml").read_text(encoding="utf-8"))
    rules["detection_credit"]["at_most"] = 0.8  # 0 of 2 has the upper bound 0.776, 1 of 2 0.975
    (root / "checklist" / "fmea.yaml").write_text(yaml.safe_dump(rules), encoding="utf-8")
    return root


def subtype(case):
    """Any subtype of the hazard's card."""
    from clinsafe.benchmarks.suite import load_card

    return next(iter(load_card(Content()).counts[case.hazard]))


@pytest.fixture
def guarded(monkeypatch, reader):
    """Audits run with a stack of one filter (None: of no filter)."""

    def use(one):
        stack = Stack({} if one is None else {"negation": one}, reader, 0)
        monkeypatch.setattr(audit_guard, "build_stack", lambda _: stack)

    return use


def conflicts(cases):
    return {(case.a, case.b) for case in cases}


def assessed(one, cases, content, reader, *, good=False):
    """(system, assessment, derived JSON) of the stack on these cases, without a run folder and its pages."""
    overlay = Content(content)
    criteria = fix_criteria(overlay, None, cases)
    policy = audit_guard.prepare_policy("default", overlay)
    stack = Stack({} if one is None else {"negation": one}, reader, 0)
    guard = audit_guard.measure(audit_guard.AuditGuard(stack, policy, {}), cases, None, silent)
    encoder = real(oracle(cases, good=good))
    record = system(encoder.identity, score(encoder, cases), criteria, guard=guard)
    (assessment,) = assess_all([record], criteria, None, guard)
    return record, assessment, assessment.to_json()


def audit(cases, content, folder, *, good=False, **options):
    encoder = real(oracle(cases, good=good))
    return run_audit(encoder, out=folder, overlay=content, **({"guard": True} | options))


def test_a_guard_that_knows_the_conflicts_earns_detection_and_leaves_nothing(cases, content, reader):
    record, found, plain = assessed(Knows(conflicts(cases)), cases, content, reader)
    for hazard in HAZARDS:
        figures = {k.split(".", 2)[2]: f for k, f in record.figures.items() if f"guarded.{hazard}." in k}
        assert figures["inversion@split=test"]["k"] == 2
        assert figures["detection.failing@split=test"]["k"] == 2
        assert figures["residual@split=test"]["k"] == 0
        assert {f["n"] for f in figures.values()} == {2}  # the dev case is not among them
    for row in found.fmea:
        assert row.detection == 7  # 2 of 2: lower bound 0.224, so 0.776 may pass
        assert row.undetected_upper == pytest.approx(0.776, abs=0.001)
        assert row.failure == (1.0, 3)
    assert {row["after"] for row in plain["risk"]} == {"H"}
    assert {row["residual"]["n"] for row in plain["risk"]} == {2}
    assert found.unflagged == {hazard: [] for hazard in HAZARDS}
    assert found.held == list(HAZARDS)  # the gates read the model, whatever stands in front of it


USELESS = {"disabled": (None, 0, 0), "always": (Always(), 2, 2), "broken": (Broken("read", throw), 0, 2)}


@pytest.mark.parametrize("name", USELESS)
def test_a_useless_stack_earns_no_credit(name, cases, content, reader):
    one, flagged, alarms = USELESS[name]
    record, found, plain = assessed(one, cases, content, reader)
    for hazard in HAZARDS:
        assert record.figures[f"guarded.{hazard}.detection@split=test"]["k"] == flagged
        assert record.figures[f"guarded.{hazard}.false_alarm@split=test"]["k"] == alarms
    assert {row.detection for row in found.fmea} == {10}
    assert {row.undetected_upper for row in found.fmea} == {1.0}
    assert {row["after"] for row in plain["risk"]} == ({"H"} if name == "disabled" else {"no credit"})
    assert not any("mitigation" in item.answer for item in found.items)


def test_a_pair_that_was_not_checked_is_unflagged_and_listed(cases, content, reader):
    record, found, _ = assessed(Broken("read", throw), cases, content, reader)
    test = [case.id for case in cases if (case.hazard, case.split) == ("negation", "test")]
    assert found.unflagged["negation"] == test
    assert record.figures["guarded.all.unchecked@split=test"]["k"] == 12


def test_a_model_without_a_failure_gets_no_detection_figure(cases, content, reader):
    record, found, _ = assessed(Knows(conflicts(cases)), cases, content, reader, good=True)
    assert (
        "no failing pair" in record.figures["guarded.negation.detection.failing@split=test"]["not_measured"]
    )
    assert {row.detection for row in found.fmea} == {10}


def test_without_guard_there_is_no_word_of_it_in_the_record(cases, content, tmp_path, monkeypatch):
    monkeypatch.setattr(audit_guard, "build_stack", throw)  # it is not even built
    evidence = audit(cases, content, tmp_path / "run", guard=False, hazards=["negation"]).evidence
    plain = json.loads(to_bytes(evidence))
    assert "guard" not in plain
    assert not any(key.startswith("guarded.") for key in plain["systems"][0]["figures"])
    assert {row["detection"] for row in plain["assessments"][0]["fmea"]} == {10}
    assert not any("guarded" in row for row in plain["assessments"][0]["fmea"])
    assert evidence.limits == limits("written")


@pytest.fixture(scope="module")
def record(cases, content, reader, shared_intervals, tmp_path_factory):
    """One guarded audit of one hazard; of its two test pairs one is flagged."""
    with pytest.MonkeyPatch.context() as patch:
        stack = Stack({"negation": Knows(conflicts(cases[1:2]))}, reader, 0)
        patch.setattr(audit_guard, "build_stack", lambda _: stack)
        folder = tmp_path_factory.mktemp("record") / "run"
        return audit(cases, content, folder, hazards=["negation"]).evidence


def test_the_record_says_what_was_measured(record, cases):
    guard = record.guard
    assert list(guard.filters) == ["negation"]
    assert guard.filters["negation"].startswith("clinsafe ")
    assert (guard.policy, guard.policy_sha256) == (
        "default", sha256_file(Content().path("mitigations/policies/default.yaml")),
    )  # fmt: skip
    assert guard.packs["mitigations/policies/default.yaml"] == guard.policy_sha256
    assert guard.packs.items() <= record.content.items()
    test = [case.id for case in cases if (case.hazard, case.split) == ("negation", "test")]
    assert [row.id for row in guard.cases] == test
    assert record.options["guard"] == "policy default"
    assert record.limits == limits("written", guarded=True)
    text = to_bytes(record).decode()
    assert not any(case.a in text or case.b_same in text for case in cases)
    assert from_bytes(to_bytes(record)) == record
    assert differences(record) == []
    assert incomplete(record, to_bytes(record)) == []


def edited(record, change):
    plain = json.loads(to_bytes(record))
    change(plain)
    return from_bytes(canonical(plain))


def figure(name, **changed):
    return lambda e: e["systems"][0]["figures"][f"guarded.negation.{name}@split=test"].update(changed)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (figure("residual", k=0), "residual@split=test.k says 0, the scores yield 1"),
        (figure("detection.failing", lower=0.99), "detection.failing@split=test.lower"),
        (figure("false_alarm", upper=0.0), "false_alarm@split=test.upper"),
        (lambda e: e["guard"]["cases"][0].update(conflict="flagged", same_a="flagged"), "guarded."),
        (lambda e: e["assessments"][0]["fmea"][0].update(detection=1), "fmea[0].detection"),
        (lambda e: e["assessments"][0]["fmea"][0].update(undetected_upper=0.0), "fmea[0].undetected_upper"),
        (
            lambda e: e["assessments"][0]["fmea"][0]["guarded"].update(credited=False),
            "fmea[0].guarded.credited",
        ),
        (lambda e: e["assessments"][0]["fmea"][0].pop("guarded"), "fmea[0].guarded is missing"),
        (lambda e: e["assessments"][0]["risk"][0].update(after="L"), "risk[0].after"),
        (lambda e: e["assessments"][0]["risk"][0]["residual"].update(bound=0.0), "risk[0].residual.bound"),
        (lambda e: e["assessments"][0]["items"][0].update(answer="met by mitigation"), "items[0].answer"),
        (lambda e: e["assessments"][0]["unflagged"].update(negation=[]), "unflagged"),
        (lambda e: e["assessments"][0].pop("unflagged"), "unflagged is missing"),
        (lambda e: e.pop("guard"), "not derived from the scores"),
        (lambda e: e["criteria"]["fmea"]["detection_credit"].update(at_most=0.1), "fmea[0].detection"),
    ],
)
def test_an_edited_figure_of_the_guard_is_found(record, change, words, monkeypatch):
    monkeypatch.setattr(
        "clinsafe.reports.differences.own_arithmetic", lambda *_: record.arithmetic
    )  # for speed
    faults = differences(edited(record, change))
    assert any(words in fault for fault in faults), faults


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda e: e["guard"]["cases"].pop(), "has no outcome"),
        (lambda e: e["guard"]["cases"].append(dict(e["guard"]["cases"][0])), "recorded twice"),
        (
            lambda e: e["guard"]["cases"].append(
                {"id": next(c["id"] for c in e["systems"][0]["cases"] if c["split"] == "dev"),
                 "conflict": "flagged", "same_a": "passed", "same_b": "passed"}
            ),
            "is no test case",
        ),
        (lambda e: e["guard"]["cases"][0].update(conflict="blessed"), "flagged"),
    ],
)  # fmt: skip
def test_outcomes_that_cannot_be_are_refused(record, change, words):
    from clinsafe.errors import ReportError

    with pytest.raises(ReportError, match=words):
        edited(record, change)


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda e: e["guard"]["packs"].update({"mitigations/policies/default.yaml": "0" * 64}), "another"),
        (lambda e: e["limits"].pop(), "limits of the audit"),
    ],
)
def test_what_the_guard_is_made_of_must_be_what_the_record_names(record, change, words):
    changed = edited(record, change)
    assert any(words in fault for fault in incomplete(changed, to_bytes(changed)))


@pytest.mark.slow
def test_an_audit_with_the_guard_is_compared_with_one_without(record, cases, content, guarded, tmp_path):
    guarded(Knows(conflicts(cases)))
    before = audit(cases, content, tmp_path / "run", guard=False, hazards=["negation"])
    assert compare_audits(before.evidence, record).regressed == []
    one = {"guard": True, "hazards": ["negation"], "previous": tmp_path / "run"}
    again = audit(cases, content, tmp_path / "again", **one)
    assert differences(again.evidence) == []
    assert again.evidence.changes[0]["regressed"] == []


@pytest.mark.slow
def test_a_mined_suite_is_guarded_on_its_own_test_cases(cases, guarded, tmp_path):
    guarded(Knows(conflicts(cases)))
    path = write_mined(tmp_path, cases)
    result = run_audit(real(oracle(cases, good=False)), suite=path, guard=True, out=tmp_path / "run")
    assert result.evidence.suite.tier == "generated"
    assert {row.id for row in result.evidence.guard.cases} == {c.id for c in cases if c.split == "test"}
    assert result.evidence.systems[0].figures["guarded.all.residual@split=test"]["n"] == 12
    # the packaged limit of 0.10 cannot be shown by two cases
    assert {row.detection for row in result.assessment.fmea} == {10}
    assert differences(result.evidence) == []


class Counting(Knows):
    """Counts, and is stopped once."""

    compared, stop = 0, True

    def compare(self, query, passage):
        self.compared += 1
        if self.stop and self.compared == 8:
            raise KeyboardInterrupt
        return super().compare(query, passage)


@pytest.mark.slow
def test_a_stopped_audit_goes_on_where_the_guard_was(cases, content, guarded, tmp_path):
    one = Counting(conflicts(cases))
    guarded(one)
    told = []
    settings = {"out": tmp_path / "run", "overlay": content, "guard": True}
    with pytest.raises(Interrupted):
        run_audit("fake:words", **settings)
    one.stop, one.compared = False, 0
    result = run_audit("fake:words", **settings, stage=lambda *said: told.append(said))
    assert one.compared == 3 * 12 - 6  # two whole cases were kept
    assert ("Comparing with the guard", 12, 12) in told
    assert len(result.evidence.guard.cases) == 12
    assert not (tmp_path / "run" / "partial").exists()


def test_outcomes_of_another_guard_are_not_taken_up(cases, reader, tmp_path):
    def measured(one, policy="default"):
        content = Content()
        guard = audit_guard.AuditGuard(
            Stack({"negation": one}, reader, 0),
            audit_guard.prepare_policy(policy, content),
            dict(content.hashes),
        )
        return audit_guard.measure(guard, cases, tmp_path, silent)

    first = measured(Knows(conflicts(cases)))
    assert measured(Always()).cases == first.cases  # equal by all that is known of it: kept
    assert measured(Always(), "strict").cases != first.cases
    assert len(list(tmp_path.glob("guard-*.jsonl"))) == 2


def test_a_line_that_was_cut_off_is_computed_again(cases, reader, tmp_path):
    content = Content()
    policy = audit_guard.prepare_policy("default", content)
    guard = audit_guard.AuditGuard(Stack({"negation": Knows(conflicts(cases))}, reader, 0), policy, {})
    whole = audit_guard.measure(guard, cases, tmp_path, silent)
    (file,) = tmp_path.glob("guard-*.jsonl")
    file.write_text(file.read_text()[:-20])
    assert audit_guard.measure(guard, cases, tmp_path, silent) == whole


def test_a_policy_that_is_not_there_is_one_line_before_a_model_is_loaded(content, guarded, tmp_path):
    guarded(Always())
    with pytest.raises(UsageError, match="no policy is called 'lenient'"):
        run_audit("no-such-model", guard="lenient", out=tmp_path / "run", overlay=content)


@pytest.mark.slow
def test_the_real_guard_on_the_small_suite(small_suite, tmp_path):
    result = run_audit("fake:words", guard=True, out=tmp_path / "run", overlay=small_suite)
    guard = result.evidence.guard
    assert set(guard.filters) >= set(HAZARDS)
    assert "mitigations/negation.yaml" in guard.packs
    assert {row.detection for row in result.assessment.fmea} == {10}  # so few cases bound nothing
    assert differences(result.evidence) == []
    assert incomplete(result.evidence, to_bytes(result.evidence)) == []
