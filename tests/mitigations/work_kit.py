"""Work counted in calls of functions: the same on every machine, however busy."""

from __future__ import annotations

import sys
from collections.abc import Callable


def work(run: Callable[[], object]) -> int:
    """How many functions a run calls."""
    calls = 0

    def count(frame: object, event: str, value: object) -> None:
        nonlocal calls
        calls += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        run()
    finally:
        sys.setprofile(None)
    return calls
