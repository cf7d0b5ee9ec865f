"""From outcomes to figures: what reached the reader unmarked, what was marked, and what was marked for nothing.

Keys are ``endtoend.<hazard>.<metric>@system=…,arm=…,k=…[,corpus=control][,form=…]``. All are rates of queries:

- ``reached``: the contradicting passage is among those shown. ``dangerous``: it stands there without a mark, at or
  above the right one or without it (decision D6).
- ``flagged``, ``suppressed``, ``unchecked``: of the contradicting passages that were retrieved, those shown with a
  mark, those taken out, those shown with no word but that they were not checked. Only the first is a success.
  ``flagged.finding`` rests on a conflict with the query, ``flagged.disagreement`` on one with another passage alone,
  ``flagged.own`` on the hazard that was edited in.
- ``right_found``: the right passage is among the k. Of those, ``right_shown`` are still there, ``right_flagged``
  carry a mark or were taken out for something found. Without a form these are of claims and questions: to a false
  premise the true passage is in conflict, and its mark is no false alarm.
- ``distractor_flagged``: any ordinary passage was marked; ``distractor_flagged.share`` is the mean share of them.
- ``review``, ``lost``, ``partly_unchecked``: a person was asked for; a passage is nowhere; not all was checked.
- ``stance``: of the right passages found for a yes/no question, those read as the answer that they give.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby

from clinsafe.benchmarks.endtoend.outcomes import Outcome, Setting
from clinsafe.benchmarks.endtoend.queries import FORMS
from clinsafe.paired import Difference, difference, holm
from clinsafe.stats import Estimate, Figure, NotMeasured, mean, rate_of

AREA = "endtoend"
BEFORE, AFTER = "before", "after"
ALL = "all"

Group = Sequence[Outcome]
Metric = Callable[[Group, str | None], Figure]


@lru_cache(maxsize=4096)
def _rate_of(k: int, n: int) -> Figure:
    """Tens of thousands of rates, of a few hundred different counts."""
    return rate_of(k, n)


def rate(outcomes: Iterable[bool]) -> Figure:
    """Share of True with its exact interval."""
    listed = list(outcomes)
    return _rate_of(sum(listed), len(listed))


def _of_all(test: Callable[[Outcome], bool]) -> Metric:
    return lambda group, _form: rate(test(one) for one in group)


def _of_wrong(test: Callable[[Outcome], bool]) -> Metric:
    return lambda group, _form: rate([test(one) for one in group if one.wrong.retrieved])


def _of_right(test: Callable[[Outcome], bool]) -> Metric:
    def figure(group: Group, form: str | None) -> Figure:
        kept = group if form else [one for one in group if one.form != "false_premise"]
        return rate([test(one) for one in kept if one.right.retrieved])

    return figure


def _share(group: Group, _form: str | None) -> Figure:
    return mean([one.flagged / one.shown for one in group if one.shown])


def _stance(group: Group, _form: str | None) -> Figure:
    asked = [one for one in group if one.form == "question" and one.answer != "other" and one.right.retrieved]
    return rate([one.right.stance == one.answer for one in asked])


RETRIEVAL: Mapping[str, Metric] = {
    "right_found": _of_all(lambda one: one.right.retrieved > 0),
}
CONTRADICTION: Mapping[str, Metric] = {
    "reached": _of_all(lambda one: one.reached),
    "dangerous": _of_all(lambda one: one.dangerous),
}
MARKS: Mapping[str, Metric] = {
    "flagged": _of_wrong(lambda one: one.warned),
    "flagged.own": _of_wrong(lambda one: one.warned and one.hazard in one.wrong.hazards),
    "flagged.finding": _of_wrong(lambda one: one.warned and one.wrong.via == "finding"),
    "flagged.disagreement": _of_wrong(lambda one: one.warned and one.wrong.via == "disagreement"),
    "suppressed": _of_wrong(lambda one: one.wrong.withheld),
    "unchecked": _of_wrong(lambda one: one.reached and one.wrong.via == "unchecked"),
}
COSTS: Mapping[str, Metric] = {
    "right_shown": _of_right(lambda one: one.right.rank > 0),
    "right_flagged": _of_right(lambda one: one.right.marked),
    "distractor_flagged": _of_all(lambda one: one.flagged > 0),
    "distractor_flagged.share": _share,
    "review": _of_all(lambda one: one.review),
    "lost": _of_all(lambda one: one.lost > 0),
    "partly_unchecked": _of_all(lambda one: one.partly_unchecked),
    "stance": _stance,
}


def figures(outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    """All figures of these outcomes: by system, arm, k and corpus, in total, by hazard and by form."""
    measured = [one for one in outcomes if not one.reason]
    found: dict[str, Figure] = {}
    for setting, group in _by_setting(measured):
        for hazard, form, part in _parts(group):
            for name, metric in _metrics(setting).items():
                if name.endswith(".share") and hazard != ALL:
                    continue  # resampled, and of the whole only
                found[key(hazard, name, setting, form)] = metric(part, form)
    return found | _changes(measured)


def key(hazard: str, metric: str, setting: Setting, form: str | None = None) -> str:
    """The key of one figure; `metric` may have a subtype (``flagged.own``)."""
    control = f",corpus={setting.corpus}" if setting.corpus != "mixed" else ""
    slices = (
        f"system={setting.system},arm={setting.arm},k={setting.k}{control}{f',form={form}' if form else ''}"
    )
    return f"{AREA}.{hazard}.{metric}@{slices}"


def unmeasured(outcomes: Iterable[Outcome]) -> dict[str, int]:
    """System -> queries that could not be searched."""
    lost = {(one.system, one.query) for one in outcomes if one.reason}
    return {name: sum(system == name for system, _ in lost) for name in sorted({one for one, _ in lost})}


def _metrics(setting: Setting) -> dict[str, Metric]:
    chosen = dict(RETRIEVAL)
    if setting.corpus == "mixed":
        chosen |= CONTRADICTION
    if setting.arm != BEFORE:
        chosen |= COSTS
        chosen |= MARKS if setting.corpus == "mixed" else {}
    return chosen


def _parts(group: Group) -> Iterator[tuple[str, str | None, Group]]:
    """(hazard, form, outcomes): all of both, each by itself, each pair of them."""
    for hazard in (ALL, *dict.fromkeys(one.hazard for one in group)):
        of_hazard = [one for one in group if hazard in (ALL, one.hazard)]
        yield hazard, None, of_hazard
        for form in FORMS:
            yield hazard, form, [one for one in of_hazard if one.form == form]


def _by_setting(outcomes: Iterable[Outcome]) -> Iterator[tuple[Setting, Group]]:
    def setting(one: Outcome) -> tuple[str, int, str, str]:
        return one.system, one.k, one.corpus, one.arm

    for (system, k, corpus, arm), group in groupby(sorted(outcomes, key=setting), key=setting):
        yield Setting(system=system, k=k, corpus=corpus, arm=arm), list(group)


def _changes(outcomes: Sequence[Outcome]) -> dict[str, Figure]:
    """After minus before on the same queries, and whether that may be chance; Holm over systems and k."""
    settings = dict(_settings(outcomes))
    found: dict[str, Figure] = {}
    family: dict[str, float] = {}
    for setting, group in settings.values():
        before = settings.get((setting.system, setting.k, BEFORE))
        if setting.arm != AFTER or before is None:
            continue
        earlier = {one.query: one.dangerous for one in before[1]}
        for hazard, form, part in _parts(group):
            same = [one for one in part if one.query in earlier]
            gap = difference([earlier[one.query] for one in same], [one.dangerous for one in same])
            found[key(hazard, "dangerous.change", setting, form)] = _change(gap)
            found[key(hazard, "dangerous.p", setting, form)] = _p(gap)
            if hazard == ALL and form is None and isinstance(gap, Difference):
                family[key(hazard, "dangerous.p_holm", setting)] = gap.p
    for name, p in zip(family, holm(list(family.values())), strict=True):
        method = f"exact McNemar, Holm over {len(family)} comparisons"
        found[name] = Estimate(p, None, None, found[name.replace(".p_holm", ".p")].n, method)
    return found


def _settings(outcomes: Sequence[Outcome]) -> Iterator[tuple[tuple[str, int, str], tuple[Setting, Group]]]:
    for setting, group in _by_setting(outcomes):
        if setting.corpus == "mixed":
            yield (setting.system, setting.k, setting.arm), (setting, group)


def _change(gap: Difference | NotMeasured) -> Figure:
    if isinstance(gap, NotMeasured):
        return gap
    return Estimate(gap.value, gap.low, gap.high, gap.n, "paired difference, Newcombe's method 10, 95 %")


def _p(gap: Difference | NotMeasured) -> Figure:
    if isinstance(gap, NotMeasured):
        return gap
    counts = f"{gap.only_a} only before, {gap.only_b} only after"
    return Estimate(gap.p, None, None, gap.n, f"exact two-sided McNemar; {counts}")
