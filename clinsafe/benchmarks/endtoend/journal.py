"""What is already measured, on disk as it is made: a run that was stopped goes on from there."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from pydantic import ValidationError

from clinsafe.benchmarks.endtoend.outcomes import Outcome, Setting
from clinsafe.errors import UsageError

STATE, TEXTS = "run.json", "answers.jsonl"
VECTORS = "vectors"


class Journal:
    """Outcomes and generated texts of one run.

    A folder may serve many runs: vectors and answers are kept by what they were made from, outcomes by what the run was
    made with. So a guard that has changed is measured anew, and nothing else is done twice.

    Args:
        folder: where they are kept; None keeps them in memory alone.
        made_with: what outcomes depend on, name -> value; outcomes of other values are left alone.
        models: system -> identity of its model. A folder in which a system of this name had another model is refused.

    Raises:
        UsageError: the folder holds something else, or another model, or cannot be written into.
    """

    def __init__(
        self, folder: Path | None, made_with: Mapping[str, str], models: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self._outcomes: dict[tuple[str, Setting], Outcome] = {}
        self._texts: dict[str, str] = {}
        self._file = (
            f"outcomes-{hashlib.sha256(repr(sorted(made_with.items())).encode()).hexdigest()[:16]}.jsonl"
        )
        if folder is None:
            return
        if folder.exists() and not folder.is_dir():
            raise UsageError(f"{folder}: is a file; --out names a folder")
        if folder.is_dir() and any(folder.iterdir()) and not (folder / STATE).is_file():
            raise UsageError(
                f"{folder}: holds something else; name an empty folder, or one of an earlier run"
            )
        try:
            (folder / VECTORS).mkdir(parents=True, exist_ok=True)
            self._claim(folder / STATE, made_with, models or {})
            self._read()
        except OSError as error:
            raise UsageError(f"{folder}: cannot be used ({error.strerror or error})") from error

    @property
    def vectors(self) -> Path | None:
        """Where vectors are kept."""
        return self.folder / VECTORS if self.folder else None

    def outcome(self, query: str, setting: Setting) -> Outcome | None:
        """What was measured before."""
        return self._outcomes.get((query, setting))

    def add(self, outcome: Outcome) -> None:
        """Keep an outcome."""
        self._outcomes[outcome.query, _setting(outcome)] = outcome
        self._append(self._file, outcome.model_dump_json(exclude_defaults=True))

    def text(self, model: str, prompt: str) -> str | None:
        """What a model answered to the prompt of this SHA-256."""
        return self._texts.get(f"{model}\0{prompt}")

    def add_text(self, model: str, prompt: str, text: str) -> None:
        """Keep an answer."""
        self._texts[f"{model}\0{prompt}"] = text
        self._append(TEXTS, json.dumps({"model": model, "prompt": prompt, "text": text}))

    def _claim(self, state: Path, made_with: Mapping[str, str], models: Mapping[str, str]) -> None:
        known: dict[str, str] = {}
        runs: dict[str, Mapping[str, str]] = {}
        if state.is_file():
            try:
                before = json.loads(state.read_text(encoding="utf-8"))
                known, runs = dict(before["models"]), dict(before["runs"])
            except (ValueError, TypeError, LookupError):
                raise UsageError(f"{state}: is not the file of a run; name another --out") from None
        other = [name for name, value in models.items() if known.get(name, value) != value]
        if other:
            raise UsageError(
                f"{state.parent}: {', '.join(other)} was another model there; name another --out"
            )
        said = {"models": known | dict(models), "runs": runs | {self._file: dict(made_with)}}
        temporary = state.with_suffix(".tmp")
        temporary.write_text(json.dumps(said, indent=1), encoding="utf-8")
        temporary.replace(state)

    def _read(self) -> None:
        for line in self._lines(self._file):
            with suppress(ValidationError):  # a line that broke off is measured again
                outcome = Outcome.model_validate_json(line)
                self._outcomes[outcome.query, _setting(outcome)] = outcome
        for line in self._lines(TEXTS):
            with suppress(ValueError, LookupError, TypeError):
                row: Any = json.loads(line)
                self._texts[f"{row['model']}\0{row['prompt']}"] = str(row["text"])

    def _lines(self, name: str) -> Iterator[str]:
        file = self.folder / name if self.folder else None
        if file is not None and file.is_file():
            yield from file.read_text(encoding="utf-8", errors="replace").split("\n")

    def _append(self, name: str, line: str) -> None:
        if self.folder is None:
            return
        file = self.folder / name
        try:
            with file.open("a", encoding="utf-8") as stream:
                # the line before may have broken off when the run was stopped: never write on behind it
                stream.write(f"\n{line}\n")
        except OSError as error:
            raise UsageError(
                f"{file}: cannot be written ({error.strerror or error}); make room, and run the same command again"
            ) from error


def _setting(outcome: Outcome) -> Setting:
    return Setting(system=outcome.system, k=outcome.k, corpus=outcome.corpus, arm=outcome.arm)
