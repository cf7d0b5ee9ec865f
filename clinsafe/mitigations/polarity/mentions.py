"""Facts of a reading: each denied or affirmed thing, and for each piece of a sentence the words merely said in it.

A *signed* fact is one thing with its sign: ``sign`` -1 absent, 1 present, 2 left open ("not excluded"). A *said* fact
holds the other words of one piece (comma to comma): they count as present by default, the undecided among them
(``sure`` 0) as neither. A *sense* fact is a sentence as a whole. ``near_keys`` are the keys of a piece, ``wide_keys``
those of its sentence.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, NamedTuple, TypeAlias

from clinsafe.mitigations.polarity.hangs import conditional, counted, dated, takes_up
from clinsafe.mitigations.polarity.line import OPEN, PLAIN, QUALIFIER, SIGNED, Line
from clinsafe.mitigations.polarity.marks import marks, pieces
from clinsafe.mitigations.polarity.mention import ABSENCE_OPEN, ABSENT, LEFT_OPEN, PRESENT, UNDECIDED
from clinsafe.mitigations.polarity.naming import ACTIONS, ADJECTIVE, form, object_of, subject, tail
from clinsafe.mitigations.polarity.region import WALK
from clinsafe.mitigations.polarity.replies import answered, asked, reply, without_reply
from clinsafe.mitigations.polarity.rules import (
    AND,
    COMMA,
    DET,
    HELP,
    HYPHEN,
    MARK,
    NUMBER,
    PREP,
    STOP,
    WORD,
    Cue,
    Rules,
)
from clinsafe.mitigations.polarity.schema import ABNORMAL
from clinsafe.mitigations.polarity.signs import sign
from clinsafe.protocols import Fact
from clinsafe.text import Reading
from clinsafe.text.reading import Sentence
from clinsafe.text.tokens import Token

PAST = 2  # certainty of a word said of the past


class Said(NamedTuple):
    """One word of a said fact: key, offsets in the original text, whether it follows the word before it, certainty.

    Certainty is 0 for undecided, 1 for said, 2 for said of the past.
    """

    key: str
    start: int
    end: int
    joined: int
    sure: int


Signer: TypeAlias = Callable[[Sequence[Token], Rules], Line]


def read(reading: Reading, rules: Rules, hazard: str, signer: Signer = sign) -> list[Fact]:
    """All facts of a reading, in order; `signer` is the engine."""
    facts: list[Fact] = []
    last: list[Fact] = []
    replied = 0  # where the answer ends that the sentence begins with
    for sentence in reading.sentences:
        said = without_reply(sentence, replied) if replied else sentence
        if not said.tokens:
            replied = 0
            continue
        line = signer(said.tokens, rules)
        if takes_up(line):
            last = [_undone(fact) for fact in last]
        facts += last
        value, replied = 0, 0
        if sentence.index + 1 < len(reading.sentences) and asked(said, rules):
            value, replied = reply(reading.sentences[sentence.index + 1].tokens, rules)
        if value:
            answered(line, value)
        last = _Sentence(reading, said, line, hazard, said.mood == "question" and not value).facts()
    return facts + last


def _undone(fact: Fact) -> Fact:
    """ "Stop metformin. *Start it again* in two days.": what was to be left is not left for good."""
    normal = fact.normal
    if normal["kind"] == "signed" and normal["action"] and normal["sign"] == ABSENT:
        return replace(fact, normal={**normal, "sign": UNDECIDED})
    return fact


class _Sentence:
    def __init__(self, reading: Reading, sentence: Sentence, line: Line, hazard: str, asked: bool) -> None:
        rules = line.rules
        self.reading, self.sentence, self.rules, self.hazard, self.line = (
            reading,
            sentence,
            rules,
            hazard,
            line,
        )
        # Where cleaning changed nothing, offsets need no map.
        self.same = reading.cleaned.text == reading.cleaned.original
        self.limits = rules.limits
        self.pieces = pieces(line)
        self.wide = self._wide()
        self.conditional = conditional(sentence.tokens, rules)
        self.base: dict[str, Any] = {
            "asked": asked,
            "relative": sentence.subject == "relative",
            "sentence": sentence.index,
        }

    def _wide(self) -> frozenset[str]:
        """Keys of the sentence, those of signed words by their concept."""
        lexical = self.line.lexical
        found = set()
        for index, token in enumerate(self.sentence.tokens):
            cue = lexical[index]
            key = cue.concept if cue is not None else token.key or self.limits.get(token.lower, "")
            if key and self.line.kind[index] != MARK:
                op = self.line.op(index)
                if op is None or op.cue.kind == "relative":
                    found.add(key)
        return frozenset(found)

    def facts(self) -> list[Fact]:
        facts: list[Fact] = []
        kind, size = self.line.kind, len(self.sentence.tokens)
        start = 0
        for index in range(size + 1):
            if index == size or kind[index] in (COMMA, STOP):
                if index > start:
                    facts += self._piece(start, index)
                start = index + 1
        if facts:
            facts.append(self._sense(facts))
        return facts

    def _sense(self, facts: Sequence[Fact]) -> Fact:
        """The sentence as a whole: its content words, and whether its negations come to a denial."""
        line, tokens = self.line, self.sentence.tokens
        cues = [op.words for op in line.ops if op.cue.sign < 0 and op.cue.kind in ("negator", "predicate")]
        unread = any(op.cue.kind in ("pseudo", "open", "exception") for op in line.ops)
        words = {token.lower for token in tokens}
        quantified = not (
            words.isdisjoint(self.rules.quantifiers) and words.isdisjoint(self.rules.sets["telling"])
        )
        normal: dict[str, Any] = {
            **self.base,
            "kind": "sense",
            "keys": self.wide.union(*(fact.normal["keys"] for fact in facts)),
            "marks": marks(line, self._key, self.pieces),
            "signed_keys": frozenset(f.normal["key"] for f in facts if f.normal["kind"] == "signed"),
            "size": len(self.wide),
            "wide_keys": self.wide,
            "cues": (*sorted(cues), *sorted(c.concept for c in line.lexical if c is not None and c.sign < 0)),
            "verbal": any(op.cue.reach == "verb" for op in line.ops),
            "counted": unread or quantified,
        }
        return Fact(
            self.hazard,
            self.reading.token_span(tokens),
            normal,
            cues[0] if cues else "",
            "negation.same-words",
        )

    def _piece(self, start: int, end: int) -> list[Fact]:
        self.base["piece"] = self.pieces[start]
        line, tokens = self.line, self.sentence.tokens
        words = [i for i in range(start, end) if line.kind[i] == WORD and (tokens[i].key or line.lexical[i])]
        if not words:
            return []
        near = frozenset([self._key(i) for i in words])
        signed = [i for i in words if self._is_signed(i)]
        denied = {self._key(i) for i in signed if line.state[i] == SIGNED and line.sign[i] < 0}
        signed = [i for i in signed if line.state[i] in (SIGNED, OPEN) or self._key(i) not in denied]
        if counted(line, start, end):
            return [self._said(words, near, 0)]
        if dated(line, start, end):
            line.past.update(range(start, end))
        facts = [fact for i in signed for fact in self._signed(i, near)]
        facts += [self._state(i, near) for i in words if self._is_state(i)]
        rest = [i for i in words if i not in signed and tokens[i].lower not in self.rules.weak]
        if rest:
            facts.append(self._said(rest, near))
        return facts

    def _key(self, index: int) -> str:
        cue = self.line.lexical[index]
        return cue.concept if cue is not None else self.sentence.tokens[index].key

    def _is_signed(self, index: int) -> bool:
        state = self.line.state[index]
        if self.line.kind[index - 1] == NUMBER and index and (self.line.lexical[index] or state == SIGNED):
            return self.line.lower(index - 1) not in self.rules.sets["spelled"]
        if state in (SIGNED, OPEN):
            return self.line.lexical[index] is not None or self.line.lower(index) not in self.rules.weak
        cue = self.line.lexical[index]
        if cue is None or state not in (PLAIN, QUALIFIER) or self._carried(index):
            return False
        if state == QUALIFIER and self.line.sign[index] < 0:
            return False  # "showed no *raised* enzymes"
        return cue.sign > 0 or not self._negated_piece(index)

    def _negated_piece(self, index: int) -> bool:
        """ "no component may be issued *unirradiated*": two negations whose sum is not read."""
        kind = self.line.kind
        for step in (-1, 1):
            at = index + step
            while 0 <= at < len(kind) and abs(at - index) < WALK and kind[at] not in (COMMA, STOP, AND):
                op = self.line.op(at)
                if op is not None and op.cue.kind == "negator":
                    return True
                at += step
        return False

    def _carried(self, index: int) -> bool:
        """Whether the next word makes a topic of this one ("pregnancy test")."""
        op = self.line.op(index + 1) if index + 1 < len(self.line.tokens) else None
        named = op is not None and op.words == "- negative" and self.line.state[index] == PLAIN
        return named or self.line.lower(index + 1) in self.rules.carriers

    def _is_state(self, index: int) -> bool:
        """ "the discs were *swollen*": not normal."""
        line = self.line
        if (
            line.state[index] != PLAIN
            or not line.among(index, "abnormal_states")
            or line.lexical[index] is not None
        ):
            return False
        return index > 0 and line.kind[index - 1] == HELP and line.be_before(index)

    def _state(self, index: int, near: frozenset[str]) -> Fact:
        cue = self.rules.signed[ABNORMAL]
        fact = self._fact(index, near, cue.concept, PRESENT, cue)
        other = {"unless_keys": frozenset([self.sentence.tokens[index].key])}
        return replace(fact, cue=self.line.lower(index), normal={**fact.normal, **other})

    # ── signed ────────────────────────────────────────────────────────────────────────────────

    def _signed(self, index: int, near: frozenset[str]) -> list[Fact]:
        line = self.line
        cue = line.lexical[index]
        denied = line.sign[index] if line.state[index] in (SIGNED, OPEN) else 1
        if line.state[index] == OPEN:
            value = ABSENCE_OPEN if cue is not None and cue.sign < 0 else LEFT_OPEN
            return [self._fact(index, near, self._key(index), value, cue)]
        value = denied * (cue.sign if cue is not None else 1)
        facts = [self._fact(index, near, self._key(index), value, cue)]
        if cue is not None and cue.opposite and denied > 0:
            facts.append(self._fact(index, near - {cue.concept}, cue.opposite, ABSENT, cue))
        return facts

    def _fact(self, index: int, near: frozenset[str], key: str, value: int, cue: Cue | None) -> Fact:
        line, tokens, rules = self.line, self.sentence.tokens, self.rules
        number = line.rule[index]
        op = line.ops[number] if number >= 0 else None
        own = op is None or (cue is not None and line.state[index] not in (SIGNED, OPEN))
        words = [tokens[i].lower for i in self._modifiers(index)]
        rule = cue.id if own and cue is not None else op.cue.id if op is not None else "said"
        normal: dict[str, Any] = {
            **self.base,
            "kind": "signed",
            "keys": frozenset([key]),
            "key": key,
            "sign": value,
            "word": tokens[index].lower,
            "modifier_keys": frozenset(
                tokens[i].key
                for i in (*self._modifiers(index), *self._kind_of(index))
                if tokens[i].key not in rules.generic_keys
            )
            - {"", key},
            "limit_keys": frozenset(
                tokens[i].key or rules.limits[tokens[i].lower]
                for i in self._modifiers(index, functions=True)
                if tokens[i].lower in rules.limits
            ),
            "near_keys": near - {key},
            "wide_keys": self.wide,
            "tail_keys": tail(self.line, index, self._key) - rules.generic_keys,
            "about": cue is not None and cue.about,
            "action": op is not None and op.cue.id in ACTIONS,
            "past": index in line.past and key not in self.rules.lifelong,
            "if": self.conditional,
            "relative": self.base["relative"] or index in line.other,
            "name": " ".join([*words, self._label(index, key, cue)]),
            "of": " ".join(words) or subject(self.line, index, cue),
            "label": self._label(index, key, cue),
            "form": form(op, cue, own),
        }
        text = (
            tokens[index].lower
            if own or op is None
            else " ".join(t.lower for t in tokens[op.start : op.end]) or op.words
        )
        span = self.reading.token_span([tokens[i] for i in self._modifiers(index)] + [tokens[index]])
        return Fact(self.hazard, span, normal, text, f"negation.{rule}")

    def _modifiers(self, index: int, functions: bool = False) -> list[int]:
        """The words before this one in its noun phrase."""
        if self.line.among(index, "takes_object") and (behind := object_of(self.line, index)):
            return behind  # "a rash *sparing* the palms"
        found, at = [], index - 1
        kind = self.line.kind
        while at >= 0 and index - at <= 6 and kind[at] in (WORD, HYPHEN, MARK):
            if kind[at] == WORD and (functions or self.sentence.tokens[at].key):
                found.append(at)
            at -= 1
        return found[::-1] + self._object(index)

    def _label(self, index: int, key: str, cue: Cue | None) -> str:
        """What the thing is called, whatever its sign."""
        lower = self.line.lower(index)
        if cue is None:
            return " ".join([lower, *(self.line.lower(at) for at in self._kind_of(index))])
        if key == cue.concept:
            return cue.label or lower
        return cue.other or key.removeprefix("=")

    def _kind_of(self, index: int) -> list[int]:
        """ "cardiac *disease*": of an organ's adjective the noun belongs to the thing."""
        line = self.line
        noun = index + 1 < len(line.tokens) and line.lower(index + 1) in line.rules.trailing
        return (
            [index + 1]
            if noun and line.lower(index).endswith(ADJECTIVE) and line.lexical[index] is None
            else []
        )

    def _object(self, index: int) -> list[int]:
        """ "allergic *to latex*": what it is an allergy to."""
        line = self.line
        at, found = index + 1 + (line.lower(index) != "to"), []
        if self._key(index) not in self.rules.lifelong or line.lower(at - 1) not in ("to", "of"):
            return []
        while at < min(len(line.tokens), index + WALK) and line.kind[at] in (WORD, DET, HYPHEN, MARK):
            if line.kind[at] == WORD and self.sentence.tokens[at].key:
                found.append(at)
            at += 1
        return found

    def _range(self, token: Token) -> tuple[int, int]:
        if self.same:
            return token.start, token.end
        span = self.reading.span(token.start, token.end)
        return span.start, span.end

    def _lexical_denial(self, index: int) -> bool:
        cue = self.line.lexical[index]
        return cue is not None and (cue.sign < 0 or bool(cue.opposite))

    def _reason(self, index: int) -> bool:
        """ "given *for* palsy": why it was given, which may be long past."""
        line = self.line
        for at in range(index - 1, max(-1, index - 8), -1):
            if line.kind[at] == PREP:
                if line.lower(at) != "for":
                    return False
                before = line.op(at - 1) if at else None
                return before is not None and before.cue.id == "given"
            if line.kind[at] in (COMMA, STOP):
                return False
        return False

    # ── said ──────────────────────────────────────────────────────────────────────────────────

    def _said(self, words: Sequence[int], near: frozenset[str], certain: int = 1) -> Fact:
        tokens, line = self.sentence.tokens, self.line
        rows: list[tuple[str, int, int, int, int]] = []
        last = -2
        for i in words:
            start, end = self._range(tokens[i])
            joined = int(last == i - 1 or (last == i - 2 and line.kind[i - 1] == HYPHEN))
            sure = certain and int(
                line.state[i] == PLAIN
                and not self._lexical_denial(i)
                and not self._reason(i)
                and not self._carried(i)
                and i not in line.other
            )
            if sure and i in line.past and self._key(i) not in self.rules.lifelong:
                sure = PAST
            rows.append((self._key(i), start, end, joined, sure))
            last = i
        normal: dict[str, Any] = {
            **self.base,
            "kind": "said",
            "keys": frozenset([row[0] for row in rows]),
            "words": tuple(rows),
            "if": self.conditional,
            "near_keys": near,
            "wide_keys": self.wide,
        }
        whole = self.reading.token_span([tokens[i] for i in words])
        return Fact(self.hazard, whole, normal, "", "negation.said")
