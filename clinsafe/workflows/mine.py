"""From candidate quads to a suite with its card: choose, name, count, hash."""

from __future__ import annotations

import hashlib
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from clinsafe.benchmarks.mined import SPLITS, FamilyCount, Freeze, MinedCard, Source
from clinsafe.benchmarks.mining.novelty import FreezeFile
from clinsafe.benchmarks.mining.plausible import Plausibility
from clinsafe.benchmarks.mining.quads import Candidate
from clinsafe.benchmarks.mining.recipe import CorpusEntry, Recipe
from clinsafe.benchmarks.mining.rules import FOLDER, Rules
from clinsafe.benchmarks.mining.select import Selection, select
from clinsafe.benchmarks.suite import Case, split_hash
from clinsafe.content import Content, sha256_file

SHORT = {
    "negation": "neg",
    "numerical": "num",
    "temporal": "tmp",
    "entity_swap": "ent",
    "hedging": "hdg",
    "quantifier": "qnt",
}
_NO_SLUG = re.compile(r"[^a-z0-9_-]+")
LONGEST = 60


@dataclass(frozen=True, slots=True)
class Mined:
    """What one corpus gave.

    Attributes:
        candidates: with clusters as the corpus names them.
        documents: how many were read.
        left_out: records that were no documents, or failed.
        sha256: of the corpus file; None for a folder.
        refused: reason -> how often.
    """

    entry: CorpusEntry
    candidates: Sequence[Candidate]
    documents: int
    sha256: str | None
    refused: Mapping[str, int]
    left_out: int = 0


def assemble(
    recipe: Recipe,
    rules: Rules,
    rules_sha256: str,
    frozen: FreezeFile,
    mined: Sequence[Mined],
    texts: Iterable[str],
    pipeline: str,
) -> tuple[MinedCard, list[Case]]:
    """The suite and its card.

    Args:
        rules_sha256: see `rules_hash`.
        frozen: what the filters knew of the families.
        mined: one entry a corpus.
        texts: sentences of the corpora, for the plausibility score.
        pipeline: name and version of the spaCy pipeline.
    """
    known = frozen.families(rules, recipe.hazards)
    origin = {one.key: part.entry for part in mined for one in part.candidates}
    candidates = [one for part in mined for one in part.candidates]
    selection = select(candidates, known, Plausibility(texts), recipe.wanted)
    cases = [
        _case(one, split, origin[one.key], known[hazard][one.family])
        for hazard, splits in selection.chosen.items()
        for split in SPLITS
        for one in sorted(splits[split], key=lambda one: one.key)
    ]
    return _card(recipe, rules, rules_sha256, frozen, mined, selection, cases, known, pipeline), cases


def rules_hash(content: Content) -> str:
    """SHA-256 over the names and bytes of every file that makes candidates."""
    digest = hashlib.sha256()
    for name in sorted(name for name in content.hashes if name.startswith(f"{FOLDER}/")):
        digest.update(f"{name}\0{sha256_file(content.path(name))}\n".encode())
    return digest.hexdigest()


def slug(text: str) -> str:
    """A name in small ASCII letters; one that had to be changed ends in a hash of itself, so that no two become one."""
    plain = _NO_SLUG.sub("-", text.lower()).strip("-_")
    if plain == text and len(plain) <= LONGEST:
        return plain
    return f"{plain[: LONGEST - 9].rstrip('-_')}-{hashlib.sha256(text.encode()).hexdigest()[:8]}".lstrip("-")


def _case(one: Candidate, split: str, entry: CorpusEntry, new: bool) -> Case:
    controls = ", ".join(dict.fromkeys((one.control_a, one.control_b)))
    return Case(
        id=f"gen-{SHORT.get(one.hazard, slug(one.hazard)[:12])}-{one.key}",
        hazard=one.hazard,
        subtype=one.subtype,
        a=one.a,
        b=one.b,
        a_same=one.a_same,
        b_same=one.b_same,
        specialty=entry.specialty,
        genre=entry.genre,
        factor=one.factor,
        harm=one.harm,
        split=split,
        tier="generated",
        cluster=slug(f"{entry.name}-{one.cluster}"),
        origin=f"{entry.name}; edit {one.edit}; controls {controls}",
        family=one.family,
        novel=new,
    )


def _card(
    recipe: Recipe,
    rules: Rules,
    rules_sha256: str,
    frozen: FreezeFile,
    mined: Sequence[Mined],
    selection: Selection,
    cases: Sequence[Case],
    known: Mapping[str, Mapping[str, bool]],
    pipeline: str,
) -> MinedCard:
    tally = Counter((case.hazard, case.family, case.split) for case in cases)
    refused = Counter(selection.left_out)
    for part in mined:
        refused.update(part.refused)
    return MinedCard(
        suite_version=recipe.suite_version,
        title=recipe.title,
        language=recipe.language,
        authorship=recipe.authorship,
        second_reader=recipe.second_reader,
        clinician_review=recipe.clinician_review,
        not_covered=recipe.not_covered,
        seed=recipe.seed,
        rules_sha256=rules_sha256,
        pipeline=pipeline,
        plausibility_floor=recipe.sizes.plausibility_floor,
        freeze=Freeze(commit=frozen.commit, sha256=frozen.sha256, packs=frozen.packs),
        sources=[
            Source(
                name=part.entry.name,
                file=part.entry.file,
                sha256=part.sha256,
                source=part.entry.source,
                licence=part.entry.licence,
                documents=part.documents,
                left_out=part.left_out,
            )
            for part in mined
        ],
        counts={
            hazard: {split: sum(c.hazard == hazard and c.split == split for c in cases) for split in SPLITS}
            for hazard in recipe.hazards
        },
        families={
            hazard: {
                family: FamilyCount(
                    novel=known[hazard][family],
                    cues=tuple(sorted(cues)),
                    dev=tally[hazard, family, "dev"],
                    test=tally[hazard, family, "test"],
                )
                for family, cues in rules.families(hazard).items()
            }
            for hazard in recipe.hazards
        },
        refused=dict(sorted(refused.items())),
        sha256={split: split_hash(cases, split) for split in SPLITS},
    )
