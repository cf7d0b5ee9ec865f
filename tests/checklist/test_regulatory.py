"""The rule table claims nothing, names what it does not know, and never computes a class."""

from __future__ import annotations

import re
from datetime import date
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from clinsafe.checklist.regulatory import (
    FILE,
    SECTIONS,
    Clause,
    Reference,
    SectionId,
    label,
    load_regulatory,
    plain,
)
from clinsafe.content import Content
from clinsafe.errors import ContentError, UsageError

RULES = load_regulatory(Content())
REFERENCES = {r.id: r for r in RULES.references}


def clauses(reference: str) -> dict[str, Clause]:
    return {c.clause: c for c in RULES.clauses if c.reference == reference}


def refused(overlay, change, words):
    """The one line about a changed file."""
    with pytest.raises(ContentError, match=words) as caught:
        load_regulatory(Content(overlay(FILE, change)))
    assert "\n" not in str(caught.value)
    return caught.value


# ── what the packaged file says ────────────────────────────────────────────────────────────────


def test_nothing_is_said_to_have_been_read_that_was_not():
    assert RULES.as_of == date(2026, 11, 30)
    assert {x.checked for x in (*RULES.references, *RULES.clauses)} == {"secondary", "not checked"}
    assert "not read" in RULES.statement


def test_a_file_that_claims_more_than_evidence_is_found_by_its_text():
    """The raw file too: a comment is read by people."""
    text = Content().path(FILE).read_text(encoding="utf-8")
    assert not re.search(r"compliant|compliance|certified|conforms", text, re.IGNORECASE)


def test_what_could_not_be_confirmed_says_so():
    assert REFERENCES["fda-ai-dsf"].status == "draft"
    for name, words in {
        "fda-ai-dsf": "not checked",
        "iec-62304": "Edition 2",
        "eu-ai-act": "Official Journal are unconfirmed",
        "nhs-dcb0129": "numbers were not checked",
        "nhs-dcb0160": "numbers were not checked",
    }.items():
        assert words in REFERENCES[name].note
        assert "not checked" in REFERENCES[name].note
    for name in ("nhs-dcb0129", "nhs-dcb0160"):
        assert {c.checked for c in clauses(name).values()} == {"not checked"}


def test_the_guidance_of_2022_is_superseded_and_used_by_nothing():
    assert REFERENCES["fda-cds-2022"].superseded_by == "fda-cds"
    assert REFERENCES["fda-cds"].dated == "2026-01-06"
    superseded = {r.id for r in RULES.references if r.status == "superseded"}
    assert not superseded & {x.reference for x in (*RULES.clauses, *RULES.schemes)}


def test_the_dates_of_the_omnibus():
    note = REFERENCES["eu-ai-act"].note
    assert "from 2 August 2028" in note
    assert "Annex III from 2 December 2027" in note


def test_all_ten_principles_and_every_reference_in_use_have_a_row():
    assert list(clauses("imdrf-n88")) == [f"Principle {n}" for n in range(1, 11)]
    used = {x.reference for x in (*RULES.clauses, *RULES.schemes)}
    assert used == {r.id for r in RULES.references if r.status != "superseded"}


def test_what_needs_people_is_not_given_to_a_report():
    assert {clauses("iso-14971")[c].share for c in ("7.4", "8")} == {"none"}
    assert clauses("cfr-11")["11.100 to 11.300"].share == "none"
    for clause in RULES.clauses:
        if re.search(r"declar|class", clause.asks + clause.clause, re.IGNORECASE) and "R1" in clause.sections:
            assert clause.share == "partial", clause


def test_every_section_has_a_title_and_gives_evidence_for_something():
    assert list(SECTIONS) == list(get_args(SectionId)) == [f"R{n}" for n in range(18)]
    for section in SECTIONS:
        assert RULES.clauses_of(section)
        assert all(section in c.sections for c in RULES.clauses_of(section))


def test_the_declared_classes_are_those_of_their_rules():
    assert {s.id: s.values for s in RULES.schemes} == {
        "fda-device-class": ["I", "II", "III"],
        "fda-documentation-level": ["basic", "enhanced"],
        "fda-cds-status": ["declared non-device CDS", "device"],
        "imdrf-category": ["I", "II", "III", "IV"],
        "mdr-class": ["I", "IIa", "IIb", "III"],
        "iec-62304-class": ["A", "B", "C"],
        "eu-ai-act-risk": ["high-risk", "not high-risk"],
    }


def test_a_label_says_status_and_date():
    assert label(REFERENCES["fda-ai-dsf"]) == "FDA AI-enabled device software functions (draft, 2025-01-07)"
    assert all(r.status in label(r) and r.dated in label(r) for r in RULES.references)


def test_an_unknown_section_or_reference_is_one_line():
    with pytest.raises(UsageError, match="R0 to R17"):
        RULES.clauses_of("R18")  # type: ignore[arg-type]
    with pytest.raises(UsageError, match="fda-cds"):
        RULES.reference("fda")


