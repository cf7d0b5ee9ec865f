"""The SOUP list (IEC 62304, 8.1.2): what this software and the systems under test are made of, by name, maker, version.

Read from what is installed, so that it says what ran. What no installation says of itself (what a library is for, what
a fault in it would do) comes from ``checklist/soup.yaml``. Whatever is not known says so.

Nothing here imports the evidence record at the top, which holds a list of these items.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from importlib.metadata import PackageNotFoundError, distribution, distributions
from typing import TYPE_CHECKING, Literal, TypeAlias
from urllib.parse import quote

from pydantic import Field

from clinsafe.content import Content, Record
from clinsafe.errors import MissingDependency

if TYPE_CHECKING:
    from packaging.metadata import RawMetadata

    from clinsafe.reports.evidence import SystemRecord

Kind: TypeAlias = Literal["library", "runtime", "model", "data", "font", "tool"]
FILE = "checklist/soup.yaml"
PRODUCT = "clinsafe"
NOT_STATED = "not stated"
NOT_LOOKED_AT = "not looked at"
MODEL_ANOMALIES = "sections R5 and R7 of this report"
DEVELOPMENT = frozenset({"dev"})
MOST_NAMED = 3
# The labels that packaging's specification calls well-known, and how packages vary them.
ISSUE_LABELS = frozenset({"issues", "issue", "tracker", "bugs", "issuetracker", "bugtracker", "bugreports",
                          "githubissues"})  # fmt: skip
_HUB_NAME = re.compile(r"(?P<organisation>[\w.-]+)/[\w.-]+( \([^()/]*\))?")
_URL = re.compile(r"\s*\(?https?://\S+")
_MODEL_PURPOSES = {
    "bi-encoder": "system under test: its vectors are what is measured",
    "cross-encoder": "system under test: its scores of pairs are what is measured",
    "lexical": "baseline beside the system under test",
    "hybrid": "baseline beside the system under test",
}


class SoupItem(Record):
    """One piece of software, weights or font that the result rests on.

    Attributes:
        name: as its maker calls it; a Python package in its canonical form.
        version: as installed, a model's commit, or "not stated".
        kind: what it is.
        supplier: who makes it, as it says itself, or "not stated"; never an address.
        licence: an SPDX expression where one is known, else "not stated".
        purl: package URL, or "" where it has none.
        purpose: what it does in an audit, and what a fault in it would do.
        hashes: file name -> hex SHA-256; models and fonts.
        anomalies: where its known anomalies are to be found, or "not looked at".
        needed_by: what asks for it, by name; "clinsafe" for a direct dependency, empty where nothing asks.
    """

    name: str
    version: str = NOT_STATED
    kind: Kind
    supplier: str = NOT_STATED
    licence: str = NOT_STATED
    purl: str = ""
    purpose: str = NOT_STATED
    hashes: dict[str, str] = Field(default_factory=dict)
    anomalies: str = NOT_LOOKED_AT
    needed_by: list[str] = Field(default_factory=list)


class Words(Record):
    """What a library does in an audit, and what a fault in it does to the result: one clause each."""

    purpose: str
    fault: str

    @property
    def clause(self) -> str:
        """Both, as they are printed."""
        return f"{self.purpose}; a fault {self.fault}"


class OtherWords(Words):
    """All that is said of what pip does not know. `version` only where the thing itself cannot be asked."""

    version: str = NOT_STATED
    supplier: str
    licence: str
    purl: str
    anomalies: str

    def item(self, name: str, kind: Kind, version: str, hashes: Mapping[str, str] | None = None) -> SoupItem:
        """As an entry of the list."""
        return SoupItem(
            name=name,
            version=version,
            kind=kind,
            supplier=self.supplier,
            licence=self.licence,
            purl=f"{self.purl}@{quote(version, safe='')}",
            purpose=self.clause,
            hashes=dict(hashes or {}),
            anomalies=self.anomalies,
            needed_by=[PRODUCT],
        )


class SoupWords(Record):
    """``checklist/soup.yaml``."""

    libraries: dict[str, Words]
    others: dict[str, OtherWords]
    models: dict[str, str]
    licences: dict[str, str]
    spellings: dict[str, str]


def load_words(content: Content) -> SoupWords:
    """The file."""
    return content.yaml(FILE, SoupWords)


def collect(content: Content | None = None) -> list[SoupItem]:
    """The interpreter, every installed package that clinsafe needs at run time, the renderer's library, the fonts.

    Packages are followed from clinsafe's own metadata, with all its extras but the developers', as far as they are
    installed; a package that offers a plug-in to clinsafe counts too. Sorted by name; equal installations give equal
    lists.

    Raises:
        MissingDependency: `packaging` is not installed.
    """
    content = content or Content()
    words = load_words(content)
    return sorted(
        [_runtime(words), *_libraries(words), *_of_renderer(words, content)],
        key=lambda item: (item.name.lower(), item.name),
    )


def of_system(system: SystemRecord, content: Content | None = None) -> SoupItem:
    """A system of the record as SOUP: its measured failures are its list of anomalies."""
    identity = system.identity
    origin = identity.settings.get("origin", "")
    named = _HUB_NAME.fullmatch(identity.name)
    known = named is not None and not origin.startswith("local")  # "folder/model.onnx" names no organisation
    commit = re.fullmatch(r"[0-9a-f]{40}", identity.revision)
    hub = known and commit and origin == "model hub"
    return SoupItem(
        name=identity.name,
        version=identity.revision or NOT_STATED,
        kind="model",
        supplier=named["organisation"] if named and known else NOT_STATED,
        licence=load_words(content or Content()).models.get(identity.name, NOT_STATED)
        if known
        else NOT_STATED,
        purl=f"pkg:huggingface/{quote(identity.name, safe='/')}@{identity.revision}" if hub else "",
        purpose="a fake, for tests only" if identity.fake else _MODEL_PURPOSES[identity.kind],
        hashes=dict(sorted(identity.files.items())),
        anomalies=MODEL_ANOMALIES,
    )


def with_systems(items: Iterable[SoupItem], systems: Iterable[SystemRecord]) -> list[SoupItem]:
    """`items`, and after them every model of `systems` that is not among them; baselines are not models."""
    found = list(items)
    for system in systems:
        if system.identity.kind in ("bi-encoder", "cross-encoder"):
            item = of_system(system)
            alike = (item.kind, item.name, item.version, item.hashes)
            if alike not in [(i.kind, i.name, i.version, i.hashes) for i in found]:
                found.append(item)
    return found


def _runtime(words: SoupWords) -> SoupItem:
    import platform

    name, version = platform.python_implementation(), platform.python_version()
    known = words.others.get(name)
    if known is not None:
        return known.item(name, "runtime", version)
    return SoupItem(name=name, version=version, kind="runtime", needed_by=[PRODUCT])


def _of_renderer(words: SoupWords, content: Content) -> list[SoupItem]:
    from clinsafe.content import sha256_file
    from clinsafe.reports.pdf import renderer_versions
    from clinsafe.reports.render import FONTS

    font = words.others["DejaVu Sans"]
    hashes = {name.rpartition("/")[2]: sha256_file(content.path(name)) for name in FONTS}
    items = [font.item("DejaVu Sans", "font", font.version, hashes)]
    pango = renderer_versions()["pango"]
    if pango != "not installed":
        items.append(words.others["Pango"].item("Pango", "library", pango))
    return items


def _libraries(words: SoupWords) -> list[SoupItem]:
    try:
        from packaging.utils import canonicalize_name
    except ImportError as error:
        raise MissingDependency("the SOUP list", "packaging", "pip install 'clinsafe[report]'") from error

    plugins: dict[str, set[str]] = {}
    for found in distributions():
        if groups := {e.group for e in found.entry_points if e.group.startswith(f"{PRODUCT}.")}:
            plugins.setdefault(str(canonicalize_name(found.name)), set()).update(groups)
    plugins.pop(PRODUCT, None)
    metadata, parents = _walk(plugins)
    return [
        _library(name, raw, parents.get(name, set()), plugins.get(name, set()), words)
        for name, raw in metadata.items()
        if name != PRODUCT
    ]


def _walk(plugins: Iterable[str]) -> tuple[dict[str, RawMetadata], dict[str, set[str]]]:
    """(name -> metadata of what is installed, name -> what asks for it); the markers decide as they would for pip."""
    from packaging.requirements import InvalidRequirement, Requirement
    from packaging.utils import canonicalize_name

    metadata: dict[str, RawMetadata] = {}
    parents: dict[str, set[str]] = {}
    done: set[tuple[str, frozenset[str]]] = set()
    todo = [(name, frozenset[str]()) for name in plugins]
    todo.append((PRODUCT, frozenset(_read(PRODUCT).get("provides_extra", [])) - DEVELOPMENT))
    while todo:
        name, extras = todo.pop()
        if (name, extras) in done:
            continue
        done.add((name, extras))
        try:
            metadata[name] = metadata[name] if name in metadata else _read(name)
        except PackageNotFoundError:  # of an extra that is not installed
            continue
        for line in metadata[name].get("requires_dist", []):
            if (
                not extras and "extra" in line.partition(";")[2]
            ):  # most lines; parsing them takes most of the time
                continue
            try:
                wanted = Requirement(line)
            except InvalidRequirement:  # an old package; pip would not have followed it either
                continue
            if wanted.marker and not any(wanted.marker.evaluate({"extra": e}) for e in extras or [""]):
                continue
            child = str(canonicalize_name(wanted.name))
            if child != name:
                parents.setdefault(child, set()).add(name)
            todo.append((child, frozenset(wanted.extras)))
    return metadata, parents


def _read(name: str) -> RawMetadata:
    """The head of a package's metadata; its description, often a whole README, is not parsed."""
    from packaging.metadata import parse_email

    found = distribution(name)
    text = found.read_text("METADATA") or found.read_text("PKG-INFO") or ""
    return parse_email(text.partition("\n\n")[0])[0]


