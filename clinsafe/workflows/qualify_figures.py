"""Operational qualification of the figures: does the tool find the answers that are known beforehand?"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence

from clinsafe import paired, stats
from clinsafe.adapters.reference import LookupEncoder
from clinsafe.benchmarks import measure, scoring
from clinsafe.benchmarks.scoring import CaseResult
from clinsafe.benchmarks.suite import SENTENCES, Case
from clinsafe.checklist.qualification import Recorded
from clinsafe.errors import UnknownModel
from clinsafe.protocols import Encoder
from clinsafe.reports import assess
from clinsafe.reports.assess import Assessment
from clinsafe.stats import Estimate, Figure, NotMeasured
from clinsafe.workflows.qualify_bench import Bench, Found, judged, not_run

PUBLISHED = 6e-5
"""Slack of values that were published to four decimals."""
CLOSE, COSINE = 1e-6, 1e-5
HAND = "negation"


def exact_intervals(bench: Bench) -> Found:
    """OQ-01."""
    faults, compared = [], 0
    for row in bench.known.intervals:
        figure, where = stats.rate_of(row.k, row.n), f"{row.k} of {row.n}"
        if not isinstance(figure, Estimate):
            faults.append(f"{where}: not measured")
            continue
        wilson = stats.wilson(row.k, row.n)
        pairs = (
            ("low", row.low, figure.low), ("high", row.high, figure.high),
            ("lower", row.lower, figure.lower), ("upper", row.upper, figure.upper),
            ("Wilson low", row.wilson_low, wilson[0]), ("Wilson high", row.wilson_high, wilson[1]),
        )  # fmt: skip
        for name, wanted, got in pairs:
            if wanted is not None:
                compared += 1
                faults += _off(f"{where}, {name}", wanted, got, PUBLISHED)
    return judged(f"{compared - len(faults)} of {compared} values equal", faults)


def paired_comparisons(bench: Bench) -> Found:
    """OQ-02."""
    known, rows = bench.known, []
    for t in known.newcombe:
        low, high = paired.newcombe10(t.both, t.first, t.second, t.neither)
        rows += [("Newcombe low", t.low, low), ("Newcombe high", t.high, high)]
    rows += [
        (f"McNemar {m.only_a}, {m.only_b}", m.p, paired.mcnemar(m.only_a, m.only_b)) for m in known.mcnemar
    ]
    for h in known.holm:
        rows += [("Holm", *both) for both in zip(h.adjusted, paired.holm(h.p), strict=True)]
    for f in known.friedman:
        found = paired.friedman(f.systems)
        got = (found.chi2, found.p, found.w) if not isinstance(found, NotMeasured) else (math.nan,) * 3
        rows += list(zip(("Friedman", "Friedman p", "Kendall W"), (f.chi2, f.p, f.w), got, strict=True))
    faults = [fault for row in rows for fault in _off(*row, PUBLISHED)]
    return judged(f"{len(rows) - len(faults)} of {len(rows)} values equal", faults)


def hand_computed(bench: Bench) -> Found:
    """OQ-03."""
    hand, cases = bench.known.hand, []
    vectors: dict[str, Sequence[float]] = {}
    for number, quad in enumerate(hand.cases, start=1):
        case = _hand_case(number)
        cases.append(case)
        vectors |= {getattr(case, name): getattr(quad, name) for name in SENTENCES}
    results = scoring.score(LookupEncoder(vectors, (1.0, 0.0)), cases)
    limits = measure.Limits("hand", {case.id: hand.limit for case in cases}, [hand.limit])
    faults = list(_differing(measure.figures(results, limits, detail=False), hand, n=len(cases)))
    asked = len(hand.counts) + len(hand.auroc)
    return judged(f"{asked - len(faults)} of {asked} figures of {len(cases)} cases equal", faults)


def gates_at_edges(bench: Bench) -> Found:
    """OQ-04."""
    rows: list[tuple[str, str, str]] = []
    for edge in bench.known.gates:
        got = edge.gate.decide(stats.rate_of(edge.k, edge.n))
        rows.append((f"{edge.metric} {edge.k} of {edge.n}, {edge.gate.limit_text}", edge.decision, got))
    gate = bench.known.gates[0].gate
    missing: Sequence[tuple[str, Figure | None]] = (
        ("a missing figure", None),
        ("an unmeasured figure", NotMeasured("")),
    )
    rows += [(name, "INCONCLUSIVE", gate.decide(figure)) for name, figure in missing]
    faults = [f"{where}: {got}, not {wanted}" for where, wanted, got in rows if got != wanted]
    return judged(f"{len(rows) - len(faults)} of {len(rows)} decisions equal", faults)


def blind_model(bench: Bench) -> Found:
    """OQ-05."""
    record, verdict = bench.extremes.evidence.subjects[0], bench.extremes.assessments[0]
    failed = {g.hazard for g in verdict.gates if g.decision == "FAIL"}
    hazards = [h.id for h in bench.criteria.hazards]
    faults = [f"{hazard} does not fail" for hazard in hazards if hazard not in failed]
    faults += [f"{g.metric} of {g.hazard} is {g.decision}" for g in verdict.gates if g.decision == "PASS"]
    n = len(bench.cases)
    key = f"suite.all.failure@protocol={bench.criteria.protocol_name}"
    worst = Recorded(counts={"suite.all.inversion": n, key: n, "suite.all.pairwise": 0})
    faults += _differing(assess.figures_of(record), worst, n=n)
    return judged(
        f"{len(failed)} of {len(hazards)} hazards FAIL, {_count(record.figures)} of {n} inverted", faults
    )


def knowing_model(bench: Bench) -> Found:
    """OQ-06."""
    record, verdict = bench.extremes.evidence.subjects[1], bench.extremes.assessments[1]
    passed = [g for g in verdict.gates if g.decision == "PASS"]
    faults = [f"{g.metric} of {g.hazard} is {g.decision}" for g in verdict.gates if g.decision != "PASS"]
    if not passed:
        faults.append("no gate was decided")
    n, protocol = len(bench.cases), bench.criteria.protocol_name
    best = Recorded(
        counts={
            "suite.all.inversion": 0, "suite.all.inversion.any": 0, "suite.all.pairwise": n,
            f"suite.all.failure@protocol={protocol}": 0, f"suite.all.same_missed@protocol={protocol}": 0,
        },
        auroc={"suite.all.auroc": 1.0},
    )  # fmt: skip
    faults += _differing(assess.figures_of(record), best, n=n)
    return judged(
        f"{_count(record.figures)} of {n} inverted, {len(passed)} of {len(verdict.gates)} gates PASS", faults
    )


def fake_is_held(bench: Bench) -> Found:
    """OQ-07. The knowing model is held by nothing but being a fake."""
    verdict, faults = bench.extremes.assessments[1], []
    if verdict.held:
        faults.append("it was held by its figures, so nothing was learnt about fakes")
    if verdict.released or bench.extremes.released:
        faults.append("a fake was released")
    if "NOT FOR RELEASE" not in bench.extremes.html.read_text(encoding="utf-8"):
        faults.append("the report has no watermark")
    said = "released" if verdict.released else "not released"
    return judged(f"{said}, {len(verdict.held)} hazards held by figures", faults)


def lexical_baselines(bench: Bench) -> Found:
    """OQ-08."""
    by_name = {s.identity.name: s for s in bench.extremes.evidence.systems if s.role == "baseline"}
    faults, asked = [], 0
    for recorded in bench.known.lexical:
        asked += len(recorded.counts) + len(recorded.auroc)
        if recorded.system not in by_name:
            faults.append(f"{recorded.system} is not in the record")
            continue
        found = assess.figures_of(by_name[recorded.system])
        faults += [f"{recorded.system}: {fault}" for fault in _differing(found, recorded)]
    return judged(f"{asked - len(faults)} of {asked} recorded figures equal", faults)


def not_measured(bench: Bench) -> Found:
    """OQ-09."""
    first, second, *others = (h.id for h in bench.criteria.hazards)
    spoilt = {first: (math.nan, 0.0), second: (0.0, 0.0)}
    chosen = {hazard: next(c for c in bench.cases if c.hazard == hazard) for hazard in spoilt}
    vectors = bench.knowing_vectors() | {chosen[hazard].a: bad for hazard, bad in spoilt.items()}
    some = _assess(LookupEncoder(vectors, (1.0, 0.0)), bench)
    none = _assess(LookupEncoder({}, (math.nan, math.nan)), bench)
    zero = _assess(LookupEncoder({}, (0.0, 0.0)), bench)
    faults = [
        f"{g.metric} of {g.hazard} is {g.decision} with one unusable vector"
        for g in some.gates
        if g.decision != ("INCONCLUSIVE" if g.hazard in spoilt else "PASS")
    ]
    for what, verdict in (("no number", none), ("all zeros", zero)):
        faults += [
            f"{g.metric} of {g.hazard} is {g.decision} where every vector is {what}"
            for g in verdict.gates
            if g.decision != "INCONCLUSIVE"
        ]
    if some.released or none.released or zero.released:
        faults.append("a model that was not measured was released")
    decided = len(some.gates) + len(none.gates) + len(zero.gates)
    return judged(
        f"{decided - len(faults)} of {decided} decisions as they must be, {len(others)} hazards untouched",
        faults,
    )


def reference_counts(bench: Bench) -> Found:
    """OQ-17."""
    results = _reference(bench)
    if isinstance(results, Found):
        return results
    recorded = bench.known.model
    record = assess.system(bench.reference.identity, results, bench.criteria)
    faults = list(_differing(assess.figures_of(record), recorded))
    return judged(
        f"{_count(record.figures)} of {len(results)} preferred; "
        f"{len(recorded.counts) - len(faults)} of {len(recorded.counts)} recorded counts equal",
        faults,
    )


def reference_cosines(bench: Bench) -> Found:
    """OQ-18."""
    results = _reference(bench)
    if isinstance(results, Found):
        return results
    scores = {result.id: result.scores for result in results}
    faults, gaps = [], []
    for row in bench.known.model.cosines:
        found = scores.get(row.case, NotMeasured("not in the suite"))
        got = math.nan if isinstance(found, NotMeasured) else found.get(row.pair, math.nan)
        gaps.append(abs(got - row.cosine))
        faults += _off(f"{row.case} {row.pair}", row.cosine, got, COSINE)
    widest = f"{max(gaps):.1e}" if not any(map(math.isnan, gaps)) else "not a number"
    return judged(f"{len(gaps) - len(faults)} of {len(gaps)} equal, widest gap {widest}", faults)


def _reference(bench: Bench) -> list[CaseResult] | Found:
    """The reference model's scores, or why it was not run. Weights that differ from the pinned ones are a fault."""
    if not bench.with_model:
        return not_run("left out on request (--without-model)")
    try:
        return bench.reference_results
    except UnknownModel as error:
        return not_run(f"the reference model is not on this machine: {error}")


