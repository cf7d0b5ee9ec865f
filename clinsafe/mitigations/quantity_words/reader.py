"""A reading's shares as facts."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import replace

from clinsafe.mitigations.quantity_words.content import LIMIT, Keys, keys_of
from clinsafe.mitigations.quantity_words.context import counted, headed, labelled, told_before
from clinsafe.mitigations.quantity_words.counts import bare_denial, carried
from clinsafe.mitigations.quantity_words.figures import figures
from clinsafe.mitigations.quantity_words.interval import Interval
from clinsafe.mitigations.quantity_words.lexicon import Lexicon
from clinsafe.mitigations.quantity_words.limits import FAMILY, Limit, limits
from clinsafe.mitigations.quantity_words.line import Found, Line, line_of
from clinsafe.mitigations.quantity_words.numbers import plural
from clinsafe.mitigations.quantity_words.segments import scopes, segments
from clinsafe.mitigations.quantity_words.sides import mass
from clinsafe.protocols import Fact
from clinsafe.text import Reading
from clinsafe.text.reading import Sentence
from clinsafe.text.tokens import Token

HAZARD = "quantifier"
_FINITE = frozenset(
    [
        "is",
        "are",
        "was",
        "were",
        "has",
        "have",
        "had",
        "will",
        "would",
        "may",
        "can",
        "could",
        "should",
        "must",
        "did",
        "does",
    ]
)
_ADJECTIVE = ("ed", "ive", "al", "ile", "ent", "en", "ant", "ble")
_SETS_OPEN = frozenset(["of", "among", "amongst"])  # "of 412 calls, the greater part ..."
_ABOUT = 8  # words that name what a fact speaks of
_CHIEF = 0.5  # above it two shares of one whole cannot stand side by side
_MOST_SHARES = 12  # in one part of a sentence; more is a table
_STRONG = ("strong", "free", "set")
_SHORT = 3.0  # weight of a sentence that says one thing only
_REACH = 60  # tokens to either side of a share that it may speak of
_DENIED = "~denied"  # stands in `minus_keys` for a "not" in the statement
_NOT_REACH = 12  # tokens between "not" and the share it denies


def read(reading: Reading, lexicon: Lexicon) -> Iterator[Fact]:
    """The shares of a text, in order."""
    for place, sentence in enumerate(reading.sentences):
        before = reading.sentences[place - 1] if place else None
        given = figures(sentence.tokens, lexicon)
        if before is not None and not given:
            given = list(carried(before.tokens, sentence.tokens, lexicon))
        worded = given or _worded_at_all(sentence.tokens, lexicon)
        if worded or _bounded_at_all(sentence.tokens, lexicon):
            line = line_of(sentence.tokens, given, lexicon)
            if line.shares:
                yield from _facts(reading, sentence, before, line, lexicon)
            yield from _limits(reading, sentence, line, lexicon)


def _worded_at_all(tokens: Sequence[Token], lexicon: Lexicon) -> bool:
    """Whether any word is there that a share in words needs; most sentences end here."""
    markers = lexicon.markers
    return any(token.lower in markers or token.lemma in markers for token in tokens)


def _bounded_at_all(tokens: Sequence[Token], lexicon: Lexicon) -> bool:
    """Whether a number and a word of a bound stand here."""
    words = lexicon.bounds
    return any(token.lower in words for token in tokens) and any(
        token.is_number or token.lower in lexicon.pack.numbers for token in tokens
    )


def _limits(reading: Reading, sentence: Sentence, line: Line, lexicon: Lexicon) -> Iterator[Fact]:
    """Facts of the bounds on counts."""
    taken = frozenset(at for share in line.shares for at in range(share.start, share.end))
    found = list(limits(line.tokens, line.cues, taken, lexicon))[:_MOST_SHARES]
    if not found:
        return
    parts = segments(line.tokens, lexicon)
    for limit in found:
        part = next(part for part in parts if part[0] <= limit.start < part[1] or limit.start < part[1])
        yield _limit(reading, sentence, line, limit, part, lexicon)


def _none_in(line: Line, scope: tuple[int, int]) -> bool:
    """ "Nobody with fewer than two risk factors was scanned" says nothing of who was."""
    return any(scope[0] <= share.start < scope[1] and share.interval.high <= 0 for share in line.shares)


def _limit(
    reading: Reading, sentence: Sentence, line: Line, limit: Limit, part: tuple[int, int], lexicon: Lexicon
) -> Fact:
    span = range(limit.start, limit.end)
    scope = max(part[0], limit.start - _REACH), min(part[1], limit.end + _REACH)
    keys = keys_of(line.tokens, scope, line.cues, line.skipped | frozenset(span), limit.end, lexicon)
    denied = _between(line.turns, scope) > 0 or _none_in(line, scope)
    return Fact(
        HAZARD,
        reading.token_span(line.tokens[limit.start : limit.end]),
        {
            "whole": 0,
            "keys": keys.keys | {limit.noun},
            "scope_keys": keys.keys | {limit.noun},
            "head_keys": frozenset(),
            "mass": round(mass(keys.keys, lexicon.light), 3),
            "minus_keys": (keys.minus - {LIMIT}) | ({_DENIED} if denied else frozenset()),
            "sentence_keys": sentence.keys,
            "short": False,
            "low": limit.interval.low,
            "high": limit.interval.high,
            "point": False,
            "vague": False,
            "family": FAMILY,
            "weak": False,
            "bare": False,
            "asked": sentence.mood == "question",
            "share": limit.label,
            "about": " ".join(dict.fromkeys(keys.words[:_ABOUT])),
            "noun": limit.noun,
        },
        " ".join(token.text for token in line.tokens[limit.start : limit.end]),
        "limit.count",
    )


def _facts(
    reading: Reading, sentence: Sentence, before: Sentence | None, line: Line, lexicon: Lexicon
) -> Iterator[Fact]:
    parts = segments(line.tokens, lexicon)
    at = 0
    for place, part in enumerate(parts):
        here = []
        while at < len(line.shares) and line.shares[at].start < part[1]:
            here.append(line.shares[at])
            at += 1
        chosen, denials = _chosen(here)
        bounds = [(share.start, share.end) for share in chosen]
        for share, wide in zip(chosen, scopes(line.tokens, part, bounds, lexicon), strict=True):
            scope = max(wide[0], share.start - _REACH), min(wide[1], share.end + _REACH)
            keys = _keys(line, parts, place, scope, share, lexicon)
            keys = counted(line, share, scope, keys, lexicon)
            keys, head = headed(line, parts, place, share, keys, lexicon)
            if not place and (share.rule == "figure.of_them" or _headless(line, share, scope, lexicon)):
                own = keys.keys
                keys = told_before(before, keys)
                head |= keys.keys - own
            if _other_arm(line, share, scope):
                continue
            if keys.keys and not _not_yet(line, share, part) and not bare_denial(line.tokens, share.end):
                extra = _between(denials, scope)
                yield _fact(reading, sentence, line, share, scope, keys, head, extra, lexicon)


def _chosen(here: Sequence[Found]) -> tuple[Sequence[Found], list[int]]:
    """The shares of a part that are facts, and where the others stand, which only turn those round."""
    for kinds in (_STRONG, (*_STRONG, "denial")):
        chosen = [share for share in here if share.kind in kinds]
        if chosen:
            denials = [
                share.start for share in here if share.kind not in kinds and share.interval.low < _CHIEF
            ]
            return chosen[:_MOST_SHARES], denials
    return here[:1], []


def _not_yet(line: Line, share: Found, part: tuple[int, int]) -> bool:
    """ "none yet" speaks of the time, not of the share. `part` ends before the *yet*."""
    after = line.tokens[part[1]].lower if part[1] < len(line.tokens) else ""
    return after == "yet" and share.interval.high == 0


def _other_arm(line: Line, share: Found, scope: tuple[int, int]) -> bool:
    """ "12% with surgery and 24% with radiotherapy": what belongs to the first is open."""
    if share.rule != "figure.percent":
        return False
    held = [(other.start, other.end) for other in line.shares if other.family == "num"]
    return any(
        line.tokens[at].text == "%" and not any(start <= at < end for start, end in held)
        for at in range(scope[0] + 1, scope[1])
    )


def _between(places: Sequence[int], scope: tuple[int, int]) -> int:
    """How many of the sorted places lie in a scope."""
    return bisect_left(places, scope[1]) - bisect_left(places, scope[0])


def _keys(
    line: Line,
    parts: Sequence[tuple[int, int]],
    place: int,
    scope: tuple[int, int],
    share: Found,
    lexicon: Lexicon,
) -> Keys:
    """Keys of a scope. One that names no set takes in the part before it, one that says nothing the part after it."""
    keys = keys_of(line.tokens, scope, line.cues, line.skipped, share.end, lexicon)
    back = _named_before(line, parts, place, scope, share, lexicon)
    if back >= 0:
        other = back
    elif len(parts) == 1:
        return keys
    else:
        if keys.keys or labelled(line, parts, place):
            return keys
        other = place + 1 if place + 1 < len(parts) else place - 1
    more = keys_of(line.tokens, parts[other], line.cues, line.skipped, share.end, lexicon)
    return Keys(keys.keys | more.keys, keys.minus | (more.minus - keys.keys), keys.words + more.words)


def _named_before(
    line: Line,
    parts: Sequence[tuple[int, int]],
    place: int,
    scope: tuple[int, int],
    share: Found,
    lexicon: Lexicon,
) -> int:
    """The part that names what this one goes on to speak of, or -1.

    "In 412 melanomas, most were thin"; "attacks, which the drug seldom relieves"; "potassium, (…,) is seldom raised".
    """
    if not place:
        return -1
    first = line.tokens[parts[place][0]].lower
    if first in lexicon.relatives:
        return -1 if _shared_out(line, parts[place - 1]) else place - 1
    opener = line.tokens[parts[place - 1][0]].lower
    if opener in _SETS_OPEN or _headless(line, share, scope, lexicon):
        return -1 if _shared_out(line, parts[place - 1]) else place - 1
    if first in _FINITE and place > 1 and line.tokens[parts[place - 1][0]].lower in lexicon.relatives:
        return -1 if _shared_out(line, parts[place - 2]) else place - 2
    return -1


def _headless(line: Line, share: Found, scope: tuple[int, int], lexicon: Lexicon) -> bool:
    """Whether the set is named before the share: "in 412 melanomas, most were thin"."""
    if share.end >= scope[1] or share.start > scope[0] + 2 or share.family == "adv":
        return False
    after = line.tokens[share.end].lower
    return after in lexicon.headless or _bare_predicate(line, share)


def _bare_predicate(line: Line, share: Found) -> bool:
    """ "Three samples, all positive": a note leaves the verb out."""
    end = share.end
    word = line.tokens[end].lower
    cue = line.cues.get(end)
    if cue is None or cue.value.kind != "opposite" or not word.endswith(_ADJECTIVE):
        return False
    return cue.end >= len(line.tokens) or not plural(line.tokens[cue.end].lower)


def _shared_out(line: Line, part: tuple[int, int]) -> bool:
    return any(part[0] <= share.start < part[1] for share in line.shares)


def _fact(
    reading: Reading,
    sentence: Sentence,
    line: Line,
    share: Found,
    scope: tuple[int, int],
    keys: Keys,
    head: frozenset[str],
    extra: int,
    lexicon: Lexicon,
) -> Fact:
    share, used = _outer(line, share, scope, lexicon)
    turns = extra + _between(line.turns, scope) - used
    interval = share.interval.turned() if turns % 2 else share.interval
    words = " ".join(dict.fromkeys(keys.words[:_ABOUT]))
    return Fact(
        HAZARD,
        reading.token_span(line.tokens[share.start : share.end]),
        {
            "whole": share.whole,
            "keys": keys.keys | sentence.keys if interval.low > _CHIEF else keys.keys,
            "scope_keys": keys.keys,
            "head_keys": head,
            "mass": round(mass(keys.keys - head, lexicon.light), 3),
            "minus_keys": keys.minus,
            "sentence_keys": sentence.keys,
            "short": mass(_worded(sentence.keys), lexicon.light) <= _SHORT,
            "low": interval.low,
            "high": interval.high,
            "point": interval.point,
            "vague": interval.vague,
            "family": share.family,
            "weak": share.kind in ("weak", "set"),
            "bare": share.kind == "weak",
            "asked": sentence.mood == "question" and not _presupposed(line, lexicon),
            "share": share.label if not turns % 2 else interval.name,
            "turned": turns % 2 == 1,
            "about": words,
        },
        " ".join(token.text for token in line.tokens[share.start : share.end]),
        share.rule,
    )


def _presupposed(line: Line, lexicon: Lexicon) -> bool:
    """ "Why did most patients stop?" takes it for granted that most did."""
    return line.tokens[0].lower in lexicon.presupposing


def _worded(keys: frozenset[str]) -> frozenset[str]:
    return frozenset(key for key in keys if not key[:1].isdigit())


def _outer(line: Line, share: Found, scope: tuple[int, int], lexicon: Lexicon) -> tuple[Found, int]:
    """ "did not occur in all" denies the whole: it is not all, and the *not* is used up."""
    known = lexicon.shares.get(share.rule)
    if known is None or not known.negated or known.low < 0.9:
        return share, 0
    for at in range(max(scope[0], share.start - _NOT_REACH), share.start):
        if at in line.cues and line.cues[at].cue == "not" and line.cues[at].value.kind == "turn":
            new = lexicon.shares[known.negated]
            return replace(share, interval=Interval(new.low, new.high), label=new.label, rule=new.id), 1
    return share, 0
