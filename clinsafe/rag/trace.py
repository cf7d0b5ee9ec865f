"""The trace: what a RAG application did for one question, stage by stage, as one line of JSON.

What is not known is absent, never 0 and never an empty text. An empty list is known to be empty: a retriever that found
nothing. All times are milliseconds, all spans are half-open character ranges.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal, TypeAlias

from pydantic import Field, FiniteFloat, NonNegativeInt, PositiveInt, StringConstraints, ValidationError

from clinsafe.content import Record
from clinsafe.errors import UsageError

SCHEMA_VERSION = 1
LONGEST = 64_000_000  # bytes of a line; more is no trace

Outcome: TypeAlias = Literal["answered", "error", "stopped"]
"""How it ended: ``stopped`` where the caller closed a stream or cancelled a task before it was done."""
Name: TypeAlias = Annotated[str, StringConstraints(min_length=1, max_length=200)]
Milliseconds: TypeAlias = Annotated[FiniteFloat, Field(ge=0)]
Digest: TypeAlias = Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")]


class TraceText(Record):
    """A text, or what may be kept of it where it may not (decision D11).

    Attributes:
        length: characters.
        hmac: HMAC-SHA-256 under the recorder's local key: equal texts can be seen to be equal by who holds the key.
        text: the text itself, where the recorder was told to keep texts.
    """

    length: NonNegativeInt
    hmac: Digest | None = None
    text: str | None = None


class TraceHit(Record):
    """One passage in one stage.

    Attributes:
        id: of the passage.
        rank: 1-based, in its call.
        score: the retriever's or reranker's own.
        call: 1-based number of the call that gave it; an agent may retrieve more than once.
        content: its text.
        source: where it comes from; kept where texts are.
    """

    id: Name
    rank: PositiveInt
    score: FiniteFloat | None = None
    call: PositiveInt = 1
    content: TraceText | None = None
    source: str | None = None


class TraceContext(Record):
    """One passage of the final context.

    Attributes:
        id: of the passage.
        rank: 1-based place in the context.
        span: where it stands in the prompt, whole and verbatim.
    """

    id: Name
    rank: PositiveInt
    span: tuple[NonNegativeInt, NonNegativeInt] | None = None


class TraceCitation(Record):
    """A claim of the answer and the source it names.

    Attributes:
        claim: span of the answer.
        passage: id of the source.
        source: span of the passage.
    """

    claim: tuple[NonNegativeInt, NonNegativeInt]
    passage: Name
    source: tuple[NonNegativeInt, NonNegativeInt] | None = None


class TraceGuarded(Record):
    """What the guard did with one passage; ``rank`` 0 is withheld. Codes only, no words of the text."""

    id: Name
    retrieved_rank: PositiveInt
    rank: NonNegativeInt
    action: Name
    rules: tuple[Name, ...] = ()
    unchecked: tuple[Name, ...] = ()


class TraceGuard(Record):
    """What the guard did in one call."""

    policy: str = ""
    needs_review: bool
    disagreements: NonNegativeInt = 0
    passages: tuple[TraceGuarded, ...] = ()


class TraceVersions(Record):
    """Which versions answered."""

    embedding: Name | None = None
    index: Name | None = None
    reranker: Name | None = None
    model: Name | None = None
    prompt: Name | None = None


class TraceTokens(Record):
    """Tokens as the model's provider counted them, summed over all calls of one question."""

    prompt: NonNegativeInt | None = None
    completion: NonNegativeInt | None = None


class TraceCost(Record):
    """What the question cost."""

    amount: Annotated[FiniteFloat, Field(ge=0)]
    currency: Annotated[str, StringConstraints(pattern=r"^[A-Z]{3}$")]


class TraceGrade(Record):
    """One grader's word: evidence, not truth.

    Attributes:
        grader: name and version of who graded.
        metric: what was graded.
        outcome: whether there is a score.
        score: only with ``scored``.
        rationale: the grader's words.
    """

    grader: Name
    metric: Name
    outcome: Literal["scored", "unscored", "refused", "error"]
    score: FiniteFloat | None = None
    rationale: TraceText | None = None


