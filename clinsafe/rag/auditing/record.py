"""``judge.json``: what an audit found about one judge, and the only road by which a judge's word reaches a CUE.

The file holds figures and what they were measured with and on. Whether they suffice is decided from them each time it
is read (`clinsafe.rag.auditing.evidence`), and it is refused for any other judge, rubric or set of answers.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import AfterValidator, Field, NonNegativeInt, TypeAdapter, ValidationError

from clinsafe.content import Record
from clinsafe.errors import ContentError
from clinsafe.protocols import MetricKey
from clinsafe.stats import Estimate, Figure, figure_from_json

SCHEMA_VERSION = 1
LARGEST = 20_000_000  # bytes; more is no audit
SLACK = 1e-9  # of floats that went through a file

Sha: TypeAlias = Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]


def _figure(parts: dict[str, Any]) -> dict[str, Any]:
    try:
        figure = figure_from_json(parts)
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise ValueError(f"not a figure: {error}") from error
    if figure.n < 0:
        raise ValueError(f"n is {figure.n}; it counts cases")
    if isinstance(figure, Estimate):
        ends = (figure.low, figure.lower, figure.value, figure.upper, figure.high)
        known = [end for end in ends if end is not None]
        if not all(-1 - SLACK <= end <= 1 + SLACK for end in known):
            raise ValueError("a figure or one of its ends lies outside [-1, 1]")
        for below, above in ((figure.lower, figure.value), (figure.value, figure.upper)):
            if below is not None and above is not None and below > above + SLACK:
                raise ValueError("the ends do not hold the figure between them")
        if figure.k is not None and not (
            0 <= figure.k <= figure.n and abs(figure.k - figure.value * figure.n) < 1e-6
        ):
            raise ValueError(f"{figure.k} of {figure.n} is not {figure.value:g}")
    return parts


def _key(name: str) -> str:
    MetricKey.parse(name)
    return name


class JudgeIdentity(Record):
    """What was audited; all of it has to be the same where the audit is used.

    Attributes:
        name: as the user writes it: ``local``, ``openai:gpt-4o-mini``.
        metric: the metric that it was asked for.
        threshold: from which value on it supports.
        rubric_sha256: of the words that it was asked with, or of the rules of a judge without words.
        settings: everything else that shapes its verdicts: model, revision, temperature, weights, seed. No secrets.
    """

    name: Annotated[str, Field(min_length=1, max_length=300)]
    metric: Annotated[str, Field(min_length=1, max_length=60)]
    threshold: Annotated[float, Field(ge=0, le=1, allow_inf_nan=False)]
    rubric_sha256: Sha
    settings: dict[str, str] = Field(default_factory=dict)


class AnswersUsed(Record):
    """The labelled answers and their labels.

    Attributes:
        sha256: over texts and labels, `clinsafe.rag.auditing.answers.set_sha256`.
        provisional: the labels are the writer's own; said wherever the judge is named.
        disagreed, unread, overruled: answers, as `clinsafe.rag.auditing.readers.Labels` counts them.
        counts: hazard -> label -> answers used.
        agreement: "first/second" -> kappa.
    """

    version: str
    sha256: Sha
    provisional: bool
    readers: tuple[str, ...] = ()
    disagreed: NonNegativeInt = 0
    unread: NonNegativeInt = 0
    overruled: NonNegativeInt = 0
    counts: dict[str, dict[str, NonNegativeInt]]
    agreement: dict[str, Annotated[dict[str, Any], AfterValidator(_figure)]] = Field(default_factory=dict)


class SuiteUsed(Record):
    """The cases of the suite; ``sha256`` as `clinsafe.benchmarks.suite.split_hash` makes it."""

    version: str
    tier: Literal["written", "generated"]
    split: Literal["dev", "test"]
    cases: NonNegativeInt
    sha256: Sha


class JudgeAudit(Record):
    """One audit of one judge.

    Attributes:
        instrument: the judge's name in the keys of its figures.
        hazards: all that the answers have to cover.
        content: content file -> SHA-256.
        figures: metric key -> figure; other instruments of the same run stand beside the judge's.
        reasons: why the judge gave no verdict -> how often.
        supported, rejected, unscored: set -> ids, of the judge alone. Never a text.
    """

    schema_version: Literal[1] = 1
    tool: str
    time: str
    fake: bool = False
    judge: JudgeIdentity
    instrument: str
    hazards: tuple[str, ...]
    answers: AnswersUsed
    suite: SuiteUsed
    content: dict[str, Sha] = Field(default_factory=dict)
    figures: dict[Annotated[str, AfterValidator(_key)], Annotated[dict[str, Any], AfterValidator(_figure)]]
    reasons: dict[str, NonNegativeInt] = Field(default_factory=dict)
    supported: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    rejected: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    unscored: dict[str, tuple[str, ...]] = Field(default_factory=dict)

    def measured(self) -> dict[str, Figure]:
        """The figures as values."""
        return {name: figure_from_json(parts) for name, parts in self.figures.items()}

    def dump(self) -> str:
        """As the file holds it."""
        return json.dumps(self.model_dump(mode="json"), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def read_judge_audit(path: Path) -> JudgeAudit:
    """The file alone, checked for form.

    Raises:
        ContentError: no such file, no JSON, another schema version, or a field that is not what it should be.
    """
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= LARGEST else None
    except OSError as error:
        raise ContentError(path, None, None, f"cannot be read: {error.strerror or error}") from error
    if data is None:
        raise ContentError(path, None, None, f"{size:,} bytes are no audit of a judge")
    try:
        plain = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ContentError(path, None, None, f"not JSON: {error}") from error
    if not isinstance(plain, dict) or plain.get("schema_version") != SCHEMA_VERSION:
        found = plain.get("schema_version") if isinstance(plain, dict) else None
        message = (
            f"got {found!r}; this version of clinsafe reads {SCHEMA_VERSION}, from `clinsafe rag audit-judge`"
        )
        raise ContentError(path, None, "schema_version", message)
    try:
        return TypeAdapter(JudgeAudit).validate_json(data)
    except ValidationError as error:
        first = error.errors()[0]
        raise ContentError(path, None, ".".join(map(str, first["loc"])) or None, str(first["msg"])) from error


def load_judge_audit(path: Path, *, judge: JudgeIdentity, answers_sha256: str) -> JudgeAudit:
    """The audit of exactly this judge on exactly these answers.

    Args:
        judge: the judge that is going to be used.
        answers_sha256: of the labelled answers that are installed.

    Raises:
        ContentError: names the field that differs, with what the file holds and what is used.
    """
    audit = read_judge_audit(path)
    held, used = audit.judge.model_dump(), judge.model_dump()
    settings = {name for part in (held, used) for name in part["settings"]}
    pairs = [(name, held[name], used[name]) for name in held if name != "settings"]
    pairs += [
        (f"settings.{name}", held["settings"].get(name), used["settings"].get(name))
        for name in sorted(settings)
    ]
    pairs = [(f"judge.{name}", a, b) for name, a, b in pairs]
    pairs.append(("answers.sha256", audit.answers.sha256, answers_sha256))
    for name, there, here in pairs:
        if there != here:
            raise ContentError(
                path, None, name,
                f"the audit is of {_short(there)}, but {_short(here)} is in use; "
                "audit the judge anew with `clinsafe rag audit-judge`",
            )  # fmt: skip
    return audit


def _short(value: object) -> str:
    text = "nothing" if value is None else str(value)
    return repr(text if len(text) <= 40 else f"{text[:12]}…")
