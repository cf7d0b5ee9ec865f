"""The job ``mine``: candidate quads of each document, and what was refused on the way."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from clinsafe.benchmarks.mining.quads import Candidate, Quads
from clinsafe.benchmarks.mining.rules import load_rules
from clinsafe.content import Content
from clinsafe.corpus import Window
from clinsafe.errors import MissingDependency
from clinsafe.scale.job import Job, Work
from clinsafe.scale.reading import code_hash
from clinsafe.text.parse import Parser
from clinsafe.workflows.mine import rules_hash

WHOLE = 10**9  # words of a window that holds any document


def start(job: Job) -> Work:
    """The rules and a spaCy pipeline.

    Raises:
        ContentError: a rule file is malformed.
        MissingDependency: no English pipeline is installed; mining cannot do without.
    """
    content, parser = Content(job.content), Parser(job.spacy)
    rules = load_rules(content, job.hazards)
    pipeline = parser.pipeline()
    if pipeline is None:
        raise MissingDependency(
            "mining", "an English spaCy pipeline", "python -m spacy download en_core_web_sm"
        )
    made_with = {
        "code": code_hash("benchmarks/mining"),
        "rules": rules_hash(content),
        "parse": parser.name,
        "seed": job.seed,
        "hazards": list(job.hazards),
    }
    return Work(_Miner(Quads(rules, pipeline, job.seed)).run, made_with)


class _Miner:
    def __init__(self, quads: Quads) -> None:
        self.quads = quads

    def run(self, rows: Sequence[Window]) -> list[str]:
        return [self._one(row) for row in rows]

    def _one(self, row: Window) -> str:
        before = self.quads.tally.refused.copy()
        found = self.quads.of(row.cluster, row.text)
        refused = self.quads.tally.refused - before
        return json.dumps(
            {"quads": [one.to_json() for one in found], "refused": dict(refused)}, ensure_ascii=False
        )


def candidates(value: str) -> tuple[list[Candidate], dict[str, int]]:
    """Read one row's value back."""
    data: Any = json.loads(value)
    return [Candidate(**row) for row in data["quads"]], data["refused"]
