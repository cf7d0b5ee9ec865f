"""Critical numbers that a person confirms against the source before use: active confirmation of critical details.

Which drugs and values are critical stands in ``mitigations/numerical.yaml``; ``mitigations/confirmation.yaml`` says
which kinds of numbers are asked for, in which order, and how many.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field

from clinsafe.content import Content, Record
from clinsafe.guarded import Confirmation
from clinsafe.mitigations.annotation import one_line
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.filters import numerical
from clinsafe.mitigations.numbers.facts import HAZARD
from clinsafe.mitigations.numbers.forms import BARE
from clinsafe.mitigations.numbers.lexicon import Lexicon, Subject
from clinsafe.mitigations.numbers.pack import Analyte
from clinsafe.mitigations.numbers.severity import _in_unit
from clinsafe.mitigations.numbers.subjects import mentions
from clinsafe.mitigations.numbers.units import Measure, measure_at
from clinsafe.mitigations.pack import Regex, RuleId, load_pack
from clinsafe.protocols import Fact, Passage
from clinsafe.text import Reader, Token
from clinsafe.text.tokens import TOKEN

Kind: TypeAlias = Literal["high_alert", "critical", "dose", "threshold"]
_AMOUNTS = ("mass", "units", "mole", "eq")  # per volume: a strength, or a level in the blood
_NEAR = 40  # characters between a number and its schedule, or the drug that is named behind it
_BEFORE = 60  # and the drug that is named before it
_FAR, _LENT = (
    200,
    20,
)  # before a number that names no drug: characters searched for one, and such numbers of a passage
_LONGEST = 120  # characters of what is to be confirmed
_ALSO = 3  # other passages that are named
_LETTERS = 3  # a shorter name ("k +") is no word of a query
_CACHED = 20_000
_CLOSES = re.compile(r"[.;!?]\s|[\n\r]")
_BESIDE = re.compile(r"[^\d.,;()\[\]\n]{0,16}")
_CLAUSE = re.compile(r"[.,;:!?(]\s*|[\n\r]")
_Line: TypeAlias = Annotated[str, Field(min_length=1, max_length=60)]


class Written(Record):
    """A dangerous way to write a unit."""

    id: RuleId
    pattern: Regex
    says: str


class ConfirmationPack(Record):
    """``mitigations/confirmation.yaml``; see the file."""

    lead: _Line
    mind: _Line
    most: Annotated[int, Field(ge=1, le=50)]
    order: Annotated[tuple[Kind, ...], Field(min_length=1)]
    written: tuple[Written, ...] = ()


@dataclass(slots=True)
class Pack:
    """What counts as critical.

    Args:
        asks: kinds, order and words.
        lexicon: the drugs, values and thresholds of the numerical filter.
        reader: gives a name the keys that it has in a query.
    """

    asks: ConfirmationPack
    lexicon: Lexicon
    reader: Reader
    notations: Mapping[str, str] = field(init=False)
    _analytes: Mapping[str, Analyte] = field(init=False)
    _names: Mapping[str, tuple[str, ...]] = field(init=False)
    _units: Mapping[str, Measure | None] = field(init=False)
    _known: dict[str, tuple[tuple[frozenset[str], ...], re.Pattern[str]]] = field(
        init=False, default_factory=dict
    )

    def __post_init__(self) -> None:
        pack = self.lexicon.pack
        self.notations = {one.id.rpartition(".")[2]: one.says for one in pack.notations}
        self._analytes = {one.id: one for one in pack.analytes}
        drugs = {one.names[0]: one.names for one in pack.drugs}
        self._names = {**{one.id: (*one.names, *one.exact) for one in pack.analytes}, **drugs}
        self._units = {
            one.id: measure_at(_tokens(one.unit), 0, self.lexicon) for one in pack.analytes if one.unit
        }

    def alert(self, subject: str) -> bool:
        """Whether this is a drug of high alert, or one with a critical schedule."""
        return subject in self.lexicon.sets["high_alert"] or self.lexicon.schedule_critical(subject)

    def beyond(self, normal: Mapping[str, Any]) -> bool:
        """Whether a measured value lies beyond a critical threshold of what is measured."""
        analyte, forms = self._analytes.get(normal["subject"]), normal["forms"]
        if analyte is None or not analyte.cuts or not forms:
            return False
        dim, *ends = forms[0][:3]
        low, high = (_in_unit(end, dim, self._units.get(analyte.id), analyte) for end in ends)
        lowest, highest = min(analyte.cuts), max(analyte.cuts)
        return any(
            (cut < lowest and low <= cut) or (cut > highest and high >= cut) for cut in analyte.critical
        )

    def speaks_of(self, keys: frozenset[str], subject: str) -> bool:
        """Whether a query with these keys names a drug or what is measured."""
        return any(name <= keys for name in self._look(subject)[0])

    def last_drug(self, text: str) -> Subject | None:
        """The drug that a text names last."""
        tokens = [token for sentence in self.reader.read(text).sentences for token in sentence.tokens]
        drugs = [one.subject for one in mentions(tokens, self.lexicon) if one.subject.drug]
        return drugs[-1] if drugs else None

    def named(self, subject: str) -> re.Pattern[str]:
        """Finds any of its names in a text."""
        return self._look(subject)[1]

    def _look(self, subject: str) -> tuple[tuple[frozenset[str], ...], re.Pattern[str]]:
        if subject not in self._known:
            if len(self._known) > _CACHED:
                self._known.clear()
            names = sorted({subject, *self._names.get(subject, ())}, key=len, reverse=True)
            keys = [
                frozenset(
                    t.key for sentence in self.reader.read(name).sentences for t in sentence.tokens if t.key
                )
                for name in names
                if len(name) >= _LETTERS
            ]
            either = "|".join(r"\s*".join(map(re.escape, name.split())) for name in names)
            pattern = re.compile(rf"(?<!\w)(?:{either})(?!\w)", re.IGNORECASE)
            self._known[subject] = tuple(one for one in keys if one), pattern
        return self._known[subject]


def load_confirmation(content: Content | None = None) -> Pack:
    """The packaged files, or an overlay's.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    asks = load_pack(content, "confirmation", ConfirmationPack)
    return Pack(asks, numerical.load(content).lexicon, Reader(content))


