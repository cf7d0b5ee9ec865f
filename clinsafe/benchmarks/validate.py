"""``clinsafe suite validate``: the suite's card says what the suite is; here it is proved or refuted.

A rule that is broken is a problem with the case ids in it. What can only be judged by a reader (does b really
contradict a?) is shown as agreement of a blind second reader, with its interval.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import combinations

from clinsafe.benchmarks.measure import figures
from clinsafe.benchmarks.scoring import score_with_scorer
from clinsafe.benchmarks.second_reader import second_reader
from clinsafe.benchmarks.suite import (
    SENTENCES,
    Case,
    SuiteCard,
    by_hazard,
    edit_distance,
    load_card,
    load_suite,
    split_hash,
)
from clinsafe.content import Content
from clinsafe.errors import MissingDependency
from clinsafe.protocols import PairScorer
from clinsafe.stats import Estimate
from clinsafe.text import words


@dataclass(frozen=True, slots=True)
class Validation:
    """Facts to print as (label, text), and the rules that are broken."""

    facts: list[tuple[str, str]]
    problems: list[str]


def validate(content: Content, scorer: PairScorer) -> Validation:
    """Check every rule of the card.

    Args:
        content: the content tree.
        scorer: the word-overlap scorer that must do near chance.

    Raises:
        ContentError: a malformed or duplicate record; nothing else can be checked then.
    """
    card, cases = load_card(content), load_suite(content)
    facts: list[tuple[str, str]] = [
        ("cases", f"{len(cases)}: " + ", ".join(f"{h} {len(g)}" for h, g in by_hazard(cases).items())),
        ("specialties", str(len({c.specialty for c in cases}))),
        ("genres", ", ".join(f"{k} {n}" for k, n in sorted(Counter(c.genre for c in cases).items()))),
        ("split", ", ".join(f"{k} {n}" for k, n in sorted(Counter(c.split for c in cases).items()))),
        ("test split SHA-256", split_hash(cases, "test")),
    ]
    problems = [
        *_counts(card, cases),
        *_vocabulary(card, cases),
        *_wording(card, cases),
        *_split(card, cases),
    ]
    near, readings = _chance(card, cases, scorer), second_reader(content, cases)
    facts += [
        ("a of 25 words and more", _share([len(words(c.a)) >= card.rules.long_words for c in cases])),
        *near[0],
        *readings[0],
    ]
    return Validation(facts, [*problems, *near[1], *readings[1]])


def _share(flags: Sequence[bool]) -> str:
    return f"{sum(flags)}/{len(flags)} = {sum(flags) / len(flags):.2f}"


def _counts(card: SuiteCard, cases: Sequence[Case]) -> Iterator[str]:
    found = Counter((c.hazard, c.subtype) for c in cases)
    for hazard, subtypes in card.counts.items():
        for subtype, wanted in subtypes.items():
            if found[hazard, subtype] != wanted:
                yield f"{hazard}/{subtype} has {found[hazard, subtype]} cases, the card says {wanted}"
    factors = Counter(c.factor for c in cases)
    for factor, wanted in ((10.0, card.rules.tenfold), (100.0, card.rules.hundredfold)):
        if factors[factor] < wanted:
            yield f"{factors[factor]} cases have factor {factor:g}, the card asks for {wanted}"
    for case in cases:
        if (case.factor is not None) != (case.hazard == "numerical"):
            yield f"{case.id}: factor belongs to numerical cases, and to all of them"


def _vocabulary(card: SuiteCard, cases: Sequence[Case]) -> Iterator[str]:
    for case in cases:
        if case.specialty not in card.specialties:
            yield f"{case.id}: specialty {case.specialty!r} is not on the card"
        if case.genre not in card.genres:
            yield f"{case.id}: genre {case.genre!r} is not on the card"
    if len({c.specialty for c in cases}) < card.rules.specialties:
        yield f"fewer than {card.rules.specialties} specialties"
    for genre in card.genres:
        if not any(c.genre == genre for c in cases):
            yield f"no case of genre {genre}"
    long = [len(words(c.a)) >= card.rules.long_words for c in cases]
    if sum(long) < card.rules.long_share * len(cases):
        wanted = f"{card.rules.long_words} words in {card.rules.long_share:.2f}"
        yield f"only {_share(long)} of a are long, the card asks for {wanted}"


def _wording(card: SuiteCard, cases: Sequence[Case]) -> Iterator[str]:
    for hazard, group in by_hazard(cases).items():
        balanced = [c.stratum == "balanced" for c in group]
        if sum(balanced) < card.rules.balanced_share * len(group):
            yield f"{hazard}: balanced {_share(balanced)}, the card asks for {card.rules.balanced_share:.2f}"
        swaps = [_single_word(c) for c in group]
        if sum(swaps) > card.rules.single_word_share * len(group):
            limit = card.rules.single_word_share
            yield f"{hazard}: a_same is a single-word swap in {_share(swaps)}, at most {limit:.2f}"
    seen: dict[tuple[str, ...], str] = {}
    for case in cases:
        for name in SENTENCES:
            key = words(getattr(case, name))
            if key in seen:
                yield f"{case.id}.{name}: the same sentence as {seen[key]}"
            seen[key] = f"{case.id}.{name}"
    lemmas = {c.id: _lemmas(c.a) for c in cases}
    for (x, left), (y, right) in combinations(lemmas.items(), 2):
        overlap = len(left & right) / len(left | right)
        if overlap > card.rules.lemma_jaccard:
            yield f"{x} and {y}: lemma Jaccard of a is {overlap:.2f}, at most {card.rules.lemma_jaccard:.2f}"


def _single_word(case: Case) -> bool:
    return edit_distance(case.a, case.a_same) == 1 and len(words(case.a)) == len(words(case.a_same))


def _lemmas(text: str) -> frozenset[str]:
    try:
        import simplemma
    except ImportError as error:
        raise MissingDependency(
            "validating the suite", "simplemma", "pip install 'clinsafe[suite]'"
        ) from error
    return frozenset(str(simplemma.lemmatize(word, lang="en")) for word in words(text))


def _split(card: SuiteCard, cases: Sequence[Case]) -> Iterator[str]:
    for hazard, group in by_hazard(cases).items():
        dev = sum(c.split == "dev" for c in group)
        if dev != round(len(group) / 3):
            yield f"{hazard}: {dev} dev cases of {len(group)}, one in three is {round(len(group) / 3)}"
        for subtype, n in card.counts[hazard].items():
            part = sum(c.split == "dev" and c.subtype == subtype for c in group)
            if not n // 3 <= part <= -(-n // 3):
                yield f"{hazard}/{subtype}: {part} dev cases of {n}, the split is not stratified"
    if split_hash(cases, "test") != card.test_split_sha256:
        yield "the test split is not the frozen one (test_split_sha256); a change needs a new suite_version"


def _chance(
    card: SuiteCard, cases: Sequence[Case], scorer: PairScorer
) -> tuple[list[tuple[str, str]], list[str]]:
    """How well shared words alone tell same meaning from contradiction. 0.50 is chance."""
    found = figures(score_with_scorer(scorer, cases), None)
    facts, problems = [], []
    for hazard in [*by_hazard(cases), "all"]:
        auroc = found[f"suite.{hazard}.auroc@stratum=balanced"]
        inversion = found[f"suite.{hazard}.inversion"]
        pairwise = found[f"suite.{hazard}.pairwise@stratum=balanced"]
        if not (
            isinstance(auroc, Estimate) and isinstance(inversion, Estimate) and isinstance(pairwise, Estimate)
        ):
            problems.append(f"{hazard}: word overlap could not be measured")
            continue
        text = (
            f"balanced (n = {auroc.n}): AUROC {auroc.value:.2f}, pairwise {pairwise.value:.2f}; "
            f"all (n = {inversion.n}): inversion {inversion.value:.2f}"
        )
        facts.append((f"word overlap, {hazard}", text))
        if abs(auroc.value - 0.5) > card.rules.chance_band:
            problems.append(f"{hazard}: word overlap has AUROC {auroc.value:.2f} on the balanced stratum, "
                            f"0.50 ± {card.rules.chance_band:.2f} is asked for")  # fmt: skip
    return facts, problems
