"""One spaCy pipeline for all tests of the miner."""

from __future__ import annotations

from typing import Any

import pytest

from clinsafe.benchmarks.mining.sentences import Parsed, parse
from clinsafe.text.parse import Parser


@pytest.fixture(scope="session")
def pipeline() -> Any:
    found = Parser().pipeline()
    if found is None:
        pytest.skip("no English spaCy pipeline is installed")
    return found


@pytest.fixture(scope="session")
def parsed(pipeline):
    def one(text: str) -> Parsed:
        found = list(parse(pipeline, [text]))
        assert found, f"the parser splits {text!r}"
        return found[0]

    return one
