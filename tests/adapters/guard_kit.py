"""A small guard whose verdicts can be read off the passages, for tests of what carries them."""

from __future__ import annotations

import contextlib
import io
import re
import time
from pathlib import Path
from typing import Any

from clinsafe.adapters.retrievers import passages as accept
from clinsafe.guarded import Confirmation, Disagreement, GuardedAnswer, GuardedPassage
from clinsafe.protocols import Finding, Passage, Span

QUERY = "Is the patient allergic to penicillin?"
FLAG = "CONFLICT"


def finding(text: str) -> Finding:
    spans = Span(0, 2), Span(0, len(text))
    return Finding(
        "negation", "conflict", "contradiction", "high", 0.9, *spans, "a", "b", "no", "r1", "It says no."
    )


class WordGuard:
    """Flags passages with ``no``, withholds those with ``old``, escalates ``urgent``, cannot check ``unread``.

    A disabled guard, one that flags everything and one that flags nothing cannot be told from each other by a test
    that looks at one passage: `mode` makes them.
    """

    def __init__(self, mode: str = "real", wait: float = 0.0) -> None:
        self.mode, self.wait, self.seen = mode, wait, []

    def check(self, query: str, passages: object, /, *, k: int | None = None) -> GuardedAnswer:
        time.sleep(self.wait)
        found, notes = accept(passages)
        self.seen.append((query, [p.id for p in found], k))
        rows = [self._row(place, p) for place, p in enumerate(found[:k], start=1)]
        shown = [row for row in rows if row.rank]
        flagged = [row.passage for row in shown if row.findings]
        clean = [row.passage for row in shown if not row.findings]
        pairs = [
            Disagreement(one.id, two.id, (finding(two.text),))
            for one, two in zip(clean, flagged, strict=False)
        ]
        return GuardedAnswer(
            query=query,
            question=query.endswith("?"),
            passages=tuple(shown),
            withheld=tuple(row for row in rows if not row.rank),
            disagreements=tuple(pairs),
            confirmations=tuple(
                Confirmation(p.id, (0, 1), "5 mg", f"Confirm 5 mg (passage {p.id}).")
                for p in found
                if "5 mg" in p.text
            ),
            review=tuple(f"passage {row.passage.id}: urgent" for row in rows if row.action == "escalate"),
            notes=tuple(notes),
            policy="kit",
        )

    def _row(self, place: int, passage: Passage) -> GuardedPassage:
        words = set(passage.text.lower().replace(".", "").split())
        no = {"real": "no" in words, "always": True, "disabled": False}[self.mode]
        action = (
            "withhold" if "old" in words else "escalate" if "urgent" in words else "flag" if no else "keep"
        )
        unchecked = {"negation": "read: ran out of time"} if "unread" in words else {}
        head = f"[{passage.id}: {FLAG}]\n" if no else f"[{passage.id}]\n"
        return GuardedPassage(
            passage, 0 if action == "withhold" else place, place, action, ("negation: It says no.",) if no else (),
            (finding(passage.text),) if no else (), "denies" if no else "silent", 0.9, unchecked, head + passage.text,
        )  # fmt: skip


YES, NO, OLD = "Allergic to penicillin.", "There is no allergy.", "An old note."
TEXTS = {"a": YES, "b": NO, "c": OLD}


def mappings() -> list[dict[str, Any]]:
    return [{"id": name, "text": text, "source": "notes"} for name, text in TEXTS.items()]


DOCS = Path(__file__).parents[2] / "docs" / "frameworks.md"


def run_docs(heading: str) -> str:
    """Run the code blocks under a heading of docs/frameworks.md; what they print."""
    section = DOCS.read_text(encoding="utf-8").partition(f"\n## {heading}\n")[2].partition("\n## ")[0]
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        for block in re.findall(r"```python\n(.*?)```", section, re.DOTALL):
            exec(compile(block, f"{DOCS.name}: {heading}", "exec"), {})
    return printed.getvalue()
