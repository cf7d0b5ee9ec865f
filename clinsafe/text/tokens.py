"""Tokens with their lemma and their key, the canonical form by which two texts align.

A key makes *haemorrhage*, *hemorrhagic* and *bleeding* one thing: American spelling, lemma, stem, then the
synonym table of ``mitigations/synonyms.yaml``. Function words have no key ("").
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any, NamedTuple

TOKEN = re.compile(r"[^\W\d_][^\W_]*|\d+(?:[.,]\d+)*|\S", re.UNICODE)
_LONGEST = 60  # no word is longer; a run of letters that is gets no lemma

_FUNCTION_WORDS = """
a an the this that these those he she it they we you i him her them his hers its their our your my who whom
whose which what is are was were be been being am has have had having do does did done doing will would shall
should can could may might must of to in on at by for with from as into onto upon about than then so and or but
nor if because while when where there here also both each such own same very just only even still yet not no s t
d ll re ve too any some all per via without neither either up out off over under again further more most few
other himself herself itself themselves ours us one
"""
FUNCTION = frozenset(_FUNCTION_WORDS.split())

_SPELLING = (
    (re.compile(r"oea"), "ea"),
    (re.compile(r"oe"), "e"),
    (re.compile(r"ae"), "e"),
    (re.compile(r"our(?=$|s$|ed$|ing$|al$|less$|able$)"), "or"),
    (re.compile(r"(?<=[a-z]{3})is(?=e$|es$|ed$|ing$|ation$|ations$|er$)"), "iz"),
    (re.compile(r"ys(?=e$|ed$|es$|ing$)"), "yz"),
    (re.compile(r"(?<=[a-z]{2})tre(?=$|s$)"), "ter"),
    (re.compile(r"ll(?=ed$|ing$|er$)"), "l"),
    (re.compile(r"ph(?=ur|on)"), "f"),
)
_MEDICAL = (
    (re.compile(r"(?:osis|oses|otic)$"), "os"),
    (re.compile(r"(?:emias?|emics?)$"), "em"),
    (re.compile(r"(?:itis|itides|itic)$"), "it"),
    (re.compile(r"(?:pneas?|pneics?)$"), "pne"),
    (re.compile(r"(?:urias?|urics?)$"), "ur"),
    (re.compile(r"(?:plasias?|plastics?)$"), "plas"),
    (re.compile(r"(?:ectomies|ectomy|ectomi[sz]ed)$"), "ectom"),
    (re.compile(r"(?:sclerosis|sclerotic)$"), "scler"),
)


class Token(NamedTuple):
    """One token.

    Attributes:
        text: as written (or as the abbreviation reads when spelled out).
        lower: lower case.
        start, end: half-open range in the *cleaned* text; all tokens of one abbreviation share its range.
        lemma: dictionary form, lower case, American spelling not applied.
        key: canonical form for aligning; "" for function words and punctuation.
    """

    text: str
    lower: str
    start: int
    end: int
    lemma: str
    key: str

    @property
    def is_number(self) -> bool:
        """Whether it starts with a digit."""
        return self.text[0].isdigit()


_STEMMED_WRONGLY = "worse worst better best lower upper aids testis testes medical left"
_AS_WRITTEN = frozenset(_STEMMED_WRONGLY.split())


@lru_cache(maxsize=65536)
def lemma_of(lower: str) -> str:
    """Dictionary form of a lower-cased word (simplemma); numbers, signs and overlong runs stay as they are."""
    if (
        len(lower) < 3
        or lower in _AS_WRITTEN
        or not lower[0].isalpha()
        or len(lower) > _LONGEST
        or not lower.isascii()
    ):
        return lower
    import simplemma

    return simplemma.lemmatize(lower, "en").lower()


@lru_cache(maxsize=65536)
def stem_of(lower: str) -> str:
    """The canonical stem of a lower-cased word, before synonyms; "" for function words and punctuation."""
    if lower in FUNCTION or not (lower[0].isalnum()):
        return ""
    if not lower[0].isalpha() or len(lower) > _LONGEST:
        return lower
    if lower in _AS_WRITTEN:
        return lower
    word = lemma_of(lower)
    for pattern, new in _SPELLING:
        word = pattern.sub(new, word)
    for pattern, new in _MEDICAL:
        shorter = pattern.sub(new, word)
        if shorter != word and len(shorter) >= 4:
            return shorter
    stem: str = _stemmer().stemWord(word)
    return stem[:-1] if len(stem) > 4 and stem.endswith("i") else stem


@lru_cache(maxsize=1)
def _stemmer() -> Any:
    import snowballstemmer

    return snowballstemmer.stemmer("english")
