"""negspacy as an engine: the baseline of our own engine, and a choice of the filter (``engine="negspacy"``)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from clinsafe.errors import MissingDependency
from clinsafe.mitigations.polarity.line import SIGNED, Line
from clinsafe.mitigations.polarity.prepare import prepare
from clinsafe.mitigations.polarity.rules import STOP, WORD, Rules
from clinsafe.text.tokens import Token

_FIX = "pip install 'clinsafe[negspacy]'"
Termset = Mapping[str, Sequence[str]]


class Negspacy:
    """Asks negspacy which spans of a text are negated.

    Args:
        terms: a termset (see `termset_of`); None takes negspacy's own ``en_clinical``.

    Raises:
        MissingDependency: spaCy or negspacy is not installed.
    """

    def __init__(self, terms: Termset | None) -> None:
        try:
            import spacy
            from negspacy.negation import Negex  # noqa: F401 - registers the component
            from negspacy.termsets import termset
        except ImportError as error:
            raise MissingDependency("negspacy as engine", error.name or "negspacy", _FIX) from error
        self._nlp: Any = spacy.blank("en")
        self._nlp.add_pipe("sentencizer")
        stock: Any = termset("en_clinical")  # type: ignore[no-untyped-call]
        patterns = (
            stock.get_patterns() if terms is None else {name: list(rows) for name, rows in terms.items()}
        )
        self._negex: Any = self._nlp.create_pipe("negex", config={"neg_termset": patterns})

    def negated(self, text: str, start: int, end: int) -> bool | None:
        """Whether the characters ``[start, end)`` are negated; None where they hold no token."""
        doc = self._nlp(text)
        span = doc.char_span(start, end, label="CONCEPT", alignment_mode="expand")
        if span is None or not len(span):
            return None
        doc.ents = [span]
        return bool(self._negex(doc).ents[0]._.negex)

    def words(self, tokens: Sequence[Token], places: Sequence[int]) -> list[int]:
        """Which of these tokens are negated, the tokens being one clause."""
        from spacy.tokens import Doc, Span

        doc = Doc(self._nlp.vocab, words=[token.text for token in tokens])
        doc[0].is_sent_start = True
        for token in doc[1:]:
            token.is_sent_start = False
        doc.ents = [Span(doc, at, at + 1, label="CONCEPT") for at in places]
        return [ent.start for ent in self._negex(doc).ents if ent._.negex]


class NegspacySigner:
    """Signs a sentence as `signs.sign` does, with negspacy for the scope: our termset, our spans, one clause at a time.

    Args:
        rules: the pack; its plain cues become the termset.

    Raises:
        MissingDependency: spaCy or negspacy is not installed.
    """

    def __init__(self, rules: Rules) -> None:
        self._negspacy = Negspacy(termset_of(rules))

    def __call__(self, tokens: Sequence[Token], rules: Rules) -> Line:
        """The line with each negated word signed."""
        line = prepare(tokens, rules)
        for start, end in _clauses(line):
            places = [at - start for at in range(start, end) if line.kind[at] == WORD]
            if not places or not any(line.op_at[at] >= 0 for at in range(start, end)):
                continue
            for at in self._negspacy.words(line.tokens[start:end], places):
                line.put(start + at, -1, SIGNED, _cue(line, start + at))
        return line


def _clauses(line: Line) -> Iterator[tuple[int, int]]:
    start = 0
    for at in range(len(line.tokens) + 1):
        if at == len(line.tokens) or line.kind[at] == STOP:
            if at > start:
                yield start, at
            start = at + 1


def _cue(line: Line, index: int) -> int:
    """The nearest cue: negspacy does not tell which one it was."""
    near = [(abs(op.start - index), number) for number, op in enumerate(line.ops)]
    return min(near)[1] if near else -1


def termset_of(rules: Rules) -> dict[str, list[str]]:
    """Our pack as a negspacy termset: plain cues only (no ``~``, ``|`` or ``..``), as its matcher reads them."""
    terms: dict[str, list[str]] = {
        "pseudo_negations": [],
        "preceding_negations": [],
        "following_negations": [],
        "termination": sorted(word for word in rules.stops if word.isalpha()),
    }
    for words, cue in rules.cues:
        if any(sign in words for sign in "~|") or ".." in words:
            continue
        text = words.replace(" - ", "-")
        if cue.kind == "pseudo":
            terms["pseudo_negations"].append(text)
        elif cue.kind == "negator":
            terms["preceding_negations"].append(text)
        elif cue.kind == "predicate" and cue.sign < 0:
            terms["following_negations" if cue.reach == "before" else "preceding_negations"].append(text)
    return terms
