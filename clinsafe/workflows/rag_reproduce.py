"""The retrieval rows of RAG-X's Table III, measured again on real data, and the reasons why figures differ.

The reference pipeline retrieves (`clinsafe.workflows.rag_run`) and its traces are evaluated like anybody's
(`clinsafe.workflows.rag_evaluate`), so that the reproduction is a record like any other. All of it lies in one folder::

    index/       of each corpus, cut and model, used again
    vectors/     of windows and passages: what level 3 of R needs is encoded once
    DATASET-MODEL[-TOKENS]/   traces
    records/     what was measured, question by question

A run that was stopped goes on where it was.
"""

from __future__ import annotations

import random
import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from clinsafe.content import Content
from clinsafe.corpus import Document
from clinsafe.errors import UsageError
from clinsafe.protocols import Encoder
from clinsafe.rag.chunks import OVERLAP, TOKENS
from clinsafe.rag.datasets import Dataset, medquad, pubmedqa
from clinsafe.rag.formats import read_items
from clinsafe.rag.item import Context, Item
from clinsafe.rag.normalise import normaliser
from clinsafe.rag.prompts import load_prompts
from clinsafe.rag.question import Question
from clinsafe.rag.settings import Settings
from clinsafe.rag.trace import BadLine
from clinsafe.rag.vectors import CachedEncoder
from clinsafe.reports.rag_record import RagEvidence
from clinsafe.workflows import rag_evaluate, rag_run
from clinsafe.workflows.rag_ledger import read_run
from clinsafe.workflows.rag_measure import BatchJudge, Instruments
from clinsafe.workflows.write import Stage, silent

if TYPE_CHECKING:
    from clinsafe.rag.clash import Conflicts

DATASETS: Mapping[str, Callable[[Path], Dataset]] = {"pubmedqa": pubmedqa, "medquad": medquad}
ALPHAS = (0.5, 1.0)  # BM25, alpha 0, knows no model: it is measured once
SHORT, SHORT_OVERLAP = 256, 25
"""A cut that the smaller window of MiniLM holds whole: what it costs that a model reads only the start of a chunk."""
BM25 = "bm25"
HOWS: Mapping[str, str] = {"inside words": "{}", "at the start of a word": r"\b{}", "as a word": r"\b{}\b"}
"""Ways to look for a word in a text: how -> pattern."""
AT_RANDOM = "passages at random"


@dataclass(frozen=True, slots=True)
class Way:
    """One way to retrieve from one data set.

    Attributes:
        dataset: a name of `DATASETS`.
        model: whose vectors; its tokens cut the chunks where alpha is 0, too.
        alphas: one system each.
        tokens, overlap: of the chunks.
    """

    dataset: str
    model: str
    alphas: tuple[float, ...]
    tokens: int = TOKENS
    overlap: int = OVERLAP

    @property
    def folder(self) -> str:
        """Of its traces."""
        return "-".join([self.dataset, self.model, *([str(self.tokens)] if self.tokens != TOKENS else [])])

    def label(self, alpha: float) -> str:
        """``pubmedqa bm25``, ``medquad minilm alpha=0.5``, ``medquad minilm alpha=1 tokens=256``."""
        if alpha == 0:
            return f"{self.dataset} {BM25}"
        cut = f" tokens={self.tokens}" if self.tokens != TOKENS else ""
        return f"{self.dataset} {self.model} alpha={alpha:g}{cut}"


