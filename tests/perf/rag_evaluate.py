"""What `clinsafe rag evaluate` costs without a model; not a test.

``python tests/perf/rag_evaluate.py [--items N] [--few M] [--k K] [--corpus FILE] [--profile] [--out FILE]``

N traces of K distinct passages of 100 words are written as our JSON Lines, the same every time: words of PubMedQA where
``CLINSAFE_DATA`` is set (or of --corpus), made-up ones elsewhere. Then everything that ``rag evaluate --model none
--judge none --filter none`` does up to the record is run on them, once on M and once on N, each in a process of its
own. Printed as JSON: CPU milliseconds a stage, questions a second, and by how much memory grew after the first tenth
of the questions and up to the end. pytrec_eval (through ir_measures) ranks the same questions in the same run; no
library computes the rest: rapidfuzz counts no tokens, and it is inside of ours.
"""

from __future__ import annotations

import argparse
import cProfile
import gzip
import json
import math
import os
import pstats
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

WORDS = 100  # a passage
_SYLLABLES = "ra ti no se co me de la pa in su ber fen mol tra cyt hep ne phro lin gas"
_COMMON = "the of and in to a with is was for patients who had treatment after by were than risk aged years"
_STRIDE = 7919  # passages of one question come from all over the corpus


# ── the traces ─────────────────────────────────────────────────────────────────────────────────


def corpus(path: Path | None) -> tuple[str, list[str], list[str]]:
    """(what it is, its words in order, right answers): of PubMedQA where there is one."""
    if path is None and (data := os.environ.get("CLINSAFE_DATA")):
        path = Path(data) / "pubmedqa_pqal.jsonl.gz"
    if path is not None and path.is_file():
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            rows = [json.loads(line) for line in stream]
        words = [word for row in rows for context in row["contexts"] for word in context.split()]
        return path.name, words, [row["long_answer"] for row in rows]
    draw = random.Random(9)
    syllables = _SYLLABLES.split()
    rare = ["".join(draw.choices(syllables, k=draw.randint(2, 4))) for _ in range(4000)]
    words = draw.choices([*_COMMON.split() * 130, *rare], k=200_000)
    words = [f"{word}." if draw.random() < 0.05 else word for word in words]
    return "made up", words, [" ".join(words[at : at + 38]) for at in range(0, 38_000, 38)]


def lines(count: int, k: int, words: list[str], answers: list[str]) -> Iterator[str]:
    """Traces one at a time. References: a phrase of a passage, its words shuffled, or (half of all) a long answer; a
    quarter are multiple choices, an eighth of the answers are lists, a tenth say nothing."""
    draw = random.Random(9)
    places = len(words) - WORDS
    while math.gcd(places, _STRIDE) > 1:
        places -= 1
    for number in range(count):
        texts = []
        for rank in range(k):
            at = (number * k + rank) * _STRIDE % places
            texts.append(" ".join(words[at : at + WORDS]))
        source = draw.choice(texts).split()
        phrase = source[20 : 20 + draw.randint(4, 20)]
        kind = number % 4
        reference = answers[number % len(answers)]
        if kind == 0:
            reference = " ".join(phrase)
        elif kind == 1:
            reference = " ".join(draw.sample(phrase, len(phrase)))
        answer = answers[(number + draw.randint(0, 3)) % len(answers)]
        if number % 8 == 1:
            reference = "\n".join(f"- {one}" for one in source[:4])
            answer = "The causes are " + ", ".join(source[2:6]) + " and " + source[7] + "."
        elif number % 10 == 2:
            answer = "The passages do not say."
        row: dict[str, Any] = {
            "schema_version": 1, "id": f"t{number}", "time": "2026-01-01T00:00:00Z", "tool": "perf",
            "outcome": "answered",
            "query_id": f"q{number}", "query": _text(f"Question {number}: {' '.join(source[:12])}?"),
            "slices": {"intent": ("definition", "dose", "risk")[number % 3]},
            "retrieved": [
                {"id": _name(number, rank), "rank": rank + 1, "score": 1 / (rank + 1), "content": _text(text)}
                for rank, text in enumerate(texts)
            ],
            "context": [{"id": _name(number, rank), "rank": rank + 1} for rank in range(k)],
            "answer": _text(answer), "reference": _text(reference),
            "relevance": {_name(number, place): float(draw.choice((0, 0, 1, 2, 3))) for place in range(0, 2 * k, 2)},
        }  # fmt: skip
        if kind == 3:
            row["task"] = "mcq"
            row["options"] = {name: _text(name) for name in ("yes", "no", "maybe")}
            row["expected"] = draw.choice(("yes", "no", "maybe"))
            row["answer"] = _text(f"{row['expected'].capitalize()}. {answer}")
        yield json.dumps(row)


