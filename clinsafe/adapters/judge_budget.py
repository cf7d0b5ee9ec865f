"""How many calls and tokens a judge may use, and how many it has used."""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass

from clinsafe.errors import ClinsafeError, UsageError


class BudgetSpent(ClinsafeError):
    """The next call could pass the budget, so it is not made."""


@dataclass(frozen=True, slots=True)
class Spent:
    """What was used so far.

    Attributes:
        calls: requests that were sent, tries that failed among them.
        prompt, completion: tokens, as the service counted them where it did.
        estimated: requests whose tokens nobody counted: an estimate stands for them.
    """

    calls: int = 0
    prompt: int = 0
    completion: int = 0
    estimated: int = 0


@dataclass(frozen=True, slots=True)
class Reserved:
    """Tokens that a request under way may use at most."""

    prompt: int
    completion: int


class Budget:
    """Counts calls and tokens, and refuses a call that could pass the limit. Safe to use from several threads.

    A call reserves its estimated prompt and the longest answer before it is sent. Where the service counts more than
    was estimated, later estimates grow by the largest ratio seen; only the first such call can pass the limit, by what
    it was underestimated by.

    Args:
        calls: at most so many requests; None: no limit.
        tokens: at most so many tokens, prompts and answers together; None: no limit.
    """

    def __init__(self, calls: int | None = None, tokens: int | None = None) -> None:
        if any(limit is not None and limit < 0 for limit in (calls, tokens)):
            raise UsageError("a budget is a number of calls or tokens, 0 or more; leave it out for no limit")
        self._calls, self._tokens = calls, tokens
        self._lock, self._spent = threading.Lock(), Spent()
        self._held, self._ratio = 0, 1.0

    @property
    def spent(self) -> Spent:
        """What was used so far."""
        with self._lock:
            return self._spent

    def reserve(self, prompt: int, completion: int) -> Reserved:
        """Tokens for one request of this estimate; raises BudgetSpent where they are not left."""
        with self._lock:
            wanted = Reserved(math.ceil(prompt * self._ratio), completion)
            used, size = self._spent, wanted.prompt + wanted.completion
            if self._calls is not None and used.calls >= self._calls:
                raise BudgetSpent("the budget of calls is used up")
            if self._tokens is not None and used.prompt + used.completion + self._held + size > self._tokens:
                raise BudgetSpent("the budget of tokens is used up")
            self._held += size
            self._add(1, 0, 0, 0)
            return wanted

    def settle(self, reserved: Reserved, usage: tuple[int, int] | None) -> None:
        """What an answered request really used; None where the service does not say."""
        with self._lock:
            self._held -= reserved.prompt + reserved.completion
            if usage is None:
                self._add(0, reserved.prompt, reserved.completion, 1)
                return
            self._add(0, *usage, 0)
            self._ratio = max(self._ratio, self._ratio * usage[0] / max(1, reserved.prompt))

    def lost(self, reserved: Reserved) -> None:
        """A request without an answer: its prompt may have been read and paid for."""
        with self._lock:
            self._held -= reserved.prompt + reserved.completion
            self._add(0, reserved.prompt, 0, 1)

    def _add(self, calls: int, prompt: int, completion: int, estimated: int) -> None:
        old = self._spent
        self._spent = Spent(
            old.calls + calls, old.prompt + prompt, old.completion + completion, old.estimated + estimated
        )


def estimate(text: str) -> int:
    """Tokens of a text, generously: one for three bytes of UTF-8. English has four, Chinese three."""
    return math.ceil(len(text.encode("utf-8", "replace")) / 3) + 8
