"""``clinsafe rag run``: the reference pipeline over a corpus and questions, one trace a question."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from clinsafe.cli.console import Stopped, counted, printable, progress, prose, stoppable
from clinsafe.cli.console import out as stdout
from clinsafe.errors import ModelError, UsageError

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.content import Content
    from clinsafe.corpus import Document
    from clinsafe.protocols import Encoder, PairScorer
    from clinsafe.rag.keeping import Kept
    from clinsafe.rag.question import Question
    from clinsafe.rag.trace import BadLine
    from clinsafe.workflows.rag_dry import Dry
    from clinsafe.workflows.rag_run import Summary

DATASETS = ("pubmedqa", "medquad")
SHOWN = 5  # bad lines that are printed


def run(
    corpus: Annotated[
        Path | None, typer.Option(help="Corpus: JSON Lines, Parquet, or a folder of text, HTML or PDF.")
    ] = None,
    questions: Annotated[
        Path | None,
        typer.Option(help='JSON Lines with "id", "question", "reference", "documents", "options" …'),
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="pubmedqa or medquad, from --data, in place of corpus and questions.")
    ] = None,
    data: Annotated[
        Path | None, typer.Option(help="Folder of the data files; default CLINSAFE_DATA.")
    ] = None,
    layout: Annotated[
        str, typer.Option(help="Fields: id=FIELD,text=FIELD+FIELD,cluster=FIELD; what is not named is usual.")
    ] = "id=id,text=text",
    model: Annotated[
        str, typer.Option("--model", "-m", help="Encoder: alias, folder, hub id or plugin:NAME.")
    ] = "minilm",
    alpha: Annotated[
        list[float] | None,
        typer.Option(
            min=0, max=1, help="Weight of the vectors: 0 is BM25, 1 vectors alone; may be repeated."
        ),
    ] = None,
    k: Annotated[int, typer.Option("-k", "--k", min=1, help="Passages shown.")] = 3,
    tokens: Annotated[int, typer.Option(min=1, help="Tokens of a chunk.")] = 1024,
    overlap: Annotated[int, typer.Option(min=0, help="Tokens that it shares with the chunk before.")] = 100,
    rerank: Annotated[
        str | None, typer.Option(help="Cross-encoder that puts the best 20 in a new order.")
    ] = None,
    mmr: Annotated[
        float | None,
        typer.Option(min=0, max=1, help="Maximal marginal relevance: 1 relevance alone, 0 variety alone."),
    ] = None,
    guard: Annotated[
        str | None, typer.Option(help="Check passages with this policy; the model sees what the guard marks.")
    ] = None,
    setting: Annotated[
        list[str] | None, typer.Option(help="rag, direct or long-context; may be repeated. Default: rag.")
    ] = None,
    generator: Annotated[
        str | None, typer.Option(help="Local language model: folder with safetensors, .gguf file, hub id.")
    ] = None,
    generator_dtype: Annotated[
        str, typer.Option(help="Its weights: auto, float32, bfloat16 or float16.")
    ] = "auto",
    generator_url: Annotated[
        str | None, typer.Option(help="OpenAI-compatible chat endpoint, the part before /chat/completions.")
    ] = None,
    generator_model: Annotated[str, typer.Option(help="Its model.")] = "",
    generator_key_env: Annotated[
        str | None,
        typer.Option(
            help="Environment variable with its key; default CLINSAFE_API_KEY. Never the key itself."
        ),
    ] = None,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds for one answer.")] = 60.0,
    max_new_tokens: Annotated[int, typer.Option(min=1, help="Tokens of an answer at most.")] = 512,
    failures: Annotated[int, typer.Option(min=1, help="Stop after so many failures in a row.")] = 3,
    limit: Annotated[int, typer.Option(min=0, help="Questions at most; 0: all.")] = 0,
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
    out: Annotated[
        Path | None, typer.Option(help="Run folder: a run that was stopped goes on where it stopped.")
    ] = None,
    index: Annotated[
        Path | None, typer.Option(help="Folder of indexes, to be used again; default: in the run folder.")
    ] = None,
    no_text: Annotated[
        bool, typer.Option("--no-text", help="Write lengths and keyed hashes; no metric of text can be had.")
    ] = False,
    offline: Annotated[
        bool, typer.Option("--offline", help="Refuse every connection off this machine.")
    ] = False,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Count prompts and tokens; load, send and write nothing.")
    ] = False,
) -> None:
    """Retrieve, rerank, guard, prompt and generate, and write a trace for each question.

    Without a generator it retrieves alone. Each --alpha and each --setting makes a file of traces of its own;
    `clinsafe rag evaluate FOLDER` measures them. The texts of corpus, questions and answers stand in the traces.

    Exit code 0: done. 2: usage or input error, or a model that fails again and again. 130: stopped; the same command
    goes on.
    """
    with stoppable():
        from clinsafe.adapters.offline import only_this_machine
        from clinsafe.content import Content
        from clinsafe.rag.prompts import SETTINGS, load_prompts
        from clinsafe.workflows.rag_run import arms

        tree = Content(content)
        prompts = load_prompts(tree)
        chosen = [one for name in setting or ["rag"] for one in SETTINGS if one == name]
        if unknown := [name for name in setting or () if name not in SETTINGS]:
            raise UsageError(f"--setting: no setting {unknown[0]!r:.40}; valid: {', '.join(SETTINGS)}")
        if alpha and "rag" not in chosen:
            raise UsageError("--alpha weighs rankings; it belongs to --setting rag")
        if not dry_run and out is None:
            raise UsageError("--out FOLDER is missing; the traces are written there")
        ways = arms(chosen, alpha or [0.5])
        given = _sources(corpus, questions, dataset, data, layout, needed=set(chosen) != {"direct"})
        if dry_run:
            from clinsafe.workflows.rag_dry import dry_run as count

            documents = given.documents() if given.documents else None
            generates = generator is not None or generator_url is not None
            _print_dry(stdout(), count(given.questions, documents, ways, prompts, k=k, tokens=tokens, overlap=overlap,
                                       answer=max_new_tokens, limit=limit, generates=generates))  # fmt: skip
            raise typer.Exit(0)
        kept = _kept(no_text)
    assert out is not None  # noqa: S101 - said above
    try:
        with only_this_machine(offline), progress() as stage:
            from clinsafe.adapters.generators import load_generator
            from clinsafe.rag.fusion import SearchSettings
            from clinsafe.workflows import rag_run

            answering = load_generator(
                generator, url=generator_url, model=generator_model, key_variable=generator_key_env,
                timeout=timeout, max_new_tokens=max_new_tokens, dtype=generator_dtype, offline=offline,
            )  # fmt: skip
            stage("Loading models", 0, 0)
            plan = rag_run.Plan(
                questions=given.questions,
                documents=given.documents,
                out=out,
                prompts=prompts,
                arms=ways,
                encoder=_encoder(model, offline) if set(chosen) != {"direct"} else None,
                generator=answering,
                search=SearchSettings(k=k, mmr=mmr),
                tokens=tokens,
                overlap=overlap,
                reranker=_reranker(rerank, offline),
                kept=kept,
                index_folder=index,
                limit=limit,
                failures=failures,
                **_guarded(guard, tree),
            )
            summary = rag_run.run(plan, stage)
    except KeyboardInterrupt:
        raise Stopped(
            f"stopped; what is done is kept in {out}, and the same command goes on from there"
        ) from None
    _print(stdout(), summary, out, [str(one) for one in given.faults.values()])
    if summary.stopped:
        raise ModelError(
            f"{summary.stopped}; what is done is kept in {out}, and the same command goes on from there"
        )


# ── what goes in ───────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True, slots=True)
class _Sources:
    """Questions and corpus, both opened anew each time they are gone through."""

    questions: Callable[[], Iterator[Question | BadLine]]
    documents: Callable[[], Iterable[Document]] | None
    faults: dict[str, Any] = field(default_factory=dict)


def _sources(
    corpus: Path | None, questions: Path | None, dataset: str | None, data: Path | None, layout: str, *, needed: bool
) -> _Sources:  # fmt: skip
    if dataset is not None:
        if corpus is not None or questions is not None:
            raise UsageError(
                "--dataset brings its corpus and its questions; leave --corpus and --questions out"
            )
        return _dataset(dataset, data)
    if questions is None:
        raise UsageError("--questions FILE is missing; or take --dataset pubmedqa or medquad with --data DIR")
    if corpus is None and needed:
        raise UsageError("--corpus PATH is missing; only --setting direct does without")
    from clinsafe.corpus import Layout, corpus_files, read_corpus
    from clinsafe.rag.questions import read_questions

    read_questions(questions)  # a file that is none is told before a model is loaded
    faults: dict[str, Any] = {}
    if corpus is None:
        return _Sources(lambda: read_questions(questions), None, faults)
    fields = Layout.parse(layout)
    corpus_files(corpus)

    def documents() -> Iterator[Document]:
        return read_corpus(corpus, fields, on_bad=lambda one: faults.setdefault(str(one), one))

    return _Sources(lambda: read_questions(questions), documents, faults)


def _dataset(name: str, data: Path | None) -> _Sources:
    from clinsafe.benchmarks.ordinary import VARIABLE, data_folder
    from clinsafe.rag import datasets

    if name not in DATASETS:
        raise UsageError(f"--dataset: no data set {name!r:.40}; valid: {', '.join(DATASETS)}")
    folder = data_folder(data)
    if folder is None:
        raise UsageError(f"a data set is read from files; name their folder with --data or {VARIABLE}")
    documents, questions = datasets.pubmedqa(folder) if name == "pubmedqa" else datasets.medquad(folder)
    return _Sources(lambda: iter(questions), lambda: documents)


def _encoder(spec: str, offline: bool) -> Encoder:
    from clinsafe.adapters.encoders import ModelOptions, load_model
    from clinsafe.protocols import Encoder

    found = load_model(spec, ModelOptions(offline=offline))
    if not isinstance(found, Encoder):
        raise UsageError(f"--model {spec} scores pairs; a corpus is searched with an encoder")
    return found


def _reranker(spec: str | None, offline: bool) -> PairScorer | None:
    if spec is None:
        return None
    from clinsafe.adapters.encoders import ModelOptions, load_model
    from clinsafe.protocols import PairScorer

    found = load_model(spec, ModelOptions(offline=offline))
    if not isinstance(found, PairScorer):
        raise UsageError(f"--rerank {spec} is an encoder; a cross-encoder reads query and passage together")
    return found


def _guarded(policy: str | None, tree: Content) -> dict[str, Any]:
    if policy is None:
        return {}
    from clinsafe.workflows.guarding import build_guard
    from clinsafe.workflows.rag_run import guard_rules

    # without a time limit: what is found may not depend on how busy the machine is
    found = build_guard(policy, content=tree, seconds=0)
    return {"guard": found, "guard_rules": guard_rules(policy, found, tree)}


def _kept(no_text: bool) -> Kept:
    from clinsafe.rag.keeping import Kept

    if not no_text:
        return Kept(texts=True)
    from clinsafe.oversight.keys import key_file, load_key

    return Kept(texts=False, digest=load_key(key_file()).digest)


# ── what comes out ─────────────────────────────────────────────────────────────────────────────


def _print(console: Console, summary: Summary, out: Path, faults: Sequence[str]) -> None:
    from rich.table import Table

    if summary.chunks is not None:
        index = "an index that was there" if summary.reused else "a new index"
        prose(console, f"{counted(summary.chunks, 'chunk')} in {index}")
    table = Table("traces", "answered", "failed", "tokens in", "tokens out", box=None, pad_edge=False)
    retrieves = summary.state.plan["generator"] == "none"
    for label, outcomes in summary.outcomes.items():
        failed = sum(n for kind, n in outcomes.items() if kind != "answered")
        told = [f"{n:,}" if n else "-" for n in summary.tokens[label]]
        table.add_row(printable(label), f"{outcomes.get('answered', 0):,}", f"{failed:,}", *told)
    if retrieves:
        table.columns[1].header = "retrieved"
    console.print(table)
    kinds = sorted(
        {(kind, label, n) for label, found in summary.outcomes.items() for kind, n in found.items()}
    )
    for kind, label, n in kinds:
        if kind != "answered":
            prose(console, f"{label}: {counted(n, 'question')} failed with {kind}; they have no answer")
    _bad(console, "line", "of the questions", summary.bad_lines, [str(one) for one in summary.bad])
    _bad(console, "record", "of the corpus", len(faults), faults)
    if summary.state.fake:
        prose(console, "a fake model took part; no figure of this run may be released")
    if not summary.state.text:
        prose(console, "texts were not kept; only metrics of ids, ranks, times and tokens can be had")
    if not summary.stopped:
        console.print(f"traces: {printable(str(out))}", markup=False, soft_wrap=True)


def _bad(console: Console, noun: str, where: str, count: int, lines: Sequence[str]) -> None:
    if count:
        prose(console, f"{counted(count, f'bad {noun}')} {where}, left out:")
        for line in lines[:SHOWN]:
            prose(console, printable(line), indent="  ")


def _print_dry(console: Console, dry: Dry) -> None:
    from rich.table import Table

    prose(
        console,
        f"{counted(dry.questions, 'question')} ({dry.bad} bad lines), {counted(dry.documents, 'document')}, "
        f"{counted(dry.chunks, 'chunk')}",
    )
    table = Table("traces", "prompts", "tokens in, at most", "tokens out, at most", box=None, pad_edge=False)
    for one in dry.estimates:
        table.add_row(one.label, f"{one.prompts:,}", f"{one.tokens:,}", f"{one.answers:,}")
    console.print(table)
    prose(console, "tokens are estimated from words; nothing was loaded, sent or written")
