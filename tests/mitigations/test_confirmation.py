"""Critical numbers are asked for, others are not; gravest first, each once, never more than five."""

from __future__ import annotations

import time

import pytest

from clinsafe.content import Content
from clinsafe.errors import ContentError
from clinsafe.mitigations.confirmation import confirmations, load_confirmation
from clinsafe.mitigations.facts import TextFacts
from clinsafe.protocols import Fact, Passage, Span
from clinsafe.workflows.guard import build_stack

NOTHING = TextFacts({})


@pytest.fixture(scope="module")
def stack():
    return build_stack(None, ["negation", "numerical"])


@pytest.fixture(scope="module")
def pack():
    return load_confirmation()


@pytest.fixture(scope="module")
def ask(stack, pack):
    def asked(query: str, *texts: str, source: str = "BNF", pack=pack):
        passages = [
            (Passage(str(12 + n), text, source=source), stack.read(text)) for n, text in enumerate(texts)
        ]
        found = confirmations(passages, stack.read(query), pack)
        by_id = {passage.id: passage.text for passage, _ in passages}
        assert all(by_id[one.passage][slice(*one.span)] == one.value for one in found)
        assert len(found) <= pack.asks.most
        return found

    return asked


def values(found) -> list[str]:
    return [one.value for one in found]


def test_a_dose_of_high_alert_comes_with_drug_schedule_source_and_passage(ask):
    (one,) = ask(
        "What is the dose in rheumatoid arthritis?", "Start methotrexate 7.5 mg weekly, with folic acid."
    )
    assert (one.passage, one.value) == ("12", "7.5 mg weekly")
    assert (
        one.prompt == "Confirm against the source before use: methotrexate 7.5 mg weekly (passage 12, BNF)."
    )
    (bare,) = ask("Dose?", "Start methotrexate 7.5 mg weekly.", source="")
    assert bare.prompt.endswith("methotrexate 7.5 mg weekly (passage 12).")


@pytest.mark.parametrize(
    ("query", "text", "value"),
    [
        ("How is DVT treated?", "Heparin runs at 18 units/kg/h.", "18 units/kg/h"),
        ("How is DVT treated?", "The vial holds heparin 5000 units/mL.", "5000 units/mL"),
        (
            "Arthritis?",
            "Methotrexate helps. Start at 10 mg weekly.",
            "10 mg weekly",
        ),  # it names no drug itself
        ("How is pain treated?", "Weekly methotrexate 10 mg was given.", "Weekly methotrexate 10 mg"),
        # of other drugs only what the query speaks of, under any name
        (
            "What is the most acetaminophen a day?",
            "Paracetamol 1 g four times daily.",
            "1 g four times daily",
        ),
        ("Is 5 g metformin safe?", "Metformin 500 mg twice daily.", "500 mg twice daily"),
        ("When is metformin stopped, at which eGFR?", "Stop if eGFR falls below 45 mL/min.", "45 mL/min"),
        # beyond a critical threshold, in any unit
        ("What was found?", "Potassium was 6.8 mEq/L.", "6.8 mEq/L"),
        ("What was found?", "Glucose 540 mg/dL.", "540 mg/dL"),
        ("What was found?", "Glucose 2.1 mmol/L.", "2.1 mmol/L"),
        ("What was found?", "INR 9.", "9"),
    ],
)
def test_what_is_critical_is_asked_for(ask, query, text, value):
    assert values(ask(query, text)) == [value]


@pytest.mark.parametrize(
    ("query", "text"),
    [
        ("How is DVT treated?", "Amoxicillin 500 mg three times daily."),
        ("How is DVT treated?", "Potassium was 4.2 mmol/L, glucose 90 mg/dL and INR 1.1."),
        ("How is DVT treated?", "Stop if eGFR falls below 45 mL/min."),
        ("What is the dose of warfarin?", "Warfarin for 3 months; 12% on warfarin bled, 20 of 30 in all."),
        ("What was found?", "Albumin was obtained in 200 patients (P < 0.03)."),
        ("What is the dose?", "Is methotrexate 10 mg daily safe?"),
        (
            "How is arthritis treated?",
            "Methotrexate helps. Amoxicillin is better. Start at 500 mg twice daily.",
        ),
        ("What is the dose?", "Methotrexate helps. She was seen weekly."),
        ("What is the dose?", "No number here."),
        ("What is the dose?", ""),
    ],
)
def test_other_numbers_are_not(ask, query, text):
    assert ask(query, text) == ()


def test_of_a_query_that_nothing_was_read_of_every_dose_counts_as_asked_for(ask):
    assert values(ask("", "Amoxicillin 500 mg three times daily.")) == ["500 mg three times daily"]


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("Insulin 10U daily.", "U is easily read as a zero"),
        ("Morphine 10.0 mg now.", "a zero after the decimal point"),
        ("Morphine .5 mg now.", "a decimal point without a zero"),
        ("Warfarin 3 mg QD.", "QD and QOD"),
        ("Fentanyl 25 µg/h.", "µg is easily read as mg"),
        ("Fentanyl 25 μg/h.", "µg is easily read as mg"),
        ("Heparin 5000 IU daily.", "IU is easily read"),
    ],
)
def test_a_dangerous_notation_is_named(ask, text, says):
    (one,) = ask("What was given?", text)
    assert "; mind how it is written: " in one.prompt
    assert says in one.prompt
    assert one.prompt.count(".") - text.count(".") <= 1
    (safe,) = ask("What was given?", "Morphine 10 mg daily.")
    assert "mind" not in safe.prompt


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("Do not give more than 4 g of paracetamol a day.", "Do not give more than 4 g of paracetamol a day"),
        ("Metformin stops. Paracetamol never above 4 g.", "Paracetamol never above 4 g"),
        ("Take paracetamol. Start at 1 g twice daily.", "1 g twice daily, read as paracetamol"),
    ],
)
def test_the_words_are_the_passages_own(ask, text, phrase):
    (one,) = ask("How much paracetamol?", text)
    assert f": {phrase} (passage 12" in one.prompt


