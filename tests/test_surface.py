"""The public surface, the house rules, and what may not stand in the project."""

from __future__ import annotations

import importlib
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import clinsafe

ROOT = Path(__file__).parents[1]
PYTHON = sorted((ROOT / "clinsafe").rglob("*.py"))


def test_the_public_names_are_the_ones_that_are_declared():
    public = {name for name in vars(clinsafe) if not name.startswith("_")}
    functions = {name for name in public if callable(getattr(clinsafe, name)) and name not in ("Path", "Any")}
    assert functions == set(clinsafe.__all__)


def test_every_public_function_works_twice_after_importing_every_module(tmp_path, small_suite, monkeypatch):
    """A submodule that shares a function's name would overwrite it on import."""
    for module in pkgutil.walk_packages(clinsafe.__path__, "clinsafe."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
    from clinsafe.reports import pdf

    monkeypatch.setattr(pdf, "render", lambda *_: b"%PDF")
    for number in (1, 2):
        result = clinsafe.audit(
            "fake:hash", out=tmp_path / str(number), overlay=small_suite, hazards=["negation"]
        )
        assert result.folder.is_dir()


def test_no_room_is_over_400_lines():
    assert [f"{p}: {n}" for p in PYTHON if (n := len(p.read_text().splitlines())) > 400] == []


def test_content_folders_hold_no_code_and_a_readme():
    for folder in ("benchmarks", "checklist", "mitigations", "reports"):
        assert list((ROOT / folder).rglob("*.py")) == []
        text = (ROOT / folder / "README.md").read_text(encoding="utf-8")
        for question in ("What it is", "Who may change it", "Which code reads it"):
            assert question in text, (folder, question)


def test_importing_the_package_imports_nothing_heavy():
    probe = "import sys, clinsafe; print([m for m in ('numpy', 'torch', 'pydantic', 'typer') if m in sys.modules])"
    done = subprocess.run([sys.executable, "-c", probe], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_word_claims_what_no_tool_can_give():
    banned = re.compile(r"\b(compliant|certified|FDA[- ]approved|guarantees? safety)\b", re.IGNORECASE)
    found = []
    for pattern in (
        "clinsafe/**/*.py",
        "reports/templates/**/*.*",
        "checklist/*.yaml",
        "README.md",
        "docs/*.md",
    ):
        for file in ROOT.glob(pattern):
            for number, line in enumerate(file.read_text(encoding="utf-8").splitlines(), 1):
                if banned.search(line):
                    found.append(f"{file.relative_to(ROOT)}:{number}: {line.strip()}")
    assert found == []


@pytest.mark.parametrize(
    "name", ["README.md", "CHANGELOG.md", "CONTRIBUTING.md", "LICENSE", "NOTICE", "clinsafe/py.typed"]
)
def test_the_files_of_a_well_kept_project_are_there(name):
    assert (ROOT / name).is_file()
