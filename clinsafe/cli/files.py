"""Files that a command writes: whole or not at all, and one line where it cannot be done."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from clinsafe.errors import UsageError


def write_whole(files: Mapping[Path, str | bytes]) -> None:
    """Write all of these files, text as UTF-8, or none of them: a full disk leaves what was there before.

    Folders that are missing are made. A link stays one and its target is replaced; what is no file (a pipe,
    ``/dev/stdout``) is written into as it is.

    Raises:
        UsageError: names the file that cannot be written, and why.
    """
    ready: list[tuple[Path, Path]] = []
    path = Path()
    try:
        for number, (path, given) in enumerate(files.items()):
            data = given.encode() if isinstance(given, str) else given
            if path.exists() and not path.is_file() and not path.is_dir():
                path.write_bytes(data)
                continue
            target = path.resolve()
            target.parent.mkdir(parents=True, exist_ok=True)
            temporary = target.parent / f".clinsafe-{os.getpid()}-{number}.tmp"
            ready.append((temporary, target))
            temporary.write_bytes(data)
        for temporary, path in ready:
            temporary.replace(path)
    except OSError as error:
        why = error.strerror or str(error)
        raise UsageError(
            f"{path}: cannot be written ({why}); make room there, or name another place"
        ) from error
    finally:  # also when the user stops it
        for temporary, _ in ready:
            with suppress(OSError):
                temporary.unlink(missing_ok=True)


def refuse_unwritable(path: Path | None) -> None:
    """Say before anything is computed what would else show when the file is written; None is no file.

    Raises:
        UsageError: its folder is missing or may not be written into, or it is a folder itself.
    """
    if path is None:
        return
    if not path.parent.is_dir():
        raise UsageError(f"{path}: its folder is not there; make it first")
    if path.is_dir():
        raise UsageError(f"{path}: is a folder; give the name of a file")
    if not path.exists() and not os.access(path.parent, os.W_OK):
        raise UsageError(f"{path}: its folder may not be written into; name another place")
