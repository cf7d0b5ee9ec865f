"""The error tree. Every message is one line: what is wrong, where, and what would be valid.

::

    ClinsafeError                 exit 2; caught in exactly one place, the CLI's error handler
    ├── UsageError                a flag or an argument makes no sense
    │   └── OutputExists          the output folder is there already
    ├── ContentError              a controlled file is malformed: file, line, field
    ├── MissingDependency         an extra or a system library is not installed; carries the fix
    ├── ModelError                a model cannot be used
    │   ├── UnknownModel          no such alias, folder, hub id or plug-in
    │   ├── WeightsMismatch       the weights are not the pinned ones
    │   └── UntrustedModel        the model wants to run its own code or is a pickle (decision D12)
    ├── OfflineError              something tried to leave the machine under --offline
    ├── RenderError               the PDF could not be made; the HTML and the evidence are kept
    ├── KeyFileError              a signing key is missing, unreadable or its passphrase is wrong
    ├── TimestampError            a timestamp authority gave no time that a checker accepts; nothing was signed
    └── ReportError               a file is not a clinsafe report, cannot be read as one, or was not signed as asked

A verdict (a hazard held, a signature that does not verify) is never an exception: it is a result, exit 1.
"""

from __future__ import annotations

from pathlib import Path


class ClinsafeError(Exception):
    """Anything the user can mend. ``str(error)`` is one line; ``exit_code`` is always 2."""

    exit_code = 2

    def __init__(self, message: str) -> None:
        super().__init__(" ".join(message.split()))


class UsageError(ClinsafeError, ValueError):
    """A flag or an argument makes no sense."""


class OutputExists(UsageError):
    """The output folder is there already and ``--force`` was not given."""


class ContentError(ClinsafeError, ValueError):
    """A controlled content file is malformed.

    Args:
        path: the file.
        line: 1-based line, or None where the file as a whole is meant.
        field: dotted field name, or None.
        message: what is wrong and what would be valid.
    """

    def __init__(self, path: Path | str, line: int | None, field: str | None, message: str) -> None:
        self.path, self.line, self.field = Path(path), line, field
        where = f"{path}:{line}" if line is not None else f"{path}"
        super().__init__(f"{where}: {f'{field}: ' if field else ''}{message}")


class MissingDependency(ClinsafeError, ImportError):
    """An extra or a system library is not installed.

    Args:
        feature: what the user wanted to do.
        missing: the package or library.
        fix: the one line to run.
    """

    def __init__(self, feature: str, missing: str, fix: str) -> None:
        self.feature, self.missing, self.fix = feature, missing, fix
        super().__init__(f"{feature} needs {missing}; install it with: {fix}")


class ModelError(ClinsafeError):
    """A model cannot be used."""


class UnknownModel(ModelError):
    """No alias, folder, hub id or plug-in of that name can be had."""


class WeightsMismatch(ModelError):
    """The SHA-256 of the weights is not the pinned one."""


class UntrustedModel(ModelError):
    """The model would run code of its own, or its weights are pickles (decision D12)."""


class OfflineError(ClinsafeError, ConnectionError):
    """A connection to another machine was refused because of ``--offline`` (decision D11)."""


class RenderError(ClinsafeError):
    """The PDF could not be rendered; HTML and evidence have been kept."""


class KeyFileError(ClinsafeError):
    """A signing key is missing, unreadable, too openly readable, or its passphrase is wrong."""


class ReportError(ClinsafeError, ValueError):
    """A file is not a report or an evidence record that this version can read."""


class TimestampError(ClinsafeError):
    """The authority cannot be reached, refuses, or answers what no checker accepts. Nothing was signed."""
