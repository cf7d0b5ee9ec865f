"""Report pages for tests: drawn by the tool's own code in a process that is warm already, and kept for the whole run.

The tool starts a process for every PDF, and most of that is imports. Here one process has imported everything and forks
for each PDF. Equal input gives equal bytes, so what was drawn is kept under the hash of its input, in a folder that all
workers of one run share. `tests/reports/test_pages.py` compares a kept document with one that the tool itself drew.
"""

from __future__ import annotations

import gc
import hashlib
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from filelock import FileLock

from clinsafe.content import Content, sha256_file
from clinsafe.reports import pdf
from clinsafe.reports.render import FONTS

REAL = pdf.render
"""The tool's own, a process for each PDF; kept here before any test puts something in its place."""
ROOT = Path(__file__).parents[1]


class Drawer:
    """`clinsafe.reports.pdf.render` with a warm process; what that cannot draw, the tool's own draws or refuses.

    Args:
        folder: where documents are kept; shared by all workers of a run, and by none of another run.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._lock = threading.Lock()
        self._process: subprocess.Popen[str] | None = None

    def kept(self, page: str, evidence: bytes, created: str, content: Content) -> bytes:
        """As `fresh`; input that was drawn before in this run, by any worker, is not drawn again."""
        fonts = "".join(sha256_file(content.path(name)) for name in FONTS)
        said = json.dumps([page, created, fonts, os.environ.get("FONTCONFIG_FILE", "")]).encode()
        name = hashlib.sha256(hashlib.sha256(said).digest() + evidence).hexdigest()
        return once(
            self.folder / f"{name}.pdf", lambda: self.fresh(page, evidence, created, content)
        ).read_bytes()

    def fresh(self, page: str, evidence: bytes, created: str, content: Content) -> bytes:
        """The PDF, drawn now."""
        with tempfile.TemporaryDirectory(prefix="clinsafe-") as scratch:
            folder = Path(scratch)
            fonts = [str(content.path(name)) for name in FONTS]
            (folder / "report.html").write_text(page, encoding="utf-8")
            (folder / "evidence.json").write_bytes(evidence)
            (folder / "job.json").write_text(json.dumps({"created": created, "fonts": fonts}), "utf-8")
            epoch = str(int(datetime.fromisoformat(created).timestamp()))
            if self._ask({"folder": scratch, "environment": {**os.environ, "SOURCE_DATE_EPOCH": epoch}}):
                return (folder / "report.pdf").read_bytes()
        return REAL(page, evidence, created, content)

    def close(self) -> None:
        """End the warm process."""
        if self._process is not None:
            self._process.communicate()
            self._process = None

    def _ask(self, job: dict[str, Any]) -> bool:
        """Whether the warm process, started if there is none, has drawn it; one at a time."""
        with self._lock:
            if self._process is None:
                self._process = subprocess.Popen(
                    [sys.executable, "-m", "tests.drawing"], cwd=ROOT, text=True, stdin=subprocess.PIPE,
                    stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                )  # fmt: skip
            assert self._process.stdin is not None
            assert self._process.stdout is not None
            try:
                self._process.stdin.write(json.dumps(job) + "\n")
                self._process.stdin.flush()
            except BrokenPipeError:  # it could not import the renderer
                return False
            return self._process.stdout.readline().strip() == "0"


def once(path: Path, make: Callable[[], bytes]) -> Path:
    """`path`, with what `make` gives; of several workers that ask for it one makes it, and the others wait."""
    if not path.exists():
        with FileLock(f"{path}.lock"):
            if not path.exists():
                unfinished = path.with_suffix(".part")
                unfinished.write_bytes(make())
                unfinished.replace(path)
    return path


def serve() -> None:
    """In the warm process: a line of JSON for each document; answers with the exit status of the fork that draws it."""
    import weasyprint  # noqa: F401

    gc.freeze()
    for line in sys.stdin:
        job = json.loads(line)
        child = os.fork()
        if child == 0:
            os.environ.clear()
            os.environ.update(job["environment"])
            gc.disable()  # this process draws one document and ends
            status = 1
            try:
                pdf._child(Path(job["folder"]))
                status = 0
            finally:
                os._exit(status)
        print(os.waitpid(child, 0)[1], flush=True)


if __name__ == "__main__":
    serve()
