"""The NLI filter: what it asks the model, what it makes of the answer, and what it never says."""

from __future__ import annotations

from dataclasses import replace
from datetime import date

import numpy as np
import pytest

from clinsafe.content import Content
from clinsafe.errors import ContentError, ModelError
from clinsafe.mitigations.bounds import UNREAD
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.filters.nli import NOT_RUN, NliFilter
from clinsafe.mitigations.nli.calibration import Calibration, Share, fingerprint, load_calibration
from clinsafe.mitigations.nli.settings import load_settings
from clinsafe.mitigations.nli.threshold import UNREADABLE, choose, fewest, most_alarms
from clinsafe.mitigations.stack import Stack
from clinsafe.protocols import Filter, ModelIdentity
from clinsafe.stats import rate, rate_of
from clinsafe.text import Reader

READER = Reader(model="")
SETTINGS = load_settings()
POSITIVE, NEGATIVE = "The patient has a penicillin allergy.", "The patient has no penicillin allergy."
SAME = "A penicillin allergy is known in this patient."


class Says:
    """A model whose answer is `contradicts(premise, hypothesis)`; remembers what it was asked."""

    def __init__(self, contradicts, cut=lambda _a, _b: False, name="fake"):
        self.contradicts, self.cut = contradicts, cut
        self.asked: list[tuple[str, str]] = []
        self.identity = ModelIdentity(name, fake=True, kind="cross-encoder")

    def probabilities(self, pairs, /):
        self.asked += pairs
        rows = [float(self.contradicts(a, b)) for a, b in pairs]
        return np.array([[p, (1 - p) * 0.9, (1 - p) * 0.1] for p in rows]).reshape(-1, 3)

    def truncates(self, pairs, /):
        return np.array([self.cut(a, b) for a, b in pairs], dtype=bool)


def negated(text):
    return " no " in f" {text.lower()} "


def sees_negation(a, b):
    return 0.97 if negated(a) != negated(b) else 0.02


def stack_of(model, **changes):
    settings = SETTINGS.model_copy(update=changes)
    return Stack({"nli": NliFilter(model, settings)}, READER, seconds=0)


def compare(model, query, passage, **changes):
    stack = stack_of(model, **changes)
    return stack.compare(stack.read(query), stack.read(passage))


# ── a working model, and three that are none ──


def works(model):
    told = compare(model, POSITIVE, NEGATIVE)
    quiet = compare(model, POSITIVE, SAME)
    return told.conflict and not quiet.conflict and not quiet.unchecked


def test_a_working_model_is_told_from_useless_ones():
    assert works(Says(sees_negation))
    assert not works(Says(lambda _a, _b: 0.99))  # always
    assert not works(Says(lambda _a, _b: 0.01))  # never
    assert not works(Says(lambda a, b: 1 - sees_negation(a, b)))  # labels exchanged


def test_a_finding_says_what_a_clinician_needs():
    model = Says(sees_negation)
    assert isinstance(NliFilter(model, SETTINGS), Filter)
    query = f"Seen today.\n\n{POSITIVE}"
    (finding,) = compare(model, query, f"Well.  {NEGATIVE} Home.").findings
    assert (finding.hazard, finding.verdict, finding.kind) == ("nli", "conflict", "contradiction")
    assert finding.severity == "note"  # not calibrated
    assert finding.confidence == pytest.approx(0.97)
    assert query[finding.query_span.start : finding.query_span.end] == POSITIVE == finding.query_normal
    assert finding.passage_normal == NEGATIVE
    assert "not calibrated" in finding.sentence
    assert "0.97" in finding.sentence


@pytest.mark.parametrize("forward", [True, False])
def test_both_directions_are_asked_and_contradiction_comes_before_entailment(forward):
    """In the other direction the pair looks entailed: whoever tests that first misses the contradiction."""
    model = Says(lambda a, _b: 0.95 if (a == POSITIVE) is forward else 0.0)
    assert compare(model, POSITIVE, NEGATIVE).conflict
    assert set(model.asked) == {(POSITIVE, NEGATIVE), (NEGATIVE, POSITIVE)}


