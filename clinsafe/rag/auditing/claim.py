"""What an instrument is asked: does this context support this answer? And what it may say: yes, no, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, runtime_checkable

Support: TypeAlias = bool | None
"""True: supported. False: not supported. None: no verdict; it counts neither as a support nor as a rejection."""


@dataclass(frozen=True, slots=True)
class Claim:
    """One thing to be judged.

    Attributes:
        contexts: the evidence, one text a passage; at least one.
        answer: what is claimed.
        question: what was asked; "" where there is none.
    """

    contexts: tuple[str, ...]
    answer: str
    question: str = ""


@runtime_checkable
class Instrument(Protocol):
    """Anything that tells support from contradiction, or passes for it: a judge, a metric, a hit function."""

    @property
    def name(self) -> str:
        """Its name in tables and in metric keys."""
        ...

    def supports(self, tasks: Sequence[Claim], /) -> Sequence[Support]:
        """One verdict a task, in their order; what could not be judged is None and never False."""
        ...


def verdicts(instrument: Instrument, tasks: Sequence[Claim]) -> list[Support]:
    """The verdicts of an instrument, checked.

    Raises:
        ValueError: another number of verdicts than of tasks, or one that is not True, False or None; positions are all
            that ties a verdict to its task, so that none can be guessed.
    """
    found = list(instrument.supports(tasks))
    if len(found) != len(tasks):
        raise ValueError(f"{instrument.name}: {len(found)} verdicts for {len(tasks)} tasks")
    for place, verdict in enumerate(found, start=1):
        if verdict is not None and not isinstance(verdict, bool):
            raise ValueError(f"{instrument.name}: verdict {place} is {verdict!r}; it is True, False or None")
    return found
