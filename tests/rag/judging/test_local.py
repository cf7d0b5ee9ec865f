"""The local judge: on real weights with the real filters, and its logic on vectors made by hand."""

from __future__ import annotations

import numpy as np
import pytest

from clinsafe.errors import ModelError
from clinsafe.protocols import Judge, Judgement, JudgeTask, ModelIdentity
from clinsafe.rag.clash import Clash
from clinsafe.rag.judging.local import LocalJudge
from clinsafe.rag.judging.support import LocalThresholds
from clinsafe.workflows.rag_judges import JudgeOptions, build_judge
from tests.rag.judging.claims import CLAIMS


class Bag:
    """Unit vectors of word counts, and how often it was asked."""

    identity = ModelIdentity("bag", fake=True)

    def __init__(self, fill=None):
        self.calls, self.fill = [], fill

    def encode(self, texts, /):
        self.calls.append(list(texts))
        rows = np.full((len(texts), 64), 1e-6, np.float32)
        for row, text in zip(rows, texts, strict=True):
            for word in text.lower().replace(".", "").split():
                row[sum(map(ord, word)) % 64] += 1
        rows /= np.linalg.norm(rows, axis=1, keepdims=True)
        return rows if self.fill is None else np.full_like(rows, self.fill)


class Same(Bag):
    """All texts mean the same."""

    def encode(self, texts, /):
        return np.tile(np.float32([[1, 0]]), (len(texts), 1))


def free(_reference, _text):
    return Clash()


def judge(conflicts=free, **options):
    return LocalJudge(options.pop("encoder", None) or Bag(), conflicts, **options)


def ask(
    metric="adherence",
    question="Does she take it?",
    answer="She takes it.",
    contexts=("She takes it.",),
    **more,
):
    return JudgeTask(metric, question, answer, contexts, **more)


# ── instruments that say always the same must fail ─────────────────────────────────────────────


class Always:
    def __init__(self, value):
        self.value = value

    def judge_many(self, tasks):
        outcome = "unscored" if self.value is None else "scored"
        return [Judgement(outcome, self.value, "") for _ in tasks]


def misses(judge):
    """(false support, false rejection) on the annotated claims, and how many were not scored."""
    said = judge.judge_many([JudgeTask("support", "", one.claim, [one.context]) for one in CLAIMS])
    wrong, lost = [], []
    for one, judgement in zip(CLAIMS, said, strict=True):
        if one.label == "supported" and judgement.value != 1:
            lost.append(one)
        if one.label != "supported" and judgement.value != 0:
            wrong.append(one)
    return wrong, lost


def test_the_annotated_claims_cover_all_hazards_both_ways():
    for hazard in ("negation", "numerical", "temporal", "entity_swap", "hedging", "quantifier"):
        labels = [one.label for one in CLAIMS if one.hazard == hazard]
        assert labels.count("supported") >= 2
        assert labels.count("contradicted") >= 2


@pytest.mark.slow
def test_each_annotated_claim_is_judged_as_it_is_labelled(minilm):
    local = build_judge("local", JudgeOptions(encoder=minilm))
    assert isinstance(local, Judge)
    assert misses(local) == ([], [])
    wrong, _ = misses(build_judge("local", JudgeOptions(encoder=minilm, conflicts=free)))
    assert {one.hazard for one in wrong} >= {"temporal", "entity_swap", "quantifier"}


def test_filters_and_string_rules_decide_the_annotated_claims_where_all_vectors_are_equal():
    wrong, lost = misses(build_judge("local", JudgeOptions(encoder=Same())))
    assert ({one.label for one in wrong}, lost) == (
        {"unsupported"},
        [],
    )  # that they are unlike is for vectors to say
    wrong, _ = misses(build_judge("local", JudgeOptions(encoder=Same(), conflicts=free)))
    assert {one.hazard for one in wrong} >= {"temporal", "entity_swap", "quantifier"}


@pytest.mark.parametrize("value", [1.0, 0.0, None])
def test_a_judge_that_says_always_the_same_fails_on_them(value):
    assert misses(Always(value)) != ([], [])


