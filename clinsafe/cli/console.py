"""One rich console for all commands: 80 columns when piped, NO_COLOR respected, progress on stderr."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rich.console import Console

Stage = Callable[[str, int, int], None]


def out() -> Console:
    """Standard output. A pipe gets plain text of 80 columns."""
    from rich.console import Console

    console = Console(highlight=False)
    return console if console.is_terminal else Console(highlight=False, width=80)


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


def printable(text: str) -> str:
    """`text` without anything that could drive a terminal: a record may come from a stranger."""
    return "".join(letter if letter.isprintable() else "?" for letter in text)
