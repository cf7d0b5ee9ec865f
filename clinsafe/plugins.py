"""Entry points: the only registry. Built-ins are rows in pyproject.toml like everybody else's."""

from __future__ import annotations

from importlib.metadata import EntryPoint, entry_points
from typing import Any, Literal

from clinsafe.errors import MissingDependency, UsageError

Kind = Literal["encoders", "scorers", "filters", "judges", "signers", "guards"]


def available(kind: Kind) -> dict[str, EntryPoint]:
    """Name -> entry point of one kind, sorted; nothing is imported."""
    found = entry_points(group=f"clinsafe.{kind}")
    return {point.name: point for point in sorted(found, key=lambda p: p.name)}


def load(kind: Kind, name: str) -> Any:
    """Import one plug-in.

    Raises:
        UsageError: no plug-in of that name; the message lists those there are.
        MissingDependency: it is there but cannot be imported.
    """
    points = available(kind)
    if name not in points:
        known = ", ".join(points) or "none installed"
        raise UsageError(f"no {kind.removesuffix('s')} is called {name!r}; there are: {known}")
    try:
        return points[name].load()
    except MissingDependency:
        raise
    except ImportError as error:
        distribution = points[name].dist
        owner = distribution.name if distribution else "its package"
        missing = error.name or "a module"
        raise MissingDependency(
            f"{kind.removesuffix('s')} {name!r}", missing, f"pip install {missing}  (used by {owner})"
        ) from error
