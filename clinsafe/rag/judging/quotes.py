"""Does a quote stand in the contexts? A judge's evidence is looked up, not believed."""

from __future__ import annotations

import re
from collections.abc import Sequence

_EDGES = "\"'“”‘’«»"
_WORD = re.compile(r"[^\W_]")


def unverified(quotes: Sequence[str], contexts: Sequence[str]) -> list[int]:
    """Positions of the quotes that stand in no context; white space and case do not count.

    A quote stands at word boundaries in one context: "5 mg" is not in "15 mg". One without a word stands nowhere.
    """
    texts = [_plain(context) for context in contexts]
    return [i for i, quote in enumerate(quotes) if not any(_stands(_plain(quote), text) for text in texts)]


def _plain(text: str) -> str:
    return " ".join(text.split()).casefold()


def _stands(quote: str, text: str) -> bool:
    return any(_within(one, text) for one in dict.fromkeys((quote, quote.strip(_EDGES).strip())))


def _within(quote: str, text: str) -> bool:
    if not _WORD.search(quote):
        return False
    return re.search(rf"(?<![^\W_]){re.escape(quote)}(?![^\W_])", text) is not None
