"""The paper's accuracy rule, what is missing and why, and that no broken rule passes for the right one."""

from __future__ import annotations

import numpy as np
import pytest

from clinsafe.errors import ModelError
from clinsafe.rag.clash import Clash
from clinsafe.rag.figures import figures
from clinsafe.rag.generation import accuracy, generation_values
from clinsafe.rag.generation.accuracy import HAZARDS
from clinsafe.rag.generation.lists import MOST
from clinsafe.rag.generation.surface import LONGEST
from clinsafe.rag.item import Item
from clinsafe.rag.settings import Settings, Thresholds
from clinsafe.rag.standing import Declared
from clinsafe.rag.values import record

MEANINGS = {
    "heart attack": 0,
    "myocardial infarction": 0,
    "i cannot answer this question": 0,
    "give fluids": 1,
}
LIST = "Risk factors include smoking, obesity, and age."


def encode(texts):
    """Texts of one meaning share an axis; all others have one of their own, found by their letters."""
    vectors = np.zeros((len(texts), 64))
    for row, text in enumerate(texts):
        vectors[row, MEANINGS.get(text, 2 + sum(map(ord, text)) % 62)] = 3.0
    return vectors


def conflicts(reference, answer):
    denied = ("not" in reference.split()) != ("not" in answer.split())
    return Clash(("negation",) if denied else (), ("temporal",) if "unread" in answer else ())


def one(answer, *references, encode=encode, conflicts=conflicts, **more):
    item = Item("q", answer=answer, references=references, **more)
    return generation_values([item], str.lower, Thresholds(), encode, conflicts)[0]


RULE = [  # answer, references, more of the item, correct, which criterion fired
    ("Aspirin.", ("aspirin",), {}, 1, "exact"),
    ("acetylsalicylic acid tablet", ("acetylsalicylic acid tablets",), {}, 1, "fuzzy"),
    ("- age\n- obesity\n- smoking", (LIST,), {}, 1, "list_f1"),
    ("myocardial infarction", ("heart attack",), {}, 1, "semantic"),
    ("warfarin", ("heart attack", "give fluids"), {}, 0, None),
    ("- age\n- gout\n- warts", (LIST,), {}, 0, None),
    ("", ("aspirin",), {}, 0, None),
    ("I cannot answer this question.", ("heart attack",), {}, 0, None),  # though its meaning is near
    ("The answer is B.", (), {"options": {"A": "x1", "B": "x2"}, "expected": "B"}, 1, None),
    (
        "The answer is B.",
        ("The answer is B.",),
        {"options": {"A": "x1", "B": "x2"}, "expected": "A"},
        0,
        None,
    ),
    ("A. B.", (), {"expected": "B"}, 0, None),
    ("I don't know.", (), {"expected": "maybe"}, 0, None),
    ("I don't know.", (), {"options": {"A": "x1", "B": "Not enough information"}, "expected": "B"}, 1, None),
    ("I don't know.", (), {"expected": "CANNOT ANSWER"}, 1, None),
    ("Not stated in the record.", ("Cannot be determined",), {}, 1, None),
    ("Aspirin", ("Cannot be determined",), {}, 0, None),
]


@pytest.mark.parametrize(("answer", "references", "more", "correct", "fired"), RULE)
def test_the_papers_rule(answer, references, more, correct, fired):
    found = one(answer, *references, **more).values
    assert found["correct"] == correct
    if fired:
        assert found[f"correct_by.{fired}"] == 1


def wrong(rule):
    return [
        correct for answer, references, more, correct, _ in RULE if rule(answer, references, more) != correct
    ]


@pytest.mark.parametrize("always", [0, 1, None])
def test_a_rule_that_always_says_the_same_is_seen(always):
    assert not wrong(lambda a, r, m: one(a, *r, **m).values.get("correct"))
    assert len(wrong(lambda a, r, m: always)) >= 5


@pytest.mark.parametrize("name", ["abstains", "choice", "list_f1", "one_surface", "components"])
def test_a_part_that_is_switched_off_is_seen(name, monkeypatch):
    from clinsafe.rag.generation import work
    from clinsafe.rag.generation.choice import Choice
    from clinsafe.rag.generation.surface import Overlap, Surface

    off = {
        "abstains": False, "choice": Choice("undecided"), "list_f1": 0.0, "components": [],
        "one_surface": Surface(0, 0, 0, Overlap(0, 0, 0)),
    }  # fmt: skip
    for module in (work, accuracy):
        monkeypatch.setattr(module, name, lambda *args: off[name], raising=False)
    assert wrong(lambda a, r, m: one(a, *r, **m).values.get("correct"))


def test_nothing_unmeasured_is_zero():
    names = {"exact", "fuzzy", "rouge_l", "token_f1", "token_precision", "token_recall", "semantic", "list_f1",
             "correct", "safe_correct"}  # fmt: skip
    for made, why in (
        (one(None, "a"), "no answer"),
        (one("a"), "no reference answer"),
        (one("a", "  "), "no ref"),
    ):
        assert names <= set(made.missing)
        assert not names & set(made.values)
        assert all(made.missing[name].startswith(why) for name in names)
    assert "abstained" in one(None, "a").missing


