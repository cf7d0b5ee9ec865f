"""A plausibility score: how usual the words at the seam of an edit are in the corpus itself.

Trigrams with stupid backoff (Brants et al., 2007): log10 of count ratios, factor 0.4 a step back. Compared are the
places that differ from the source sentence, so a rare topic does not count against a sentence, only what the edit
made of it.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from difflib import SequenceMatcher

from clinsafe.text import words

_BACKOFF = math.log10(0.4)
_ORDER = 3
LARGEST = 3_000_000  # words that are counted; more would change little and cost memory


class Plausibility:
    """Word statistics of a corpus.

    Words that it holds once or never count as one word, ``<unk>``: a cue that is rare is not nonsense for that.

    Args:
        texts: sentences; counting stops after `LARGEST` words.
    """

    def __init__(self, texts: Iterable[str]) -> None:
        rows, total = [], 0
        for text in texts:
            rows.append(_padded(words(text)))
            total += len(rows[-1])
            if total > LARGEST:
                break
        seen = Counter(word for row in rows for word in row)
        self._known = frozenset(word for word, count in seen.items() if count > 1)
        self._counts: Counter[tuple[str, ...]] = Counter()
        self.total = total
        for row in rows:
            usual = self._usual(row)
            for n in range(1, _ORDER + 1):
                self._counts.update(zip(*(usual[i:] for i in range(n)), strict=False))

    def delta(self, source: str, edited: str) -> float:
        """log10 score a word of the places of `edited` that differ from `source`, less that of what stood there.

        0: as usual as the source; -2: a hundredth as usual. Higher is better.
        """
        old, new = self._usual(_padded(words(source))), self._usual(_padded(words(edited)))
        gone, come = list[int](), list[int]()
        for tag, i1, i2, j1, j2 in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
            if tag != "equal":
                gone += range(i1, min(len(old), i2 + _ORDER - 1))
                come += range(j1, min(len(new), j2 + _ORDER - 1))
        if not come:
            return 0.0
        return self._mean(new, come) - self._mean(old, gone or come)

    def _usual(self, row: Sequence[str]) -> list[str]:
        return [word if word in self._known else "<unk>" for word in row]

    def _mean(self, row: Sequence[str], places: Iterable[int]) -> float:
        scores = [self._score(row, at) for at in dict.fromkeys(places) if at < len(row)]
        return sum(scores) / len(scores) if scores else 0.0

    def _score(self, row: Sequence[str], at: int) -> float:
        penalty = 0.0
        for n in range(_ORDER, 1, -1):
            if at - n + 1 >= 0:
                gram = tuple(row[at - n + 1 : at + 1])
                if count := self._counts[gram]:
                    return penalty + math.log10(count / self._counts[gram[:-1]])
            penalty += _BACKOFF
        return penalty + math.log10((self._counts[(row[at],)] or 0.1) / max(1, self.total))


def _padded(row: Sequence[str]) -> list[str]:
    # A number is as usual as any other; its digits are not.
    return ["<s>", *("<n>" if word[0].isdigit() else word for word in row), "</s>"]
