"""Edits: what a pattern finds and what is put there; every shipped rule does what its own examples say."""

from __future__ import annotations

import pytest

from clinsafe.benchmarks.mining import pattern, render
from clinsafe.benchmarks.mining.recipe import load_recipe
from clinsafe.benchmarks.mining.rules import FOLDER, EditFile, Rule, Verbs, load_rules
from clinsafe.benchmarks.mining.sentences import parse, split
from clinsafe.content import Content
from clinsafe.errors import ContentError

VERBS = Content().yaml(f"{FOLDER}/verbs.yaml", Verbs).table
ASPIRIN = "Aspirin reduced the risk of stroke in older patients with atrial fibrillation."


def rule(find: str, put: str, unless: tuple[str, ...] = ()) -> Rule:
    return Rule(id="r", family="r", find=find, put=put, cues=("x",), unless=unless)


def made(parsed, text: str, find: str, put: str, unless: tuple[str, ...] = ()) -> list[str]:
    return [text for text, _ in render.apply(rule(find, put, unless), parsed(text), VERBS)]


@pytest.mark.parametrize(
    ("text", "find", "put", "result"),
    [
        (ASPIRIN, "reduced", "did not reduce", ASPIRIN.replace("reduced", "did not reduce")),
        (ASPIRIN, "^ NP:x V:v NP:y $", "{y} {is y} {v.part} by {x}",
         "The risk of stroke in older patients with atrial fibrillation was reduced by aspirin."),
        ("The mean dose was 5 mg of morphine in the first group.", "N:n mg", "{n*10} mg",
         "The mean dose was 50 mg of morphine in the first group."),
        ("The mean dose was 2.5 mg of morphine in the first group.", "N:n mg", "{n/10} mg",
         "The mean dose was 0.25 mg of morphine in the first group."),
        ("The disorder affects 1 in 10,000 people in most of Europe.", "N:n people", "{n*10} people",
         "The disorder affects 1 in 100,000 people in most of Europe."),
        ("A rash was seen in a patient with severe eczema.", "~severe", "acute",
         "A rash was seen in a patient with acute eczema."),
        ("It was a significant cause of death in these infants.", "significant", "important",
         "It was an important cause of death in these infants."),
        ("Hypertension may cause stroke in people of any age.", "^ NP:x may cause NP:y in", "{y} may cause {x} in",
         "Stroke may cause hypertension in people of any age."),
        ("MRI showed a lesion in the left temporal lobe of one child.", "^ NP:x ~show NP:y $", "{y} was shown by {x}",
         "A lesion in the left temporal lobe of one child was shown by MRI."),
    ],
)  # fmt: skip
def test_a_rule_makes(parsed, text, find, put, result):
    assert result in made(parsed, text, find, put)


@pytest.mark.parametrize(
    ("text", "find"),
    [
        (ASPIRIN, "aspirin increased"),
        (ASPIRIN, "^ reduced"),
        (ASPIRIN, "reduced $"),
        (ASPIRIN, "N mg"),
        ("Pain, which was severe, was treated with oral morphine.", "pain ANY was treated"),
    ],
)
def test_a_pattern_that_is_not_there_finds_nothing(parsed, text, find):
    assert made(parsed, text, find, "x") == []


def test_a_word_that_forbids_a_rule_forbids_it(parsed):
    assert made(parsed, ASPIRIN, "reduced", "raised")
    assert not made(parsed, ASPIRIN, "reduced", "raised", ("Older",))


def test_a_number_that_cannot_be_divided_is_left_alone(parsed):
    assert made(parsed, "The mean dose was 0.0001 mg of the drug each day.", "N:n mg", "{n/1000} mg") == []


@pytest.mark.parametrize("find", ["", "x:Bad", "a ? b?c?"])
def test_no_pattern(find):
    with pytest.raises(ValueError, match=r"pattern"):
        pattern.compile_pattern(find)


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("put: x", "put: '{y}'", "names nothing that find keeps"),
        ("put: x", "put: '{x!}'", "is no slot"),
        ("put: x", "examples: ['no arrow']\n    put: x", "before => after"),
        ("put: x", "put: x\n    colour: red", "unknown field"),
        ("find: NP:x was", "find: ''", "empty"),
    ],
)
def test_a_fault_in_a_rule_is_told_by_file_and_line(tmp_path, old, new, told):
    fields = (
        "id: e",
        "family: e",
        "subtype: s",
        "harm: somebody is harmed",
        "find: NP:x was",
        "put: x",
        "cues: [x]",
    )
    text = "edits:\n  - " + "\n    ".join(fields) + "\n"
    (tmp_path / FOLDER).mkdir(parents=True)
    (tmp_path / FOLDER / "negation.yaml").write_text(text.replace(old, new))
    with pytest.raises(ContentError, match=told) as caught:
        Content(tmp_path).yaml(f"{FOLDER}/negation.yaml", EditFile)
    assert "negation.yaml:" in str(caught.value)


def shipped() -> list[Rule]:
    content = Content()
    rules = load_rules(content, tuple(load_recipe(content).hazards))
    return [*(edit for edits in rules.edits.values() for edit in edits), *rules.controls]


@pytest.mark.slow
def test_every_shipped_rule_does_what_its_examples_say(pipeline):
    pairs = [(one, *example.split(" => ")) for one in shipped() for example in one.examples]
    read = {one.text: one for one in parse(pipeline, list(dict.fromkeys(before for _, before, _ in pairs)))}
    wrong = [
        f"{one.id}: {before} => {after}"
        for one, before, after in pairs
        if before not in read or after not in [text for text, _ in render.apply(one, read[before], VERBS)]
    ]
    assert not wrong, "\n".join(wrong[:20])


def test_every_hazard_has_families_enough():
    content = Content()
    rules = load_rules(content, tuple(load_recipe(content).hazards))
    assert {hazard for hazard in rules.edits if len(rules.families(hazard)) < 20} == set()


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("OBJECTIVE\nThe aim was x. Patients with severe sepsis received two antibiotics for a week.", 1),
        ("Patients with sepsis caused by E. coli received two antibiotics for a whole week.", 1),
        ("Did patients with severe sepsis receive two antibiotics for a whole week?", 0),
        ("Patients (n = 20 received two antibiotics for a whole week and one more.", 0),
    ],
)
def test_only_plain_statements_are_edited(text, sentences):
    assert len(split(text)) == sentences
