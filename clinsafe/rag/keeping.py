"""What is kept of texts, names and ids: none of the words, unless texts are asked for (decision D11)."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from clinsafe.rag.trace import TraceText

Digest: TypeAlias = Callable[[str], str]
_CODE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.:/+@#~=-]{0,127}")
_MADE = "unnamed-"  # an id that was made from a passage's text: a plain hash, which can be guessed


@dataclass(frozen=True, slots=True)
class Kept:
    """What is kept of a text.

    Attributes:
        texts: whether texts, sources and free words are written.
        digest: keyed hash of a text; None writes none.
    """

    texts: bool = False
    digest: Digest | None = None

    def text(self, text: str) -> TraceText:
        """A text as it may be written."""
        hmac = self.digest(text) if self.digest is not None else None
        return TraceText(length=len(text), hmac=hmac, text=_writable(text) if self.texts else None)

    def code(self, word: Any) -> str:
        """A name, version or slice; what does not look like one may be a text, and is written as ``other``."""
        word = _writable(str(word))[:200]
        return word if _CODE.fullmatch(word) or (self.texts and word) else "other"

    def id(self, name: str, place: int) -> str:
        """A passage's id; one that may be or may tell a text is hashed, or without a key becomes its place."""
        if self.texts and name:
            return _writable(name)[:200]
        plain = 0 < len(name) <= 128 and name.isprintable() and not any(letter.isspace() for letter in name)
        if plain and not name.startswith((_MADE, "hmac:", "hidden-")):
            return name
        return f"hmac:{self.digest(name)}" if self.digest is not None else f"hidden-{place}"


def _writable(text: str) -> str:
    return text.encode("utf-8", "replace").decode()  # a lone surrogate cannot be written