def test_it_never_clears_anything():
    for p in (0.0, 0.5, 0.99):
        found = compare(Says(lambda _a, _b, p=p: p), POSITIVE, NEGATIVE).findings
        assert all(finding.verdict == "conflict" for finding in found)
        assert all(finding.severity in ("note", "moderate") for finding in found)


@pytest.mark.parametrize(("p", "told"), [(0.9, True), (0.899, False)])
def test_the_threshold_is_inclusive(p, told):
    assert compare(Says(lambda _a, _b: p), POSITIVE, NEGATIVE).conflict is told


# ── what the model is asked ──


@pytest.mark.parametrize(
    ("query", "passage"),
    [
        ("Does the patient have a penicillin allergy?", NEGATIVE),
        (POSITIVE, "Is there a penicillin allergy?"),
        (POSITIVE, "The fracture of the left femur was fixed."),
        (POSITIVE, POSITIVE.upper().replace(".", " ")),  # the same words
        (POSITIVE, f"Family history:\n{NEGATIVE}"),
        ("", NEGATIVE),
        (POSITIVE, "..."),
    ],
)
def test_questions_strangers_and_the_same_words_are_not_asked_about(query, passage):
    model = Says(lambda _a, _b: 0.99)
    result = compare(model, query, passage)
    assert not model.asked
    assert result.safe


def test_a_question_beside_a_claim_leaves_the_claim():
    model = Says(sees_negation)
    assert compare(model, f"{POSITIVE} Is amoxicillin safe?", NEGATIVE).conflict
    assert not any("amoxicillin" in text for pair in model.asked for text in pair)


def test_only_pairs_that_can_matter_are_asked_about():
    model = Says(sees_negation)
    passage = f"The wound is dry. {NEGATIVE} Metformin was stopped. Sleep was poor. {NEGATIVE} {NEGATIVE}"
    assert compare(model, POSITIVE, passage).conflict
    assert len(model.asked) == 2  # one pair, both directions


def many(n):
    return " ".join(
        f"On ward {word} a penicillin allergy was written down by nurse {word}." for word in letters(n)
    )


def letters(n):
    return [f"q{chr(97 + i % 26)}{chr(97 + i // 26)}x" for i in range(n)]


def test_more_than_the_limit_is_bounded_best_first_and_unchecked():
    model = Says(sees_negation)
    result = compare(model, POSITIVE, many(30), most_pairs=5)
    assert len(model.asked) == 10
    assert "nli" in result.unchecked
    assert "TooMuchToCompare" in result.unchecked["nli"]
    assert compare(model, POSITIVE, many(5), most_pairs=5).safe


def test_a_contradiction_stands_whatever_was_left_out_and_the_count_is_told():
    model = Says(sees_negation)
    result = compare(model, POSITIVE, f"{many(30)} {NEGATIVE}", most_pairs=1)
    assert model.asked[0] == (POSITIVE, NEGATIVE)  # the best aligned, though it stands last
    (finding,) = result.conflicts
    assert "30 more pairs" in finding.sentence
    assert not result.unchecked


def test_hundreds_of_sentences_are_bounded():
    model = Says(lambda _a, _b: 0.0)
    nli = NliFilter(model, SETTINGS)
    (fact,) = nli.read(READER.read(POSITIVE))
    facts = [replace(fact, normal={**fact.normal, "text": f"{POSITIVE} {i}"}) for i in range(500)]
    judged = nli.judge(facts, facts)
    assert len(judged.pairs) == SETTINGS.most_pairs
    assert judged.left_out > 240_000


def test_a_sentence_too_long_to_be_read_is_unchecked_where_it_could_matter():
    model = Says(sees_negation)
    long = f"The patient has no penicillin allergy {'and was seen again ' * 60}."
    assert "nli" in compare(model, POSITIVE, long).unchecked
    assert not model.asked
    assert compare(model, "The fracture was fixed.", long).safe
    assert compare(model, POSITIVE, f"{long} {NEGATIVE}").conflict


def test_a_pair_that_the_model_reads_in_part_is_unchecked_unless_it_contradicts():
    cut = Says(lambda _a, _b: 0.1, cut=lambda _a, _b: True)
    assert "nli" in compare(cut, POSITIVE, NEGATIVE).unchecked
    cut.contradicts = sees_negation
    assert compare(cut, POSITIVE, NEGATIVE).conflict


