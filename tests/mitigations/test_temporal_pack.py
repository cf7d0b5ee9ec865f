"""The rule pack of the temporal filter, and the finder of its cues."""

from __future__ import annotations

import shutil

import pytest
import yaml

from clinsafe.content import LOADER, Content, packaged_root
from clinsafe.errors import ContentError
from clinsafe.mitigations.filters.temporal import load
from clinsafe.mitigations.order.finder import Finder, check_cue
from clinsafe.mitigations.order.pack import Grammar, Special, TemporalPack
from clinsafe.mitigations.pack import load_pack
from clinsafe.text import Reader
from tests.mitigations.packs import hidden

LATER = (  # fields of the pack that may be missing
    "forms",
    "needless",
    "pseudo_negators",
    "unseen",
    "partial",
    "lifelong",
    "lifelong_phrases",
    "event_endings",
    "headings",
    "not_adverbs",
    "event_kinds",
    "prefixes.days",
    "prefixes.phases",
    "timeline.days",
    *(f"grammar.{name}" for name, field in Grammar.model_fields.items() if not field.is_required()),
    "special",
    "kin",
    "status.onset",
    "status.now",
    "status.going",
    "status.first",
    "status.timed",
    "status.past",
    "status.opens",
    "status.has",
    "order.waits",
    "order.proven",
    "order.spans",
)


@pytest.fixture(scope="module")
def reader():
    return Reader(model="")


def conflicts(found):
    return [finding for finding in found if finding.verdict == "conflict"]


class TestPack:
    @pytest.fixture
    def overlay(self, tmp_path):
        (tmp_path / "mitigations").mkdir()
        path = tmp_path / "mitigations" / "temporal.yaml"
        shutil.copy(packaged_root() / "mitigations" / "temporal.yaml", path)
        return path

    def test_a_cue_of_ones_own_is_read(self, overlay, reader):
        query, passage = "Cultures were drawn antecedently unto vancomycin.", "Cultures followed vancomycin."
        overlay.write_text(
            overlay.read_text(encoding="utf-8").replace(
                "      - prior to\n", "      - antecedently unto\n", 1
            ),
            encoding="utf-8",
        )
        own = load(Content(overlay.parents[1]))
        assert conflicts(own.compare(own.read(reader.read(query)), own.read(reader.read(passage))))

    def test_a_pack_of_an_older_schema_is_still_read(self, overlay, reader):
        pack = yaml.load(overlay.read_text(encoding="utf-8"), Loader=LOADER)
        for path in LATER:
            *groups, field = path.split(".")
            for rows in [pack] if not groups else [pack[groups[0]]]:
                for row in rows if isinstance(rows, list) else [rows]:
                    row.pop(field, None)
        overlay.write_text(yaml.safe_dump(pack), encoding="utf-8")
        own = load(Content(overlay.parents[1]))
        query, passage = "Cultures were drawn before vancomycin.", "Cultures were drawn after vancomycin."
        assert conflicts(own.compare(own.read(reader.read(query)), own.read(reader.read(passage))))

    def test_without_a_list_of_exceptions_no_word_is_an_adverb(self, overlay, reader):
        pack = yaml.load(overlay.read_text(encoding="utf-8"), Loader=LOADER)
        del pack["not_adverbs"]
        overlay.write_text(yaml.safe_dump(pack), encoding="utf-8")
        own = load(Content(overlay.parents[1]))
        (fact, *_) = own.read(reader.read("Anomaly scan before amniocentesis."))
        assert any(key.startswith("anomal") for key in fact.normal["early_keys"])

    @pytest.mark.parametrize(
        ("old", "new", "fault"),
        [
            ("      - prior to\n", "      - pre-op\n", "write them apart"),
            ("      - prior to\n", "      - .. to\n", "begin and end with a word"),
            ("      - prior to\n", "      - prior ..\n", "begin and end with a word"),
            ("kind: until", "kind: sometimes", "kind"),
            ("id: order.until", "id: order.before", "given twice"),
            ("  directions: [back]\n", "  directions: [back to]\n", "one word"),
            ("  directions: [back]\n", "  directions: [Back]\n", "small letters"),
            ("  before_state: [since]\n", "  before_state: [sincet]\n", "before_state names 'sincet'"),
            ("  before_number: [last, past]\n", "  before_number: [lapst]\n", "before_number names 'lapst'"),
            ("  alone: {before: earlier,", "  alone: {befor: earlier,", "alone names 'befor'"),
            ("  alone: {before: earlier,", "  alone: {before: early,", "alone"),
            (
                "  aunt: [aunt, aunts]\n",
                "  aunt: [aunt, uncle]\n",
                "'uncle' stands both under aunt and uncle",
            ),
        ],
    )
    def test_faults_are_told_with_file_and_line(self, overlay, old, new, fault):
        overlay.write_text(overlay.read_text(encoding="utf-8").replace(old, new, 1), encoding="utf-8")
        with pytest.raises(ContentError, match=fault) as error:
            load(Content(overlay.parents[1]))
        assert f"{overlay}:" in str(error.value)
        assert "\n" not in str(error.value)


def test_every_list_of_little_words_and_special_cues_is_filled():
    pack = load_pack(None, "temporal", TemporalPack)
    assert [name for name in Grammar.model_fields if not getattr(pack.grammar, name)] == []
    assert [name for name in Special.model_fields if not getattr(pack.special, name)] == []
    assert pack.kin


def test_no_cue_is_given_twice():
    pack = load_pack(None, "temporal", TemporalPack)
    prefixes = pack.prefixes
    tables = {
        "order": [cue for rule in pack.order for cue in rule.cues],
        "ranks": [cue for rule in pack.ranks for cue in rule.cues],
        "status": [cue for rule in pack.status for cue in rule.cues],
        "phases": [*prefixes.days, *(cue for rule in prefixes.phases for cue in rule.cues)],
        "lifelong": pack.lifelong_phrases,
    }
    lists = (
        "negators",
        "pseudo_negators",
        "delay",
        "needless",
        "done_strong",
        "done_weak",
        "undone",
        "unseen",
    )
    tables |= {name: getattr(pack, name) for name in lists}
    assert {name: hidden(cues) for name, cues in tables.items() if hidden(cues)} == {}


@pytest.mark.parametrize("cue", ["", "..", ".. no", "no ..", "well-known"])
def test_a_cue_that_cannot_match_is_refused(cue):
    with pytest.raises(ValueError, match=r"cue|apart"):
        check_cue(cue)


class TestFinder:
    @pytest.fixture
    def find(self, reader):
        def found(tables, text):
            matches = Finder(tables).find(reader.read(text).sentences[0].tokens)
            return {name: [(m.start, m.end, m.value) for m in rows] for name, rows in matches.items()}

        return found

    def test_the_longest_wins_and_tables_do_not_disturb_each_other(self, find):
        tables = {"one": [("before", 1), ("before the scan", 2)], "two": [("the", 3)]}
        assert find(tables, "before the scan, before lunch") == {
            "one": [(0, 3, 2), (4, 5, 1)],
            "two": [(1, 2, 3)],
        }

    def test_lemmas_alternatives_and_gaps(self, find):
        tables = {"one": [("~stop .. drug|medicine", 1)]}
        assert find(tables, "stopping his old medicine")["one"] == [(0, 4, 1)]
        assert find(tables, "stopped; the drug")["one"] == []
        assert find(tables, "stopped one two three four drug")["one"] == []

    def test_of_two_alike_the_first_wins(self, find):
        assert find({"one": [("then", 1), ("then", 2)]}, "then")["one"] == [(0, 1, 1)]
