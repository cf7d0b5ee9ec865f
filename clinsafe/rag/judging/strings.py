"""String rules of the local judge: cheap, blind to meaning, and never the only thing that is looked at.

They look at what a similarity of vectors is blind to. Each may only refuse support, none may give it.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from difflib import SequenceMatcher
from typing import NamedTuple

from clinsafe.text.tokens import stem_of

_NUMBER = re.compile(
    r"(?<![\w.,])(\d[\d,]*(?:\.\d+)?|\.\d+)(?:\s*-?\s*(%|[a-zµμ]+(?:/[a-z]+)?))?", re.IGNORECASE
)
_SCALES = {
    "kg": ("g", 1e3), "g": ("g", 1.0), "gram": ("g", 1.0), "mg": ("g", 1e-3), "mcg": ("g", 1e-6), "µg": ("g", 1e-6),
    "μg": ("g", 1e-6), "ug": ("g", 1e-6), "microgram": ("g", 1e-6), "milligram": ("g", 1e-3), "ng": ("g", 1e-9),
    "l": ("l", 1.0), "liter": ("l", 1.0), "litre": ("l", 1.0), "ml": ("l", 1e-3), "dl": ("l", 0.1),
    "min": ("h", 1 / 60), "minute": ("h", 1 / 60), "h": ("h", 1.0), "hr": ("h", 1.0), "hour": ("h", 1.0),
    "hourly": ("h", 1.0), "day": ("h", 24.0), "d": ("h", 24.0), "week": ("h", 168.0), "wk": ("h", 168.0),
    "month": ("month", 1.0), "mo": ("month", 1.0), "year": ("month", 12.0), "yr": ("month", 12.0), "y": ("month", 12.0),
    "%": ("%", 0.01), "percent": ("%", 0.01), "perday": ("/d", 1.0),
}  # fmt: skip
_SPELT_WORDS = """
two three four five six seven eight nine ten
second third fourth fifth sixth seventh eighth ninth tenth
"""
_SPELT = {
    word: str(number)
    for line in _SPELT_WORDS.strip().splitlines()
    for number, word in enumerate(line.split(), start=2)
    if word != "second"  # of time too
}
_AS_DIGITS = (
    (re.compile(r"\bhalf[\s-]an[\s-]hour\b", re.IGNORECASE), "30 minutes"),
    (re.compile(r"\bquarter[\s-]of[\s-]an[\s-]hour\b", re.IGNORECASE), "15 minutes"),
    (re.compile(r"\bhalf[\s-](?:a[\s-])?dozen\b", re.IGNORECASE), "6"),
    (re.compile(r"\b(?:a|one)\s+decade\b", re.IGNORECASE), "10 years"),
    (
        re.compile(
            r"\b(?:every|each)\s+(\d{1,3})\s*(?:hours?|hrs?|h)\b|\bq\s?(\d{1,3})\s?h\b|\b(\d{1,3})[\s-]hourly\b",
            re.IGNORECASE,
        ),
        "",
    ),
    (
        re.compile(r"\btwice\s+(?:a|per|each|every)?\s*da(?:y|ily)\b|\bb\.?i?\.?d\b", re.IGNORECASE),
        "2 perday",
    ),
    (
        re.compile(
            r"\b(?:three|3)\s+times\s+(?:a|per|each)?\s*da(?:y|ily)\b|\bt\.?[di]\.?[sd]\b", re.IGNORECASE
        ),
        "3 perday",
    ),
    (
        re.compile(
            r"\b(?:four|4)\s+times\s+(?:a|per|each)?\s*da(?:y|ily)\b|\bq\.?[di]\.?[sd]\b", re.IGNORECASE
        ),
        "4 perday",
    ),
    (re.compile(r"\bonce\s+(?:a|per|each|every)?\s*da(?:y|ily)\b|\bo\.?d\b", re.IGNORECASE), "1 perday"),
    (re.compile(r"\b\d{1,2}:\d{2}\b"), " "),  # the time of day is the temporal filter's
)
_NEGATION = re.compile(
    r"\b(?:no|not|never|none|neither|nor|without|cannot|absent|absence|negative|den(?:y|ies|ied)|lacks?|lacking|lost|untrue"
    r"|false|nobody|nothing|unlikely|free\s+of|fail(?:s|ed)?\s+to|rul(?:e[sd]?|ing)[\s-]out"
    r"|exclud\w*|contraindicat\w*|withh[eo]ld\w*|avoid\w*|afebrile|asymptomatic|unproven|unable|interrupt\w*|minority"
    r"|removed)\b|n['’]t\b|\bnon-|-free\b",
    re.IGNORECASE,
)
_CONTRAST = re.compile(
    r";|\b(?:but|however|although|though|whereas|while|except|despite|otherwise)\b", re.IGNORECASE
)
_SCOPE = re.compile(
    r"\?|\b(?:if|unless|whether|may|might|could|would|should|possibl[ey]|probabl[ey]|suspect\w*|question\w*|likely|belie\w+"
    r"|claim\w*|alleg\w*|myth|wrong\w*|incorrect\w*|mistak\w*|err(?:or|oneous)\w*|retract\w*|refut\w*|exclud\w*|disprov\w*|doubt\w*"
    r"|mother|father|brother|sister|family|relative|history|previous\w*|former\w*|past|hypothetical\w*|avoid\w*"
    r"|stop\w*|discontinu\w*|resolv\w*|rather\s+than|instead)\b",
    re.IGNORECASE,
)
_TAKEN_BACK = re.compile(
    r"\?|\b(?:refut\w*|retract\w*|disprov\w*|false|untrue|wrong|incorrect|mistaken|exclud\w*|ruled\s+out|myth|doubt\w*)\b",
    re.IGNORECASE,
)
_SPELT_WORD = re.compile(rf"\b({'|'.join(_SPELT)})\b", re.IGNORECASE)
_LONG, _STEM, _ALIKE = 7, 5, 0.70  # letters of a word and of its stem; ratio of two words that look alike
_ENDING_WORDS = """
s es d ed ing al um ment ments ous ic ical ly ion ions ation ations y ies ied e er ers ive ity ance ence able ible ia us
a ae i ism ist or is ary ate ated ates ating tion ant ent ting ted ally ful ness sis tic ular le les sion ze zed zes
"""
_ENDINGS = frozenset(("", *_ENDING_WORDS.split()))
_SPELLED = {
    "ae": "e",
    "oe": "e",
    "our": "or",
    "ise": "ize",
    "yse": "yze",
    "isation": "ization",
    "sulph": "sulf",
}
_SPELLINGS = re.compile("|".join(sorted(_SPELLED, key=len, reverse=True)))
_WORD = re.compile(r"[^\W\d_]{3,}")
_STOP_WORDS = """
the and for with was were has had have that this from are his her its she him they their been
"""
_STOP = frozenset(_STOP_WORDS.split())


class Quantity(NamedTuple):
    """A number as written, in the base unit of its kind, and that unit ("" for none known)."""

    written: float
    value: float
    unit: str

    def equals(self, other: Quantity) -> bool:
        """The same amount; a number without a unit equals any of the same figure."""
        if self.unit == other.unit:
            return self.value == other.value
        bare = not self.unit or not other.unit
        return bare and (self.written == other.written or self.value == other.value)


def numbers(text: str) -> frozenset[Quantity]:
    """Numbers with their units."""
    for pattern, digits in _AS_DIGITS:
        text = pattern.sub(digits or _per_day, text)
    text = _SPELT_WORD.sub(lambda match: _SPELT[match[1].lower()], text)
    return frozenset(_numbers(text))


def _per_day(match: re.Match[str]) -> str:
    hours = int(next(group for group in match.groups() if group))
    return f"{24 / hours:g} perday" if 0 < hours <= 24 else match[0]


def _numbers(text: str) -> Iterator[Quantity]:
    for match in _NUMBER.finditer(text):
        value, unit = float(match[1].replace(",", "") or 0), (match[2] or "").lower()
        head, _, per = unit.partition("/")
        base, factor = _scale(head)
        if per and base:
            below, divisor = _scale(per)
            base, factor = f"{base}/{below or per}", factor / divisor
        yield Quantity(value, float(f"{value * factor:.6g}"), base)


def _scale(unit: str) -> tuple[str, float]:
    return _SCALES.get(unit, _SCALES.get(unit.removesuffix("s"), ("", 1.0)))


def negated(text: str) -> bool:
    """Whether there is a word of denial."""
    return _NEGATION.search(text) is not None


def missing_number(claim: str, window: str) -> bool:
    """Whether the claim holds a number that the window does not, or holds with another unit."""
    there = numbers(window)
    return not all(any(one.equals(other) for other in there) for one in numbers(claim))


def other_polarity(claim: str, window: str) -> bool:
    """Whether just one of the two is denied, in the parts of the window that share words with the claim."""
    return negated(claim) != negated(_part(claim, window))


def _part(claim: str, window: str) -> str:
    wanted = content(claim)
    parts = [part for part in _CONTRAST.split(window) if part.strip()]
    best = [part for part in parts if wanted & content(part)]
    return " ; ".join(best or parts)


def content(text: str) -> frozenset[str]:
    """Stems of the words that carry meaning."""
    return frozenset(stem_of(w.lower()) for w in _WORD.findall(text) if w.lower() not in _STOP)


def look_alike(claim: str, window: str) -> bool:
    """Whether a long word of the claim is missing from the window, and one is there that looks like it.

    Hydralazine is not hydroxyzine, and hypo- is not hyper-; "smoking" and "smoked" share a stem, "anaemia" and "anemia"
    a spelling.
    """
    here, there = _long(claim), _long(window)
    mine = [word for key, word in here.items() if key not in there]
    others = [word for key, word in there.items() if key not in here]
    return any(_alike(one, other) for one in mine for other in others)


def _long(text: str) -> dict[str, str]:
    words = (_SPELLINGS.sub(lambda m: _SPELLED[m[0]], word.lower()) for word in _WORD.findall(text))
    return {stem_of(word): word for word in words if len(word) >= _LONG}


def _alike(one: str, other: str) -> bool:
    same = next(
        (i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other))
    )
    if any(one[cut:] in _ENDINGS and other[cut:] in _ENDINGS for cut in range(_STEM, same + 1)):
        return False  # forms of one word
    return SequenceMatcher(None, one, other, autojunk=False).ratio() >= _ALIKE


def literal(claim: str, window: str) -> bool:
    """Whether the claim stands in the window word for word, and nothing around it turns what it says.

    "It is not true that X." does not hold X: any denial, doubt, condition, other person or time outside the claim's
    own words speaks against it.
    """
    around = _around(claim, window)
    if around is None:
        return False
    outside = " ; ".join(around)
    return not negated(outside) and not _SCOPE.search(outside)


def turned(claim: str, window: str) -> bool:
    """Whether the claim stands in the window word for word, and what stands before or behind it turns what it says."""
    around = _around(claim, window)
    if around is None:
        return False
    before, behind = around
    return negated(before) or bool(_SCOPE.search(before)) or bool(_TAKEN_BACK.search(behind))


def _around(claim: str, window: str) -> tuple[str, str] | None:
    """What stands before and behind the claim; None where it does not stand there."""
    plain, text = _plain(claim), _plain(window)
    if not plain:
        return None
    match = re.search(rf"(?<![^\W_]){re.escape(plain)}(?![^\W_])", text)
    return (text[: match.start()], text[match.end() :]) if match else None


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold().strip(" .!\"'“”")
