"""The rows that stand beside every model: word overlap, BM25, and the paper's hybrid of each encoder with BM25."""

from __future__ import annotations

from collections.abc import Sequence

from clinsafe.adapters.lexical import Bm25, TokenJaccard
from clinsafe.benchmarks import hybrid
from clinsafe.benchmarks.scoring import CaseResult, score_with_scorer
from clinsafe.benchmarks.suite import SENTENCES, Case
from clinsafe.protocols import ModelIdentity
from clinsafe.reports.assess import system
from clinsafe.reports.evidence import Criteria, SystemRecord


def baselines(
    identities: Sequence[ModelIdentity],
    results: Sequence[Sequence[CaseResult]],
    cases: Sequence[Case],
    criteria: Criteria,
) -> list[SystemRecord]:
    """One record a baseline; a hybrid for each bi-encoder under test."""
    jaccard = TokenJaccard()
    bm25 = Bm25([getattr(case, name) for case in cases for name in SENTENCES])
    sparse = score_with_scorer(bm25, cases)
    records = [
        system(jaccard.identity, score_with_scorer(jaccard, cases), criteria, baseline=True),
        system(bm25.identity, sparse, criteria, baseline=True),
    ]
    for number, (identity, found) in enumerate(zip(identities, results, strict=True), start=1):
        if identity.kind == "bi-encoder":
            made = hybrid.identity(identity, bm25.identity)
            taken = {record.label for record in records}
            label = f"{made.name} ({number})" if made.name in taken else made.name
            records.append(system(made, hybrid.fuse(found, sparse), criteria, label=label, baseline=True))
    return records
