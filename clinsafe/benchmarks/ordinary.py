"""Ordinary medical text: pairs that nobody built, on which a flag is most likely a false alarm.

PubMedQA (github.com/pubmedqa/pubmedqa, MIT): an abstract's own conclusion as query, its contexts as passages.
MedQuAD (github.com/abachaa/MedQuAD, CC BY 4.0): the answer on one condition against that on another. Both are read from
``CLINSAFE_DATA`` or a folder that is given; neither is part of this package.
"""

from __future__ import annotations

import gzip
import json
import os
import random
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from clinsafe.benchmarks.filters import Pair
from clinsafe.errors import ContentError, UsageError
from clinsafe.stats import SEED

VARIABLE = "CLINSAFE_DATA"
PUBMEDQA, MEDQUAD = "pubmedqa_pqal.jsonl.gz", "medquad_ghr.jsonl.gz"
PASSAGE_WORDS = 200
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
    """n pairs of texts about different things: one half MedQuAD conditions, one half PubMedQA articles.

    The query is the first sentence of an answer (or a conclusion), the passage an answer (or abstract) on another
    subject. Drawn with a fixed seed, so two runs see the same pairs.
    """
    chance = random.Random(SEED)  # noqa: S311 - a sample, not a secret
    answers = [
        (str(row["condition"]), _short(str(row["answer"]))) for row in rows(folder / MEDQUAD) if row["answer"]
    ]
    articles = [(str(row["id"]), row) for row in rows(folder / PUBMEDQA)]
    pairs = []
    for number in range(n):
        if number % 2:
            (one, query), (other, passage) = _two(chance, answers)
            query = _SENTENCE.split(query)[0]
        else:
            (one, a), (other, b) = _two(chance, articles)
            query, passage = str(a["long_answer"]), _short(" ".join(b["contexts"]))
        name = f"{'medquad' if number % 2 else 'pubmedqa'}-{one}-{other}-{number}"
        pairs.append(Pair(name, "all", "", "", "unrelated", query, passage))
    return pairs


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


def _two(chance: random.Random, texts: list[tuple[str, Any]]) -> tuple[tuple[str, Any], tuple[str, Any]]:
    while True:
        one, other = chance.sample(texts, 2)
        if one[0] != other[0]:
            return one, other


def _short(text: str) -> str:
    return " ".join(text.split()[:PASSAGE_WORDS])
