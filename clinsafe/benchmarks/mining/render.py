"""What a rule puts in the place of what it found: slots filled, numbers reckoned, capitals and articles mended."""

from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import lru_cache
from typing import Any

from clinsafe.benchmarks.mining.pattern import NUMBER, Match, matches, possible
from clinsafe.benchmarks.mining.rules import SLOT, Rule, Verb
from clinsafe.benchmarks.mining.sentences import Parsed
from clinsafe.errors import MissingDependency

_VOWEL = re.compile(r"[aeiou]|hour|honest|heir", re.IGNORECASE)
_NOT_VOWEL = re.compile(r"eu|uni(?![nmd])|use|usu|one\b|once|ur[aei]", re.IGNORECASE)
_GRAMMAR = frozenset(("DET", "ADP", "PRON", "SCONJ", "CCONJ"))
_ARTICLES = frozenset(("the", "a", "an", "this", "these", "in", "of"))
_ARTICLE = re.compile(r"\b(a|an|A|An) ([A-Za-z][\w-]*)")


def apply(rule: Rule, sentence: Parsed, verbs: Mapping[str, Verb]) -> list[tuple[str, tuple[int, int]]]:
    """Every sentence that the rule makes, with the characters [start, end) of the old one that it replaced."""
    if not possible(rule.find, sentence) or not sentence.words.isdisjoint(
        word.lower() for word in rule.unless
    ):
        return []
    doc = sentence.doc
    made = []
    for match in matches(rule.find, sentence, verbs):
        filled = _fill(rule.put, match, doc, verbs)
        if filled is None:
            continue
        first, last = doc[match.start], doc[match.end - 1]
        start, end = first.idx, last.idx + len(last)
        text = _joined(doc.text[:start], filled, doc.text[end:], moved=_moved(rule, match, doc))
        if text != doc.text:
            made.append((text, (start, end)))
    return made


def _fill(put: str, match: Match, doc: Any, verbs: Mapping[str, Verb]) -> str | None:
    failed = False

    def slot(found: re.Match[str]) -> str:
        nonlocal failed
        value = _slot(found["body"], match, doc, verbs)
        failed = failed or value is None
        return value or ""

    text = SLOT.sub(slot, put)
    return None if failed else text


def _slot(body: str, match: Match, doc: Any, verbs: Mapping[str, Verb]) -> str | None:
    if body.startswith("is "):
        return _be(doc, match, body[3:])
    for sign in "*/+":
        name, found, number = body.partition(sign)
        if found:
            return _reckoned(_text(doc, match, name), sign, Decimal(number))
    name, dot, form = body.partition(".")
    text = _text(doc, match, name)
    if dot:
        verb = verbs.get(text.lower())
        return None if verb is None else str(getattr(verb, form))
    return text


def _text(doc: Any, match: Match, name: str) -> str:
    start, end = match.kept.get(name, (0, 0))
    text = str(doc[start:end].text)
    if start == 0 and end and match.start == 0 and not _keeps_capital(doc[0]):
        text = text[0].lower() + text[1:]  # the sentence's own capital comes back when the parts are joined
    return text


def _keeps_capital(token: Any) -> bool:
    """Names and abbreviations keep it: a proper noun that is no English word, or what stands before a capital."""
    if len(token.text) > 1 and not token.text[1:].islower():
        return True
    if token.pos_ in _GRAMMAR or token.lower_ in _ARTICLES:
        return False
    following = token.nbor().text if token.i + 1 < len(token.doc) else ""
    if following == "-" and token.i + 2 < len(token.doc):
        following = token.nbor(2).text
    return bool(following[:1].isupper() or (token.pos_ == "PROPN" and not _is_word(token.lower_)))


@lru_cache(maxsize=4096)
def _is_word(text: str) -> bool:
    try:
        import simplemma
    except ImportError as error:
        raise MissingDependency("mining a suite", "simplemma", "pip install 'clinsafe[mine]'") from error
    return bool(simplemma.is_known(text, lang="en"))


def _be(doc: Any, match: Match, name: str) -> str:
    start, end = match.kept[name]
    nouns = [t for t in doc[start:end] if t.pos_ in ("NOUN", "PROPN")]
    root = doc[start:end].root
    joined = any(child.dep_ == "conj" and child.i < end for child in root.children)
    plural = joined or root.tag_ in ("NNS", "NNPS") or (not nouns and root.tag_ == "CD")
    past = any(t.tag_ == "VBD" for t in doc[match.start : match.end])
    return ("were" if plural else "was") if past else ("are" if plural else "is")


def _reckoned(text: str, sign: str, number: Decimal) -> str | None:
    if NUMBER.fullmatch(text) is None:
        return None
    value = Decimal(text.replace(",", ""))
    result = value * number if sign == "*" else value / number if sign == "/" else value + number
    result = result.quantize(Decimal("0.0001")).normalize()
    if not result or (sign == "/" and abs(result * number - value) > Decimal("0.0005") * value):
        return None
    plain = f"{result:f}"
    return f"{int(plain):,}" if "," in text and "." not in plain else plain


def _moved(rule: Rule, match: Match, doc: Any) -> bool:
    """Whether the sentence's first word stands elsewhere now, or something else comes first."""
    return match.start == 0 and bool(doc[0].text[:1].isupper()) and bool(rule.put)


def _joined(before: str, middle: str, after: str, *, moved: bool) -> str:
    left, right = re.search(r"\S*\s*$", before), re.match(r"\s*\S*", after)
    low, high = left.start() if left else len(before), right.end() if right else 0
    # only what stands at the seam was changed, and is mended
    seam = re.sub(r"\(\s+", "(", before[low:] + middle + after[:high])
    seam = _ARTICLE.sub(_article, re.sub(r"\s+([,.;:)])", r"\1", seam))
    seam = re.sub(r",\s*([,.;])", r"\1", re.sub(r"(?<=\d)\s+%", "%", seam))
    text = " ".join((before[:low] + seam + after[high:]).split())
    return text[0].upper() + text[1:] if moved else text


def _article(found: re.Match[str]) -> str:
    article, word = found[1], found[2]
    if word.isupper():
        return found[0]  # an abbreviation is spelled out or not, nobody can tell
    vowel = bool(_VOWEL.match(word)) and not _NOT_VOWEL.match(word)
    right = "an" if vowel else "a"
    return f"{right.capitalize() if article[0] == 'A' else right} {word}"
