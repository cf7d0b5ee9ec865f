"""The NLI guardrail put together: a model with its filter, and the threshold of a model from the suite's dev split."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from clinsafe.benchmarks.suite import Case, by_hazard, load_card, load_suite, split_hash
from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.stats import Figure, rate

if TYPE_CHECKING:
    from clinsafe.mitigations.filters.nli import Judged, NliFilter
    from clinsafe.mitigations.nli.calibration import Calibration
    from clinsafe.mitigations.nli.scorer import NliScorer
    from clinsafe.mitigations.nli.threshold import Threshold

SPLIT = "dev"
AREA = "nli"
Stage = Callable[[str, int, int], None]


def silent(_what: str, _done: int, _total: int) -> None:
    """A progress report for nobody."""


@dataclass(frozen=True, slots=True)
class CalibrationResult:
    """What a calibration gave.

    Attributes:
        model: name of the model.
        n: cases.
        threshold: with recall and false alarms at it, or why there is none.
        calibration: the record to be written; None where there is no threshold.
        figures: metric key -> figure: ``nli.all.recall``, ``nli.<hazard>.recall``, ``nli.all.false_alarm``,
            ``nli.all.false_alarm.unrelated``, ``nli.all.compared``, each ``@split=dev``.
    """

    model: str
    n: int
    threshold: Threshold
    calibration: Calibration | None
    figures: dict[str, Figure] = field(default_factory=dict)


def load_filter(
    model: str, *, content: Content | None = None, calibration: Path | None = None, **options: Any
) -> NliFilter:
    """The NLI filter over a model by alias, folder or hub id; ``stack.filters["nli"]`` is its place.

    Args:
        content: content tree with its overlay (``mitigations/nli.yaml``).
        calibration: file that `clinsafe guard calibrate-nli` wrote for this model; None: not calibrated.
        options: see `clinsafe.adapters.nli.load_nli`.

    Raises:
        ModelError and its kinds, MissingDependency, ContentError, UsageError.
    """
    from clinsafe.adapters.nli import load_nli
    from clinsafe.mitigations.filters.nli import NliFilter
    from clinsafe.mitigations.nli.calibration import load_calibration
    from clinsafe.mitigations.nli.settings import load_settings

    settings = load_settings(content)
    known = load_calibration(calibration) if calibration is not None else None  # a slip there is told first
    return NliFilter(load_nli(model, **options), settings, known)


def calibrate(
    model: NliScorer,
    cases: Sequence[Case] | None = None,
    *,
    content: Content | None = None,
    limit: float | None = None,
    stage: Stage = silent,
) -> CalibrationResult:
    """The smallest threshold that keeps the false-alarm limit on the dev cases, and what it catches.

    Every pair goes through the guard's own reading and choice of sentences. A safe pair that could not be checked is a
    false alarm; a conflicting one is told only by what was compared.

    Args:
        cases: dev cases; None takes the written suite's.
        limit: for the one-sided 95 % bound of false alarms by case, in (0, 1); None is the settings'.
        stage: told how far the work is.

    Raises:
        UsageError: a case of another split, none at all, or a limit that is none.
    """
    from clinsafe.mitigations.filters.nli import NliFilter
    from clinsafe.mitigations.nli.settings import load_settings
    from clinsafe.mitigations.nli.threshold import UNREADABLE, choose

    content = content or Content()
    settings = load_settings(content)
    limit = settings.false_alarm_limit if limit is None else limit
    if not 0 < limit < 1:
        raise UsageError(f"the false-alarm limit is a share between 0 and 1, got {limit:g}")
    cases = load_suite(content, split=SPLIT) if cases is None else list(cases)
    if not cases or any(case.split != SPLIT for case in cases):
        raise UsageError(
            "a threshold is chosen on dev cases only; the test split is for what is measured afterwards"
        )
    judge = _Judge(NliFilter(model, settings), content)
    conflict: list[Judged] = []
    safe: list[float] = []
    unrelated: list[float] = []
    for done, (case, stranger) in enumerate(zip(cases, _strangers(cases), strict=True), start=1):
        conflict.append(judge(case.a, case.b))
        same = judge(case.a, case.a_same), judge(case.b, case.b_same)
        safe.append(max(one.strength if one.complete else UNREADABLE for one in same))
        other = judge(case.a, stranger)
        unrelated.append(other.strength if other.complete else UNREADABLE)
        stage("Calibrating", done, len(cases))
    strengths = [one.strength for one in conflict]
    chosen = choose(strengths, safe, limit=limit, least=settings.least_threshold)
    figures = {
        _key("all", "recall"): chosen.recall,
        _key("all", "false_alarm"): chosen.false_alarm,
        _key("all", "compared"): rate([bool(one.pairs) for one in conflict]),
    }
    if chosen.value is None:
        return CalibrationResult(model.identity.name, len(cases), chosen, None, figures)
    figures[_key("all", "false_alarm.unrelated")] = rate([one >= chosen.value for one in unrelated])
    told = {case.id: one >= chosen.value for case, one in zip(cases, strengths, strict=True)}
    for hazard, group in by_hazard(cases).items():
        figures[_key(hazard, "recall")] = rate([told[case.id] for case in group])
    record = _record(
        model, cases, chosen.value, limit, figures, settings.pairing_sha256, load_card(content).suite_version
    )
    return CalibrationResult(model.identity.name, len(cases), chosen, record, figures)


class _Judge:
    """Reads both sides as the guard does and asks the filter, whatever its threshold."""

    def __init__(self, nli: NliFilter, content: Content) -> None:
        from clinsafe.text import Reader

        self._nli, self._reader = nli, Reader(content, "")  # "": no parse is needed

    def __call__(self, query: str, passage: str) -> Judged:
        sides = [self._nli.read(self._reader.read(text)) for text in (query, passage)]
        return self._nli.judge(*sides)


def _strangers(cases: Sequence[Case]) -> list[str]:
    """For each case a sentence of another one, of another hazard where the cases hold several."""
    half = len(cases) // 2
    return [case.a for case in (*cases[half:], *cases[:half])]


def _key(hazard: str, metric: str) -> str:
    return f"{AREA}.{hazard}.{metric}@split={SPLIT}"


def _record(
    model: NliScorer,
    cases: Sequence[Case],
    threshold: float,
    limit: float,
    figures: dict[str, Figure],
    pairing_sha256: str,
    suite_version: str,
) -> Calibration:
    from clinsafe.mitigations.nli.calibration import Calibration, Share, fingerprint

    def share(metric: str, hazard: str = "all") -> Share:
        return Share.of(figures[_key(hazard, metric)])

    return Calibration(
        model=model.identity.name,
        model_sha256=fingerprint(model.identity),
        pairing_sha256=pairing_sha256,
        threshold=threshold,
        limit=limit,
        suite_version=suite_version,
        cases_sha256=split_hash(cases, SPLIT),
        calibrated=datetime.now(UTC).date(),
        trusted_code=model.identity.trusted_code,
        recall=share("recall"),
        false_alarm=share("false_alarm"),
        unrelated=share("false_alarm.unrelated"),
        compared=share("compared"),
        by_hazard={hazard: share("recall", hazard) for hazard in by_hazard(cases)},
    )
