"""clinsafe: is an embedding model or a RAG system safe to put in front of a clinician?

Importing this package imports nothing heavy; each function loads what it needs when it is called.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Sequence

    from clinsafe.mitigations.facts import TextFacts
    from clinsafe.mitigations.stack import Comparison
    from clinsafe.protocols import DecisionLog
    from clinsafe.rag.recorder import Recorder
    from clinsafe.workflows.audit import AuditResult, Subjects

__all__ = ["audit", "compare", "guard", "read", "record"]


def audit(models: Subjects, *, out: str | Path | None = None, **options: Any) -> AuditResult:
    """Audit one or several models and write evidence and report into a run folder.

    Args:
        models: alias (``minilm``), folder, ONNX file, hub id, ``endpoint:name``, ``plugin:name``, an object with
            ``identity`` and ``encode`` or ``score``, or a list of these.
        out: run folder; None makes ``runs/<model>-<time>``.
        **options: fields of `clinsafe.adapters.encoders.ModelOptions` (``revision``, ``prompts``, ``base_url`` …) and
            arguments of `clinsafe.workflows.audit.run_audit` (``protocol``, ``hazards``, ``key`` …).

    Returns:
        The result; ``result.released`` and ``result.held`` are the verdict, ``result.report`` the document.

    Raises:
        clinsafe.errors.ClinsafeError: one line on what is wrong and what would be valid.
    """
    from dataclasses import fields
    from inspect import signature

    from clinsafe.adapters.encoders import ModelOptions
    from clinsafe.errors import UsageError
    from clinsafe.workflows.audit import run_audit

    names = {field.name for field in fields(ModelOptions)}
    valid = sorted(names | set(signature(run_audit).parameters) - {"models", "options"})
    if unknown := [name for name in options if name not in valid]:
        raise UsageError(f"audit() has no argument {unknown[0]!r}; there are: {', '.join(valid)}")
    chosen = ModelOptions(**{name: value for name, value in options.items() if name in names})
    rest = {name: value for name, value in options.items() if name not in names or name == "offline"}
    return run_audit(models, options=chosen, out=Path(out) if out is not None else None, **rest)


def read(text: str, *, filters: Sequence[str] | None = None, model: str | None = None) -> TextFacts:
    """Read a text into the facts that the filters compare. Read a corpus once and keep ``facts.to_json()`` beside it.

    Args:
        text: any text; what is longer than 200,000 characters is not read to its end, and marked unchecked.
        filters: names of filters (``negation``, ``numerical`` …); None takes all that are installed.
        model: a spaCy pipeline; None takes ``CLINSAFE_SPACY_MODEL`` or the first English one installed, "" none.

    Returns:
        Facts by filter; a filter that failed stands in ``unchecked`` and is never silently missing.

    Raises:
        clinsafe.errors.ClinsafeError: one line on what is wrong and what would be valid.
    """
    from clinsafe.workflows import guard

    return guard.read(text, filters=filters, model=model)


def guard(
    retriever: Any,
    policy: str | Path = "default",
    *,
    k: int | None = None,
    seconds: float = 2.0,
    facts: str | Path | None = None,
    log: DecisionLog | None = None,
    **options: Any,
) -> Any:
    """Wrap a retriever: what it finds comes back with findings, stance, action and an annotated text; nothing is lost.

    Args:
        retriever: a function ``f(query)`` or ``f(query, k)``, an object with ``retrieve`` or ``invoke`` (their async
            forms too), a LangChain retriever or a LlamaIndex retriever. A Haystack retriever is guarded inside its
            pipeline, by ``clinsafe.adapters.haystack.ClinsafeGuard``.
        policy: ``default`` (keep and flag in place), ``strict``, ``report``, or a YAML file of your own.
        k: at most so many passages are shown.
        seconds: the guard's time for one query; passages that are not done then come back *unchecked*. 0: no limit.
        facts: folder that ``clinsafe guard annotate`` wrote: passages are compared, and not read again.
        log: where decisions are recorded, see ``clinsafe.oversight``.
        **options: arguments of `clinsafe.workflows.guarding.build_guard` (``filters``, ``nli``, ``content`` …).

    Returns:
        A retriever of the same shape. Of a function or a plain object: a
        `clinsafe.adapters.plain.GuardedRetriever`, whose answers are `clinsafe.guarded.GuardedAnswer`.

    Raises:
        clinsafe.errors.ClinsafeError: one line on what is wrong and what would be valid. What the retriever itself
            raises reaches the caller unchanged.
    """
    from inspect import signature

    from clinsafe.adapters.frameworks import guard_retriever
    from clinsafe.errors import UsageError
    from clinsafe.workflows.guarding import build_guard

    valid = sorted(set(signature(build_guard).parameters) - {"facts"})
    if unknown := [name for name in options if name not in valid]:
        raise UsageError(f"guard() has no argument {unknown[0]!r}; there are: k, facts, {', '.join(valid)}")
    stored = None
    if facts is not None:
        from clinsafe.scale.store import load_facts

        stored = load_facts(Path(facts), content=options.get("content"), model=options.get("model"))
    built = build_guard(policy, seconds=seconds, facts=stored, log=log, **options)
    return guard_retriever(retriever, built, k=k)


def compare(
    a: str | TextFacts, b: str | TextFacts, *, filters: Sequence[str] | None = None, model: str | None = None
) -> Comparison:
    """Does `b` (a passage) conflict with `a` (a query)? Texts, or facts that `read` gave.

    Returns:
        ``result.conflicts`` (findings with both spans, cue, rule and a sentence), ``result.conflict``, and
        ``result.safe``: no conflict *and* every filter did look.

    Raises:
        clinsafe.errors.ClinsafeError: one line on what is wrong and what would be valid.
    """
    from clinsafe.workflows import guard

    return guard.compare(a, b, filters=filters, model=model)


def record(path: str | Path, *, text: bool = False, key: str | Path | None = None, **about: Any) -> Recorder:
    """Watch an application answer questions and append a trace of each to a file; see ``docs/record.md``.

    A decorator for the function that answers (plain, ``async``, a stream), or ``with record.question(text) as trace``,
    or a LangChain callback (`clinsafe.adapters.langchain_record.TraceHandler`).

    Args:
        path: file of traces, JSON Lines; its folder must be there.
        text: whether texts are written. Without it there are lengths, ids, ranks, scores and times (decision D11).
        key: file of a log key (``clinsafe log init``): each text's keyed hash is written beside its length.
        **about: what holds for every trace: ``corpus``, ``task``, ``slices``, ``versions`` … as
            `clinsafe.rag.trace.Trace` has them.

    Returns:
        The recorder. Whatever fails in it later is counted in ``failures`` and never reaches the application.

    Raises:
        clinsafe.errors.ClinsafeError: one line on what is wrong and what would be valid.
    """
    from clinsafe.adapters.retrievers import passages
    from clinsafe.rag.recorder import Recorder

    digest = None
    if key is not None:
        from clinsafe.oversight.keys import load_key

        digest = load_key(Path(key)).digest
    return Recorder(path, passages, text=text, digest=digest, about=about)
