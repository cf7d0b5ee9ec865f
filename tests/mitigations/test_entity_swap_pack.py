"""The pack of the entity-swap filter: what may be left out, and how a fault is told."""

from __future__ import annotations

import shutil

import pytest

from clinsafe.content import Content, packaged_root
from clinsafe.errors import ContentError
from clinsafe.mitigations.filters.entity_swap import load
from clinsafe.text import Reader


def test_the_pack_can_be_laid_over(tmp_path):
    (tmp_path / "mitigations").mkdir()
    for name in ("entity_swap.yaml", "abbreviations.yaml", "synonyms.yaml"):
        shutil.copy(packaged_root() / "mitigations" / name, tmp_path / "mitigations" / name)
    path = tmp_path / "mitigations" / "entity_swap.yaml"
    text = path.read_text(encoding="utf-8")
    path.write_text(text.replace("verbs: [exceed,", "verbs: [dwarf, exceed,"), encoding="utf-8")
    content = Content(tmp_path)
    reader = Reader(content, model="")
    read = [fact.normal for fact in load(content).read(reader.read("Ferritin dwarfs transferrin."))]
    edges = [(one["relation"], one["source"], one["target"]) for one in read if one["form"] == "edge"]
    assert edges == [("exceed", "Ferritin", "transferrin")]
    path.write_text(text.replace("axis: option", "axes: option", 1), encoding="utf-8")
    with pytest.raises(ContentError, match="axis"):
        load(Content(tmp_path))


@pytest.mark.parametrize(
    ("old", "new", "what"),
    [
        ("source_stand: avoid", "source_stand: shun", "shun"),
        ("target_stand: harm", "target_stand: hurt", "hurt"),
        ("opposite: avoid", "opposite: shun", "shun"),
        ("opposes: [treat]", "opposes: [heal]", "heal"),
        ("- id: treat\n", "- id: heal\n", "treat"),
        ("- id: use\n", "- id: apply\n", "use"),
        ("behind: condition, relation: treat", "behind: condition, relation: heal", "heal"),
        ("before: drug, behind: condition", "before: drug, behind: illness", "behind"),
        ("kin: [", "kin: [great-aunt, ", "great-aunt"),
        ("ahead: [", "ahead: [co-give, ", "co - give"),
    ],
)
def test_a_name_that_is_not_in_the_pack_is_refused_at_load(tmp_path, old, new, what):
    path = tmp_path / "mitigations" / "entity_swap.yaml"
    path.parent.mkdir()
    text = (packaged_root() / "mitigations" / "entity_swap.yaml").read_text(encoding="utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(ContentError, match=what):
        load(Content(tmp_path))


def test_a_pack_needs_no_mark_of_people(tmp_path):
    path = tmp_path / "mitigations" / "entity_swap.yaml"
    path.parent.mkdir()
    text = (packaged_root() / "mitigations" / "entity_swap.yaml").read_text(encoding="utf-8")
    start, end = text.index("  - id: giver\n"), text.index("  - id: primary\n")
    bare = (
        (text[:start] + text[end:])
        .replace("_stand: giver", '_stand: ""')
        .replace("_stand: taker", '_stand: ""')
    )
    path.write_text(bare, encoding="utf-8")
    assert load(Content(tmp_path)).read(Reader(model="").read("The mother gave her brother a kidney."))


def test_a_list_that_is_left_out_is_empty(tmp_path):
    path = tmp_path / "mitigations" / "entity_swap.yaml"
    path.parent.mkdir()
    text = (packaged_root() / "mitigations" / "entity_swap.yaml").read_text(encoding="utf-8")
    path.write_text(
        "\n".join(line for line in text.splitlines() if not line.startswith("titles:")), encoding="utf-8"
    )
    assert load(Content(tmp_path)).read(Reader(model="").read("Hypoxia provoked the seizure."))
