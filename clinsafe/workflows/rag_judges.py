"""From what the user wrote after ``--judge`` to a judge: encoder, filters, rubrics, endpoint put together."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from clinsafe import plugins
from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.protocols import Encoder, Judgement, JudgeTask, ModelIdentity
from clinsafe.rag.clash import Conflicts
from clinsafe.rag.item import Item

if TYPE_CHECKING:
    from clinsafe.adapters.exchange import Patience
    from clinsafe.adapters.judge import EndpointJudge
    from clinsafe.rag.judging.local import LocalJudge
    from clinsafe.rag.judging.recorded import RecordedJudge
    from clinsafe.rag.judging.support import Nli

DEFAULT = "local"
MODEL = "minilm"  # of the local judge; its thresholds were measured with it


class ManyJudge(Protocol):
    """A `Judge` that takes many tasks at once."""

    identity: ModelIdentity

    def judge(self, task: JudgeTask, /) -> Judgement:
        """Score one task."""
        ...

    def judge_many(self, tasks: Sequence[JudgeTask], /) -> Sequence[Judgement]:
        """One judgement a task, in their order."""
        ...


@dataclass(frozen=True)
class JudgeOptions:
    """Everything that a judge may need; each takes what it knows.

    Attributes:
        content: content tree with its overlay.
        encoder: of the local judge; None loads `MODEL`.
        conflicts: of the local judge; None takes all installed filters.
        nli: probabilities of an NLI model for the local judge, `NliModel.probabilities`; None: without.
        nli_name: what the identity calls that model.
        url: of an endpoint, up to ``/v1``.
        key_variable, key_file: where its key is, at most one of them.
        cache: folder of judgements.
        calls, tokens: budget; None: no limit.
        timeout: seconds for one try.
        offline: nothing leaves this machine.
        seed: sent to an endpoint.
        most_tokens: of one answer of an endpoint.
        patience: how long an endpoint is waited for; None is the usual.
        items: whose grades a recorded judge looks up.
        grader: whose grades count; None: anybody's.
    """

    content: Content | None = None
    encoder: Encoder | None = None
    conflicts: Conflicts | None = None
    nli: Nli | None = None
    nli_name: str = ""
    url: str | None = None
    key_variable: str | None = None
    key_file: Path | None = None
    cache: Path | None = None
    calls: int | None = None
    tokens: int | None = None
    timeout: float = 60.0
    offline: bool = False
    seed: int = 0
    most_tokens: int = 512
    patience: Patience | None = None
    items: Iterable[Item] = ()
    grader: str | None = None


def build_judge(spec: str, options: JudgeOptions | None = None) -> ManyJudge:
    """A judge by its spec: ``local``, ``openai:MODEL``, ``recorded``, or a plug-in's ``NAME[:MODEL]``.

    A plug-in is an entry point in ``clinsafe.judges``: a callable of the model (or "") and `JudgeOptions`.

    Raises:
        UsageError: no such judge, or an option that it needs is missing. ModelError, OfflineError, ContentError,
            MissingDependency.
    """
    name, _, model = spec.strip().partition(":")
    installed = plugins.available("judges")
    if name in installed:
        made = plugins.load("judges", name)(model, options or JudgeOptions())
    elif name in BUILT_IN:
        made = BUILT_IN[name](model, options or JudgeOptions())
    else:
        known = ", ".join(sorted({*installed, *BUILT_IN} - {"openai"}))
        raise UsageError(f"no judge is called {name!r}; there are: {known}, and openai:MODEL")
    if not hasattr(made, "judge"):
        raise UsageError(f"judge {name!r} has no `judge`; see clinsafe.protocols.Judge")
    return made if hasattr(made, "judge_many") else OneByOne(made)


class OneByOne:
    """A judge that takes one task at a time, asked for many."""

    def __init__(self, judge: Any) -> None:
        self._judge = judge
        self.identity: ModelIdentity = getattr(judge, "identity", ModelIdentity(type(judge).__name__))

    def judge(self, task: JudgeTask, /) -> Judgement:
        """What the judge says."""
        said: Judgement = self._judge.judge(task)
        return said

    def judge_many(self, tasks: Sequence[JudgeTask], /) -> list[Judgement]:
        """In their order."""
        return [self.judge(task) for task in tasks]


def local(model: str, options: JudgeOptions) -> LocalJudge:
    """The local judge; `model` is "" or an encoder's alias."""
    from clinsafe.rag.judging.local import LocalJudge

    content = options.content or Content()
    encoder = options.encoder or _encoder(model or MODEL, options.offline)
    conflicts, settings = options.conflicts, {"filters": "given"}
    if conflicts is None:
        from clinsafe.workflows.guard import filter_names
        from clinsafe.workflows.rag_conflicts import build_conflicts

        conflicts = build_conflicts(content)
        settings = {"filters": ", ".join(filter_names(content)), **_packs(content)}
    if options.nli is not None:
        settings["nli"] = options.nli_name or "given"
    return LocalJudge(encoder, conflicts, nli=options.nli, settings=settings)


def _packs(content: Content) -> Mapping[str, str]:
    """The rule packs that the filters read; their words shape every verdict."""
    return {name: digest for name, digest in content.hashes.items() if name.startswith("mitigations/")}


def _encoder(name: str, offline: bool) -> Encoder:
    from clinsafe.adapters.encoders import ModelOptions, load_model

    loaded = load_model(name, ModelOptions(offline=offline))
    if not isinstance(loaded, Encoder):
        raise UsageError(f"--judge local:{name} scores pairs; the local judge needs an encoder")
    return loaded


def openai(model: str, options: JudgeOptions) -> EndpointJudge:
    """A model behind an OpenAI-compatible endpoint; no address is guessed, for texts of patients go there."""
    from clinsafe.adapters import judge
    from clinsafe.adapters.exchange import PATIENCE
    from clinsafe.adapters.judge_budget import Budget
    from clinsafe.rag.judging.form import RubricForm
    from clinsafe.rag.judging.rubrics import load_rubrics

    if not model:
        raise UsageError("--judge openai: names no model; valid is openai:MODEL")
    if not options.url:
        raise UsageError(f"--judge openai:{model} needs an address: --judge-url http://HOST:PORT/v1")
    return judge.load(
        model,
        options.url,
        RubricForm(load_rubrics(options.content)),
        key_variable=options.key_variable,
        key_file=options.key_file,
        cache=options.cache,
        budget=Budget(options.calls, options.tokens),
        timeout=options.timeout,
        offline=options.offline,
        patience=options.patience or PATIENCE,
        seed=options.seed,
        most_tokens=options.most_tokens,
    )


def recorded(model: str, options: JudgeOptions) -> RecordedJudge:
    """Grades that came with the traces; `model` is "" or the grader's name."""
    from clinsafe.rag.judging.recorded import RecordedJudge

    return RecordedJudge(options.items, options.grader or model or None)


BUILT_IN = {"local": local, "openai": openai, "recorded": recorded}
"""The rows of pyproject.toml, for a checkout that was installed before they were there."""