def _assess(encoder: Encoder, bench: Bench) -> Assessment:
    record = assess.system(encoder.identity, scoring.score(encoder, bench.cases), bench.criteria)
    return assess.assess_all([record], bench.criteria, None)[0]


def _differing(found: Mapping[str, Figure], recorded: Recorded, n: int | None = None) -> Iterator[str]:
    """One line for each figure that is not the recorded one; `n` is how many cases each must stand on."""
    for key, wanted in recorded.counts.items():
        figure = found.get(key, NotMeasured("there is no such figure"))
        if isinstance(figure, NotMeasured):
            yield f"{key}: not measured ({figure.reason})"
        elif figure.k != wanted or (n is not None and figure.n != n):
            yield f"{key}: {figure.k} of {figure.n}, not {wanted}{f' of {n}' if n is not None else ''}"
    for key, value in recorded.auroc.items():
        figure = found.get(key, NotMeasured("there is no such figure"))
        if isinstance(figure, NotMeasured):
            yield f"{key}: not measured ({figure.reason})"
        else:
            yield from _off(key, value, figure.value, CLOSE)


def _off(where: str, wanted: float, got: float | None, slack: float) -> list[str]:
    """A fault where `got` is further than `slack` from `wanted`; what is no number is always one."""
    if got is not None and abs(got - wanted) <= slack:  # false for NaN
        return []
    return [f"{where}: {got if got is None else format(got, '.7g')}, not {wanted:.7g}"]


def _count(figures: Mapping[str, Mapping[str, object]]) -> object:
    return figures.get("suite.all.inversion", {}).get("k", "not measured")


def _hand_case(number: int) -> Case:
    """A case whose texts are only names for the vectors worked out by hand."""
    return Case(
        id=f"hand-{number}", hazard=HAND, subtype="hand", specialty="pharmacy", genre="note", factor=None,
        **{name: f"hand case {number} {name}" for name in SENTENCES}, harm="none: a case worked out by hand",
        split="test", cluster=f"hand-{number}", origin="known answers",
    )  # fmt: skip
