"""From documents to a suite: checks, plausibility, choice; and that each of them is needed."""

from __future__ import annotations

import random
from collections import Counter
from dataclasses import replace

import pytest

from clinsafe.benchmarks.mining import checks
from clinsafe.benchmarks.mining.novelty import Packs, freeze, novel, read_packs
from clinsafe.benchmarks.mining.plausible import Plausibility
from clinsafe.benchmarks.mining.quads import Candidate, Quads
from clinsafe.benchmarks.mining.rules import Control, Edit, Rules, Verbs
from clinsafe.benchmarks.mining.select import Wanted, select, split_of
from clinsafe.errors import UsageError
from clinsafe.workflows.mine import slug

HARM = "somebody is harmed by it"


FLIP = "BE:b associated with => {b} not associated with"
SAME = "BE:b not:n? associated => {b} {n} linked"


def rules(*, edit: str = FLIP, control: str = SAME) -> Rules:
    find, put = edit.split(" => ")
    again, same = control.split(" => ")
    flip = Edit(id="e", family="e", subtype="s", find=find, put=put, cues=("associated",), harm=HARM)
    reword = Control(
        id="c", family="c", kind="cue", hazards=("negation",), find=again, put=same, cues=("linked",)
    )
    verbs = Verbs(verbs=("cause causes caused caused causing",))
    return Rules(edits={"negation": (flip,)}, controls=(reword,), verbs=verbs)


TEXT = (
    "Heavy smoking was associated with stroke in this large cohort. "
    "We examined whether age was associated with stroke in men. "
    "The children were treated with oral antibiotics for two weeks."
)


def test_a_document_gives_a_quad(pipeline):
    quads = Quads(rules(), pipeline)
    (one,) = quads.of("d1", TEXT)
    assert one.b == "Heavy smoking was not associated with stroke in this large cohort."
    assert one.a_same == "Heavy smoking was linked with stroke in this large cohort."
    assert one.b_same == "Heavy smoking was not linked with stroke in this large cohort."
    assert (one.cluster, one.size, one.size_same, one.balanced) == ("d1", 1, 1, True)
    assert quads.tally.refused["no plain statement"] == 1


def test_the_same_document_gives_the_same_quads_anywhere(pipeline):
    assert Quads(rules(), pipeline).of("d1", TEXT) == Quads(rules(), pipeline).of("d1", TEXT)


@pytest.mark.parametrize(
    ("edit", "why"),
    [
        ("BE:b associated with => {b} is associated with", "words that cannot meet"),
        ("smoking BE associated with => smoking associated with", "no finite verb"),
        ("smoking BE associated with => smokers was associated with", "subject and verb disagree"),
        ("associated with => associated with with", "doubled word"),
    ],
)
def test_what_is_no_english_is_refused_and_counted(pipeline, edit, why):
    quads = Quads(rules(edit=edit), pipeline)
    assert quads.of("d1", TEXT) == []
    assert quads.tally.refused[why] == 1


def test_a_control_that_changes_nothing_for_b_gives_no_quad(pipeline):
    assert Quads(rules(control="was associated => was linked"), pipeline).of("d1", TEXT) == []


def test_a_general_control_keeps_clear_of_the_edit(pipeline):
    made = rules()
    general = made.controls[0].model_copy(update={"hazards": (), "kind": "synonym"})
    assert Quads(made.model_copy(update={"controls": (general,)}), pipeline).of("d1", TEXT) == []


@pytest.mark.parametrize(
    ("a", "b", "same", "hazard", "kind", "factor", "why"),
    [
        ("x 5 mg y", "x 50 mg y", "x 5 mg z", "numerical", "synonym", True, ""),
        ("x 5 mg y", "x 50 mg y", "x 7 mg y", "numerical", "synonym", True, "the control changed a number"),
        ("x 5 mg y", "x 50 mg y", "x 5000 ug y", "numerical", "unit", True, ""),
        ("x 5 mg y", "x 50 mg y", "x 5 mg z", "negation", "synonym", False, "the edit changed a number"),
        ("x 5 mg y", "no 5 mg y", "x 5 mg z", "numerical", "synonym", True, "the edit changed no number"),
        ("x y z", "x Y z.", "x y w", "negation", "synonym", False, "two sentences are the same words"),
    ],
)
def test_labels_are_held_against_the_numbers(a, b, same, hazard, kind, factor, why):
    assert checks.label_fault(a, b, same, hazard=hazard, control_kind=kind, factor=factor) == why


CORPUS = [
    "the patients were treated with antibiotics for two weeks",
    "the children were treated with oral antibiotics",
] * 5


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        ("the children were treated with antibiotics", "the children treated were antibiotics with"),
        ("the patients were treated with oral antibiotics", "the patients were treated with oral weeks"),
    ],
)
def test_word_salad_is_less_plausible(good, bad):
    model, source = Plausibility(CORPUS), "the patients were treated with antibiotics"
    assert model.delta(source, good) > model.delta(source, bad)
    assert Plausibility([]).delta(source, good) == pytest.approx(Plausibility([]).delta(source, bad), abs=1.0)