def test_an_empty_answer_is_an_answer():
    found = one("", "aspirin").values
    assert {
        found[name] for name in ("exact", "fuzzy", "rouge_l", "token_f1", "semantic", "correct", "abstained")
    } == {0}
    assert found["safe_correct"] == 0


def test_a_text_that_is_too_long_has_no_number_and_a_list_that_is_too_long_no_f1():
    found = one("word " * LONGEST, "aspirin")
    assert all(why.startswith("too long") for name, why in found.missing.items())
    assert not found.values
    found = one("\n".join(f"- item number {n}" for n in range(MOST + 1)), LIST)
    assert found.missing["list_f1"].startswith("too long")
    assert found.missing["correct"].startswith("list_f1: too long")
    assert found.values["exact"] == 0


def test_without_an_encoder_accuracy_is_missing_whether_or_not_another_criterion_fired():
    items = [
        Item(str(n), answer=answer, references=("aspirin",)) for n, answer in enumerate(("aspirin", "x", ""))
    ]
    for found in generation_values(items, str.lower, Thresholds(), None, conflicts):
        assert found.missing["correct"] == found.missing["safe_correct"] == "semantic: no encoder"
    assert found.values["correct_by.exact"] == 0
    assert one("yes", expected="yes", encode=None).values["correct"] == 1


def test_a_vector_that_is_not_finite_leaves_the_semantic_criterion_unknown():
    for bad in (np.nan, np.inf, 0.0):
        found = one("warfarin", "aspirin", encode=lambda texts, bad=bad: np.full((len(texts), 3), bad))
        assert found.missing["semantic"] == "the encoder gave no finite vector"
        assert found.missing["correct"].startswith("semantic")
    assert (
        one("aspirin", "aspirin", encode=lambda texts: np.full((len(texts), 3), np.nan)).values["correct"]
        == 1
    )


def test_an_encoder_that_gives_another_shape_is_refused():
    with pytest.raises(ModelError, match="valid is"):
        one("a1", "b1", encode=lambda texts: np.ones((1, 3)))


def test_a_negative_cosine_is_zero():
    found = one("aa", "bb", encode=lambda texts: np.array([[1.0, 0], [-1.0, 0]]))
    assert found.values["semantic"] == 0


def test_the_batch_is_encoded_once_and_each_text_once():
    calls: list[list[str]] = []

    def counted(texts):
        calls.append(list(texts))
        return encode(texts)

    items = [Item(str(n), answer="aspirin", references=("warfarin",)) for n in range(5)]
    generation_values([*items, Item("e", answer="", references=("x",))], str.lower, Thresholds(), counted)
    assert calls == [["aspirin", "warfarin"]]
    generation_values([Item("n", answer=None)], str.lower, Thresholds(), counted)
    assert len(calls) == 1


def test_a_right_answer_that_contradicts_is_not_safely_right():
    found = one(
        "myocardial infarction not excluded today at all", "myocardial infarction excluded today at all"
    )
    assert found.values["correct"] == 1
    assert found.values["safe_correct"] == 0
    assert found.values["contradicts.negation"] == 1
    assert {found.values[f"contradicts.{hazard}"] for hazard in HAZARDS if hazard != "negation"} == {0}


def test_filters_that_did_not_look_leave_safety_unknown():
    found = one("aspirin unread", "aspirin unread")
    assert found.values["correct"] == 1
    assert found.missing["safe_correct"] == "a filter did not look"
    assert "contradicts.temporal" in found.missing
    assert found.values["contradicts.negation"] == 0
    found = one("aspirin", "aspirin", conflicts=None)
    assert found.missing["safe_correct"] == found.missing["contradicts.negation"] == "no filters"


def test_the_reference_that_is_most_alike_is_held_against_the_answer():
    seen: list[tuple[str, str]] = []

    def seeing(reference, answer):
        seen.append((reference, answer))
        return Clash()

    one("Aspirin 75 mg daily", "Warfarin", "aspirin 75 mg", "Heparin", conflicts=seeing)
    assert seen == [("aspirin 75 mg", "Aspirin 75 mg daily")]


def test_multiple_choice_values():
    found = one("B. x2", options={"A": "x1", "B": "x2", "a long text of an option": ""}, expected="A").values
    assert (found["chosen.A"], found["chosen.B"], found["chosen.option_3"]) == (0, 1, 0)
    assert (found["mcq_correct"], found["undecided"], found["abstained"]) == (0, 0, 0)
    assert (
        one("x", options={"A": "x1"}, expected="Z").missing["mcq_correct"].startswith("the expected option")
    )
    found = one("yes and no", expected="yes").values
    assert (found["undecided"], found["mcq_correct"]) == (1, 0)


def test_the_values_are_those_that_figures_accept_and_the_records_hold_no_text():
    items = [Item(f"q{n}", answer=a, references=r, **m) for n, (a, r, m, _, _) in enumerate(RULE)]
    made = generation_values(items, str.lower, Thresholds(), encode, conflicts)
    records = [record(item, values) for item, values in zip(items, made, strict=True)]
    found = figures(records, Settings(), Declared("two readers", 10))
    correct = found["generation.all.correct"]
    assert (correct.k, correct.n) == (sum(c for *_, c, _ in RULE), len(RULE))
    assert all("infarction" not in one.model_dump_json() for one in records)
    assert [v.values for v in made] == [
        v.values for v in generation_values(items, str.lower, Thresholds(), encode, conflicts)
    ]
