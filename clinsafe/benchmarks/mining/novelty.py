"""Which rule families the filters have never seen: no cue word of theirs occurs in a rule pack at the freeze (D13).

``benchmarks/generated/freeze.yaml`` keeps that moment. The filters learn on, a family that was novel then stays so.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from clinsafe.benchmarks.mined import Freeze
from clinsafe.benchmarks.mining.rules import Rules
from clinsafe.benchmarks.suite import Slug
from clinsafe.content import Content, packaged_root
from clinsafe.errors import UsageError

FILE = "benchmarks/generated/freeze.yaml"
_WORD = re.compile(r"[a-z0-9']+")


class FreezeFile(Freeze):
    """The freeze with what followed from it.

    Attributes:
        novel: hazard -> families none of whose cues the packs knew.
        known: hazard -> the others.
        cues_sha256: hazard -> of its families with their cues; another cue may be known or not.
    """

    novel: dict[Slug, tuple[Slug, ...]]
    known: dict[Slug, tuple[Slug, ...]]
    cues_sha256: dict[Slug, str]

    def families(self, rules: Rules, hazards: Sequence[str]) -> dict[str, dict[str, bool]]:
        """Hazard -> family -> whether it was novel.

        Raises:
            UsageError: a family that the freeze does not name.
        """
        found: dict[str, dict[str, bool]] = {}
        for hazard in hazards:
            stated = {
                **dict.fromkeys(self.known.get(hazard, ()), False),
                **dict.fromkeys(self.novel.get(hazard, ()), True),
            }
            found[hazard] = {}
            for family in rules.families(hazard):
                if family not in stated:
                    raise UsageError(
                        f"{FILE}: says nothing about family {family!r} of {hazard}; `clinsafe suite freeze` looks again"
                    )
                found[hazard][family] = stated[family]
            if cues_hash(rules, hazard) != self.cues_sha256.get(hazard):
                raise UsageError(
                    f"{FILE}: families of {hazard} have other cues now; `clinsafe suite freeze` looks again"
                )
        return found


def cues_hash(rules: Rules, hazard: str) -> str:
    """SHA-256 over the families of a hazard and their cues."""
    rows = [f"{family}\t{','.join(sorted(cues))}" for family, cues in sorted(rules.families(hazard).items())]
    return hashlib.sha256("\n".join(rows).encode()).hexdigest()


class Packs(NamedTuple):
    """The words of the filters' rule packs.

    Attributes:
        text: all their words, lower case, each between blanks.
        sha256: over the packs' names and bytes, in order of name.
        files: how many packs.
    """

    text: str
    sha256: str
    files: int

    def knows(self, cue: str) -> bool:
        """Whether a cue occurs, as whole words in this order."""
        return f" {_plain(cue)} " in self.text


def read_packs(folder: Path | None = None) -> Packs:
    """Read every pack of a folder; None takes the packaged ``mitigations``. Comments do not count."""
    paths = sorted((folder or packaged_root() / "mitigations").glob("*.yaml"))
    digest, parts = hashlib.sha256(), []
    for path in paths:
        data = path.read_bytes()
        digest.update(path.name.encode() + b"\0" + data)
        lines = data.decode("utf-8").splitlines()
        parts += [line.split(" #")[0] for line in lines if not line.lstrip().startswith("#")]
    return Packs(f" {_plain(' '.join(parts))} ", digest.hexdigest(), len(paths))


def novel(families: Mapping[str, frozenset[str]], packs: Packs) -> dict[str, bool]:
    """Family -> whether the packs know none of its cues."""
    return {family: not any(map(packs.knows, cues)) for family, cues in families.items()}


def freeze(rules: Rules, packs: Packs, commit: str) -> FreezeFile:
    """What the packs know of these rules now."""
    found = {hazard: novel(rules.families(hazard), packs) for hazard in rules.edits}
    sides = {
        want: {
            h: tuple(sorted(f for f, new in families.items() if new is want)) for h, families in found.items()
        }
        for want in (True, False)
    }
    return FreezeFile(
        commit=commit,
        sha256=packs.sha256,
        packs=packs.files,
        novel=sides[True],
        known=sides[False],
        cues_sha256={hazard: cues_hash(rules, hazard) for hazard in rules.edits},
    )


def load_freeze(content: Content) -> FreezeFile:
    """The freeze of the generated tier.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    return content.yaml(FILE, FreezeFile)


def _plain(text: str) -> str:
    return " ".join(_WORD.findall(text.lower()))
