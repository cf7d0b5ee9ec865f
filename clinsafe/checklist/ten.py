"""All ten items, each answered by whoever can: the suite, a cross-encoder in the run, the institution."""

from __future__ import annotations

from collections.abc import Mapping

from clinsafe.checklist.answers import Answers, answer_item
from clinsafe.checklist.items import ItemAnswer, ItemsFile, answer_by_cross_encoder, answer_by_suite
from clinsafe.protocols import Figures, SystemKind
from clinsafe.stats import Figure


def answer(
    file: ItemsFile,
    figures: Figures,
    *,
    kind: SystemKind = "bi-encoder",
    reranker: tuple[str, Mapping[str, Figure], Mapping[str, Figure]] = ("", {}, {}),
    answers: Answers | None = None,
) -> list[ItemAnswer]:
    """One answer an item, in order.

    Args:
        figures: of the system under test.
        reranker: name, failure and inversion figures by hazard of the run's cross-encoder.
        answers: the institution's.
    """
    found = []
    for item in file.items:
        if item.assessed_by == "suite":
            found.append(answer_by_suite(item, figures, kind, file.mitigation))
        elif item.assessed_by == "cross_encoder":
            name, failures, inversions = reranker
            found.append(answer_by_cross_encoder(item, failures, name, inversions, figures, file.mitigation))
        else:
            found.append(answer_item(item, answers))
    return found
