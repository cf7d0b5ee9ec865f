"""Classes and cues of a sentence's tokens, before anything acts."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.mitigations.polarity.line import Line, Op
from clinsafe.mitigations.polarity.parted import parted
from clinsafe.mitigations.polarity.rules import COMMA, DET, HELP, MARK, NUMBER, OP, STOP, WORD, Cue, Rules
from clinsafe.text.tokens import Token

_SHORT_ADVERB = 5
_LISTED = 3  # letters of a word beside a slash that lists


def prepare(tokens: Sequence[Token], rules: Rules) -> Line:
    """Classes and cues of a sentence."""
    size = len(tokens)
    kind = [_class(token, rules) for token in tokens]
    _separators(tokens, kind)
    line = Line(tokens, rules, kind, [-1] * size, [None] * size, [])
    for start, end, words, cue in parted(tokens, kind, rules, rules.table.find(tokens)):
        if cue.kind == "signed":
            _lexical(line, start, end, cue)
        elif cue.kind == "pseudo" and cue.effect == "none":
            kind[start:end] = [WORD if one == OP else one for one in kind[start:end]]
            line.quiet.update(range(start, end))
        elif (acting := _acting(line, start, words, cue)) is not None:
            line.op_at[start:end] = [len(line.ops)] * (end - start)
            kind[start:end] = [OP] * (end - start)
            line.ops.append(Op(start, end, acting, words))
    for index in range(size):
        if kind[index] == WORD and line.lexical[index] is None:
            line.lexical[index] = rules.affixed(tokens[index].lower)
        if tokens[index].lower == "non" and kind[index] == WORD:
            _non(line, index)
    return line


def _lexical(line: Line, start: int, end: int, cue: Cue) -> None:
    if cue.id == "w.clear" and end < len(line.tokens) and line.kind[end] == WORD:
        return  # "a clear response" is no normal one
    line.kind[end - 1] = WORD
    line.lexical[end - 1] = cue
    line.kind[start : end - 1] = [MARK] * (end - 1 - start)


def _acting(line: Line, start: int, words: str, cue: Cue) -> Cue | None:
    """The cue as it acts here, or None: *free*, *off* and *out* only in some places."""
    if words == "free":
        return cue if _joined(line, start) else None
    if words == "over":
        return cue if _ending(line, start) else None
    if words.startswith("~") and cue.id == "permits" and start and line.kind[start - 1] == DET:
        return None  # "*her consent* to the trial"
    if words == "out" and line.lower(start + 1) in ("from", "of"):
        return None
    if words == "out" or (words == "off" and not _alone(line, start)):
        return cue._replace(kind="predicate", reach="before") if _trailing(line, start) else None
    return cue


def _non(line: Line, index: int) -> None:
    """ "non-haemolysed", "non smoker": the word after it is denied."""
    at = index + 1 + (line.lower(index + 1) == "-")
    if at < len(line.tokens) and line.kind[at] == WORD:
        line.kind[index:at] = [MARK] * (at - index)
        cue = line.lexical[at]
        line.lexical[at] = (
            line.rules.affixed("non" + line.lower(at)) if cue is None else cue._replace(sign=-cue.sign)
        )


def _ending(line: Line, index: int) -> bool:
    """ "ileus over", "is not over yet": no preposition."""
    after = line.kind[index + 1] if index + 1 < len(line.tokens) else STOP
    return (
        index > 0
        and line.kind[index - 1] in (WORD, MARK, HELP, OP)
        and after in (STOP, COMMA)
        and not line.lower(index + 1).isalpha()
    )


def _alone(line: Line, index: int) -> bool:
    """ "off warfarin", not "fell off" or "off the ladder"."""
    size = len(line.tokens)
    verb = index > 0 and line.kind[index - 1] in (WORD, OP)
    return not verb and index + 1 < size and line.kind[index + 1] == WORD


def _trailing(line: Line, index: int) -> bool:
    """ "propofol off", "sedation off since 8": said of the word before."""
    after = line.kind[index + 1] if index + 1 < len(line.tokens) else STOP
    ends = after in (STOP, COMMA, NUMBER) or line.among(index + 1, "ends")
    return index > 0 and line.kind[index - 1] in (WORD, MARK) and ends


def _separators(tokens: Sequence[Token], kind: list[int]) -> None:
    """The colon of a time and the slash of a unit join; only "and/or" and "rash/fever" list."""
    for index in range(len(tokens) - 1):
        lower = tokens[index].lower
        if lower == "to" and tokens[index + 1].lower in ("be", "have", "receive", "get"):
            kind[index] = HELP
        if not index:
            continue
        beside = kind[index - 1], kind[index + 1]
        short = min(len(tokens[index - 1].text), len(tokens[index + 1].text)) < _LISTED
        clock = lower == ":" and beside == (NUMBER, NUMBER)
        if clock or (lower == "/" and (NUMBER in beside or short)):
            kind[index] = MARK


def _joined(line: Line, index: int) -> bool:
    """ "pain free": a noun before it, and nothing of its own behind."""
    if index == 0 or line.kind[index - 1] != WORD:
        return False
    ends = index + 1 >= len(line.tokens) or line.kind[index + 1] in (COMMA, STOP)
    return ends or line.among(index + 1, "after_free")


def _class(token: Token, rules: Rules) -> int:
    lower = token.lower
    known = rules.classes.get(lower)
    if known is not None:
        return known
    first = lower[0]
    if first.isdigit():
        return NUMBER
    if not first.isalpha():
        return MARK
    if (
        lower.endswith("ly")
        and not lower.endswith("megaly")
        and len(lower) >= _SHORT_ADVERB
        and lower not in rules.sets["no_adverb"]
    ):
        return HELP
    return WORD
