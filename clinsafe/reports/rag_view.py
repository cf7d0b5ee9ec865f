"""What the pages of a RAG evaluation see: tables, pictures and sentences, all from the record."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from clinsafe.protocols import MetricKey
from clinsafe.rag.insights import Insight, Rule, insights
from clinsafe.rag.item import TASKS
from clinsafe.rag.metrics import metric_of
from clinsafe.reports import rag_charts as charts
from clinsafe.reports.evidence import sha256
from clinsafe.reports.rag_compared import Compared, compared
from clinsafe.reports.rag_formats import Notes, ends, ordered, result, tail, value
from clinsafe.reports.rag_judged import JudgeView, judged
from clinsafe.reports.rag_record import RagEvidence, RagSystem, to_bytes
from clinsafe.reports.rag_standing import standing_of
from clinsafe.reports.rag_summary import Summary, summarise
from clinsafe.stats import Estimate, Figure, NotMeasured, figure_from_json

HEADLINES = (
    ("retrieval.all.hit", "Evidence found (hit rate)"),
    ("retrieval.all.safe_hit", "Found without a contradiction"),
    ("generation.all.correct", "Right (accuracy)"),
    ("cue.all.effective_use", "Grounded (effective use)"),
    ("cue.all.ungrounded_correct", "Right but not grounded"),
)
"""What the first page shows of each system."""
SLICED = ("retrieval.all.hit", "retrieval.all.safe_hit", "generation.all.correct", "cue.all.effective_use",
          "cue.all.ungrounded_correct")  # fmt: skip
GROUNDING = (
    ("generation.all.correct", "Accuracy", False), ("generation.all.safe_correct", "Safe accuracy", False),
    ("retrieval.all.hit", "Hit rate", False), ("retrieval.all.safe_hit", "Safe hit rate", False),
    ("cue.all.effective_use", "Effective use", False), ("cue.all.effective_use.safe", "Effective use, safe", False),
    ("cue.all.ungrounded_correct", "Right, not grounded", True),
    ("cue.all.ungrounded_correct.safe", "The same, safe", True),
)  # fmt: skip
QUADRANTS = (
    ("effective_use", "Effective use", "good"), ("information_blindness", "Information blindness", "warning"),
    ("lucky_guess", "Lucky guess", "danger"), ("correct_rejection", "Correct rejection", "neutral"),
)  # fmt: skip
MOST_SLICES = 12  # values of a slice name that are printed; the record has all
MOST_PAIRS = 45
MOST_BAD = 30


@dataclass(frozen=True, slots=True)
class Line:
    """One row: what it is, the figure, the letter of its method or reason."""

    name: str
    meaning: str
    value: str
    ends: str
    mark: str
    measured: bool


@dataclass(frozen=True, slots=True)
class Table:
    """Rows with the notes beneath them; `why` is the one reason where no row was measured."""

    lines: Sequence[Line]
    notes: Sequence[tuple[str, str]]
    why: str = ""


@dataclass(frozen=True, slots=True)
class Grid:
    """Rows of cells under headings, with notes."""

    columns: Sequence[str]
    rows: Sequence[tuple[str, Sequence[str]]]
    notes: Sequence[tuple[str, str]]
    more: str = ""


@dataclass(frozen=True, slots=True)
class SystemView:
    """One system: `number` counts from 1; pictures are "" where there is nothing to draw."""

    record: RagSystem
    number: int
    figures: Mapping[str, Figure]
    rank_chart: str
    ranks: Grid | None
    retrieval: Table
    pairs: Grid | None
    dangers: Table
    danger_chart: str
    generation: Table
    contradictions: Table
    quadrants: Sequence[str]
    cue: Table
    outcomes: Grid | None
    cue_reason: str
    grounding_chart: str
    gaps: Table
    insights: Sequence[Insight]
    slices: Sequence[tuple[str, Grid]]
    bad: Sequence[tuple[int, str, str]]
    more_bad: int

    @property
    def questions(self) -> int:
        """How many were measured."""
        return len(self.record.items)


@dataclass(frozen=True, slots=True)
class View:
    """The whole report."""

    title: str
    record_sha256: str
    fake: bool
    systems: Sequence[SystemView]
    summary: Summary
    headlines: Grid
    judge: JudgeView
    compared: Compared | None

    def told(self, row: Insight) -> str:
        """A row's figure with its interval and n."""
        return result(row.figure, metric_of(row.key))


