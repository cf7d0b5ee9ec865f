"""What metrics without a model cost. ``python tests/perf/rag_metrics.py [--items N] [--k K] [--out FILE]``; not a test.

Questions are made up, the same every time: K passages of about 100 words, references of 4 to 30 words that stand in
some word for word, in others scattered, in most not at all; ten passages of each corpus are graded. Levels 1 and 2
of R, hits and ranking are measured in batches, then pytrec_eval (through ir_measures) ranks the same in the same
run. Printed as JSON: milliseconds, the ratio of the two rankings, and how much memory grew after the first tenth.
"""

from __future__ import annotations

import argparse
import json
import random
import resource
import time
from collections.abc import Iterator
from pathlib import Path

from clinsafe.rag.item import Context, Item
from clinsafe.rag.ranking import ranking_values
from clinsafe.rag.relevance import relevance
from clinsafe.rag.retrieval import retrieval_values
from clinsafe.rag.settings import Settings

BATCH = 64
_SYLLABLES = "ra ti no se co me de la pa in su ber fen mol tra cyt hep ne phro lin gas"
_COMMON = "the of and in to a with is was for patients who had treatment after by were than risk"
SYLLABLES, COMMON = _SYLLABLES.split(), _COMMON.split()


def vocabulary(draw: random.Random) -> list[str]:
    """Common words again and again, 4,000 rare ones."""
    rare = ["".join(draw.choices(SYLLABLES, k=draw.randint(2, 4))) for _ in range(4000)]
    return [*COMMON * 130, *rare]


def items(count: int, k: int) -> Iterator[Item]:
    """Questions one at a time: nothing is kept."""
    draw = random.Random(9)
    words = vocabulary(draw)
    for number in range(count):
        reference = draw.choices(words, k=draw.randint(4, 30))
        contexts = []
        for rank in range(k):
            text = [draw.choices(words, k=17) for _ in range(6)]
            kind = draw.random()
            if kind < 0.08:
                text[draw.randrange(6)][3:3] = reference
            elif kind < 0.16:
                text[draw.randrange(6)][3:3] = draw.sample(reference, len(reference))
            joined = " ".join(" ".join(sentence).capitalize() + "." for sentence in text)
            contexts.append(Context(f"p{(number + rank * 7) % 997}", joined))
        corpus = [f"p{(number + place * 7) % 997}" for place in range(2 * k)]
        grades = {
            passage: float(draw.choice((0, 0, 1, 2, 3)))
            for passage in draw.sample(corpus, min(10, len(corpus)))
        }
        yield Item(
            f"q{number}", contexts=tuple(contexts), references=(" ".join(reference),), relevance=grades
        )


def cheap(text: str) -> str:
    """Lower case and single blanks."""
    return " ".join(text.lower().split())


def resident() -> float:
    """Memory that the process has in use, MiB."""
    pages = int(Path("/proc/self/statm").read_text("utf-8").split()[1])
    return pages * resource.getpagesize() / 2**20


def measure(count: int, k: int) -> dict[str, float]:
    """Times of ours in milliseconds, made-up questions left out, normalisation alone and within; memory in MiB."""
    settings = Settings(k=k)
    spent = {"normalise_ms": 0.0, "relevance_ms": 0.0, "values_ms": 0.0}
    early = peak = 0.0
    fired = [0, 0, 0]
    batch: list[Item] = []
    source = items(count, k)
    done = 0
    while batch := [item for _, item in zip(range(BATCH), source, strict=False)]:
        texts = [
            text for item in batch for text in (*item.references, *(c.text for c in item.contexts or ()))
        ]
        begun = time.process_time()
        for text in texts:
            cheap(text)
        spent["normalise_ms"] += (time.process_time() - begun) * 1000
        begun = time.process_time()
        matches = relevance(batch, cheap, settings)
        middle = time.process_time()
        retrieval_values(batch, matches, settings)
        spent["relevance_ms"] += (middle - begun) * 1000
        spent["values_ms"] += (time.process_time() - middle) * 1000
        for match in (match for row in matches for match in row):
            fired[match.level or 0] += 1
        done += len(batch)
        peak = max(peak, resident())
        if done <= count / 10:
            early = peak
    names = ("no_level", "substring", "tokens")
    return {**spent, "memory_growth_mib": peak - early, **dict(zip(names, fired, strict=True))}


def ranking(count: int, k: int) -> dict[str, float]:
    """Ranking alone, ours and pytrec_eval's through ir_measures, on the same questions."""
    import ir_measures
    from ir_measures import AP, RR, P, R, nDCG

    questions = [
        Item(item.id, ranking=tuple(c.id for c in item.contexts or ()), relevance=item.relevance)
        for item in items(count, k)
    ]
    begun = time.process_time()
    ours = [ranking_values(item, k).values for item in questions]
    own = time.process_time() - begun
    qrels = {
        q.id: {name: int(2**grade - 1) for name, grade in (q.relevance or {}).items()} for q in questions
    }
    run = {q.id: {name: float(-rank) for rank, name in enumerate(q.ranking or ())} for q in questions}
    measures = [AP @ k, RR @ k, nDCG @ k, R @ k, P @ k]
    begun = time.process_time()
    theirs = list(ir_measures.pytrec_eval.iter_calc(measures, qrels, run))
    library = time.process_time() - begun
    names = dict(zip(map(str, measures), ("ap", "rr", "ndcg", "recall", "precision"), strict=True))
    by_id = dict(zip((q.id for q in questions), ours, strict=True))
    worst = max(
        abs(one.value - by_id[one.query_id].get(names[str(one.measure)], one.value)) for one in theirs
    )
    return {
        "ranking_ms": own * 1000,
        "pytrec_eval_ms": library * 1000,
        "ratio": own / library,
        "largest_difference": worst,
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    found = {"items": given.items, "k": given.k, **measure(given.items, given.k)}
    found |= ranking(given.items, given.k)
    text = json.dumps({name: round(value, 3) for name, value in found.items()}, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