def _text(words: str) -> dict[str, Any]:
    return {"length": len(words), "text": words}


def _name(number: int, place: int) -> str:
    return f"p{(number + place * 7) % 9973}"


# ── one run ────────────────────────────────────────────────────────────────────────────────────


class Clock:
    """CPU time by stage; of stages within stages only the innermost counts."""

    def __init__(self) -> None:
        self.spent: dict[str, float] = {}
        self._open: list[str] = []
        self._since = time.process_time()

    def _turn(self) -> None:
        now = time.process_time()
        if self._open:
            self.spent[self._open[-1]] = self.spent.get(self._open[-1], 0.0) + now - self._since
        self._since = now

    def begin(self, stage: str) -> None:
        """From here on it is this stage."""
        self._turn()
        self._open.append(stage)

    def end(self) -> None:
        """The stage is over."""
        self._turn()
        self._open.pop()

    def timed(self, stage: str, inner: Callable[..., Any]) -> Callable[..., Any]:
        """The function, its time counted."""

        def outer(*args: Any, **named: Any) -> Any:
            self.begin(stage)
            try:
                return inner(*args, **named)
            finally:
                self.end()

        return outer

    def reading(self, inner: Callable[..., Any]) -> Callable[..., Any]:
        """`read_items`, each line's time counted."""
        clock = self

        def outer(*args: Any) -> Any:
            reader = inner(*args)

            class Counted:
                detected = property(lambda _self: reader.detected)

                def __iter__(self) -> Iterator[Any]:
                    source = iter(reader)
                    while True:
                        clock.begin("reading")
                        one = next(source, None)
                        clock.end()
                        if one is None:
                            return
                        yield one

            return Counted()

        return outer


class _Timed:
    """A normaliser whose time is counted; everything else of it is the real one's."""

    def __init__(self, inner: Any, clock: Clock) -> None:
        self._inner = inner
        self.normalise = clock.timed("normalisation", inner.normalise)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)


def memory(peak: bool = False) -> float:
    """Resident memory of this process in MiB, now or at its highest."""
    if peak:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return int(Path("/proc/self/statm").read_text("utf-8").split()[1]) * resource.getpagesize() / 2**20


def child(path: Path, k: int, profile: bool) -> dict[str, Any]:
    """The evaluation as the command does it, in this process."""
    from clinsafe.content import Content
    from clinsafe.rag.normalise import normaliser
    from clinsafe.rag.settings import Settings
    from clinsafe.workflows import rag_evaluate, rag_measure

    clock, content = Clock(), Content()
    settings = Settings(k=k, levels=("substring", "tokens"))
    instruments = rag_measure.Instruments(settings, _Timed(normaliser(content), clock), content)  # type: ignore[arg-type]
    timed: list[tuple[Any, str, str]] = [
        (rag_measure, "relevance", "relevance"), (rag_measure, "retrieval_values", "retrieval and ranking"),
        (rag_measure, "generation_values", "generation"), (rag_evaluate, "figures", "figures"),
        (rag_evaluate, "record", "records"), (rag_evaluate, "to_bytes", "writing the evidence"),
        (rag_evaluate, "from_bytes", "reading the evidence again"), (rag_evaluate, "sha256_file", "hashing the file"),
    ]  # fmt: skip
    if not profile:
        for module, name, what in timed:
            setattr(module, name, clock.timed(what, getattr(module, name)))
        name = "read_items"
        setattr(rag_evaluate, name, clock.reading(getattr(rag_evaluate, name)))
    seen: list[tuple[int, float]] = []
    total = sum(1 for _ in path.open("rb"))
    source = rag_evaluate.Source("perf", path)

    def stage(_what: str, done: int, _total: int) -> None:
        if done:
            seen.append((done, memory()))

    profiler = cProfile.Profile()
    with tempfile.TemporaryDirectory() as folder:
        plan = rag_evaluate.Plan([source], instruments, content, folder=Path(folder))
        wall, cpu = time.perf_counter(), time.process_time()
        clock.begin("the rest")
        evidence = (
            profiler.runcall(rag_evaluate.evaluate, plan, stage)
            if profile
            else rag_evaluate.evaluate(plan, stage)
        )
        clock.end()
        wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    if profile:
        pstats.Stats(profiler, stream=sys.stderr).sort_stats("tottime").print_stats(45)
    early = max(size for done, size in seen if done <= max(seen[0][0], total / 10))
    return {
        "questions": evidence.questions,
        "cpu_ms": {
            name: round(spent * 1000) for name, spent in sorted(clock.spent.items(), key=lambda one: -one[1])
        },
        "cpu_s": round(cpu, 2),
        "wall_s": round(wall, 2),
        "questions_per_cpu_second": round(total / cpu),
        "texts_normalised": instruments.normaliser.texts,
        "changed": dict(instruments.normaliser.report()),
        "mib_after_a_tenth": round(early, 1),
        "mib_grown_while_measuring": round(max(size for _, size in seen) - early, 1),
        "mib_grown_with_figures_and_record": round(memory(peak=True) - early, 1),
    }


