"""All Hypothesis strategies."""

from __future__ import annotations

from hypothesis import strategies as st

from clinsafe.benchmarks.scoring import PAIRS

counts = st.integers(0, 400).flatmap(lambda n: st.tuples(st.integers(0, n), st.just(n)))
"""(k, n) with 0 <= k <= n."""

cosines = st.floats(-1, 1, allow_nan=False).map(lambda x: round(x, 6))

pair_scores = st.fixed_dictionaries({f"{q}|{p}": cosines for q, p in PAIRS})
"""The nine scores of a case."""

names = st.from_regex(r"[a-z][a-z0-9_]{0,8}", fullmatch=True)
