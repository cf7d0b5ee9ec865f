"""One rich console for all commands: 80 columns when piped, NO_COLOR respected, progress on stderr."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from clinsafe.errors import ClinsafeError

if TYPE_CHECKING:
    from rich.console import Console

Stage = Callable[[str, int, int], None]


class Stopped(ClinsafeError):
    """The user stopped a command that had nothing to keep yet."""

    exit_code = 130


@contextmanager
def stoppable() -> Iterator[None]:
    """One line for Ctrl-C before anything was computed: typer itself would end without a word."""
    try:
        yield
    except KeyboardInterrupt:
        raise Stopped("stopped before anything was computed") from None


def out() -> Console:
    """Standard output. A pipe gets plain text of 80 columns."""
    from rich.console import Console

    console = Console(highlight=False, emoji=False)  # a name may hold :warning: as text
    return console if console.is_terminal else Console(highlight=False, emoji=False, width=80)


@contextmanager
def progress() -> Iterator[Stage]:
    """A progress bar on stderr while work goes on; silent when stderr is not a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("{task.description:<22}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("Starting", total=None)

        def tell(what: str, done: int, total: int) -> None:
            bar.update(task, description=what, completed=done, total=total or None)

        yield tell


def prose(console: Console, text: str, *, style: str | None = None, indent: str = "") -> None:
    """Print a text without markup, wrapped between words; a path or a name is never cut, however long it is.

    For what people read. A line that a script may look for is printed with ``soft_wrap=True`` instead.
    """
    # rich itself either cuts a long word or does not wrap at all
    lines = textwrap.wrap(text, console.width, initial_indent=indent, subsequent_indent=indent,
                          break_long_words=False, break_on_hyphens=False)  # fmt: skip
    console.print("\n".join(lines), style=style, markup=False, soft_wrap=True)


def counted(n: int, noun: str) -> str:
    """``1 hazard``, ``6 hazards``; for nouns that take an s."""
    return f"{n} {noun}{'' if n == 1 else 's'}"


def printable(text: str) -> str:
    """`text` without anything that could drive a terminal: a record may come from a stranger."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
