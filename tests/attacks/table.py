"""docs/attacks.md: every attack judged by three programs.

Made by ``python -m tests.attacks.table > docs/attacks.md``.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from importlib.metadata import version
from itertools import groupby
from pathlib import Path

from clinsafe.version import VERSION
from tests.attacks.attacks import ATTACKS, OPEN, Attack
from tests.attacks.flips import FRESH, Campaign, campaigns, false_alarms, share
from tests.attacks.judges import JUDGES, Verdict, ours, shared
from tests.attacks.reports import World

SPARSE = 500_000_000  # bytes
COLUMNS = f"| attack | {' | '.join(JUDGES)} | why |\n|---|---|---|---|---|"
FRONT = """\
# What each tampering looks like

Made by `python -m tests.attacks.table`; a test makes it again and compares. One report of a fake model on one
hazard of the suite is attacked, and judged by `clinsafe report verify`, by poppler's `pdfsig` with an NSS store,
and by `openssl cms -verify` over the signed ranges. All three trust the same test root, or the certificate that
the row names.

{versions}

**clinsafe** says "accepted" where the exit code is 0, else its first reason. **pdfsig** says whether the
signature is valid, what it thinks of the certificate, and whether the signature covers the file. **openssl cms**
knows no PDF: it says whether the container is a signature over the ranges that the file itself names. Neither is
asked about figures, pages or approvals, and neither claims to know: a "verifies" there is no fault of theirs.
"not run" is no yes.

{summary}
"""
RANDOM = """\
## Random bits

Files that are one bit away from a signed report, and how many of them a judge still takes for good, with the exact 95 %
interval (Clopper-Pearson). For clinsafe the signature check alone is counted, for pdfsig "valid", trusted or not.

| altered files | clinsafe | pdfsig | openssl cms | why |
|---|---|---|---|---|"""
BACK = """\
## What this does not show

- **The hole that the signature lies in is signed by nobody.** Hardly any of its bits can change unseen by clinsafe
  (the campaign above says how many did), many by the others; none of them changes what the report says. Who must
  know that a file is the very same one, bit by bit, keeps its SHA-256: every approval beside the file is over that
  hash, so one flipped bit and no approval counts.
- **A signer who lies before signing, with the key that you trust**, is found only where the lie contradicts
  something: the figures their scores, the pages their record, the cases the installed suite. Scores that were
  never measured and fit together are not found by any check of the file; repeating the audit finds them.
- **A certificate says what its issuer checked.** A development key proves that nothing was changed since, not who
  signed.
- These are the attacks that we thought of. {alarms}"""


@dataclass(frozen=True)
class Row:
    """One attack and what each judge, by name, makes of it."""

    attack: Attack
    verdicts: Mapping[str, Verdict]


@dataclass(frozen=True)
class Findings:
    """All that the page is made of; `alarms` are fresh, untouched signatures that were objected to, of FRESH."""

    rows: Sequence[Row]
    random: Sequence[Campaign]
    alarms: int


def collect(folder: Path) -> Findings:
    """Make every file in `folder`, which is empty, and ask every judge; takes two minutes on two cores."""
    world = World(folder)
    assert world.signed
    assert world.timed
    with ThreadPoolExecutor(1) as apart:
        bits = apart.submit(campaigns, world)  # while others wait for the renderer
        world.prepare()
        rows = judged(world)
        random = bits.result()
    return Findings(rows, random, false_alarms(world))


def judged(world: World) -> list[Row]:
    """Every attack, and what each judge says."""
    paths = [write(attack, world, world.folder / f"attack-{number}") for number, attack in enumerate(ATTACKS)]
    world.wait()
    others = [judge for judge in JUDGES.values() if judge is not ours]
    with ThreadPoolExecutor(1) as pool:
        pending = [
            [pool.submit(judge, path, attack.trust(world)) for judge in others]
            for attack, path in zip(ATTACKS, paths, strict=True)
        ]
        with shared(), world.once():
            own = [ours(path, attack.trust(world)) for attack, path in zip(ATTACKS, paths, strict=True)]
        said = [(first, *(job.result() for job in jobs)) for first, jobs in zip(own, pending, strict=True)]
    return [
        Row(attack, dict(zip(JUDGES, each, strict=True))) for attack, each in zip(ATTACKS, said, strict=True)
    ]


def write(attack: Attack, world: World, folder: Path) -> Path:
    """The file of one attack, and its approvals beside it."""
    folder.mkdir()
    path = folder / attack.file
    if attack.build is None:
        with path.open("wb") as stream:
            stream.truncate(SPARSE)
    else:
        path.write_bytes(attack.build(world))
    if attack.sidecar:
        path.with_name(f"{path.name}.approvals.jsonl").write_bytes(b"".join(attack.sidecar(world)))
    return path


def markdown(found: Findings) -> str:
    """The page."""
    parts = [FRONT.format(versions=versions(), summary=summary(found.rows))]
    ordered = sorted(found.rows, key=lambda row: row.attack.heading == OPEN)
    for heading, rows in groupby(ordered, key=lambda row: row.attack.heading):
        parts.append(f"## {heading}\n\n{COLUMNS}\n" + "".join(map(_row, rows)))
    parts.append("\n".join([RANDOM, *map(_campaign, found.random)]) + "\n")
    alarms = f"Of {FRESH} fresh signatures of the untouched report the check objected to {share(found.alarms, FRESH)}."
    parts.append(BACK.format(alarms=alarms))
    return "\n".join(parts) + "\n"


def summary(rows: Sequence[Row]) -> str:
    """How many files each judge accepts, of the untouched ones and of the attacks that can be found."""
    lines = ["| | untouched, accepted | attacks that can be found, accepted |", "|---|---|---|"]
    for judge in JUDGES:
        cells = []
        for kinds in (("honest",), ("attack", "open")):
            said = [row.verdicts[judge].accepted for row in rows if row.attack.kind in kinds]
            cells.append("not run" if None in said else share(sum(map(bool, said)), len(said)))
        lines.append(f"| {judge} | {' | '.join(cells)} |")
    return "\n".join(lines)


def versions() -> str:
    """One line; programs that are not there are said not to be."""
    poppler, ssl = _first_line("pdfsig", "-v"), _first_line("openssl", "version")
    return f"Versions: clinsafe {VERSION}, pyHanko {version('pyhanko')}, {poppler}, {ssl}."


def comparable(page: str) -> str:
    """Without what another machine, or another random key, changes.

    These are versions, counts of random bits, and the numbers of a PDF's objects, which follow from its pages.
    """
    kept = []
    for line in page.splitlines():
        line = re.sub(r"\bobject \d+", "object", line)
        if line.startswith("| ") and "bit flips" in line:
            line = re.sub(r"\d+ of \d+|\[[^]]*\]", "", line)
        if not line.startswith("Versions: "):
            kept.append(line)
    return "\n".join(kept)


def _row(row: Row) -> str:
    cells = [row.attack.name, *(row.verdicts[judge].says for judge in JUDGES), row.attack.why]
    return f"| {' | '.join(cell.replace('|', chr(92) + '|') for cell in cells)} |\n"


def _campaign(row: Campaign) -> str:
    counts = (row.ours, row.pdfsig, row.openssl)
    cells = [row.name, *("not run" if k is None else share(k, row.n) for k in counts), row.why]
    return f"| {' | '.join(cells)} |"


def _first_line(*command: str) -> str:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
    except OSError:
        return f"{command[0]} not installed"
    return re.sub(r" *\(.*", "", (done.stdout or done.stderr).splitlines()[0])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as scratch:
        print(markdown(collect(Path(scratch))), end="")
