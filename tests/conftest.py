"""Fixtures shared by all tests. Nothing here reads or writes the user's own keys."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import settings

from clinsafe.benchmarks.suite import Case, load_suite
from clinsafe.checklist.regulatory import load_regulatory
from clinsafe.content import Content, packaged_root

settings.register_profile("clinsafe", deadline=None)  # no test may depend on how fast a machine is
settings.load_profile("clinsafe")


@pytest.fixture(autouse=True)
def _own_configuration(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path_factory.mktemp("config")))
    for name in ("CLINSAFE_PASSPHRASE", "BI_ENCODER_MODEL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COLUMNS", "80")


@pytest.fixture(scope="session")
def suite() -> list[Case]:
    """All written cases."""
    return load_suite(Content())


@pytest.fixture(scope="session")
def few(suite: list[Case]) -> list[Case]:
    """Three cases of each hazard: enough for every code path."""
    kept: dict[str, list[Case]] = {}
    for case in suite:
        kept.setdefault(case.hazard, [])
        if len(kept[case.hazard]) < 3:
            kept[case.hazard].append(case)
    return [case for group in kept.values() for case in group]


@pytest.fixture
def overlay(tmp_path: Path) -> Callable[..., Path]:
    """Build an overlay: copy one content file, change it, return the overlay's root."""

    def build(name: str, change: Callable[[str], str]) -> Path:
        root = tmp_path / "overlay"
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        source = target if target.exists() else packaged_root() / name
        target.write_text(change(source.read_text(encoding="utf-8")), encoding="utf-8")
        return root

    return build


def write_small(root: Path, few: list[Case]) -> Path:
    """An overlay for fast whole audits: the suite is the `few` cases, and of the rules only some clauses are listed."""
    folder = root / "benchmarks" / "clinsafeembed"
    folder.mkdir(parents=True)
    for hazard in dict.fromkeys(case.hazard for case in few):
        lines = [c.model_dump_json() for c in few if c.hazard == hazard]
        (folder / f"{hazard}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    whole = load_regulatory(Content()).model_dump(mode="json")
    clauses = whole["clauses"][:4]
    used = {part["reference"] for part in [*clauses, *whole["schemes"]]}
    references = [r | {"superseded_by": ""} for r in whole["references"] if r["id"] in used]
    (root / "checklist").mkdir()
    text = yaml.safe_dump(whole | {"references": references, "clauses": clauses}, allow_unicode=True)
    (root / "checklist" / "regulatory.yaml").write_text(text, encoding="utf-8")
    return root


@pytest.fixture
def small_suite(few: list[Case], tmp_path: Path) -> Path:
    """`write_small` in a folder of its own."""
    return write_small(tmp_path / "small", few)


@pytest.fixture(scope="session")
def minilm() -> Any:
    """The packaged all-MiniLM-L6-v2, loaded once."""
    from clinsafe.adapters.sentence_transformers import load

    return load("minilm", offline=True)


@pytest.fixture(scope="session")
def data() -> Path:
    """The folder of real data files; tests that need it are skipped, visibly, without it."""
    folder = os.environ.get("CLINSAFE_DATA")
    if not folder:
        pytest.skip("CLINSAFE_DATA is not set")
    return Path(folder)


@pytest.fixture(scope="session")
def signing_key(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """A development key, made once."""
    from clinsafe.reports.keys import load_key, make_development_key

    folder = tmp_path_factory.mktemp("keys")
    path = make_development_key(folder, "Test Author", b"correct horse")
    yield load_key(path, b"correct horse")
    shutil.rmtree(folder, ignore_errors=True)


def read_json(path: Path) -> Any:
    """Parsed file."""
    return json.loads(path.read_text(encoding="utf-8"))