# ── a model that fails ──


class Answers(Says):
    def __init__(self, answer):
        super().__init__(sees_negation)
        self.answer = answer

    def probabilities(self, pairs, /):
        return self.answer(len(pairs))


def fail(_n):
    raise RuntimeError("Mrs Canary has HIV")


@pytest.mark.parametrize(
    "answer",
    [
        lambda n: np.full((n, 3), np.nan),
        lambda n: np.zeros((n, 3)),
        lambda n: np.tile([5.1, -2.0, -2.1], (n, 1)),  # logits
        lambda n: np.tile([0.5, 0.5], (n, 1)),
        lambda n: np.tile([0.2, 0.5, 0.3], (n - 1, 1)),
        fail,
    ],
)
def test_what_is_no_probability_is_unchecked_and_never_silence(answer):
    result = compare(Answers(answer), POSITIVE, SAME)
    assert "nli" in result.unchecked
    assert not result.safe
    assert "Canary" not in str(result)


def test_facts_serialise_and_compare_the_same():
    stack = stack_of(Says(sees_negation))
    # reading asks no model: Answers(fail) would leave these facts out
    query, passage = (
        stack_of(Answers(fail)).read(POSITIVE),
        stack.read(f"{NEGATIVE} {'Long and ' * 100} penicillin."),
    )
    again = TextFacts.from_json(passage.to_json())
    assert again == passage
    assert stack.compare(query, again) == stack.compare(query, passage)
    assert {fact.rule for fact in passage.by_filter["nli"]} == {"nli.sentence", UNREAD}


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("threshold: 0.9", "threshold: 1.5", "threshold"),
        ("severity: moderate", "severity: critical", "severity"),
        ("most_pairs: 12", "most_pairs: 0", "most_pairs"),
        ("most_pairs: 12", "most: 12", "most"),
    ],
)
def test_a_slip_in_the_settings_is_told_with_its_line(overlay, old, new, field):
    root = overlay("mitigations/nli.yaml", lambda text: text.replace(old, new))
    with pytest.raises(ContentError) as caught:
        load_settings(Content(root))
    assert caught.value.path == root / "mitigations/nli.yaml"
    assert field in str(caught.value.field)


def test_the_note_says_whether_it_ran_and_is_calibrated():
    model = Says(sees_negation, name="some/model")
    assert (
        NliFilter(model, SETTINGS).note
        == "NLI guardrail: some/model, threshold 0.9, not calibrated; advisory."
    )
    note = NliFilter(model, SETTINGS, calibration(model)).note
    assert "calibrated 2026-11-30" in note
    assert "not calibrated" not in note
    assert "not run" in NOT_RUN


# ── the threshold ──


def test_the_smallest_threshold_that_keeps_the_limit():
    safe = [0.95, 0.8, 0.7, *[0.1] * 97]  # of 100 cases one may alarm at 5 %
    assert most_alarms(100, 0.05) == 1
    found = choose([0.96] * 90 + [0.81] * 5 + [0.3] * 5, safe, limit=0.05, least=0.5)
    assert found.value == pytest.approx(0.800001)
    assert found.false_alarm == rate_of(1, 100)
    assert found.recall == rate_of(95, 100)


@pytest.mark.parametrize("tie", [0.9, 0.3, 0.700001, 1 / 3, 0.123456789])
def test_a_threshold_never_tells_the_alarm_it_was_put_above(tie):
    found = choose([0.99] * 100, [tie] * 2 + [0.0] * 98, limit=0.05, least=0.01)
    assert found.value is not None
    assert tie < found.value < tie + 2e-6
    assert found.false_alarm == rate_of(0, 100)


