"""Retrieval values: yes, no and not known are three answers; a hit that contradicts the reference is not a safe one."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.adapters.reference import FakeEncoder
from clinsafe.checklist.hazards import load_hazards
from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.rag.clash import Clash
from clinsafe.rag.item import Context, Item
from clinsafe.rag.relevance import NO_ENCODER, NO_REFERENCE, Match, relevance
from clinsafe.rag.retrieval import HAZARDS, NO_FILTERS, NO_PASSAGES, NOT_CHECKED, retrieval_values
from clinsafe.rag.settings import Settings
from tests.perf.rag_metrics import cheap

YES, NO, UNKNOWN = Match(1, 1.0, "ref", 0, 3, "win"), Match(0), Match(None, why=NO_ENCODER)
WORDS = FakeEncoder("words")


def item(*ids, references=("ref",), **known):
    return Item(
        "q", contexts=tuple(Context(name, f"text of {name}") for name in ids), references=references, **known
    )


def measured(matches, conflicts=None, of=None, encoder=None, k=10):
    of = of or item(*[f"c{rank}" for rank in range(len(matches))])
    return retrieval_values([of], [matches], Settings(k=k), encoder, conflicts)[0]


def saying(**by_window):
    return lambda reference, window: by_window.get(window, Clash())


def window(name):
    return Match(2, 0.9, "ref", 0, 1, name)


def test_the_hazards_are_those_that_the_checklist_declares():
    assert tuple(hazard.id for hazard in load_hazards(Content())) == HAZARDS


# ── hits ───────────────────────────────────────────────────────────────────────────────────────


def test_hits_and_levels_by_rank():
    found = measured([NO, YES, window("w"), Match(3, 0.8, "ref", 0, 1, "v")]).values
    assert [found[f"hit_at.{rank}"] for rank in (1, 2, 3, 4)] == [0, 1, 1, 1]
    assert [found[f"level_at.{rank}"] for rank in (1, 2, 3, 4)] == [0, 1, 2, 3]
    assert (found["hit"], found["contexts"], found["rr_cascade"]) == (1, 4, 0.5)
    assert found["ap_cascade"] == pytest.approx((1 / 2 + 2 / 3 + 3 / 4) / 3)


def test_nothing_found_is_zero_and_no_passage_is_nothing_found():
    for matches in ([], [NO, NO]):
        found = measured(matches, saying())
        assert [found.values[name] for name in ("hit", "rr_cascade", "ap_cascade", "safe_hit")] == [
            0,
            0,
            0,
            0,
        ]
        assert set(found.missing) >= {f"conflict.{hazard}" for hazard in HAZARDS}


def test_what_is_not_known_is_missing_and_never_zero():
    found = measured([NO, UNKNOWN])
    assert {"hit", "hit_at.2", "level_at.2", "rr_cascade", "ap_cascade"} <= set(found.missing)
    assert found.values["hit_at.1"] == 0
    assert found.missing["hit"] == NO_ENCODER
    partly = measured([YES, UNKNOWN])
    assert (partly.values["hit"], partly.values["rr_cascade"]) == (1, 1)
    assert "ap_cascade" in partly.missing
    late = measured([UNKNOWN, YES])
    assert late.values["hit"] == 1
    assert "rr_cascade" in late.missing


@pytest.mark.parametrize("references", [(), ("...",)])
def test_without_a_reference_nothing_is_a_hit_or_a_miss(references):
    for ids in ((), ("a", "b")):
        of = item(*ids, references=references)
        found = retrieval_values(
            [of], relevance([of], cheap, Settings(), WORDS), Settings(), WORDS, saying()
        )[0]
        assert not {"hit", "safe_hit", "rr_cascade", "ap_cascade", "hit_at.1"} & set(found.values)
        assert found.missing["hit"] == found.missing["safe_hit"] == NO_REFERENCE


def test_passages_that_nobody_knows_are_not_an_empty_list():
    found = measured([], saying(), Item("q", references=("a",), ranking=("x", "y"), relevance={"y": 1}))
    assert found.missing["hit"] == found.missing["contexts"] == found.missing["safe_hit"] == NO_PASSAGES
    assert found.values["rr"] == 0.5


def test_a_passage_that_comes_twice_is_a_hit_at_both_ranks_and_relevant_once():
    found = measured([YES, YES, YES], of=item("a", "a", "b")).values
    assert (found["hit_at.1"], found["hit_at.2"]) == (1, 1)
    assert found["ap_cascade"] == pytest.approx((1 + 2 / 3) / 2)


@settings(max_examples=60)
@given(st.lists(st.sampled_from([YES, NO, UNKNOWN]), max_size=7))
def test_every_name_is_a_number_or_a_reason_and_hit_is_any(matches):
    found = measured(matches, saying())
    assert not set(found.values) & set(found.missing)
    assert all(found.missing.values())
    at = [found.values.get(f"hit_at.{rank}") for rank in range(1, len(matches) + 1)]
    assert at == [None if match is UNKNOWN else float(match is YES) for match in matches]
    assert found.values.get("hit") == (1 if 1 in at else None if None in at else 0)
    assert found.values.get("safe_hit") == found.values.get("hit")


# ── safe hits ──────────────────────────────────────────────────────────────────────────────────


def test_without_filters_nothing_is_called_safe():
    for matches in ([YES], [NO], []):
        found = measured(matches)
        assert not [name for name in found.values if name.startswith(("safe", "conflict"))]
        assert found.missing["safe_hit"] == found.missing["conflict.negation"] == NO_FILTERS


def test_a_conflict_in_the_window_is_a_hit_that_is_not_safe():
    conflicts = saying(bad=Clash(("negation",)))
    alone = measured([window("bad"), NO], conflicts).values
    assert (alone["hit"], alone["safe_hit"], alone["safe_at.1"], alone["safe_at.2"]) == (1, 0, 0, 0)
    assert (alone["conflict.negation"], alone["conflict.numerical"]) == (1, 0)
    beside = measured([window("bad"), window("good")], conflicts).values
    assert (beside["safe_hit"], beside["safe_at.2"], beside["conflict.negation"]) == (1, 1, 1)


@pytest.mark.parametrize("unchecked", ["negation", "TimeoutError"])
def test_what_was_not_looked_at_is_not_safe_and_not_free_of_conflict(unchecked):
    found = measured([window("late")], saying(late=Clash((), (unchecked,))))
    assert found.values["safe_hit"] == found.values["safe_at.1"] == 0
    assert found.missing["conflict.negation"] == NOT_CHECKED
    assert ("conflict.numerical" in found.values) == (unchecked == "negation")


def test_filters_that_fail_have_not_looked():
    def failing(reference, text):
        raise UsageError("no")

    found = measured([YES], failing)
    assert found.values["safe_hit"] == 0
    assert found.missing["conflict.negation"] == NOT_CHECKED


def test_a_hazard_of_another_package_is_kept():
    found = measured([window("bad")], saying(bad=Clash(("laterality",)))).values
    assert (found["conflict.laterality"], found["conflict.negation"]) == (1, 0)


def test_a_passage_of_which_r_is_not_known_may_be_the_safe_one():
    found = measured([window("bad"), UNKNOWN], saying(bad=Clash(("negation",))))
    assert found.values["conflict.negation"] == 1
    assert {"safe_hit", "safe_at.2", "conflict.numerical"} <= set(found.missing)


def test_reference_comes_first_and_each_pair_is_asked_once():
    asked = []

    def conflicts(*pair):
        asked.append(pair)
        return Clash()

    retrieval_values([item("a", "b")] * 2, [[YES, YES]] * 2, Settings(), None, conflicts)
    assert asked == [("ref", "win")]


def test_a_check_that_is_off_always_yes_or_always_no_is_told_apart():
    matches = [window("bad"), window("good"), NO]

    def safe(conflicts):
        found = measured(matches, conflicts)
        return [found.values.get(f"safe_at.{rank}") for rank in (1, 2, 3)]

    right = safe(saying(bad=Clash(("negation",))))
    assert right == [0, 1, 0]
    for wrong in (None, lambda *_: Clash(), lambda *_: Clash(("negation",)), lambda *_: Clash((), ("x",))):
        assert safe(wrong) != right


@pytest.mark.slow
def test_r_is_blind_to_negation_and_the_filters_are_not():
    from clinsafe.rag.normalise import normaliser
    from clinsafe.workflows.rag_conflicts import build_conflicts

    reference = "The patient has a penicillin allergy."
    passages = ["The patient has no penicillin allergy.", "The patient has a documented penicillin allergy."]
    of = Item("q", contexts=tuple(Context(text, text) for text in passages), references=(reference,))
    matches = relevance([of], normaliser().normalise, Settings(), WORDS)
    found = retrieval_values([of], matches, Settings(), WORDS, build_conflicts(spacy=""))[0].values
    assert [found["hit_at.1"], found["hit_at.2"]] == [1, 1]
    assert [found["safe_at.1"], found["safe_at.2"]] == [0, 1]
    assert (found["conflict.negation"], found["safe_hit"]) == (1, 1)


# ── overlap ────────────────────────────────────────────────────────────────────────────────────


def test_overlap_is_the_cosine_of_each_two_passages_in_one_call():
    calls = []

    class Counting(FakeEncoder):
        def encode(self, texts, /):
            calls.append(list(texts))
            return super().encode(texts)

    same = Item("q", contexts=tuple(Context(str(n), text) for n, text in enumerate(["a b", "a b", "c d"])))
    found = retrieval_values([same, item("x", "y")], [[NO] * 3, [NO] * 2], Settings(), Counting("words"))
    values = found[0].values
    assert values["overlap.1_2"] == 1.0
    assert values["overlap.1_3"] == values["overlap.2_3"] < 0.7
    assert "overlap.1_2" in found[1].values
    assert len(calls) == 1
    assert measured([NO, NO]).missing["overlap.1_2"]
    assert not [name for name in measured([NO], encoder=WORDS).values if name.startswith("overlap")]


def test_only_the_first_ten_ranks_are_paired():
    found = measured([NO] * 14, encoder=WORDS, k=14).values
    assert len([name for name in found if name.startswith("overlap")]) == 45
    assert "overlap.9_10" in found


def test_values_do_not_hang_on_the_batch():
    questions = [item("a", "b", "c"), item(), item("d", "b", references=("text of b",))]
    settings = Settings()
    matches = relevance(questions, cheap, settings, WORDS)
    whole = retrieval_values(questions, matches, settings, WORDS, saying())
    single = [
        retrieval_values([q], relevance([q], cheap, settings, WORDS), settings, WORDS, saying())[0]
        for q in questions
    ]
    assert whole == single
