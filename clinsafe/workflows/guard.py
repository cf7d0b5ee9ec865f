"""The guard: filters put together into a stack, texts read into facts, pairs compared."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

from clinsafe import plugins
from clinsafe.checklist.hazards import load_hazards
from clinsafe.content import Content
from clinsafe.errors import ClinsafeError, MissingDependency, UsageError
from clinsafe.protocols import Filter

if TYPE_CHECKING:
    from clinsafe.mitigations.facts import TextFacts
    from clinsafe.mitigations.stack import Comparison, Stack

SECONDS = 10.0  # for one text or one pair


def filter_names(content: Content | None = None) -> tuple[str, ...]:
    """All installed filters: the hazards' own in the hazards' order, then those of other packages by name."""
    installed = plugins.available("filters")
    own = [hazard.id for hazard in load_hazards(content or Content()) if hazard.id in installed]
    return (*own, *(name for name in installed if name not in own))


def build_stack(
    content: Content | None = None,
    names: Sequence[str] | None = None,
    *,
    model: str | None = None,
    seconds: float = SECONDS,
) -> Stack:
    """A stack of filters.

    Args:
        content: content tree with its overlay (rule packs, abbreviations).
        names: filters by entry-point name; None takes all that are installed.
        model: spaCy pipeline, see `clinsafe.text.parse.Parser`.
        seconds: time the filters may take for one text or pair before the one that runs is given up; 0: no limit.

    Raises:
        UsageError: no filter at all, none of that name, or something that is none.
        ContentError: a rule pack is malformed.
        MissingDependency: a package of the ``guard`` extra is missing.
    """
    try:
        import simplemma  # noqa: F401 - says the install line before anything is read
        import snowballstemmer  # noqa: F401
    except ImportError as error:
        raise MissingDependency(
            "the guard", error.name or "a package", "pip install 'clinsafe[guard]'"
        ) from error
    from clinsafe.mitigations.stack import Stack
    from clinsafe.text import Reader

    content = content or Content()
    chosen = dict.fromkeys(names if names is not None else filter_names(content))
    if not chosen:
        raise UsageError(f"no filter was chosen; there are: {', '.join(filter_names(content))}")
    filters = {name: _load(name, content) for name in chosen}
    reader = Reader(content, model)
    if model:
        reader.parser.load()  # a pipeline that was named: a wrong name is told now
    return Stack(filters, reader, seconds)


def _load(name: str, content: Content) -> Filter:
    try:
        made = plugins.load("filters", name)(content)
    except ClinsafeError:
        raise
    except Exception as error:
        what = f"{type(error).__name__}: {error}"
        raise UsageError(
            f"filter {name!r} cannot be loaded ({what}); mend or uninstall its package"
        ) from error
    if not isinstance(made, Filter):
        raise UsageError(
            f"filter {name!r} has no `hazard`, `read` and `compare`; see clinsafe.protocols.Filter"
        )
    return made


@lru_cache(maxsize=4)
def _standard(names: tuple[str, ...] | None, model: str | None) -> Stack:
    return build_stack(None, names, model=model)


def read(text: str, *, filters: Sequence[str] | None = None, model: str | None = None) -> TextFacts:
    """Facts of one text by all (or these) filters; see `clinsafe.read`."""
    return _standard(tuple(filters) if filters is not None else None, model).read(text)


def compare(
    a: str | TextFacts, b: str | TextFacts, *, filters: Sequence[str] | None = None, model: str | None = None
) -> Comparison:
    """Findings between two texts or their facts; see `clinsafe.compare`."""
    stack = _standard(tuple(filters) if filters is not None else None, model)
    one, other = (stack.read(side) if isinstance(side, str) else side for side in (a, b))
    return stack.compare(one, other)
