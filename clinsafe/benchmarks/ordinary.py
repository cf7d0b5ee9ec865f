"""Ordinary medical text: pairs that nobody built, on which a flag is most likely a false alarm.

PubMedQA (github.com/pubmedqa/pubmedqa, MIT): an abstract's own conclusion as query, its contexts as passages; and the
contexts of two articles. MedQuAD (github.com/abachaa/MedQuAD, CC BY 4.0): the answer on one condition against that on
another. Both are read from ``CLINSAFE_DATA`` or a folder that is given; neither is part of this package.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections.abc import Iterable, Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from clinsafe.benchmarks.filters import Pair
from clinsafe.errors import ContentError, UsageError
from clinsafe.stats import SEED

VARIABLE = "CLINSAFE_DATA"
PUBMEDQA, MEDQUAD = "pubmedqa_pqal.jsonl.gz", "medquad_ghr.jsonl.gz"
PASSAGE_WORDS = 200
FEWEST_WORDS = 5
LINKS = "treatment"  # MedQuAD answers this question type with lists of links
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")


def data_folder(given: Path | None = None) -> Path | None:
    """The folder with the data files, or None where neither an argument nor the environment names one.

    Raises:
        UsageError: it names something that is no folder.
    """
    named = given or (Path(os.environ[VARIABLE]) if os.environ.get(VARIABLE) else None)
    if named is not None and not named.is_dir():
        raise UsageError(
            f"{named}: no such folder; {VARIABLE} or --data names the folder with the data files"
        )
    return named


def rows(path: Path) -> Iterator[dict[str, Any]]:
    """The records of a gzipped JSON Lines file.

    Raises:
        UsageError: no such file. ContentError: a line that is no record.
    """
    if not path.is_file():
        raise UsageError(f"{path}: no such file")
    number = 0
    try:
        with gzip.open(path, "rt", encoding="utf-8") as stream:
            for number, line in enumerate(stream, start=1):  # noqa: B007 - named in the error
                yield dict(json.loads(line))
    except (OSError, EOFError, ValueError) as error:
        raise ContentError(path, number + 1, None, f"not a gzipped JSON Lines file: {error}") from error


def unrelated(folder: Path, n: int) -> list[Pair]:
    """Up to n pairs of texts about different things: PubMedQA contexts and MedQuAD answers by turns.

    The query is the first sentence of one text, the passage another one, of another article or condition. No text and
    no first sentence stands in two of them, so the pairs are independent as far as the data allow. The order is drawn
    with a fixed seed: two runs see the same pairs, and a shorter list is the beginning of a longer one. There may be
    fewer than n: the data yield no more.
    """
    contexts = ((str(row["id"]), str(text)) for row in rows(folder / PUBMEDQA) for text in row["contexts"])
    answers = (
        (str(row["condition"]), str(row["answer"]))
        for row in rows(folder / MEDQUAD)
        if row["answer"] and row.get("qtype") != LINKS
    )
    found = [_couples("pubmedqa", contexts), _couples("medquad", answers)]
    turns = [pair for both in zip_longest(*found) for pair in both if pair is not None]
    return turns[:n]


def own_conclusions(folder: Path, articles: int) -> list[Pair]:
    """Each context of the first `articles` PubMedQA abstracts against the abstract's own conclusion (the query)."""
    return [
        Pair(f"pubmedqa-{row['id']}-{number}", "all", "", "", "safe", str(row["long_answer"]), str(text))
        for row, _ in zip(rows(folder / PUBMEDQA), range(articles), strict=False)
        for number, text in enumerate(row["contexts"])
    ]


def passages(folder: Path, n: int) -> list[str]:
    """n real passages of about `PASSAGE_WORDS` words, for timing."""
    words = (str(row["answer"]).split() for row in rows(folder / MEDQUAD))
    long = (part for part in words if len(part) >= PASSAGE_WORDS)
    return [" ".join(part[:PASSAGE_WORDS]) for part, _ in zip(long, range(n), strict=False)]


def _couples(corpus: str, texts: Iterable[tuple[str, str]]) -> list[Pair]:
    """Every text in one pair at most, with one of another subject."""
    waiting = _once(texts)
    random.Random(SEED).shuffle(waiting)  # noqa: S311 - a sample, not a secret
    pairs: list[Pair] = []
    alone: list[tuple[str, str]] = []  # of one subject, each waiting for a text of another
    for subject, text in waiting:
        if not alone or alone[0][0] == subject:
            alone.append((subject, text))
            continue
        other, asked = alone.pop(0)
        name = f"{corpus}-{other}-{subject}-{len(pairs)}"
        pairs.append(Pair(name, "all", "", "", "unrelated", _first(asked), text))
    return pairs


def _once(texts: Iterable[tuple[str, str]]) -> list[tuple[str, str]]:
    """Shortened texts whose beginning no other text has; nothing that is too short to say anything."""
    found: list[tuple[str, str]] = []
    seen: set[str] = set()
    for subject, whole in texts:
        text = _short(whole)
        if len(_first(text).split()) >= FEWEST_WORDS and _first(text) not in seen:
            seen.add(_first(text))
            found.append((subject, text))
    return found


def _first(text: str) -> str:
    return _SENTENCE.split(text)[0]


def _short(text: str) -> str:
    return " ".join(text.split()[:PASSAGE_WORDS])
