"""Sentences of another than who is asked about: a relative, partner or donor, or another bed, case or sample.

A relative is spoken of as the subject of a clause ("her partner has ..."), by a "who" after the word, or by a pronoun
that opens the next sentence. A relative who only reports ("her husband says she has ...") hides nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace

from clinsafe.mitigations.same import widened
from clinsafe.mitigations.topic import bare, heavy
from clinsafe.mitigations.wording import Passage, Worded
from clinsafe.text import Token
from clinsafe.text.context import KIN
from clinsafe.text.vocabulary import Vocabulary

_MALE_WORDS = """
father dad brother son uncle grandfather nephew husband boyfriend stepfather
"""
_MALE = frozenset(_MALE_WORDS.split())
_FEMALE_WORDS = """
mother mum mom sister daughter aunt grandmother niece wife girlfriend stepmother
"""
_FEMALE = frozenset(_FEMALE_WORDS.split())
_YOUNG = frozenset(["baby", "child", "infant", "newborn", "neonate", "toddler", "fetus", "foetus"])
_MORE = (
    "carer caregiver donor twin spouse fiance fiancee flatmate housemate neighbour roommate friend colleague"
)
_PEOPLE = (
    (KIN - {"maternal", "paternal", "relative", "relatives"}) | _MALE | _FEMALE | _YOUNG | {*_MORE.split()}
)
_ALIKE = (
    frozenset(["mother", "mum", "mom", "parent"]),
    frozenset(["father", "dad", "parent"]),
    _YOUNG | {"son", "daughter"},
    frozenset(["husband", "wife", "partner", "spouse", "fiance", "fiancee", "boyfriend", "girlfriend"]),
    frozenset(["brother", "sister", "sibling", "twin"]),
    frozenset(["carer", "caregiver"]),
)
_IRREGULAR = {"children": "child", "babies": "baby", "wives": "wife", "neighbours": "neighbour"}
_OWNERS = frozenset(["her", "his", "their", "my", "our", "s", "patient", "mr", "mrs"])
_ARTICLES = frozenset(["the", "a", "an", "one", "both", "another"])
_ADJECTIVES_WORDS = """
maternal paternal older elder younger eldest oldest youngest late twin identical half step living
deceased newborn unborn adult only first second great unrelated related new current
"""
_ADJECTIVES = frozenset(_ADJECTIVES_WORDS.split())
_OPENERS = frozenset(
    [
        ",",
        ";",
        ".",
        ":",
        "and",
        "but",
        "while",
        "whereas",
        "although",
        "though",
        "because",
        "since",
        "as",
        "that",
    ]
)
_REPORTS = re.compile(
    r"\b(?:reports?|reported|says?|said|saying|states?|stated|recalls?|saw|seen him|notice[sd]?|thinks?|thought"
    r"|told|tells?|telling|confirm(?:s|ed)?|denie[sd]|deny|describe[sd]?|witnessed|worried|concerned|believes?"
    r"|believed|aware|adamant|certain|sure|gives?|gave|mention(?:s|ed)?|explain(?:s|ed)?|asks?|asked|adds?"
    r"|added|knows?|found (?:him|her)|according)\b"
)
_CARES = re.compile(
    r"\b(?:him|the patient|with (?:him|her)|(?:brought|found|accompanied|drove|visits?|visited|helps?|helped|called"
    r"|phoned|rang|collected|met|saw|supports?|with) her|ambulance|present|in attendance|translat\w+|interpret\w+)\b"
)
_VERBS_WORDS = """
has have had is are was were does do did takes take took suffers suffered died smokes smoked drinks
developed tested tests uses used received needs needed carries also never recently works now
"""
_VERBS = frozenset(_VERBS_WORDS.split())
_THINGS_WORDS = """
site kidney organ graft heart liver lung card cell cells blood lymphocyte marrow
"""
_THINGS = frozenset(_THINGS_WORDS.split())
_PRONOUNS = {"he": "m", "his": "m", "she": "f", "her": "f", "they": "n", "their": "n"}
_LEAD = frozenset(["however", "also", "today", "now", "currently", "then", "again", ",", "and", "but"])
_MALE_ONE = re.compile(r"\b(?:he|him|his|mr|man|gentleman|boy)\b")
_FEMALE_ONE = re.compile(r"\b(?:she|her|mrs|ms|miss|woman|lady|girl|pregnan\w+)\b")
_WORDS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_UNIT = r"mg|ml|g\b|mm|cm|kg|%|years?|days?|hours?|weeks?|months?"
_NUMBER = rf"(?:\d{{1,5}}|{'|'.join(_WORDS)})(?! ?[-.]? ?(?:\d|{_UNIT}))"
_KINDS = (
    "bed|bay|room|ward|cubicle|patient|participant|subject|case|lesion|nodule|sample|specimen|biopsy|swab|theatre"
    "|cot|twin|fetus|site"
)
_NUMBERED = re.compile(
    rf"\b({_KINDS})s? (?:(?:no|number|#)\.? ?)?({_NUMBER}(?: ?(?:,|and|or|to|-|&) {_NUMBER})*)(?!\w)"
)


def apart(words: Passage, text: str, vocabulary: Vocabulary, asked: str, keys: frozenset[str]) -> Passage:
    """The passage with each sentence marked that is of another person or number than the question names.

    Args:
        text: the passage's, for the sentences between those that the filters saw ("Her partner was seen.").
        vocabulary: reads it.
        asked: the question in lower case.
        keys: bare keys of what it asks.
    """
    numbers = numbered(asked)
    if not may_be_apart(text, asked):
        return words
    named = _named(asked)
    kin = _Kin(_PEOPLE - named, bool(named & {"mother", "father", "parent"}), _gender(asked, words))
    told: dict[str, frozenset[str]] = {}
    topic: str | None = None
    found = []
    end = 0
    for sentence in words.sentences:
        span = sentence.line.span
        between = vocabulary.tokens(text, end, span.start) if text[end : span.start].strip(" .;\n") else ()
        end = max(end, span.end)
        if between:
            told = {**told, **numbered(" ".join(token.lower for token in between))}
            topic = kin.places(between, topic)[1]
        told = {**told, **numbered(sentence.text)}
        other = any(name in told and not _one_of(numbers[name], sentence, name, told) for name in numbers)
        places, topic = kin.places(sentence.tokens, topic)
        if places and not other:
            sought = heavy(keys & sentence.keys) or keys & sentence.keys
            rest = (token for at, token in enumerate(sentence.tokens) if at not in places and token.key)
            other = bool(sought) and not sought <= widened(frozenset(bare(token.key) for token in rest))
        found.append(replace(sentence, of_another=True) if other else sentence)
    return Passage(tuple(found))


def may_be_apart(text: str, asked: str) -> bool:
    """Whether a passage's text names a person or the question a number, so that `apart` has to look."""
    return bool(numbered(asked)) or not _PEOPLE.isdisjoint(map(_singular, re.findall(r"\w+", text.lower())))