# ── words that stand in the context and are not said by it ─────────────────────────────────────

CLAIM = "The patient has a penicillin allergy."


@pytest.mark.parametrize(
    "context",
    [
        "It is not true that the patient has a penicillin allergy.",
        "We do not believe the patient has a penicillin allergy.",
        "The patient has a penicillin allergy? No.",
        "The patient has a penicillin allergy. This was later refuted by testing.",
        "The following is false. The patient has a penicillin allergy.",
        "If the patient has a penicillin allergy, give doxycycline.",
        "It is a myth that the patient has a penicillin allergy.",
        "Nobody thinks the patient has a penicillin allergy.",
        "Family history:\nThe patient has a penicillin allergy.",
    ],
)
def test_a_claim_that_stands_there_word_for_word_is_not_supported_where_it_is_turned(context):
    """The filters see nothing here, and the vectors are equal: only the string rules are left."""
    said = judge(encoder=Same()).judge(ask("support", answer=CLAIM, contexts=[context]))
    assert (said.outcome, said.value) == ("scored", 0)


def test_a_claim_that_stands_there_unturned_is_supported_whatever_the_vectors_say():
    at = LocalThresholds(support=1.1)
    said = judge(thresholds=at).judge(
        ask("support", answer=CLAIM, contexts=[f"Seen today: {CLAIM[:-1]} and a rash."])
    )
    assert said.value == 1


def test_a_part_of_a_word_is_no_literal_match():
    at = LocalThresholds(support=1.1)
    said = judge(thresholds=at).judge(
        ask("support", answer="He has an ulcer.", contexts=["He has an ulceration."])
    )
    assert said.value == 0


# ── outcomes ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("task", "reason"),
    [
        (ask(answer=""), "empty answer"),
        (ask(answer=" \n\x00 ..."), "empty answer"),
        (ask(answer="I don't know."), "abstained"),
        (ask(answer="The provided context does not mention the dose."), "abstained"),
        (ask(contexts=()), "no contexts"),
        (ask(contexts=("", " ")), "no contexts"),
        (ask("answer_relevancy", question=""), "no question"),
        (ask("answer_relevancy", answer="CANNOT ANSWER"), "abstained"),
        (ask("correctness"), "no reference"),
        (ask("context_relevancy", contexts=("One.", "Two.")), "one context at a time"),
        (ask("faith"), "unknown metric"),
        (ask(answer="Yes."), "no claim"),
    ],
)
def test_what_cannot_be_judged_is_unscored_and_says_why(task, reason):
    said = judge().judge(task)
    assert (said.outcome, said.value, said.reason) == ("unscored", None, reason)


def test_adherence_is_the_share_of_supported_claims():
    said = judge().judge(
        ask(answer="She takes aspirin. Mars is red. Snow is cold.", contexts=["She takes aspirin."])
    )
    assert said.value == pytest.approx(1 / 3)
    assert said.rationale == "1/3; supported similarity similarity"


@pytest.mark.parametrize("hazard", ["negation", "quantifier"])
def test_a_conflict_is_named_by_its_hazard(hazard):
    said = judge(lambda _r, _t: Clash((hazard,))).judge(ask("support"))
    assert (said.value, said.rationale) == (0, f"0/1; conflict:{hazard}")


def test_what_a_filter_did_not_look_at_is_never_supported():
    said = judge(lambda _r, _t: Clash(unchecked=("temporal",))).judge(ask("support"))
    assert (said.value, said.rationale) == (0, "0/1; unchecked")

    def broken(_r, _t):
        raise ModelError("gone")

    assert judge(broken).judge(ask("support")).rationale == "0/1; unchecked"


def test_a_nearer_window_that_contradicts_wins():
    def conflicts(reference, _text):
        return Clash(("negation",)) if reference == "She takes it now." else Clash()

    task = ask("support", answer="She takes it now.", contexts=["She takes it now.", "She takes it."])
    assert judge(conflicts).judge(task).rationale == "0/1; contested"


