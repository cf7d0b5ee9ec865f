"""From a scanned sentence to items: each quantity with its owner, its forms and its schedule."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from clinsafe.mitigations.numbers.forms import ASSUMED, DERIVED, ONLY_AGREES, Form, forms_of, product
from clinsafe.mitigations.numbers.lexicon import Lexicon, Subject
from clinsafe.mitigations.numbers.scan import Scanned
from clinsafe.mitigations.numbers.schedule import Every
from clinsafe.mitigations.numbers.shapes import Quantity
from clinsafe.mitigations.numbers.subjects import BODY, DOSE, Mention, Owner, Surroundings, distances
from clinsafe.mitigations.numbers.units import Measure
from clinsafe.text import Token

_STRENGTHS = 12  # of one sentence that are tried
_REACH, _CLOSE = 12, 5  # tokens between a dose and its schedule, and such that leave no doubt
_WINDOW = 40
_TOTAL, _ALTERNATE, EVENTS = "schedule.total", "schedule.alternate", "schedule.events"


@dataclass(slots=True)
class Item:
    """A quantity on its way to a fact.

    Attributes:
        every: its schedule; `close` if they stand together. total: words that make it the amount of a whole day.
    """

    quantity: Quantity
    owner: Owner
    forms: list[Form]
    every: Every | None = None
    close: bool = False
    total: Every | None = None


def items_of(
    tokens: Sequence[Token],
    scanned: Scanned,
    known: Sequence[Mention],
    before: Subject | None,
    lexicon: Lexicon,
    defaults: Mapping[str, Measure],
) -> list[Item]:
    """The quantities that are claims, with their owners and forms.

    Args:
        before: the drug of the sentence before; owns a dose that has no drug of its own.
    """
    items = []
    drugs = {mention.subject.id: mention.subject for mention in known if mention.subject.drug}
    if len(drugs) == 1:
        before = next(iter(drugs.values()))
    bare: Item | None = None
    around = Surroundings(
        tokens,
        known,
        [one.start for one in scanned.quantities if one.measure is None or one.measure.dim != "time"],
        distances(tokens),
        lexicon,
        defaults,
    )
    for quantity in scanned.quantities:
        if quantity.kind == "age":
            continue
        if quantity.kind == "pair":
            items += _pair(quantity, known, lexicon)
            continue
        who = around.owner(quantity)
        measure = quantity.measure
        if (
            measure is None
            and who.subject is None
            and bare
            and bare.quantity.end == quantity.start - 1
            and tokens[quantity.start - 1].lower == "to"
        ):
            who = bare.owner  # "from 0.25 to 0.30"
        if (
            who.subject is None
            and before
            and measure
            and (measure.dim in DOSE or "/weight" in measure.dim)
            and measure.show not in BODY
        ):
            who = Owner(before, False)
        if quantity.kind == "value" and measure is None and not _bare(quantity, who):
            continue
        default = defaults.get(who.subject.id) if who.subject else None
        forms = forms_of(quantity, who.subject, default)
        if forms:
            items.append(Item(quantity, who, forms))
            bare = items[-1] if measure is None else None
    return items


def _bare(quantity: Quantity, who: Owner) -> bool:
    """Whether a number without a unit is a value of what it stands by."""
    analyte = who.subject.analyte if who.subject else None
    if analyte is None or analyte.bare == "never":
        return False
    return not quantity.words or analyte.bare == "words"


def _pair(quantity: Quantity, known: Sequence[Mention], lexicon: Lexicon) -> list[Item]:
    """A blood pressure is two values; any other a/b is one thing compared as it stands."""
    named = any(mention.subject.id in ("blood pressure", "systolic", "diastolic") for mention in known)
    measure = quantity.measure
    pressure = measure is not None and measure.dim == "pressure"
    plausible = 50 <= quantity.low <= 320 and 20 <= quantity.second < quantity.low
    score = next(
        (
            mention
            for mention in known
            if mention.end <= quantity.start and mention.subject.analyte and quantity.start - mention.end <= 4
        ),
        None,
    )
    if pressure or (plausible and measure is None and (named or score is None)):
        found = []
        for name, value in (("systolic", quantity.low), ("diastolic", quantity.second)):
            subject = lexicon.subjects.at(_named(name), 0)
            one = Quantity(
                quantity.start, quantity.end, value, value, quantity.sign, measure, decimals=quantity.decimals
            )
            forms = [Form("pressure", value, value, "mmHg", 0.5, 0)]
            found.append(Item(one, Owner(subject[1] if subject else None, True), forms))
        return found
    if measure is None and score and quantity.low <= quantity.second:
        one = Quantity(quantity.start, quantity.end, quantity.low, quantity.low, quantity.sign)
        return [Item(one, Owner(score.subject, True), forms_of(one, score.subject, None))]
    dim = f"pair {measure.dim}" if measure else "pair"
    factor = measure.factor if measure else 1.0
    forms = [Form(dim, quantity.low * factor, quantity.second * factor, "", 0.0, 0)]
    if measure:
        total = (quantity.low + quantity.second) * factor
        forms.append(Form(measure.dim, total, total, measure.show, 0.0, ONLY_AGREES))
    return [Item(quantity, Owner(None, False), forms)]


def _named(word: str) -> tuple[Token, ...]:
    return (Token(word, word, 0, 0, word, word),)


def schedules_of(items: Sequence[Item], scanned: Scanned) -> list[tuple[Every, Item | None]]:
    """Give each schedule to its dose; those that stay are facts with or without one."""
    starts = [item.quantity.start for item in items]
    kept: list[tuple[Every, Item | None]] = []
    for every in sorted(scanned.schedules, key=lambda every: every.needs_dose):
        if every.rule == EVENTS:
            kept.append((every, None))
            continue
        first = bisect_left(starts, every.start - _WINDOW)
        last = bisect_left(starts, every.end + _WINDOW)
        reach, at = min(
            (
                (_far(index, every, items, starts), index)
                for index in range(first, last)
                if _takes(items[index])
            ),
            default=(99.0, -1),
        )
        if reach > _REACH:
            if not every.needs_dose:
                kept.append((every, None))
            continue
        nearest = items[at]
        if every.rule == _ALTERNATE and at and _coupled(items[at - 1], nearest):
            continue  # "3 mg and 4 mg on alternate days" is a dose every day
        if every.rule == _TOTAL:
            nearest.total = every
            continue
        if nearest.every is None:
            nearest.every, nearest.close = every, reach <= _CLOSE
        elif every.needs_dose:
            continue
        kept.append((every, nearest))
    return kept


def _coupled(one: Item, other: Item) -> bool:
    """Whether two doses of one drug stand side by side."""
    near = 0 <= other.quantity.start - one.quantity.end <= 2
    subject, second = one.owner.subject, other.owner.subject
    same = bool(subject and second and subject.id == second.id)
    return near and same and one.forms[0].dim == other.forms[0].dim


def _takes(item: Item) -> bool:
    """Whether it is a dose that can have a schedule."""
    measure = item.quantity.measure
    if measure is None or measure.hours or measure.show in BODY:
        return False
    subject = item.owner.subject
    return measure.dim in DOSE or (measure.dim == "%" and subject is not None and subject.drug is not None)


def _far(index: int, every: Every, items: Sequence[Item], starts: Sequence[int]) -> float:
    """Tokens between a dose and a schedule; a schedule follows its dose more often than it leads."""
    start, end = items[index].quantity.start, items[index].quantity.end
    if end <= every.start:
        return every.start - end + 3.0 * (bisect_left(starts, every.start) - bisect_left(starts, end))
    return start - every.end + 4.0 + 3.0 * (bisect_left(starts, start) - bisect_left(starts, every.end))


def _fractions(items: Sequence[Item]) -> None:
    """ "50 Gy in 25 fractions" and "25 fractions of 2 Gy": the dose of the whole course."""
    for first, second in pairwise(items):
        dims = first.forms[0].dim, second.forms[0].dim
        if set(dims) != {"radiation", "fractions"} or second.quantity.start - first.quantity.end != 1:
            continue
        each = dims[0] == "fractions"
        item, many = (second, first.forms[0].low) if each else (first, 1.0)
        own = item.forms[0]
        whole = own._replace(dim="radiation course", low=own.low * many, high=own.high * many)
        item.forms.append(whole._replace(way=ONLY_AGREES))


def products(items: Sequence[Item]) -> None:
    """Volume by concentration and tablets by strength, within a sentence and one drug; radiation by fractions."""
    _fractions(items)
    strengths = [
        item
        for item in items
        if item.forms[0].dim.endswith("/volume") or item.forms[0].dim in ("mass", "units")
    ]
    for item in items:
        amount = item.forms[0]
        if amount.dim not in (
            "volume",
            "volume/time",
            "tablet",
            "puff",
            "patch",
            "sachet",
            "ampoule",
            "suppository",
        ):
            continue
        for strength in strengths[:_STRENGTHS]:
            theirs, own = strength.owner.subject, item.owner.subject
            if strength is item or (theirs and own and theirs.id != own.id) or (theirs and theirs.analyte):
                continue
            for form in strength.forms:
                made = product(amount, form)
                if made:
                    tablets = amount.dim not in ("volume", "volume/time")
                    item.forms.append(made._replace(way=ONLY_AGREES) if tablets else made)


def over_time(item: Item, hours: tuple[float, ...]) -> list[Form]:
    """The forms of a fact: with the amount a day where its schedule is known, only that where it is a daily total."""
    own = item.forms[0]
    if own.way == ASSUMED or own.dim.endswith("/time"):
        return item.forms
    if item.total and not hours:
        daily = own._replace(
            dim=f"{own.dim}/time", low=own.low / item.total.high, high=own.high / item.total.high
        )
        return [daily, *(form._replace(way=ONLY_AGREES) for form in item.forms)]
    if hours:
        plain = [form for form in item.forms if form.way != ONLY_AGREES and not form.dim.endswith("/time")]
        return [*item.forms, *(_daily(form, hours) for form in plain)]
    return item.forms


def _daily(form: Form, hours: tuple[float, ...]) -> Form:
    return Form(f"{form.dim}/time", form.low / hours[1], form.high / hours[0], "total", 0.0, DERIVED)
