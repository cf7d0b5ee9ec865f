"""``clinsafe suite review``: a person reads a sample of mined cases, and the card says what came of it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from clinsafe.cli.console import counted, printable, prose
from clinsafe.cli.console import out as stdout

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from rich.console import Console

    from clinsafe.benchmarks.mined import MinedCard, Review
    from clinsafe.benchmarks.mining.review import Question

KEYS = {"c": "contradict", "d": "certainty", "s": "same", "n": "neither", "x": "nonsense"}


def review(
    suite: Annotated[Path, typer.Argument(help="A mined suite; its card lies beside it.")],
    reader: Annotated[str, typer.Option(help="Who reads; stands in the card.")],
    n: Annotated[int, typer.Option("-n", min=1, help="Cases a hazard.")] = 60,
    hazard: Annotated[list[str] | None, typer.Option(help="Only this hazard; may be repeated.")] = None,
    seed: Annotated[int, typer.Option(help="Another sample.")] = 0,
    answers: Annotated[
        Path | None,
        typer.Option(
            help="Where answers are kept; default: beside the suite. Reading goes on where it stopped."
        ),
    ] = None,
    sheet: Annotated[
        bool, typer.Option("--sheet", help="Only write the questions to --answers, to be labelled elsewhere.")
    ] = False,
    write_card: Annotated[bool, typer.Option(help="Write the result into the suite's card.")] = True,
) -> None:
    """Read a sample of cases blind, two sentences at a time, and accept or reject them.

    Each pair is labelled c (contradict), d (they differ in certainty alone), s (same), n (neither) or x (nonsense); q
    stops, and the next call goes on. A case is accepted if its three pairs are labelled as they ought to be. Answers
    can be labelled elsewhere too: --sheet writes the questions, and a call with the filled file takes them in.
    """
    from clinsafe.benchmarks.mined import card_path, dump_card, load_mined
    from clinsafe.benchmarks.mining import review as work
    from clinsafe.cli.files import refuse_unwritable, write_whole
    from clinsafe.content import load_jsonl
    from clinsafe.errors import UsageError

    if not reader.strip() or not reader.isprintable():
        raise UsageError("--reader is empty; name who reads, for example: --reader 'ward pharmacist, site A'")
    for path in (answers, card_path(suite)):
        refuse_unwritable(path)
    card, cases = load_mined(suite, hazards=hazard, split="test")
    chosen = work.sample(cases, n, seed)
    kept = answers or suite.with_name(f"{suite.name}.answers.jsonl")
    known = {one.id: one for one in load_jsonl(kept, work.Question)} if kept.is_file() else {}
    questions = [known.get(one.id, one) for one in work.sheet(chosen, seed)]
    asked = {one.id for one in questions}
    console = stdout()

    def keep(rows: Sequence[Question]) -> None:
        others = [one for one in known.values() if one.id not in asked]
        write_whole({kept: "".join(one.model_dump_json() + "\n" for one in (*others, *rows))})

    if sheet:
        keep(questions)
        console.print(
            f"{counted(len(questions), 'question')}: {printable(str(kept))}", markup=False, soft_wrap=True
        )
        return
    questions = _ask(console, questions, keep, reader)
    result, wrong = work.judge(chosen, questions, seed, reader)
    _show(console, result, wrong)
    if write_card and any(one.read for one in result.hazards.values()):
        write_whole({card_path(suite): dump_card(_with(card, result))})
        console.print(f"card: {printable(str(card_path(suite)))}", markup=False, soft_wrap=True)


def _with(card: MinedCard, review: Review) -> MinedCard:
    """The card with this review; hazards that the same reader read in the same sample stay."""
    same = [one for one in card.reviews if (one.reader, one.seed) == (review.reader, review.seed)]
    others = [one for one in card.reviews if one not in same]
    hazards = {hazard: one for earlier in same for hazard, one in earlier.hazards.items()}
    hazards |= {hazard: one for hazard, one in review.hazards.items() if one.read}
    return card.model_copy(update={"reviews": [*others, review.model_copy(update={"hazards": hazards})]})


def _ask(
    console: Console, questions: list[Question], keep: Callable[[Sequence[Question]], None], reader: str
) -> list[Question]:
    open_ = [place for place, one in enumerate(questions) if one.label is None]
    for done, place in enumerate(open_):
        one = questions[place]
        console.rule(f"{done + 1} of {len(open_)}")
        prose(console, printable(one.first), indent="  ")
        console.print()
        prose(console, printable(one.second), indent="  ")
        said = ""
        while said not in (*KEYS, "q"):
            said = _asked()
        if said == "q":
            console.print()
            break
        questions[place] = one.model_copy(update={"label": KEYS[said], "reader": reader})
        keep(questions)
    return questions


def _asked() -> str:
    try:
        asked = typer.prompt("c contradict, d certainty, s same, n neither, x nonsense, q stop")
    except typer.Abort:  # the end of the input stops like q
        return "q"
    said = str(asked).strip().lower()
    return {**{label: key for key, label in KEYS.items()}, "stop": "q", "quit": "q"}.get(said, said)


def _show(console: Console, review: Review, wrong: dict[str, list[str]]) -> None:
    from rich.table import Table

    from clinsafe.stats import NotMeasured, rate_of

    table = Table(box=None, pad_edge=False, padding=(0, 2))
    for heading in ("hazard", "accepted", "rate", "95 % interval"):
        table.add_column(heading, justify="left" if heading == "hazard" else "right", no_wrap=True)
    for hazard, one in review.hazards.items():
        found = rate_of(one.accepted, one.read)
        if isinstance(found, NotMeasured):
            table.add_row(hazard, "0/0", "not read", "")
        else:
            interval = f"{found.low:.2f} to {found.high:.2f}"
            table.add_row(hazard, f"{one.accepted}/{one.read}", f"{found.value:.2f}", interval)
    console.print(table)
    prose(console, "intervals: Clopper-Pearson, 95 %", style="dim")
    for case, why in wrong.items():
        prose(console, printable(f"{case}: {'; '.join(why)}"))
