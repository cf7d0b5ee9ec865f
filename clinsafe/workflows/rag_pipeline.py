"""The stages of the reference pipeline for one question: retrieve, rerank, guard, prompt, generate.

Relevance is known where a question names the documents that hold its answer: all their chunks have grade 1, all others
0. So a chunk of the right document that does not hold the answer itself counts as relevant; R, which looks for the
answer in the text, is measured beside it.
"""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from clinsafe.adapters.exchange import EndpointError
from clinsafe.adapters.generators import LASTING, OF_THE_PROMPT, Answering
from clinsafe.errors import ClinsafeError, ModelError, UsageError
from clinsafe.guarded import Guard, GuardedAnswer, GuardedPassage
from clinsafe.protocols import Encoder, ModelIdentity, PairScorer
from clinsafe.rag.chunks import OVERLAP, TOKENS
from clinsafe.rag.fusion import SearchIndex, SearchSettings
from clinsafe.rag.keeping import Kept
from clinsafe.rag.prompts import Prompt, Prompts, Setting, Shown, build
from clinsafe.rag.question import Question
from clinsafe.rag.trace import BadLine, Trace
from clinsafe.version import VERSION
from clinsafe.workflows.rag_draft import Draft
from clinsafe.workflows.rag_index import Documents, read_manifest
from clinsafe.workflows.rag_ledger import TRACES, RunState, TraceFile, plan_hash

if TYPE_CHECKING:
    from clinsafe.rag.chunks import ChunkStore

FAILURES = 3  # in a row; as patient as an endpoint is with itself

Asked: TypeAlias = Callable[[], Iterator[Question | BadLine]]


class NoDocument(ClinsafeError):
    """The question names no document of the corpus, so there is no whole document to show."""


@dataclass(frozen=True, slots=True)
class Arm:
    """One way of answering.

    Attributes:
        setting: what the model is shown.
        alpha: weight of the dense ranking; None unless the setting is rag.
    """

    setting: Setting = "rag"
    alpha: float | None = None

    @property
    def label(self) -> str:
        """``rag alpha=0.5``, ``direct``, ``long-context``."""
        return self.setting if self.alpha is None else f"{self.setting} alpha={self.alpha:g}"

    @property
    def file(self) -> str:
        """Of its traces, in the run folder."""
        return f"{TRACES}/{self.label.replace(' ', '-').replace('=', '-')}.jsonl"


def arms(settings: Sequence[Setting], alphas: Sequence[float]) -> tuple[Arm, ...]:
    """Every setting once, rag once for each alpha; in the order given.

    Raises:
        UsageError: none, one twice, or an alpha outside [0, 1].
    """
    found: list[Arm] = []
    for setting in settings:
        found += [Arm(setting, float(alpha)) for alpha in alphas] if setting == "rag" else [Arm(setting)]
    for one in found:
        if one.alpha is not None:
            SearchSettings(alpha=one.alpha)
    if not found or len({one.file for one in found}) != len(found):
        raise UsageError("give each --setting and each --alpha once, and at least one of them")
    return tuple(found)


@dataclass(frozen=True, slots=True)
class Plan:
    """A run.

    Attributes:
        questions: opens them; gone through twice, once to be hashed.
        documents: the corpus; None where nothing is retrieved and no document shown.
        out: run folder.
        prompts: see `clinsafe.rag.prompts`.
        arms: from `arms`.
        encoder: for the index.
        generator: None retrieves alone: answers are unknown.
        search: k and what else a search depends on; its alpha is not used.
        tokens, overlap: of the chunks.
        reranker: None for none.
        guard: None for none; the guard's policy and rules are in `guard_rules`.
        guard_rules: name -> version or hash.
        kept: whether texts are written.
        index_folder: where indexes lie; None: in the run folder.
        limit: questions at most; 0: all. A run may be gone on with by a greater one.
        failures: of the generator in a row, after which the run stops.
        total: how many questions there are, for the progress bar; 0 not known.
        notes: what else the run depends on, name -> value.
    """

    questions: Asked
    documents: Documents | None
    out: Path
    prompts: Prompts
    arms: tuple[Arm, ...]
    encoder: Encoder | None = None
    generator: Answering | None = None
    search: SearchSettings = field(default_factory=SearchSettings)
    tokens: int = TOKENS
    overlap: int = OVERLAP
    reranker: PairScorer | None = None
    guard: Guard | None = None
    guard_rules: Mapping[str, str] = field(default_factory=dict)
    kept: Kept = field(default_factory=lambda: Kept(texts=True))
    index_folder: Path | None = None
    limit: int = 0
    failures: int = FAILURES
    total: int = 0
    notes: Mapping[str, str] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.limit < 0 or self.failures < 1:
            raise UsageError("--limit is at least 0, and failures in a row at least 1")
        names = {one.setting for one in self.arms}
        if self.generator is None and names != {"rag"}:
            raise UsageError(
                "the settings direct and long-context ask a model: give --generator-url URL or --generator FOLDER"
            )
        if names != {"direct"} and (self.documents is None or self.encoder is None):
            raise UsageError("a corpus and an encoder are needed unless --setting direct is the only one")


