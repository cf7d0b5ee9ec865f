"""From the figures of an audit to the standing of a judge (decision D10). The bars are `clinsafe.rag.standing`'s."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from clinsafe.protocols import MetricKey
from clinsafe.rag.auditing.figures import ALL, AREA, UNSUPPORTED, key, slug
from clinsafe.rag.auditing.record import JudgeAudit
from clinsafe.rag.standing import Standing
from clinsafe.stats import Estimate, Figure, NotMeasured

GATED = ("false_support", UNSUPPORTED)


def standing_of(
    figures: Mapping[str, Figure],
    instrument: str,
    *,
    required: Sequence[str],
    judge: str = "",
    provisional: bool = False,
) -> Standing:
    """The standing of one instrument by what was measured of it; what is not among the figures is not measured.

    Args:
        figures: metric key -> figure, as `clinsafe.rag.auditing.figures` names them.
        instrument: its name in the keys.
        required: hazards that the answers have to cover; one counts where kappa could be measured in it.
        judge: its name for readers; "" is the instrument's.
        provisional: the labels are the writer's own.
    """
    agreement = figures.get(
        key(instrument, ALL, "kappa", "answers"), NotMeasured("no labelled answer was judged")
    )
    covered = [
        h for h in required if isinstance(figures.get(key(instrument, h, "kappa", "answers")), Estimate)
    ]
    return Standing(
        judge=judge or instrument,
        kappa=agreement,
        false_support=worst_support(figures, instrument)[1],
        n=agreement.n,
        hazards=tuple(covered),
        required=tuple(required),
        provisional=provisional,
    )


def standing_in(audit: JudgeAudit, required: Sequence[str] | None = None) -> Standing:
    """The standing by a file, decided anew from its figures.

    Args:
        audit: from `clinsafe.rag.auditing.record.load_judge_audit`.
        required: hazards that must be covered; None takes the file's word for it.
    """
    return standing_of(
        audit.measured(),
        audit.instrument,
        required=audit.hazards if required is None else required,
        judge=audit.judge.name,
        provisional=audit.answers.provisional,
    )


def worst_support(figures: Mapping[str, Figure], instrument: str) -> tuple[str, Figure]:
    """(key, figure) of the false support with the highest upper bound, over all hazards.

    It is looked for among contradicted answers, all answers that are not supported, and each suite that was run: a
    judge that sees contradictions in one set and misses them in another has not been shown to see them. A figure of the
    answers that is not there is worse than any that is. Unstated answers are too few for a bound of their own.
    """
    needed = [key(instrument, ALL, metric, "answers") for metric in GATED]
    found: dict[str, Figure] = {name: NotMeasured("no such labelled answer was judged") for name in needed}
    for name, figure in figures.items():
        parts = MetricKey.parse(name)
        by = (parts.slice or "").split(",")[0]
        gated = parts.metric == "false_support" and parts.subtype != "not_stated"
        if gated and parts[:2] == (AREA, ALL) and by == f"instrument={slug(instrument)}":
            found[name] = figure

    def bound(name: str) -> float:
        figure = found[name]
        return 2.0 if isinstance(figure, NotMeasured) or figure.upper is None else figure.upper

    worst = max(found, key=bound)
    return worst, found[worst]
