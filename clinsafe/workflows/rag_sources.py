"""From what the user named to files of traces: files as they are, or the folder of a reference run."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from clinsafe.errors import UsageError
from clinsafe.workflows.rag_evaluate import Source
from clinsafe.workflows.rag_ledger import STATE, read_run


def sources_of(paths: Sequence[Path], labels: Sequence[str], format_: str) -> list[Source]:
    """One source a file.

    Raises:
        UsageError: a path is not there, or the labels are not one a file.
    """
    found = []
    for path in paths:
        if not path.exists():
            raise UsageError(
                f"{path}: no such file; traces are JSON Lines, or a folder of `clinsafe rag run`"
            )
        found += _of_run(path) if path.is_dir() else [Source(path.stem, path, format_)]
    if labels and len(labels) != len(found):
        raise UsageError(
            f"--label was given {len(labels)} times for {len(found)} files; once a file, or not at all"
        )
    return [
        Source(label, source.path, source.format, source.setting, source.fake, source.versions)
        for label, source in zip(labels or _names(found), found, strict=True)
    ]


def _of_run(folder: Path) -> list[Source]:
    """The files of one reference run, with what made them."""
    if not (folder / STATE).is_file():
        raise UsageError(
            f"{folder}: holds no {STATE}; name a file of traces, or a folder of `clinsafe rag run`"
        )
    state = read_run(folder)
    return [
        Source(
            file.label, folder / file.file, "clinsafe", file.setting, state.fake,
            {name: list(versions) for name, versions in file.versions.items()},
        )
        for file in state.files
    ]  # fmt: skip


def _names(sources: Sequence[Source]) -> list[str]:
    """The files' names, numbered where two are equal."""
    names = [source.label for source in sources]
    return [name if names.count(name) == 1 else f"{name}-{n}" for n, name in enumerate(names, start=1)]
