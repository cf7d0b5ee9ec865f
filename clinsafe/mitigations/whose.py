"""Of whom and of when a passage speaks, as far as its metadata tells (decision D2)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from clinsafe.protocols import Passage

_PARTIAL = re.compile(r"(\d{4})(?:-(\d{2}))?")
_DAY = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class When:
    """A stretch of time [start, end], as exact as it was written.

    `zoned`: its time zone is known; else UTC stands for it.
    """

    start: datetime
    end: datetime
    zoned: bool

    def before(self, other: When) -> bool:
        """Whether this is surely over when the other begins; clocks of unknown zones may differ by a day."""
        slack = _DAY if self.zoned != other.zoned else timedelta(0)
        try:
            return self.end + slack < other.start
        except OverflowError:
            return False


def when(text: object) -> When | None:
    """An ISO date, datetime, month or year; None for anything else, which is unknown and no error."""
    written = text.strip() if isinstance(text, str) else ""
    try:
        if match := _PARTIAL.fullmatch(written):
            year, month = int(match[1]), int(match[2] or 1)
            start = datetime(year, month, 1, tzinfo=UTC)
            last = month if match[2] else 12
            after = datetime(year + last // 12, last % 12 + 1, 1, tzinfo=UTC)
            return When(start, after - timedelta(microseconds=1), False)
        moment = datetime.fromisoformat(written)
        if moment.tzinfo is not None:
            utc = moment.astimezone(UTC)
            return When(utc, utc, True)
        whole = "T" not in written.upper() and " " not in written and ":" not in written
        moment = moment.replace(tzinfo=UTC)
        return When(moment, moment + _DAY - timedelta(microseconds=1) if whole else moment, False)
    except (ValueError, OverflowError):
        return None


def comparable(one: Passage, other: Passage) -> bool:
    """Whether two passages may speak of the same: no different patients, populations or periods that are known."""
    first, second = one.metadata, other.metadata
    for name in ("subject_id", "population"):
        mine, theirs = _known(first, name), _known(second, name)
        if mine and theirs and mine != theirs:
            return False
    return not _apart(first, second)


def superseding(one: Passage, other: Passage) -> str:
    """Id of the later of two dated passages of one known subject; "" where that is not known."""
    mine, theirs = _known(one.metadata, "subject_id"), _known(other.metadata, "subject_id")
    first, second = when(one.metadata.get("date")), when(other.metadata.get("date"))
    if not mine or mine != theirs or first is None or second is None:
        return ""
    return other.id if first.before(second) else one.id if second.before(first) else ""


def _apart(first: Mapping[str, str], second: Mapping[str, str]) -> bool:
    """Whether both name a period and these do not overlap."""
    periods = [
        (when(metadata.get("period_start")), when(metadata.get("period_end"))) for metadata in (first, second)
    ]
    (start, end), (start_there, end_there) = periods
    if start is None or end is None or start_there is None or end_there is None:
        return False
    return end.before(start_there) or end_there.before(start)


def _known(metadata: Mapping[str, str], name: str) -> str:
    value = metadata.get(name)
    text = "" if value is None else str(value).strip()
    return text.casefold() if name == "population" else text
