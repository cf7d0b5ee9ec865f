"""Words outside its own part that a share speaks of: a heading, the sentence before, a set counted elsewhere."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.quantity_words.content import Keys, keys_of
from clinsafe.mitigations.quantity_words.lexicon import Lexicon
from clinsafe.mitigations.quantity_words.line import Found, Line
from clinsafe.mitigations.quantity_words.sides import mass
from clinsafe.text.reading import Sentence

_LABEL = 9  # tokens of a heading before a colon
_LONG = 30  # tokens of a sentence that is no mere opening of the next
_SET = 5  # tokens that name a set after its size
_THIN = 4.0  # weight of a statement that needs its heading
_ENDS = frozenset([",", ";", ":", "(", ")", ".", "and", "was", "were", "had", "are"])


def joined(keys: Keys, more: Keys) -> Keys:
    """Both; what the first says of a key holds."""
    return Keys(keys.keys | more.keys, keys.minus | (more.minus - keys.keys), keys.words + more.words)


def headed(
    line: Line, parts: Sequence[tuple[int, int]], place: int, share: Found, keys: Keys, lexicon: Lexicon
) -> tuple[Keys, frozenset[str]]:
    """ "Blood cultures: 3 of 3 positive" speaks of the cultures; with the keys of the heading."""
    if mass(keys.keys, lexicon.light) >= _THIN or not labelled(line, parts, place):
        return keys, frozenset()
    more = keys_of(line.tokens, (0, parts[place][0]), line.cues, line.skipped, share.end, lexicon)
    return joined(keys, more), more.keys - keys.keys


def labelled(line: Line, parts: Sequence[tuple[int, int]], place: int) -> bool:
    """Whether a short heading with no share of its own stands before a part."""
    colon = parts[place][0] - 1
    if not place or colon > _LABEL or line.tokens[colon].text != ":":
        return False
    return not line.shares or line.shares[0].start > colon


def counted(line: Line, share: Found, scope: tuple[int, int], keys: Keys, lexicon: Lexicon) -> Keys:
    """ "22 nodes, 21 negative": the 21 are nodes."""
    if share.named < 0 or scope[0] <= share.named < scope[1]:
        return keys
    end = share.named
    while end < len(line.tokens) and end - share.named < _SET and line.tokens[end].lower not in _ENDS:
        end += 1
    more = keys_of(line.tokens, (share.named, end), line.cues, line.skipped, share.end, lexicon)
    return joined(keys, Keys(_plain(more.keys), frozenset(), more.words))


def told_before(before: Sentence | None, keys: Keys) -> Keys:
    """ "Six samples were sent. All but one were negative": of the samples."""
    if before is None or len(before.tokens) > _LONG:
        return keys
    return joined(keys, Keys(_plain(before.keys), frozenset(), ()))


def _plain(keys: frozenset[str]) -> frozenset[str]:
    """Without figures and words of opposite meaning: what is spoken of, not what is said of it."""
    return frozenset(key for key in keys if not key.startswith("~") and not key[:1].isdigit())
