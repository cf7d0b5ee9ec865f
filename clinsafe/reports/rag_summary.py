"""The first page in plain words: what was measured, what may be said, what is not known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from clinsafe.rag.metrics import metric_of
from clinsafe.reports.rag_formats import ordered, percent
from clinsafe.reports.rag_record import RagEvidence
from clinsafe.stats import Estimate, Figure, NotMeasured

NOBODY = "no question has such a value"
SHOWN = 4  # names of figures that stand for all with the same reason


@dataclass(frozen=True, slots=True)
class Summary:
    """Sentences of the first page.

    Attributes:
        cue: whether context utilisation is measured, in one sentence; "" where it is for every system.
        measured: on what.
        sayable: (system, sentences), each sentence with its count and one-sided bound.
        unmeasured: (system, sentences), one a reason.
    """

    cue: str
    measured: Sequence[str]
    sayable: Sequence[tuple[str, Sequence[str]]]
    unmeasured: Sequence[tuple[str, Sequence[str]]]


def summarise(
    record: RagEvidence, figures: Mapping[str, Mapping[str, Figure]], hazards: Mapping[str, str]
) -> Summary:
    """The sentences.

    Args:
        record: the evidence.
        figures: label -> metric key -> figure.
        hazards: id -> name, in the order of every table.
    """
    reasons = {
        figure.reason
        for found in figures.values()
        if isinstance(figure := found.get("cue.all.effective_use", NotMeasured("")), NotMeasured)
    }
    return Summary(
        cue="; ".join(sorted(reasons)),
        measured=_measured(record),
        sayable=[(label, _sayable(found, record.settings.k)) for label, found in figures.items()],
        unmeasured=_together([(label, _unmeasured(found, hazards)) for label, found in figures.items()]),
    )


def _together(said: Sequence[tuple[str, list[str]]]) -> list[tuple[str, list[str]]]:
    """Systems of which the same is said under one heading."""
    labels: dict[tuple[str, ...], list[str]] = {}
    for label, lines in said:
        labels.setdefault(tuple(lines), []).append(label)
    return [(", ".join(found), list(lines)) for lines, found in labels.items()]


def _measured(record: RagEvidence) -> list[str]:
    count = len(record.systems)
    lines = [
        f"{record.questions} question{'' if record.questions == 1 else 's'}, "
        f"{count} system{'' if count == 1 else 's'}; the first {record.settings.k} passages of each question count."
    ]
    for system in record.systems:
        bad = system.source.bad_lines
        left = f"; {bad} line{'' if bad == 1 else 's'} could not be used and {'was' if bad == 1 else 'were'} left out"
        lines.append(
            f"{system.label}: {len(system.items)} questions from {system.source.file}{left if bad else ''}."
        )
    likeness = f"by {record.encoder.name}" if record.encoder else "is not measured: there was no encoder"
    lines.append(f"Likeness of meaning {likeness}.")
    if not record.filters:
        lines.append("No filter looked for clinical contradictions: nothing that is called safe is measured.")
    if record.judge is None:
        lines.append("Nobody judged the answers.")
    else:
        lines.append(
            f"Answers judged by {record.judge.declared or record.judge.identity.name}"
            f"{' (grades that came with the traces)' if record.judge.declared else ''}."
        )
    return lines


def _sayable(figures: Mapping[str, Figure], k: int) -> list[str]:
    """One-sided bounds in words; a figure without a bound says nothing."""
    lines = []

    def at_least(key: str, words: str) -> None:
        figure = figures.get(key)
        if isinstance(figure, Estimate) and figure.lower is not None:
            lines.append(f"{words}: at least {percent(figure.lower)} ({figure.k}/{figure.n} seen).")

    def at_most(key: str, words: str) -> None:
        figure = figures.get(key)
        if isinstance(figure, Estimate) and figure.upper is not None:
            lines.append(f"{words}: at most {percent(figure.upper)} ({figure.k}/{figure.n} seen).")

    at_least("retrieval.all.hit", f"Questions whose evidence is among the first {k} passages")
    at_most(
        "retrieval.all.dangerous.any",
        "Hits with a passage that contradicts the reference, as far as the filters see",
    )
    at_least("generation.all.correct", "Right answers by the paper’s rule, whatever they rest on")
    at_least("cue.all.effective_use", "Answers that rest on evidence that was found")
    at_most("cue.all.information_blindness", "Answers that miss evidence that was found")
    at_most("cue.all.ungrounded_correct", "Right answers that rest on no evidence that was found")
    gap = figures.get("cue.all.accuracy_gap")
    if isinstance(gap, Estimate) and gap.low is not None and gap.low > 0:
        lines.append(
            f"Accuracy flatters this system: it is {100 * gap.low:.1f} points or more above the share of questions "
            f"whose evidence was found (n = {gap.n})."
        )
    return lines


def _unmeasured(figures: Mapping[str, Figure], hazards: Mapping[str, str]) -> list[str]:
    """One sentence for each reason, with the figures that it keeps away."""
    by_reason: dict[str, list[str]] = {}
    for key in ordered((key for key in figures if "@" not in key), hazards):
        figure = figures[key]
        if isinstance(figure, NotMeasured):
            plain = NOBODY if figure.reason.startswith("no value of ") else figure.reason
            by_reason.setdefault(plain, []).append(metric_of(key).name)
    lines = []
    for reason, names in by_reason.items():
        more = f" and {len(names) - SHOWN} more" if len(names) > SHOWN else ""
        lines.append(f"{', '.join(names[:SHOWN])}{more}: {reason}.")
    return lines
