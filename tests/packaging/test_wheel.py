"""The wheel, installed into a venv of its own and run from another directory."""

from __future__ import annotations

import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CONTENT = (
    "benchmarks/clinsafeembed/negation.jsonl",
    "benchmarks/clinsafeembed/suite.yaml",
    "checklist/gates.yaml",
    "checklist/fmea.yaml",
    "reports/templates/report.html.j2",
    "reports/fonts/DejaVuSans.ttf",
    "reports/fonts/LICENSE_DEJAVU.txt",
)
pytestmark = pytest.mark.slow


def run(*command: object, cwd: Path | None = None, code: int = 0) -> str:
    done = subprocess.run(list(map(str, command)), cwd=cwd, capture_output=True, text=True, check=False)
    assert done.returncode == code, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--wheel", "--outdir", folder, ROOT)
    (found,) = folder.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def installed(wheel, tmp_path_factory):
    """A venv with the wheel. Dependencies are lent through a path file, which never lends the checkout itself."""
    venv = tmp_path_factory.mktemp("venv")
    run(sys.executable, "-m", "venv", venv)
    run(venv / "bin" / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", wheel)
    lent = Path(sysconfig.get_paths()["purelib"])
    (site,) = (venv / "lib").glob("python*/site-packages")
    (site / "lent.pth").write_text(f"{lent}\n")
    return venv / "bin"


def test_the_wheel_carries_content_and_no_tests(wheel):
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {f"clinsafe/_content/{name}" for name in CONTENT} <= names
    assert "clinsafe/py.typed" in names
    assert not [n for n in names if n.startswith(("tests/", "benchmarks/", "checklist/"))]


def test_it_runs_from_another_directory_without_the_checkout(installed, tmp_path):
    where = run(installed / "python", "-c", "import clinsafe; print(clinsafe.__file__)", cwd=tmp_path)
    assert Path(where.strip()).is_relative_to(installed.parent)
    assert "neg-001" in run(installed / "clinsafe", "suite", "show", "neg-001", cwd=tmp_path)
    audit = ("audit", "-m", "minilm", "--offline", "--no-sign", "--hazard", "negation", "--out", "run")
    assert "1 hazard held" in run(installed / "clinsafe", *audit, cwd=tmp_path, code=1)
    assert (tmp_path / "run" / "report.pdf").read_bytes().startswith(b"%PDF")


def test_a_filter_from_a_package_of_its_own_is_found_once_it_is_installed(installed, tmp_path):
    passages = tmp_path / "notes.txt"
    passages.write_text("Listed for right hip replacement.\n\nListed for left hip replacement.\n")
    ask = (
        "guard",
        "check",
        "--query",
        "Left hip replacement.",
        "--passages",
        passages,
        "--filter",
        "laterality",
    )
    refused = subprocess.run([installed / "clinsafe", *ask], cwd=tmp_path, capture_output=True, text=True)
    assert refused.returncode == 2
    assert "no filter is called 'laterality'" in refused.stderr

    example = ROOT / "examples" / "clinsafe-laterality"
    run(sys.executable, "-m", "build", "--wheel", "--outdir", tmp_path, example)
    (built,) = tmp_path.glob("clinsafe_laterality-*.whl")
    run(installed / "python", "-m", "pip", "install", "--quiet", "--no-deps", "--no-index", built)
    printed = run(installed / "clinsafe", *ask, cwd=tmp_path, code=1)
    assert "[right hip replacement]" in printed
    assert "2 passages: 1 in conflict, 0 not fully checked" in printed
