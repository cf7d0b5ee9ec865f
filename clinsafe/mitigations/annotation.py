"""A passage marked for a generator and a reader: how sure, how many, denied; above it a line says what was found.

::

    [clinsafe | FLAGGED | passage "12" | source "BNF" | found numerical (critical): "…" | the passage's own …]
    | CT suggests pulmonary embolism [certainty: possible, not confirmed].

The passage's own text stands whole and in order; `strip` gives it back. It can forge neither a mark nor a line of ours:
each of its lines begins with a bar, and where it holds brackets of its own, our marks begin with a number it lacks.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, model_validator

from clinsafe.content import Content, Record
from clinsafe.errors import UsageError
from clinsafe.guarded import ACTIONS, Action, Disagreement, Stance
from clinsafe.mitigations.bounds import UNREAD
from clinsafe.mitigations.certainty.levels import Level
from clinsafe.mitigations.facts import TextFacts
from clinsafe.mitigations.pack import load_pack
from clinsafe.mitigations.polarity.mention import ABSENCE_OPEN, ABSENT, LEFT_OPEN
from clinsafe.protocols import Fact, Finding, Passage

MARKED = {"hedging": "certainty", "quantifier": "quantity", "negation": "polarity"}
"""Hazard -> what is marked of it."""

_BAR = "| "
_LONGEST = {"id": 80, "source": 120, "sentence": 400}  # characters of a value in the first line
_MOST = 20  # findings, and disagreements, that the first line tells; of the rest it tells the number
_BREAK = re.compile(r"\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
_BARRED = re.compile(rf"({_BREAK.pattern})\| ")
_HEAD = re.compile(r"\[clinsafe \| .* marks stand in \[(?P<tag>(?:#\d+ )?)\.\.\.\][^\[\]|]*\]")
_OPENING = r"[\[【〔〖〘〚⟦⟬⁅「『❲⦋⦍⦏"  # brackets, and what only looks like them
_OPENS = re.compile(rf"{_OPENING}](?!\d)")  # more than a figure: not "[12]", "[95% CI]"
_TAGGED = re.compile(r"#(\d{1,9})")
_IMITATED = re.compile(r"clinsafe|(?:certainty|quantity)\W{0,9}:|\b(?:denied|not excluded|not certain)\b")
_OPENED = re.compile(rf"{_OPENING}({{<]\W*(?:#\d+\W*)?$")
_HIDDEN = re.compile("[\u200b\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]")
_BARS = dict.fromkeys(map(ord, "|｜¦│∣❘"), "/") | {ord('"'): "'"}

_Words: TypeAlias = Annotated[str, Field(pattern=r"^[a-z][a-z ,-]*$", max_length=60)]
_Said: TypeAlias = Annotated[str, Field(pattern=r"^[A-Za-z][A-Za-z ,-]*$", max_length=60)]
_Part: TypeAlias = Annotated[float, Field(ge=0, le=1)]
_LevelName: TypeAlias = Literal[
    "hypothetical", "excluded", "unlikely", "possible", "probable", "asserted", "confirmed"
]


class Quantity(Record):
    """Words for shares within these bounds; see the file."""

    family: Literal["det", "adv"]
    low: _Part
    high: _Part
    says: _Words


class Polarity(Record):
    """Words for what is denied, left open, or not certain to be absent, and the rules that are trusted to say so."""

    denied: _Words
    open: _Words
    doubted: _Words
    negators: tuple[str, ...]
    verbs: tuple[str, ...] = ()
    silent: tuple[str, ...] = ()


class Words(Record):
    """``mitigations/annotation.yaml``: the words of the marks and of the line above a passage."""

    certainty: Mapping[_LevelName, _Words]
    certainty_silent: tuple[str, ...] = ()
    quantity_rules: tuple[str, ...]
    quantity: tuple[Quantity, ...]
    quantity_silent: tuple[str, ...] = ()
    polarity: Polarity
    of_another: _Words
    on_condition: _Words
    in_the_past: _Words
    status: Mapping[Literal["keep", "found", "flag", "demote", "withhold", "escalate"], _Said]
    stance: Mapping[Stance, _Said]

    @model_validator(mode="after")
    def _told_apart(self) -> Words:
        missing = {*ACTIONS, "found"} - set(self.status)
        if missing:
            raise ValueError(f"status lacks {', '.join(sorted(missing))}")
        others = [words.lower() for name, words in self.status.items() if name != "keep"]
        if self.status["keep"].lower() in others:
            raise ValueError(
                "the words of keep are those of another status: nothing flagged may look like it"
            )
        return self


def load_words(content: Content | None = None) -> Words:
    """The words of the packaged file, or an overlay's.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    return load_pack(content, "annotation", Words)


