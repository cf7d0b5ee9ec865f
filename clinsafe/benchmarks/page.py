"""The suite as pages that a clinician can read and object to; made from the cases, so that they cannot drift."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from typing import Protocol

from clinsafe.benchmarks.second_reader import second_reader
from clinsafe.benchmarks.suite import FOLDER, Case, by_hazard, load_card, load_suite
from clinsafe.content import Content
from clinsafe.text import words

SAMPLES = 4


class Named(Protocol):
    """What a page says about a hazard."""

    @property
    def name(self) -> str: ...  # noqa: D102

    @property
    def harm(self) -> str: ...  # noqa: D102


def pages(content: Content, names: Mapping[str, Named]) -> dict[str, str]:
    """File name -> Markdown: ``suite.md`` to read in ten minutes, ``cases/<hazard>.md`` with every case.

    Args:
        content: the content tree.
        names: hazard id -> its name and harm.
    """
    from jinja2 import Environment, FileSystemLoader, StrictUndefined

    card, cases = load_card(content), load_suite(content)
    groups = by_hazard(cases)
    environment = Environment(
        loader=FileSystemLoader(content.path(f"{FOLDER}/page.md.j2").parent),
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        autoescape=False,  # noqa: S701 - Markdown of our own sentences, not HTML of somebody's
        keep_trailing_newline=True,
    )
    front = environment.get_template("page.md.j2").render(
        card=card,
        cases=cases,
        groups=groups,
        names=names,
        samples={hazard: _samples(group) for hazard, group in groups.items()},
        balanced=sum(c.stratum == "balanced" for c in cases),
        specialties=len({c.specialty for c in cases}),
        genres=", ".join(f"{g} {n}" for g, n in sorted(Counter(c.genre for c in cases).items())),
        long=sum(len(words(c.a)) >= card.rules.long_words for c in cases),
        dev=sum(c.split == "dev" for c in cases),
        agreement=second_reader(content, cases)[0][0][1],
    )
    found = {"suite.md": front}
    for hazard, group in groups.items():
        found[f"cases/{hazard}.md"] = environment.get_template("cases.md.j2").render(
            hazard=hazard,
            name=names[hazard].name,
            harm=names[hazard].harm,
            cases=group,
            subtypes=_subtypes(group),
        )
    return {name: text.rstrip() + "\n" for name, text in found.items()}


def _subtypes(group: list[Case]) -> dict[str, list[Case]]:
    found: dict[str, list[Case]] = {}
    for case in group:
        found.setdefault(case.subtype, []).append(case)
    return found


def _samples(group: list[Case]) -> list[Case]:
    """Four short dev cases of different subtypes: ten minutes are short, and test cases are better left unread."""
    dev = [c for c in group if c.split == "dev"]
    shortest = [min(cases, key=_length) for cases in _subtypes(dev).values()]
    kept = {c.id for c in sorted(shortest, key=_length)[:SAMPLES]}
    return [c for c in shortest if c.id in kept]


def _length(case: Case) -> int:
    return len(case.a + case.b + case.a_same)