def numbered(text: str) -> dict[str, frozenset[str]]:
    """Numbered kind ("bed", "case") -> the numbers that a text in lower case names of it."""
    found: dict[str, frozenset[str]] = {}
    for name, list_ in _NUMBERED.findall(text):
        found[name] = found.get(name, frozenset()) | _numbers(list_)
    return found


def _numbers(text: str) -> frozenset[str]:
    found = [
        str(_WORDS.index(one) + 1) if one in _WORDS else one.lstrip("0") or "0"
        for one in re.findall(r"\w+", re.sub(r"\b(?:and|or|to)\b", " ", text))
    ]
    if len(found) == 2 and re.search(r"\bto\b|-", text):
        first, last = map(int, found)
        return frozenset(map(str, range(first, min(last, first + 100) + 1))) or frozenset(found)
    return frozenset(found)


def _one_of(asked: frozenset[str], sentence: Worded, name: str, told: dict[str, frozenset[str]]) -> bool:
    """Whether what a sentence says is said of an asked number; two that are named apart may differ in it."""
    here = [_numbers(list_) for kind, list_ in _NUMBERED.findall(sentence.text) if kind == name]
    return all(asked & one for one in here) if here else bool(asked & told[name])


def _named(asked: str) -> frozenset[str]:
    words = frozenset(_singular(word) for word in re.findall(r"\w+", asked)) & _PEOPLE
    return words.union(*(group for group in _ALIKE if group & words))


