"""What the guard gives back: every passage that was retrieved, with what was found, decided and not checked.

The filters report (`Finding`), the policy decides (`Action`), the log records. Nothing is dropped: a passage stands in
`GuardedAnswer.passages` or in `GuardedAnswer.withheld`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol, TypeAlias

from clinsafe.protocols import Finding, Passage

Action: TypeAlias = Literal["keep", "flag", "demote", "withhold", "escalate"]
"""What is done with a passage, the gravest that anything asks for.

``keep`` shows it, ``flag`` shows it with its findings, ``demote`` shows it behind those that are kept and never beyond
k, ``withhold`` takes it out of the passages and hands it back in `GuardedAnswer.withheld`, ``escalate`` shows it with
its findings and asks for a person.
"""
ACTIONS: tuple[Action, ...] = ("keep", "flag", "demote", "withhold", "escalate")

Stance: TypeAlias = Literal["affirms", "denies", "uncertain", "silent"]
"""A passage's answer to a question. Silence is not denial (decision D2)."""

Evidence: TypeAlias = Literal["query", "superseded", "trusted"]
"""What an action rests on. Only the last two do not depend on the query, and only they may withhold (decision D3)."""


@dataclass(frozen=True, slots=True)
class Disagreement:
    """Two passages that contradict each other on what is asked; neither side is demoted for it (decision D2).

    Attributes:
        first, second: passage ids, in the order of retrieval.
        findings: what contradicts what; `Finding.query_span` lies in the first passage, `passage_span` in the second.
        superseding: id of the later of two dated passages of one subject, "" where that is not known.
    """

    first: str
    second: str
    findings: tuple[Finding, ...]
    superseding: str = ""


@dataclass(frozen=True, slots=True)
class Confirmation:
    """A critical number that a person has to confirm before it is used.

    Attributes:
        passage: id of the passage it stands in.
        span: where, as (start, end) characters of the passage's text.
        value: as written there.
        prompt: the question to put to the reader, one sentence.
    """

    passage: str
    span: tuple[int, int]
    value: str
    prompt: str


@dataclass(frozen=True, slots=True)
class GuardedPassage:
    """One passage with all that is known of it.

    Attributes:
        passage: as the retriever gave it, text unchanged; an id was made where it had none of its own.
        rank: 1-based place among the passages shown; 0 where it is withheld.
        retrieved_rank: 1-based place in what the retriever gave.
        action: the gravest action.
        reasons: why, one line each, findings first.
        findings: conflicts with the query, also those below the policy's notice.
        stance: answer to the question; None where the query is a claim, or could not be read.
        confidence: of the check in [0, 1]: the surest finding's, or 1.0 where nothing was found; 0.0 where a filter did
            not look.
        unchecked: filter name -> why it did not look. An unchecked passage is never a safe one.
        annotated: the text for the generator: the passage with certainty, quantity and polarity marked, under a line
            that says what was found. It holds the passage's whole text.
    """

    passage: Passage
    rank: int
    retrieved_rank: int
    action: Action
    reasons: tuple[str, ...] = ()
    findings: tuple[Finding, ...] = ()
    stance: Stance | None = None
    confidence: float = 1.0
    unchecked: Mapping[str, str] = field(default_factory=dict)
    annotated: str = ""

    @property
    def flagged(self) -> bool:
        """Whether a reader is told that something is wrong with it, or that it was not checked."""
        return self.action != "keep" or bool(self.unchecked)

    @property
    def source(self) -> str:
        """Where it comes from."""
        return self.passage.source


@dataclass(frozen=True, slots=True)
class GuardedAnswer:
    """The guard's answer to one query.

    Attributes:
        query: as asked.
        question: whether it asks (decision D2); a claim is compared in all that it says.
        passages: those shown, best first, never more than k.
        withheld: those taken out, with the reason.
        disagreements: pairs of passages that contradict each other.
        confirmations: critical numbers a person has to confirm.
        review: why a person has to look, one line each.
        notes: what else the reader should know: "absence not verified", what the retriever did wrong.
        unchecked: what was not checked at all, one line each (``disagreements: ran out of time``).
        not_run: what this guard has not got, one line each (no NLI model); nothing went wrong.
        policy: name of the policy.
        policy_sha256: of its file.
        seconds: what the guard added, the retriever's own time left out.
    """

    query: str
    question: bool
    passages: tuple[GuardedPassage, ...]
    withheld: tuple[GuardedPassage, ...] = ()
    disagreements: tuple[Disagreement, ...] = ()
    confirmations: tuple[Confirmation, ...] = ()
    review: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    unchecked: tuple[str, ...] = ()
    not_run: tuple[str, ...] = ()
    policy: str = ""
    policy_sha256: str = ""
    seconds: float = 0.0

    @property
    def needs_review(self) -> bool:
        """Whether a person has to look before this is used."""
        return bool(self.review)

    @property
    def safe(self) -> bool:
        """Something is shown, nothing was found in it, nothing is unchecked, nothing is left for a person to do."""
        quiet = bool(self.passages) and not any(p.flagged for p in (*self.passages, *self.withheld))
        return quiet and not (self.withheld or self.disagreements or self.unchecked or self.review)

    @property
    def context(self) -> str:
        """All annotated passages, for a prompt; what is withheld is named, its text is not given."""
        parts = [p.annotated for p in self.passages]
        parts += [
            f"[clinsafe | WITHHELD {_line(p.passage.id)} | {_line('; '.join(p.reasons))}]"
            for p in self.withheld
        ]
        parts += [f"[clinsafe | note: {_line(note)}]" for note in self.notes]
        return "\n\n".join(parts)


def _line(text: str) -> str:
    """One line that cannot close its bracket: an id comes from whoever wrote the passage."""
    return " ".join(text.translate({ord("["): "(", ord("]"): ")"}).split())


class Guard(Protocol):
    """Checks what a retriever gave. Framework adapters are handed one of these."""

    def check(self, query: str, passages: object, /, *, k: int | None = None) -> GuardedAnswer:
        """Guard these passages for this query. Never raises for what the passages hold.

        Args:
            passages: what a retriever returned: passages, mappings with ``text``, plain strings; anything else, also
                None, is an answer without passages and with a note.
            k: at most so many are shown; None shows all.
        """
        ...
