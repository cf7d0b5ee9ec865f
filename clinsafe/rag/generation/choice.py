"""Which option an answer to a multiple choice takes: yes, no, maybe, or a letter.

What the answer states ("The answer is B", "No, because …", JSON) goes before what it mentions ("(B)"). Two options that
are both stated are undecided, whichever is right; so is an answer that names none. "No evidence that …" is no "no".
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from clinsafe.rag.generation.abstention import abstains
from clinsafe.rag.generation.surface import has_words, plainly, spelled, words_of
from clinsafe.rag.generation.words import GenerationWords, any_of, packaged
from clinsafe.text.sentences import split

DECISIONS = ("yes", "no", "maybe")
LETTERS = ("A", "B", "C", "D", "E")
Options: TypeAlias = Mapping[str, str] | Sequence[str] | None

_MARKS = re.compile(r"[*_`#>\"“”]+|\\boxed|\\text(?:bf)?|\\\(|\\\)|[{}$]|</?\w+>")
_LETTERS = re.compile(r"[^\W\d_]+")
_FENCE = re.compile(r"```(?:json)?\s*(\{.*?\})\s*```", re.DOTALL)
_STOP = r"(?=\s*(?:$|[.,;:!?)\]\n/]|\s-\s|-\s))"
_AND = r"\s*(?:,?\s*(?:and|or|&)|/|,)\s*(?:option\s+|answer\s+)?"


@dataclass(frozen=True, slots=True)
class Choice:
    """What an answer took.

    Attributes:
        outcome: ``undecided`` where it states two options or none.
        option: the option as named by the question; with ``abstained`` the option that says so, if there is one.
    """

    outcome: Literal["chosen", "undecided", "abstained"]
    option: str | None = None


def options_of(options: Options, expected: str | None) -> dict[str, str]:
    """Option -> text; where none are given, the set that the expected one belongs to; {} if it belongs to none."""
    if options:
        return dict(options) if isinstance(options, Mapping) else {option: option for option in options}
    known = (expected or "").strip().strip("().")
    if known.lower() in DECISIONS:
        return {option: option for option in DECISIONS}
    return dict.fromkeys(LETTERS, "") if known.upper() in LETTERS else {}


def expected_option(options: Mapping[str, str], expected: str) -> str | None:
    """The option that is meant by its name or by its text; None for none or several."""
    wanted = plainly(expected).strip("()")
    named = [option for option in options if plainly(option) == wanted]
    found = named or [option for option, text in options.items() if text and plainly(text) == wanted]
    return found[0] if len(found) == 1 else None


def choice(
    answer: str, options: Options, expected: str | None, words: GenerationWords | None = None
) -> Choice:
    """The option that an answer took.

    Args:
        answer: as the model wrote it.
        options: letter or word -> text, or the words alone.
        expected: the right option; looked at only where no options are given, to know of which set it is one.
        words: of ``benchmarks/rag/choice.yaml`` and ``abstention.yaml``.
    """
    words = words or packaged()
    named = options_of(options, expected)
    declining = _declining(tuple(named.items()), words)
    found, stated = _read(answer, named, words)
    if len(found) == 1:
        return Choice("abstained" if found[0] in declining else "chosen", found[0])
    if not stated and abstains(answer, words):
        return Choice("abstained", declining[0] if len(declining) == 1 else None)
    return Choice("undecided")


@lru_cache(maxsize=512)
def _declining(options: tuple[tuple[str, str], ...], words: GenerationWords) -> tuple[str, ...]:
    """Options that say that there is no answer."""
    return tuple(
        option
        for option, text in options
        if abstains(option, words) or (text != option and abstains(text, words))
    )


def _read(answer: str, options: Mapping[str, str], words: GenerationWords) -> tuple[list[str], bool]:
    """(options, whether they were stated); one option is a decision."""
    if not options or not has_words(answer):
        return [], False
    finder = _finder(tuple(options.items()), words)
    if (fields := _json(answer, words)) is not None:
        found = _once(option for value in fields for option in finder.field(value))
        return found, len(found) > 0
    text = _MARKS.sub(" ", spelled(answer))
    if whole := finder.whole(text):
        return [whole], True
    for statements in (finder.final(text), finder.stated(text)):
        if found := _once(statements):
            return found, True
    return _once(finder.mentioned(text)), False


def _once(options: Iterator[str]) -> list[str]:
    return list(dict.fromkeys(options))


def _json(answer: str, words: GenerationWords) -> list[str] | None:
    """Values of the fields that hold an answer; None where the answer is no JSON."""
    fenced = _FENCE.search(answer)
    body = (fenced[1] if fenced else answer).strip()
    if not body.startswith("{"):
        return None
    try:
        data: Any = json.loads(body)
    except (ValueError, RecursionError):
        return None
    if not isinstance(data, dict):
        return None
    fields = set(words.choice.fields)
    found: list[str] = []
    for name, value in data.items():
        if str(name).lower().replace(" ", "_") in fields:
            found += [_said(one) for one in (value if isinstance(value, list) else [value])]
    return found


def _said(value: Any) -> str:
    return {True: "yes", False: "no"}[value] if isinstance(value, bool) else str(value)


@dataclass(frozen=True, slots=True)
class _Finder:
    """Patterns of one set of options.

    Attributes:
        keys: what is written, plain -> option; names and texts.
        cues, final_words, right_words: words without one of which the pattern cannot match.
        statements: options after a cue; `finals` those that overrule, `rights` before "is correct".
    """

    keys: Mapping[str, str]
    cues: frozenset[str]
    final_words: tuple[str, ...]
    right_words: frozenset[str]
    finals: re.Pattern[str]
    statements: re.Pattern[str]
    rights: re.Pattern[str]
    heads: re.Pattern[str]
    further: re.Pattern[str]
    mentions: re.Pattern[str]
    texts: re.Pattern[str] | None
    denials: re.Pattern[str]
    refused: re.Pattern[str]
    pairs: re.Pattern[str]
    lone: re.Pattern[str]
    tails: re.Pattern[str]
    names: re.Pattern[str]
    name_after: re.Pattern[str]

    def decided(self, options: list[str]) -> bool:
        """All are words and not letters: "Yes, because …" decides wherever it stands."""
        return all(len(option) > 1 for option in options)

    def option(self, written: str) -> str | None:
        return self.keys.get(plainly(written).strip("()"))

    def whole(self, text: str) -> str | None:
        """The answer is nothing but an option, by name or by text."""
        return self.option(text.strip().strip("()[]"))

    def field(self, value: str) -> Iterator[str]:
        """What one field of JSON takes."""
        text = _MARKS.sub(" ", spelled(value))
        if whole := self.whole(text):
            yield whole
        else:
            yield from self.stated(text)

    def final(self, text: str) -> Iterator[str]:
        """Statements that are called final."""
        if not any(word in text.lower() for word in self.final_words):
            return
        yield from self._after(self.finals, text)

    def stated(self, text: str) -> Iterator[str]:
        """Statements anywhere, and options at the head of a sentence."""
        said = words_of(text.lower())
        cued = [] if said.isdisjoint(self.cues) else list(self._after(self.statements, text))
        for match in () if said.isdisjoint(self.right_words) else self.rights.finditer(text):
            if not self._denied(text, match.start()):
                before = self.pairs.search(text[max(0, match.start() - 20) : match.start()])
                cued += [] if before is None else self._one(before, before.string)
                cued += self._one(match, text)
        yield from cued
        for number, piece in enumerate(split(text)):
            sentence = text[piece.start : piece.end]
            if sentence.rstrip().endswith("?"):
                continue
            heads = list(self._head(sentence, text[piece.start : piece.end + 80]))
            # "A: raises bleeding. B: …" goes through the options; only the first sentence, or one that is nothing
            # else, takes one.
            if heads and (self.lone.fullmatch(sentence) or not (cued or number) or self.decided(heads)):
                yield from heads
            if tail := self.tails.search(sentence):
                yield from self._one(tail, sentence)

    def _after(self, cue: re.Pattern[str], text: str) -> Iterator[str]:
        for match in cue.finditer(text):
            if self._denied(text, match.start("option")):
                continue
            yield from self._one(match, text)
            yield from self._more(text, match.end())

    def _more(self, text: str, at: int) -> Iterator[str]:
        """ "B or C", "yes/no"."""
        while match := self.further.match(text, at):
            if option := self.option(match["option"]):
                yield option
            at = match.end()

    def _one(self, match: re.Match[str], text: str) -> Iterator[str]:
        option = self.option(match["option"])
        if (
            option
            and not self._name(text, *match.span("option"))
            and not self.refused.match(text, match.end("option"))
        ):
            yield option
            yield from self._beside(text, match.end("option"), option)

    def _beside(self, text: str, at: int, option: str) -> Iterator[str]:
        """The text that stands beside a letter; of another option, it is another statement."""
        if self.texts is None:
            return
        match = self.texts.match(text, _after_letter(text, at))
        if match and (other := self.option(match.group())) and other != option:
            yield other

    def _head(self, sentence: str, following: str) -> Iterator[str]:
        match = self.heads.match(sentence)
        if match is None or self._name(sentence, *match.span("option")):
            return
        if self.texts is not None:
            lead = len(sentence) - len(sentence.lstrip(" ([:-"))
            longer = self.texts.match(sentence, lead)  # "E. coli" is the text of an option and no letter
            option = self.option(longer.group()) if longer and longer.end() > match.end("option") else None
            if option:
                yield option
                return
        yield from self._one(match, following)
        yield from self._more(sentence, match.end("option"))

    def mentioned(self, text: str) -> Iterator[str]:
        """Options that are named without being stated."""
        for pattern in (self.mentions, self.texts):
            found = [] if pattern is None else list(pattern.finditer(text))
            kept = [m for m in found if not self._denied(text, m.start())]
            options = [self.option(m["option"] if "option" in m.re.groupindex else m.group()) for m in kept]
            named = [
                o
                for o, m in zip(options, kept, strict=True)
                if o and not self._name(text, *m.span("option" if "option" in m.re.groupindex else 0))
            ]
            if named:
                yield from named
                return

    def _denied(self, text: str, at: int) -> bool:
        return self.denials.search(text[max(0, at - 60) : at]) is not None

    def _name(self, text: str, start: int, end: int) -> bool:
        """ "Hepatitis B", "E. coli": the letter belongs to a name."""
        if end - start != 1:
            return False
        return bool(self.names.search(text[max(0, start - 30) : start]) or self.name_after.match(text, end))


def _after_letter(text: str, at: int) -> int:
    while at < len(text) and text[at] in " ).:]-,(":
        at += 1
    return at


@lru_cache(maxsize=512)
def _finder(options: tuple[tuple[str, str], ...], words: GenerationWords) -> _Finder:
    w = words.choice
    names = [option for option, _ in options]
    letters = [name for name in names if len(name) == 1 and name.isalpha()]
    digits = [name for name in names if name.isdecimal()]
    others = [name for name in names if name not in letters and name not in digits]
    texts = [text for name, text in options if len(text.strip()) > 1 and plainly(text) != plainly(name)]
    keys = {plainly(text): name for name, text in options if plainly(text)}
    keys |= {plainly(name): name for name in names}
    word = rf"(?i:{any_of(others)}(?!-?\w))" if others else r"(?!)"
    # A letter is one where it stands as such ("a" and "I" are words as well), a number where no unit follows.
    number = rf"{any_of(digits)}(?=\s*(?:$|[.):,;!?\]\n/](?!\d)))" if digits else r"(?!)"
    signs = f"[{''.join(map(re.escape, letters))}]" if letters else r"(?!)"
    letter = rf"(?:{signs}(?![\w'’])(?!-\w)|{number})"
    small = rf"(?i:{signs})(?![\w'’])(?!-\w)"
    text = rf"(?i:{any_of(_plain_texts(texts))}(?!\w))" if texts else r"(?!)"
    lead = (
        r"(?:\s+(?:to|for)\s+(?:this|the|your)\s+question)?"
        r"(?:\s*(?:is|are|was|be|would\s+be|should\s+be|must\s+be|remains|seems|to\s+be|as|with|to)\b)?[\s:=\-]*"
    )
    article = (
        r"(?:(?:option|choice|letter|answer|clearly|therefore|thus|simply|most\s+likely|probably|definitely|the)"
        r"\s{0,9}[:\-]?\s{1,9}){0,4}"  # without a limit the time would grow with the square
    )
    small_end = rf"{small}(?=\s*(?:$|[.,;:!?)\]\n/]|\s(?:and|or|because|since|as|which|is|-)\b|\s-))"
    any_option = rf"(?P<option>{word}|{letter}|{small_end}|{text})"
    heads = rf"(?i:\b(?:{any_of(w.heads)})\b)"
    opening = r"(?:^|(?<=[.!?\n]))\s*(?:[^.!?\n]{0,80}?[,:;]\s*)?"
    cue = rf"(?:{heads}{lead}|(?i:\b{any_of(w.choosing)}\b)[\s:]*|(?i:{opening}{any_of(w.concluding)}\b)[\s,:]*)"
    no_after = rf"(?:$|[.,;:!?)\]\n(/]|-\s|\s-|\s+(?i:{any_of(w.after_no)})\b)"
    head_word = (
        rf"(?i:(?:{any_of([n for n in others if n.lower() != 'no'])})(?![\w-]))" if others else r"(?!)"
    )
    head_no = rf"(?i:no)(?=\s*{no_after})" if "no" in map(str.lower, others) else r"(?!)"
    head_letter = (
        rf"{letter}(?=\s*(?:$|[.):\],;\n/]|-\s|\s-|\s+(?:is|because|since|and|or)\b))"
        rf"|(?<=[(\[]){small}(?=[)\]])"
    )
    guarded = _guard_no(any_option, no_after)
    return _Finder(
        keys=keys,
        cues=frozenset(_LETTERS.findall(cue.lower())[-1] for cue in (*w.heads, *w.choosing, *w.concluding)),
        final_words=tuple(cue.lower() for cue in w.final),
        right_words=frozenset(_LETTERS.findall(cue.lower())[-1] for cue in w.right),
        finals=re.compile(rf"(?i:\b{any_of(w.final)}\b){lead}{article}{guarded}"),
        statements=re.compile(rf"{cue}(?i:{article}){guarded}"),
        rights=re.compile(
            rf"(?<![\w.\-])(?P<option>{word}|{letter}|{text})[)\]]?\s+(?i:is|are|would\s+be|seems)\s+(?:(?i:the|clearly|probably)\s+)*(?i:{any_of(w.right)})\b"
        ),
        heads=re.compile(
            rf"\s*(?:(?i:option|choice|answer)\s*:?\s*)?[(\[]?(?P<option>{head_word}|{head_no}|{head_letter})"
        ),
        further=re.compile(rf"[)\]]?{_AND}[(\[]?(?P<option>{word}|{letter})[)\]]?{_STOP}"),
        mentions=re.compile(
            rf"(?:\b(?i:option|choice|answer)\s+[(\[]?|[(\[]|(?<![\w.\-'’])(?![AI]\b|(?i:no)\b|\d))"
            rf"(?P<option>{word}|{letter}|(?<=[(\[]){small}(?=[)\]]))"
        ),
        texts=re.compile(rf"(?<![\w-])(?:{text})") if texts else None,
        denials=re.compile(
            rf"(?i:(?<![\w-])(?:{any_of(w.denied)}|n['’]t)\s*(?:be\s+|a\s+|the\s+|either\s+|answer\s+|option\s+|choice\s+|for\s+|out\s+)*[(\[\s]*$)"
        ),
        refused=re.compile(
            r"[)\]]?\s+(?i:is|are|was|would\s+be)\s+(?i:wrong|incorrect|false|not|inappropriate|unlikely)\b"
        ),
        pairs=re.compile(rf"(?<![\w.\-])(?P<option>{word}|{signs})[)\]]?\s+(?i:and|or)\s+[(\[]?$"),
        lone=re.compile(rf"\W*(?:(?i:option|choice|answer)\W*)?(?:{word}|{letter})\W*(?:{text})?\W*"),
        tails=re.compile(rf"(?:,|\s-)\s+(?P<option>{word})[\s.!]*$"),
        names=re.compile(rf"(?i:(?<![\w-]){any_of(w.names_before)}[\s-]+$)"),
        name_after=re.compile(rf"(?i:\.?\s+{any_of(w.names_after)}\b)"),
    )


def _plain_texts(texts: list[str]) -> list[str]:
    return [spelled(text).strip(" .") for text in texts]


def _guard_no(pattern: str, no_after: str) -> str:
    """After a cue too, "no" before a noun is a determiner: "Conclusion: no difference was found"."""
    return rf"[(\[]?\s*(?!(?i:no)\b(?!\s*{no_after})){pattern}"
