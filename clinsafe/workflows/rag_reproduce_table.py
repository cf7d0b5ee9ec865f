"""Published beside measured: the rows of RAG-X's Table III, what R finds and what the labels say, and the reasons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any

from clinsafe.benchmarks.arithmetic import Check, check
from clinsafe.benchmarks.claims import Rate
from clinsafe.rag.published import PublishedRag, shares
from clinsafe.rag.values import ItemRecord
from clinsafe.reports.rag_record import RagSystem
from clinsafe.stats import Estimate, Figure, NotMeasured, figure_from_json, figure_to_json, rate_of
from clinsafe.workflows.rag_reproduce import BM25, Literal, Reproduced

BY_R = {
    "mrr": "retrieval.all.mrr.cascade",
    "hit": "retrieval.all.hit",
    "context_relevancy": "retrieval.all.context_relevancy",
    "exclusive_hit": "retrieval.all.exclusive_hit.r1",
}
FURTHER = {
    "safe_hit": "retrieval.all.safe_hit",
    "dangerous_any": "retrieval.all.dangerous.any",
    "dangerous_only": "retrieval.all.dangerous.only",
    "redundancy": "retrieval.all.redundancy.r1_2",
    "level_substring": "retrieval.all.level.substring",
    "level_tokens": "retrieval.all.level.tokens",
    "level_cosine": "retrieval.all.level.cosine",
}
LABELS = {"label_mrr": "retrieval.all.mrr", "label_recall": "retrieval.all.recall"}


@dataclass(frozen=True, slots=True)
class PublishedLine:
    """A row of the paper for one data set; numbers as printed."""

    dataset: str
    retriever: str
    alpha: str
    values: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class MeasuredLine:
    """One system; `figures` by the names of `BY_R`, `FURTHER`, `LABELS`, and ``label_hit``, ``hit_words``,
    ``hit_substring`` (R cut off after its second and first level)."""

    dataset: str
    system: str
    alpha: str
    documents: int
    chunks: int
    figures: Mapping[str, Figure]


@dataclass(frozen=True, slots=True)
class Table:
    """Everything that is printed."""

    published: tuple[PublishedLine, ...]
    measured: tuple[MeasuredLine, ...]
    literal: Mapping[str, Mapping[str, Literal]]
    checks: tuple[Check, ...]

    def alphas(self, dataset: str) -> list[str]:
        """Weights that were measured, in order."""
        return sorted({line.alpha for line in self.measured if line.dataset == dataset}, key=float)

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {
            "published": [asdict(line) for line in self.published],
            "measured": [
                {
                    **{
                        name: getattr(line, name)
                        for name in ("dataset", "system", "alpha", "documents", "chunks")
                    },
                    "figures": {name: figure_to_json(figure) for name, figure in line.figures.items()},
                }
                for line in self.measured
            ],
            "literal": {
                label: {how: asdict(one) for how, one in by_how.items()}
                for label, by_how in self.literal.items()
            },
            "impossible": [asdict(one) for one in self.checks if one.fault],
        }


def table_of(found: Reproduced, published: PublishedRag) -> Table:
    """Published and measured lines of the data sets that were measured."""
    measured = tuple(_measured(system, found) for system in found.evidence.systems)
    names = {line.dataset for line in measured}
    return Table(
        tuple(_published(published, names)), measured, found.literal, tuple(printed_checks(published))
    )


def printed_checks(published: PublishedRag) -> list[Check]:
    """Whether a whole number of questions can give each share that the paper prints (GRIM)."""
    return check(
        Rate(where=one.where, about=one.about, value=one.value, n=one.n, k=one.k, whole=one.whole)
        for one in shares(published)
    )


def _published(published: PublishedRag, names: Iterable[str]) -> Iterator[PublishedLine]:
    wanted = set(names)
    for row in published.retrieval:
        for name, cell in row.cells.items():
            if name in wanted:
                values = {
                    "mrr": str(cell.mrr),
                    "hit": str(cell.recall),
                    "context_relevancy": str(cell.context_relevancy),
                    "exclusive_hit": str(cell.exclusive_hit),
                }
                yield PublishedLine(name, row.retriever, f"{row.alpha.normalize():f}", values)


def _measured(system: RagSystem, found: Reproduced) -> MeasuredLine:
    dataset, _, rest = system.label.partition(" ")
    parts = rest.split(" ")
    alpha = next((part.removeprefix("alpha=") for part in parts if part.startswith("alpha=")), "0")
    name = BM25 if parts[0] == BM25 else " ".join(part for part in parts if not part.startswith("alpha="))
    figures = {
        short: figure_from_json(system.figures[key])
        if key in system.figures
        else NotMeasured("was not recorded")
        for short, key in {**BY_R, **FURTHER, **LABELS}.items()
    }
    figures |= {
        "label_hit": _share(system.items, lambda item: _positive(item, "rr")),
        "hit_words": _share(system.items, lambda item: _level(item, {1, 2})),
        "hit_substring": _share(system.items, lambda item: _level(item, {1})),
    }
    label = system.label
    return MeasuredLine(dataset, name, alpha, found.documents[label], found.chunks[label], figures)


def _share(items: Iterable[ItemRecord], outcome: Any) -> Figure:
    told = [value for item in items if (value := outcome(item)) is not None]
    return rate_of(sum(told), len(told))


def _positive(item: ItemRecord, name: str) -> bool | None:
    value = item.values.get(name)
    return None if value is None else value > 0


def _level(item: ItemRecord, levels: set[int]) -> bool | None:
    """Whether a passage was found at one of these levels of R; None where none of its passages was looked at."""
    told = [int(value) for name, value in item.values.items() if name.startswith("level_at.")]
    if "hit" not in item.values:
        return None
    return any(level in levels for level in told)


def told(figure: Figure | None, places: int = 2) -> str:
    """``0.34 [0.31, 0.37]``; a dash where nothing was measured."""
    if not isinstance(figure, Estimate):
        return "-"
    ends = f" [{figure.low:.{places}f}, {figure.high:.{places}f}]" if figure.low is not None else ""
    return f"{figure.value:.{places}f}{ends}"