def build(
    record: RagEvidence, rules: Sequence[Rule], hazards: Mapping[str, str], *, draw: bool = True
) -> View:
    """Everything the templates print.

    Args:
        record: the evidence.
        rules: of the table of insights.
        hazards: id -> name.
        draw: False leaves the pictures out.
    """
    systems = [
        _system(system, number, rules, hazards, draw) for number, system in enumerate(record.systems, start=1)
    ]
    figures = {one.record.label: one.figures for one in systems}
    labels = [system.label for system in record.systems]
    named = ", ".join(labels[:3]) + (f" and {len(labels) - 3} more" if len(labels) > 3 else "")
    return View(
        title=f"RAG evaluation: {named}",
        record_sha256=sha256(to_bytes(record)),
        fake=record.fake,
        systems=systems,
        summary=summarise(record, figures, hazards),
        headlines=_headlines(systems),
        judge=judged(record, hazards, [standing_of(record.judge, s.items) for s in record.systems]),
        compared=compared(record, draw=draw),
    )


def read_figures(system: RagSystem) -> dict[str, Figure]:
    """The stored figures as values."""
    return {key: figure_from_json(parts) for key, parts in system.figures.items()}


def _system(
    system: RagSystem, number: int, rules: Sequence[Rule], hazards: Mapping[str, str], draw: bool
) -> SystemView:
    figures = read_figures(system)
    whole = {key: figure for key, figure in figures.items() if "@" not in key}
    keys = ordered(whole, hazards)

    def some(keep: Callable[[str], bool]) -> Table:
        return table(figures, [key for key in keys if keep(key)], hazards)

    effective = whole.get("cue.all.effective_use", NotMeasured("there is no such figure in these results"))
    ranked = ("hit_at", "exclusive_hit", "redundancy", "overlap")
    picture = charts.intervals_svg if draw else _undrawn
    rank_points = _points(figures, [
        (f"{start}.{MetricKey.parse(key).subtype}", f"{word} {str(MetricKey.parse(key).subtype)[1:]}", False)
        for key in keys if key.startswith("retrieval.all.hit_at.")
        for start, word in (("retrieval.all.hit_at", "Hit at rank"), ("retrieval.all.exclusive_hit", "Only at rank"))
    ][:20])  # fmt: skip
    danger_points = _points(figures, [
        (key, _hazard_name(key, hazards), True) for key in keys if key.endswith(".dangerous.any")
    ])  # fmt: skip
    grounding = _points(figures, GROUNDING)
    return SystemView(
        record=system,
        number=number,
        figures=figures,
        rank_chart=picture("Hits by rank", rank_points, prefix=f"rank-{number}") if rank_points else "",
        ranks=_by_rank(figures, keys),
        retrieval=some(
            lambda key: (
                key.startswith("retrieval.")
                and MetricKey.parse(key).metric not in ranked
                and ".dangerous." not in key
            )
        ),
        pairs=_by_pair(figures, keys),
        dangers=some(lambda key: key.startswith("retrieval.") and ".dangerous." in key),
        danger_chart=picture("Hits with a contradiction, by hazard", danger_points, prefix=f"danger-{number}")
        if danger_points
        else "",
        generation=some(lambda key: key.startswith("generation.") and not key.endswith(".contradicts")),
        contradictions=some(lambda key: key.startswith("generation.") and key.endswith(".contradicts")),
        quadrants=_quadrants(whole, number) if draw and isinstance(effective, Estimate) else (),
        cue=some(lambda key: key.startswith("cue.") and ".table." not in key and "accuracy_gap" not in key),
        outcomes=_outcomes(whole),
        cue_reason=effective.reason if isinstance(effective, NotMeasured) else "",
        grounding_chart=picture("Accuracy beside grounding", grounding, prefix=f"grounding-{number}")
        if grounding
        else "",
        gaps=some(lambda key: "accuracy_gap" in key),
        insights=insights(whole, rules),
        slices=_slices(figures),
        bad=[(row.line, row.field, row.why) for row in system.source.bad[:MOST_BAD]],
        more_bad=max(0, system.source.bad_lines - min(len(system.source.bad), MOST_BAD)),
    )


