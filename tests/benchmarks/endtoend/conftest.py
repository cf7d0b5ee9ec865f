"""The small world on disk."""

from __future__ import annotations

import pytest

from clinsafe.benchmarks.endtoend.documents import load_texts
from clinsafe.benchmarks.endtoend.queries import load_rows, resolve
from clinsafe.content import Content
from tests.benchmarks.endtoend import kit


@pytest.fixture(scope="session")
def world(tmp_path_factory):
    """(data folder, overlay)."""
    root = tmp_path_factory.mktemp("world")
    return kit.write_data(root / "data"), kit.write_overlay(root / "overlay")


@pytest.fixture(scope="session")
def texts(world):
    return load_texts(world[0])


@pytest.fixture(scope="session")
def queries(world, texts):
    return resolve(load_rows(Content(world[1])), texts)
