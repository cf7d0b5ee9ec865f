"""Fixtures shared by all tests. Nothing here reads or writes the user's own keys."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

from clinsafe.benchmarks.suite import Case, load_suite
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


@pytest.fixture
def small_suite(few: list[Case], tmp_path: Path) -> Path:
    """An overlay whose suite is the `few` cases, for fast whole audits."""
    root = tmp_path / "small"
    folder = root / "benchmarks" / "clinsafeembed"
    folder.mkdir(parents=True)
    for hazard in dict.fromkeys(case.hazard for case in few):
        lines = [c.model_dump_json() for c in few if c.hazard == hazard]
        (folder / f"{hazard}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return root


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
