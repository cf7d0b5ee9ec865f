"""The folder of a run of the reference pipeline: what it is for, and one file of traces for each way of answering.

::

    rag-run.json    what the run is made of, and its files of traces; `read_run`
    traces/         one line for each question, appended when it is done
    index/          of the corpus, unless it lies elsewhere

A run that was stopped goes on where it was: a line that broke off is cut off and done again. It goes on with the same
corpus, questions, settings, prompts and models alone.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any, Literal

from pydantic import ValidationError

from clinsafe.content import Record
from clinsafe.errors import MissingDependency, OutputExists, UsageError
from clinsafe.rag.prompts import Setting
from clinsafe.rag.trace import Trace

STATE, TRACES, INDEX, LOCK = "rag-run.json", "traces", "index", "lock"
Plan = Mapping[str, Any]


class TraceFile(Record):
    """One file of traces.

    Attributes:
        label: of this way of answering, unique in the run.
        file: relative to the run folder.
        setting: what the model was shown.
        alpha: of the retrieval; None where nothing was retrieved.
        versions: what answered: ``embedding``, ``index``, ``reranker``, ``model``, ``prompt`` (several), ``guard``.
    """

    label: str
    file: str
    setting: Setting
    alpha: float | None = None
    versions: Mapping[str, tuple[str, ...]] = {}


class RunState(Record):
    """``rag-run.json``.

    Attributes:
        state: whether all questions that were asked for are done; with a limit that is the beginning of the set.
        started: UTC.
        plan: what the run is made of.
        plan_sha256: of its canonical form.
        fake: a fake took part; no figure of it may be released.
        text: whether texts are in the traces; without them no metric of text can be measured.
        files: of traces.
    """

    schema_version: Literal[1] = 1
    state: Literal["unfinished", "finished"]
    started: str
    tool: str
    plan: Mapping[str, Any]
    plan_sha256: str
    fake: bool
    text: bool
    files: tuple[TraceFile, ...]


def plan_hash(plan: Plan) -> str:
    """SHA-256 of a plan in its canonical form."""
    return hashlib.sha256(json.dumps(plan, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


def read_run(folder: Path) -> RunState:
    """What a run folder holds.

    Raises:
        UsageError: it is none, or its state is damaged.
    """
    try:
        return RunState.model_validate_json((folder / STATE).read_bytes())
    except FileNotFoundError:
        raise UsageError(
            f"{folder}: is no folder of `clinsafe rag run` ({STATE} is missing); give one, or a file of traces"
        ) from None
    except (OSError, ValidationError) as error:
        raise UsageError(f"{folder / STATE}: is damaged; run into another folder") from error


@contextmanager
def claimed(folder: Path) -> Iterator[None]:
    """The folder, to be written by this process alone.

    Raises:
        OutputExists: it holds something else, or another run is at work there. UsageError: it cannot be written.
    """
    try:
        from filelock import FileLock, Timeout
    except ImportError as error:
        raise MissingDependency("a run folder", "filelock", "pip install 'clinsafe[rag]'") from error
    try:
        if folder.exists() and not (folder.is_dir() and _ours(folder)):
            raise OutputExists(
                f"{folder}: holds something else; name an empty folder, or one of an earlier run"
            )
        (folder / TRACES).mkdir(parents=True, exist_ok=True)
        lock = FileLock(folder / LOCK, timeout=0)
        lock.acquire()
    except Timeout:
        raise OutputExists(f"{folder}: another run is writing there; choose another --out") from None
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be written ({error.strerror or error}); name another --out"
        ) from error
    try:
        yield
    finally:
        lock.release()


def _ours(folder: Path) -> bool:
    """Nothing in it, or only what a run makes."""
    return {entry.name for entry in folder.iterdir()} <= {STATE, TRACES, INDEX, LOCK} or (
        folder / STATE
    ).is_file()


def begin(folder: Path, state: RunState) -> RunState:
    """Begin the run, or take up the one that is there.

    Raises:
        UsageError: another plan was begun there; names what differs. Or it cannot be written.
    """
    if (folder / STATE).is_file():
        before = read_run(folder)
        if before.plan_sha256 != state.plan_sha256 or plan_hash(before.plan) != state.plan_sha256:
            changed = ", ".join(_differences(before.plan, state.plan)) or "its recorded plan"
            raise UsageError(
                f"{folder}: was begun with another plan ({changed}); give the same again, or another --out"
            )
        state = state.model_copy(update={"started": before.started})
    elif any((folder / TRACES).iterdir()):
        raise OutputExists(f"{folder / TRACES}: holds traces of an unknown run; choose another --out")
    write_state(folder, state)
    return state


def _differences(before: Plan, now: Plan) -> list[str]:
    return sorted(name for name in {*before, *now} if before.get(name) != now.get(name))


def write_state(folder: Path, state: RunState) -> None:
    """Write ``rag-run.json`` whole or not at all."""
    new = folder / f"{STATE}.new"
    try:
        with new.open("wb") as stream:
            stream.write(state.model_dump_json(indent=1).encode())
            stream.flush()
            os.fsync(stream.fileno())
        new.replace(folder / STATE)
    except OSError as error:
        new.unlink(missing_ok=True)
        raise UsageError(
            f"{folder / STATE}: cannot be written ({error.strerror or error}); make room, and run this again"
        ) from error


class TraceLedger:
    """One file of traces, appended to a question at a time.

    Args:
        path: the file; a last line without its end is cut off.

    Attributes:
        done: ids of the questions that stand in it.
        outcomes: kind of error, or ``answered``, -> how often.
        tokens: (prompt, completion), summed over the traces that tell.

    Raises:
        UsageError: a whole line of it is no trace, or it cannot be written.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.done: set[str] = set()
        self.outcomes: dict[str, int] = {}
        self.tokens = (0, 0)
        self._stream: IO[bytes] | None = None
        try:
            good = self._read()
            self._stream = path.open("ab")
            self._stream.truncate(good)
        except OSError as error:
            raise self._unwritable(error) from error

    def _read(self) -> int:
        """How many bytes of whole lines there are."""
        good = 0
        if not self.path.is_file():
            return good
        with self.path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.endswith(b"\n"):
                    break
                try:
                    self._count(Trace.model_validate_json(line))
                except ValidationError:
                    raise UsageError(
                        f"{self.path}: line {number} is no trace of a run; take it out to have its question done again"
                    ) from None
                good += len(line)
        return good

    def _count(self, trace: Trace) -> None:
        self.done.add(trace.query_id or trace.id)
        kind = trace.error or "error" if trace.outcome != "answered" else "answered"
        self.outcomes[kind] = self.outcomes.get(kind, 0) + 1
        if trace.tokens is not None:
            told = trace.tokens
            self.tokens = (self.tokens[0] + (told.prompt or 0), self.tokens[1] + (told.completion or 0))

    def append(self, trace: Trace) -> None:
        """Keep a trace; what a full disk took of it is taken back.

        Raises:
            UsageError: it cannot be written.
        """
        assert self._stream is not None  # noqa: S101 - only after close
        size = self._stream.tell()
        try:
            self._stream.write(trace.line().encode() + b"\n")
            self._stream.flush()
        except OSError as error:
            try:
                os.truncate(self.path, size)
            finally:
                raise self._unwritable(error) from error
        self._count(trace)

    def close(self) -> None:
        """Close the file."""
        if self._stream is not None:
            self._stream.close()

    def _unwritable(self, error: OSError) -> UsageError:
        why = error.strerror or error
        return UsageError(
            f"{self.path}: cannot be written ({why}); make room, and run the same command again"
        )


@contextmanager
def ledgers(folder: Path, files: Sequence[TraceFile]) -> Iterator[list[TraceLedger]]:
    """The ledgers of a run, closed at the end; in the order of `files`."""
    opened: list[TraceLedger] = []
    try:
        for one in files:
            opened.append(TraceLedger(folder / one.file))
        yield opened
    finally:
        for ledger in opened:
            ledger.close()
