"""Installation qualification: is the tool installed as it was released, with what it needs?"""

from __future__ import annotations

import base64
import hashlib
import json
import platform
import socket
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import Distribution, PackageNotFoundError, distribution, distributions
from pathlib import Path
from typing import TYPE_CHECKING

import clinsafe
from clinsafe.adapters import offline
from clinsafe.benchmarks.published import load_published
from clinsafe.benchmarks.suite import load_card
from clinsafe.content import FOLDERS, packaged_root, sha256_file
from clinsafe.errors import MissingDependency, OfflineError
from clinsafe.reports import pdf
from clinsafe.reports.qualification import Installation
from clinsafe.reports.render import FONTS
from clinsafe.workflows.qualify_bench import Bench, Found, judged, not_run

if TYPE_CHECKING:
    from packaging.requirements import Requirement

NAME = "clinsafe"
NEEDED_EXTRAS = frozenset({"verify", "suite", "report"})
NOT_FOR_RUNNING = frozenset({"dev"})
OUTSIDE = ("192.0.2.1", 9)  # TEST-NET-1 of RFC 5737: an address that belongs to nobody
TRUETYPE = (b"\x00\x01\x00\x00", b"true", b"OTTO")


def platform_check(_bench: Bench) -> Found:
    """IQ-01."""
    with _packaging():
        from packaging.specifiers import SpecifierSet

    here = f"Python {platform.python_version()} on {platform.system()} {platform.machine()}"
    asked = str(_own().metadata["Requires-Python"])
    fits = SpecifierSet(asked).contains(platform.python_version(), prereleases=True)
    return judged(f"{here}; declared: {asked}", [] if fits else [f"the package asks for Python {asked}"])


def required_packages(_bench: Bench) -> Found:
    """IQ-02."""
    needed = {item.name: item for item in _requirements(NEEDED_EXTRAS)}
    optional = {item.name: item for item in _requirements(None) if item.name not in needed}
    faults, found = [], 0
    for item in (*needed.values(), *optional.values()):
        version = _version(item.name)
        if version is None and item.name in needed:
            faults.append(f"{item.name} is not installed")
        elif version is not None:
            found += item.name in optional
            if not item.specifier.contains(version, prereleases=True):
                faults.append(f"{item.name} {version} is not {item.specifier}")
    return judged(f"{len(needed)} needed packages, {found} of {len(optional)} optional ones found", faults)


def tested_versions(bench: Bench) -> Found:
    """IQ-03."""
    with _packaging():
        from packaging.specifiers import SpecifierSet

    versions = {name: _version(name) for name in bench.asked.pins}
    found = {name: version for name, version in versions.items() if version is not None}
    other = [
        f"{name} {version} (tested: {bench.asked.pins[name]})"
        for name, version in found.items()
        if not SpecifierSet(f"=={bench.asked.pins[name]}").contains(version, prereleases=True)
    ]
    return judged(f"{len(found) - len(other)} of {len(found)} packages found are the tested version", other)


def package_unmodified(_bench: Bench) -> Found:
    """IQ-04."""
    kind = installation()
    code, content = len(code_hashes()), len(content_hashes())
    hashed = f"{code} code and {content} content files hashed into this record"
    if kind != "package":
        what = "editable" if kind == "editable" else "run from a source tree"
        return Found(hashed, "not run", f"{what}: hashes recorded, not compared")
    own = _own()
    faults, compared, listed = [], 0, set()
    for file in own.files or ():
        place = Path(str(own.locate_file(file))).resolve()
        listed.add(place)
        if file.hash is None:  # the list itself, and compiled files
            continue
        compared += 1
        if not place.is_file():
            faults.append(f"{file} is missing")
        elif file.hash.mode != "sha256" or _record_hash(place) != file.hash.value:
            faults.append(f"{file} was changed")
    faults += [f"{path.name} was added" for path in sorted(_shipped()) if path not in listed]
    if not compared:
        return not_run("the package's list of files (RECORD) holds no hashes")
    return judged(f"{compared} files compared; compiled files (.pyc) are not", faults)


def controlled_content(bench: Bench) -> Found:
    """IQ-05."""
    from clinsafe.benchmarks.suite import split_hash

    card = load_card(bench.content)
    load_published(bench.content)
    declared = sum(sum(part.values()) for part in card.counts.values())
    criteria = bench.criteria  # loads hazards, gates, FMEA and items, and holds them against the cases
    faults = []
    if len(bench.cases) != declared:
        faults.append(f"{len(bench.cases)} cases, and the card declares {declared}")
    if split_hash(bench.cases, "test") != card.test_split_sha256:
        faults.append("the test split is not the frozen one")
    return judged(
        f"{len(bench.cases)} of {declared} cases in {len(criteria.hazards)} hazards, suite {card.suite_version}; "
        f"{len(criteria.items.items)} checklist items",
        faults,
    )


