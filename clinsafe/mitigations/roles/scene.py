"""A sentence laid out for reading roles: what each token does, what kind of thing it names, and by which keys."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.roles.lexicon import Form, Lexicon, Turn, Word
from clinsafe.mitigations.roles.values import Bag, words
from clinsafe.text import Sentence
from clinsafe.text.tokens import Token


@dataclass(slots=True)
class Scene:
    """One sentence. The four sequences run token by token."""

    sentence: Sentence
    tokens: Sequence[Token]
    turns: list[Turn]
    kinds: list[str]
    keys: list[tuple[str, ...]]
    cues: list[Match[Form]]
    marks: list[Match[Form]]
    cue_at: list[int] = field(
        default_factory=list
    )  # index into cues of the relation cue that covers a token, or -1

    negated_at: list[bool] = field(default_factory=list)  # whether a negating phrase covers the token

    def is_thing(self, index: int) -> bool:
        """Whether a token names something and is part of no relation cue."""
        return bool(self.keys[index]) and self.cue_at[index] < 0

    def is_verb(self, index: int, number: int) -> bool:
        """Whether a token is part of a verb cue other than this one."""
        cue = self.cue_at[index]
        return cue not in (-1, number) and self.cues[cue].value.what == "verb"

    def kinds_in(self, bag: Bag) -> set[str]:
        """The kinds of things an argument names."""
        return set(self.kinds[bag.start : bag.end]) - {""}

    @property
    def asked(self) -> bool:
        """Whether the sentence asks yes or no; a question with who, what, which or why presupposes its roles."""
        first = self.tokens[0].lower
        return self.sentence.mood == "question" and first not in _WH


_BEFORE_GIVEN = words("is are was were be been being not also then he she they i we who")
_WH = words("which what who whom whose why how when where")


@dataclass(slots=True)
class Memory:
    """What pronouns and "the former, the latter" can mean, carried from sentence to sentence."""

    named: list[tuple[str, tuple[str, ...]]] = field(
        default_factory=list
    )  # kind and keys, of this sentence so far
    before: list[tuple[str, tuple[str, ...]]] = field(default_factory=list)  # the same of the sentence before
    she: str = ""
    he: str = ""

    def meet(self, word: Word, plural: bool, lexicon: Lexicon) -> None:
        """Remember a named thing or person."""
        if word.kind == "person":
            key = word.keys[0]
            if key == "@parent":
                self.she, self.he = "@mother", "@father"
            if plural:
                return
            if key in lexicon.she:
                self.she = key
            elif key in lexicon.he:
                self.he = key
        elif word.kind in ("drug", "condition", "test") and all(word.keys != keys for _, keys in self.named):
            self.named.append((word.kind, word.keys))

    def turn(self) -> None:
        """A new sentence begins."""
        if self.named:
            self.before = self.named
        self.named = []

    def two(self) -> list[tuple[str, ...]]:
        """The two things that "the former" and "the latter" mean; empty where there are more or fewer."""
        things = self.named if len(self.named) > 1 else self.before
        drugs = [keys for kind, keys in things if kind == "drug"]
        named = drugs if len(drugs) > 1 else [keys for _, keys in things]
        return named if len(named) == 2 else []


def scenes(sentences: Sequence[Sentence], lexicon: Lexicon) -> list[Scene]:
    """Lay out all sentences of a text, in order."""
    memory = Memory()
    return [_scene(sentence, lexicon, memory) for sentence in sentences]


def _scene(sentence: Sentence, lexicon: Lexicon, memory: Memory) -> Scene:
    tokens = sentence.tokens
    memory.turn()
    turns: list[Turn] = []
    kinds: list[str] = []
    keys: list[tuple[str, ...]] = []
    titled = not lexicon.titles.isdisjoint([token.lower for token in tokens])
    for index, token in enumerate(tokens):
        word = lexicon.word(token)
        if titled and _surname(tokens, index, lexicon):
            word = Word(Turn.NONE, "person", (f"@{token.lower}",))
        found = word.keys
        if word.kind:
            if word.kind == "person" and _possessor(tokens, index, lexicon):
                found = ()
            elif word.kind == "person" and index and tokens[index - 1].lower in _ORDINALS:
                found = (f"@{tokens[index - 1].lower} {word.keys[0][1:]}",)
            elif word.keys == ("@twin",) and index + 1 < len(tokens) and tokens[index + 1].lower in _NUMBERED:
                found = (f"@{_NUMBERED[tokens[index + 1].lower]} twin",)
            else:
                memory.meet(word, token.lower != token.lemma and token.lower.endswith("s"), lexicon)
        elif not found and token.lower in _PRONOUNS:
            found = _meant(tokens, index, memory)
        turns.append(_turn(tokens, index, word) if word.turn in _LOOKED_AT else word.turn)
        kinds.append(word.kind)
        keys.append(found)
    cues = [match for match in lexicon.cues.find(tokens) if not _noun(tokens, match, lexicon)]
    cues = [match for number, match in enumerate(cues) if not _object_noun(tokens, cues, number)]
    scene = Scene(sentence, tokens, turns, kinds, keys, cues, lexicon.marks.find(tokens))
    scene.negated_at = [False] * len(tokens)
    scene.cue_at = [-1] * len(tokens)
    for number, match in enumerate(cues):
        if match.value.what != "negator":
            scene.cue_at[match.start : match.end] = [number] * (match.end - match.start)
        else:
            scene.negated_at[match.start : match.end] = [True] * (match.end - match.start)
    return scene


_PRONOUNS = words("former latter she he him")
_LOOKED_AT = frozenset((Turn.STOP, Turn.SUBORDINATE))
_NUMBERED = {"one": "first", "1": "first", "a": "first", "two": "second", "2": "second", "b": "second"}
_ORDINALS = words("first second third elder older younger other")
_ARTICLES = words("a an the his her its their our no any")
_DETERMINERS = _ARTICLES | words(
    "this likely possible probable main commonest common usual other another first each every one of for underlying"
)


def _noun(tokens: Sequence[Token], match: Match[Form], lexicon: Lexicon) -> bool:
    """Whether a verb cue is a noun or an adjective here: "the cause", "the raised prolactin"."""
    if match.end - match.start > 1 or not match.start:
        return False
    if match.value.name == "switch":  # "high-grade change"
        return match.value.what == "source_then" and bool(lexicon.word(tokens[match.start - 1]).keys)
    if match.value.what != "verb":
        return False
    if tokens[match.start].lower == "depressed":  # a mood, unless something depresses
        return match.end >= len(tokens) or tokens[match.end].lower != "by"
    if tokens[match.start - 1].text == "," and tokens[match.start].lower == tokens[match.start].lemma:
        return True  # "…, trigger sepsis"
    before, word = tokens[match.start - 1].lower, tokens[match.start].lower
    if match.end < len(tokens) and tokens[match.end].lower == "by":
        return False
    if lexicon.word(tokens[match.start - 1]).kind == "organ" and word == tokens[match.start].lemma:
        return True  # "heart block"
    return before in (_ARTICLES if word.endswith("ed") else _DETERMINERS)


def _object_noun(tokens: Sequence[Token], cues: list[Match[Form]], number: int) -> bool:
    """Whether "effect of" is only the object of a verb cue: "has lessened the effect of lamotrigine"."""
    match = cues[number]
    if match.value.what != "source_then" or not match.cue.endswith(" of") or not number:
        return False
    before = cues[number - 1]
    gap = tokens[before.end : match.start]
    return before.value.what == "verb" and len(gap) < 4 and all(token.text[0].isalpha() for token in gap)


def _turn(tokens: Sequence[Token], index: int, word: Word) -> Turn:
    """What the token does; a colon or point between digits does nothing ("07:00")."""
    if word.turn == Turn.STOP and 0 < index < len(tokens) - 1:
        before, sign, after = tokens[index - 1 : index + 2]
        close = before.end == sign.start and sign.end == after.start
        if before.is_number and after.is_number and close:
            return Turn.NONE
    if word.turn == Turn.SUBORDINATE and index and tokens[index].lower == "given":
        return Turn.NONE if tokens[index - 1].lower in _BEFORE_GIVEN else word.turn  # "was given"
    return word.turn


def _surname(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    """Whether the token is a name behind a title: "Mrs Achterberg"."""
    before = index - 1 - (index > 1 and tokens[index - 1].text == ".")
    return before >= 0 and tokens[before].lower in lexicon.titles and tokens[index].text[0].isupper()


def _possessor(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> bool:
    """Whether this person only owns the next one: "the patient's sister"."""
    after = tokens[index + 1 : index + 5]
    if len(after) < 3 or after[0].text != "'":
        return False
    return any(token.lower in lexicon.people for token in after[1:])


def _meant(tokens: Sequence[Token], index: int, memory: Memory) -> tuple[str, ...]:
    """The keys of what a pronoun stands for, where that is plain."""
    lower = tokens[index].lower
    if lower in ("former", "latter"):
        two = memory.two()
        return two[0 if lower == "former" else 1] if two else ()
    if lower == "she" and memory.she:
        return (memory.she,)
    if lower in ("he", "him") and memory.he:
        return (memory.he,)
    return ()
