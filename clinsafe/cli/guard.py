"""``clinsafe guard``: what the filters find between a query and passages."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli import annotate, answer, endtoend, guard_bench, nli
from clinsafe.cli.console import out as stdout
from clinsafe.cli.console import printable, progress, prose

if TYPE_CHECKING:
    from collections.abc import Callable

    from clinsafe.content import Content
    from clinsafe.mitigations.stack import Comparison, Stack
    from clinsafe.protocols import Passage

app = typer.Typer(help="Find conflicts between a query and retrieved passages.", no_args_is_help=True)
app.command("annotate")(annotate.annotate)
app.command("bench")(guard_bench.bench)
app.command("answer")(answer.answer)
app.command("policy")(answer.show_policy)
app.command("end-to-end")(endtoend.end_to_end)
app.command("calibrate-nli")(nli.calibrate)


@app.command()
def check(
    query: Annotated[
        str, typer.Option(help="The query; - reads it from standard input, so that no other user sees it.")
    ],
    passages: Annotated[
        Path,
        typer.Option(
            help='JSON Lines with a "text" (and an "id") a line, or text with an empty line between passages.'
        ),
    ],
    filters: Annotated[
        list[str] | None, typer.Option("--filter", help="Only this filter; may be repeated.")
    ] = None,
    every: Annotated[bool, typer.Option("--all", help="Print agreeing pairs and notes too.")] = False,
    model: Annotated[str | None, typer.Option("--spacy", help='spaCy pipeline; "" for none.')] = None,
    content: Annotated[Path | None, typer.Option("--content", help="Overlay of controlled content.")] = None,
    facts: Annotated[
        Path | None,
        typer.Option(help="Output of `guard annotate`: passages found there by id are not read again."),
    ] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write all findings here.")] = None,
) -> None:
    """Compare a query with passages and print each finding with both spans marked.

    Exit code 0: no conflict, all filters looked. 1: a conflict, or a filter that could not look. 2: input error.
    """
    import json
    import sys

    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.cli.findings import print_passage, to_json
    from clinsafe.content import Content
    from clinsafe.errors import UsageError
    from clinsafe.workflows.guard import build_stack
    from clinsafe.workflows.passages import load_passages

    refuse_unwritable(json_file)
    asked = (sys.stdin.read() if query == "-" else query).strip()
    if not asked:
        raise UsageError("the query is empty; give it with --query, or --query - and standard input")
    texts = load_passages(passages)
    tree = Content(content)
    stack = build_stack(tree, filters, model=model)
    compare = _stored(stack, tree, facts, asked) if facts else lambda one: stack.check(asked, [one.text])[0]
    console = stdout()
    with progress() as stage:
        results = []
        for done, passage in enumerate(texts, start=1):
            results.append(compare(passage))
            stage("Comparing", done, len(texts))
    for passage, result in zip(texts, results, strict=True):
        print_passage(console, asked, passage, result, every=every)
    conflicts = sum(result.conflict for result in results)
    unchecked = sum(bool(result.unchecked) for result in results)
    line = f"{len(texts)} passages: {conflicts} in conflict, {unchecked} not fully checked"
    bad = bool(conflicts or unchecked)
    looked = f"filters: {', '.join(stack.filters)}"
    if stack.reader.parser.used:
        looked += f"; parse: {stack.reader.parser.name}"
    prose(console, printable(looked), style="dim")
    console.print(line, style="bold red" if bad else "bold green", markup=False, soft_wrap=True)
    if json_file:
        rows = [to_json(passage, result) for passage, result in zip(texts, results, strict=True)]
        write_whole({json_file: json.dumps(rows, indent=1, ensure_ascii=False)})
    raise typer.Exit(1 if bad else 0)


def _stored(stack: Stack, content: Content, folder: Path, asked: str) -> Callable[[Passage], Comparison]:
    """Compare with facts that were read before; a passage without facts of these rules and this text is read now."""
    from clinsafe.scale.reading import made_with
    from clinsafe.scale.store import load_facts

    store = load_facts(folder, str(made_with(stack, content)["fingerprint"]))
    query = stack.read(asked)

    def compare(passage: Passage) -> Comparison:
        facts = store(passage.id, passage.text)
        return stack.compare(query, facts if facts.by_filter else stack.read(passage.text))

    return compare