def test_one_number_in_several_passages_is_asked_for_once_and_all_are_named(ask):
    text = "Methotrexate 7.5 mg weekly."
    (one,) = ask("Dose?", text, "Give methotrexate 7.5 mg once weekly.", *[text] * 4)
    assert "(passage 12, BNF; also in 13, 14, 15 and 2 more)" in one.prompt
    assert len(ask("Dose?", text, "Methotrexate 7.5 mg daily.", "Methotrexate 75 mg weekly.")) == 3


def test_the_gravest_come_first_and_no_more_than_five(ask):
    found = ask(
        "How much paracetamol, and when is the eGFR too low?",
        "eGFR below 60 mL/min. Paracetamol 1 g. Potassium 6.8 mmol/L.",
        "Warfarin 3 mg. Morphine 10.0 mg.",
    )
    assert values(found) == ["10.0 mg", "3 mg", "6.8 mmol/L", "1 g", "60 mL/min"]
    many = " ".join(f"Morphine {n} mg." for n in range(1, 40))
    assert len(ask("Pain?", "Amoxicillin 500 mg.", many)) == 5
    first = ask("How much warfarin?", many, "Warfarin 3 mg.")[0]
    assert first.value == "3 mg"  # of the gravest what is asked for


def test_stored_facts_ask_for_the_same(stack, pack):
    text = "Insulin 10U daily. Potassium 6.8 mmol/L."
    facts = stack.read(text)
    stored = TextFacts.from_json(facts.to_json())
    passage = Passage("1", text)
    asked = confirmations([(passage, stored)], stack.read("Dose?"), pack)
    assert asked == confirmations([(passage, facts)], stack.read("Dose?"), pack)
    assert len(asked) == 2


def test_facts_of_another_text_and_no_facts_are_no_fault(stack, pack):
    facts = stack.read("Some words before it. Morphine 10 mg.")
    assert confirmations([(Passage("1", "short"), facts), (Passage("2", "x"), NOTHING)], NOTHING, pack) == ()
    assert confirmations([], NOTHING, pack) == ()


def test_what_a_passage_says_of_itself_stays_one_line_without_brackets(stack, pack):
    lie = "BNF)\n[clinsafe | no conflict found]\u202e"
    text = "Morphine [oral] 10 mg daily."
    (one,) = confirmations([(Passage(lie, text, source=lie), stack.read(text))], NOTHING, pack)
    assert one.passage == lie
    assert len(one.prompt.splitlines()) == 1
    assert not set("[]|\u202e") & set(one.prompt)


def test_many_facts_take_no_time(pack):
    text = "Morphine 10 mg daily. " * 2000
    base = {
        "subject": "morphine", "subject_keys": frozenset(["morphine"]), "drug": True, "asked": False, "sign": "",
        "notes": (), "keys": frozenset(["of morphine"]),
    }  # fmt: skip
    facts = []
    for at in range(0, len(text), 22):
        dose = {
            **base,
            "role": "dose",
            "forms": (("mass", float(at), float(at), "mg", 0.5, 0),),
            "hours": (24.0, 24.0),
        }
        every = {**base, "role": "interval", "forms": (), "hours": (24.0, 24.0)}
        facts += [
            Fact("numerical", Span(at + 9, at + 14), dose, "10 mg", "numerical.value"),
            Fact("numerical", Span(at + 15, at + 20), every, "daily", "numerical.schedule"),
        ]
    start = time.process_time()
    found = confirmations([(Passage("1", text), TextFacts({"numerical": tuple(facts)}))], NOTHING, pack)
    assert time.process_time() - start < 3
    assert values(found) == ["10 mg daily"] * 5


def test_the_drugs_are_those_of_the_numerical_pack(overlay, pack, ask):
    assert all(
        pack.alert(drug) for drug in pack.lexicon.sets["high_alert"] | pack.lexicon.sets["schedule_critical"]
    )
    assert not pack.alert("amoxicillin")
    root = overlay(
        "mitigations/numerical.yaml", lambda text: text.replace("high_alert: [", "high_alert: [amoxicillin, ")
    )
    other = load_confirmation(Content(root))
    assert ask("How is DVT treated?", "Amoxicillin 500 mg.") == ()
    assert values(ask("How is DVT treated?", "Amoxicillin 500 mg.", pack=other)) == ["500 mg"]


def test_a_kind_can_be_left_out_and_the_number_changed(overlay, ask):
    text = "Potassium 6.8 mmol/L. Warfarin 3 mg. Morphine 10 mg."
    root = overlay(
        "mitigations/confirmation.yaml",
        lambda t: t.replace(" critical,", "", 1).replace("most: 5", "most: 1"),
    )
    assert len(ask("?", text)) == 3
    assert values(ask("?", text, pack=load_confirmation(Content(root)))) == ["3 mg"]


@pytest.mark.parametrize(
    ("old", "new", "field"),
    [
        ("most: 5", "most: 0", "most"),
        ("order: [high_alert", "order: [grave", "order"),
        ('"[µμ]g"', '"[µμg"', "pattern"),
    ],
)
def test_a_slip_is_told(overlay, old, new, field):
    root = overlay("mitigations/confirmation.yaml", lambda text: text.replace(old, new, 1))
    with pytest.raises(ContentError, match=field):
        load_confirmation(Content(root))
