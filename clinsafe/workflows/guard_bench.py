"""Measuring a stack of filters: on the suite, on cases that a user brings, on the NegEx kit and on ordinary text."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from clinsafe.benchmarks.filter_cases import load_cases
from clinsafe.benchmarks.filters import Outcome, Pair, Stage, alarms_by_case, figures, judge_all, suite_pairs
from clinsafe.benchmarks.mined import load_mined
from clinsafe.benchmarks.negex_kit import NegationJudge, load_kit, negex_figures
from clinsafe.benchmarks.ordinary import VARIABLE, data_folder, own_conclusions, unrelated
from clinsafe.benchmarks.suite import Case, load_card, load_suite
from clinsafe.checklist.filter_gates import FilterVerdict, decide_filters
from clinsafe.checklist.gates import load_filter_gates
from clinsafe.checklist.hazards import load_hazards
from clinsafe.content import Content
from clinsafe.errors import MissingDependency, UsageError
from clinsafe.stats import Figure, NotMeasured, rate
from clinsafe.workflows.guard import build_stack

if TYPE_CHECKING:
    from clinsafe.mitigations.facts import TextFacts
    from clinsafe.mitigations.stack import Stack
    from clinsafe.protocols import Filter

REMEMBERED = 5000  # texts whose facts are kept
WRITTEN, GENERATED = "guard", "generated"  # the area of each tier's keys; no figure is about both
FRAME = "Bounds hold for this tier's sampling frame, not your hospital; suite and filters share authors."
STACKS = ("clinsafe", "naive", "disabled", "always", "never")


def silent(_what: str, _done: int, _total: int) -> None:
    """A progress report for nobody."""


@dataclass(frozen=True, slots=True)
class Row:
    """One line of the ablation table: what a stack of these filters does on the same pairs."""

    name: str
    recall: Figure
    false_alarm: Figure
    unrelated: Figure


@dataclass(slots=True)
class BenchResult:
    """All that was measured.

    Attributes:
        figures: metric key -> figure.
        outcomes: area -> every pair with what each filter said.
        rows: the ablation table of the suite or the cases.
        notes: what was not measured, and why.
        about: which cases these are, in lines to be printed above the figures.
    """

    figures: dict[str, Figure] = field(default_factory=dict)
    outcomes: dict[str, list[Outcome]] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    about: list[str] = field(default_factory=list)


def make_stack(
    name: str, content: Content, names: Sequence[str] | None = None, model: str | None = None
) -> Stack:
    """A stack by name; only ``clinsafe`` takes filter names.

    Raises:
        UsageError: no stack of that name.
    """
    if name not in STACKS:
        raise UsageError(f"no stack is called {name!r}; there are: {', '.join(STACKS)}")
    if name == "clinsafe":
        return build_stack(content, names, model=model)
    from clinsafe.mitigations.dummies import Constant
    from clinsafe.mitigations.naive import load_stack
    from clinsafe.mitigations.stack import Stack
    from clinsafe.text import Reader

    filters: dict[str, Filter] = {}
    if name == "naive":
        filters = load_stack()
    elif name != "disabled":
        filters[name] = Constant(name == "always")
    return Stack(filters, Reader(content, model))


class Recorder:
    """Compares pairs with a stack and keeps the facts of texts it has read."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack
        self._facts: dict[str, TextFacts] = {}

    def __call__(self, query: str, passage: str) -> tuple[Mapping[str, bool | None], tuple[str, ...]]:
        """Filter name -> conflict, no conflict, or None: not checked; and a line for each conflict."""
        result = self.stack.compare(self._read(query), self._read(passage))
        said: dict[str, bool | None] = dict.fromkeys(self.stack.filters, False)
        said.update(dict.fromkeys(result.unchecked))
        for name, found in result.by_filter.items():
            if any(finding.verdict == "conflict" for finding in found):
                said[name] = True
        why = (
            f"{one.hazard} [{one.rule}] {one.query_normal} / {one.passage_normal}" for one in result.conflicts
        )
        return said, tuple(why)

    def _read(self, text: str) -> TextFacts:
        if text not in self._facts:
            if len(self._facts) > REMEMBERED:
                self._facts.clear()
            self._facts[text] = self.stack.read(text)
        return self._facts[text]