def _singular(word: str) -> str:
    return _IRREGULAR.get(word) or (word[:-1] if word.endswith("s") and word[:-1] in _PEOPLE else word)


def _gender(asked: str, words: Passage) -> str:
    """ "m" or "f" of the one whom the question is about, by its words or by the passage's first; else ""."""
    for text in (asked, *(sentence.text for sentence in words.sentences)):
        male, female = _MALE_ONE.search(text), _FEMALE_ONE.search(text)
        if male or female:
            return "m" if male and (not female or male.start() < female.start()) else "f"
    return ""


@dataclass(frozen=True, slots=True)
class _Kin:
    """Looks for other people; `young`: a child is another person even without "her" before it."""

    people: frozenset[str]
    young: bool
    own: str

    def places(self, tokens: Sequence[Token], topic: str | None) -> tuple[frozenset[int], str | None]:
        """Places of the words that are said of another person, and the gender of whom the next pronoun may be.

        Args:
            topic: gender ("m", "f", "n") of another person of whom the sentence before spoke; None for nobody.
        """
        found: set[int] = set()
        left: str | None = None
        opener = next((token.lower for token in tokens[:4] if token.lower not in _LEAD), "")
        said = _PRONOUNS.get(opener)
        # "Her partner was seen. She ...": of a word for either sex the pronoun of the patient is the patient's
        kept = topic is not None and said is not None and ("n" in (topic, said) or topic == said)
        if kept and topic is not None and not (topic == "n" and said == self.own):
            found.update(range(self._end(tokens, 1, topic)))
            left = topic
        for at, token in enumerate(tokens):
            word = _singular(token.lower)
            if word not in self.people:
                continue
            start = self._start(tokens, at)
            owned = any(one.lower in _OWNERS for one in tokens[start:at])
            if word in _YOUNG and not self.young and not owned:
                continue
            gender = "m" if word in _MALE else "f" if word in _FEMALE else "n"
            region = self._region(tokens, start, at, gender)
            found.update(region)
            rest = " ".join(one.lower for one in tokens[at:])
            subject = start == 0 and bool(region) and not _CARES.search(rest)
            if subject or (self.own and gender != "n" and gender != self.own):
                left = gender
        return frozenset(found), left

    def _region(self, tokens: Sequence[Token], start: int, at: int, gender: str) -> range:
        behind = [token.lower for token in tokens[at + 1 : at + 6]] + ["", ""]
        if _REPORTS.search(" ".join(behind)) or behind[0] in _THINGS:
            return range(0)
        ahead = tokens[start - 1].lower if start else ""
        skip = at + 2 if behind[0] == "," else at + 1
        if behind[0] in ("who", "whose") or (behind[0] == "," and behind[1] in ("who", "whose")):
            return range(skip, self._end(tokens, skip, gender))
        if behind[0] == "with" and ahead not in ("with", "by", "from"):
            return range(at, self._end(tokens, at + 1, gender))
        if ahead == "in":
            return range(at + 1)
        if ahead == "and" and start > 1 and tokens[start - 2].lower in ("he", "she", "patient"):
            return range(0)
        if start == 0 or ahead in (";", ".", ":") or (ahead in _OPENERS and self._says(behind)):
            return range(start, self._end(tokens, at + 1, gender))
        return range(0)

    @staticmethod
    def _says(behind: Sequence[str]) -> bool:
        return behind[0] in _VERBS or behind[0] == ":" or (behind[0] == "'" and behind[1] == "s")

    @staticmethod
    def _start(tokens: Sequence[Token], at: int) -> int:
        """Where the noun phrase that ends at `at` begins."""
        words = _OWNERS | _ARTICLES | _ADJECTIVES | {"'"}
        start = at
        while start and tokens[start - 1].lower in words:
            start -= 1
        return start

    def _end(self, tokens: Sequence[Token], at: int, gender: str) -> int:
        """Where what is said of a person of a gender ends: at a stop, or where the patient comes in."""
        for place in range(at, len(tokens)):
            word = tokens[place].lower
            if word in (";", "but", "patient"):
                return place
            said = _PRONOUNS.get(word) if word in ("he", "she") else None
            if said and (said != gender if gender != "n" else said == self.own):
                return place
        return len(tokens)