def ways(datasets: Sequence[str], models: Sequence[str], *, short: bool = True) -> tuple[Way, ...]:
    """What is measured: BM25, every model at both weights, and the first model once more on short chunks.

    Raises:
        UsageError: no model, one twice, or no such data set.
    """
    if not models or len(set(models)) != len(models):
        raise UsageError("give at least one --model, and each once")
    if unknown := [name for name in datasets if name not in DATASETS]:
        raise UsageError(f"no data set {unknown[0]!r:.40}; valid: {', '.join(DATASETS)}")
    found = []
    for dataset in datasets:
        for number, model in enumerate(models):
            found.append(Way(dataset, model, ALPHAS if number else (0.0, *ALPHAS)))
        if short:
            found.append(Way(dataset, models[0], (1.0,), SHORT, SHORT_OVERLAP))
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Plan:
    """A reproduction.

    Attributes:
        sets: name -> documents and questions.
        ways: from `ways`.
        encoders: model -> encoder, for retrieval.
        relevance: the encoder of R's level 3, all-MiniLM-L6-v2 in the paper; the same for all ways.
        folder: where everything lies.
        content: content tree.
        conflicts: the filters; None: nothing safe or dangerous is measured.
        judge: of context relevancy; None: not measured.
        limit: questions of each data set; 0: all.
        operator: as printed.
    """

    sets: Mapping[str, Dataset]
    ways: Sequence[Way]
    encoders: Mapping[str, Encoder]
    relevance: Encoder
    folder: Path
    content: Content = field(default_factory=Content)
    conflicts: Conflicts | None = None
    judge: BatchJudge | None = None
    limit: int = 0
    operator: str = "not stated"


@dataclass(frozen=True, slots=True)
class Literal:
    """What comes out where the word yes, no or maybe itself is looked for in the passages: a demonstration.

    Attributes:
        n: questions.
        hits: of them, with the expected word in one of the passages.
        first: sum of 1 / rank of the first passage that holds it.
        alone: questions where only the first passage holds it.
        by_word: expected word -> (hits, questions).
    """

    n: int
    hits: int
    first: float
    alone: int
    by_word: Mapping[str, tuple[int, int]]


@dataclass(frozen=True, slots=True)
class Reproduced:
    """What came out.

    Attributes:
        evidence: the record, one system for each data set, model and weight.
        literal: label -> how -> what looking for the word yields, for questions with an expected option; under
            ``DATASET passages at random`` what it yields where nothing was retrieved at all.
        documents, chunks: label -> how many.
        seconds: label -> time of retrieval; "evaluation" -> of all measuring, in this run.
    """

    evidence: RagEvidence
    literal: Mapping[str, Mapping[str, Literal]]
    documents: Mapping[str, int]
    chunks: Mapping[str, int]
    seconds: Mapping[str, float]


def load_sets(folder: Path, names: Sequence[str] = tuple(DATASETS)) -> dict[str, Dataset]:
    """The data sets from their files.

    Raises:
        UsageError, ContentError: see `clinsafe.rag.datasets`.
    """
    return {name: DATASETS[name](folder) for name in names}


def reproduce(plan: Plan, stage: Stage = silent) -> Reproduced:
    """Retrieve all ways, measure them, and make the record.

    Raises:
        UsageError: the folder was begun with other data, models or settings. What corpus, index and models raise.
        KeyboardInterrupt: what was done is kept.
    """
    sources: list[rag_evaluate.Source] = []
    documents: dict[str, int] = {}
    chunks: dict[str, int] = {}
    seconds: dict[str, float] = {}
    for way in plan.ways:
        begun = time.perf_counter()
        found = _retrieve(plan, way, stage)
        for source in _sources(plan, way):
            sources.append(source)
            documents[source.label] = len(plan.sets[way.dataset][0])
            chunks[source.label] = found.chunks or 0
            seconds[source.label] = time.perf_counter() - begun
    begun = time.perf_counter()
    made = _instruments(plan)
    evidence = rag_evaluate.evaluate(
        rag_evaluate.Plan(
            sources,
            made,
            plan.content,
            folder=plan.folder / "records",
            operator=plan.operator,
            most=plan.limit,
        ),
        stage,
    )
    seconds["evaluation"] = time.perf_counter() - begun
    return Reproduced(evidence, _literal(plan, sources), documents, chunks, seconds)


