"""The naive stack: what the paper's section 8.2 describes, built plainly, as the row to beat.

negspacy (stock terms) on nouns that both texts share, value sets of quantulum3, and keyword cues for the rest. It is no
straw man: it has the engines that the paper names, with their own terms.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache
from typing import Any

from clinsafe.errors import MissingDependency
from clinsafe.protocols import Fact, Filter, Finding, Reading, Span

CUES = {
    "temporal": {
        "before": ("before", "prior to", "pre-", "preoperative", "until", "precede"),
        "after": ("after", "following", "post-", "postoperative", "since", "once"),
        "past": ("history of", "previous", "resolved", "formerly"),
        "current": ("active", "current", "ongoing"),
        "stop": ("stop", "discontinue", "withhold", "hold"),
        "continue": ("continue", "resume", "restart"),
    },
    "hedging": {
        "hedged": (
            "possible",
            "suspected",
            "likely",
            "may",
            "probable",
            "suggest",
            "cannot exclude",
            "differential",
        ),
        "confirmed": ("confirmed", "definite", "proven", "diagnosed", "established"),
    },
    "quantifier": {
        "all": ("all", "every", "always"),
        "most": ("most", "majority"),
        "few": ("few", "minority", "rarely", "some"),
        "none": ("no", "none", "never"),
    },
}
_OPPOSED = {
    "temporal": (("before", "after"), ("past", "current"), ("stop", "continue")),
    "hedging": (("hedged", "confirmed"),),
    "quantifier": (
        ("all", "few"),
        ("all", "none"),
        ("most", "few"),
        ("most", "none"),
        ("few", "none"),
        ("all", "most"),
    ),
}
_MOST_CHARACTERS, _MOST_DIGITS = 500, 24  # quantulum3 is cubic in a run of digits


class Naive:
    """One naive filter: facts are named values, two texts conflict when `differ` says so.

    Args:
        hazard: which.
        names: text -> named values with their places.
        differ: the values of both sides -> the names that conflict.
    """

    def __init__(
        self,
        hazard: str,
        names: Callable[[str], Iterable[tuple[str, str, int, int]]],
        differ: Callable[[dict[str, str], dict[str, str]], list[str]],
    ) -> None:
        self.hazard, self._names, self._differ = hazard, names, differ

    def read(self, reading: Reading, /) -> Sequence[Fact]:
        """Every named value of the text, the first of each name."""
        found: dict[str, Fact] = {}
        for name, value, start, end in self._names(reading.text):
            fact = Fact(
                self.hazard, Span(start, end), {"name": name, "value": value}, value, f"naive.{self.hazard}"
            )
            found.setdefault(name, fact)
        return list(found.values())

    def compare(self, query: Sequence[Fact], passage: Sequence[Fact], /) -> Sequence[Finding]:
        """One finding for each name that conflicts."""
        mine = {fact.normal["name"]: fact for fact in query}
        theirs = {fact.normal["name"]: fact for fact in passage}
        names = self._differ(_values(mine), _values(theirs))
        return [self._finding(mine.get(name, query[0]), theirs.get(name, passage[0]), name) for name in names]

    def _finding(self, one: Fact, other: Fact, name: str) -> Finding:
        said, found = str(one.normal["value"]), str(other.normal["value"])
        sentence = f"The texts differ in {name}: {said} against {found}."
        return Finding(self.hazard, "conflict", "contradiction", "moderate", 0.5, one.span, other.span, said, found,
                       other.cue, other.rule, sentence)  # fmt: skip


def _values(facts: dict[str, Fact]) -> dict[str, str]:
    return {name: str(fact.normal["value"]) for name, fact in facts.items()}


def load_stack() -> dict[str, Filter]:
    """The six naive filters by hazard.

    Raises:
        MissingDependency: spaCy, negspacy or quantulum3, or an English spaCy model, is not installed.
    """
    _pipeline()
    _quantities()
    cues = {hazard: Naive(hazard, _cue_names(hazard), _opposed(hazard)) for hazard in CUES}
    return {
        "negation": Naive("negation", _negated_nouns, _unequal),
        "numerical": Naive("numerical", _numbers, _other_sets),
        "temporal": cues["temporal"],
        "entity_swap": Naive("entity_swap", _noun_order, _other_order),
        "hedging": cues["hedging"],
        "quantifier": cues["quantifier"],
    }


def _unequal(a: dict[str, str], b: dict[str, str]) -> list[str]:
    return [name for name in a if name in b and a[name] != b[name]]


def _other_sets(a: dict[str, str], b: dict[str, str]) -> list[str]:
    return [next(iter(set(a) ^ set(b)))] if a and b and set(a) != set(b) else []


def _other_order(a: dict[str, str], b: dict[str, str]) -> list[str]:
    shared = [name for name in a if name in b]
    return shared[:1] if shared != [name for name in b if name in a] else []


def _opposed(hazard: str) -> Callable[[dict[str, str], dict[str, str]], list[str]]:
    def differ(a: dict[str, str], b: dict[str, str]) -> list[str]:
        return [
            one if one in a else other
            for one, other in _OPPOSED[hazard]
            if ({one, other} & a.keys(), {one, other} & b.keys()) in (({one}, {other}), ({other}, {one}))
        ]

    return differ


def _cue_names(hazard: str) -> Callable[[str], Iterable[tuple[str, str, int, int]]]:
    shapes = {
        name: re.compile("|".join(rf"\b{cue}" for cue in cues), re.IGNORECASE)
        for name, cues in CUES[hazard].items()
    }

    def names(text: str) -> Iterable[tuple[str, str, int, int]]:
        for name, shape in shapes.items():
            if match := shape.search(text):
                yield name, match.group(), match.start(), match.end()

    return names


@lru_cache(maxsize=1)
def _pipeline() -> Any:
    from clinsafe.text.parse import BLANK, Parser

    try:
        import spacy  # noqa: F401
        from negspacy.negation import Negex  # noqa: F401 - registers the component
        from negspacy.termsets import termset
    except ImportError as error:
        missing = error.name or "negspacy"
        raise MissingDependency(
            "the naive stack", missing, "pip install 'clinsafe[negspacy,quantulum]'"
        ) from error
    parser = Parser()
    if parser.name == BLANK:
        raise MissingDependency("the naive stack", "a spaCy model", "python -m spacy download en_core_web_sm")
    pipeline = parser.pipeline()
    stock: Any = termset("en_clinical")  # type: ignore[no-untyped-call]
    if "negex" not in pipeline.pipe_names:
        pipeline.add_pipe("negex", config={"neg_termset": stock.get_patterns()})
    return pipeline


@lru_cache(maxsize=1)
def _quantities() -> Any:
    try:
        import quantulum3.classifier
        from quantulum3 import parser
    except ImportError as error:
        raise MissingDependency(
            "the naive stack", "quantulum3", "pip install 'clinsafe[quantulum]'"
        ) from error
    quantulum3.classifier.USE_CLF = False  # its pickled classifier does not load under scikit-learn 1.9
    return parser


@lru_cache(maxsize=64)
def _doc(text: str) -> Any:
    from spacy.tokens import Span as Range

    pipeline = _pipeline()
    doc = pipeline.make_doc(text)
    for name, component in pipeline.pipeline:
        if name == "negex":
            doc.ents = [Range(doc, chunk.end - 1, chunk.end, label="NOUN") for chunk in doc.noun_chunks]
        doc = component(doc)
    return doc


def _negated_nouns(text: str) -> Iterable[tuple[str, str, int, int]]:
    for noun in _doc(text).ents:
        yield noun.lemma_.lower(), "absent" if noun._.negex else "present", noun.start_char, noun.end_char


def _noun_order(text: str) -> Iterable[tuple[str, str, int, int]]:
    for noun in _doc(text).ents:
        yield noun.lemma_.lower(), noun.text, noun.start_char, noun.end_char


def _numbers(text: str) -> Iterable[tuple[str, str, int, int]]:
    if re.search(rf"\d{{{_MOST_DIGITS}}}", text):
        return
    for match in re.finditer(rf"[^.;\n]{{1,{_MOST_CHARACTERS}}}(?:\.\d[^.;\n]{{0,80}})*", text):
        try:
            found = _quantities().parse(match.group())
        except Exception:  # noqa: BLE001, S112 - it raises half a dozen kinds on clinical text
            continue
        for quantity in found:
            start, end = quantity.span
            value = f"{quantity.value:g} {quantity.unit.name}"
            yield value, value, match.start() + start, match.start() + end
