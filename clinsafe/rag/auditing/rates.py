"""A rate of failures whose bounds cannot be bettered by saying nothing."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from clinsafe.rag.auditing.claim import Support
from clinsafe.stats import Figure, NotMeasured, rate_of


def failures(outcomes: Iterable[Support]) -> Figure:
    """Share of failures among what was judged, with an interval over all cases.

    Args:
        outcomes: one per independent case: True failed, False did not, None was not judged.

    Returns:
        ``value`` = k / n over the judged cases alone. Upper ends count every unjudged case as a failure, lower ends as
        none: an instrument that is silent on what it would get wrong gains nothing. Nothing judged is not measured.
    """
    found = list(outcomes)
    k, n, silent = found.count(True), len(found) - found.count(None), found.count(None)
    if n == 0:
        reason = "no case was judged" if found else "no case was measured"
        return NotMeasured(reason, 0)
    exact, best, worst = rate_of(k, n), rate_of(k, len(found)), rate_of(k + silent, len(found))
    if (
        not silent
        or isinstance(exact, NotMeasured)
        or isinstance(best, NotMeasured)
        or isinstance(worst, NotMeasured)
    ):
        return exact
    return replace(
        exact,
        low=best.low,
        lower=best.lower,
        high=worst.high,
        upper=worst.upper,
        method=f"{exact.method}; {silent} not judged, failures in the upper ends and none in the lower",
    )


def any_of(outcomes: Iterable[Support]) -> Support:
    """A case with several chances to fail: failed if one did, unjudged if none did and one is not known."""
    found = list(outcomes)
    if any(found):
        return True
    return None if not found or None in found else False