def _literal(plan: Plan, sources: Sequence[rag_evaluate.Source]) -> dict[str, Mapping[str, Literal]]:
    asked = {one.label: _items(one, plan.limit) for one in sources}
    for name, (documents, questions) in plan.sets.items():
        asked[f"{name} {AT_RANDOM}"] = at_random(documents, questions[: plan.limit or None])
    found = {label: {how: literally(items, how) for how in HOWS} for label, items in asked.items()}
    return {
        label: {how: one for how, one in by_how.items() if one is not None}
        for label, by_how in found.items()
        if any(by_how.values())
    }


def _retrieve(plan: Plan, way: Way, stage: Stage) -> rag_run.Summary:
    documents, questions = plan.sets[way.dataset]

    def told(what: str, done: int, total: int) -> None:
        stage(f"{what} {way.folder}", done, total)

    return rag_run.run(
        rag_run.Plan(
            questions=lambda: iter(questions),
            documents=documents,
            out=plan.folder / way.folder,
            prompts=load_prompts(plan.content),
            arms=rag_run.arms(["rag"], way.alphas),
            encoder=plan.encoders[way.model],
            tokens=way.tokens,
            overlap=way.overlap,
            index_folder=plan.folder / "index",
            limit=plan.limit,
        ),
        told,
    )


def _sources(plan: Plan, way: Way) -> Iterator[rag_evaluate.Source]:
    state = read_run(plan.folder / way.folder)
    for one in state.files:
        yield rag_evaluate.Source(
            label=way.label(one.alpha or 0.0),
            path=plan.folder / way.folder / one.file,
            format="clinsafe",
            setting="rag",
            fake=state.fake,
            versions={name: list(values) for name, values in one.versions.items()},
        )


def _instruments(plan: Plan) -> Instruments:
    settings = Settings()
    made = Instruments(
        settings=settings,
        normaliser=normaliser(plan.content, settings.normalisation),
        content=plan.content,
        encoder=CachedEncoder(plan.relevance, folder=plan.folder / "vectors"),
        conflicts=plan.conflicts,
        judge=plan.judge,
    )
    # What content is read must not hang on how much of an earlier run is there: it is part of what tells two runs
    # apart.
    made.measure([Item("warm", "Is it?", (Context("a", "It is."),), answer="It is.", references=("It is.",))])
    return made


def _items(source: rag_evaluate.Source, limit: int) -> list[Item]:
    found: list[Item] = []
    for entry in read_items(source.path, source.format):
        if not isinstance(entry, BadLine):
            found.append(entry)
        if limit and len(found) == limit:
            break
    return found


def at_random(documents: Sequence[Document], questions: Sequence[Question], k: int = 3) -> list[Item]:
    """Each question with k documents drawn by chance, always the same ones: what a retriever is to be better than."""
    drawn = random.Random(0)  # noqa: S311 - no secret
    return [
        Item(
            one.id,
            one.text,
            tuple(Context(d.id, d.text) for d in drawn.sample(documents, min(k, len(documents)))),
            expected=one.expected,
        )
        for one in questions
    ]


def literally(items: Sequence[Item], how: str = "inside words", k: int = 3) -> Literal | None:
    """Look for the expected word (yes, no, maybe) itself in the first k passages, in lower case.

    What R does at its first level where that word is taken for the reference answer, and words may be cut in two: "no"
    stands in "not", "normal" and "diagnosis". None where no question has an expected option.

    Args:
        how: one of `HOWS`.
    """
    hits = alone = 0
    first = 0.0
    by_word: dict[str, tuple[int, int]] = {}
    asked = [item for item in items if item.expected and item.contexts]
    for item in asked:
        word = str(item.expected)
        pattern = re.compile(HOWS[how].format(re.escape(word.lower())))
        found = [pattern.search(context.text.lower()) is not None for context in (item.contexts or ())[:k]]
        hits += any(found)
        first += next((1 / rank for rank, hit in enumerate(found, start=1) if hit), 0.0)
        alone += found[0] and not any(found[1:])
        had, of = by_word.get(word, (0, 0))
        by_word[word] = (had + any(found), of + 1)
    return Literal(len(asked), hits, first, alone, dict(sorted(by_word.items()))) if asked else None
