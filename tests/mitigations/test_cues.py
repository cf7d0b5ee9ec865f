"""The cue grammar, and what packs share."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.content import Content, Record
from clinsafe.errors import ContentError
from clinsafe.mitigations.cues import CueTable
from clinsafe.mitigations.pack import Regex, RuleId, load_pack
from clinsafe.text import Reader

READER = Reader(model="")


def found(text, *cues):
    (sentence,) = READER.read(text).sentences
    return [match.cue for match in CueTable((cue, cue) for cue in cues).find(sentence.tokens)]


@pytest.mark.parametrize(
    ("text", "cues"),
    [
        ("PE can't be ruled out", ["can not be ~rule out"]),
        ("We ruled it out later", ["~rule .. out"]),
        ("No evidence of PE", ["no evidence of"]),
        ("no PE", ["no"]),
        ("nodule noted", []),
        ("he ruled; then out", []),
        ("rules of the ward, in and later out", []),
    ],
)
def test_the_longest_cue_wins_and_none_is_found_inside_a_word(text, cues):
    assert found(text, "no", "no evidence of", "can not be ~rule out", "~rule .. out") == cues


def test_alternatives_and_lemmas():
    assert found("he denied pain and denies cough", "~deny|~refuse") == ["~deny|~refuse"] * 2
    assert found("was refused", "~deny|~refuse") == ["~deny|~refuse"]


@pytest.mark.parametrize("cue", ["", ".. out", "rule-out"])
def test_a_cue_that_cannot_match_is_refused(cue):
    with pytest.raises(ValueError, match=r"cue|tokens"):
        CueTable([(cue, 1)])


@given(st.text(max_size=200))
def test_matches_never_overlap_and_lie_inside_the_sentence(text):
    table = CueTable([("no", 1), ("no ~evidence of", 2), ("without", 3), ("~rule .. out", 4)])
    for sentence in READER.read(text).sentences:
        end = 0
        for match in table.find(sentence.tokens):
            assert end <= match.start < match.end <= len(sentence.tokens)
            end = match.end


class Rule(Record):
    id: RuleId
    pattern: Regex


class Pack(Record):
    rules: tuple[Rule, ...]


GOOD = "rules:\n  - {id: a.one, pattern: 'x+'}\n  - {id: a.two, pattern: y}\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (GOOD.replace("x+", "(x"), r"demo\.yaml:2: rules\.0\.pattern: .*not a valid regular expression"),
        (GOOD.replace("a.two", "a.one"), r"demo\.yaml:3: id: .*'a.one' is given twice, first in line 2"),
        (GOOD.replace("pattern: y", "patern: y"), r"demo\.yaml:3: rules\.1\.pattern"),
        (GOOD.replace("pattern: y", "pattern: y, more: z"), r"demo\.yaml:3: rules\.1\.more: unknown field"),
        (GOOD.replace("a.one", "A one"), r"demo\.yaml:2: rules\.0\.id"),
        ("rules: [", r"demo\.yaml:2: not valid YAML"),
    ],
)
def test_a_broken_pack_is_told_by_file_line_and_field(tmp_path, text, said):
    (tmp_path / "mitigations").mkdir()
    (tmp_path / "mitigations" / "demo.yaml").write_text(text)
    with pytest.raises(ContentError, match=said):
        load_pack(Content(tmp_path), "demo", Pack)


def test_a_good_pack_is_read(tmp_path):
    (tmp_path / "mitigations").mkdir()
    (tmp_path / "mitigations" / "demo.yaml").write_text(GOOD)
    assert [rule.id for rule in load_pack(Content(tmp_path), "demo", Pack).rules] == ["a.one", "a.two"]