class Bench:
    """One stack, measured on whatever is asked for.

    Args:
        content: rule packs and suite.
        stack: one of `STACKS`.
        filters: filters of the ``clinsafe`` stack; None takes all that are installed.
        model: spaCy pipeline.
        data: folder of the data files; None takes ``CLINSAFE_DATA``.
        baselines: measure the naive and the empty stacks beside it.
    """

    def __init__(
        self,
        content: Content,
        stack: str = "clinsafe",
        filters: Sequence[str] | None = None,
        model: str | None = None,
        data: Path | None = None,
        baselines: bool = True,
    ) -> None:
        self.content, self.model, self.baselines = content, model, baselines
        self.folder = data_folder(data)
        self.stack = make_stack(stack, content, filters, model)
        self._others: dict[
            int, list[Outcome]
        ] = {}  # the unrelated pairs belong to no tier, and are judged once

    def suite(
        self,
        split: str | None,
        unrelated_pairs: int,
        stage: Stage = silent,
        mined: Path | None = None,
    ) -> BenchResult:
        """Recall and false alarms on one tier's cases, and false alarms on unrelated pairs of real text.

        Args:
            split: ``dev`` or ``test``; None measures both, each by itself; the table is then of ``test``.
            unrelated_pairs: how many; without data files that rate is *not measured*.
            stage: told how far the work is.
            mined: file of a mined suite, the tier ``generated``; None takes the written suite. The keys of the figures
                begin with ``generated`` or ``guard``: no figure is about both.
        """
        result = BenchResult()
        area = WRITTEN if mined is None else GENERATED
        pairs = suite_pairs(self._cases(result, split, mined))
        outcomes = self._judge(result, area, pairs, stage)
        result.figures.update(figures(outcomes, area))
        others = self._unrelated(result, area, unrelated_pairs, stage)
        claim = [one for one in outcomes if one.pair.split == (split or "test")]
        self._rows(result, claim, others, stage)
        return result

    def gate(self, result: BenchResult) -> list[FilterVerdict]:
        """Every hazard's verdict by the limits of ``checklist/gates.yaml``, on the test cases of the result's tier."""
        area = GENERATED if GENERATED in result.outcomes else WRITTEN
        hazards = [hazard.id for hazard in load_hazards(self.content)]
        return decide_filters(result.figures, load_filter_gates(self.content), area, hazards)

    def _cases(self, result: BenchResult, split: str | None, mined: Path | None) -> list[Case]:
        """The cases of a tier; the result says which they are."""
        if mined is None:
            cases = load_suite(self.content, split=split)
            result.about = [
                f"tier written: suite {load_card(self.content).suite_version}, {len(cases)} cases"
            ]
        else:
            origin, cases = load_mined(mined, split=split)
            said = f"{mined.name}, {origin.title}, version {origin.suite_version}, {len(cases)} cases"
            result.about = [f"tier generated: {said}"]
            sources = "; ".join(f"{one.source} ({one.licence})" for one in origin.sources)
            result.about.append(f"mined from: {sources}; novel: no cue of the rule family stood in the filters' packs "
                                f"at {origin.freeze.commit[:12]}")  # fmt: skip
        result.about.append(FRAME)
        return cases

    def cases(self, path: Path, stage: Stage = silent) -> BenchResult:
        """Recall and false alarms on a file of labelled cases, every pair through the full stack."""
        result = BenchResult()
        outcomes = self._judge(result, "cases", load_cases(path), stage)
        result.figures.update(figures(outcomes, "cases"))
        self._rows(result, outcomes, [], stage)
        return result

    def ordinary(self, articles: int, stage: Stage = silent) -> BenchResult:
        """Flags on ordinary text: an abstract's contexts against its own conclusion.

        Raises:
            UsageError: no data folder is named.
        """
        if self.folder is None:
            raise UsageError(
                f"ordinary text is read from data files; name their folder with --data or {VARIABLE}"
            )
        result = BenchResult()
        outcomes = self._judge(result, "ordinary", own_conclusions(self.folder, articles), stage)
        for name in (None, *self.stack.filters):
            flagged = rate([one.alarmed(None if name is None else [name]) for one in outcomes])
            result.figures[f"ordinary.{name or 'all'}.flagged"] = flagged
        return result

    def negex(self, path: Path, stage: Stage = silent) -> BenchResult:
        """Negation on the claim part of the NegEx kit: our engine, and stock negspacy (``@engine=negspacy``)."""
        kit = [row for row in load_kit(path) if row.claim]
        result = BenchResult()
        judge = _counting(own_negation(self.content, self.model), stage, "NegEx kit, own engine", len(kit))
        result.figures.update(negex_figures(kit, judge))
        try:
            stock = stock_negation()
        except MissingDependency as error:
            result.figures["negex.negation.f1_negated@engine=negspacy"] = NotMeasured(str(error))
            result.notes.append(f"negspacy: not measured ({error})")
        else:
            judge = _counting(stock, stage, "NegEx kit, negspacy", len(kit))
            result.figures.update(negex_figures(kit, judge, "engine=negspacy"))
        return result

    def _judge(self, result: BenchResult, area: str, pairs: Sequence[Pair], stage: Stage) -> list[Outcome]:
        outcomes = judge_all(pairs, Recorder(self.stack), stage)
        result.outcomes[area] = outcomes
        unchecked = sum(one.unchecked() for one in outcomes)
        if unchecked:
            what = f"{unchecked} of {len(outcomes)} pairs were not fully checked"
            result.notes.append(f"{area}: {what}; they count as missed, or as false alarms")
        return outcomes

    def _unrelated(self, result: BenchResult, area: str, n: int, stage: Stage) -> list[Outcome]:
        """Flags of the whole stack (``all``) and of each filter by itself, on pairs that have nothing in common."""
        if self.folder is None or not n:
            why = (
                f"{VARIABLE} names no data folder"
                if self.folder is None
                else "no unrelated pairs were asked for"
            )
            result.figures[f"{area}.all.false_alarm.unrelated"] = NotMeasured(why)
            result.notes.append(f"false alarms on unrelated text: not measured ({why})")
            return []
        if n not in self._others:
            self._others[n] = self._judge(result, "unrelated", unrelated(self.folder, n), stage)
        others = self._others[n]
        if len(others) < n:
            result.notes.append(
                f"{n} unrelated pairs were asked for; the data yield {len(others)} in which no text is used twice"
            )
        for name in (None, *self.stack.filters):
            alarmed = rate([one.alarmed(None if name is None else [name]) for one in others])
            result.figures[f"{area}.{name or 'all'}.false_alarm.unrelated"] = alarmed
        return others

    def _rows(
        self, result: BenchResult, outcomes: list[Outcome], others: list[Outcome], stage: Stage
    ) -> None:
        result.rows = ablation(outcomes, others, list(self.stack.filters))
        pairs = [one.pair for one in (*outcomes, *others) if one.pair.role != "reverse"]
        for name in STACKS[1:] if self.baselines else ():
            try:
                recorder = Recorder(make_stack(name, self.content, None, self.model))
            except MissingDependency as error:  # what was computed is not lost for want of a baseline
                result.notes.append(f"the {name} stack: not measured ({error})")
                continue
            again = judge_all(pairs, recorder, stage, f"Comparing, {name}")
            known = [one for one in again if one.pair.role != "unrelated"]
            others = [one for one in again if one.pair.role == "unrelated"]
            result.rows.append(_row(name, known, others, None))


