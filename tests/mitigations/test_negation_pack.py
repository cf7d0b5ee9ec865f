"""The pack of the negation filter: what a clinician can add, and how a fault is told."""

from __future__ import annotations

from pathlib import Path

import pytest

from clinsafe.content import Content
from clinsafe.errors import ContentError, UsageError
from clinsafe.mitigations.filters.negation import load
from clinsafe.mitigations.stack import Stack
from clinsafe.text import Reader
from tests.mitigations.negation_kit import compare


def overlay(folder: Path, old: str, new: str) -> Content:
    text = Content().path("mitigations/negation.yaml").read_text("utf-8")
    assert old in text
    (folder / "mitigations").mkdir()
    (folder / "mitigations/negation.yaml").write_text(text.replace(old, new), "utf-8")
    return Content(folder)


def test_a_clinician_can_add_a_word(tmp_path: Path) -> None:
    content = overlay(tmp_path, '"devoid of"', '"devoid of", "innocent of"')
    pair = "There is a bruit.", "The neck is innocent of bruit."
    assert not compare(*pair).conflict
    one = Stack({"negation": load(content)}, Reader(model=""), seconds=0)
    assert one.compare(one.read(pair[0]), one.read(pair[1])).conflict


def test_trust_of_a_rule_lowers_the_certainty(tmp_path: Path) -> None:
    content = overlay(tmp_path, "trust: {", "trust: {no: 0.3, ")
    one = Stack({"negation": load(content)}, Reader(model=""), seconds=0)
    texts = "There is a fracture.", "There is no fracture."
    assert compare(*texts).conflict
    assert not one.compare(one.read(texts[0]), one.read(texts[1])).conflict


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("id: without\n", "id: no\n"),
        ("reach: verb", "reach: verbs"),
        ('sign: "-"\n', "sign: minus\n"),
        ("negators:", "negator:"),
        ("    have: [", "    having: ["),
        ("    more: [", "    most: ["),
        ("concept: abnormal,", "concept: odd,"),
        ('prefixes": ["un"', 'prefixs": ["un"'),
        ('sides: ["left"', 'sides: ["left side"'),
        ('"devoid of"', '"devoid-of"'),
        ("trust: {affix", "trust: {afix"),
        ("paired: [included", "paired: [inclouded"),
    ],
)
def test_a_fault_in_the_pack_is_told_by_line(tmp_path: Path, old: str, new: str) -> None:
    with pytest.raises(ContentError, match=r"negation\.yaml:\d+"):
        load(overlay(tmp_path, old, new))


def test_a_list_that_is_left_out_is_empty(tmp_path: Path) -> None:
    text = Content().path("mitigations/negation.yaml").read_text("utf-8")
    left_out = ("paired:", "times:", "    sides:", "  carriers:")
    lines = [line for line in text.splitlines() if not line.startswith(left_out)]
    assert len(lines) == len(text.splitlines()) - len(left_out)
    (tmp_path / "mitigations").mkdir()
    (tmp_path / "mitigations/negation.yaml").write_text("\n".join(lines), "utf-8")
    one = Stack({"negation": load(Content(tmp_path))}, Reader(model=""), seconds=0)
    assert one.compare(one.read("There is a bruit."), one.read("There is no bruit.")).conflict


def test_an_unknown_engine_is_refused() -> None:
    with pytest.raises(UsageError, match="valid: own, negspacy"):
        load(engine="medspacy")
