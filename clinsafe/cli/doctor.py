"""``clinsafe doctor``: what is installed, what is missing, and the line that mends it."""

from __future__ import annotations

import importlib.util
import platform
from collections.abc import Iterator
from dataclasses import dataclass

import typer

from clinsafe.cli.console import out as stdout

GUARD = {"simplemma": "guard", "snowballstemmer": "guard", "pint": "guard", "spacy": "parse", "negspacy": "negspacy",
         "quantulum3": "quantulum"}  # fmt: skip
"""What `clinsafe guard` can use, and the extra that brings it; only the first two it cannot do without."""


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked for. `needed` marks what an audit cannot do without."""

    name: str
    found: bool
    detail: str
    fix: str = ""
    needed: bool = True


def doctor() -> None:
    """Look at this machine; exit 1 if an audit with a PDF would not work."""
    checks = list(_checks())
    console = stdout()
    for check in checks:
        mark = "ok     " if check.found else "MISSING" if check.needed else "absent "
        console.print(f"{mark}  {check.name:<24}{check.detail}", markup=False, soft_wrap=True)
        if not check.found and check.fix:
            console.print(f"         fix: {check.fix}", markup=False, soft_wrap=True)
    raise typer.Exit(1 if any(c.needed and not c.found for c in checks) else 0)


def _checks() -> Iterator[Check]:
    from clinsafe.content import packaged_root
    from clinsafe.reports import pdf
    from clinsafe.reports.render import FONTS

    yield Check("python", True, platform.python_version())
    yield Check(
        "controlled content",
        (packaged_root() / "checklist").is_dir(),
        "packaged or checkout",
        "reinstall clinsafe",
    )
    for module in ("sentence_transformers", "torch", "onnxruntime", "tokenizers", "onnx", "httpx2", "tenacity", "bm25s",
                   "rapidfuzz", "matplotlib", "weasyprint", "pyhanko", "cryptography", "pypdfium2"):  # fmt: skip
        found = importlib.util.find_spec(module) is not None
        yield Check(
            module.replace("_", "-"), found, "installed" if found else "", "pip install 'clinsafe[audit]'"
        )
    for module, extra in GUARD.items():
        found = importlib.util.find_spec(module) is not None
        fix = f"pip install 'clinsafe[{extra}]'"
        yield Check(f"guard: {module}", found, "installed" if found else "", fix, needed=False)
    pango = pdf.renderer_versions()["pango"]
    yield Check("pango", pango != "not installed", pango, pdf.SYSTEM_LIBRARIES)
    missing = [name for name in FONTS if not (packaged_root() / name).is_file()]
    yield Check(
        "shipped fonts", not missing, ", ".join(missing) or f"{len(FONTS)} files", "reinstall clinsafe"
    )
    yield from _model_and_key()


def _model_and_key() -> Iterator[Check]:
    from clinsafe.adapters.weights import ALIASES, packaged
    from clinsafe.reports.keys import default_folder

    for name, alias in ALIASES.items():
        folder = packaged(alias)
        detail = "packaged weights" if folder else alias.elsewhere
        yield Check(f"model {name}", folder is not None, detail, needed=False)
    key = default_folder() / "development.p12"
    yield Check(
        "development key",
        key.is_file(),
        str(key) if key.is_file() else "",
        "clinsafe report key",
        needed=False,
    )
