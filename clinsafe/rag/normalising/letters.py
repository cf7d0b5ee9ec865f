"""Case, and the spelling of signs: NFKC, one kind of dash, quote and space.

NFKC alone would turn 10⁹ into 109 and 1½ into 11/2; a superscript number becomes ``^9``, a fraction gets its space.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from dataclasses import dataclass

from clinsafe.rag.normalising.gate import beginnings, beyond_ascii, gate, lowered
from clinsafe.rag.normalising.wordlist import any_of

_SIGNS = {
    **dict.fromkeys("’‘‛´ʼ′`", "'"), **dict.fromkeys("“”„‟″«»", '"'), **dict.fromkeys("‐‑‒–−﹣－", "-"),
    "—": " - ", "―": " - ", "⁄": "/", "∕": "/", "⩾": "≥", "≧": "≥", "⩽": "≤", "≦": "≤",
    **dict.fromkeys("\u200b\u200c\u200d\ufeff\u00ad\u2060", ""),
}  # fmt: skip
_SUPER = dict(zip("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+", strict=True))
_FRACTIONS = "½¼¾⅓⅔⅛⅜⅝⅞⅕⅖⅗⅘⅙⅚"
_ODD = re.compile(f"[{''.join(_SUPER)}{_FRACTIONS}{re.escape(''.join(_SIGNS))}]+")
_ODD_SIGNS = frozenset((*_SIGNS, *_SUPER, *_FRACTIONS))
_RAISED = frozenset((*_SUPER, *_FRACTIONS))
_PRINTED = bytes(range(32, 127))
_TWO = "\u0130"  # the only letter whose lower case is two characters: `lowered` leaves it
_ROUNDS = 5  # NFKC may bring a sign back once; more never happened


def tidy(text: str) -> str:
    """One spelling for each sign, one space between words, none around the text."""
    if not text.isascii():
        text = _signs(text)
    elif "`" in text:
        text = text.replace("`", "'")
    return text if _is_spaced(text) else " ".join(text.split())


def _is_spaced(text: str) -> bool:
    """Whether there is nothing to be done about the spaces of a text: looked at much faster than done."""
    if "\n" in text or "  " in text or text[:1] == " " or text[-1:] == " ":
        return False
    if text.isascii():
        return not text.encode().translate(None, _PRINTED)
    return text.isprintable()  # any other space is not


def _signs(text: str) -> str:
    for _ in range(_ROUNDS):
        odd = _ODD_SIGNS.intersection(beyond_ascii(text))
        if not odd.isdisjoint(_RAISED):
            plain = _ODD.sub(_plain, text)
        else:
            plain = text.replace("`", "'")
            for sign in odd:
                plain = plain.replace(sign, _SIGNS[sign])
        text = unicodedata.normalize("NFKC", plain)
        if text is plain or _ODD.search(text) is None:  # a fraction is none any more
            break
    return text


def _plain(match: re.Match[str]) -> str:
    parts, raised = [], False
    before = match.string[match.start() - 1 : match.start()]
    for sign in match.group():
        if sign in _FRACTIONS:  # 1½ is not 11/2
            parts.append(f" {sign}" if before.isdigit() else sign)
        elif sign in _SUPER:
            new = _SUPER[sign]
            parts.append(
                new if raised or not (new.isdigit() or _begins_number(match.group(), sign)) else f"^{new}"
            )
        else:
            parts.append(_SIGNS[sign])
        raised, before = sign in _SUPER, sign
    return "".join(parts)


def _begins_number(run: str, sign: str) -> bool:
    """Whether a raised plus or minus has a raised digit behind it: 10⁻⁹, not K⁺."""
    behind = run[run.index(sign) + 1 :][:1]
    return behind in _SUPER and _SUPER[behind].isdigit()


@dataclass(frozen=True, slots=True)
class LowerCase:
    """Lower case, but for words whose capitals tell them from another word.

    Attributes:
        gate: pieces of which a text must hold one to be looked at closely.
    """

    gate: frozenset[bytes]
    _kept: re.Pattern[str]
    _as_written: frozenset[str]
    _lower_only: frozenset[str]
    _beginnings: tuple[str, ...]

    def lower(self, text: str, low: str, hits: AbstractSet[bytes]) -> str:
        """The text in lower case.

        Args:
            text: as written.
            low: its lower case, of the same length.
            hits: its pieces, at least those of `gate`.
        """
        if hits.isdisjoint(self.gate) and not any(word in text for word in self._as_written):
            return low if low.isascii() else _settled(text, low)
        parts, done, past = [], 0, 0
        for start in beginnings(low, self._beginnings):
            match = self._kept.match(low, start) if start >= past else None
            if match is None:
                continue
            past = match.end()
            word = text[start:past]
            if word in self._as_written or (word != word.lower() and word.lower() in self._lower_only):
                parts += [_settled(text[done:start]), word]
                done = past
        parts.append(_settled(text[done:]))
        return "".join(parts)


def lower_case(lower_only: Iterable[str], as_written: Iterable[str]) -> LowerCase:
    """A step.

    Args:
        lower_only: words that mean something else in any other case (``mets``).
        as_written: words that mean something else in lower case (``MEN``).
    """
    lower, written = frozenset(lower_only), frozenset(as_written)
    words = sorted(lower | {word.lower() for word in written})
    kept = re.compile(rf"(?<!\w){any_of(words)}(?!\w)")
    return LowerCase(gate(lower), kept, written, lower, tuple(word.split()[0] for word in words))


def _settled(text: str, low: str | None = None) -> str:
    """Lower case that stays the same when it is made again, signs included.

    Args:
        text: as written.
        low: what `lowered` makes of it, where it is known.
    """
    if low is None or _TWO in low:
        low = _lower(text)
    if not low.isascii() and unicodedata.is_normalized("NFKC", text):
        for _ in range(_ROUNDS):
            again = _lower(unicodedata.normalize("NFKC", low))
            if again == low:
                break
            low = again
    return low


def _lower(text: str) -> str:
    """`str.lower`, faster for a few signs among ASCII."""
    return text.lower() if _TWO in text else lowered(text)