# ── what a file may not say ────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("word", ["compliant", "Compliance", "non-compliant", "CERTIFIED", "conforms"])
@pytest.mark.parametrize(
    ("place", "field"),
    [
        ("A report provides evidence for", "statement"),
        ("Whether it has become final", "references.3.note"),
        ("That AI is used", "clauses.10.asks"),
        ("The device as a whole.", "clauses.10.remains"),
        ("Enhanced where a failure", "schemes.1.rule"),
    ],
)
def test_a_banned_word_is_refused_wherever_it_stands(overlay, word, place, field):
    error = refused(overlay, lambda t: t.replace(place, f"{word} {place}", 1), word)
    assert error.field == field
    assert error.line > 1


@given(st.text(alphabet="abcdefgh -ét", max_size=12), st.text(alphabet="abcdefgh -ét", max_size=12))
def test_a_banned_word_is_found_within_any_text(before, after):
    with pytest.raises(ValueError, match="claims more"):
        plain(f"{before}compliance{after}")
    assert plain(f"{before}certification, conformity{after}")


@pytest.mark.parametrize(
    ("old", "new", "field", "words"),
    [
        ("id: fda-cds,", "id: fda-pccp,", "references", "fda-pccp is given twice"),
        ("superseded_by: fda-cds,", "superseded_by: fda-nothing,", "references", "fda-nothing"),
        ("superseded_by: fda-cds,", "superseded_by: fda-csa-2025,", "references", "no reference in use"),
        ("superseded_by: fda-cds,", "superseded_by: fda-cds-2022,", "references", "no reference in use"),
        (", superseded_by: fda-cds,", ",", "references.1", "names what replaced"),
        ("status: draft", "status: draft, superseded_by: fda-cds", "references.3", "names what replaced"),
        ('dated: "2025-01-07"', 'dated: "07.01.2025"', "references.3.dated", "YYYY"),
        ('dated: "2025-01-07"', 'dated: "2025-02-30"', "references.3.dated", "day"),
        ('dated: "2025-01-07"', 'dated: "2027"', "references", "after as_of"),
        ("status: draft", "status: proposed", "references.3.status", "draft"),
        ("reference: cfr-860,", "reference: fda-cds-2022,", "schemes", "fda-cds-2022 is no reference in use"),
        ("{reference: iso-24971,", "{reference: iso-13485,", "clauses", "iso-13485 is no reference in use"),
        ('clause: "7.4"', 'clause: "7.5"', "clauses", "iso-14971 7.5 is given twice"),
        ("values: [A, B, C]", "values: [A, B, A]", "schemes.5.values", "value A is given twice"),
        ("values: [A, B, C]", "values: [A]", "schemes.5.values", "at least 2"),
        ("sections: [R1], share", "sections: [R18], share", "clauses.0.sections.0", "R17"),
        ("sections: [R1], share", "sections: [], share", "clauses.0", "share is none exactly where"),
        ("sections: [R1], share", "sections: [R1, R1], share", "clauses.0", "twice"),
        ("provides evidence for", "proves", "statement", "evidence for"),
        ("as_of:", "asof:", "as_of", "required"),
        ("publisher: FDA, title: premarket", "publisher: FDA, author: x, title: premarket",
         "references.0.author", "unknown field"),
    ],
)  # fmt: skip
def test_a_fault_is_one_line_with_file_line_and_field(overlay, old, new, field, words):
    error = refused(overlay, lambda t: t.replace(old, new, 1), words)
    assert error.field == field
    assert error.path.name == "regulatory.yaml"
    assert error.line is not None


def test_the_line_is_that_of_the_fault(overlay):
    text = Content().path(FILE).read_text(encoding="utf-8")
    error = refused(overlay, lambda t: t.replace("status: draft", "status: proposed", 1), "proposed")
    assert "status: draft" in text.split("\n")[error.line - 1]


@pytest.mark.parametrize("share", ["partial", "none"])
def test_what_remains_must_be_said(share):
    sections = [] if share == "none" else ["R1"]
    with pytest.raises(ValueError, match="remains must say"):
        Clause(reference="x", clause="1", asks="a", sections=sections, share=share, checked="secondary")
    assert Clause(reference="x", clause="1", asks="a", sections=["R1"], share="evidence", checked="secondary")


def test_what_was_not_checked_needs_a_note():
    with pytest.raises(ValueError, match="needs a note"):
        Reference(id="x", title="t", publisher="p", dated="2026", status="final", checked="not checked")


def test_an_overlay_is_read_and_hashed(overlay):
    root = overlay(FILE, lambda t: t.replace('as_of: "2026-11-30"', 'as_of: "2027-01-31"'))
    changed = Content(root)
    assert load_regulatory(changed).as_of == date(2027, 1, 31)
    packaged = Content()
    load_regulatory(packaged)
    assert changed.hashes[FILE] != packaged.hashes[FILE]
