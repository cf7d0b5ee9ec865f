"""States: a treatment goes on or is stopped, a condition is current or past."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from clinsafe.mitigations.cues import Match
from clinsafe.mitigations.order.fact import status_fact
from clinsafe.mitigations.order.pack import StatusRule
from clinsafe.mitigations.order.scan import Range, Scan
from clinsafe.mitigations.order.timeline import is_point
from clinsafe.mitigations.order.whose import whose_state
from clinsafe.protocols import Fact
from clinsafe.text import Reading

Thing = tuple[frozenset[str], str]  # keys of a thing and its name
NOTHING: Thing = (frozenset(), "")
_TARGET = 5  # content words of a target
_REFERS = frozenset(["before", "after", "until", "when"])
_NEGATION_REACH = 5  # tokens before a cue


def states(reading: Reading, scan: Scan, said: Thing = NOTHING) -> Iterator[Fact]:
    """Status facts of a sentence; `said` is what an "it" may stand for."""
    found = scan.found
    last = NOTHING
    taken = [(m.start, m.end) for m in found if m.value.state != "none" and not m.value.weak]
    for match in found:
        rule = match.value
        if rule.state == "none" and not rule.onset:
            continue
        window = _window(scan, match)
        if not window and _silent(scan, match, found):
            continue
        target, name = _target(scan, match, taken)
        if not target and not rule.weak and not (rule.yields and _followed(scan, match)):
            target, name = _elsewhere(scan, match)
            target, name = (target, name) if target else last if last[0] or not _it(scan, match) else said
        whose = whose_state(scan, match.start)
        if target and rule.onset:
            yield from _onset(reading, scan, match, target, name, whose)
        if not target or rule.state == "none" or (rule.weak and not _plain(scan, match, found)):
            continue
        state = _state(scan, match, target)
        if state is None:
            continue
        if not rule.weak:
            last = (target, name)
        at = (match.start, match.end)
        yield status_fact(reading, scan, rule, state, at, target, name, whose, window)


def _it(scan: Scan, match: Match[StatusRule]) -> bool:
    """Whether a cue speaks of "it" ("start it again", "it was restarted")."""
    low, high = scan.segment(match.start)
    around = scan.tokens[max(low, match.start - 3) : min(high, match.end + 2)]
    return any(token.lower in scan.rules.grammar.it for token in around)


def _onset(
    reading: Reading, scan: Scan, match: Match[StatusRule], target: frozenset[str], name: str, whose: str
) -> Iterator[Fact]:
    """The fact that a thing is new or has been there long; "no new infarct" says neither."""
    before = scan.tokens[match.start - 1].lower if match.start else ""
    if before not in scan.rules.grammar.denials and not _negated(scan, match):
        rule = match.value.model_copy(update={"axis": "onset"})
        state = (match.value.onset == "new", False)
        at = (match.start, match.end)
        yield status_fact(reading, scan, rule, state, at, target, name, whose)


def _silent(scan: Scan, match: Match[StatusRule], found: Sequence[Match[StatusRule]]) -> bool:
    """A cue that says no state of one thing: under a condition, of a part of a group, or beside a plainer cue."""
    if _conditional(scan, match) or (match.value.timed and not is_point(scan, match.end)):
        return True
    if match.value.first and match.start != scan.segment(match.start)[0]:
        return True
    grammar = scan.rules.grammar
    near = scan.tokens[max(0, match.start - _NEGATION_REACH) : match.start]
    if any(token.lower in grammar.questions for token in near):
        return True
    left, right = scan.chunk(match.start, match.end)
    told = scan.tokens[left : match.start]
    if match.value.past and not any(token.lower in grammar.past for token in told):
        return True
    if _partial(scan, left, right) or _counted(scan, match):
        return True
    if (
        match.cue in scan.rules.special.before_number
        and match.end < right
        and scan.rules.lexicon.number(scan.tokens[match.end]) is not None
    ):
        return True  # "past five years"
    return match.value.yields and any(
        other is not match
        and not other.value.yields
        and not other.value.weak
        and other.value.state != "none"
        and left <= other.start < right
        for other in found
    )


def _partial(scan: Scan, left: int, right: int) -> bool:
    """Whether a clause counts a part of a group: "most", "two in three", "29 of 31"; "many years" is a span."""
    tokens, number, grammar = scan.tokens, scan.rules.lexicon.number, scan.rules.grammar
    if any(tokens[i].lower in scan.rules.partial and not scan.spans(i) for i in range(left, right)):
        return True
    for i in range(left + 1, right - 1):
        if tokens[i].lower in grammar.out_of and number(tokens[i - 1]) is not None:
            passed = tokens[i + 1].lower in grammar.anaphors or tokens[i + 1].lower in grammar.possessives
            total = i + 2 if passed and i + 2 < right else i + 1
            if number(tokens[total]) is not None:  # "two in three", "four of the five"
                return True
    return False


def _counted(scan: Scan, match: Match[StatusRule]) -> bool:
    """Whether a cue says what a number of people did: "of 176, 124 stopped steroids within five years"."""
    if match.start == 0 or match.value.side == "right":
        return False
    before = scan.tokens[match.start - 1]
    return before.is_number and before.text.isdigit() and match.value.axis == "treatment"


def _elsewhere(scan: Scan, match: Match[StatusRule]) -> tuple[frozenset[str], str]:
    """What an "it" may stand for: the nearest clause left of the cue that names something, or the segment before."""
    low, _ = scan.segment(match.start)
    end = match.start
    for i in range(match.start - 1, low - 1, -1):
        if scan.soft(i) or i == low:
            start = i if i == low and not scan.soft(i) else i + 1
            if not scan.bare(start, end):
                return _things(scan, (start, end)), scan.words((start, end))
            end = i
    before = scan.segment(low - 2) if low >= 2 else (0, 0)
    return _things(scan, before), scan.words(before)


def _conditional(scan: Scan, match: Match[StatusRule]) -> bool:
    """ "Hold X until Y" and "before starting X" say an order, not a state."""
    low, high = scan.segment(match.start)
    if match.value.axis != "treatment":
        return False
    for i in range(match.end, high):
        if scan.tokens[i].lower in scan.rules.grammar.waiting:
            return True
        if scan.soft(i):
            break
    return any(
        cue.value.kind in _REFERS
        and cue.end <= match.start
        and cue.start >= low
        and scan.comma(cue.end, match.start) < 0
        and not _verb_added(scan, cue.end, match)
        and (cue.value.kind == "when" or not scan.bare(low, cue.start))
        for cue in scan.cues
    )


def _window(scan: Scan, match: Match[StatusRule]) -> bool:
    """Whether a treatment is held until something happens ("hold X until Y")."""
    rule = match.value
    if rule.state != "off" or rule.axis != "treatment" or rule.weak or rule.timed or _negated(scan, match):
        return False
    left, right = scan.chunk(match.start, match.end)
    opened = any(c.value.kind in _REFERS and left <= c.start < match.start for c in scan.cues)
    waits = any(token.lower in scan.rules.grammar.waiting for token in scan.tokens[match.end : right])
    return waits and not opened and not _partial(scan, left, right) and not _counted(scan, match)


def _verb_added(scan: Scan, start: int, match: Match[StatusRule]) -> bool:
    """Whether the cue is a second verb behind the named event: "held before the scan and resumed after it"."""
    if match.start - 1 <= start or scan.tokens[match.start - 1].lower not in scan.rules.grammar.adds:
        return False
    return not scan.tokens[match.start].lower.endswith("ing") and not scan.bare(start, match.start)


def _negated(scan: Scan, match: Match[StatusRule]) -> bool:
    low, _ = scan.segment(match.start)
    start = max(low, match.start - _NEGATION_REACH)
    for i in range(match.start - 1, start - 1, -1):
        if scan.soft(i):
            start = i + 1
            break
    return scan.negated(start, match.start)


def _state(scan: Scan, match: Match[StatusRule], target: frozenset[str]) -> tuple[bool, bool] | None:
    """(on, weak), or None: "no history of" was never there; a history of a lifelong condition is current."""
    rule, negated = match.value, _negated(scan, match)
    if rule.lifelong == "past":
        return (rule.state == "on") != negated, rule.weak
    if negated:
        return None
    if not scan.lasts(target):
        return False, rule.weak
    return (True, True) if rule.lifelong == "current" else None


def _plain(scan: Scan, match: Match[StatusRule], found: Sequence[Match[StatusRule]]) -> bool:
    """Whether no other state stands in the same clause; a word said in passing gives way to it."""
    low, high = scan.segment(match.start)
    others = any(
        not m.value.weak and m.start != match.start and low <= m.start < high and m.value.state != "none"
        for m in found
    )
    if others or scan.negated(low, match.start):
        return False
    following = scan.tokens[match.end].lower if match.end < len(scan.tokens) else ""
    return not (match.value.has and following in scan.rules.grammar.not_had)


# ── what the state is of ─────────────────────────────────────────────────────────────────────────


def _target(scan: Scan, match: Match[StatusRule], taken: Sequence[Range]) -> tuple[frozenset[str], str]:
    side = match.value.side
    if side == "self":
        return scan.keyset((match.start, match.end)), scan.words((match.start, match.end))
    if match.start > 0 and any(end == match.start for _, end in taken) and side != "right":
        return frozenset(), ""  # two cues in a row speak of one thing
    for ranges in _places(scan, match, taken):
        keys = _things(scan, *ranges)
        if keys:
            return keys, scan.words(*ranges)
    return _light(scan, match, taken)


def _light(scan: Scan, match: Match[StatusRule], taken: Sequence[Range]) -> tuple[frozenset[str], str]:
    """A thing of two light words or more ("intravenous drug use"), where none of weight stands there."""
    for ranges in _places(scan, match, taken):
        tokens = [
            t for start, end in ranges for t in scan.tokens[start:end] if t.text.isalpha() and len(t.key) > 2
        ]
        if any(
            t.lower in scan.rules.grammar.anaphors for start, end in ranges for t in scan.tokens[start:end]
        ):
            continue  # "the drug" is one named before
        if len(tokens) > 1 and any(t.lower in scan.rules.headings for t in tokens):
            return frozenset(t.key for t in tokens), " ".join(t.text for t in tokens[:6])
    return frozenset(), ""


def _places(scan: Scan, match: Match[StatusRule], taken: Sequence[Range]) -> list[list[Range]]:
    """Where the thing may stand, the likeliest place first."""
    side = match.value.side
    low, high = scan.segment(match.start)
    closed = match.end >= high or scan.tokens[match.end].text in ",()"
    if low >= 2 and match.start == low and scan.tokens[low - 1].text == ":" and closed:
        return [[scan.segment(low - 2)]]  # "Penicillin allergy: current"
    right, left = _right(scan, match, taken), _left(scan, match, taken)
    left_out = match.value.state == "off" and _followed(scan, match)
    if (
        side == "near"
        and not left_out
        and scan.bare(*left[0])
        and match.start
        and scan.tokens[match.start - 1].text == ","
    ):
        left = [_headed(scan, match)]
    if side == "right":
        order = [right]
    elif side == "left":
        order = [left]
    elif side == "near":
        order = [left + right]
    else:
        passive = match.start > 0 and scan.tokens[match.start - 1].lower in scan.rules.grammar.be
        order = [left, right] if passive else [right, left]
    if ".." in match.cue:
        order.append(_inside(scan, match))
    if match.value.opens:
        order.append(_right(scan, match, taken, opened=True))
    return order


def _inside(scan: Scan, match: Match[StatusRule]) -> list[Range]:
    """What stands in the gap of a cue ("not taking warfarin any more")."""
    own = {word.lstrip("~") for part in match.cue.split() for word in part.split("|")}
    return [
        (i, i + 1)
        for i in range(match.start, match.end)
        if scan.tokens[i].lower not in own and scan.tokens[i].lemma not in own
    ]


def _followed(scan: Scan, match: Match[StatusRule]) -> bool:
    """Whether a word stands behind the cue in its clause: "previously well" says nothing of what stands before."""
    return (
        match.end < len(scan.tokens) and scan.tokens[match.end].text[0].isalnum() and not scan.soft(match.end)
    )


def _headed(scan: Scan, match: Match[StatusRule]) -> Range:
    """The heading of "Gestational diabetes, currently diet controlled": the name that opens the segment."""
    low, _ = scan.segment(match.start)
    end = match.start - 1
    named = scan.tokens[low:end]
    auxiliary = scan.rules.grammar.auxiliary
    short = 0 < len(named) <= _TARGET and not any(t.text == "," or t.lower in auxiliary for t in named)
    return (low, end) if short else (match.start, match.start)


def _right(scan: Scan, match: Match[StatusRule], taken: Sequence[Range], opened: bool = False) -> list[Range]:
    """What stands right of the cue. With `opened`, also behind "on" or "with" ("continues on warfarin")."""
    _, high = scan.segment(match.start)
    count, at = 0, match.end
    if match.value.side == "right" and at < high and scan.tokens[at].text == ",":
        comma = scan.comma(at + 1, min(high, at + 5))  # "prior, now inactive, uveitis"
        at = comma + 1 if comma > 0 else at + 1 if any(end == match.end for _, end in taken) else at
    while at < high and count < _TARGET:
        token = scan.tokens[at]
        opening = not count and (opened or match.value.side != "auto") and token.lower in match.value.opens
        if not opening and (scan.soft(at) or token.lower in scan.rules.target_stops):
            break
        if any(start == at for start, _ in taken) and not scan.keys[at]:
            break
        count += bool(scan.keys[at])
        at += 1
    if at == high < len(scan.tokens) and scan.tokens[at].text == ":" and _heading(scan, match.end, at):
        return [scan.clause(scan.segment(at + 1), False)]
    return [(match.end, at)]


def _heading(scan: Scan, start: int, end: int) -> bool:
    """Whether a range is the rest of a heading: "Current medication: warfarin"."""
    return all(token.lower in scan.rules.headings for token in scan.tokens[start:end])


def _left(scan: Scan, match: Match[StatusRule], taken: Sequence[Range]) -> list[Range]:
    low, _ = scan.segment(match.start)
    count, at = 0, match.start
    while at > low and count < _TARGET:
        if scan.soft(at - 1):
            break
        if any(end == at for _, end in taken) and not scan.keys[at - 1]:
            break
        if count and scan.tokens[at - 1].lower in scan.rules.object_stops:
            break
        count += bool(scan.keys[at - 1])
        at -= 1
    return [(at, match.start)]


def _things(scan: Scan, *ranges: Range) -> frozenset[str]:
    """Keys of what is named in some ranges, without numbers, months and weekdays."""
    pointers = scan.rules.pointers
    return frozenset(
        key
        for start, end in ranges
        for i in range(start, end)
        if scan.tokens[i].lower not in pointers
        for key in scan.keys[i]
        if not key[0].isdigit()
    )
