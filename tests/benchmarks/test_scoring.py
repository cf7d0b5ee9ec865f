"""What cannot be scored is not measured, the rest goes on, and an interrupted run continues."""

from __future__ import annotations

import numpy as np
import pytest

from clinsafe.adapters.lexical import TokenJaccard
from clinsafe.adapters.reference import FakeEncoder
from clinsafe.benchmarks.scoring import CHUNK, PAIRS, score_with_encoder, score_with_scorer
from clinsafe.protocols import ModelIdentity
from clinsafe.stats import NotMeasured


class Spoiled:
    """A fake that returns something wrong for the sentences it is told to spoil."""

    def __init__(self, spoiled, how):
        self.spoiled, self.how, self.calls = set(spoiled), how, 0
        self.inner = FakeEncoder("words")
        self.identity = ModelIdentity(name="fake:spoiled", settings={"how": str(how)}, fake=True)

    def encode(self, texts, /):
        self.calls += 1
        rows = self.inner.encode(texts)
        hit = [i for i, t in enumerate(texts) if t in self.spoiled]
        return self.how(rows, hit) if hit else rows


def nan(rows, hit):
    rows[hit, 0] = np.nan
    return rows


def infinite(rows, hit):
    rows[hit, 0] = np.inf
    return rows


def zero(rows, hit):
    rows[hit] = 0
    return rows


def short(rows, hit):
    return rows[:-1]


def flat(rows, hit):
    return rows.ravel()


def narrow(rows, hit):
    return rows[:, :10] if len(rows) == 1 else rows[:-1]


def crash(rows, hit):
    raise RuntimeError("CUDA error: a long story\nover two lines")


def nothing(rows, hit):
    return None


@pytest.mark.parametrize("how", [nan, infinite, zero, short, flat, narrow, crash, nothing])
def test_one_spoiled_sentence_costs_its_case_and_no_other(few, how):
    victim = few[4]
    results = score_with_encoder(Spoiled([victim.b_same], how), few)
    by_id = {r.id: r for r in results}
    assert isinstance(by_id[victim.id].scores, NotMeasured)
    assert by_id[victim.id].scores.reason.startswith("b_same: ")
    healthy = {r.id: r for r in score_with_encoder(FakeEncoder("words"), few)}
    for case in few:
        if case.id != victim.id:
            assert by_id[case.id] == healthy[case.id]


def test_scores_are_cosines_of_every_pair(few):
    encoder = FakeEncoder("words")
    result = score_with_encoder(encoder, few[:1])[0]
    for q, p in PAIRS:
        left, right = encoder.encode([getattr(few[0], q), getattr(few[0], p)]).astype(np.float64)
        expected = left @ right / np.linalg.norm(left) / np.linalg.norm(right)
        assert result.scores[f"{q}|{p}"] == pytest.approx(expected, abs=1e-7)


def test_an_encoder_that_forgot_to_normalise_is_measured_rightly(few):
    class Scaled(FakeEncoder):
        def encode(self, texts, /):
            return super().encode(texts) * 7

    plain, scaled = (score_with_encoder(e, few) for e in (FakeEncoder("words"), Scaled("words")))
    for x, y in zip(plain, scaled, strict=True):
        assert x.scores == pytest.approx(y.scores, abs=1e-6)


def test_progress_reaches_the_end(few):
    seen = []
    score_with_encoder(FakeEncoder("hash"), few, progress=lambda done, total: seen.append((done, total)))
    assert seen[-1][0] == seen[-1][1] == len(few) * 4
    assert seen == sorted(seen)


class Stops(FakeEncoder):
    """Stopped by the user during the second chunk, once."""

    def __init__(self):
        super().__init__("words")
        self.chunks, self.stop = 0, True

    def encode(self, texts, /):
        self.chunks += 1
        if self.chunks == 2 and self.stop:
            raise KeyboardInterrupt
        return super().encode(texts)


def test_an_interrupted_run_continues_where_it_stopped(suite, tmp_path):
    cases = suite[:60]
    encoder = Stops()
    with pytest.raises(KeyboardInterrupt):
        score_with_encoder(encoder, cases, store=tmp_path)
    encoder.stop, encoder.chunks = False, 0
    results = score_with_encoder(encoder, cases, store=tmp_path)
    chunks = -(-len(cases) * 4 // CHUNK)
    assert encoder.chunks == chunks - 1  # the first one was there
    assert results == score_with_encoder(FakeEncoder("words"), cases)


def test_a_damaged_or_foreign_store_is_recomputed_never_believed(few, tmp_path):
    score_with_encoder(FakeEncoder("words"), few, store=tmp_path)
    for file in tmp_path.glob("*.npy"):
        file.write_bytes(file.read_bytes()[:50])
    assert score_with_encoder(FakeEncoder("words"), few, store=tmp_path) == score_with_encoder(
        FakeEncoder("words"), few
    )
    other = score_with_encoder(FakeEncoder("hash"), few, store=tmp_path)
    assert other == score_with_encoder(FakeEncoder("hash"), few)


def test_a_scorer_that_returns_nan_is_not_measured(few):
    class Bad(TokenJaccard):
        def score(self, pairs, /):
            values = super().score(pairs)
            values[0] = np.nan
            return values

    results = score_with_scorer(Bad(), few)
    assert isinstance(results[0].scores, NotMeasured)
    assert not isinstance(results[1].scores, NotMeasured)