def annotate(
    passage: Passage,
    facts: TextFacts,
    findings: Sequence[Finding],
    stance: Stance | None,
    disagreements: Sequence[Disagreement],
    action: Action,
    unchecked: Mapping[str, str],
    words: Words,
) -> str:
    """The text for the generator: a first line, then the passage's text behind bars, with marks.

    Args:
        facts: of this passage; what lies outside its text is left out, and the first line says so.
        findings: between the query and this passage; compatible ones are not told.
        disagreements: those that this passage has a part in.
        unchecked: filter name -> why it did not look; what `facts` says of this is added.
    """
    text = passage.text
    folded = _folded(text)
    tag = _tag(folded)
    marks, amiss = _marks(text, facts, words)
    missing = {**facts.unchecked, **unchecked}
    parts = [
        _status(findings, disagreements, action, missing, words),
        *_origin(passage),
        *_found(findings),
        *([words.stance[stance]] if stance is not None else []),
        *_disagreements(passage.id, disagreements),
        *([f"NOT CHECKED: {_listed(missing)}"] if missing else []),
        *_not_marked(facts, amiss),
        *_suspicious(text, folded),
    ]
    only = ", other brackets are its own" if tag else ""
    closing = f"its own text stands behind bars, marks stand in [{tag}...]{only}"
    head = " | ".join([*parts, closing])
    return f"[clinsafe | {head}]\n{_BAR}{_BREAK.sub(lambda m: m[0] + _BAR, _inserted(text, marks, tag))}"


def strip(annotated: str) -> str:
    """The passage's own text, exactly.

    Raises:
        UsageError: not a text that `annotate` made.
    """
    head, _, body = annotated.partition("\n")
    known = _HEAD.fullmatch(head)
    if known is None or not body.startswith(_BAR):
        raise UsageError(
            "not an annotated passage; its first line begins with '[clinsafe | ' and the next with '| '"
        )
    mark = re.compile(rf" \[{known['tag']}[a-z][a-z ,;:-]*\]")
    return mark.sub("", _BARRED.sub(r"\1", body[len(_BAR) :]))


def one_line(value: object, longest: int) -> str:
    """A stranger's value as one bounded line without brackets, bars, double quotes or hidden characters."""
    start = " ".join(str(value)[: 4 * longest].split())
    plain = "".join(_tame(one) for one in start).translate(_BARS).strip()
    return plain if len(plain) <= longest else f"{plain[: longest - 3]}..."


def _tame(one: str) -> str:
    kind = unicodedata.category(one)
    if kind.startswith("C"):
        return ""
    return "(" if kind == "Ps" else ")" if kind == "Pe" else one


# ── the first line ─────────────────────────────────────────────────────────────────────────────


def _status(
    findings: Sequence[Finding],
    disagreements: Sequence[Disagreement],
    action: Action,
    missing: Mapping[str, str],
    words: Words,
) -> str:
    """Stands before anything that the passage has a hand in."""
    noticed = disagreements or any(finding.verdict == "conflict" for finding in findings)
    if action != "keep" or noticed:
        status = words.status["found" if action == "keep" else action]
        return f"{status}, NOT CHECKED" if missing else status
    return "NOT CHECKED" if missing else words.status["keep"]


def _origin(passage: Passage) -> Iterator[str]:
    yield f'passage "{one_line(passage.id, _LONGEST["id"])}"'
    if passage.source:
        yield f'source "{one_line(passage.source, _LONGEST["source"])}"'
    if passage.metadata.get("date"):
        yield f'date "{one_line(passage.metadata["date"], _LONGEST["id"])}"'


