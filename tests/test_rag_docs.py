"""The pages on RAG diagnosis: commands parse, examples are read, every option and metric is named."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import typer

from clinsafe.cli.app import app
from clinsafe.rag.auditing.measuring import INSTRUMENTS
from clinsafe.rag.formats import FORMATS, BadLine, read_items
from clinsafe.rag.metrics import METRICS
from clinsafe.rag.questions import read_questions
from clinsafe.rag.settings import STEPS, Thresholds
from clinsafe.rag.standing import FALSE_SUPPORT, FEWEST_LABELLED, KAPPA
from clinsafe.stats import Estimate, rate_of

ROOT = Path(__file__).parents[1]
PAGES = ("docs/rag.md", "docs/rag-run.md", "docs/judges.md")
COMMANDS = ("evaluate", "run", "audit-judge")
GROUP: Any = typer.main.get_command(app)
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


class Usage(Exception):
    """A command line that the program would refuse."""


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(name: str, kind: str) -> list[str]:
    return [body for found, body in BLOCK.findall(page(name)) if found == kind]


def shown() -> list[list[str]]:
    """Every command of the pages and of the README's section, split as a shell would."""
    section = page("README.md").partition("## Diagnose a RAG system")[2].partition("\n## ")[0]
    bodies = [body for kind, body in BLOCK.findall(section) if kind == "sh"]
    bodies += [body for name in PAGES for body in blocks(name, "sh")]
    lines = [
        shlex.split(line, comments=True) for body in bodies for line in body.replace("\\\n", " ").split("\n")
    ]
    return [words[1:] for words in lines if words[:1] == ["clinsafe"]]


def parsed(words: list[str]) -> None:
    """Read a command line as the program would, and run nothing; `Usage` where it is none."""
    command, context = GROUP, None
    try:
        while hasattr(command, "commands"):
            context = type(command).context_class(command, parent=context, info_name=words[0])
            command, words = command.commands[words[0]], words[1:]
        command.make_context(command.name, list(words), parent=context)
    except (KeyError, IndexError) as error:
        raise Usage(str(error)) from error
    except Exception as error:
        if "UsageError" not in {kind.__name__ for kind in type(error).__mro__}:
            raise
        raise Usage(str(error)) from error  # typer brings a click of its own


def test_every_command_that_is_shown_parses():
    commands = shown()
    assert len(commands) > 25
    for words in commands:
        try:
            parsed(words)
        except Usage as error:
            pytest.fail(f"clinsafe {' '.join(words)}: {error}")


@pytest.mark.parametrize(
    "line", ["rag evaluate t.jsonl --no-such-option", "rag evaluat t.jsonl", "rag evaluate", "rag run -k x"]
)
def test_a_command_that_is_none_does_not_parse(line):
    with pytest.raises(Usage):
        parsed(line.split())


def test_every_option_is_named():
    group = GROUP.commands["rag"]
    words = "\n".join(map(page, PAGES))
    options = {
        max(one.opts, key=len)
        for name in COMMANDS
        for one in group.commands[name].params
        if one.opts[0][0] == "-"
    }
    assert (
        sorted(one for one in options if not re.search(rf"{re.escape(one)}(?![\w-])", words) and one != "--k")
        == []
    )
    assert "`-k`" in words


def test_every_metric_step_threshold_and_instrument_is_named():
    rag, judges = page("docs/rag.md"), page("docs/judges.md")
    made = {one.key for one in METRICS if not one.key.startswith("judge.")}
    made = {key.removesuffix(".safe") for key in made if ".table." not in key}
    names = [*(f"`{key}`" for key in made), *(f"`{one}`" for one in (*STEPS, *Thresholds.model_fields))]
    assert [name for name in names if name not in rag] == []
    audit = [one.key.rpartition("{hazard}.")[2] for one in METRICS if one.key.startswith("judge.")]
    assert [name for name in (*audit, *INSTRUMENTS) if f"`{name}`" not in judges] == []


def test_the_examples_of_every_format_are_read_as_that_format(tmp_path):
    found = {}
    for number, body in enumerate(blocks("docs/rag.md", "json")):
        file = tmp_path / f"{number}.jsonl"
        file.write_text(body, encoding="utf-8")
        reader = read_items(file)
        items = list(reader)
        assert reader.detected is not None
        found[reader.detected.format] = items
        assert not any(isinstance(one, BadLine) for one in items), items
        first: Any = items[0]
        assert all((first.question, first.answer, first.references, first.contexts))
    assert set(found) == set(FORMATS)


def test_the_questions_that_are_shown_can_be_asked(tmp_path):
    (tmp_path / "questions.jsonl").write_text(blocks("docs/rag-run.md", "json")[0], encoding="utf-8")
    found = list(read_questions(tmp_path / "questions.jsonl"))
    assert len(found) == 2
    assert not any(isinstance(one, BadLine) for one in found)


def test_the_figures_that_are_stated_are_those_of_the_code():
    hits = rate_of(207, 208)
    assert isinstance(hits, Estimate)
    told = f"207/208 = {hits.value:.3f} [{hits.low:.3f}, {hits.high:.3f}]"
    assert all(told in re.sub(r"\s+", " ", page(name)) for name in ("docs/rag.md", "README.md"))
    bars = f"at least {KAPPA}", f"at most {FALSE_SUPPORT:.2f}", f"at least {FEWEST_LABELLED}"
    assert all(bar in page("docs/judges.md") for bar in bars)
    for name, value in Thresholds():
        if name not in ("overlap_tokens", "redundancy"):
            assert re.search(rf"`{name}`\s+{value:.2f}", page("docs/rag.md")), name


def test_every_link_leads_somewhere():
    for name in PAGES:
        for target in re.findall(r"\]\(([^)#:]+)\)", page(name)):
            assert (ROOT / name).parent.joinpath(target).exists(), (name, target)
