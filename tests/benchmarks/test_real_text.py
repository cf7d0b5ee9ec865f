"""Real text: what unrelated clinical sentences look like to the model, so that a limit means something."""

from __future__ import annotations

import gzip
import json

import numpy as np
import pytest

pytestmark = [pytest.mark.data, pytest.mark.slow]


def test_unrelated_conclusions_stay_far_below_every_limit(data, minilm):
    """Conclusions of 400 different PubMedQA questions (MIT licence), paired at random: none may count as alike."""
    with gzip.open(data / "pubmedqa_pqal.jsonl.gz", "rt", encoding="utf-8") as stream:
        texts = [json.loads(line)["long_answer"] for line, _ in zip(stream, range(400), strict=False)]
    vectors = minilm.encode(texts)
    cosines = (vectors[:200] * vectors[200:]).sum(axis=1)
    assert len(cosines) == 200
    assert np.mean(cosines) < 0.35
    assert np.max(cosines) < 0.70