def _found(findings: Sequence[Finding]) -> Iterator[str]:
    order = {"conflict": 0, "not_comparable": 1}
    told = sorted((f for f in findings if f.verdict in order), key=lambda finding: order[finding.verdict])
    lines = dict.fromkeys(
        f"{'found' if f.verdict == 'conflict' else 'note'} {one_line(f.hazard, _LONGEST['id'])} ({f.severity}): "
        f'"{one_line(f.sentence, _LONGEST["sentence"])}"'
        for f in told
    )
    yield from list(lines)[:_MOST]
    if len(lines) > _MOST:
        yield f"and {len(lines) - _MOST} more findings"


def _disagreements(own: str, disagreements: Sequence[Disagreement]) -> Iterator[str]:
    for pair in disagreements[:_MOST]:
        other = one_line(pair.second if pair.first == own else pair.first, _LONGEST["id"])
        later = (
            f', the later one is "{one_line(pair.superseding, _LONGEST["id"])}"' if pair.superseding else ""
        )
        about = _listed(finding.hazard for finding in pair.findings)
        yield f'DISAGREES with passage "{other}"{f" on {about}" if about else ""}{later}'
    if len(disagreements) > _MOST:
        yield f"DISAGREES with {len(disagreements) - _MOST} more passages"


def _not_marked(facts: TextFacts, amiss: Sequence[str]) -> Iterator[str]:
    """What carries no marks although it might deserve some."""
    left = [what for name, what in MARKED.items() if name not in facts.by_filter]
    if left or amiss:
        yield f"NOT MARKED: {', '.join([*left, *amiss])}"


def _suspicious(text: str, folded: str) -> Iterator[str]:
    imitated = _IMITATED.finditer(folded)
    if any(
        m[0] == "clinsafe" or _OPENED.search(folded[max(0, m.start() - 16) : m.start()]) for m in imitated
    ):
        yield "IMITATES this line or its marks in its own words, which prove nothing"
    if _HIDDEN.search(text):
        yield "HOLDS hidden or direction-changing characters"


def _listed(names: Iterable[str]) -> str:
    return ", ".join(sorted({one_line(name, _LONGEST["id"]) for name in names}))


# ── marks ──────────────────────────────────────────────────────────────────────────────────────


def _marks(text: str, facts: TextFacts, words: Words) -> tuple[dict[int, str], list[str]]:
    """Where in the text -> what is marked there; and what could not be marked, in words."""
    found: dict[int, dict[tuple[int, str], None]] = {}
    strays = unread = 0
    for own in facts.by_filter.values():
        for fact in own:
            start, end = fact.span.start, fact.span.end
            unread += fact.rule == UNREAD and fact.hazard in MARKED
            if not 0 <= start <= end <= len(text):
                strays += 1
            elif start < end and (says := _says(fact, words)):
                found.setdefault(_trimmed(text, start, end), {})[says] = None
    marks: dict[int, dict[tuple[int, str], None]] = {}
    reached = 0
    for end in sorted(found):
        if end > reached:  # else it lies in the word that the mark before it stands behind
            reached = _behind(text, end)
        marks.setdefault(reached, {}).update(found[end])
    amiss = [f"{strays} facts that lie outside this text, which was perhaps changed"] if strays else []
    amiss += [f"{unread} parts that were too much to read"] if unread else []
    return {at: "; ".join(says for _, says in sorted(said)) for at, said in marks.items()}, amiss


def _says(fact: Fact, words: Words) -> tuple[int, str] | None:
    """Order and words of a fact's mark; None where it needs none: what a question asks is no claim (decision D2)."""
    normal = fact.normal
    if normal.get("asked") is not False:
        return None
    says = _MAKERS[fact.hazard](fact, normal, words) if fact.hazard in _MAKERS else None
    return (list(_MAKERS).index(fact.hazard), says) if says else None


