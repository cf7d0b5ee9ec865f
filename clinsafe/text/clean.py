"""Clean-up that keeps offsets: one spelling for each sign, and the way back to the original text.

NFKC would turn µ into the Greek μ and 10⁹ into 109, so the map is our own: signs with several code points get one,
superscripts become ``^9``, invisible characters go. Every cleaned position maps back to the original text.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from dataclasses import dataclass, field

from clinsafe.protocols import Span

_ONE = {
    "μ": "µ", "’": "'", "‘": "'", "‛": "'", "´": "'", "ʼ": "'", "′": "'",
    "“": '"', "”": '"', "„": '"', "″": '"', "«": '"', "»": '"',
    "‐": "-", "‑": "-", "‒": "-", "–": "-", "−": "-", "﹣": "-", "－": "-",
    "\u00a0": " ", "\u2007": " ", "\u2009": " ", "\u200a": " ", "\u202f": " ", "\u2002": " ", "\u2003": " ",
    "\u3000": " ", "\t": " ", "\r": "\n", "\x0b": "\n", "\x0c": "\n", "\u2028": "\n", "\u2029": "\n", "\x85": "\n",
    "×": "x", "✕": "x", "·": ".", "∙": ".", "％": "%", "／": "/", "⁄": "/", "∕": "/", "：": ":", "；": ";",
    "，": ",", "≧": "≥", "⩾": "≥", "≦": "≤", "⩽": "≤", "Ω": "Ω", "℃": "°C", "℉": "°F", "º": "°", "˚": "°",
    "…": "...", "ﬁ": "fi", "ﬂ": "fl", "ﬀ": "ff", "½": " 1/2", "¼": " 1/4", "¾": " 3/4", "⅓": " 1/3", "⅔": " 2/3",
    "⅛": " 1/8", "—": " — ", "•": "•", "◦": "•", "▪": "•", "●": "•", "‣": "•",
    "\u200b": "", "\u200c": "", "\u200d": "", "\ufeff": "", "\u00ad": "", "\u2060": "",
}  # fmt: skip
_SUPER = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+", strict=True))
_SUB = dict(zip("₀₁₂₃₄₅₆₇₈₉", "0123456789", strict=True))
_SIGNS = "".join(re.escape(sign) for sign in _ONE)
_NEEDS = re.compile(
    rf"(?P<super>[{''.join(_SUPER)}]+)|(?P<sub>[{''.join(_SUB)}])|(?P<one>[{_SIGNS}])"
    r"|(?P<cannot>\bcan(?:not|n?['’‘ʼ´′]t)\b)|(?P<wont>\b(?:wo|sha)n['’‘ʼ´′]t\b)|(?P<nt>(?<=[a-z])n['’‘ʼ´′]t\b)",
    re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Cleaned:
    """The cleaned text and the way back.

    Attributes:
        text: cleaned characters; contractions of *not* are spelled out.
        original: the text as given.
    """

    text: str
    original: str
    _clean: tuple[int, ...] = field(repr=False, default=(0,))
    _source: tuple[int, ...] = field(repr=False, default=(0,))
    _same: tuple[bool, ...] = field(repr=False, default=(True,))

    def span(self, start: int, end: int) -> Span:
        """The original characters behind cleaned ``[start, end)``; a replaced sign counts as a whole."""
        if len(self._clean) == 1:  # nothing was replaced
            return Span(start, max(start, end))
        return Span(self._at(start, False), max(self._at(end, True), self._at(start, False)))

    def _at(self, position: int, end: bool) -> int:
        index = bisect_right(self._clean, position) - 1
        if end and index > 0 and self._clean[index] == position:
            index -= 1  # the end of a segment belongs to the segment it closes
        if self._same[index]:
            return self._source[index] + position - self._clean[index]
        if position == self._clean[index]:
            return self._source[index]
        return self._source[index + 1] if end and index + 1 < len(self._source) else self._source[index]


def clean(text: str) -> Cleaned:
    """Clean a text in one pass; linear in its length."""
    parts: list[str] = []
    starts, sources, same = [0], [0], [True]
    at = done = 0
    for match in _NEEDS.finditer(text):
        new = _replacement(match)
        if new == match.group():
            continue
        kept = text[done : match.start()]
        parts += [kept, new]
        at += len(kept)
        starts += [at, at + len(new)]
        sources += [match.start(), match.end()]
        same += [False, True]
        at += len(new)
        done = match.end()
    parts.append(text[done:])
    return Cleaned("".join(parts), text, tuple(starts), tuple(sources), tuple(same))


def _replacement(match: re.Match[str]) -> str:
    found = match.group()
    if match["super"]:
        return "^" + "".join(_SUPER[sign] for sign in found)
    if match["sub"]:
        return _SUB[found]
    if match["cannot"]:
        return "CAN NOT" if found.isupper() else "can not"
    if match["wont"]:
        return "will not" if found[0] in "wW" else "shall not"
    if match["nt"]:
        return " not"
    return _ONE.get(found, found)