def ranking(path: Path, k: int) -> dict[str, float]:
    """Ranking alone, ours and pytrec_eval's, of the same questions: CPU milliseconds."""
    import ir_measures
    from ir_measures import AP, RR, P, R, nDCG

    from clinsafe.rag.formats import read_items
    from clinsafe.rag.item import Item
    from clinsafe.rag.ranking import ranking_values

    items = [
        Item(one.id, ranking=one.ranking, relevance=one.relevance)
        for one in read_items(path)
        if isinstance(one, Item)
    ]
    begun = time.process_time()
    for item in items:
        ranking_values(item, k)
    own = time.process_time() - begun
    qrels = {
        one.id: {name: int(2**grade - 1) for name, grade in (one.relevance or {}).items()} for one in items
    }
    run = {one.id: {name: float(-rank) for rank, name in enumerate(one.ranking or ())} for one in items}
    begun = time.process_time()
    found = sum(
        1 for _ in ir_measures.pytrec_eval.iter_calc([AP @ k, RR @ k, nDCG @ k, R @ k, P @ k], qrels, run)
    )
    library = time.process_time() - begun
    assert found == 5 * len(items), "the library left questions out"
    return {
        "ours_ms": round(own * 1000),
        "pytrec_eval_ms": round(library * 1000),
        "ratio": round(own / library, 2),
    }


# ── all of it ──────────────────────────────────────────────────────────────────────────────────


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--items", type=int, default=10_000)
    parser.add_argument("--few", type=int, default=2_000, help="the smaller run, for memory; 0: none")
    parser.add_argument("--k", type=int, default=10)
    parser.add_argument("--corpus", type=Path, help="PubMedQA, JSON Lines, gzipped")
    parser.add_argument("--profile", action="store_true", help="cProfile of the larger run, to stderr")
    parser.add_argument("--out", type=Path)
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.child:
        print(json.dumps(child(given.child, given.k, given.profile)))
        return
    name, words, answers = corpus(given.corpus)
    result: dict[str, Any] = {"corpus": name, "k": given.k, "words_a_passage": WORDS}
    with tempfile.TemporaryDirectory() as folder:
        for count in (given.few, given.items):
            path = Path(folder) / f"{count}.jsonl"
            if not count:
                continue
            with path.open("w", encoding="utf-8") as stream:
                stream.writelines(f"{line}\n" for line in lines(count, given.k, words, answers))
            command = [sys.executable, __file__, "--child", str(path), "--k", str(given.k)]
            command += ["--profile"] if given.profile and count == given.items else []
            done = subprocess.run(command, stdout=subprocess.PIPE, check=True, text=True)
            result[str(count)] = {"file_mb": round(path.stat().st_size / 1e6, 1), **json.loads(done.stdout)}
        result["ranking"] = ranking(path, given.k)
    text = json.dumps(result, indent=2)
    print(text)
    if given.out:
        given.out.write_text(text + "\n", "utf-8")


if __name__ == "__main__":
    main()
