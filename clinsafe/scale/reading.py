"""The job ``read``: facts of each passage, and the fingerprint of everything that shaped them."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

import clinsafe
from clinsafe import plugins
from clinsafe.content import Content, packaged_root, sha256_file
from clinsafe.corpus import Window
from clinsafe.scale.job import Job, Work
from clinsafe.version import VERSION

if TYPE_CHECKING:
    from clinsafe.mitigations.stack import Stack

FOLDER = "mitigations"
LIBRARIES = ("negspacy", "pint", "quantulum3", "simplemma", "snowballstemmer", "spacy")
CODE = ("mitigations", "text")
LATE = "ran out of time"


def start(job: Job) -> Work:
    """A stack of filters over this job's content.

    Raises:
        ClinsafeError: see `clinsafe.workflows.guard.build_stack`.
    """
    from clinsafe.workflows.guard import build_stack

    content = Content(job.content)
    stack = build_stack(content, job.filters, model=job.spacy, seconds=job.seconds)
    return Work(_Reader(stack).run, made_with(stack, content))


class _Reader:
    """A stack whose rows do not depend on one another: after a time-out it starts with a clean slate."""

    def __init__(self, stack: Stack) -> None:
        self.stack = stack

    def run(self, rows: Sequence[Window]) -> list[str]:
        return [self._facts(row.text) for row in rows]

    def _facts(self, text: str) -> str:
        facts = self.stack.read(text)
        if any(LATE in why for why in facts.unchecked.values()):
            # a filter that was late is not asked for a while: right for a user who waits, wrong for the next passage
            old = self.stack
            self.stack = type(old)(old.filters, old.reader, old.deadline.seconds)
        return json.dumps(facts.to_json(), ensure_ascii=False, sort_keys=True, separators=(",", ":"))


def made_with(stack: Stack, content: Content) -> dict[str, Any]:
    """What shapes the facts that this stack reads.

    Returns:
        ``rules`` (file -> SHA-256 of every rule pack, the overlay's where it has one), ``code`` (SHA-256 of the code
        that reads), ``libraries`` (name -> version), ``parse`` (pipeline), ``filters`` (name -> package and version),
        and ``fingerprint``: SHA-256 over the first four. Facts of another fingerprint are not to be trusted.
    """
    shaping = {
        "rules": {name: sha256_file(content.path(name)) for name in _packs(content)},
        "code": code_hash(*CODE),
        "libraries": {name: _version(name) for name in LIBRARIES},
        "parse": stack.reader.parser.name,
    }
    return {
        **shaping,
        "filters": {name: package_of(name) for name in stack.filters},
        "fingerprint": hashlib.sha256(json.dumps(shaping, sort_keys=True).encode()).hexdigest(),
    }


def _packs(content: Content) -> list[str]:
    roots = [root / FOLDER for root in (packaged_root(), content.overlay) if root is not None]
    return sorted({f"{FOLDER}/{path.name}" for root in roots for path in root.glob("*.yaml")})


def code_hash(*folders: str) -> str:
    """SHA-256 over the version and the sources in these folders of the package."""
    digest, root = hashlib.sha256(VERSION.encode()), Path(clinsafe.__file__).parent
    for folder in folders:
        for path in sorted((root / folder).rglob("*.py")):
            digest.update(f"\0{path.name}\0".encode() + path.read_bytes())
    return digest.hexdigest()


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return "not installed"


def package_of(name: str) -> str:
    """Package and version that an installed filter comes from."""
    point = plugins.available("filters").get(name)
    return f"{point.dist.name} {point.dist.version}" if point is not None and point.dist else "unknown"