@pytest.mark.parametrize("fill", [np.nan, np.inf])
def test_an_encoder_without_numbers_is_an_error_and_never_a_zero(fill):
    said = judge(encoder=Bag(fill)).judge_many([ask(), ask("context_relevancy"), ask(answer="")])
    assert [one.outcome for one in said] == ["error", "error", "unscored"]
    assert all(one.value is None for one in said)


def test_many_tasks_are_encoded_in_one_call_without_repetitions():
    bag = Bag()
    tasks = [
        ask(),
        ask("context_relevancy"),
        ask("answer_relevancy"),
        ask(),
        ask("correctness", reference="It is taken."),
    ]
    many = judge(encoder=bag).judge_many(tasks)
    (texts,) = bag.calls
    assert len(texts) == len(set(texts))
    assert many == [judge().judge(task) for task in tasks]
    assert all(one.outcome == "scored" for one in many)


def test_no_tasks_ask_for_nothing():
    bag = Bag()
    assert judge(encoder=bag).judge_many([]) == []
    assert not bag.calls


def test_relevancy_is_calibrated_and_bounded():
    at = LocalThresholds()
    assert (at.relevancy(-1), at.relevancy(at.unrelated), at.relevancy(at.related), at.relevancy(1)) == (
        0,
        0,
        1,
        1,
    )
    far = judge().judge(
        ask("context_relevancy", question="Is snow cold?", contexts=["Mars orbits far away."])
    )
    near = judge().judge(
        ask("context_relevancy", question="Is snow cold?", contexts=["Mars orbits. Snow is cold?"])
    )
    assert far.value < near.value


def test_the_querys_side_of_an_encoder_is_used_for_questions():
    class TwoSided(Bag):
        def encode_queries(self, texts, /):
            self.queries = list(texts)
            return self.encode(texts)

    two = TwoSided()
    judge(encoder=two).judge(ask("context_relevancy"))
    assert two.queries == ["Does she take it?"]


def test_correctness_is_what_the_answer_says_of_the_reference():
    task = ask("correctness", answer="She takes aspirin.", reference="She takes aspirin. Mars is red.")
    assert judge().judge(task).value == 0.5
    assert judge(lambda _r, _t: Clash(("numerical",))).judge(task).reason == "contradicted"


def test_nli_can_refuse_and_can_stand_in_for_nearness_but_not_for_the_filters():
    def odds(row):
        return lambda pairs: np.tile(np.float64([row]), (len(pairs), 1))

    near = ask("support")
    assert judge(nli=odds([0.9, 0.05, 0.05])).judge(near).rationale == "0/1; nli"
    assert judge(nli=odds([np.nan] * 3)).judge(near).value == 0
    far = ask("support", answer="She takes the drug daily.", contexts=["She swallows the drug every day."])
    at = LocalThresholds(support=0.99)
    assert judge(thresholds=at).judge(far).value == 0
    assert judge(thresholds=at, nli=odds([0.0, 0.9, 0.1])).judge(far).value in (0, 1)
    told = judge(lambda _r, _t: Clash(("temporal",)), nli=odds([0.0, 1.0, 0.0]))
    assert told.judge(near).value == 0


@pytest.mark.parametrize(
    "text",
    [
        "x" * 300_000,
        "a. " * 20_000,
        "\x00\u202e\ud800 drug",
        "(" * 5000 + "drug",
        "every " + "9" * 5000 + " hours the drug 5,,, mg ٣",
    ],
)
def test_hostile_texts_end_in_an_outcome(text):
    for task in (
        ask(answer="She takes it.", contexts=[text]),
        ask("context_relevancy", question="drug?", contexts=[text]),
    ):
        assert judge().judge(task).outcome in ("scored", "unscored")


def test_the_rationale_and_the_identity_hold_no_words_of_a_text():
    one = judge()
    said = one.judge(ask(answer="Canary sings. She takes it."))
    assert "canary" not in f"{said} {one.identity}".lower()
    assert one.identity.settings["threshold_support"] == "0.7"
    assert one.identity.fake
