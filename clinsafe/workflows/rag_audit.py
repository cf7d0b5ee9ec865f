"""Auditing the judges: the suite and the labelled answers through each instrument, and what the judge earned."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from clinsafe.benchmarks.mined import load_mined
from clinsafe.benchmarks.suite import Case, load_card, load_suite, split_hash
from clinsafe.checklist.hazards import load_hazards
from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.protocols import Encoder, ModelIdentity
from clinsafe.rag.auditing.answers import AnswerRow, load_answers, load_answers_card, set_sha256
from clinsafe.rag.auditing.claim import Claim, Instrument, Support, verdicts
from clinsafe.rag.auditing.evidence import standing_in, standing_of
from clinsafe.rag.auditing.figures import Measured, On, Quad, labels_used, on_answers, on_quads, slug
from clinsafe.rag.auditing.instruments import ADHERES, JudgeInstrument, dummies
from clinsafe.rag.auditing.measuring import WITH_MODEL, Measuring, chosen
from clinsafe.rag.auditing.readers import Labels, load_readers, settle
from clinsafe.rag.auditing.record import AnswersUsed, JudgeAudit, JudgeIdentity, SuiteUsed, load_judge_audit
from clinsafe.rag.judging.needs import METRICS
from clinsafe.rag.judging.rubrics import FOLDER as RUBRICS
from clinsafe.rag.standing import Standing
from clinsafe.stats import Figure, figure_to_json
from clinsafe.version import VERSION
from clinsafe.workflows.rag_conflicts import build_conflicts

if TYPE_CHECKING:
    from clinsafe.adapters.judge import Plan
    from clinsafe.workflows.rag_judges import JudgeOptions

Stage = Callable[[str, int, int], None]
Split = Literal["dev", "test"]
AT_ONCE = 64  # tasks between two words of progress
FRAME = (
    "Bounds hold for these cases, not for your hospital. Suite, answers and the local judge share authors. "
    "The answers' readers are language models; no clinician has read them."
)


def silent(_what: str, _done: int, _total: int) -> None:
    """A progress report for nobody."""


@dataclass(frozen=True, slots=True)
class Kit:
    """What instruments are held against.

    Attributes:
        cases: of the suite, one split of one tier.
        rows, labels: the labelled answers, and which of their labels may be used.
        answers, suite: what they are, for the record.
        hazards: all that the answers have to cover (``checklist/hazards.yaml``).
        hashes: content file -> SHA-256.
    """

    cases: tuple[Case, ...]
    rows: tuple[AnswerRow, ...]
    labels: Labels
    answers: AnswersUsed
    suite: SuiteUsed
    hazards: tuple[str, ...]
    hashes: Mapping[str, str]

    @property
    def tasks(self) -> tuple[Claim, ...]:
        """All that one instrument is asked, the suite first: what a dry run counts."""
        pairs = ((x, y) for c in self.cases for x, y in ((c.a, c.b), (c.a, c.a_same), (c.b, c.b_same)))
        suite = tuple(Claim((x,), y) for x, y in pairs)
        return suite + tuple(row.claim for row in self.rows if row.id in self.labels.of)


@dataclass(frozen=True, slots=True)
class AuditResult:
    """What an audit found.

    Attributes:
        subject: the instrument that may earn a CUE.
        kit: what it was measured on.
        instruments: all names, the subject first.
        figures: metric key -> figure, of all instruments.
        measured: instrument -> set -> its figures and ids.
        reasons: why the subject gave no verdict -> how often, where it says so.
    """

    subject: str
    kit: Kit
    instruments: tuple[str, ...]
    figures: Mapping[str, Figure]
    measured: Mapping[str, Mapping[On, Measured]]
    reasons: Mapping[str, int] = field(default_factory=dict)

    def standing(self, instrument: str | None = None) -> Standing:
        """What the subject, or another instrument, has earned."""
        name, kit = instrument or self.subject, self.kit
        return standing_of(self.figures, name, required=kit.hazards, provisional=kit.labels.provisional)


def load_kit(
    content: Content | None = None, *, split: Split = "test", suite: Path | None = None, answers: bool = True
) -> Kit:
    """The suite and the labelled answers.

    Args:
        content: content tree with its overlay.
        split: of the suite.
        suite: file of a mined suite, the tier ``generated``, instead of the written one.
        answers: False leaves the labelled answers out; nobody earns anything then.

    Raises:
        UsageError, ContentError.
    """
    if split not in ("dev", "test"):
        raise UsageError(f"split: got {split!r}; it is dev or test")
    content = content or Content()
    tier: Literal["written", "generated"] = "written" if suite is None else "generated"
    if suite is None:
        version, cases = load_card(content).suite_version, load_suite(content, split=split)
    else:
        card, cases = load_mined(suite, split=split)
        version = card.suite_version
    about = load_answers_card(content)
    rows = load_answers(content) if answers else []
    labels = settle(rows, load_readers(content, rows))
    return Kit(
        cases=tuple(cases),
        rows=tuple(rows),
        labels=labels,
        answers=AnswersUsed(
            version=about.answers_version,
            sha256=set_sha256(rows, dict(labels.of)),
            provisional=labels.provisional,
            readers=labels.readers,
            disagreed=len(labels.disagreed),
            unread=len(labels.unread),
            overruled=len(labels.overruled),
            counts=labels_used(labels.of, rows),
            agreement={f"{a}/{b}": figure_to_json(figure) for (a, b), figure in labels.agreement.items()},
        ),
        suite=SuiteUsed(
            version=version, tier=tier, split=split, cases=len(cases), sha256=split_hash(cases, split)
        ),
        hazards=_hazards(content),
        hashes=dict(content.hashes),
    )


def load_standing(
    path: Path, who: ModelIdentity, *, content: Content | None = None, threshold: float = ADHERES
) -> tuple[Standing, JudgeAudit]:
    """What a judge has earned by the file of its audit: what ``--judge-audit judge.json`` takes.

    Args:
        path: the file.
        who: identity of the judge that is going to be asked for adherence.
        content: whose labelled answers and hazards count.
        threshold: from where on an answer adheres, in the evaluation.

    Raises:
        ContentError: the audit is of another judge, rubric, threshold or set of answers; or no audit at all.
    """
    content = content or Content()
    rows = load_answers(content)
    labels = settle(rows, load_readers(content, rows))
    judge, answers = identity_of(who, ADHERENCE, threshold), set_sha256(rows, dict(labels.of))
    audit = load_judge_audit(path, judge=judge, answers_sha256=answers)
    return standing_in(audit, _hazards(content)), audit


def _hazards(content: Content) -> tuple[str, ...]:
    return tuple(hazard.id for hazard in load_hazards(content))


def audit_judges(
    subject: Instrument, others: Sequence[Instrument] = (), *, kit: Kit | None = None, stage: Stage = silent
) -> AuditResult:
    """Run the suite and the labelled answers through a judge and whatever is to stand beside it.

    What knows nothing (disabled, always_yes, always_no) is always there: a table without them proves nothing.

    Args:
        subject: the instrument that may earn a CUE.
        others: further ones, for comparison.
        kit: what they are held against; None loads what is installed.
        stage: told how far the work is.

    Raises:
        UsageError: two instruments have one name.
        ValueError: an instrument gives another number of verdicts than it had tasks.
    """
    kit = kit or load_kit()
    known = {subject.name, *(one.name for one in others)}
    instruments = [subject, *others, *(one for one in dummies() if one.name not in known)]
    names = [slug(one.name) for one in instruments]
    if twice := next((name for name in names if names.count(name) > 1), None):
        raise UsageError(f"two instruments have the name {twice!r} in metric keys; name one differently")
    measured = {one.name: _measure(one, kit, stage) for one in instruments}
    figures = {
        k: f for by_set in measured.values() for one in by_set.values() for k, f in one.figures.items()
    }
    reasons = dict(subject.reasons) if isinstance(subject, JudgeInstrument) else {}
    return AuditResult(subject.name, kit, tuple(one.name for one in instruments), figures, measured, reasons)


def _measure(instrument: Instrument, kit: Kit, stage: Stage) -> dict[On, Measured]:
    told = _Told(instrument, stage, len(kit.tasks))
    quads = [Quad(c.id, c.hazard, c.a, c.b, c.a_same, c.b_same) for c in kit.cases]
    found: dict[On, Measured] = {
        kit.suite.tier: on_quads(told, quads, on=kit.suite.tier, split=kit.suite.split)
    }
    if kit.rows:
        found["answers"] = on_answers(told, kit.rows, kit.labels.of)
    return found


class _Told:
    """An instrument that tells how far it is."""

    def __init__(self, instrument: Instrument, stage: Stage, total: int) -> None:
        self.name, self._inner, self._stage, self._total, self._done = (
            instrument.name,
            instrument,
            stage,
            total,
            0,
        )

    def supports(self, tasks: Sequence[Claim], /) -> Sequence[Support]:
        found: list[Support] = []
        for start in range(0, len(tasks), AT_ONCE):
            part = tasks[start : start + AT_ONCE]
            self._stage(self.name, self._done, self._total)
            found += verdicts(self._inner, part)
            self._done += len(part)
        return found


def record_of(
    result: AuditResult, judge: JudgeIdentity, *, fake: bool = False, now: datetime | None = None
) -> JudgeAudit:
    """The audit as ``judge.json`` holds it.

    Args:
        judge: who exactly was audited.
        fake: a deterministic fake; its audit says so.
        now: time of the audit; None is this moment.
    """
    of = result.measured[result.subject]
    return JudgeAudit(
        tool=VERSION,
        time=(now or datetime.now(UTC)).isoformat(timespec="seconds"),
        fake=fake,
        judge=judge,
        instrument=result.subject,
        hazards=result.kit.hazards,
        answers=result.kit.answers,
        suite=result.kit.suite,
        content=dict(result.kit.hashes),
        figures={name: figure_to_json(figure) for name, figure in result.figures.items()},
        reasons=dict(result.reasons),
        supported={on: one.supported for on, one in of.items()},
        rejected={on: one.rejected for on, one in of.items()},
        unscored={on: one.unscored for on, one in of.items()},
    )


# ── who is asked ───────────────────────────────────────────────────────────────────────────────

ADHERENCE = "adherence"
SUPPORTING = (ADHERENCE, "support")
"""Metrics of a judge that tell support from contradiction."""


@dataclass(frozen=True, slots=True)
class Opened:
    """A judge that is ready to be asked.

    Attributes:
        instrument: the judge as an instrument.
        identity: who it is, as its audit names it.
        fake: a deterministic fake.
        plan: tasks in, what they would cost out; None where the judge cannot tell.
    """

    instrument: Instrument
    identity: JudgeIdentity
    fake: bool = False
    plan: Callable[[Sequence[Claim]], Plan] | None = None


def identity_of(who: ModelIdentity, metric: str, threshold: float = ADHERES) -> JudgeIdentity:
    """A judge as its audit names it: everything that shapes its verdicts on this metric.

    ``rubric_sha256`` is over the files of its identity, the rubrics of other metrics left out.
    """
    other = {f"{RUBRICS}/{name}.yaml" for name in METRICS if name != metric}
    files = {name: digest for name, digest in who.files.items() if name not in other}
    settings = {**who.settings, **({"revision": who.revision} if who.revision else {})}
    return JudgeIdentity(
        name=who.name,
        metric=metric,
        threshold=threshold,
        rubric_sha256=hashlib.sha256(json.dumps(files, sort_keys=True).encode()).hexdigest(),
        settings=settings,
    )


def open_judge(spec: str, metric: str = ADHERENCE, options: JudgeOptions | None = None) -> Opened:
    """A judge by its spec (``local``, ``openai:MODEL``, a plug-in), ready for its audit.

    Raises:
        UsageError: a metric that says nothing of support, or grades that came with traces: they are nobody to be asked.
            And what `clinsafe.workflows.rag_judges.build_judge` raises.
    """
    from clinsafe.workflows.rag_judges import build_judge

    if metric not in SUPPORTING:
        raise UsageError(f"a judge is audited on {' or '.join(SUPPORTING)}, got {metric!r}")
    if spec.partition(":")[0] == "recorded":
        raise UsageError(
            "recorded grades cannot be audited: nobody is there to be asked; audit the judge that gave them"
        )
    judge = build_judge(spec, options)
    asking = JudgeInstrument(judge.identity.name, judge.judge_many, metric)
    plan = getattr(judge, "plan", None)
    return Opened(
        asking,
        identity_of(judge.identity, metric),
        judge.identity.fake,
        plan=(lambda tasks: plan(asking.asked(tasks))) if plan is not None else None,
    )


def instruments(
    names: Sequence[str], *, content: Content, model: str = "minilm", offline: bool = False
) -> list[Instrument]:
    """Metrics and hit functions by name; a model is loaded where one of them needs it.

    Raises:
        UsageError, ModelError, MissingDependency, ContentError.
    """
    names = chosen(names) if names else ()
    needed = [name for name in names if name in WITH_MODEL]
    encoder = _encoder(model, offline) if needed else None
    conflicts = build_conflicts(content) if "safe_r" in names else None
    measuring = Measuring(content, encoder, conflicts)
    return [measuring.instrument(name) for name in names]


def _encoder(model: str, offline: bool) -> Encoder:
    from clinsafe.adapters.encoders import ModelOptions, load_model

    loaded = load_model(model, ModelOptions(offline=offline))
    if not isinstance(loaded, Encoder):
        raise UsageError(f"--model {model} scores pairs; r_cosine, semantic and the others need an encoder")
    return loaded