class Pipeline:
    """Takes a question through the stages of one arm.

    Attributes:
        failing: failures of a model in a row so far.
        stopped: why no more questions should be asked, "" where they should.
    """

    def __init__(self, plan: Plan, index: SearchIndex | None) -> None:
        self.plan, self.index, self.failing, self.stopped = plan, index, 0, ""
        self._worked = False
        self.corpus: str | None = None
        if index is not None and index.folder is not None:
            self.corpus = str(read_manifest(index.folder).made_of["corpus"]["sha256"])
        self._known: tuple[str, tuple[str, ...] | None] = ("", None)
        self.hash = ""

    def made_of(self, questions: str) -> dict[str, Any]:
        """What the traces depend on."""
        plan = self.plan
        search = {name: getattr(plan.search, name) for name in ("k", "depth", "constant", "mmr", "reranked")}
        return {
            "tool": VERSION,
            "questions": questions,
            "corpus": self.corpus or "none",
            "index": self.index.version if self.index else "none",
            "settings": {"arms": [one.label for one in plan.arms], **search},
            "prompts": plan.prompts.versions,
            "embedding": _identity(plan.encoder.identity if plan.encoder and self.index else None),
            "reranker": _identity(plan.reranker.identity if plan.reranker else None),
            "generator": _identity(plan.generator.identity if plan.generator else None),
            "guard": dict(plan.guard_rules) if plan.guard else "none",
            "texts": plan.kept.texts,
            "notes": dict(plan.notes),
        }

    def state(self, made_of: Mapping[str, Any]) -> RunState:
        """A new state of the folder."""
        self.hash = plan_hash(made_of)
        models = [self.plan.encoder if self.index else None, self.plan.reranker, self.plan.generator]
        return RunState(
            state="unfinished",
            started=datetime.now(UTC).isoformat(timespec="seconds"),
            tool=VERSION,
            plan=made_of,
            plan_sha256=self.hash,
            fake=any(one is not None and one.identity.fake for one in models),
            text=self.plan.kept.texts,
            files=tuple(self._file(one) for one in self.plan.arms),
        )

    def _file(self, arm: Arm) -> TraceFile:
        versions: dict[str, tuple[str, ...]] = {name: (value,) for name, value in self._versions(arm).items()}
        if self.plan.generator is not None:
            prompts = self.plan.prompts
            versions["prompt"] = tuple(
                prompts.version(one) for one in prompts.prompts if one.setting == arm.setting
            )
        if self.plan.guard is not None and arm.setting == "rag":
            versions["guard"] = tuple(
                f"{name} {value}" for name, value in sorted(self.plan.guard_rules.items())
            )
        return TraceFile(
            label=arm.label, file=arm.file, setting=arm.setting, alpha=arm.alpha, versions=versions
        )

    def _versions(self, arm: Arm) -> dict[str, str]:
        found: dict[str, str] = {}
        plan = self.plan
        if arm.setting == "rag" and self.index is not None and plan.encoder is not None:
            found["index"] = self.index.version
            if arm.alpha:
                found["embedding"] = version_of(plan.encoder.identity)
            if plan.reranker is not None:
                found["reranker"] = version_of(plan.reranker.identity)
        if plan.generator is not None:
            found["model"] = version_of(plan.generator.identity)
        return found

    def trace(self, question: Question, arm: Arm) -> Trace:
        """The trace of a question; what failed is in it, and `stopped` says whether to go on."""
        draft = Draft(self.plan.kept, arm.setting, self._versions(arm))
        try:
            shown, notes = self._shown(question, arm, draft)
            if self.plan.generator is not None:
                prompt = build(self.plan.prompts, arm.setting, question, shown, notes)
                draft.asked(prompt, shown)
                self._generate(self.plan.generator, prompt, draft)
        except ClinsafeError as error:  # an outcome of this question
            draft.error = error
        self._note(draft.error)
        eligible = self._eligible(question) if arm.setting == "rag" else None
        name = hashlib.sha256(f"{self.hash}\n{arm.label}\n{question.id}".encode()).hexdigest()[:32]
        return draft.done(name, question, eligible, self.corpus if arm.setting != "direct" else None)

    def _note(self, error: ClinsafeError | None) -> None:
        """Count failures of models in a row; a question that cannot be asked says nothing about them."""
        if error is None or isinstance(error, OF_THE_PROMPT):
            self.failing, self._worked = 0, True
        elif isinstance(error, (ModelError, *LASTING)):
            self.failing += 1
            unreachable = type(error) is EndpointError and not self._worked  # in its kinds it was reached
            if unreachable or isinstance(error, LASTING):
                self.stopped = str(error)
            elif self.failing >= self.plan.failures:
                self.stopped = f"{self.failing} failures in a row, the last one: {error}"

    def _generate(self, generator: Answering, prompt: Prompt, draft: Draft) -> None:
        begun = time.perf_counter()
        try:
            draft.answered(generator.complete(prompt.text))
        finally:
            draft.took("generation", begun)

    def _shown(self, question: Question, arm: Arm, draft: Draft) -> tuple[list[Shown], str | None]:
        """What goes into the prompt, and the guard's notes."""
        if arm.setting == "direct":
            return [], None
        if arm.setting == "long-context":
            return self._whole(question), None
        assert self.index is not None  # noqa: S101 - built for every other setting
        s, begun = self.plan.search, time.perf_counter()
        found = self.index.search(
            question.text, s.k, s.alpha if arm.alpha is None else arm.alpha, depth=s.depth, constant=s.constant,
            mmr=s.mmr, reranker=self.plan.reranker, reranked=s.reranked,
        )  # fmt: skip
        draft.took("retrieval", begun)
        draft.found(found)
        if self.plan.guard is None:
            return [Shown(one.id, one.text) for one in found.passages], None
        begun = time.perf_counter()
        checked = self.plan.guard.check(question.text, list(found.passages), k=s.k)
        draft.took("guard", begun)
        draft.guarded(checked)
        return [Shown(one.passage.id, _marked(one)) for one in checked.passages], _notes(checked)

    def _whole(self, question: Question) -> list[Shown]:
        store = self._store()
        texts = [(name, whole_text(store, name)) for name in dict.fromkeys(question.documents or ())]
        found = [Shown(name, text) for name, text in texts if text]
        if not found:
            raise NoDocument("the question names no document of this corpus")
        return found

    def _eligible(self, question: Question) -> tuple[str, ...] | None:
        """Ids of all chunks of the documents that hold the answer; None where those are not known."""
        if self._known[0] != question.id:
            known = None
            if question.documents is not None:
                names = dict.fromkeys(question.documents)
                known = tuple(one for name in names for one in chunk_ids(self._store(), name))
            self._known = (question.id, known)
        return self._known[1]

    def _store(self) -> ChunkStore:
        assert self.index is not None  # noqa: S101 - built for every setting that asks
        return self.index.store


