"""The local judge: no key, no network, the same answer every time.

It holds each claim against runs of as many sentences of the contexts. A claim is supported where a run is near enough
in meaning, no filter finds a conflict, and the string rules find no other number and no other polarity; or where it
stands there word for word with nothing around that turns it. What it cannot see: a fact that is added to an otherwise
supported sentence and changes its vector little ("and depression"), and support spread over two sentences.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

import numpy as np
from numpy.typing import NDArray

from clinsafe.errors import ClinsafeError
from clinsafe.protocols import Encoder, Judgement, JudgeTask, ModelIdentity, QueryEncoder
from clinsafe.rag.clash import Conflicts
from clinsafe.rag.judging import strings
from clinsafe.rag.judging.needs import failed, unanswerable, unscored
from clinsafe.rag.judging.support import (
    SUPPORTED,
    Candidate,
    LocalThresholds,
    Nli,
    candidates,
    checked,
    decide,
)
from clinsafe.rag.judging.windows import Window, sentences, windows

_BARE = frozenset({"yes", "maybe", "perhaps"})
THRESHOLDS = LocalThresholds()
VERSION = "1"  # of the rules; raised with every change of a verdict


class EncoderFault(ClinsafeError):
    """The encoder gave vectors that cannot be used."""


@dataclass(slots=True)
class _Claim:
    text: str
    windows: list[Window]
    found: list[Candidate] = field(default_factory=list)
    odds: Sequence[Sequence[float]] | None = None


@dataclass(slots=True)
class _Work:
    """One task taken apart: claims for the three that ask for support, texts for the two that ask for relevancy."""

    task: JudgeTask
    claims: list[_Claim] = field(default_factory=list)
    against: list[str] = field(default_factory=list)

    def texts(self) -> Iterable[str]:
        yield from self.against
        for claim in self.claims:
            yield claim.text
            yield from (window.text for window in claim.windows)


class LocalJudge:
    """A `Judge` from an encoder, the filters and string rules.

    Args:
        encoder: unit vectors of texts.
        conflicts: the filters; the first text is the context, the second the claim.
        nli: probabilities of an NLI model, where there is one.
        thresholds: where the lines are; those given here hold for all-MiniLM-L6-v2.
        settings: what the identity is to say of filters and NLI model.

    Attributes:
        identity: the encoder's files; thresholds, version and `settings` as settings.
    """

    def __init__(
        self,
        encoder: Encoder,
        conflicts: Conflicts,
        *,
        nli: Nli | None = None,
        thresholds: LocalThresholds = THRESHOLDS,
        settings: Mapping[str, str] | None = None,
    ) -> None:
        self._encoder, self._conflicts, self._nli, self._at = encoder, conflicts, nli, thresholds
        inner = encoder.identity
        self.identity = ModelIdentity(
            name="local",
            revision=VERSION,
            files=dict(inner.files),
            settings={
                "encoder": inner.name,
                "encoder_revision": inner.revision,
                "nli": "none" if nli is None else "given",
                **{f"threshold_{name}": f"{value:g}" for name, value in asdict(thresholds).items()},
                **(settings or {}),
            },
            fake=inner.fake,
            trusted_code=inner.trusted_code,
        )

    def rules_sha256(self, _metric: str = "", /) -> str:
        """Hash of the rules and their thresholds, which stand where another judge has a rubric."""
        return hashlib.sha256(json.dumps([VERSION, asdict(self._at)]).encode()).hexdigest()

    def judge(self, task: JudgeTask, /) -> Judgement:
        """Score one task; see `judge_many`."""
        return self.judge_many([task])[0]

    def judge_many(self, tasks: Sequence[JudgeTask], /) -> list[Judgement]:
        """Score tasks in their order; all texts are encoded in one call, a text that occurs twice once.

        The rationale holds codes and counts alone, no words of a text: ``1/2; supported negation``.
        """
        found: list[Judgement | None] = [unanswerable(task) for task in tasks]
        works = {place: _prepared(tasks[place]) for place, one in enumerate(found) if one is None}
        try:
            similarity = self._similarity(list(works.values()))
            self._weigh([claim for work in works.values() for claim in work.claims], similarity)
            for place, work in works.items():
                found[place] = self._judged(work, similarity)
        except ClinsafeError as error:  # a failure is an outcome of all that were to be judged, never a zero
            return [one or failed(type(error).__name__) for one in found]
        return [one for one in found if one is not None]

    def _similarity(
        self, works: Sequence[_Work]
    ) -> Callable[[str, Sequence[str], bool], NDArray[np.float64]]:
        """Cosines of one text with others, from vectors made here once; True for a text on the query's side."""
        texts = list(dict.fromkeys(text for work in works for text in work.texts()))
        asked = list(dict.fromkeys(work.task.question for work in works if work.against))
        two_sided = isinstance(self._encoder, QueryEncoder)
        together = texts if two_sided else list(dict.fromkeys([*texts, *asked]))
        vectors = _finite(self._encoder.encode(together), len(together)) if together else np.zeros((0, 1))
        at = {text: place for place, text in enumerate(together)}
        queries: dict[str, NDArray[np.float64]] = {}
        if asked and isinstance(self._encoder, QueryEncoder):
            queries = dict(zip(asked, _finite(self._encoder.encode_queries(asked), len(asked)), strict=True))

        def cosines(text: str, others: Sequence[str], query: bool = False) -> NDArray[np.float64]:
            own = queries[text] if query and text in queries else vectors[at[text]]
            return np.asarray(vectors[[at[other] for other in others]] @ own, dtype=np.float64)

        return cosines

    def _weigh(
        self,
        claims: Sequence[_Claim],
        similarity: Callable[[str, Sequence[str], bool], NDArray[np.float64]],
    ) -> None:
        """Find each claim's candidates; ask the NLI model, where there is one, about all of them at once."""
        floor = self._at.support if self._nli is None else min(self._at.support, 0.5)
        for claim in claims:
            cosines = similarity(claim.text, [window.text for window in claim.windows], False)
            claim.found = candidates(claim.text, claim.windows, cosines.tolist(), self._at, floor)
        if self._nli is None:
            return
        pairs = [(one.window.text, claim.text) for claim in claims for one in claim.found]
        odds = self._nli(pairs).tolist() if pairs else []
        for claim in claims:
            claim.odds, odds = odds[: len(claim.found)], odds[len(claim.found) :]

    def _judged(
        self, work: _Work, similarity: Callable[[str, Sequence[str], bool], NDArray[np.float64]]
    ) -> Judgement:
        task = work.task
        if task.metric in ("context_relevancy", "answer_relevancy"):
            best = float(similarity(task.question, work.against, True).max())
            return Judgement("scored", self._at.relevancy(best), "similarity", f"cosine {best:.3f}")
        if not work.claims:
            return unscored("no claim")
        if task.metric == "correctness":
            clash = checked(self._conflicts, task.reference or "", task.answer)
            if clash.hazards:
                return Judgement("scored", 0.0, "contradicted", "conflict:" + "+".join(clash.hazards))
        codes = [
            decide(claim.text, claim.found, self._at, self._conflicts, claim.odds) for claim in work.claims
        ]
        hits = codes.count(SUPPORTED)
        reason = SUPPORTED if hits == len(codes) else "partly" if hits else "unsupported"
        return Judgement("scored", hits / len(codes), reason, f"{hits}/{len(codes)}; {' '.join(codes)}")