@dataclass(frozen=True, slots=True)
class _Number:
    """One critical number where it stands. `place` is the passage's; `grave` sorts the gravest first."""

    grave: tuple[int, bool, bool, int, int]
    same: tuple[Any, ...]
    passage: Passage
    span: tuple[int, int]
    phrase: str
    notes: tuple[str, ...]


def confirmations(
    passages: Sequence[tuple[Passage, TextFacts]], query: TextFacts, pack: Pack
) -> tuple[Confirmation, ...]:
    """What a person has to confirm before it is used: gravest first, each once, never more than the pack's `most`.

    Args:
        passages: in the order of retrieval, with their facts.
        query: its facts; of a query that nothing could be read of, every dose and threshold counts as asked for.
    """
    keys = frozenset[str]().union(*(known for known in query.keys.values() if known))
    found = [
        number
        for place, (passage, facts) in enumerate(passages)
        for number in _numbers(place, passage, facts, keys, pack)
    ]
    merged: dict[tuple[Any, ...], list[_Number]] = {}
    for number in sorted(found, key=lambda one: one.grave):
        merged.setdefault(number.same, []).append(number)
    return tuple(_confirmation(same, pack.asks) for same in list(merged.values())[: pack.asks.most])


def _confirmation(same: Sequence[_Number], asks: ConfirmationPack) -> Confirmation:
    first = same[0]
    start, end = first.span
    others = [name for name in dict.fromkeys(one.passage.id for one in same) if name != first.passage.id]
    where = f"passage {one_line(first.passage.id, 80)}"
    if first.passage.source:
        where += f", {one_line(first.passage.source, 80)}"
    if others:
        where += f"; also in {', '.join(one_line(name, 80) for name in others[:_ALSO])}"
        where += f" and {len(others) - _ALSO} more" if len(others) > _ALSO else ""
    notes = list(dict.fromkeys(note for one in same for note in one.notes))
    mind = f"; {asks.mind}: {', and '.join(notes)}" if notes else ""
    prompt = f"{asks.lead}: {one_line(first.phrase, _LONGEST)} ({where}){mind}."
    return Confirmation(first.passage.id, first.span, first.passage.text[start:end], prompt)


def _numbers(
    place: int, passage: Passage, facts: TextFacts, keys: frozenset[str], pack: Pack
) -> Iterator[_Number]:
    text = passage.text
    own, lent = _owned(text, facts.by_filter.get(HAZARD, ()), pack)
    schedules = sorted(
        (one for one in own if one.normal["role"] == "interval"), key=lambda one: one.span.start
    )
    used = {id(one) for one in lent if one.normal["role"] == "interval"}  # alone it may be of anything
    for fact in sorted(own, key=lambda one: one.normal["role"] == "interval"):
        if id(fact) in used:
            continue
        subject = fact.normal["subject"]
        asked = not keys or not keys.isdisjoint(f"of {name}" for name in fact.normal["subject_keys"])
        asked = asked or pack.speaks_of(keys, subject)
        kind = _kind(fact, asked, text, pack)
        if kind is None or kind not in pack.asks.order:
            continue
        every = _schedule(fact, schedules, text)
        used |= {id(every)} if every else set()
        start, end = _joined(fact, every)
        noted = [note for one in (fact, every) if one for note in one.normal["notes"]]
        notes = [pack.notations[note] for note in noted if note in pack.notations]
        notes += [one.says for one in pack.asks.written if re.search(one.pattern, text[start:end])]
        form = tuple(fact.normal["forms"][0][:3]) if fact.normal["forms"] else fact.cue
        yield _Number(
            (pack.asks.order.index(kind), not asked, not notes, place, start),
            (kind, subject, fact.normal["role"], fact.normal["sign"], form, tuple(fact.normal["hours"])),
            passage,
            (start, end),
            _phrase(text, start, end, fact, pack),
            tuple(notes),
        )


