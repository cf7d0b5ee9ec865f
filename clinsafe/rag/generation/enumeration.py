"""Lists within a sentence: "The risk factors include a, b and c", "a; b; c". Where in doubt, a sentence is no list.

What leads in is no component, but where it denies ("do not include") every component is denied. Commas in numbers,
in brackets and before what belongs to the component before ("500 mg, twice daily") do not split; nor do "and" and "or"
between two numbers, after "between" and "either", in fixed names, or where there is neither a comma nor a lead-in.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache

from clinsafe.rag.generation.surface import words_of
from clinsafe.rag.generation.words import GenerationWords, any_of

LONGEST_ITEM = 12  # words of a component of a sentence; a longer one is a clause
LONGEST_BARE = 8  # the same where nothing leads in
_MONTH = re.compile(
    r"\b(?:jan|feb|mar|apr|may|jun|jul|aug|sep|sept|oct|nov|dec)[a-z]*\.?\s+\d{1,2}\s*$", re.IGNORECASE
)
_YEAR = re.compile(r"\s*(?:1[89]|20)\d\d\b")
_COMMA = re.compile(r",(?!\d{3}(?!\d))(?=\s|$)|,(?=[^\W\d_])")
_JOIN = re.compile(r"\s+(?:and|or|&|as well as)\s+", re.IGNORECASE)
_FIRST_JOIN = re.compile(r"\s*(?:and also|and|or|nor|&|as well as)\s+", re.IGNORECASE)
_OR = re.compile(r"\s*(?:or|nor)\b", re.IGNORECASE)
_LAST_JOIN = re.compile(r"\s+(?:and|or)\s*$", re.IGNORECASE)
_BOTH = re.compile(r"\s*both\s+", re.IGNORECASE)
_DENIES = re.compile(r"(?:no|without|denies|denied|absence of|negative for)\s+", re.IGNORECASE)
_OWN = re.compile(r"(?:no|not|without|never)\b", re.IGNORECASE)
_DIGIT_END, _DIGIT_START = re.compile(r"\d\S*\s*$"), re.compile(r"\s*[<>≥≤]?\s*\d")
_EDGES = " \t\n.,;:"
_LETTERS = re.compile(r"[^\W\d_]+")
_FIRST = re.compile(r"[^,;(\[]*")
_HOLE = "\x00"


@dataclass(frozen=True, slots=True)
class _Patterns:
    cues: frozenset[str]
    nouns: frozenset[str]
    copulas: frozenset[str]
    phrases: tuple[str, ...]
    lead: re.Pattern[str]
    closing: re.Pattern[str]
    clause: re.Pattern[str]
    joins: re.Pattern[str]
    ends: re.Pattern[str]
    kept: re.Pattern[str]
    opens: re.Pattern[str]
    or_more: re.Pattern[str]
    denied: re.Pattern[str]


def enumerated(sentence: str, words: GenerationWords) -> list[str]:
    """Components of a sentence in order, at least two; [] where it is no list. Linear in the sentence."""
    if not any(sign in sentence for sign in ",;:") and not _JOIN.search(sentence):
        return []
    patterns = _patterns(words)
    text = " ".join(sentence.split()).rstrip(" .")
    low = text.lower()
    said = words_of(low)
    framed = ":" in text or not said.isdisjoint(patterns.cues)
    framed = framed or not (said.isdisjoint(patterns.nouns) or said.isdisjoint(patterns.copulas))
    if not framed:
        # Without a lead-in it is a list of short phrases or none: no need to look closer at a sentence.
        first = _FIRST.match(low)
        if first and (len(first.group().split()) > LONGEST_BARE or patterns.clause.search(first.group())):
            return []
    hidden = _hide(text, patterns)
    lead, start, stop = _frame(hidden, patterns) if framed else (None, 0, len(hidden))
    parts = _parts(hidden, start, stop, lead is not None, patterns)
    items = [_LAST_JOIN.sub("", text[a:b]).strip(_EDGES) for a, b in parts]
    masked = [hidden[a:b] for a, b in parts]
    if len(items) < 2 or not all(items) or not _plausible(masked, lead is not None, patterns):
        return []
    return _denied(items, hidden, parts, patterns.denied.search(lead or "") is not None)


def _hide(text: str, patterns: _Patterns) -> str:
    """The same length, with holes where nothing may split: brackets, fixed names."""
    hidden = text
    if ("(" in text or "[" in text) and sum(map(text.count, "([")) == sum(map(text.count, ")]")):
        signs, depth = list(text), 0
        for at, sign in enumerate(text):
            depth += sign in "(["
            if depth > 0:
                signs[at] = _HOLE
            depth -= sign in ")]" and depth > 0
        hidden = "".join(signs)
    low = hidden.lower()
    if not any(phrase in low for phrase in patterns.phrases):
        return hidden
    return patterns.kept.sub(lambda match: _HOLE * len(match.group()), hidden)


def _frame(hidden: str, patterns: _Patterns) -> tuple[str | None, int, int]:
    """(what leads in or closes, None for nothing; where the components begin and end)."""
    colon = re.search(r":(?=\s)", hidden)
    if colon and colon.end() < len(hidden):
        return hidden[: colon.start()], colon.end(), len(hidden)
    closing = patterns.closing.search(hidden)
    if closing:
        return closing.group(), 0, closing.start()
    lead = patterns.lead.search(hidden)
    if lead and lead.end() < len(hidden):
        return hidden[: lead.end()], lead.end(), len(hidden)
    return None, 0, len(hidden)


def _parts(hidden: str, start: int, stop: int, led: bool, patterns: _Patterns) -> list[tuple[int, int]]:
    if ";" in hidden[start:stop]:
        parts = _pieces(hidden, start, stop, re.compile(";"))
        joined = _FIRST_JOIN.match(hidden, *parts[-1]) is not None
        if not (led or joined or len(parts) > 2):
            return []
        return [_without_join(hidden, part) for part in parts if hidden[slice(*part)].strip()]
    parts = _attached(hidden, _pieces(hidden, start, stop, _COMMA), patterns)
    last = parts[-1]
    if _FIRST_JOIN.match(hidden, *last) and len(parts) > 1:
        # With a comma before it, the last "and" is the list's, and one further on belongs to a name.
        whole = [*parts[:-1], _without_join(hidden, last)]
        return whole if led or len(whole) > 2 else []
    cut = _last_join(hidden, last, patterns)
    if cut is None:
        return parts if (led and len(parts) > 1) or len(parts) > 2 else []
    if len(parts) == 1 and not led:
        return []
    return [*parts[:-1], (last[0], cut[0]), (cut[1], last[1])]


def _pieces(hidden: str, start: int, stop: int, sign: re.Pattern[str]) -> list[tuple[int, int]]:
    found, begin = [], start
    for match in sign.finditer(hidden, start, stop):
        found.append((begin, match.start()))
        begin = match.end()
    found.append((begin, stop))
    if len(found) > 1 and not hidden[slice(*found[-1])].strip():
        found.pop()
    return found


def _attached(hidden: str, parts: list[tuple[int, int]], patterns: _Patterns) -> list[tuple[int, int]]:
    """Pieces that belong to the one before are put to it; from a clause on the list has ended."""
    found: list[tuple[int, int]] = []
    for a, b in parts:
        if found and patterns.ends.match(hidden, a, b):
            break
        year = _YEAR.match(hidden, a, b) and found and _MONTH.search(hidden[max(0, a - 20) : found[-1][1]])
        if found and (year or patterns.joins.match(hidden, a, b)):
            found[-1] = (found[-1][0], b)
        else:
            found.append((a, b))
    return found


def _without_join(hidden: str, part: tuple[int, int]) -> tuple[int, int]:
    match = _FIRST_JOIN.match(hidden, *part)
    return (match.end(), part[1]) if match else part


def _last_join(hidden: str, part: tuple[int, int], patterns: _Patterns) -> tuple[int, int] | None:
    """The conjunction before the last component; None where each of them belongs to a name or a range."""
    found = None
    for match in _JOIN.finditer(hidden, *part):
        before, after = hidden[part[0] : match.start()], hidden[match.end() : part[1]]
        numbers = _DIGIT_END.search(before[-20:]) and _DIGIT_START.match(after)
        bare = re.fullmatch(r"\s*[\d.,]+\s*", before[-8:].split()[-1] if before.split() else "")
        if (numbers and bare) or patterns.or_more.match(after) or patterns.opens.search(before):
            continue
        found = match.span()
    return found


def _plausible(masked: list[str], led: bool, patterns: _Patterns) -> bool:
    longest = LONGEST_ITEM if led else LONGEST_BARE
    return all(len(item.split()) <= longest and not patterns.clause.search(item) for item in masked)


def _denied(items: list[str], hidden: str, parts: list[tuple[int, int]], lead: bool) -> list[str]:
    """ "No fever, cough or rash" denies all three, and so does a lead-in that denies."""
    items = [_BOTH.sub("", item) if at == 0 else item for at, item in enumerate(items)]
    if lead:
        return [f"not {item}" for item in items]
    first = _DENIES.match(items[0])
    gap = hidden[parts[-2][1] : parts[-1][0]].strip(" ,;")
    if first and _OR.match(gap):
        return [items[0], *(item if _OWN.match(item) else f"{first.group()}{item}" for item in items[1:])]
    return items


def _told(words: tuple[str, ...]) -> frozenset[str]:
    """The longest word of each, by which it is looked for before any pattern."""
    return frozenset(max(_LETTERS.findall(word.lower()), key=len) for word in words)


@lru_cache(maxsize=8)
def _patterns(words: GenerationWords) -> _Patterns:
    w = words.lists
    flags = re.IGNORECASE

    def first(listed: tuple[str, ...]) -> re.Pattern[str]:
        return re.compile(rf"\s*(?:and\s+|or\s+)?{any_of(listed)}(?![\w-])", flags)

    noun, copula = any_of(w.nouns), any_of(w.copulas)
    return _Patterns(
        cues=_told(w.lead_ins),
        nouns=_told(w.nouns),
        copulas=_told(w.copulas),
        phrases=tuple(phrase.lower() for phrase in w.kept),
        lead=re.compile(
            rf"\b(?:{any_of(w.lead_ins)}|{noun}(?:\s+\w+){{0,6}}?\s+{copula}(?:\s+not)?)(?:\s+the\s+following)?\b(?=\s)",
            flags,
        ),
        closing=re.compile(rf"(?<=\s){copula}\s+(?:\w+\s+){{0,4}}?{noun}\b[^,;:]*$", flags),
        # "May 9" is a date.
        clause=re.compile(rf"(?<![\w-]){any_of(w.clause_words)}(?![\w-])(?!(?<=may)\s\d)", flags),
        joins=first(w.joins),
        ends=re.compile(rf"\s*(?:and\s+|or\s+)?{any_of(w.ends)}(?![\w-])", flags),
        kept=re.compile(rf"(?<![\w-]){any_of(w.kept)}(?![\w-])", flags),
        opens=re.compile(rf"\b{any_of(w.opens)}\b[^,;]*$", flags),
        or_more=re.compile(rf"\s*{any_of(w.or_more)}(?![\w-])", flags),
        denied=re.compile(rf"(?<![\w-]){any_of(w.denied)}(?![\w-])|n['’]t\b", flags),
    )
