"""Guards that look at nothing: rows from which a real guard has to be told apart, or the table measures nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from clinsafe.benchmarks.endtoend.outcomes import unguarded
from clinsafe.guarded import Action, Guard, GuardedAnswer, GuardedPassage


class Disabled:
    """Keeps everything."""

    def check(self, query: str, passages: object, /, *, k: int | None = None) -> GuardedAnswer:
        """All of them, unmarked."""
        return unguarded(query, _listed(passages)[:k])


class AlwaysFlag:
    """Flags everything: no contradiction gets by, and no flag means anything."""

    def check(self, query: str, passages: object, /, *, k: int | None = None) -> GuardedAnswer:
        """All of them, each with a flag."""
        rows = _all(_listed(passages)[:k], "flag", "this guard flags every passage")
        return GuardedAnswer(query, False, tuple(rows))


class AlwaysWithhold:
    """Shows nothing: no contradiction is read, and nothing else either."""

    def check(self, query: str, passages: object, /, *, k: int | None = None) -> GuardedAnswer:
        """None shown, all withheld."""
        rows = _all(_listed(passages)[:k], "withhold", "this guard withholds every passage")
        return GuardedAnswer(query, False, (), tuple(rows), review=("everything is withheld",))


DUMMIES: Mapping[str, Callable[[], Guard]] = {
    "disabled": Disabled,
    "always_flag": AlwaysFlag,
    "always_withhold": AlwaysWithhold,
}


def _listed(passages: object) -> list[Any]:
    return list(passages) if isinstance(passages, Sequence) else []


def _all(passages: Sequence[Any], action: Action, reason: str) -> list[GuardedPassage]:
    shown = action != "withhold"
    return [
        GuardedPassage(one, n if shown else 0, n, action, (reason,), annotated=one.text)
        for n, one in enumerate(passages, start=1)
    ]
