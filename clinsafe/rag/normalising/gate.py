"""The words of a text as a set to look into: most texts are told from it to hold nothing that a step reads."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

# Letters stay in lower case, all else becomes a space: "65yo," holds the word "yo".
_TABLE = bytes(ord(chr(byte).lower()) if byte < 128 and chr(byte).isalpha() else 32 for byte in range(256))
_ASCII = bytes(range(128))
_PIECE = re.compile(r"[a-z]+")


def beyond_ascii(text: str) -> str:
    """The characters outside of ASCII, in their order: found much faster than by a pattern."""
    raw = text.encode("utf-8", "surrogatepass")
    return raw.translate(None, _ASCII).decode("utf-8", "surrogatepass")


def lowered(text: str) -> str:
    """Lower case, one character for each, so that places stay what they are."""
    if text.isascii():
        return text.lower()
    raw = text.encode("utf-8", "surrogatepass")
    odd = raw.translate(None, _ASCII).decode("utf-8", "surrogatepass")
    if odd.lower() == odd:  # signs and small letters: then those of ASCII are all there is to do
        return raw.lower().decode("utf-8", "surrogatepass")
    low = text.lower()
    if len(low) != len(text):
        low = "".join(letter.lower() if len(letter.lower()) == 1 else letter for letter in text)
    return low


def in_word(letter: str) -> bool:
    """Whether a character is part of a word: a letter, a digit, ``_``, a mark on a letter."""
    return letter.isalnum() or letter == "_" or unicodedata.combining(letter) > 0


def pieces(text: str) -> list[bytes]:
    """Runs of ASCII letters, in lower case; a letter that gets into ASCII by that has to be lowered before."""
    return text.encode("ascii", "replace").translate(_TABLE).split()


def beginnings(text: str, words: Iterable[str]) -> list[int]:
    """Where any of the words begins, also within another word, in order: plain search is faster than a pattern."""
    found = set()
    for word in words:
        at = text.find(word)
        while at >= 0:
            found.add(at)
            at = text.find(word, at + 1)
    return sorted(found)


def telling(word: str) -> bytes | None:
    """The piece of a word by which it is looked for: its longest, None where that is a single letter."""
    found = max(_PIECE.findall(word.lower()), key=len, default="")
    return found.encode() if len(found) > 1 else None


def gate(words: Iterable[str]) -> frozenset[bytes]:
    """The telling pieces of these words."""
    return frozenset(piece for word in words if (piece := telling(word)) is not None)
