"""From a sentence to facts: every number with its forms, its owner, its schedule and the words around it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from clinsafe.mitigations.align import mass
from clinsafe.mitigations.numbers.forms import Form
from clinsafe.mitigations.numbers.items import EVENTS, Item, items_of, over_time, products, schedules_of
from clinsafe.mitigations.numbers.lexicon import Lexicon, Subject
from clinsafe.mitigations.numbers.qualifiers import anchor, hits, quality, relation
from clinsafe.mitigations.numbers.scan import scan
from clinsafe.mitigations.numbers.schedule import Every
from clinsafe.mitigations.numbers.second import SecondReader
from clinsafe.mitigations.numbers.shapes import Quantity
from clinsafe.mitigations.numbers.subjects import BODY, DOSE, Mention, Owner, mentions
from clinsafe.mitigations.numbers.units import Measure
from clinsafe.protocols import Fact
from clinsafe.text import Reading, Sentence

HAZARD = "numerical"
_IDLE = 12  # numbers of a sentence that nothing owns; more are a table
_RELEASE = "release:"
_NEAR = 7  # tokens on either side whose words a number is known by


@dataclass(slots=True)
class Built:
    """Facts of a sentence, the drug it ends with for the next one, and the tokens that were read as quantities."""

    facts: list[Fact]
    drug: Subject | None
    taken: Sequence[tuple[int, int]] = ()


def build(
    reading: Reading,
    sentence: Sentence,
    before: Subject | None,
    lexicon: Lexicon,
    defaults: Mapping[str, Measure],
) -> Built:
    """All facts of one sentence.

    Args:
        before: the drug the sentence before spoke of.
        defaults: analyte id -> the unit a bare number of it means.
    """
    tokens = sentence.tokens
    scanned = scan(tokens, lexicon)
    if not scanned.quantities and not scanned.schedules:
        return Built([], before)
    known = mentions(tokens, lexicon)
    drug = next((mention.subject for mention in reversed(known) if mention.subject.drug), before)
    items = items_of(tokens, scanned, known, before, lexicon, defaults)
    free = schedules_of(items, scanned)
    products(items)
    frame = _Frame(reading, sentence, lexicon, known)
    read = {item.quantity.start for item in items}
    idle = [one.low for one in scanned.quantities if one.measure is None and one.start not in read]
    frame.idle = tuple(idle[:_IDLE])
    facts = [frame.value(item) for item in items]
    facts += [frame.every(every, who) for every, who in free]
    taken = [(one.start, one.end) for one in scanned.quantities if one.measure or one.kind != "value"]
    taken += [(item.quantity.start, item.quantity.end) for item in items]
    taken += [(one.start, one.end) for one in scanned.schedules]
    return Built(facts, drug, taken)


class _Frame:
    """What all facts of a sentence share."""

    def __init__(
        self, reading: Reading, sentence: Sentence, lexicon: Lexicon, known: Sequence[Mention] = ()
    ) -> None:
        self.reading, self.sentence, self.lexicon = reading, sentence, lexicon
        self.tokens = sentence.tokens
        self.hits = hits(self.tokens, lexicon)
        self.stops = [at for at, token in enumerate(self.tokens) if token.text == ";"]
        keys = [token.key for token in sentence.tokens]
        for mention in known:  # "sodium chloride" and "saline" are one word of the context
            keys[mention.start : mention.end] = [mention.subject.id] * (mention.end - mention.start)
        self.keys = [key if key and not key[0].isdecimal() else "" for key in keys]
        self.context = frozenset([key for key in self.keys if key])
        self.mass = mass(self.context)
        self.idle: tuple[float, ...] = ()

    def value(self, item: Item) -> Fact:
        """The fact of a quantity."""
        quantity, measure = item.quantity, item.quantity.measure
        dim = measure.dim if measure else ""
        role = _role(quantity, item.owner.subject, dim)
        hours = (item.every.low, item.every.high) if item.every and item.every.low else ()
        forms = over_time(item, hours)
        every = item.every
        cue = " ".join(token.lower for token in self.tokens[every.start : every.end]) if every else ""
        show = _show(quantity, item.owner.subject)
        return self._fact(
            quantity.start,
            quantity.end,
            item.owner,
            role,
            forms,
            quantity.sign,
            {
                "hours": hours,
                "close": item.close,
                "rate": measure.hours if measure else 0.0,
                "raw": (quantity.low, quantity.high),
                "unit": measure.show if measure else "",
                "pint": measure.pint if measure else "",
                "relation": relation(self.tokens, quantity.start, quantity.end, self.lexicon)
                if dim == "time"
                else "",
                "anchor_keys": anchor(self.tokens, self.keys, quantity.end, self.lexicon)
                if dim == "time"
                else frozenset(),
                "checks": dim == "time" and self._checks(quantity.start, quantity.end),
                "notes": quantity.notes + self._letter(quantity),
                "show": f"{show} {cue}" if cue else show,
            },
            "value",
            quantity.lead,
        )

    def every(self, every: Every, item: Item | None) -> Fact:
        """The fact of a schedule."""
        words = " ".join(token.text for token in self.tokens[every.start : every.end])
        who = Owner(item.owner.subject, item.owner.firm and item.close) if item else Owner(None, False)
        forms = [Form("interval", every.low, every.high, "hour", 0.0, 1)]
        subject = f"{who.subject.id}: " if who.subject else ""
        return self._fact(
            every.start,
            every.end,
            who,
            "interval",
            forms if every.low else [],
            "",
            {
                "hours": (every.low, every.high) if every.low else (),
                "close": False,
                "loose": False,
                "rate": 0.0,
                "raw": (every.low, every.high),
                "unit": "hours",
                "pint": "",
                "relation": "dose" if item else "",
                "anchor_keys": frozenset(),
                "checks": False,
                "notes": ("qd",)
                if self._written(every.start, every.end) in ("qd", "qod")
                else ()
                if every.low
                else ("schedule",),
                "show": f"{subject}{words}",
            },
            every.rule,
        )

    def _written(self, start: int, end: int) -> str:
        """The original letters, lower case, without points: an abbreviation as it stands in the text."""
        span = self.reading.token_span(self.tokens[start:end])
        return self.reading.text[span.start : span.end].lower().replace(".", "")

    def _letter(self, quantity: Quantity) -> tuple[str, ...]:
        if quantity.measure is None or quantity.measure.show.partition("/")[0] != "unit":
            return ()
        letters = self._written(quantity.start, quantity.end)
        return ("unit",) if "u" in letters and "unit" not in letters and "iu" not in letters else ()

    def _checks(self, start: int, end: int) -> bool:
        """Whether a span says when something is looked at again, and not when it ends."""
        words = {token.lower for token in self.tokens[max(0, start - _NEAR) : end + _NEAR]}
        sets = self.lexicon.sets
        return not words.isdisjoint(sets["recheck_cues"]) and words.isdisjoint(sets["ending_cues"])

    def _reversed(self, lead: int, start: int, end: int) -> str:
        """The words near it, those of the limit apart, that may turn a limit round ("avoid below 30"), with "<" before
        and ">" behind it; "" for none."""
        words = self.tokens[max(0, lead - 10) : lead]
        findings = self.lexicon.sets["finding_words"]
        if lead < start and any(token.lower in findings for token in self.tokens[lead:start]):
            words = self.tokens[max(0, lead - 10) : start]
        reversing = self.lexicon.sets["reversing"]
        before = {f"<{token.lower}" for token in words if token.lower in reversing}
        behind = {f">{token.lower}" for token in self.tokens[end : end + 6] if token.lower in reversing}
        return " ".join(sorted(before | behind))

    def _event(self, start: int, end: int, rule: str) -> frozenset[str]:
        """ "event:migrain" for "eight migraines a month"."""
        if rule != EVENTS:
            return frozenset()
        keys = [self.keys[at] for at in range(start, end - 2) if self.keys[at]]
        return frozenset([f"event:{keys[-1]}"]) if keys else frozenset()

    def _fact(
        self,
        start: int,
        end: int,
        who: Owner,
        role: str,
        forms: list[Form],
        sign: str,
        more: dict[str, Any],
        rule: str,
        lead: int = -1,
    ) -> Fact:
        tokens = self.tokens[start:end]
        around = self.keys[max(0, start - _NEAR) : start] + self.keys[end : end + _NEAR]
        near = frozenset([key for key in around if key])
        subject = who.subject
        raw = "raw {:g} {:g}".format(*more["raw"])
        keys = [
            raw,
            *(f"dim {form.dim}" for form in forms),
            *(f"of {key}" for key in (subject.keys if subject else ())),
        ]
        known = quality(self.hits, start, end, self.lexicon, self.stops)
        release = frozenset(name for name in known if name.startswith(_RELEASE))
        normal: dict[str, Any] = {
            "role": role,
            "forms": tuple(tuple(form) for form in forms),
            "sign": sign,
            "subject": subject.id if subject else "",
            "subject_keys": subject.keys if subject else frozenset(),
            "drug": bool(subject and subject.drug),
            "firm": who.firm,
            "near_keys": near,
            "near_mass": mass(near),
            "context_keys": self.context,
            "context_mass": self.mass,
            "idle": self.idle,
            "quality_keys": (known - release)
            | self._event(start, end, rule),  # another release form is another schedule, not another matter
            "release": next(iter(release), ""),
            "reversed": self._reversed(lead if lead >= 0 else start, start, end),
            "asked": self.sentence.mood == "question",
            "keys": frozenset(keys),
            "raw_name": raw,
            **more,
        }
        cue = " ".join(token.text for token in tokens)
        return Fact(HAZARD, self.reading.token_span(tokens), normal, cue[:80], f"numerical.{rule}")


def leftovers(
    reading: Reading, sentence: Sentence, taken: Sequence[tuple[int, int]], second: SecondReader
) -> list[Fact]:
    """Facts of a second reader, from what the grammar left.

    They differ only with each other, for their dimension is their own; they agree with an equal bare number too.
    """
    tokens = sentence.tokens
    ranges = [(tokens[a].start - sentence.start, tokens[b - 1].end - sentence.start) for a, b in taken]
    text = reading.cleaned.text[sentence.start : sentence.end]
    context = frozenset(key for key in sentence.keys if not key[0].isdecimal())
    facts = []
    for start, end, value, unit in second.read(text, ranges):
        raw = f"raw {value:g} {value:g}"
        form = (f"other {unit}", value, value, unit, 0.0, 1)
        normal: dict[str, Any] = {
            "role": "measure", "forms": (form,), "sign": "", "subject": "", "subject_keys": frozenset(), "drug": False,
            "firm": False, "near_keys": context, "near_mass": mass(context), "context_keys": context,
            "context_mass": mass(context), "quality_keys": frozenset(), "reversed": "",
            "asked": sentence.mood == "question", "keys": frozenset([raw, f"dim {form[0]}"]), "raw_name": raw,
            "hours": (), "close": False, "loose": False, "rate": 0.0, "release": "", "raw": (value, value), "unit": "",
            "pint": "", "relation": "",
            "anchor_keys": frozenset(), "checks": False, "idle": (), "notes": (), "show": f"{value:g} {unit}",
        }  # fmt: skip
        span = reading.span(sentence.start + start, sentence.start + end)
        facts.append(Fact(HAZARD, span, normal, text[start:end][:80], "numerical.second"))
    return facts


def _role(quantity: Quantity, subject: Subject | None, dim: str) -> str:
    if dim == "time":
        return "measure" if subject else "span"
    if quantity.measure is None or (subject and subject.analyte):
        return "measure"
    if dim in DOSE and quantity.measure.show not in BODY:
        return "dose"
    return "dose" if subject and subject.drug and "/volume" not in dim and dim != "%" else "measure"


def _show(quantity: Quantity, subject: Subject | None) -> str:
    number = (
        f"{quantity.low:g}" if quantity.low == quantity.high else f"{quantity.low:g} to {quantity.high:g}"
    )
    if quantity.kind in ("share", "count", "part"):
        number = f"{quantity.low:g} in {quantity.second:g}"
    elif quantity.kind == "ratio":
        number = f"{quantity.low:g}:{quantity.second:g}"
    elif quantity.kind == "pair":
        number = f"{quantity.low:g}/{quantity.second:g}"
    times = f"{quantity.times:g} x " if quantity.times != 1 else ""
    unit = quantity.measure.show if quantity.measure else ""
    return " ".join(
        part for part in (subject.id if subject else "", quantity.sign, f"{times}{number}", unit) if part
    )
