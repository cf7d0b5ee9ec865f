"""A small mined suite for tests: written cases in the form of mined ones, with a card."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from clinsafe.benchmarks.mined import (
    SPLITS,
    FamilyCount,
    Freeze,
    MinedCard,
    Review,
    Reviewed,
    Source,
    card_path,
    dump_card,
)
from clinsafe.benchmarks.suite import Case, by_hazard, split_hash

SHA = "ab" * 32


def mined(cases: Sequence[Case]) -> list[Case]:
    """The cases as if they had been mined: of each hazard the first is dev, every other one of a novel family."""
    found = []
    for hazard, group in by_hazard(cases).items():
        for number, case in enumerate(group):
            new = number % 2 == 1
            slug = f"{hazard.replace('_', '-')}-{'new' if new else 'known'}"
            update = {"id": f"m-{case.id}", "tier": "generated", "cluster": f"doc-{case.id}",
                      "origin": "pubmedqa", "family": slug, "novel": new, "subtype": "plain-form",
                      "split": "test" if number else "dev"}  # fmt: skip
            found.append(case.model_copy(update=update))
    return found


def card_of(cases: Sequence[Case], **said: Any) -> MinedCard:
    """A card that fits the cases."""
    groups = by_hazard(cases)
    families = {
        hazard: {
            str(family): FamilyCount(
                novel=any(c.novel is True for c in group if c.family == family), cues=("cue",), dev=0, test=1
            )
            for family in dict.fromkeys(c.family for c in group if c.family)
        }
        for hazard, group in groups.items()
    }
    whole: dict[str, Any] = {
        "suite_version": "mined-7",
        "title": "Quads mined for a test",
        "language": "English",
        "authorship": "Rules by a test.",
        "second_reader": "Blind, 9 of 10.",
        "clinician_review": "None yet.",
        "not_covered": ["laterality"],
        "seed": 3,
        "rules_sha256": SHA,
        "pipeline": "the miner of a test",
        "plausibility_floor": -1.5,
        "freeze": Freeze(commit="c0ffee1234567890", sha256=SHA, packs=6),
        "sources": [
            Source(
                name="pubmedqa", file="pubmedqa.gz", source="PubMedQA, github.com/pubmedqa", licence="MIT"
            ),
            Source(
                name="medquad",
                file="medquad.gz",
                sha256=SHA,
                source="MedQuAD, github.com/abachaa",
                licence="CC BY 4.0",
                documents=9,
            ),
        ],
        "counts": {h: {s: sum(c.split == s for c in group) for s in SPLITS} for h, group in groups.items()},
        "families": families,
        "refused": {},
        "sha256": {split: split_hash(cases, split) for split in SPLITS},
        "reviews": [
            Review(reader="a blind reader", blind=True, hazards={"negation": Reviewed(accepted=9, read=10)})
        ],
    }
    return MinedCard(**(whole | said))


def write_mined(folder: Path, cases: Sequence[Case], name: str = "mined.jsonl", **said: Any) -> Path:
    """Write these mined cases and their card; the path of the cases."""
    path = folder / name
    path.write_text("".join(f"{c.model_dump_json(exclude_none=True)}\n" for c in cases), encoding="utf-8")
    card_path(path).write_text(dump_card(card_of(cases, **said)), encoding="utf-8")
    return path
