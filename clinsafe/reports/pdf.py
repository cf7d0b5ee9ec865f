"""HTML to PDF/A-3b with the evidence attached, in a process of its own.

The renderer's C libraries can crash the process (without any font they do); a child process turns that into an
error, and the HTML and the evidence are kept. Equal inputs give equal bytes: every date comes from the evidence and
the fonts are shipped.
"""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
import tempfile
from datetime import datetime
from pathlib import Path

from clinsafe.content import Content
from clinsafe.errors import MissingDependency, RenderError
from clinsafe.reports.render import FONTS

SYSTEM_LIBRARIES = (
    "apt-get install -y --no-install-recommends libpango-1.0-0 libpangoft2-1.0-0 libharfbuzz-subset0"
)
TIMEOUT_SECONDS = 300


def render(html: str, evidence: bytes, created: str, content: Content) -> bytes:
    """The PDF.

    Args:
        html: the report; its own style sheet included.
        evidence: attached as ``evidence.json``.
        created: ISO 8601 UTC time that the file carries everywhere.
        content: where the shipped fonts lie.

    Raises:
        MissingDependency: WeasyPrint or the Pango libraries are not installed.
        RenderError: the renderer failed or died.
    """
    fonts = [str(content.path(name)) for name in FONTS]
    with tempfile.TemporaryDirectory(prefix="clinsafe-") as scratch:
        folder = Path(scratch)
        (folder / "report.html").write_text(html, encoding="utf-8")
        (folder / "evidence.json").write_bytes(evidence)
        (folder / "job.json").write_text(json.dumps({"created": created, "fonts": fonts}), encoding="utf-8")
        epoch = str(int(datetime.fromisoformat(created).timestamp()))
        try:
            done = subprocess.run(
                [sys.executable, "-m", "clinsafe.reports.pdf", scratch],
                env=os.environ | {"SOURCE_DATE_EPOCH": epoch},
                capture_output=True,
                text=True,
                timeout=TIMEOUT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise RenderError(f"rendering the PDF took over {TIMEOUT_SECONDS} s and was stopped") from error
        output = folder / "report.pdf"
        if done.returncode == 0 and output.is_file():
            return output.read_bytes()
    raise _explain(done)


def renderer_versions() -> dict[str, str]:
    """What shapes the bytes of the PDF; equal versions are needed to compare two renderings."""
    from importlib.metadata import PackageNotFoundError, version

    found = {}
    for name in ("weasyprint", "pydyf", "fonttools", "matplotlib", "jinja2", "tinyhtml5", "tinycss2"):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            found[name] = "not installed"
    found["pango"] = _pango_version()
    return found


def _pango_version() -> str:
    import ctypes
    import ctypes.util

    for name in (ctypes.util.find_library("pango-1.0"), "libpango-1.0.so.0", "libpango-1.0.dylib"):
        try:
            library = ctypes.CDLL(name) if name else None
        except OSError:
            continue
        if library is not None:
            library.pango_version_string.restype = ctypes.c_char_p
            text: bytes = library.pango_version_string()
            return text.decode()
    return "not installed"


def _explain(done: subprocess.CompletedProcess[str]) -> Exception:
    if done.returncode < 0 or done.returncode >= 128:
        return RenderError(
            f"the PDF renderer died (signal {abs(done.returncode)}); is any font installed? "
            "HTML and evidence have been kept"
        )
    lines = [line for line in done.stderr.splitlines() if line.strip()]
    last = lines[-1] if lines else f"exit code {done.returncode}"
    if "No module named 'weasyprint'" in done.stderr:
        return MissingDependency("making the PDF", "weasyprint", "pip install 'clinsafe[audit]'")
    if "cannot load library" in done.stderr:
        return MissingDependency("making the PDF", "the Pango libraries", SYSTEM_LIBRARIES)
    return RenderError(f"the PDF could not be rendered: {last[:200]}; HTML and evidence have been kept")


def _child(folder: Path) -> None:
    """Runs in the child: read the job, write report.pdf."""
    from weasyprint import CSS, HTML, Attachment
    from weasyprint.text.fonts import FontConfiguration

    job = json.loads((folder / "job.json").read_text(encoding="utf-8"))
    evidence = (folder / "evidence.json").read_bytes()
    created = datetime.fromisoformat(job["created"])
    faces = "".join(
        f'@font-face {{ font-family: "CS Sans"; font-weight: {weight}; src: url("{Path(path).as_uri()}"); }}\n'
        for path, weight in zip(job["fonts"], ("normal", "bold"), strict=True)
    )
    fonts = FontConfiguration()
    style = CSS(string=faces, font_config=fonts)
    attachment = Attachment(
        string=evidence,
        name="evidence.json",
        description="Machine-readable evidence: per-case scores, criteria, hashes",
        relationship="Data",
        created=created,
        modified=created,
    )
    HTML(string=(folder / "report.html").read_text(encoding="utf-8"), base_url=str(folder)).write_pdf(
        str(folder / "report.pdf"),
        stylesheets=[style],
        font_config=fonts,
        pdf_variant="pdf/a-3b",
        attachments=[attachment],
        pdf_identifier=hashlib.sha256(evidence).digest()[:16],
    )


if __name__ == "__main__":
    _child(Path(sys.argv[1]))