def table(figures: Mapping[str, Figure], keys: Iterable[str], hazards: Mapping[str, str] = {}) -> Table:
    """One row a figure, with the letter of its method or reason."""
    notes, lines = Notes(), []
    found = [(key, figures[key]) for key in keys]
    reasons = {figure.reason for _, figure in found if isinstance(figure, NotMeasured)}
    if found and len(reasons) == 1 and all(isinstance(figure, NotMeasured) for _, figure in found):
        names = [Line(_name(key, hazards), "", "", "", "", False) for key, _ in found]
        return Table(names, [], reasons.pop())
    last = ""
    for key, figure in found:
        metric = metric_of(key)
        meaning, last = "" if metric.meaning == last else metric.meaning, metric.meaning
        lines.append(
            Line(_name(key, hazards), meaning, value(figure, metric), ends(figure, metric) + tail(figure),
                 notes.mark(figure), isinstance(figure, Estimate))
        )  # fmt: skip
    return Table(lines, notes.pairs)


def _name(key: str, hazards: Mapping[str, str]) -> str:
    metric, hazard = metric_of(key), MetricKey.parse(key).hazard
    known = hazards.get(hazard)
    return metric.name.replace(hazard.replace("_", " "), known.lower()) if known else metric.name


def _hazard_name(key: str, hazards: Mapping[str, str]) -> str:
    hazard = MetricKey.parse(key).hazard
    return "any hazard" if hazard == "all" else hazards.get(hazard, hazard.replace("_", " ")).lower()


def _undrawn(*_: object, **__: object) -> str:
    return ""


def _points(figures: Mapping[str, Figure], wanted: Iterable[tuple[str, str, bool]]) -> list[charts.Point]:
    """What a chart can show; what was not measured is said in the table beside it."""
    found = []
    for key, label, danger in wanted:
        figure = figures.get(key)
        if isinstance(figure, Estimate):
            text = result(figure, metric_of(key))
            found.append(charts.Point(label, figure.value, figure.low, figure.high, text, danger))
    return found


def _cell(figure: Figure | None, key: str, notes: Notes) -> str:
    if figure is None:
        return "none"
    return f"{result(figure, metric_of(key))}\u00a0{notes.mark(figure)}"


def _by_rank(figures: Mapping[str, Figure], keys: Sequence[str]) -> Grid | None:
    ranks = [str(MetricKey.parse(key).subtype) for key in keys if key.startswith("retrieval.all.hit_at.")]
    if not ranks:
        return None
    notes, rows = Notes(), []
    for rank in ranks:
        names = [f"retrieval.all.{name}.{rank}" for name in ("hit_at", "exclusive_hit")]
        rows.append((rank[1:], [_cell(figures.get(name), name, notes) for name in names]))
    columns = ("Rank", "The passage there holds the answer", "It alone holds the answer (exclusive hit)")
    return Grid(columns, rows, notes.pairs)