class Trace(Record):
    """One question through all stages.

    Attributes:
        id: of this trace, made anew for each.
        time: when it began, UTC.
        tool: version of clinsafe that wrote it.
        outcome: how it ended.
        error: kind of error (``TimeoutError``), never its message, which may quote a text.
        query: the question.
        query_id, query_version: of the question in a set of questions.
        task: type of task (``mcq``, ``long-form`` …).
        slices: intent, language, tenant, document_type, freshness, difficulty, safety_class, or the user's own.
        access: who was allowed to see what, as codes.
        corpus: snapshot of the corpus.
        eligible: ids of passages that hold the answer.
        allowed: ids of passages that this user may see.
        versions: of embedding, index, reranker, model and prompt.
        retrieved: before reranking.
        reranked: after it.
        guard: what the guard did, per call.
        context: what the model was shown; absent where that is not known.
        prompt: what was sent to the model, the last time where there were several.
        answer: what came back; of a stream, as much as came.
        citations: claims and their sources.
        reference: the right answer.
        references: right answers, any of them, where there are several.
        expected: the right option of a multiple choice.
        options: of a multiple choice: letter or word -> text.
        relevance: passage id -> grade, 0 for not relevant.
        timings: stage -> milliseconds; ``total``, ``retrieval``, ``rerank``, ``generation``, ``first_chunk``, or the
            user's own.
        tokens, cost: where they were told.
        grades: graders' evidence.
    """

    schema_version: Literal[1] = 1
    id: Name
    time: str
    tool: str
    outcome: Outcome
    error: Name | None = None
    query: TraceText | None = None
    query_id: Name | None = None
    query_version: Name | None = None
    task: Name | None = None
    slices: dict[Name, Name] | None = None
    access: dict[Name, Name] | None = None
    corpus: Name | None = None
    eligible: tuple[Name, ...] | None = None
    allowed: tuple[Name, ...] | None = None
    versions: TraceVersions | None = None
    retrieved: tuple[TraceHit, ...] | None = None
    reranked: tuple[TraceHit, ...] | None = None
    guard: tuple[TraceGuard, ...] | None = None
    context: tuple[TraceContext, ...] | None = None
    prompt: TraceText | None = None
    answer: TraceText | None = None
    citations: tuple[TraceCitation, ...] | None = None
    reference: TraceText | None = None
    references: tuple[TraceText, ...] | None = None
    expected: Name | None = None
    options: dict[Name, TraceText] | None = None
    relevance: dict[Name, FiniteFloat] | None = None
    timings: dict[Name, Milliseconds] | None = None
    tokens: TraceTokens | None = None
    cost: TraceCost | None = None
    grades: tuple[TraceGrade, ...] | None = None

    def line(self) -> str:
        """One line of JSON without its end; what is not known is left out."""
        return self.model_dump_json(exclude_none=True)


@dataclass(frozen=True, slots=True)
class BadLine:
    """A line that is no trace.

    Attributes:
        number: 1-based.
        field: dotted name, "" where the line as a whole is meant.
        why: what is wrong; never quotes the line.
    """

    number: int
    field: str
    why: str

    def __str__(self) -> str:
        return f"line {self.number}: {f'{self.field}: ' if self.field else ''}{self.why}"


def read_traces(path: Path | str) -> Iterator[Trace | BadLine]:
    """All traces of a file, one line in memory at a time; a line that is none comes as `BadLine`, and reading goes on.

    Raises:
        UsageError: there is no such file, or it cannot be read.
    """
    path = Path(path)
    try:
        with path.open("rb") as stream:
            for number, line in enumerate(iter(lambda: stream.readline(LONGEST), b""), start=1):
                long = len(line) >= LONGEST and not line.endswith(b"\n")
                while long and (rest := stream.readline(LONGEST)) and not rest.endswith(b"\n"):
                    pass
                if long:
                    yield BadLine(number, "", f"longer than {LONGEST // 1_000_000} MB")
                elif line.strip():
                    yield _parsed(number, line)
    except OSError as error:
        raise UsageError(
            f"{path}: cannot be read ({error.strerror}); traces are JSON Lines, as `clinsafe.record` writes them"
        ) from None


def _parsed(number: int, line: bytes) -> Trace | BadLine:
    try:
        data: Any = json.loads(line)
    except (ValueError, RecursionError) as error:
        return BadLine(number, "", f"not JSON ({type(error).__name__})")
    if not isinstance(data, dict):
        return BadLine(number, "", "not a JSON object")
    version = data.get("schema_version", SCHEMA_VERSION)
    if version != SCHEMA_VERSION:
        return BadLine(number, "schema_version", f"this version of clinsafe reads {SCHEMA_VERSION}")
    try:
        return Trace.model_validate(data)
    except ValidationError as error:
        first = error.errors(include_input=False, include_url=False)[0]
        return BadLine(number, ".".join(map(str, first["loc"])), str(first["msg"]))
