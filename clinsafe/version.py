"""The version, from the installed package's metadata: declared once, in pyproject.toml."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version


def _installed() -> str:
    try:
        return version("clinsafe")
    except PackageNotFoundError:
        return "0+unknown"


VERSION = _installed()
