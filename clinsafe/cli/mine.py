"""``clinsafe suite mine`` and ``suite freeze``: the generated tier, from real text."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable, progress, prose

if TYPE_CHECKING:
    from rich.console import Console

    from clinsafe.benchmarks.mined import MinedCard
    from clinsafe.benchmarks.mining.recipe import CorpusEntry, Recipe
    from clinsafe.content import Content

ContentOption = Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")]


def mine(
    out: Annotated[Path, typer.Option(help="The suite (JSON Lines); its card goes beside it.")] = Path(
        "mined.jsonl"
    ),
    corpus: Annotated[
        list[Path] | None,
        typer.Option(
            help="A corpus of your own: JSON Lines (also .gz), Parquet, or a folder; may be repeated."
        ),
    ] = None,
    layout: Annotated[
        str, typer.Option(help="Its fields: id=FIELD,text=FIELD+FIELD,cluster=FIELD (the source document).")
    ] = "id=id,text=text",
    source: Annotated[
        str, typer.Option(help="Where your corpus is from; stands in the card and in reports.")
    ] = "not stated",
    licence: Annotated[str, typer.Option(help="Its licence.")] = "not stated",
    data: Annotated[
        Path | None, typer.Option(help="Folder with the recipe's corpora; default CLINSAFE_DATA.")
    ] = None,
    hazard: Annotated[list[str] | None, typer.Option(help="Only this hazard; may be repeated.")] = None,
    dev: Annotated[int | None, typer.Option(min=1, help="Dev cases a hazard; default: the recipe's.")] = None,
    test: Annotated[
        int | None, typer.Option(min=1, help="Test cases a hazard; default: the recipe's.")
    ] = None,
    seed: Annotated[int | None, typer.Option(help="Another suite from the same text.")] = None,
    work: Annotated[
        Path | None, typer.Option(help="Folder for finished parts; default: beside the suite.")
    ] = None,
    workers: Annotated[int, typer.Option(min=0, help="Processes; 0 is one a core.")] = 0,
    shard: Annotated[
        str,
        typer.Option(help="i/n: mine every n-th part; run once more without it to put the suite together."),
    ] = "0/1",
    spacy: Annotated[str | None, typer.Option("--spacy", help="spaCy pipeline.")] = None,
    content: ContentOption = None,
) -> None:
    """Make quads from real text by declared edits: the generated tier, of any size.

    Without --corpus it follows the packaged recipe on PubMedQA and MedQuAD and says whether the result is the published
    suite. What is done is kept: the same command continues a run that was stopped.
    """
    from clinsafe.benchmarks.mined import card_path, dump_card
    from clinsafe.benchmarks.mining.recipe import load_recipe
    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.content import Content
    from clinsafe.errors import UsageError
    from clinsafe.scale.mine_run import MineRun
    from clinsafe.scale.mine_run import mine as run
    from clinsafe.scale.parts import Shard

    folder = work or out.with_name(f"{out.name}.work")
    for path in (out, card_path(out)):
        refuse_unwritable(path)
    _refuse_overwriting(out, folder, corpus or [])
    tree = Content(content)
    recipe = load_recipe(tree)
    own = bool(corpus or hazard or dev or test or seed is not None)
    entries, paths = _corpora(recipe, corpus, layout, source, licence, data)
    recipe = _changed(recipe, entries, hazard, dev, test, seed, bool(corpus))
    with progress() as stage:
        made = run(MineRun(recipe, paths, folder, tree, content, spacy, Shard.parse(shard), workers), stage)
    console = stdout()
    if made is None:
        console.print(f"shard {shard} is done: {folder}", markup=False, soft_wrap=True)
        return
    card, cases = made
    if not cases:
        raise UsageError(
            "no case came out: no sentence of this text matches a rule; the corpus must be English prose"
        )
    card = _with_reviews(card, out)
    write_whole(
        {
            out: "".join(case.model_dump_json(exclude_none=True) + "\n" for case in cases),
            card_path(out): dump_card(card),
        }
    )
    _show(console, card, None if own else _published(tree))
    console.print(f"suite: {printable(str(out))}", markup=False, soft_wrap=True)
    console.print(f"card:  {printable(str(card_path(out)))}", markup=False, soft_wrap=True)


def _refuse_overwriting(out: Path, folder: Path, corpora: list[Path]) -> None:
    """What is mined is never written over, nor anything that is no mined suite.

    Raises:
        UsageError: which of them, and what to do instead.
    """
    from clinsafe.benchmarks.mined import card_path
    from clinsafe.errors import UsageError

    for corpus in corpora:
        for path in (out, card_path(out), folder):
            if path.resolve() == corpus.resolve() or corpus.resolve() in path.resolve().parents:
                raise UsageError(
                    f"{path}: is the corpus or lies in it, and would be written over; name another --out"
                )
    if out.exists() and out.is_file() and not card_path(out).is_file():
        raise UsageError(
            f"{out}: is there and is no mined suite (it has no {card_path(out).name}); name another --out"
        )


def _with_reviews(card: MinedCard, out: Path) -> MinedCard:
    """The same suite mined again keeps what readers said of it."""
    from clinsafe.benchmarks.mined import MinedCard, card_path
    from clinsafe.content import load_yaml
    from clinsafe.errors import ContentError

    try:
        before = load_yaml(card_path(out), MinedCard)
    except ContentError:
        return card
    return card.model_copy(update={"reviews": before.reviews}) if before.sha256 == card.sha256 else card


def _corpora(
    recipe: Recipe, corpus: list[Path] | None, layout: str, source: str, licence: str, data: Path | None
) -> tuple[list[CorpusEntry], list[Path]]:
    from clinsafe.benchmarks.mining.recipe import CorpusEntry
    from clinsafe.benchmarks.ordinary import VARIABLE, data_folder
    from clinsafe.corpus import Layout
    from clinsafe.errors import UsageError
    from clinsafe.workflows.mine import slug

    if corpus:
        fields = Layout.parse(layout)
        for option, value in (("--source", source), ("--licence", licence)):
            if len(value.strip()) < 3:
                raise UsageError(
                    f"{option}: got {value!r}; say it in words, it stands in the card and in reports"
                )
        names = [slug(path.resolve().name.split(".")[0])[:40].strip("-_") or "corpus" for path in corpus]
        entries = [
            CorpusEntry(
                name=name if names.count(name) == 1 else f"{name}-{number}",
                file=path.resolve().name,
                id=fields.id,
                text=fields.text,
                cluster=fields.cluster,
                source=source,
                licence=licence,
            )
            for number, (name, path) in enumerate(zip(names, corpus, strict=True), start=1)
        ]
        return entries, corpus
    folder = data_folder(data)
    if folder is None:
        raise UsageError(
            f"the recipe's corpora are read from a folder: name it with --data or {VARIABLE}, or give --corpus"
        )
    paths = [folder / entry.file for entry in recipe.corpora]
    for entry, path in zip(recipe.corpora, paths, strict=True):
        if not path.exists():
            raise UsageError(f"{path}: not there; it is {entry.source} ({entry.licence})")
    return list(recipe.corpora), paths


def _changed(
    recipe: Recipe,
    entries: list[CorpusEntry],
    hazards: list[str] | None,
    dev: int | None,
    test: int | None,
    seed: int | None,
    own_text: bool,
) -> Recipe:
    from clinsafe.errors import UsageError

    if unknown := set(hazards or ()) - set(recipe.hazards):
        raise UsageError(f"no hazard is called {min(unknown)!r}; there are: {', '.join(recipe.hazards)}")
    sizes = recipe.sizes.model_copy(update={k: v for k, v in (("dev", dev), ("test", test)) if v})
    changed = {
        "corpora": entries,
        "hazards": list(dict.fromkeys(hazards)) if hazards else recipe.hazards,
        "sizes": sizes,
        "seed": recipe.seed if seed is None else seed,
    }
    if own_text:
        named = ", ".join(entry.name for entry in entries)
        changed |= {"suite_version": "own-1", "title": f"generated tier, mined from {named}"}
    return recipe.model_copy(update=changed)


def _published(content: Content) -> MinedCard | None:
    from clinsafe.benchmarks.mined import MinedCard
    from clinsafe.benchmarks.mining.recipe import CARD
    from clinsafe.errors import ContentError

    try:
        return content.yaml(CARD, MinedCard)
    except ContentError:
        return None


def _show(console: Console, card: MinedCard, published: MinedCard | None) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for heading in ("hazard", "dev", "test", "of novel families", "families"):
        table.add_column(heading, justify="left" if heading == "hazard" else "right", no_wrap=True)
    for hazard, counts in card.counts.items():
        families = [one for one in card.families[hazard].values() if one.test]
        new = [one for one in families if one.novel]
        table.add_row(
            hazard, str(counts["dev"]), str(counts["test"]), str(sum(one.test for one in new)),
            f"{len(families)}, {len(new)} novel",
        )  # fmt: skip
    console.print(table)
    for one in card.sources:
        if one.left_out:
            prose(
                console,
                f"{one.name}: {one.left_out} records left out, as no documents or failed",
                style="yellow",
            )
    if few := [hazard for hazard, counts in card.counts.items() if counts["test"] < 400]:
        prose(
            console,
            f"fewer than 400 test cases: {', '.join(few)}; a gate on it is INCONCLUSIVE",
            style="yellow",
        )
    if published is not None:
        same = published.sha256 == card.sha256
        line = "this is the published suite, case for case" if same else _why_other(card, published)
        prose(console, line, style="green" if same else "yellow")


def _why_other(card: MinedCard, published: MinedCard) -> str:
    what = [
        name
        for name, one, other in (
            ("the rules", card.rules_sha256, published.rules_sha256),
            ("the spaCy pipeline", card.pipeline, published.pipeline),
            ("the corpora", [s.sha256 for s in card.sources], [s.sha256 for s in published.sources]),
        )
        if one != other
    ]
    return f"not the published suite: {' and '.join(what) or 'library versions'} differ"


def freeze(
    commit: Annotated[str, typer.Option(help="Commit of the filters' rule packs.")],
    out: Annotated[Path, typer.Option(help="Where freeze.yaml is written.")] = Path(
        "benchmarks/generated/freeze.yaml"
    ),
    packs: Annotated[
        Path | None, typer.Option(help="Folder of the packs; default: the installed ones.")
    ] = None,
    content: ContentOption = None,
) -> None:
    """Record which rule families the filters have never seen. For maintainers, before a suite is mined."""
    import yaml

    from clinsafe.benchmarks.mining import novelty
    from clinsafe.benchmarks.mining.recipe import load_recipe
    from clinsafe.benchmarks.mining.rules import load_rules
    from clinsafe.cli.files import write_whole
    from clinsafe.content import Content

    tree = Content(content)
    rules = load_rules(tree, tuple(load_recipe(tree).hazards))
    made = novelty.freeze(rules, novelty.read_packs(packs), commit)
    write_whole({out: str(yaml.safe_dump(made.model_dump(mode="json"), sort_keys=False, width=110))})
    for hazard, families in made.novel.items():
        whole = len(families) + len(made.known[hazard])
        stdout().print(
            f"{hazard}: {len(families)} of {whole} families are novel", markup=False, soft_wrap=True
        )
