"""may, might and could: a doubt ("may represent"), or a permission, plan or ability ("may be given")?"""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.certainty.lexicon import Lexicon
from clinsafe.text.tokens import Token

_FAR = 4
_BETWEEN = frozenset(["not", "also", "well", "still", "even", "indeed", "yet", "only", "in", "fact"])


def states_something(tokens: Sequence[Token], index: int, lexicon: Lexicon) -> int:
    """Where the verb group ends if the modal at `index` doubts a statement, else 0 (May the month, "may be given")."""
    at = _verb(tokens, index + 1)
    if at is None:
        return 0
    verb = tokens[at]
    if verb.lower == "be":
        after = _verb(tokens, at + 1)
        if after is not None and tokens[after].lower in lexicon.permits:
            return 0
        return at + 1
    known = verb.lower in lexicon.states
    if tokens[index].lower in lexicon.strict:
        return at + 1 if known else 0
    return at + 1 if verb.lower == verb.lemma and verb.text.isalpha() else 0


def _verb(tokens: Sequence[Token], start: int) -> int | None:
    """The next word that is no adverb."""
    for at in range(start, min(start + _FAR, len(tokens))):
        lower = tokens[at].lower
        if not lower.isalpha():
            return None
        if not (lower.endswith("ly") or lower in _BETWEEN):
            return at
    return None