def _counting(judge: NegationJudge, stage: Stage, what: str, total: int) -> NegationJudge:
    done = 0

    def counted(sentence: str, concept: str) -> bool | None:
        nonlocal done
        done += 1
        stage(what, done, total)
        return judge(sentence, concept)

    return counted


def ablation(outcomes: Sequence[Outcome], others: Sequence[Outcome], names: Sequence[str]) -> list[Row]:
    """What each filter adds: all, all but one, each alone; read off one pass through the full stack."""
    rows = [_row("all filters", outcomes, others, None)]
    if len(names) > 1:
        rows += [_row(f"without {name}", outcomes, others, [n for n in names if n != name]) for name in names]
        rows += [_row(f"{name} alone", outcomes, others, [name]) for name in names]
    return rows


def _row(
    name: str, outcomes: Sequence[Outcome], others: Sequence[Outcome], names: Collection[str] | None
) -> Row:
    recall = rate([one.caught(names) for one in outcomes if one.pair.role == "conflict"])
    alarm = rate(list(alarms_by_case(outcomes, names).values()))
    return Row(name, recall, alarm, rate([one.alarmed(names) for one in others]))


def own_negation(content: Content, model: str | None = None) -> NegationJudge:
    """Our engine on a sentence and a concept."""
    from clinsafe.mitigations.polarity import negex
    from clinsafe.text import Reader

    reader = Reader(content, model)
    return lambda sentence, concept: negex.negated(reader.read(sentence), concept)


def stock_negation() -> NegationJudge:
    """negspacy with its own terms.

    Raises:
        MissingDependency: it is not installed.
    """
    from clinsafe.mitigations.polarity import negex

    return negex.stock_negspacy()