def _polarity(fact: Fact, normal: Mapping[str, Any], words: Words) -> str | None:
    known = words.polarity
    if normal.get("kind") != "signed" or fact.cue == normal.get("word") or fact.cue in known.silent:
        return None  # "afebrile" says it in itself
    rule, sign = fact.rule.removeprefix("negation."), normal.get("sign")
    named = str(normal.get("label", "")).startswith(str(normal.get("word")))
    says = ""
    if sign == ABSENT and (rule in known.negators or (rule in known.verbs and named)):
        says = known.denied
    elif sign in (LEFT_OPEN, ABSENCE_OPEN):
        says = known.open if sign == LEFT_OPEN else known.doubted
    if not says:
        return None
    added = ((words.of_another, "relative"), (words.on_condition, "if"), (words.in_the_past, "past"))
    return ", ".join([says, *(extra for extra, name in added if normal.get(name))])


def _certainty(fact: Fact, normal: Mapping[str, Any], words: Words) -> str | None:
    level = normal.get("level")
    if level not in tuple(Level) or normal.get("plain") or fact.cue in words.certainty_silent:
        return None
    name: Any = Level(level).word
    says = words.certainty.get(name)
    if says is None:
        return None
    other = normal.get("whose", "patient") != "patient"
    return f"certainty: {says}, {words.of_another}" if other else f"certainty: {says}"


def _quantity(fact: Fact, normal: Mapping[str, Any], words: Words) -> str | None:
    if (
        fact.rule not in words.quantity_rules
        or fact.cue.lower() in words.quantity_silent
        or normal.get("weak")
    ):
        return None
    low, high = normal.get("low"), normal.get("high")
    if not isinstance(low, int | float) or not isinstance(high, int | float):
        return None
    if normal.get("turned"):  # "most had no fever" is read as few with fever; the mark is of "most"
        low, high = round(1 - high, 6), round(1 - low, 6)
    rows = (row for row in words.quantity if row.family == normal.get("family"))
    says = next((row.says for row in rows if row.low <= low and high <= row.high), None)
    return None if says is None or says == fact.cue.lower() else f"quantity: {says}"


_MAKERS = {"negation": _polarity, "hedging": _certainty, "quantifier": _quantity}
"""In the order in which marks at one place stand."""


# ── where they stand ───────────────────────────────────────────────────────────────────────────


def _inserted(text: str, marks: Mapping[int, str], tag: str) -> str:
    pieces, last = [], 0
    for at, says in sorted(marks.items()):
        pieces += [text[last:at], f" [{tag}{says}]"]
        last = at
    return "".join([*pieces, text[last:]])


def _trimmed(text: str, start: int, end: int) -> int:
    """The end of a span, without blanks."""
    while end > start + 1 and text[end - 1].isspace():
        end -= 1
    return end


def _behind(text: str, at: int) -> int:
    """The first place from here that is not within a word, a hyphened word, an emoji or a line break."""
    while 0 < at < len(text) and _joined(text, at):
        at += 1
    return at


def _joined(text: str, at: int) -> bool:
    before, after = text[at - 1], text[at]
    if (
        before == "\u200d"
        or unicodedata.category(after) in ("Mn", "Mc", "Me", "Cf", "Sk")
        or before + after == "\r\n"
    ):
        return True
    if "\U0001f1e6" <= before <= "\U0001f1ff" and "\U0001f1e6" <= after <= "\U0001f1ff":
        return True  # two letters that make a flag
    if after in "-'’":
        return before.isalnum() and at + 1 < len(text) and text[at + 1].isalnum()
    return after.isalnum() and (before.isalnum() or before in "-'’")


def _folded(text: str) -> str:
    """The text as a careless reader sees it: wide letters narrow, hidden characters gone, lower case."""
    if text.isascii():
        return text.lower()
    return re.sub(
        "[\u00ad\u200b-\u200f\u202a-\u202e\u2060-\u2069\ufeff\U000e0000-\U000e007f]",
        "",
        unicodedata.normalize("NFKC", text),
    ).lower()


def _tag(folded: str) -> str:
    """What our marks begin with: nothing, or a number that the text does not hold."""
    if not _OPENS.search(folded):
        return ""
    used = {int(number) for number in _TAGGED.findall(folded)}
    return f"#{next(n for n in range(1, len(used) + 2) if n not in used)} "
