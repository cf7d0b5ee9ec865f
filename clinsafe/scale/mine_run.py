"""Mining, whole: each corpus worked through in shards that resume, then one suite chosen from all candidates."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from clinsafe.benchmarks.mined import MinedCard
from clinsafe.benchmarks.mining.novelty import load_freeze
from clinsafe.benchmarks.mining.recipe import CorpusEntry, Recipe
from clinsafe.benchmarks.mining.rules import load_rules
from clinsafe.benchmarks.mining.sentences import split
from clinsafe.benchmarks.suite import Case
from clinsafe.content import Content, sha256_file
from clinsafe.corpus import BadRecord, Layout, read_corpus
from clinsafe.scale.folder import Summary, part_name
from clinsafe.scale.job import Job
from clinsafe.scale.local import Run, Stage, quiet, run_local
from clinsafe.scale.mining import WHOLE, candidates
from clinsafe.scale.parts import Cut, Shard
from clinsafe.scale.table import arrow
from clinsafe.text.parse import Parser
from clinsafe.workflows.mine import Mined, assemble, rules_hash

PART, BATCH = 64, 4  # documents: one takes a fifth of a second and more


@dataclass(frozen=True)
class MineRun:
    """What is to be mined, and where the work is kept.

    Attributes:
        recipe: corpora, sizes, seed.
        paths: one corpus file or folder for each entry of the recipe.
        folder: keeps finished parts, so that the same call continues.
        shard, workers: see `clinsafe.scale.local.Run`.
    """

    recipe: Recipe
    paths: Sequence[Path]
    folder: Path
    content: Content
    overlay: Path | None = None
    spacy: str | None = None
    shard: Shard = Shard()  # noqa: RUF009 - frozen
    workers: int = 0

    def runs(self) -> Iterator[tuple[CorpusEntry, Run]]:
        """One job a corpus."""
        recipe = self.recipe
        job = Job(
            "mine", content=self.overlay, spacy=self.spacy, hazards=tuple(recipe.hazards), seed=recipe.seed
        )
        for entry, path in zip(recipe.corpora, self.paths, strict=True):
            cut = Cut(Layout(entry.id, entry.text, entry.cluster), WHOLE, 0, PART, BATCH)
            yield (
                entry,
                Run(path, self.folder / entry.name, job, cut, self.shard, self.workers, patience=60.0),
            )


def mine(run: MineRun, stage: Stage = quiet) -> tuple[MinedCard, list[Case]] | None:
    """Mine every corpus and choose a suite; None where this is one shard of several, and the last step is another's.

    Raises:
        ClinsafeError: a corpus that cannot be read, a rule that is malformed, a folder of another job.
    """
    rules = load_rules(run.content, tuple(run.recipe.hazards))
    frozen = load_freeze(run.content)
    frozen.families(rules, run.recipe.hazards)  # what it does not name is said before hours of work
    summaries = []
    for entry, one in run.runs():

        def told(what: str, done: int, of: int, name: str = entry.name) -> None:
            stage(f"{what}, {name}", done, of)

        summaries.append(run_local(one, told))
    if run.shard.of > 1:
        return None
    stage("Choosing", 0, 0)
    mined = [_mined(entry, one, summary) for (entry, one), summary in zip(run.runs(), summaries, strict=True)]
    texts = (text for _, one in run.runs() for text in _sentences(one))
    name = Parser(run.spacy).name
    return assemble(run.recipe, rules, rules_hash(run.content), frozen, mined, texts, name)


def _mined(entry: CorpusEntry, run: Run, summary: Summary) -> Mined:
    _, pq = arrow()
    found, refused, documents = [], Counter[str](), 0
    for path in (run.out / part_name(number) for number in range(summary.parts)):
        for value, error in zip(
            *pq.read_table(path, columns=["quads", "error"]).to_pydict().values(), strict=True
        ):
            documents += 1
            if error:
                refused[f"document failed: {error}"] += 1
                continue
            quads, why = candidates(value)
            found += quads
            refused.update(why)
    digest = sha256_file(run.corpus) if run.corpus.is_file() else None
    return Mined(entry, found, documents, digest, refused, summary.bad + sum(summary.errors.values()))


def _sentences(run: Run) -> Iterator[str]:
    def leave_out(_record: BadRecord) -> None:
        """It was counted when it was mined."""

    for document in read_corpus(run.corpus, run.cut.layout, leave_out):
        yield from split(document.text)
