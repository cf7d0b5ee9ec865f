"""What stands behind the numerical filter: its pack, pint for rare units, quantulum3 as a guarded second reader."""

from __future__ import annotations

import re
import sys
import types
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from clinsafe.content import Content
from clinsafe.errors import ContentError, MissingDependency
from clinsafe.mitigations.filters.numerical import NumericalFilter, load
from clinsafe.mitigations.numbers.convert import factor
from clinsafe.mitigations.numbers.second import SecondReader
from clinsafe.text import Reader

FILTER = load()
READER = Reader(model="")


def _overlay(folder: Path, old: str, new: str) -> NumericalFilter:
    text = Content().path("mitigations/numerical.yaml").read_text("utf-8")
    assert old in text
    target = folder / "mitigations" / "numerical.yaml"
    target.parent.mkdir()
    target.write_text(text.replace(old, new, 1), "utf-8")
    return load(Content(overlay=folder))


def test_a_clinician_can_change_the_pack(tmp_path: Path) -> None:
    changed = _overlay(
        tmp_path, "schedule_critical: [methotrexate,", "schedule_critical: [metoprolol, methotrexate,"
    )
    reading = [
        READER.read(text) for text in ("Metoprolol 50 mg three times daily.", "Metoprolol 75 mg twice daily.")
    ]
    before = [one.verdict for one in FILTER.compare(*(FILTER.read(one) for one in reading))]
    after = [one.verdict for one in changed.compare(*(changed.read(one) for one in reading))]
    assert "conflict" not in before
    assert "conflict" in after


def test_a_faulty_pack_names_file_line_and_field(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match=r"numerical\.yaml:\d+.*factor"):
        _overlay(tmp_path, "{id: mg, kind: mass, factor: 1,", "{id: mg, kind: mass, factor: 0,")


def test_a_rule_id_is_given_once(tmp_path: Path) -> None:
    with pytest.raises(ContentError, match="given twice"):
        _overlay(tmp_path, "{id: schedule.q2h,", "{id: schedule.hourly,")


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("release: 6, side", "side", "qualifier_reach lacks: release"),
        ("bare_degrees: {C: [25, 45],", "bare_degrees: {K: [298, 318],", "bare_degrees needs the units: °K"),
        ("qualifier_reach: {route: 12,", "qualifier_reach: {route: 0,", "qualifier_reach"),
        ("labels: [stage,", 'labels: [" ", stage,', "a blank"),
        ("labels: [stage,", "labels: [cranial nerve, stage,", "one word is looked up"),
        ("cues: [qid, qds,", "cues: [4x daily, qid, qds,", "write them apart, as in '4 x'"),
        ("intravenously, i . v,", "intravenously, i.v,", "write them apart, as in 'i . v'"),
        ("same_as: systolic,", "same_as: sistolic,", "same_as names no analyte or drug: sistolic"),
        (
            "includes: [insulin glargine,",
            "includes: [insulin glargin,",
            "includes names no drug: insulin glargin",
        ),
        ("times: {once: 1,", "times: {once: 0,", "greater than 0"),
        ("dozen: 12", "dozen: 0", "greater than 0"),
        ("other: 2, alternate", "other: inf, alternate", "finite"),
        ("adverbs: {hourly: 1,", "adverbs: {Hourly: 1,", "lower case"),
        ("unit: °C, cuts", "unit: °C, scale: 0, cuts", "greater than 0"),
    ],
)
def test_a_pack_that_could_not_be_read_later_is_refused(
    tmp_path: Path, old: str, new: str, says: str
) -> None:
    with pytest.raises(ContentError, match=re.escape(says)):
        _overlay(tmp_path, old, new)


@pytest.mark.parametrize(
    ("old", "new", "text"),
    [
        ("twice: 2, thrice: 3}", "twice: 2}", "Ramipril 5 mg thrice a day."),
        (", tenth: 0.1, tenths: 0.1}", "}", "Three tenths of the dose, two-tenths of it."),
        ("hundred: 100, ", "", "a hundred tablets, hundred mg, two hundred mg"),
    ],
)
def test_a_pack_may_lack_a_word(tmp_path: Path, old: str, new: str, text: str) -> None:
    changed = _overlay(tmp_path, old, new)
    assert changed.read(READER.read(text)) is not None


def test_a_word_for_so_many_times_may_be_added(tmp_path: Path) -> None:
    changed = _overlay(tmp_path, "thrice: 3}", "thrice: 3, fourfold: 4}")
    (every,) = [
        fact
        for fact in changed.read(READER.read("Ramipril 5 mg fourfold a day."))
        if fact.normal["role"] == "interval"
    ]
    assert every.normal["hours"] == (6.0, 6.0)


def test_what_a_pack_leaves_out_is_empty(tmp_path: Path) -> None:
    changed = _overlay(tmp_path, "bare_degrees: {C: [25, 45], F: [86, 113]}", "")
    assert changed.pack.bare_degrees == {}


def test_pint_converts_what_the_table_does_not_link() -> None:
    pytest.importorskip("pint")
    assert factor("kilojoule", "joule") == pytest.approx(1000)
    assert factor("joule", "hertz") == 0.0
    assert factor("no such unit", "joule") == 0.0


class _Quantity:
    def __init__(self, span: tuple[int, int], value: float, unit: str) -> None:
        self.span, self.value, self.unit = span, value, types.SimpleNamespace(name=unit)


def _second(monkeypatch: pytest.MonkeyPatch, parse: Any) -> SecondReader:
    package = types.ModuleType("quantulum3")
    classifier, parser = types.ModuleType("quantulum3.classifier"), types.ModuleType("quantulum3.parser")
    classifier.USE_CLF, parser.parse = True, parse  # type: ignore[attr-defined]
    package.classifier, package.parser = classifier, parser  # type: ignore[attr-defined]
    for name, module in (
        ("quantulum3", package),
        ("quantulum3.classifier", classifier),
        ("quantulum3.parser", parser),
    ):
        monkeypatch.setitem(sys.modules, name, module)
    reader = SecondReader()
    assert classifier.USE_CLF is False  # type: ignore[attr-defined]
    return reader


def test_the_second_reader_reads_only_what_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(text: str) -> Sequence[_Quantity]:
        at = text.index("12 furlongs")
        return [
            _Quantity((at, at + 11), 12.0, "furlong"),
            _Quantity((text.index("5 mg"), text.index("5 mg") + 4), 5.0, "milligram"),
        ]

    second = NumericalFilter(FILTER.pack, _second(monkeypatch, parse))
    facts = second.read(READER.read("He walks 12 furlongs on warfarin 5 mg."))
    assert [fact.rule for fact in facts] == ["numerical.value", "numerical.second"]
    assert facts[1].normal["show"] == "12 furlong"


def test_the_second_reader_may_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    def parse(text: str) -> Sequence[_Quantity]:
        raise KeyError(text)

    second = _second(monkeypatch, parse)
    assert second.read("12 furlongs", []) == []


def test_the_second_reader_never_sees_long_sentences_or_numbers(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[str] = []
    second = _second(monkeypatch, lambda text: seen.append(text) or [])
    for text in ("9" * 13 + " m", "5 m " * 100, "no number"):
        second.read(text, [])
    assert seen == []


def test_without_quantulum_the_second_reader_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "quantulum3", None)
    with pytest.raises(MissingDependency, match="quantulum3"):
        load(second_reader=True)
