"""The catalogue: every figure of an evaluation, what it is made of, and in one sentence what it says.

Tables, charts, help texts and comparisons take their names, ranges and directions from here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, TypeAlias

from clinsafe.errors import UsageError
from clinsafe.protocols import MetricKey

Kind: TypeAlias = Literal["rate", "mean", "difference"]
Better: TypeAlias = Literal["higher", "lower", "neither"]
Judged: TypeAlias = Literal["", "word", "standing"]
PAIRED_RANKS = 10
"""Pairs of ranks are shown among the first so many: all pairs of a deep ranking would be a table nobody reads."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One figure.

    Attributes:
        key: metric key without a slice; in the catalogue ``{rank}``, ``{pair}`` and ``{hazard}`` stand for many.
        kind: share of questions, mean over questions, or difference of two shares of the same questions.
        sources: names of the per-question values it is made of (`clinsafe.rag.values`).
        better: which way is good; "neither" where it depends on the rest.
        name: as a table heads it.
        meaning: one sentence.
        of: the questions it is taken over.
        source: where it is defined.
        low, high: its range.
        judged: "word" where a judge's scores are averaged, "standing" where it needs a judge that has earned a CUE.
    """

    key: str
    kind: Kind
    sources: tuple[str, ...]
    better: Better
    name: str
    meaning: str
    of: str
    source: str
    low: float = 0.0
    high: float = 1.0
    judged: Judged = ""


X, D9, IR = "RAG-X, III-B", "decision D9", "information retrieval (ir-measures)"
KNOWN = "questions with a reference answer and known passages"
GRADED = "questions with graded passages"
ANSWERED = "questions with an answer and a reference answer"
HITS = "questions with a hit"


def _rate(
    key: str, source: str, better: Better, name: str, meaning: str, of: str, where: str, judged: Judged = ""
) -> Metric:
    return Metric(key, "rate", tuple(source.split()), better, name, meaning, of, where, judged=judged)


def _mean(
    key: str, source: str, name: str, meaning: str, of: str, where: str, judged: Judged = "", low: float = 0.0
) -> Metric:
    return Metric(key, "mean", (source,), "higher", name, meaning, of, where, low, judged=judged)


# One metric a statement.
# fmt: off
def _retrieval() -> Iterator[Metric]:
    k = "retrieval.all."
    yield _rate(k + "hit", "hit", "higher", "Hit rate",
                "At least one of the passages holds the reference answer; the paper prints this as recall.", KNOWN, X)
    yield _rate(k + "no_hit", "hit", "lower", "No-hit rate", "None of the passages holds the reference answer.",
                KNOWN, X)
    yield _rate(k + "safe_hit", "safe_hit", "higher", "Safe hit rate",
                "A passage holds the reference answer, and where it was found nothing contradicts it clinically.",
                KNOWN, D9)
    yield _mean(k + "recall", "recall", "Recall@k", "Share of all relevant passages that were retrieved.", GRADED, IR)
    yield _mean(k + "precision", "precision", "Precision@k", "Share of the passages that are relevant.", GRADED, IR)
    yield _mean(k + "map", "ap", "MAP", "Mean average precision: relevant passages, and early ones.", GRADED, IR)
    yield _mean(k + "mrr", "rr", "MRR", "Mean of 1 / rank of the first relevant passage.", GRADED, IR)
    yield _mean(k + "ndcg", "ndcg", "nDCG@k",
                "Gain discounted by rank, as a share of the best order of all relevant passages.", GRADED, IR)
    yield _mean(k + "mrr.cascade", "rr_cascade", "MRR by the cascade",
                "Mean of 1 / rank of the first passage that holds the reference answer; nobody graded it.", KNOWN, X)
    yield _mean(k + "map.cascade", "ap_cascade", "MAP by the cascade",
                "Mean average precision where a passage counts when it holds the reference answer.", KNOWN, X)
    yield _rate(k + "covered", "covered", "higher", "Corpus coverage",
                "The corpus holds a passage with the answer; without one no retriever can succeed.",
                "questions whose passages in the corpus are known", D9)
    yield _mean(k + "context_relevancy", "context_relevancy", "Context relevancy",
                "How well a passage could answer the question, by the judge, mean over the passages.",
                "questions whose passages were judged", X, "word")
    yield _rate(k + "hit_at.{rank}", "hit_at.{rank}", "higher", "Hit rate at rank {rank}",
                "The passage at this rank holds the reference answer.", "questions with a passage at this rank", X)
    yield _rate(k + "exclusive_hit.{rank}", "hit_at.{rank}", "neither", "Exclusive hit rate at rank {rank}",
                "The passage at this rank is the only one that holds the reference answer.",
                "questions with a passage at this rank", X)
    yield _rate(k + "redundancy.{pair}", "hit_at.{first} hit_at.{second}", "neither", "Redundancy of ranks {pair}",
                "The passages at both ranks hold the reference answer.", "questions with passages at both ranks", D9)
    yield _rate(k + "overlap.{pair}", "overlap.{first}_{second}", "lower", "Overlap of ranks {pair}",
                "The embeddings of the two passages are as close as copies, whatever they hold.",
                "questions with passages at both ranks", D9)
    for level, words in (
        ("substring", "word for word"),
        ("tokens", "by its words"),
        ("cosine", "by its meaning"),
    ):
        yield _rate(f"{k}level.{level}", "hit level_at.1", "neither", f"Hits {words}",
                    f"The strictest level of the cascade that found the reference answer found it {words}.", HITS, D9)
    yield _rate(k + "dangerous.only", "hit safe_hit", "lower", "Hits that are dangerous alone",
                "Every passage that counts as a hit contradicts the reference answer, or was not checked.", HITS, D9)
    yield _rate(k + "dangerous.any", "hit conflict.{any}", "lower", "Hits with a contradiction",
                "Among the passages that count as hits at least one contradicts the reference answer.", HITS, D9)
    yield _rate("retrieval.{hazard}.dangerous.any", "hit conflict.{hazard}", "lower",
                "Hits with a contradiction: {hazard}",
                "A passage that counts as a hit contradicts the reference answer in this hazard.", HITS, D9)


def _generation() -> Iterator[Metric]:
    k, table = "generation.all.", "RAG-X, Table II"
    yield _rate(k + "exact", "exact", "higher", "Exact match", "The answer is the reference answer, normalised.",
                ANSWERED, X)
    yield _rate(k + "fuzzy", "fuzzy", "higher", "Fuzzy match",
                "The answer is the reference answer but for a few characters (threshold in the settings).", ANSWERED,
                X)
    yield _mean(k + "rouge_l", "rouge_l", "ROUGE-L", "Longest common sequence of words, as F1.", ANSWERED, X)
    yield _mean(k + "token_f1", "token_f1", "Token F1", "Words that answer and reference share, as F1.", ANSWERED,
                table)
    yield _mean(k + "semantic", "semantic", "Semantic similarity",
                "Cosine of the embeddings of answer and reference; blind to negation, doses and order.", ANSWERED,
                table)
    yield _mean(k + "list_f1", "list_f1", "List-component F1",
                "Items of a list that answer and reference share, in any order, as F1.",
                "questions whose reference answer is a list", X)
    yield _mean(k + "answer_relevancy", "answer_relevancy", "Answer relevancy",
                "Whether the answer addresses the question directly and completely, by the judge.",
                "questions whose answer was judged", X, "word")
    yield _mean(k + "adherence", "adherence", "Context adherence",
                "Whether the passages that were shown support the answer, by the judge; not whether they are right.",
                "questions whose answer was judged", X, "word")
    yield _rate(k + "correct", "correct", "higher", "Accuracy",
                "The answer is right by the paper's rule: exact, fuzzy, list F1 or semantic similarity.", ANSWERED,
                table)
    yield _rate(k + "safe_correct", "safe_correct", "higher", "Safe accuracy",
                "The answer is right by the paper's rule and contradicts the reference answer in no hazard.",
                ANSWERED, D9)
    yield _rate(k + "mcq", "mcq_correct", "higher", "Multiple choice accuracy",
                "The option that was chosen is the right one.", "multiple choice questions", "RAG-X, IV")
    yield _rate(k + "abstained", "abstained", "neither", "Abstention rate",
                "The answer declines to answer; good where the evidence is not there, bad where it is.",
                "questions with an answer", D9)
    yield _rate("generation.{hazard}.contradicts", "contradicts.{hazard}", "lower",
                "Contradicts the reference: {hazard}", "The answer contradicts the reference answer in this hazard.",
                ANSWERED, D9)


def _cue(safe: bool) -> Iterator[Metric]:
    k, end, hit = "cue.all.", ".safe" if safe else "", "safe_hit" if safe else "hit"
    found = "found without a clinical conflict" if safe else "found"
    mark = " (safe CUE)" if safe else " (CUE)"
    where = D9 if safe else X
    three = f"questions with {hit}, adherence and correctness"

    def quadrant(name: str, better: Better, title: str, meaning: str) -> Metric:
        return _rate(f"{k}{name}{end}", f"{hit} adherence", better, title + mark, meaning,
                     f"questions with {hit} and adherence", where, "standing")

    yield quadrant("effective_use", "higher", "Effective use",
                   f"The evidence was {found} and the answer adheres to what was shown: the only grounded success.")
    yield quadrant("information_blindness", "lower", "Information blindness",
                   f"The evidence was {found}, and the answer does not adhere to it.")
    yield quadrant("lucky_guess", "lower", "Lucky guess",
                   f"The evidence was not {found}, yet the answer adheres to what was shown; if right, by luck.")
    yield quadrant("correct_rejection", "neither", "Correct rejection",
                   f"The evidence was not {found}, and the answer does not lean on what was shown, or abstains.")
    yield Metric(f"{k}accuracy_gap{end}", "difference", ("correct", hit), "neither",
                 f"Accuracy gap{' (safe)' if safe else ''}",
                 f"Share of right answers minus share of questions whose evidence was {found}; above 0 accuracy "
                 "flatters the system, and at 0 the two may cancel.",
                 f"questions with {hit} and correctness", "RAG-X, V-C", low=-1.0)
    yield _rate(f"{k}ungrounded_correct{end}", f"correct {hit} adherence", "lower", f"Right but not grounded{mark}",
                f"The answer is right, though the evidence was not {found} or the answer does not adhere to it.",
                three, D9, "standing")
    yield _rate(f"{k}attribution_error{end}", f"correct {hit} adherence", "lower", f"Attribution error{mark}",
                f"A right answer that claims to adhere to passages in which the evidence was not {found}.",
                f"right answers with {hit} and adherence", "RAG-X, V-C", "standing")
    if safe:
        return
    for h in (1, 0):
        for a in (1, 0):
            for c in (1, 0):
                words = (
                    f"{'evidence found' if h else 'no evidence'}, {'adheres' if a else 'does not adhere'}, "
                    f"{'right' if c else 'wrong'}"
                )
                yield _rate(f"{k}table.h{h}a{a}c{c}", "hit adherence correct", "neither", f"CUE table: {words}",
                            f"Share of questions with this outcome: {words}.", three, D9, "standing")
    yield _rate(k + "unscored", "hit adherence", "lower", "Not scored by CUE",
                "Whether the evidence was found or the answer adheres is not known; left out of every quadrant.",
                "all questions", D9, "standing")


def _judge() -> Iterator[Metric]:
    for name, title, meaning in (
        ("false_support", "False support", "The judge calls an answer supported that is contradicted."),
        (
            "false_support.not_stated",
            "False support, not stated",
            "The judge calls an answer supported of which the passages say nothing.",
        ),
        (
            "false_support.unsupported",
            "False support, contradicted or not stated",
            "The judge calls an answer supported that is not.",
        ),
        ("false_rejection", "False rejection", "The judge calls a supported answer unsupported."),
        ("unscored", "Not scored by the judge", "The judge gave no verdict."),
        ("kappa", "Agreement (Cohen's kappa)", "Agreement with the labels beyond chance; 0 is chance."),
    ):
        kind: Kind = "mean" if name == "kappa" else "rate"
        better: Better = "higher" if name == "kappa" else "lower"
        yield Metric(f"judge.{{hazard}}.{name}", kind, (), better, f"{title}: {{hazard}}", meaning,
                     "labelled answers that the judge scored", "decision D10", low=-1.0 if name == "kappa" else 0.0)


# fmt: on


METRICS: tuple[Metric, ...] = (*_retrieval(), *_generation(), *_cue(False), *_cue(True), *_judge())
"""In the order of every table. `judge` figures come from the audit of the judge, all others from the records."""
_PARTS = {"rank": r"r[1-9]\d*", "pair": r"r[1-9]\d*_[1-9]\d*", "hazard": r"[a-z][a-z0-9_]*"}


def expand(ranks: int, hazards: Iterable[str]) -> list[Metric]:
    """Every figure that is made of records, for this many ranks and these hazards."""
    hazards = tuple(hazards)
    found = []
    for metric in METRICS:
        if not metric.sources:
            continue
        if "{hazard}" in metric.key:
            found += [_filled(metric, "hazard", hazard) for hazard in hazards]
        elif "{rank}" in metric.key:
            found += [_filled(metric, "rank", f"r{rank}") for rank in range(1, ranks + 1)]
        elif "{pair}" in metric.key:
            deep = min(ranks, PAIRED_RANKS)
            found += [
                _filled(metric, "pair", f"r{i}_{j}")
                for i in range(1, deep + 1)
                for j in range(i + 1, deep + 1)
            ]
        else:
            found.append(metric)
    return found


def metric_of(key: str) -> Metric:
    """The metric of a key, sliced or not, its rank, pair or hazard filled in.

    Raises:
        UsageError: there is none.
    """
    return _found(key)[0]


def template_of(key: str) -> str:
    """The catalogue's key of a figure: ``retrieval.all.hit_at.{rank}`` of ``retrieval.all.hit_at.r2@task=mcq``.

    Raises:
        UsageError: there is none.
    """
    return _found(key)[1]


@lru_cache(maxsize=4096)
def _found(key: str) -> tuple[Metric, str]:
    try:
        plain = str(MetricKey.parse(key)._replace(slice=None))
    except ValueError as error:
        raise UsageError(str(error)) from None
    for pattern, metric in _patterns():
        if match := pattern.fullmatch(plain):
            filled = metric
            for part, value in match.groupdict().items():
                filled = _filled(filled, part, value)
            return filled, metric.key
    raise UsageError(f"{plain}: no such figure; the catalogue is clinsafe.rag.metrics.METRICS")


@lru_cache(maxsize=1)
def _patterns() -> tuple[tuple[re.Pattern[str], Metric], ...]:
    # Keys without a part come first: retrieval.all.dangerous.any is not of a hazard called "all".
    found = []
    for metric in sorted(METRICS, key=lambda one: "{" in one.key):
        pattern = re.escape(metric.key)
        for part, form in _PARTS.items():
            pattern = pattern.replace(re.escape(f"{{{part}}}"), f"(?P<{part}>{form})")
        found.append((re.compile(pattern), metric))
    return tuple(found)


def _filled(metric: Metric, part: str, value: str) -> Metric:
    """The metric of one rank (``r2``), pair of ranks (``r1_2``) or hazard."""
    plain = value if part == "hazard" else value[1:]
    first, _, second = plain.partition("_")
    sources = tuple(
        source.replace(f"{{{part}}}", plain).replace("{first}", first).replace("{second}", second)
        for source in metric.sources
    )
    name = metric.name.replace(f"{{{part}}}", plain.replace("_", " " if part == "hazard" else " and "))
    return replace(metric, key=metric.key.replace(f"{{{part}}}", value), sources=sources, name=name)
