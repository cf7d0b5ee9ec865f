"""One question in the making: its texts made ready, its similarities, the option that it took."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from clinsafe.rag.generation.abstention import abstains
from clinsafe.rag.generation.choice import Choice, choice, expected_option, options_of
from clinsafe.rag.generation.lists import (
    LEAST_SHARE,
    MOST,
    NO_LIST,
    TOO_MANY,
    components,
    list_f1,
    prepared,
)
from clinsafe.rag.generation.semantic import NO_ENCODER, NO_VECTOR, Cosines
from clinsafe.rag.generation.surface import (
    NO_ANSWER,
    NO_REFERENCE,
    TOO_LONG,
    Normalise,
    Prepared,
    Surface,
    best,
    has_words,
    one_surface,
    prepare,
    too_long,
)
from clinsafe.rag.generation.words import GenerationWords
from clinsafe.rag.item import Item
from clinsafe.rag.settings import Thresholds
from clinsafe.rag.values import Values

SURFACE = ("exact", "fuzzy", "rouge_l", "token_f1", "token_precision", "token_recall")
_LABEL = re.compile(r"[A-Za-z0-9]{1,12}")


@dataclass(slots=True)
class Scored:
    """One reference against the answer."""

    reference: str
    prepared: Prepared
    surface: Surface | None = None
    semantic: float | None = None
    components: float | None = None
    why: str = NO_LIST


@dataclass(slots=True)
class Work:
    """One question in the making."""

    item: Item
    values: Values = field(default_factory=Values)
    answer: Prepared | None = None
    references: list[Scored] = field(default_factory=list)
    abstained: bool = False
    taken: Choice | None = None


def begin(item: Item, normalise: Normalise, words: GenerationWords) -> Work:
    """Normalise answer and references, once each."""
    made = Work(item)
    if item.answer is None or too_long(item.answer):
        return made
    made.answer = prepare(item.answer, normalise)
    made.abstained = abstains(item.answer, words)
    for text in dict.fromkeys(item.references):
        if has_words(text) and not too_long(text):
            ready = prepare(text, normalise)
            if not ready.empty:
                made.references.append(Scored(text, ready))
    return made


def texts_of(work: Sequence[Work]) -> list[str]:
    """Every text that is compared by its meaning."""
    found = []
    for one in work:
        if one.answer is not None and not one.answer.empty and one.references:
            found += [one.answer.plain, *(scored.prepared.plain for scored in one.references)]
    return found


def reason(one: Work) -> str:
    """Why answer and reference cannot be compared."""
    if one.item.answer is None:
        return NO_ANSWER
    if one.answer is None or any(too_long(text) for text in one.item.references):
        return TOO_LONG
    return NO_REFERENCE


def score(
    one: Work, normalise: Normalise, thresholds: Thresholds, cosines: Cosines | None, words: GenerationWords
) -> None:
    """Similarities of answer and references, the best of each."""
    answer, values = one.answer, one.values
    values.add("abstained", None if answer is None else one.abstained, reason(one))
    if answer is None or not one.references:
        for name in (*SURFACE, "semantic", "list_f1"):
            values.add(name, None, reason(one))
        return
    for scored in one.references:
        scored.surface = one_surface(answer, scored.prepared)
        if cosines is not None:
            scored.semantic = 0.0 if answer.empty else cosines.of(answer.plain, scored.prepared.plain)
    _lists(one, normalise, thresholds, words)
    surfaces = [scored.surface for scored in one.references if scored.surface is not None]
    top = best(surfaces)
    for name, value in zip(SURFACE, (*top[:3], top.tokens.f1, *top.tokens[:2]), strict=True):
        values.add(name, value)
    cosine = [scored.semantic for scored in one.references if scored.semantic is not None]
    values.add("semantic", max(cosine, default=None), NO_ENCODER if cosines is None else NO_VECTOR)
    lists = [scored.components for scored in one.references if scored.components is not None]
    reasons = {scored.why for scored in one.references}
    values.add("list_f1", max(lists, default=None), TOO_MANY if TOO_MANY in reasons else NO_LIST)


def _lists(one: Work, normalise: Normalise, thresholds: Thresholds, words: GenerationWords) -> None:
    """F1 against each reference that is a list."""
    said: list[str] | None = None
    for scored in one.references:
        wanted = components(scored.reference, words, LEAST_SHARE)
        if len(wanted) < 2:
            continue
        if said is None:
            said = components(one.item.answer or "", words) or [one.item.answer or ""]
            ready = prepared(said, normalise, words) if len(said) <= MOST else []
        if len(wanted) > MOST or len(said) > MOST:
            scored.why = TOO_MANY
        else:
            scored.components = list_f1(ready, prepared(wanted, normalise, words), thresholds.fuzzy)


def choose(one: Work, words: GenerationWords) -> None:
    """The option that was taken, where the question is a multiple choice."""
    item, values = one.item, one.values
    options = options_of(item.options, item.expected)
    if not options:
        return
    names = [*(f"chosen.{_label(number, option)}" for number, option in enumerate(options, 1)), "undecided"]
    right = None if item.expected is None else expected_option(options, item.expected)
    if item.answer is None or one.answer is None:
        for name in (*names, *(("mcq_correct",) if item.expected is not None else ())):
            values.add(name, None, reason(one))
        return
    one.taken = taken = choice(item.answer, options, None, words)
    one.abstained = taken.outcome == "abstained"
    values.add("abstained", one.abstained)
    for name, option in zip(names, options, strict=False):
        values.add(name, taken.option == option)
    values.add("undecided", taken.outcome == "undecided")
    if item.expected is not None:
        known = None if right is None else taken.option == right
        values.add("mcq_correct", known, "the expected option is none of the options")


def _label(number: int, option: str) -> str:
    """Options go by their name where it is short, else by their place: evidence holds no texts."""
    return option if _LABEL.fullmatch(option) else f"option_{number}"
