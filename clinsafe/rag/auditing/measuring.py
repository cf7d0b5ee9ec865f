"""The hit function R and the metrics of answers, asked whether a context supports an answer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.protocols import Encoder
from clinsafe.rag.auditing.claim import Claim, Instrument, Support
from clinsafe.rag.auditing.instruments import BatchInstrument, literal
from clinsafe.rag.clash import Conflicts
from clinsafe.rag.item import Context, Item
from clinsafe.rag.settings import Settings, Thresholds
from clinsafe.rag.values import Values

PLAIN = ("literal", "r_substring", "r_tokens", "token_f1", "rouge_l", "fuzzy")
WITH_MODEL = ("r_cosine", "r", "safe_r", "semantic", "accuracy")
METRICS_OF_ANSWERS = {
    "token_f1": ("token_f1", 0.70),
    "rouge_l": ("rouge_l", 0.70),
    "semantic": ("semantic", 0.70),
    "fuzzy": ("fuzzy", 0.90),
    "accuracy": ("correct", 1.0),
}
"""Instrument -> per-question value, and from where on it supports."""
NEVER = 1_000_000  # tokens of a reference, below which level 2 of R does not exist
INSTRUMENTS = (*PLAIN, *WITH_MODEL)
"""Metrics and hit functions by name; ``r`` is the whole cascade, ``safe_r`` the same without a clinical conflict,
``accuracy`` the paper's rule."""


def chosen(names: Sequence[str], *, everything: bool = False) -> tuple[str, ...]:
    """Names of metrics and hit functions to stand beside a judge; none named is all that need no model.

    Raises:
        UsageError: no such name.
    """
    if unknown := [name for name in names if name not in INSTRUMENTS]:
        raise UsageError(
            f"no metric or hit function is called {unknown[0]!r}; there are: {', '.join(INSTRUMENTS)}"
        )
    return INSTRUMENTS if everything else tuple(dict.fromkeys(names)) or PLAIN


class Measuring:
    """The hit function R and the metrics of answers, asked as instruments.

    For R the answer is the reference and the contexts are what was retrieved; for a metric the answer stands against
    each context as a reference. Each level of R holds the ones before it: a substring has all its tokens. ``r_cosine``
    is R with level 2 switched off.

    Args:
        encoder: for what needs vectors; None: it is not measured.
        conflicts: for ``safe_r``.
    """

    def __init__(
        self, content: Content, encoder: Encoder | None = None, conflicts: Conflicts | None = None
    ) -> None:
        from clinsafe.rag.normalise import normaliser

        self._content, self._normaliser = content, normaliser(content)
        self._encoder = None
        if encoder is not None:
            from clinsafe.rag.vectors import CachedEncoder

            self._encoder = CachedEncoder(encoder)
        self._conflicts = conflicts
        self._known: dict[tuple[str, Claim], Values] = {}

    def instrument(self, name: str) -> Instrument:
        """One of `INSTRUMENTS`."""
        if name == "literal":
            return literal()
        return BatchInstrument(name, partial(self._ask, name))

    def _ask(self, name: str, tasks: Sequence[Claim]) -> list[Support]:
        how = "answers" if name in METRICS_OF_ANSWERS else "no tokens" if name == "r_cosine" else "hits"
        asked = [
            task for task in tasks if any(map(str.isalnum, task.answer))
        ]  # no words: nothing to look for
        missing = list(dict.fromkeys(task for task in asked if (how, task) not in self._known))
        for task, values in zip(missing, self._measure(how, missing), strict=True):
            self._known[how, task] = values
        said = {task: self._read(name, self._known[how, task]) for task in asked}
        return [said.get(task) for task in tasks]

    def _measure(self, how: str, tasks: Sequence[Claim]) -> Sequence[Values]:
        if how == "answers":
            from clinsafe.rag.generation import generation_values

            items = [
                Item(str(n), t.question, answer=t.answer, references=t.contexts) for n, t in enumerate(tasks)
            ]
            encode = self._encoder.encode if self._encoder is not None else None
            return generation_values(
                items, self._normaliser.normalise, Thresholds(), encode, content=self._content
            )
        from clinsafe.rag.relevance import relevance
        from clinsafe.rag.retrieval import retrieval_values

        limits = Thresholds(overlap_tokens=NEVER) if how == "no tokens" else Thresholds()
        settings = Settings(k=max((len(task.contexts) for task in tasks), default=1), thresholds=limits)
        items = [
            Item(
                str(n),
                t.question,
                contexts=tuple(Context(str(rank), text) for rank, text in enumerate(t.contexts)),
                references=(t.answer,),
            )
            for n, t in enumerate(tasks)
        ]
        matches = relevance(items, self._normaliser.normalise, settings, self._encoder)
        return retrieval_values(items, matches, settings, None, self._conflicts)  # overlap is not asked for

    @staticmethod
    def _read(name: str, of: Values) -> Support:
        if name in METRICS_OF_ANSWERS:
            value, least = METRICS_OF_ANSWERS[name]
            return None if value not in of.values else of.values[value] >= least
        if name in ("r", "r_cosine", "safe_r"):
            value = "safe_hit" if name == "safe_r" else "hit"
            return None if value not in of.values else of.values[value] == 1.0
        wanted = (1.0,) if name == "r_substring" else (1.0, 2.0)
        levels = [value for at, value in of.values.items() if at.startswith("level_at.")]
        return any(level in wanted for level in levels)
