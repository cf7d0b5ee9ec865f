"""A recorder into a file of its own, and its traces as plain JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from clinsafe.adapters.retrievers import passages
from clinsafe.rag.recorder import Recorder


@pytest.fixture
def traces(tmp_path: Path) -> Callable[[], list[dict[str, Any]]]:
    def read() -> list[dict[str, Any]]:
        path = tmp_path / "traces.jsonl"
        return (
            [json.loads(line) for line in path.read_text("utf-8").split("\n") if line]
            if path.exists()
            else []
        )

    return read


@pytest.fixture
def make(tmp_path: Path) -> Callable[..., Recorder]:
    return lambda **options: Recorder(tmp_path / "traces.jsonl", passages, **options)


@pytest.fixture
def record(make: Callable[..., Recorder]) -> Recorder:
    return make(text=True)
