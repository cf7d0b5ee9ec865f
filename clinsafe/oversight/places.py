"""Where a log is kept: a file, or a database whose address stands in the environment or in a file, never in argv."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from urllib.parse import urlsplit

from clinsafe.errors import UsageError
from clinsafe.oversight.base import ChainLog
from clinsafe.oversight.jsonl import JsonlLog
from clinsafe.oversight.keys import LogKey

VARIABLE = "CLINSAFE_LOG_URL"
FORMS = f"a .jsonl file, env:NAME (default env:{VARIABLE}), or url-file:FILE"


def address(where: str | None, environ: Mapping[str, str] | None = None) -> str:
    """The path of a file, or a database's address, which may hold a password: keep it out of every message.

    Args:
        where: a path; ``env:NAME``; ``url-file:FILE``, whose first line is the address; None: ``env:CLINSAFE_LOG_URL``.
        environ: default the process's.

    Raises:
        UsageError: nothing is there, or an address with a user or password stands on the command line.
    """
    environ = os.environ if environ is None else environ
    named = where or f"env:{VARIABLE}"
    if named.startswith("env:"):
        found = environ.get(named[4:], "").strip()
        if not found:
            raise UsageError(f"{named[4:]} is not set; name a log: {FORMS}")
        return found
    if named.startswith("url-file:"):
        try:
            lines = Path(named[9:]).read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise UsageError(
                f"{named[9:]}: cannot be read ({type(error).__name__}); name a log: {FORMS}"
            ) from None
        if not lines or not lines[0].strip():
            raise UsageError(f"{named[9:]}: its first line is empty; it must be the address of a database")
        return lines[0].strip()
    if "://" in named and not _without_secret(named):
        raise UsageError(
            f"a database's address is not given on the command line, where others read it; give {FORMS}"
        )
    return named


def open_log(
    where: str | None, key: LogKey, old: Sequence[LogKey] = (), *, environ: Mapping[str, str] | None = None
) -> ChainLog:
    """The log at a place, see `address`; whether one was opened there shows at the first use."""
    found = address(where, environ)
    if "://" in found:
        from clinsafe.oversight.sql import SqlLog

        return SqlLog(found, key, old)
    return JsonlLog(found, key, old)


def _without_secret(url: str) -> bool:
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    return parts.scheme == "sqlite" and "@" not in parts.netloc and not parts.query