def renderer_and_fonts(_bench: Bench) -> Found:
    """IQ-06."""
    versions = pdf.renderer_versions()
    faults = [
        f"{name} is not installed" for name in ("weasyprint", "pango") if versions[name] == "not installed"
    ]
    for name in FONTS:
        path = packaged_root() / name
        if not path.is_file() or path.read_bytes()[:4] not in TRUETYPE:
            faults.append(f"{name} is missing or is no font")
    seen = f"WeasyPrint {versions['weasyprint']}, Pango {versions['pango']}, {len(FONTS)} fonts looked at"
    return judged(seen, faults)


def offline_switch(_bench: Bench) -> Found:
    """IQ-07. What is not refused would go to an address that belongs to nobody."""
    ways: Mapping[str, Callable[[], object]] = {
        "a connection to 192.0.2.1": _connect_outside,
        "a datagram to 192.0.2.1": _send_outside,
        "a look-up of name.invalid": lambda: socket.getaddrinfo("name.invalid", 443),
    }
    with offline.only_this_machine(True):
        faults = [f"{what} was not refused" for what, way in ways.items() if not _refused(way)]
        try:
            _connect_inside()
        except OSError as error:
            faults.append(f"a connection within this machine failed ({type(error).__name__})")
    return judged(f"{len(ways) - len([f for f in faults if 'refused' in f])} of {len(ways)} refused", faults)


def installation() -> Installation:
    """How the code that runs here is installed."""
    try:
        own = _own()
    except PackageNotFoundError:
        return "source tree"
    said = json.loads(own.read_text("direct_url.json") or "{}")
    if said.get("dir_info", {}).get("editable"):
        return "editable"
    installed = Path(str(own.locate_file(NAME))).resolve()
    return "package" if installed == _package() else "source tree"


def code_hashes() -> dict[str, str]:
    """Python file of the package -> SHA-256, content left out."""
    root = _package()
    files = [f for f in sorted(root.rglob("*.py")) if "_content" not in f.relative_to(root).parts]
    return {f.relative_to(root).as_posix(): sha256_file(f) for f in files}


def package_sha256() -> str:
    """One hash over names and hashes of the code; equal for equal code, however it is installed."""
    lines = [f"{digest}  {name}\n" for name, digest in code_hashes().items()]
    return hashlib.sha256("".join(lines).encode()).hexdigest()


def content_hashes() -> dict[str, str]:
    """Every controlled content file -> SHA-256."""
    root = packaged_root()
    files = [f for folder in FOLDERS for f in sorted((root / folder).rglob("*")) if f.is_file()]
    return {
        f.relative_to(root).as_posix(): sha256_file(f) for f in files if not _is_rest(f.relative_to(root))
    }


def all_distributions() -> dict[str, str]:
    """Name -> version of everything installed; the first one found is the one that is imported."""
    found: dict[str, str] = {}
    for item in distributions():
        name = str(item.metadata["Name"] or "").lower().replace("_", "-")
        if name:
            found.setdefault(name, item.version)
    return dict(sorted(found.items()))


def _package() -> Path:
    return Path(str(clinsafe.__file__)).resolve().parent


def _own() -> Distribution:
    return distribution(NAME)


def _version(name: str) -> str | None:
    try:
        return distribution(name).version
    except PackageNotFoundError:
        return None


def _shipped() -> Iterator[Path]:
    """Files that lie in the installed package and are not made there by Python itself."""
    root = _package()
    return (path for path in root.rglob("*") if path.is_file() and not _is_rest(path.relative_to(root)))


def _is_rest(path: Path) -> bool:
    return "__pycache__" in path.parts or path.name.startswith(".")


def _record_hash(path: Path) -> str:
    """As RECORD writes it: base64 in the URL alphabet, without padding."""
    digest = bytes.fromhex(sha256_file(path))
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()


def _requirements(extras: frozenset[str] | None) -> list[Requirement]:
    """What the package declares for these extras; None is all extras but the developers'."""
    with _packaging():
        from packaging.requirements import Requirement

    own = _own()
    every = frozenset(own.metadata.get_all("Provides-Extra") or ()) - NOT_FOR_RUNNING
    wanted = (extras if extras is not None else every) | {""}
    declared = [Requirement(line) for line in own.requires or ()]
    return [
        item
        for item in declared
        if item.name != NAME
        and (item.marker is None or any(item.marker.evaluate({"extra": extra}) for extra in wanted))
    ]


@contextmanager
def _packaging() -> Iterator[None]:
    """Around imports of `packaging`, which comes with the packages that draw the charts."""
    try:
        yield
    except ImportError as error:
        raise MissingDependency("comparing versions", "packaging", "pip install packaging") from error


def _refused(way: Callable[[], object]) -> bool:
    try:
        way()
    except OfflineError:
        return True
    except OSError:  # tried, and failed for another reason
        return False
    return False


def _connect_outside() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as wire:
        wire.setblocking(False)
        wire.connect(OUTSIDE)


def _send_outside() -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as wire:
        wire.setblocking(False)
        wire.sendto(b"", OUTSIDE)


def _connect_inside() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.settimeout(5)
        with socket.create_connection(server.getsockname(), timeout=5):
            server.accept()[0].close()
