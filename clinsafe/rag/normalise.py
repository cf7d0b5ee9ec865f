"""Medical normalisation of contexts, answers and references (RAG-X, section III-B): steps that can be switched off.

Applied to what was normalised already it changes nothing. Lists are told from line ends: `Normaliser.lines` keeps them.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from clinsafe.content import Content
from clinsafe.errors import UsageError
from clinsafe.rag.normalising.abbreviations import Expander, load_expander
from clinsafe.rag.normalising.ages import AgeThresholds, age_thresholds
from clinsafe.rag.normalising.gate import lowered, pieces
from clinsafe.rag.normalising.gender import GenderPhrases, gender_phrases
from clinsafe.rag.normalising.letters import LowerCase, lower_case, tidy
from clinsafe.rag.normalising.wordlist import load_words
from clinsafe.rag.settings import STEPS, Step

REMEMBERED = 20_000  # texts
REMEMBERED_CHARACTERS = 20_000_000
_LONG = 20_000  # characters of a text that is not remembered


@dataclass(slots=True)
class Normaliser:
    """Applies the steps that are on; remembers what it has seen. One for each run.

    Signs and spaces are made one first, so that the other steps see them; lower case is last, because abbreviations are
    told by their capitals.

    Attributes:
        steps: the steps that are on, in the order of `clinsafe.rag.settings.STEPS`.
        texts: how many texts were normalised, repeated ones each time.
    """

    steps: tuple[Step, ...]
    texts: int = 0
    _expander: Expander | None = field(default=None, repr=False)
    _ages: AgeThresholds | None = field(default=None, repr=False)
    _gender: GenderPhrases | None = field(default=None, repr=False)
    _lower: LowerCase | None = field(default=None, repr=False)
    _gate: frozenset[bytes] = field(default=frozenset(), repr=False)
    _changed: dict[Step, int] = field(default_factory=dict, repr=False)
    _seen: dict[str, tuple[str, tuple[Step, ...]]] = field(default_factory=dict, repr=False)
    _size: int = field(default=0, repr=False)

    def normalise(self, text: str) -> str:
        """The text after all steps, on one line where whitespace is one of them."""
        self.texts += 1
        known = self._seen.get(text)
        if known is None:
            known = self._apply(text)
            self._remember(text, known)
        for step in known[1]:
            self._changed[step] = self._changed.get(step, 0) + 1
        return known[0]

    def lines(self, text: str) -> str:
        """Each line by itself, line ends kept, empty lines left out: for answers that are lists."""
        made = (self.normalise(line) for line in text.splitlines())
        return "\n".join(line for line in made if line and not line.isspace())

    def report(self) -> Mapping[str, int]:
        """Step -> how many of `texts` it changed, for each step that is on."""
        return {step: self._changed.get(step, 0) for step in self.steps}

    def _apply(self, text: str) -> tuple[str, tuple[Step, ...]]:
        changed: list[Step] = []
        if "whitespace" in self.steps:
            text = self._noted("whitespace", text, tidy(text), changed)
        low = lowered(text)
        hits = self._gate.intersection(pieces(low)) if self._gate else self._gate
        if self._expander is not None:
            new = self._expander.expand(text, low, hits)
            if new is not text:
                text = self._noted("abbreviations", text, new, changed)
                low = lowered(text)
                hits = self._gate.intersection(pieces(low))
        if self._ages is not None:
            new = self._ages.unify(text, low, hits)
            if new is not text:
                text, low = self._noted("ages", text, new, changed), lowered(new)
        if self._gender is not None:
            new = self._gender.unify(text, low, hits)
            if new is not text:
                text, low = self._noted("gender", text, new, changed), lowered(new)
        if self._lower is not None:
            text = self._noted("case", text, self._lower.lower(text, low, hits), changed)
        return text, tuple(changed)

    @staticmethod
    def _noted(step: Step, old: str, new: str, changed: list[Step]) -> str:
        if new is not old and new != old:
            changed.append(step)
        return new

    def _remember(self, text: str, known: tuple[str, tuple[Step, ...]]) -> None:
        if len(text) > _LONG:
            return
        self._size += len(text) + len(known[0])
        if len(self._seen) >= REMEMBERED or self._size > REMEMBERED_CHARACTERS:
            self._seen.clear()
            self._size = len(text) + len(known[0])
        self._seen[text] = known


def normaliser(content: Content | None = None, steps: Iterable[Step] = STEPS) -> Normaliser:
    """A normaliser with these steps.

    Args:
        content: the content tree; ``benchmarks/rag/normalisation.yaml`` and ``mitigations/abbreviations.yaml`` of it.
        steps: which are on, in any order; none leaves texts as they are.

    Raises:
        UsageError: no such step.
        ContentError: a file is malformed.
    """
    content, asked = content or Content(), set(steps)
    if unknown := sorted(asked - set(STEPS)):
        raise UsageError(f"no step of normalisation is called {unknown[0]!r}; valid: {', '.join(STEPS)}")
    words, expander = load_words(content), load_expander(content)
    made = Normaliser(tuple(step for step in STEPS if step in asked))
    if "abbreviations" in asked:
        made._expander = expander
    if "ages" in asked:
        made._ages = age_thresholds(words.ages)
    if "gender" in asked:
        made._gender = gender_phrases(words.gender, words.case.kept)
    if "case" in asked:
        made._lower = lower_case(expander.lower, words.case.kept)
    gates = (made._ages, made._gender, made._lower)
    made._gate = frozenset().union(*(step.gate for step in gates if step is not None))
    if made._expander is not None:
        made._gate |= expander.openers
    return made
