"""Checklist item 8, end to end: real retrievers over real text, before the guard and after it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from clinsafe.benchmarks.endtoend import answers, figures, outcomes
from clinsafe.benchmarks.endtoend.corpus import Collection, Task, build
from clinsafe.benchmarks.endtoend.documents import load_texts
from clinsafe.benchmarks.endtoend.dummies import DUMMIES
from clinsafe.benchmarks.endtoend.journal import Journal
from clinsafe.benchmarks.endtoend.outcomes import Outcome, Setting
from clinsafe.benchmarks.endtoend.queries import NAME, load_rows, resolve, shortfalls
from clinsafe.benchmarks.endtoend.search import Found, Score, Unscored, dense, mean, search
from clinsafe.benchmarks.ordinary import VARIABLE, data_folder
from clinsafe.benchmarks.suite import load_card
from clinsafe.benchmarks.vectors import encode_sides, store_key
from clinsafe.content import Content, sha256_file
from clinsafe.errors import UsageError
from clinsafe.guarded import Guard
from clinsafe.protocols import Encoder, Generator, ModelIdentity, QueryEncoder, Vectors
from clinsafe.stats import Figure
from clinsafe.version import VERSION
from clinsafe.workflows.endtoend_answers import Asked, prompts

if TYPE_CHECKING:
    from clinsafe.adapters.encoders import ModelOptions
    from clinsafe.mitigations.stack import Stack

Stage = Callable[[str, int, int], None]
BM25, HYBRID = "bm25", "hybrid"
CODE = ("mitigations", "text", "benchmarks/endtoend")
CORPORA: tuple[Literal["mixed", "control"], ...] = ("mixed", "control")


def silent(_what: str, _done: int, _total: int) -> None:
    """A progress report for nobody."""


@dataclass(frozen=True, slots=True)
class Plan:
    """What is to be measured.

    Attributes:
        models: encoders, as after ``--model``; the first is also one half of the hybrid.
        ks: how many passages are retrieved; each is a measurement of its own.
        most: ordinary passages at most; 0: all.
        data: folder of the data files; None takes ``CLINSAFE_DATA``.
        out: run folder, for going on after a stop; None keeps nothing.
        dummies: measure guards that look at nothing too.
        generator: a language model, or None: answers are not measured.
        generator_name: its name in the run folder.
        max_calls: prompts sent at most.
        settings: how the guard was made, as far as it does not say so itself.
    """

    models: Sequence[str] = ("minilm",)
    ks: Sequence[int] = (10, 5)
    most: int = 0
    data: Path | None = None
    out: Path | None = None
    dummies: bool = True
    generator: Generator | None = None
    generator_name: str = ""
    max_calls: int = 300
    settings: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.ks or min(self.ks) < 1 or len(set(self.ks)) < len(self.ks):
            raise UsageError(
                f"k is a number of passages, each once and at least 1; got {', '.join(map(str, self.ks))}"
            )
        if min(self.most, self.max_calls) < 0:
            raise UsageError("neither the number of passages nor that of calls may be below 0")


@dataclass(slots=True)
class Result:
    """All that was measured.

    Attributes:
        figures: metric key -> figure.
        outcomes: one a query, system, k, corpus and arm.
        answers: one a query and arm, where a language model was asked.
        collection: what was searched.
        systems: names of the retrievers, in the order of the table.
        about: what was searched by what, in lines to be printed above the figures.
        notes: what was not measured or has to be known, and why.
    """

    collection: Collection
    figures: dict[str, Figure] = field(default_factory=dict)
    outcomes: list[Outcome] = field(default_factory=list)
    answers: list[answers.AnswerRow] = field(default_factory=list)
    systems: list[str] = field(default_factory=list)
    about: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def measure(
    plan: Plan,
    content: Content,
    guard: Guard,
    conflicts: answers.Conflicts,
    options: ModelOptions | None = None,
    stage: Stage = silent,
) -> Result:
    """Search with every system, check with every guard, count what the reader was shown.

    Args:
        plan: what is to be measured.
        content: content tree with its overlay; the queries are read from it.
        guard: what is measured as ``after``.
        conflicts: compares two texts, for generated answers.
        options: how models are loaded.
        stage: told how far the work is.

    Raises:
        UsageError: no data folder, another edition of the data, a run folder of something else.
        ContentError: a fault in the queries' file. ModelError: a model cannot be used.
    """
    folder = data_folder(plan.data)
    if folder is None:
        raise UsageError(f"the corpora are read from data files; name their folder with --data or {VARIABLE}")
    rows, texts = load_rows(content), load_texts(folder)
    collection = build(resolve(rows, texts), texts, plan.most)
    result = Result(collection, notes=shortfalls(rows, load_card(content).hazards))
    models = load_models(plan.models, options)
    made_with = dict(plan.settings) | _made_with(content, guard, collection)
    journal = Journal(
        plan.out, made_with, {name: store_key(one.identity, ()) for name, one in models.items()}
    )
    systems = _systems(models, collection, journal, result, stage)
    guards = {figures.AFTER: guard} | (
        {name: make() for name, make in DUMMIES.items()} if plan.dummies else {}
    )
    for name, score in systems.items():
        result.outcomes += _search(name, score, collection, guards, plan.ks, journal, stage)
    result.systems = list(systems)
    _describe(result, models)
    result.figures |= figures.figures(result.outcomes)
    if plan.generator is None:
        result.notes.append("generated answers: not measured (no --generator-url)")
    else:
        _generate(plan, plan.generator, systems, result, guard, conflicts, journal, stage)
    return result


def comparing(stack: Stack) -> answers.Conflicts:
    """Whether two texts contradict each other, by a stack of filters; None where a filter did not look."""

    def conflicts(a: str, b: str) -> bool | None:
        found = stack.compare(stack.read(a), stack.read(b))
        return True if found.conflict else None if found.unchecked else False

    return conflicts


def load_models(specs: Sequence[str], options: ModelOptions | None = None) -> dict[str, Encoder]:
    """Encoders by the name of their rows.

    Raises:
        UsageError: none at all, two of one name, or one that scores pairs. ModelError, MissingDependency.
    """
    from clinsafe.adapters.encoders import ModelOptions, load_model

    options = options or ModelOptions()
    found: dict[str, Encoder] = {}
    for spec in specs:
        name = re.sub(r"[^\w.\-/]", "_", spec)
        if name in (*found, BM25, HYBRID):
            raise UsageError(f"--model {spec}: a system is called {name!r} already; name each model once")
        model = load_model(spec, options.meant_for(spec))
        if not isinstance(model, Encoder):
            raise UsageError(f"--model {spec} scores pairs; a corpus is searched with an encoder")
        found[name] = model
    if not found:
        raise UsageError("no model was named; the usual one is --model minilm")
    return found


# ── retrieval ──────────────────────────────────────────────────────────────────────────────────


def _systems(
    models: Mapping[str, Encoder], collection: Collection, journal: Journal, result: Result, stage: Stage
) -> dict[str, Score]:
    """Every model, BM25, and the hybrid of the first model with BM25."""
    from clinsafe.adapters.lexical import Bm25

    found = {name: _dense(name, model, collection, journal, result, stage) for name, model in models.items()}
    texts = collection.texts()
    words = Bm25(texts)

    def lexical(query: str) -> NDArray[np.float64]:
        return words.score([(query, text) for text in texts])

    first = next(iter(found.values()))
    return {**found, BM25: lexical, HYBRID: mean(first, lexical)}


def _dense(
    name: str, model: Encoder, collection: Collection, journal: Journal, result: Result, stage: Stage
) -> Score:
    # by length, so that a batch holds texts of about one length: a third faster
    texts = sorted(set(collection.texts()), key=lambda text: (len(text), text))
    tell = f"Encoding, {name}"[:22]
    _, rows = encode_sides(
        _Side(model.identity, model.encode),
        texts,
        store=journal.vectors,
        progress=lambda done, total: stage(tell, done, total),
    )
    asked = list(dict.fromkeys(task.query.row.query for task in collection.tasks))
    encode = model.encode_queries if isinstance(model, QueryEncoder) else model.encode
    queries, _ = encode_sides(_Side(model.identity, encode), asked)
    lost = sum(isinstance(row, str) for row in rows.values())
    if lost:
        result.notes.append(
            f"{name}: {lost} of {len(texts)} passages got no vector; they are never retrieved"
        )
    found = [rows[text] for text in collection.texts()]
    dimension = next(len(row) for row in (*found, *queries.values()) if not isinstance(row, str))
    none = np.zeros(dimension, dtype=np.float32)
    vectors = np.stack([none if isinstance(row, str) else row for row in found])
    return dense(vectors, dict(queries), np.array([not isinstance(row, str) for row in found]))


@dataclass
class _Side:
    """One side of an encoder: passages and queries are different texts here, and each is encoded once."""

    identity: ModelIdentity
    encode: Callable[[Sequence[str]], Vectors]


def _search(
    system: str,
    score: Score,
    collection: Collection,
    guards: Mapping[str, Guard],
    ks: Sequence[int],
    journal: Journal,
    stage: Stage,
) -> Iterator[Outcome]:
    """The outcomes of one system; what the journal has is not measured again."""
    settings = [
        Setting(system=system, k=k, corpus=corpus, arm=arm)
        for corpus in CORPORA
        for k in ks
        for arm in (figures.BEFORE, *guards)
    ]
    for done, task in enumerate(collection.tasks, start=1):
        known = {one: journal.outcome(task.query.row.id, one) for one in settings}
        missing = [one for one, before in known.items() if before is None]
        yield from (before for before in known.values() if before is not None)
        for outcome in _of_query(task, score, collection, guards, missing):
            journal.add(outcome)
            yield outcome
        stage(f"Searching, {system}"[:22], done, len(collection.tasks))


def _of_query(
    task: Task,
    score: Score,
    collection: Collection,
    guards: Mapping[str, Guard],
    settings: Sequence[Setting],
) -> Iterator[Outcome]:
    if not settings:
        return
    try:
        scores = score(task.query.row.query)
    except Unscored as error:
        yield from (outcomes.not_measured(task, one, str(error)) for one in settings)
        return
    ids = collection.passages[task.right].id, collection.passages[task.wrong].id
    found: dict[tuple[str, int], Found] = {}
    for one in settings:
        if (one.corpus, one.k) not in found:
            found[one.corpus, one.k] = search(
                collection, task, scores, one.k, control=one.corpus == "control"
            )
        got = found[one.corpus, one.k]
        query = task.query.row.query
        answer = (
            outcomes.unguarded(query, got.passages)
            if one.arm == figures.BEFORE
            else guards[one.arm].check(query, list(got.passages), k=one.k)
        )
        yield outcomes.observe(task, got, answer, one, ids)


def _generate(
    plan: Plan,
    generator: Generator,
    systems: Mapping[str, Score],
    result: Result,
    guard: Guard,
    conflicts: answers.Conflicts,
    journal: Journal,
    stage: Stage,
) -> None:
    """Answers over what the first system retrieves with the smallest k."""
    system, k = next(iter(systems)), min(plan.ks)
    asked = Asked(generator, plan.generator_name, plan.max_calls, journal)
    for done, task in enumerate(result.collection.tasks, start=1):
        for arm, prompt in prompts(task, systems[system], result.collection, guard, k):
            result.answers.append(asked.row(task.query, arm, prompt, conflicts))
        stage("Asking", done, len(result.collection.tasks))
    result.notes += asked.notes
    result.figures |= answers.figures(result.answers, system, k)
    n = sum(row.status != "not_asked" for row in result.answers)
    result.about.append(
        f"answers by {plan.generator_name}, {system}, k = {k}: {n} of {len(result.answers)} asked for"
    )


# ── what it was made with ──────────────────────────────────────────────────────────────────────


def _made_with(content: Content, guard: Guard, collection: Collection) -> dict[str, str]:
    """What outcomes depend on beside the models; those of other values are not taken over."""
    passages = hashlib.sha256("\n".join(passage.id for passage in collection.passages).encode())
    rules = [
        f"{name} {sha}" for name, sha in sorted(content.hashes.items()) if name.startswith("mitigations/")
    ]
    return {
        "version": VERSION,
        "code": _code(),
        "queries": sha256_file(content.path(NAME)),
        "collection": passages.hexdigest(),
        "rules": hashlib.sha256("\n".join(rules).encode()).hexdigest(),
        "policy": guard.check("", []).policy_sha256,
        "guard": type(guard).__name__,
    }


def _code() -> str:
    digest, root = hashlib.sha256(), Path(__file__).resolve().parents[1]
    for folder in CODE:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _describe(result: Result, models: Mapping[str, Encoder]) -> None:
    collection, forms = result.collection, [task.query.row.form for task in result.collection.tasks]
    kinds = ", ".join(f"{forms.count(form)} {form.replace('_', ' ')}" for form in dict.fromkeys(forms))
    sample = f", a sample of {collection.offered}" if collection.offered > collection.ordinary else ""
    hidden = sum(len(task.hidden) for task in collection.tasks)
    result.about += [
        f"{len(forms)} queries ({kinds}) over {collection.ordinary} ordinary passages{sample} of MedQuAD and "
        f"PubMedQA, and two of each query: a right one and a contradicting one",
        f"hidden from their own query, as they hold its sentence: {hidden} passages",
        f"systems: {', '.join(result.systems)}; "
        + ", ".join(f"{name} = {model.identity.name}" for name, model in models.items()),
    ]
    fakes = [name for name, model in models.items() if model.identity.fake]
    if fakes:
        result.notes.append(f"{', '.join(fakes)}: a fake model; no figure of it may be published")
    for name, n in figures.unmeasured(result.outcomes).items():
        result.notes.append(f"{name}: {n} queries could not be searched; they are in no figure")
    after = [one for one in result.outcomes if one.arm == figures.AFTER and not one.reason]
    late = sum(
        not one.whole or one.unchecked > 0 or one.right.unchecked or one.wrong.unchecked for one in after
    )
    if late:
        result.notes.append(
            f"{late} of {len(after)} answers of the guard hold something that was not checked; what was not checked "
            "counts as unmarked"
        )
    lost = {one.query for one in result.outcomes if one.lost and one.arm == figures.AFTER}
    if lost:
        result.notes.append(f"the guard lost passages of {len(lost)} queries; it must not lose any")