def chunk_ids(store: ChunkStore, document: str) -> list[str]:
    """Ids of all chunks of a document, in their order; [] where the corpus has no such document."""
    found: list[str] = []
    while True:
        name = f"{document}#{len(found)}"
        try:
            store.rows([name])
        except KeyError:
            return found
        found.append(name)


def whole_text(store: ChunkStore, document: str) -> str:
    """A document's text, put together from its chunks, which lose nothing and overlap."""
    text = ""
    for chunk in store.get(store.rows(chunk_ids(store, document))):
        text += chunk.text[len(text) - chunk.start :]
    return text


def version_of(identity: ModelIdentity) -> str:
    """Name, revision and hash of all that is known of a model, for a trace; a fake's begins with ``fake:``."""
    revision = f"@{identity.revision[:12]}" if identity.revision else ""
    return f"{identity.name[:120]}{revision} sha256:{_identity(identity)}"


def _identity(identity: ModelIdentity | None) -> str:
    if identity is None:
        return "none"
    settings = {
        name: value for name, value in identity.settings.items() if name not in ("batch_size", "device")
    }
    whole = [
        identity.name,
        identity.revision,
        dict(identity.files),
        settings,
        identity.trusted_code,
        identity.fake,
    ]
    return hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()[:16]


def _marked(one: GuardedPassage) -> str:
    return one.annotated or one.passage.text


def _notes(answer: GuardedAnswer) -> str:
    """What the guard's context says after its passages: what is withheld, and its notes."""
    return answer.context[len("\n\n".join(one.annotated for one in answer.passages)) :].strip()
