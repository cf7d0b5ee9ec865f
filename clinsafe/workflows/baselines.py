"""The rows that stand beside every model: word overlap, BM25, and the paper's hybrid of each encoder with BM25."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import count

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
    taken: Sequence[str] = (),
) -> list[SystemRecord]:
    """One record a baseline; a hybrid for each bi-encoder under test.

    Args:
        identities, results: of the systems under test.
        taken: their labels; a baseline gets another one.
    """
    jaccard = TokenJaccard()
    bm25 = Bm25([getattr(case, name) for case in cases for name in SENTENCES])
    sparse = score_with_scorer(bm25, cases)
    rows = [(jaccard.identity, score_with_scorer(jaccard, cases)), (bm25.identity, sparse)]
    rows += [
        (hybrid.identity(identity, bm25.identity), hybrid.fuse(found, sparse))
        for identity, found in zip(identities, results, strict=True)
        if identity.kind == "bi-encoder"
    ]
    names = labels([identity.name for identity, _ in rows], taken)
    return [
        system(identity, found, criteria, label=name, baseline=True)
        for (identity, found), name in zip(rows, names, strict=True)
    ]


def labels(names: Sequence[str], taken: Sequence[str] = ()) -> list[str]:
    """The names, told apart where two are equal or one is taken: ``minilm``, ``minilm (2)``."""
    used, found = set(taken), []
    for name in names:
        chosen = next(c for n in count(1) if (c := name if n == 1 else f"{name} ({n})") not in used)
        used.add(chosen)
        found.append(chosen)
    return found
