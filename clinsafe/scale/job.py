"""What is done to each passage of a corpus: the kinds of work there are, and one job's settings."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any

from clinsafe.adapters.encoders import ModelOptions
from clinsafe.corpus import Window
from clinsafe.errors import UsageError

SECONDS = 30.0  # for one passage; a thousand times what reading one takes


@dataclass(frozen=True, slots=True)
class Kind:
    """One kind of work.

    Attributes:
        column: name of the output column; a row holds a value there, or the kind of an error.
        start: ``module:function``, from a `Job` to its `Work`; imported where it runs.
    """

    column: str
    start: str


KINDS: dict[str, Kind] = {
    "read": Kind("facts", "clinsafe.scale.reading:start"),
    "embed": Kind("vector", "clinsafe.scale.embedding:start"),
    "mine": Kind("quads", "clinsafe.scale.mining:start"),
}
"""Job name -> kind. Another kind is a row here and a module with its `start`."""


@dataclass(frozen=True)
class Job:
    """One job, the same for all rows; what its rows are computed from besides themselves.

    Attributes:
        name: a key of `KINDS`.
        filters: ``read``: these filters; None takes all that are installed.
        spacy: ``read``: spaCy pipeline, see `clinsafe.text.parse.Parser`.
        content: overlay of controlled content.
        seconds: ``read``: time the filters may take for one passage.
        model: ``embed``: an encoder as it is written after ``--model``.
        options: ``embed``: how the encoder is loaded.
        hazards, seed: ``mine``: which rules, and which of the choices that could as well have been others.
    """

    name: str = "read"
    filters: tuple[str, ...] | None = None
    spacy: str | None = None
    content: Path | None = None
    seconds: float = SECONDS
    model: str = ""
    options: ModelOptions = field(default_factory=ModelOptions)
    hazards: tuple[str, ...] = ()
    seed: int = 0

    def __post_init__(self) -> None:
        if self.name not in KINDS:
            raise UsageError(f"no job is called {self.name!r}; there are: {', '.join(KINDS)}")

    @property
    def kind(self) -> Kind:
        """Its kind."""
        return KINDS[self.name]


@dataclass(frozen=True, slots=True)
class Failed:
    """Why a passage has no value: the kind of error alone, for a message may quote the text (decision D11)."""

    kind: str


@dataclass(frozen=True, slots=True)
class Work:
    """A job that was started in this process: models loaded, packs read.

    Attributes:
        run: passages -> as many values (JSON as text, or a vector) or `Failed`. May raise; then each is tried alone.
        made_with: everything that shapes the values, as plain JSON; another one means other values.
        width: length of a vector; None where values are text.
    """

    run: Callable[[Sequence[Window]], Sequence[Any]]
    made_with: Mapping[str, Any]
    width: int | None = None


def start(job: Job) -> Work:
    """Load what the job needs.

    Raises:
        ClinsafeError: what `KINDS[job.name].start` says: no such filter, no such model …
    """
    module, _, function = job.kind.start.partition(":")
    made: Work = getattr(import_module(module), function)(job)
    return made
