"""The numerical filter: what it reads, what it calls a conflict, what it leaves alone, how it fails."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import lru_cache
from pathlib import Path

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.filters.numerical import load
from clinsafe.mitigations.numbers import match as matching
from clinsafe.mitigations.numbers.values import number_at
from clinsafe.mitigations.stack import Stack
from clinsafe.protocols import Fact, Filter, Finding
from clinsafe.text import Reader

CASES = yaml.load(
    (Path(__file__).parents[1] / "cases" / "numerical.yaml").read_text("utf-8"), Loader=yaml.BaseLoader
)["cases"]
FILTER = load()
READER = Reader(model="")


@lru_cache(maxsize=2048)
def read(text: str) -> list[Fact]:
    """Facts of a text; read once for all tests, never changed."""
    return FILTER.read(READER.read(text))


def compare(query: str, passage: str) -> list[Finding]:
    return FILTER.compare(read(query), read(passage))


def conflicts(query: str, passage: str) -> list[Finding]:
    return [finding for finding in compare(query, passage) if finding.verdict == "conflict"]


def values(text: str) -> list[float]:
    """First forms of the values of a text, in base units."""
    return [
        fact.normal["forms"][0][1]
        for fact in read(text)
        if fact.normal["forms"] and fact.normal["role"] != "interval"
    ]


def hours(text: str) -> list[float]:
    return [
        fact.normal["hours"][0]
        for fact in read(text)
        if fact.normal["role"] == "interval" and fact.normal["hours"]
    ]


def calls(work: Callable[[], object]) -> int:
    """How many functions a piece of work calls: the same on every machine, unlike its time."""
    count = 0

    def note(_frame: object, event: str, _what: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return count


def test_is_a_filter() -> None:
    assert isinstance(FILTER, Filter)
    assert FILTER.hazard == "numerical"


@pytest.mark.parametrize("kind", sorted({case["kind"] for case in CASES}))
def test_cases(kind: str) -> None:
    """All cases of one kind in one test: a test of its own for each would take longer to start than to run."""
    faults = [fault for case in CASES if case["kind"] == kind for fault in _faults(case)]
    assert faults == []


def _faults(case: dict[str, str]) -> list[str]:
    found = conflicts(case["query"], case["passage"])
    checks = {
        f"the verdict, with {[one.sentence for one in found]}": bool(found)
        == (case["verdict"] == "conflict"),
        "depends on the order": bool(conflicts(case["passage"], case["query"])) == bool(found),
        "severity": "severity" not in case or case["severity"] in {one.severity for one in found},
        "rule": "rule" not in case or case["rule"] in {one.rule for one in found},
    }
    return [f"{case['id']}: {name}" for name, holds in checks.items() if not holds]


def test_cases_have_unique_ids_and_both_verdicts_of_each_kind_of_the_suite() -> None:
    assert len({case["id"] for case in CASES}) == len(CASES)
    for kind in ("tenfold", "hundredfold", "twofold", "unit_swap", "frequency", "threshold", "decimal_zero"):
        assert {case["verdict"] for case in CASES if case["kind"] == kind} == {"conflict", "safe"}, kind


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("morphine 5 mg", 5.0),
        ("morphine .5 mg", 0.5),
        ("morphine 0,5 mg", 0.5),
        ("morphine 1,500 mg", 1500.0),
        ("heparin 25 000 units", 25000.0),
        ("benzylpenicillin 1.2 million units", 1.2e6),
        ("morphine twenty-five mg", 25.0),
        ("morphine one hundred and twenty milligrams", 120.0),
        ("morphine two point five milligrams", 2.5),
        ("morphine two and a half milligrams", 2.5),
        ("atenolol half a tablet", 0.5),
        ("atenolol 1 1/2 tablets", 1.5),
        ("fentanyl 50 μg", 0.05),
        ("fentanyl 50 ug", 0.05),
        ("magnesium sulfate 4 g", 4000.0),
        ("platelets 240 × 10⁹/L", 2.4e8),
        ("platelets 240 x10^9/L", 2.4e8),
        ("platelets 240 x 10*9/L", 2.4e8),
        ("platelets 240 K/µL", 2.4e8),
        ("vancomycin 15 mg per kg", 15.0),
        ("noradrenaline 0.1 micrograms/kg/min", 0.006),
        ("furosemide 240 mg per 24 hours", 10.0),
        ("temperature 101.3 °F", 38.5),
        ("Temp 101.3 F", 38.5),
        ("T 38.5 C", 38.5),
        ("PaCO2 6 kPa", 45.00372),
        ("store at minus twenty degrees Celsius", -20.0),
        ("height 5'10\"", 1778.0),
    ],
)
def test_reads_a_value(text: str, expected: float) -> None:
    assert values(text)[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("amoxicillin 500 mg TDS", 8.0),
        ("amoxicillin 500 mg three times a day", 8.0),
        ("amoxicillin 500 mg q6h", 6.0),
        ("amoxicillin 500 mg 8-hourly", 8.0),
        ("amoxicillin 500 mg every 12 hours", 12.0),
        ("prednisolone 20 mg every second day", 48.0),
        ("methotrexate 15 mg on Mondays", 168.0),
        ("epoetin 4000 units on Mondays, Wednesdays and Fridays", 56.0),
        ("alendronic acid 70 mg once in seven days", 168.0),
        ("hydroxocobalamin 1 mg every three months", 2191.5),
        ("neurological observations every 15 minutes", 0.25),
        ("dressing on two days a week", 84.0),
        ("dialysis, one session per week", 168.0),
        ("screening at intervals of 60 months", 43830.0),
        ("haloperidol 0.5 mg nocte", 24.0),
    ],
)
def test_reads_a_schedule(text: str, expected: float) -> None:
    assert hours(text)[0] == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize(
    "text",
    [
        "Seen on 12/03/2024.",
        "Seen at 14:30.",
        "Seen at 2.15pm.",
        "Seen in March 2023.",
        "A 67-year-old man.",
        "84F with a fall.",
        "97F with a fall.",
        "A three-week-old baby.",
        "Stage 3 disease.",
        "Type 2 diabetes.",
        "Ward 12, bed 4.",
        "COVID-19 and IL-6.",
        "Cycle 1 day 8.",
        "Hospital number 123456789012345678.",
        "The 3rd dose.",
        "At 32 weeks' gestation.",
    ],
)
def test_is_no_quantity(text: str) -> None:
    assert read(text) == []


@pytest.mark.parametrize(
    ("text", "subject"),
    [
        ("Doxorubicin 60 mg/m2 and cyclophosphamide 600 mg/m2.", ["doxorubicin", "cyclophosphamide"]),
        ("Two milligrams of vincristine with 8 mg of ondansetron.", ["vincristine", "ondansetron"]),
        ("Four 75 mg clopidogrel tablets and 300 mg of aspirin.", ["clopidogrel", "aspirin"]),
        ("Hb 92 g/L, ferritin 8 µg/L.", ["haemoglobin", "ferritin"]),
        ("HR 110, RR 24.", ["heart rate", "respiratory rate"]),
        ("Xyzalumab 40 mg.", ["xyzalumab"]),
    ],
)
def test_knows_whose_number_it_is(text: str, subject: list[str]) -> None:
    assert [fact.normal["subject"] for fact in read(text)] == subject


def test_a_blood_pressure_is_two_values() -> None:
    assert [fact.normal["subject"] for fact in read("BP 120/80.")] == ["systolic", "diastolic"]
    assert values("BP 120 over 80.") == [120.0, 80.0]


@pytest.mark.parametrize(
    ("query", "passage", "severity"),
    [
        ("Omeprazole 20 mg.", "Omeprazole 30 mg.", "moderate"),
        ("Omeprazole 20 mg.", "Omeprazole 40 mg.", "high"),
        ("Omeprazole 2 mg.", "Omeprazole 20 mg.", "critical"),
        ("Morphine 20 mg.", "Morphine 30 mg.", "high"),
        ("Morphine 20 mg.", "Morphine 40 mg.", "critical"),
        ("Alendronic acid 70 mg once daily.", "Alendronic acid 70 mg once weekly.", "critical"),
        ("Sodium 138 mmol/L.", "Sodium 142 mmol/L.", "moderate"),
        ("Sodium 138 mmol/L.", "Sodium 132 mmol/L.", "high"),
        ("Sodium 138 mmol/L.", "Sodium 118 mmol/L.", "critical"),
        ("Haemoglobin 12.5 g/dL.", "Haemoglobin 65 g/L.", "critical"),
        ("Vancomycin 15 mg/kg.", "Vancomycin 15 mg.", "critical"),
    ],
)
def test_severity(query: str, passage: str, severity: str) -> None:
    assert conflicts(query, passage)[0].severity == severity


@pytest.mark.parametrize(
    ("query", "passage", "rule"),
    [
        ("Haloperidol .5 mg.", "Haloperidol 0.5 mg.", "notation.naked"),
        ("Warfarin 1.0 mg.", "Warfarin 1 mg.", "notation.trailing"),
        ("Digoxin 0,25 mg.", "Digoxin 0.25 mg.", "notation.comma"),
        ("Adalimumab 40 mg biweekly.", "Adalimumab 40 mg every week.", "notation.schedule"),
        ("Insulin glargine 10 U at night.", "Insulin glargine 10 units at night.", "notation.unit"),
        ("Digoxin 125 micrograms QOD.", "Digoxin 125 micrograms every other day.", "notation.qd"),
    ],
)
def test_dangerous_notation_is_a_note_on_either_side(query: str, passage: str, rule: str) -> None:
    for one, other in ((query, passage), (passage, query)):
        notes = [finding for finding in compare(one, other) if finding.verdict == "not_comparable"]
        assert [note.rule for note in notes] == [rule]
        assert notes[0].severity == "note"
    assert not conflicts(query, passage)


def test_a_finding_tells_a_clinician_what_and_where() -> None:
    query, passage = "On the ward: warfarin 2.5 mg daily.", "Warfarin – 25 mg once a day."
    finding = conflicts(query, passage)[0]
    assert query[finding.query_span.start : finding.query_span.end] == "2.5 mg"
    assert passage[finding.passage_span.start : finding.passage_span.end] == "25 mg"
    assert finding.query_normal == "warfarin 2.5 mg daily"
    assert "warfarin" in finding.sentence
    assert "“25 mg”" in finding.sentence
    assert 0 < finding.confidence < 1


def test_spans_are_of_the_original_text() -> None:
    text = "Give\u00a0½\u200b tablet of atenolol, then\u2009fentanyl 50\u00a0μg; platelets 240 × 10⁹/L."
    found = [text[fact.span.start : fact.span.end] for fact in read(text)]
    assert found[1:] == ["50\u00a0μg", "240 × 10⁹/L"]
    assert "½" in found[0]


def test_agreement_is_said() -> None:
    findings = compare("Paracetamol 1 g.", "Paracetamol 1,000 mg.")
    assert [finding.verdict for finding in findings] == ["compatible"]


def test_a_number_that_a_question_presupposes_is_compared() -> None:
    assert conflicts("Is metformin 5 g twice daily safe?", "Metformin 500 mg twice daily.")
    assert read("Is metformin 5 g safe?")[0].normal["asked"] is True


def test_facts_survive_json() -> None:
    stack = Stack({"numerical": FILTER}, READER, seconds=0)
    for case in CASES[:60]:
        query, passage = stack.read(case["query"]), stack.read(case["passage"])
        again = TextFacts.from_json(json.loads(json.dumps(query.to_json(), allow_nan=False)))
        assert again == query
        assert stack.compare(again, passage) == stack.compare(query, passage)


def test_narrowing_by_keys_loses_no_finding() -> None:
    stack = Stack({"numerical": FILTER}, READER, seconds=0)
    for case in CASES:
        narrowed = stack.compare(stack.read(case["query"]), stack.read(case["passage"])).conflict
        assert narrowed == bool(conflicts(case["query"], case["passage"])), case["id"]


@pytest.mark.parametrize(
    "text",
    ["", " ", "\n\n", "🙂🙂 5 mg 🙂", "٥ ملغ من الوارفارين", "\u202e5 mg warfarin\u202c", "\x00 5 mg",
     "5", ".", "-", "5 mg/",
     "5 per", "every", "half", "5'", "1/2/3/4", "5 to", "between 5 and", "x 10^", "5 x 10^99999", "1e999 mg",
     "½", "q", "q6",
     "0/0", "1:0", "0 in 0", "1 in 0", "-5-5-", "mg mg", "a", "once", "twice a", "on Mondays and", "12.5.3 mg",
     "1,2,3 mg", "1 ①/2 tablets", "12:፩፪", "5e፩ mg", "x1፩ 5", "5 mg/1e99 L/1e99 L/1e99 L/1e99 L to 6 g/1e99 L",
     "9" * 400],
)  # fmt: skip
def test_odd_texts_are_read(text: str) -> None:
    facts = read(text)
    assert not [finding for finding in FILTER.compare(facts, facts) if finding.verdict == "conflict"]
    json.dumps([[fact.cue, fact.normal["forms"]] for fact in facts], allow_nan=False)


@pytest.mark.parametrize(
    "unit",
    ["9", "5 mg ", "Na 135 mmol/L K 4.1 mmol/L ", "(", "(5 mg/", "x", "every 2 ", "1,", "1/2/", "5 x 10^", ".5", "-5-",
     "warfarin 5 mg daily ", "Mondays, ", "one hundred and ", "5 mg of a b c per ", "no more than "],
)  # fmt: skip
def test_work_grows_with_length_not_with_its_square(unit: str) -> None:
    def work(size: int) -> int:
        reading = READER.read(unit * (size // len(unit)))
        return calls(lambda: FILTER.compare(*(FILTER.read(reading),) * 2))

    work(300)  # fills the caches
    first, second, third = work(1_200), work(2_400), work(4_800)
    assert second < 2.5 * first + 2_000
    assert third < 2.5 * second + 2_000


@pytest.mark.parametrize("unit", ["warfarin {} mg daily. ", "rash for {} days; recheck after {} days. "])
def test_comparing_long_texts_is_bounded(unit: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matching, "_MANY", 30)
    monkeypatch.setattr(matching, "_MOST", 80)
    facts = [
        FILTER.read(READER.read("".join(unit.format(at, at) for at in range(1, many)))) for many in (100, 400)
    ]
    short, long = (calls(lambda own=own: FILTER.compare(own, own)) for own in facts)
    assert long < 2.5 * short


def test_a_row_of_many_numbers_is_read_to_its_end() -> None:
    assert len(read("dose 5 mg " * 200)) == 200


def test_what_is_left_out_of_a_long_text_is_said() -> None:
    chart = "".join(f"Warfarin {number} mg daily. " for number in range(1, 700))
    for pair in (("Warfarin 5 mg daily.", chart), (chart, "Warfarin 5 mg daily.")):
        notes = [one for one in compare(*pair) if one.rule == "numerical.left_out"]
        assert [(one.verdict, one.severity) for one in notes] == [("not_comparable", "note")]
        side = "passage" if pair[1] is chart else "query"
        assert notes[0].sentence.startswith(f"The {side} states too many different numbers: ")
    assert not [one for one in compare(chart[:5_000], chart[:5_000]) if one.rule == "numerical.left_out"]


def test_a_value_said_over_and_over_is_compared_once() -> None:
    assert len(compare("Warfarin 5 mg. " * 20, "Warfarin 50 mg. " * 20)) == 1


def test_equal_parts_still_add_up() -> None:
    assert not conflicts("He bled 500 mL, then another 500 mL.", "Total blood loss was 1000 mL.")


_DRUGS = st.sampled_from(["warfarin", "metformin", "morphine", "amoxicillin"])
_UNITS = st.sampled_from([("mg", 1), ("g", 1000), ("micrograms", 0.001)])
_NUMBERS = st.integers(1, 999)


@settings(max_examples=40, deadline=None)
@given(_DRUGS, _NUMBERS, _NUMBERS, _UNITS, _UNITS)
def test_doses_conflict_exactly_when_they_differ(
    drug: str, one: int, other: int, unit: tuple[str, float], second: tuple[str, float]
) -> None:
    mine, theirs = one * unit[1], other * second[1]
    found = conflicts(f"Give {drug} {one} {unit[0]}.", f"{other} {second[0]} of {drug} is given.")
    assert bool(found) == (mine != pytest.approx(theirs, rel=1e-9))


@settings(max_examples=40, deadline=None)
@given(st.text(alphabet="0123456789.,-/% mgkLdhxy()<>'\"+^:µ²⁹ dailyevrto", max_size=80))
def test_any_text_agrees_with_itself_and_order_does_not_matter(text: str) -> None:
    facts = read(text)
    assert not [finding for finding in FILTER.compare(facts, facts) if finding.verdict == "conflict"]
    other = read("Warfarin 5 mg daily for 7 days, INR 2.5, BP 120/80, 20%.")
    verdicts = [
        sorted(one.verdict for one in FILTER.compare(*pair) if one.verdict == "conflict")
        for pair in ((facts, other), (other, facts))
    ]
    assert verdicts[0] == verdicts[1]


@settings(max_examples=80, deadline=None)
@given(st.integers(0, 999_999))
def test_number_words_come_back(number: int) -> None:
    tokens = READER.read(_in_words(number)).sentences[0].tokens
    read_back = number_at(tokens, 0, FILTER.lexicon)
    assert read_back is not None
    assert (read_back.value, read_back.end) == (number, len(tokens))


_ONES = [
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine",
    "ten", "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen",
]  # fmt: skip
_TENS = ["", "", "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety"]


def _in_words(number: int) -> str:
    if number < 20:
        return _ONES[number]
    if number < 100:
        return _TENS[number // 10] + (f"-{_ONES[number % 10]}" if number % 10 else "")
    if number < 1000:
        rest = number % 100
        return f"{_ONES[number // 100]} hundred" + (f" and {_in_words(rest)}" if rest else "")
    rest = number % 1000
    joint = " and " if 0 < rest < 100 else " "
    return f"{_in_words(number // 1000)} thousand" + (f"{joint}{_in_words(rest)}" if rest else "")


def test_one_number_on_two_schedules_is_told_with_the_schedules() -> None:
    rows = compare("Methotrexate 7.5 mg weekly.", "Methotrexate 7.5 mg daily was started.")
    [found] = [row for row in rows if row.verdict == "conflict"]
    assert "7.5 mg weekly" in found.sentence
    assert "7.5 mg daily" in found.sentence