def _library(
    name: str, raw: RawMetadata, parents: set[str], plugin_of: set[str], words: SoupWords
) -> SoupItem:
    version = raw.get("version", NOT_STATED)
    if name in words.libraries:
        purpose = words.libraries[name].clause
    elif plugin_of:
        purpose = f"plug-in of {', '.join(sorted(plugin_of))}"
    else:
        purpose = _needed_by(sorted(parents - {PRODUCT}))
    return SoupItem(
        name=name,
        version=version,
        kind="library",
        supplier=_supplier(raw),
        licence=_licence(raw, words) or words.licences.get(name, NOT_STATED),
        purl=f"pkg:pypi/{name}@{quote(version, safe='')}",
        purpose=purpose,
        anomalies=_issues(raw),
        needed_by=sorted(parents),
    )


def _needed_by(parents: list[str]) -> str:
    if not parents:
        return NOT_STATED
    more = f" and {len(parents) - MOST_NAMED} more" if len(parents) > MOST_NAMED else ""
    return f"needed by {', '.join(parents[:MOST_NAMED])}{more}"


def _supplier(raw: RawMetadata) -> str:
    """Who looks after the package, else who wrote it; names, without addresses."""
    from email.utils import getaddresses

    for person, address in (("maintainer", "maintainer_email"), ("author", "author_email")):
        said = str(raw.get(person, "")).partition("<")[0]
        names = [said] if said.strip() else [n for n, _ in getaddresses([str(raw.get(address, ""))])]
        named = [_URL.sub("", n).strip() for n in names if "@" not in n]
        if named := [n for n in named if n and n.lower() != "unknown"]:
            return _plain(f"{', '.join(named[:MOST_NAMED])}{' and others' if named[MOST_NAMED:] else ''}")
    return NOT_STATED


def _licence(raw: RawMetadata, words: SoupWords) -> str:
    """As the package says it, if that is an SPDX expression or a known spelling of one; else ""."""
    from packaging.licenses import InvalidLicenseExpression, canonicalize_license_expression

    classified = [c.rpartition(" :: ")[2] for c in raw.get("classifiers", []) if c.startswith("License ::")]
    said = raw.get("license", "").strip().partition("\n")[0].strip()
    for text in (raw.get("license_expression", ""), said, *(classified if len(classified) == 1 else [])):
        try:
            return str(canonicalize_license_expression(words.spellings.get(text, text)))
        except InvalidLicenseExpression:
            continue
    return ""


def _issues(raw: RawMetadata) -> str:
    for label, url in sorted(raw.get("project_urls", {}).items()):
        if re.sub(r"[^a-z]", "", label.lower()) in ISSUE_LABELS and re.fullmatch(r"https?://[!-~]+", url):
            return url
    return NOT_LOOKED_AT


def _plain(text: str) -> str:
    """One line of at most 120 printable characters: a package may say anything of itself."""
    return "".join(letter for letter in " ".join(text.split()) if letter.isprintable())[:120]
