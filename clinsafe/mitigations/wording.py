"""The words of a passage's sentences, for what the facts do not keep: permission, doubt, whose case it is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from clinsafe.mitigations.same import widened
from clinsafe.mitigations.topic import Line, bare, covered
from clinsafe.text import Token
from clinsafe.text.vocabulary import Vocabulary

_PARTS = frozenset([";", ".", ",", "but", "however", "although", "though", "whereas", "while", "because"])
_NEIGHBOURS = 2  # sentences before one that may name what it speaks of

_OPEN_WORDS = (
    r"awaited|awaiting|pending|outstanding|to follow|still to come|not back|not yet (?:available|known"
    r"|back|reported|seen|clear)",
    r"indeterminate|equivocal|inconclusive|borderline|unclear|uncertain|unproven|unconfirmed|unsure"
    r"|undetermined|debatable",
    r"not (?:been )?(?:clear|certain|sure|established|known|proven|settled|determined|shown for certain"
    r"|ruled out|excluded)",
    r"can ?not (?:yet )?be (?:excluded|ruled out|determined|estimated|stated|graded|assessed|established"
    r"|confirmed|dismissed)",
    r"can ?not (?:be sure|tell|say|exclude|confirm|rule out|draw)",
    r"could not (?:be )?(?:sure|tell|say|excluded?|confirm(?:ed)?|ruled? out|draw|determined?|established?)",
    r"neither confirmed nor (?:excluded|refuted)|either way|suspected|suspicion of|suspicious for|query"
    r"|possible|possibly",
    r"possibility|probable|probably|presumed|likely|low (?:- )?(?:certainty|quality) evidence"
    r"|insufficient evidence",
    r"inconsistent|conflicting|no firm conclusion|mixed results|differential|versus|vs|whether|to clarify",
    r"to be (?:settled|clarified|confirmed|determined)|needs? to be confirmed|may (?:well )?(?:be|have"
    r"|represent)|might",
    r"could (?:be|have|represent)",
)
_OPEN = re.compile(rf"(?:^|[ (:,])\? ?(?=[^\W\d]{{3}})|\b(?:{'|'.join(_OPEN_WORDS)})\b")
_WEAK = re.compile(
    r"\b(?:may|might|could|likely|probable|probably|possible|possibly|whether|vs|versus|query)\b"
)
_DISMISSED = re.compile(
    r"\b(?:not been borne out|no longer (?:suspected|thought|considered)|thought (?:possible )?at first"
    r"|initially"
    r"|(?:previously|earlier) (?:labelled|suspected|thought|suspicion)|earlier suspicion|referred as"
    r"|unlikely)\b"
)
_GENERAL = re.compile(
    r"^(?:offer|give|consider|avoid|do not|don t|advise|check|stop|start|use|prescribe|monitor|refer|when"
    r"|if|in (?:af|adults"
    r"|children|patients|people|women|men)|patients?|people|adults|children|women|men|all|any|most|some"
    r"|anyone)\b"
    r"|\b(?:people|patients|adults|those|women|men|anyone|a person) (?:who|with|on|taking|receiving|aged"
    r"|over|under|in)\b"
    r"|\bshould be (?:offered|given|considered|advised|screened|referred|tested)\b"
)
_OF_ONE = re.compile(
    r"\b(?:he|she|his|her|him|hers|mr|mrs|ms|miss|this (?:patient|man|woman|lady|gentleman|boy|girl|child"
    r"|baby)|the (?:patient"
    r"|man|woman|lady|gentleman|boy|girl|child|baby)|i|my|pt)\b"
)
_IF = re.compile(
    r"\b(?:if|unless|should (?:she|he|it|they|symptoms)|in case|when(?:ever)? [\w ]{0,30}\bis (?:under "
    r"|over |below |above |less than |more than |between )?\d)"
)

_AIMS = re.compile(
    r"\b(?:to (?:determine|assess|evaluate|examine|investigate|test|explore|find out|establish|compare|elucidate)"
    r"|aims?|aimed|objective|purpose of (?:this|the) study|we (?:examined|investigated|asked|sought|hypothesi[sz]ed)"
    r"|this (?:study|research) (?:examines|investigates|uses|explores))\b"
)


@dataclass(frozen=True)
class Worded:
    """One sentence in words.

    Attributes:
        line: the sentence as the filters saw it.
        text: its words in lower case, abbreviations spelled out, one blank between them.
        keys: bare keys of its words.
        clauses: its words between semicolons, stops, commas and "but".
        tokens: all of them.
        of_another: it is said of another person or thing than the question names (`another.apart`).
    """

    line: Line
    text: str
    keys: frozenset[str]
    clauses: tuple[tuple[Token, ...], ...] = ()
    tokens: tuple[Token, ...] = ()
    of_another: bool = False

    @cached_property
    def open(self) -> bool:
        """Whether it leaves something open."""
        return _OPEN.search(self.text) is not None

    @cached_property
    def firmly_open(self) -> bool:
        """Whether it does so in words that are no mere "may"."""
        return _OPEN.search(_WEAK.sub(" ", self.text)) is not None

    @cached_property
    def dismissed(self) -> bool:
        """Whether a doubt is told that is over."""
        return _DISMISSED.search(self.text) is not None

    @cached_property
    def general(self) -> bool:
        """Whether it speaks of people at large and of no one in particular."""
        return _GENERAL.search(self.text) is not None and _OF_ONE.search(self.text) is None

    @cached_property
    def conditional(self) -> bool:
        """Whether it speaks of a condition."""
        return _IF.search(self.text) is not None


@dataclass(frozen=True)
class Passage:
    """A passage's sentences in words, in order."""

    sentences: tuple[Worded, ...]

    def around(self, at: int) -> frozenset[str]:
        """Keys of a sentence and of those before it that it may refer to."""
        return frozenset().union(*(one.keys for one in self.sentences[max(0, at - _NEIGHBOURS) : at + 1]))

    def best(self, keys: frozenset[str]) -> float:
        """The largest share of `keys` that one sentence names."""
        return max((covered(keys, one.keys) for one in self.sentences), default=0.0)


def worded(text: str, lines: Sequence[Line], vocabulary: Vocabulary) -> Passage:
    """The sentences that the filters saw, in words."""
    return Passage(tuple(_worded(text, line, vocabulary) for line in lines))


def _worded(text: str, line: Line, vocabulary: Vocabulary) -> Worded:
    tokens = vocabulary.tokens(text, line.span.start, line.span.end)
    keys = frozenset(bare(token.key) for token in tokens if token.key)
    return Worded(
        line,
        " ".join(token.lower for token in tokens),
        widened(keys | line.keys),
        _clauses(tokens),
        tuple(tokens),
    )


def _clauses(tokens: Sequence[Token]) -> tuple[tuple[Token, ...], ...]:
    parts: list[list[Token]] = [[]]
    for token in tokens:
        if token.lower in _PARTS:
            parts.append([])
        else:
            parts[-1].append(token)
    return tuple(tuple(part) for part in parts if part)


def of_one(text: str) -> bool:
    """Whether words speak of one person."""
    return _OF_ONE.search(text) is not None


def aims(text: str) -> bool:
    """Whether words say what was to be found out, and not what was found."""
    return _AIMS.search(text) is not None