def _prepared(task: JudgeTask) -> _Work:
    work = _Work(task)
    if task.metric == "context_relevancy":
        work.against = [window.text for window in windows(task.contexts, 1)]
    elif task.metric == "answer_relevancy":
        work.against = list(dict.fromkeys([*sentences(task.answer), task.answer]))
    elif task.metric == "support":
        claims = sentences(task.answer)
        text = " ".join(claims)
        work.claims = [_Claim(text, windows(task.contexts, len(claims)))] if _says(text) else []
    else:
        answer, sources = task.answer, task.contexts
        if task.metric == "correctness":  # what the reference needs, held against the answer
            answer, sources = task.reference or "", [task.answer]
        found = windows(sources, 1)
        work.claims = [_Claim(claim, found) for claim in sentences(answer) if _says(claim)]
    return work


def _says(sentence: str) -> bool:
    """Whether there is a claim in it: "Yes." says nothing without its question."""
    return bool(strings.content(sentence) - _BARE or strings.numbers(sentence))


def _finite(vectors: NDArray[np.float32], rows: int) -> NDArray[np.float32]:
    if vectors.ndim != 2 or len(vectors) != rows or not np.isfinite(vectors).all():
        raise EncoderFault("the encoder gave NaN, infinity or another number of rows than texts")
    return vectors