def _owned(text: str, facts: Sequence[Fact], pack: Pack) -> tuple[list[Fact], list[Fact]]:
    """The stated numbers that belong to something, in order; and those among them that only lie near a drug's name.

    "Take methotrexate. Start with 7.5 mg weekly": the filter names no owner, a person has to.
    """
    own: list[Fact] = []
    lent: list[Fact] = []
    for fact in facts:
        normal = fact.normal
        if normal.get("asked") is not False or not 0 <= fact.span.start < fact.span.end <= len(text):
            continue
        if normal["subject"]:
            own.append(fact)
        elif normal["role"] in ("dose", "interval") and len(lent) < _LENT:
            drug = pack.last_drug(text[max(0, fact.span.start - _FAR) : fact.span.start])
            if drug is not None:
                other = {"subject": drug.id, "subject_keys": drug.keys, "drug": True}
                lent.append(replace(fact, normal={**normal, **other}))
                own.append(lent[-1])
    return own, lent


def _kind(fact: Fact, asked: bool, text: str, pack: Pack) -> Kind | None:
    normal = fact.normal
    role, forms = normal["role"], normal["forms"]
    amount, _, per = (forms[0][0] if forms else "").partition("/")
    if normal["drug"] and pack.alert(normal["subject"]):
        per_volume = role == "measure" and amount in _AMOUNTS and per.startswith("volume")
        return "high_alert" if role in ("dose", "interval") or per_volume else None
    if forms and forms[0][0] == BARE and not _told(fact, text, pack):
        return None
    if role == "measure" and pack.beyond(normal):
        return "critical"
    if asked and role == "dose":
        return "dose"
    return "threshold" if asked and role == "measure" and normal["sign"] and forms else None


def _told(fact: Fact, text: str, pack: Pack) -> bool:
    """Whether a number without a unit stands right behind the name of what is measured: "INR 9", no "P < 0.05"."""
    start = fact.span.start
    names = list(pack.named(fact.normal["subject"]).finditer(text, max(0, start - _BEFORE), start))
    return bool(names) and len(names[-1][0]) > 1 and bool(_BESIDE.fullmatch(text, names[-1].end(), start))


def _schedule(fact: Fact, schedules: Sequence[Fact], text: str) -> Fact | None:
    """The schedule beside a dose: the next one behind it, else the last one before it."""
    if fact.normal["role"] != "dose" or not fact.normal["hours"]:
        return None
    start, end = fact.span.start, fact.span.end
    first = bisect_left(schedules, start - 2 * _NEAR, key=lambda one: one.span.start)
    last = bisect_right(schedules, end + _NEAR, key=lambda one: one.span.start)
    mine = [one for one in schedules[first:last] if one.normal["subject"] == fact.normal["subject"]]
    behind = [one for one in mine if _beside(text, end, one.span.start)]
    before = [one for one in mine if _beside(text, one.span.end, start)]
    return behind[0] if behind else before[-1] if before else None


def _beside(text: str, end: int, start: int) -> bool:
    """Whether what begins at `start` follows what stops at `end`, in one sentence."""
    return 0 <= start - end <= _NEAR and not _CLOSES.search(text, end, start)


def _joined(fact: Fact, every: Fact | None) -> tuple[int, int]:
    spans = [one.span for one in (fact, every) if one is not None]
    return min(span.start for span in spans), max(span.end for span in spans)


def _phrase(text: str, start: int, end: int, fact: Fact, pack: Pack) -> str:
    """The number with its drug, as far as they can be taken from the text as they stand there."""
    name = pack.named(fact.normal["subject"])
    before = list(name.finditer(text, max(0, start - _BEFORE), start))
    if before and not _CLOSES.search(text, before[-1].end(), start):
        return text[before[-1].start() : end]
    first = _clause(text, start) if fact.normal["sign"] else start
    behind = name.search(text, start, end + _NEAR)
    if behind and not _CLOSES.search(text, min(end, behind.start()), behind.start()):
        return text[first : max(end, behind.end())]
    return f"{text[first:end]}, read as {fact.normal['subject']}"


def _clause(text: str, start: int) -> int:
    """Where the words before a limit begin ("do not give more than")."""
    from_here = max(0, start - _NEAR)
    breaks = [found.end() for found in _CLAUSE.finditer(text, from_here, start)]
    if breaks:
        return breaks[-1]
    return from_here if not from_here else text.find(" ", from_here, start) + 1 or start


def _tokens(text: str) -> tuple[Token, ...]:
    return tuple(
        Token(m.group(), m.group().lower(), m.start(), m.end(), "", "") for m in TOKEN.finditer(text)
    )
