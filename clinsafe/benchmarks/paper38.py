"""The 38 pairs that the paper's script publishes, with what is wrong in each where something is.

They are shown and measured beside the suite, never pooled with it: pairs without paraphrases cannot tell a model that
understands from one that calls everything alike, and several of them are not contradictions.
"""

from __future__ import annotations

from clinsafe.content import Content, Record


class PaperPair(Record):
    """One published pair. `contradiction` is our reading; `remark` says what is wrong, "" where nothing is."""

    id: str
    hazard: str
    a: str
    b: str
    contradiction: bool
    remark: str
    origin: str


def load_paper38(content: Content) -> list[PaperPair]:
    """All 38 pairs in the order of the script."""
    return content.jsonl("benchmarks/paper38.jsonl", PaperPair)
