"""What the tests of the decision log share: keys, filled logs, an answer with a canary in every text."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from clinsafe.guarded import Confirmation, Disagreement, GuardedAnswer, GuardedPassage
from clinsafe.oversight.chain import GENESIS, Row, link
from clinsafe.oversight.keys import LogKey
from clinsafe.protocols import Finding, Passage, Span

KEY = LogKey(bytes(range(32)))
OTHER = LogKey(bytes(range(1, 33)))
KEYS = {KEY.id: KEY}
LOG_ID = "a" * 32
NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)
CANARY = "Zaphenia Quibblethorpe"


def decision(n: int) -> dict[str, Any]:
    return {"schema_version": 1, "event": "decision", "time": f"2026-01-31T12:00:00.{n % 1000:03d}Z", "n": n}


def chained(n: int, key: LogKey = KEY, log_id: str = LOG_ID, start: int = 0) -> list[Row]:
    """A whole log of n rows in memory; `start` makes other decisions."""
    opened = {"event": "opened", "time": "2026-01-31T12:00:00.000Z", "log_id": log_id, "key_id": key.id}
    rows = [link(key, GENESIS, 1, opened)]
    while len(rows) < n:
        rows.append(link(key, rows[-1].mac, len(rows) + 1, decision(start + len(rows))))
    return placed(rows)


def placed(rows: Sequence[Row]) -> list[Row]:
    """The rows with the places that a file gives them."""
    return [Row(r.seq, r.prev, r.mac, r.text, f"line {n}") for n, r in enumerate(rows, start=1)]


def ticking() -> Callable[[], datetime]:
    """A clock that goes on by a second each time it is looked at."""
    moments = iter(range(10**6))
    return lambda: NOON + timedelta(seconds=next(moments))


def together(script: str, *arguments: str, n: int = 4) -> None:
    """Run a script in n processes at once; each gets its number as the last argument."""
    root = str(Path(__file__).resolve().parents[2])
    command = [sys.executable, "-W", "error", "-c", f"import sys; sys.path.insert(0, {root!r})\n{script}"]
    running = [
        subprocess.Popen([*command, *arguments, str(number)], stderr=subprocess.PIPE, text=True)
        for number in range(n)
    ]
    ended = [(one.communicate(timeout=120)[1], one.returncode) for one in running]
    assert [code for _, code in ended] == [0] * n, ended


def finding(text: str = CANARY) -> Finding:
    return Finding(
        hazard="negation", verdict="conflict", kind="contradiction", severity="critical", confidence=0.91,
        query_span=Span(0, 4), passage_span=Span(3, 9), query_normal=f"present {text}", passage_normal=f"absent {text}",
        cue=text, rule="negation.absence", sentence=f"The passage denies {text}.",
    )  # fmt: skip


def answer(text: str = CANARY, ids: Sequence[str] = ("note-1", "note-2", "note-3")) -> GuardedAnswer:
    """An answer with everything in it that the guard can say, `text` in each place that may hold words."""
    found = finding(text)

    def passage(number: int, action: Any, **more: Any) -> GuardedPassage:
        inner = Passage(
            ids[number - 1],
            f"{text} has no allergy",
            0.5,
            f"/notes/{text}.txt",
            {"subject_id": text, "note": text},
        )
        rank = 0 if action == "withhold" else number
        return GuardedPassage(inner, rank, number, action, (f"says {text}",), **more)

    return GuardedAnswer(
        query=f"Does {text} have a penicillin allergy?",
        question=True,
        passages=(
            passage(1, "flag", findings=(found,), stance="denies", confidence=0.91, annotated=f"[{text}]"),
            passage(2, "escalate", stance="affirms", confidence=0.0,
                    unchecked={"numerical": "read: ran out of time", "hedging": f"compare: failed with {text}"}),
        ),
        withheld=(passage(3, "withhold", findings=(found, found)),),
        disagreements=(Disagreement(ids[0], ids[1], (found,), ids[1]),),
        confirmations=(Confirmation(ids[0], (3, 9), text, f"Is {text} right?"),),
        review=(f"{text} is contradicted", "a second reason"),
        notes=(f"Absence not verified: {text}", text),
        unchecked=("disagreements: ran out of time", f"{text.split()[-1]}: ran out of time", text),
        not_run=(f"no NLI model {text}", text),
        policy="default",
        policy_sha256="ab" * 32,
        seconds=0.01234,
    )  # fmt: skip