@pytest.mark.parametrize(
    ("conflict", "safe", "said"),
    [
        ([1.0] * 100, [1.0] * 100, "false alarm"),  # always
        ([0.0] * 100, [0.0] * 100, "does not tell"),  # never
        ([0.02] * 100, [0.97] * 100, "does not tell"),  # labels exchanged
        ([0.6] * 100, [0.6] * 100, "does not tell"),  # a constant
        ([0.99] * 20, [0.0] * 20, "at least 59"),  # too few
        ([0.99] * 100, [UNREADABLE] * 2 + [0.0] * 98, "false alarm"),  # unchecked pairs are alarms
    ],
)
def test_a_useless_model_gets_no_threshold(conflict, safe, said):
    found = choose(conflict, safe, limit=0.05, least=0.5)
    assert found.value is None
    assert said in found.reason


def test_it_never_goes_below_the_least_and_the_fewest_cases_are_just_enough():
    assert choose([0.99] * 100, [0.0] * 100, limit=0.05, least=0.5).value == 0.5
    assert most_alarms(fewest(0.05), 0.05) == 0
    assert most_alarms(fewest(0.05) - 1, 0.05) is None


# ── the calibration file ──


def calibration(model, settings=SETTINGS, **changes):
    yes, no = Share.of(rate([True] * 60)), Share.of(rate([False] * 60))
    values = {
        "model": model.identity.name,
        "model_sha256": fingerprint(model.identity),
        "pairing_sha256": settings.pairing_sha256,
        "threshold": 0.75,
        "limit": 0.05,
        "suite_version": "1.0",
        "cases_sha256": "0" * 64,
        "calibrated": date(2026, 11, 30),
        "trusted_code": False,
        "recall": yes,
        "false_alarm": no,
        "unrelated": no,
        "compared": yes,
        "by_hazard": {"negation": yes},
    }
    return Calibration(**{**values, **changes})


def test_a_calibration_comes_back_from_its_file_and_sets_threshold_and_severity(tmp_path):
    model = Says(lambda _a, _b: 0.8)
    made = calibration(model)
    path = tmp_path / "nli.yaml"
    path.write_text(made.to_yaml(), encoding="utf-8")
    known = load_calibration(path)
    assert known == made
    stack = Stack({"nli": NliFilter(model, SETTINGS, known)}, READER, seconds=0)
    (finding,) = stack.compare(stack.read(POSITIVE), stack.read(NEGATIVE)).conflicts
    assert finding.severity == "moderate"
    assert "not calibrated" not in finding.sentence
    assert not compare(model, POSITIVE, NEGATIVE).conflict  # 0.8 lies below the uncalibrated threshold


def test_a_calibration_of_another_model_or_of_other_limits_is_refused():
    model = Says(sees_negation)
    with pytest.raises(ModelError, match="of another model"):
        NliFilter(Says(sees_negation, name="other"), SETTINGS, calibration(model))
    with pytest.raises(ModelError, match="other limits"):
        NliFilter(model, SETTINGS.model_copy(update={"most_pairs": 3}), calibration(model))
    NliFilter(
        model, SETTINGS.model_copy(update={"severity": "note"}), calibration(model)
    )  # shapes no probability


def test_the_fingerprint_is_of_files_and_label_order_and_not_of_place():
    one = ModelIdentity("a", files={"model.safetensors": "1"}, settings={"labels": "x", "device": "cpu"})
    assert fingerprint(one) == fingerprint(replace(one, name="b", settings={"labels": "x", "device": "cuda"}))
    assert fingerprint(one) != fingerprint(replace(one, settings={"labels": "y", "device": "cpu"}))
    assert fingerprint(one) != fingerprint(replace(one, files={"model.safetensors": "2"}))
    assert fingerprint(ModelIdentity("a")) != fingerprint(ModelIdentity("b"))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("threshold: 0.75", "threshold: 0"),
        ("split: dev", "split: test"),
        ("limit: 0.05", "limit: 0.01"),  # 0 of 60 does not show it
        ("schema_version: '1'", "schema_version: '9'"),
        ("model_sha256: ", "model_sha256: x"),
    ],
)
def test_an_edited_calibration_is_refused_with_its_line(tmp_path, old, new):
    path = tmp_path / "nli.yaml"
    text = calibration(Says(sees_negation)).to_yaml()
    assert old in text
    path.write_text(text.replace(old, new), encoding="utf-8")
    with pytest.raises(ContentError, match=r"nli\.yaml"):
        load_calibration(path)