def _by_pair(figures: Mapping[str, Figure], keys: Sequence[str]) -> Grid | None:
    pairs = [str(MetricKey.parse(key).subtype) for key in keys if key.startswith("retrieval.all.redundancy.")]
    if not pairs:
        return None
    notes, rows = Notes(), []
    for pair in pairs[:MOST_PAIRS]:
        names = [f"retrieval.all.{name}.{pair}" for name in ("redundancy", "overlap")]
        shown = pair[1:].replace("_", " and ")
        rows.append((shown, [_cell(figures.get(name), name, notes) for name in names]))
    columns = ("Ranks", "Both hold the answer (redundancy)", "Close as copies (overlap)")
    return Grid(columns, rows, notes.pairs)


def _quadrants(figures: Mapping[str, Figure], number: int) -> list[str]:
    found = []
    for end, title, word in (("", "CUE", "evidence\nfound"), (".safe", "Safe CUE", "found\nsafely")):
        cells = []
        for name, label, tone in QUADRANTS:
            key = f"cue.all.{name}{end}"
            figure = figures.get(key)
            if not isinstance(figure, Estimate):
                break
            metric = metric_of(key)
            cells.append(charts.Cell(label, f"{value(figure, metric)}\n{ends(figure, metric)}", tone))
        if len(cells) == len(QUADRANTS):
            first = figures[f"cue.all.effective_use{end}"]
            found.append(
                charts.quadrants_svg(
                    f"{title}, n = {first.n}", cells, found=word, prefix=f"cue{end}-{number}"
                )
            )
    return found


def _outcomes(figures: Mapping[str, Figure]) -> Grid | None:
    """Hit × adherence × right: four rows, two columns."""
    notes, rows = Notes(), []
    for h, found in ((1, "evidence found"), (0, "not found")):
        for a, adheres in ((1, "adheres"), (0, "does not adhere")):
            keys = [f"cue.all.table.h{h}a{a}c{c}" for c in (1, 0)]
            if not all(isinstance(figures.get(key), Estimate) for key in keys):
                return None
            rows.append((f"{found}, {adheres}", [_cell(figures[key], key, notes) for key in keys]))
    return Grid(("Evidence and answer", "Right", "Wrong"), rows, notes.pairs)


def _headlines(systems: Sequence[SystemView]) -> Grid:
    notes, rows = Notes(), []
    for one in systems:
        cells = [_cell(one.figures.get(key), key, notes) for key, _ in HEADLINES]
        rows.append((f"{one.record.label} ({one.questions} questions)", cells))
    return Grid(("System", *(heading for _, heading in HEADLINES)), rows, notes.pairs)


def _slices(figures: Mapping[str, Figure]) -> list[tuple[str, Grid]]:
    """A grid for each slice name, the types of task first and all three of them."""
    groups: dict[str, dict[str, dict[str, Figure]]] = {}
    for key, figure in figures.items():
        plain, _, where = key.partition("@")
        name, _, at = where.partition("=")
        if where and plain in SLICED:
            groups.setdefault(name, {}).setdefault(at, {})[plain] = figure
    ordered = sorted(groups.items(), key=lambda one: (one[0] != "task", one[0]))
    found = []
    for name, values in ordered:
        notes, rows = Notes(), []
        ranked = sorted(values, key=lambda at: (-_size(values[at]), at))
        if name == "task":
            ranked = [*TASKS, *(at for at in ranked if at not in TASKS)]
        for at in ranked[:MOST_SLICES]:
            if at not in values:
                rows.append((at.replace("_", " "), ["no such question"] * len(SLICED)))
                continue
            rows.append((at.replace("_", " "), [_cell(values[at].get(key), key, notes) for key in SLICED]))
        more = len(ranked) - MOST_SLICES
        columns = (name.replace("_", " "), *(heading for _, heading in HEADLINES))
        found.append(
            (name, Grid(columns, rows, notes.pairs, f"{more} more in the record" if more > 0 else ""))
        )
    return found


def _size(figures: Mapping[str, Figure]) -> int:
    return max((figure.n for figure in figures.values()), default=0)