def test_digits_do_not_count_as_rare_words():
    model = Plausibility(["a dose of 5 mg was given"])
    assert model.delta("a dose of 5 mg was given", "a dose of 7777 mg was given") == 0


def candidates(n: int, families: int = 6) -> list[Candidate]:
    words = [f"w{chr(97 + i % 26)}{chr(97 + i // 26 % 26)}{chr(97 + i // 676)}" for i in range(n * 5)]
    made = []
    for i in range(n):
        seen = f"the {' '.join(words[i * 5 : i * 5 + 5])} was seen"
        made.append(
            Candidate(
                "negation", "s", f"f{i % families}", f"doc{i // 2}", seen, seen.replace("was", "was not"), f"a{i}",
                f"b{i}", "e", f"c{i % 3}", "c", None, HARM, 1, 1 + i % 2,
            )
        )  # fmt: skip
    return made


NOVEL = {"negation": {f"f{i}": i % 2 == 0 for i in range(6)}}
WANTED = Wanted(dev=12, test=60, dev_share=0.25, family_share=0.34, floor=-99)


def test_a_suite_is_chosen_by_the_rules_of_the_card():
    found = select(candidates(400), NOVEL, Plausibility(CORPUS), WANTED).chosen["negation"]
    assert {split: len(part) for split, part in found.items()} == {"dev": 12, "test": 60}
    clusters = {split: [one.cluster for one in part] for split, part in found.items()}
    assert not set(clusters["dev"]) & set(clusters["test"])
    assert all(len(set(part)) == len(part) for part in clusters.values())
    assert not any(NOVEL["negation"][one.family] for one in found["dev"])
    assert sum(NOVEL["negation"][one.family] for one in found["test"]) == 30
    assert 0 < max(Counter(one.family for one in found["test"]).values()) <= 20
    assert sum(one.balanced for one in found["test"]) >= 30


def test_the_order_of_the_shards_changes_nothing():
    one, other = candidates(300), candidates(300)
    random.Random(1).shuffle(other)
    model = Plausibility(CORPUS)
    assert select(one, NOVEL, model, WANTED).chosen == select(other, NOVEL, model, WANTED).chosen


def test_another_seed_is_another_suite():
    model = Plausibility(CORPUS)
    one, other = (select(candidates(300), NOVEL, model, replace(WANTED, seed=seed)).chosen for seed in (0, 1))
    assert one != other


def test_nonsense_and_repeats_are_left_out():
    many = [
        replace(one, a="the same words were seen again", a_same=f"x{i}")
        for i, one in enumerate(candidates(100))
    ]
    assert len(select(many, NOVEL, Plausibility(CORPUS), WANTED).chosen["negation"]["test"]) == 1
    none = select(candidates(100), NOVEL, Plausibility(CORPUS), replace(WANTED, floor=99))
    assert not none.chosen["negation"]["test"]
    assert none.left_out["implausible"]


def test_documents_are_split_by_share():
    share = sum(split_of(f"d{i}", WANTED) == "dev" for i in range(4000)) / 4000
    assert 0.22 < share < 0.28


def test_what_the_packs_know_is_not_novel():
    packs = Packs(" no evidence of denies ruled out ", "0" * 64, 1)
    found = novel(
        {"a": frozenset(["denies"]), "b": frozenset(["ruled in"]), "c": frozenset(["x", "Evidence of"])},
        packs,
    )
    assert found == {"a": False, "b": True, "c": False}
    assert read_packs().knows("denies")
    assert not read_packs().knows("xylophone")


def test_a_family_that_the_freeze_does_not_name_stops_the_mining():
    frozen = freeze(rules(), Packs(" ", "0" * 64, 1), "abc1234")
    assert frozen.families(rules(), ["negation"]) == {"negation": {"e": True}}
    with pytest.raises(UsageError, match=r"says nothing about family 'e'.*suite freeze"):
        frozen.model_copy(update={"novel": {}}).families(rules(), ["negation"])


def test_a_family_with_another_cue_is_no_longer_known_to_be_novel():
    frozen = freeze(rules(), Packs(" ", "0" * 64, 1), "abc1234")
    edit = rules().edits["negation"][0].model_copy(update={"cues": ("no",)})
    changed = rules().model_copy(update={"edits": {"negation": (edit,)}})
    with pytest.raises(UsageError, match="other cues now"):
        frozen.families(changed, ["negation"])


def test_no_dev_case_is_like_a_test_case():
    many, model = candidates(400), Plausibility(CORPUS)
    before = select(many, NOVEL, model, WANTED).chosen["negation"]
    assert before["dev"]
    text = before["test"][0].a
    many = [
        replace(one, a=text, a_same=f"x{i}") if split_of(one.cluster, WANTED) == "dev" else one
        for i, one in enumerate(many)
    ]
    after = select(many, NOVEL, model, WANTED).chosen["negation"]
    assert after["test"] == before["test"]
    assert not after["dev"]


def test_two_sources_never_get_one_name():
    names = ["患者一", "患者二", "Zoë", "Zo-", "A.1", "A-1", "a-1", "x" * 80, "x" * 81]
    slugs = [slug(name) for name in names]
    assert len(set(slugs)) == len(names)
    assert all(len(one) <= 60 and one[0].isalnum() for one in slugs)
