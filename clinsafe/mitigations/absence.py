"""Topics of which "no" is never proof: a denial about them carries a note. Words: ``mitigations/absence.yaml``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from pydantic import Field

from clinsafe.content import Content, Record
from clinsafe.guarded import Stance
from clinsafe.mitigations.asking import as_claim
from clinsafe.mitigations.pack import RuleId, load_pack
from clinsafe.text import Reading
from clinsafe.text.vocabulary import Vocabulary, Words, load_vocabulary

NOTE = "absence not verified"


class Topic(Record):
    """One topic.

    Attributes:
        id: unique in the file.
        note: what the reader is told, behind "absence not verified: ".
        words: words and phrases that ask for the thing, matched by the reader's keys.
        reverse: those that ask for its absence ("safe" asks for no contraindication).
    """

    id: RuleId
    note: str = Field(min_length=1, max_length=300)
    words: tuple[Words, ...] = Field(min_length=1)
    reverse: tuple[Words, ...] = ()


class AbsenceFile(Record):
    """``mitigations/absence.yaml``; `negators` turn what is asked round ("is there no allergy")."""

    negators: tuple[Words, ...]
    topics: tuple[Topic, ...]


Keys = tuple[frozenset[str], ...]


@dataclass(frozen=True, slots=True)
class AbsencePack:
    """The file as look-up tables.

    Attributes:
        negators: lower-cased words.
        topics: note, keys of each phrase that asks for the thing, keys of each that asks for its absence.
    """

    negators: frozenset[str]
    topics: tuple[tuple[str, Keys, Keys], ...]


def load_absence(content: Content | None = None) -> AbsencePack:
    """The packaged topics, or an overlay's.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    file = load_pack(content, "absence", AbsenceFile)
    vocabulary = load_vocabulary(content)
    return AbsencePack(
        frozenset(word.lower() for word in file.negators),
        tuple(
            (one.note, _keys(one.words, vocabulary), _keys(one.reverse, vocabulary)) for one in file.topics
        ),
    )


def absence_notes(reading: Reading, stances: Sequence[Stance | None], pack: AbsencePack) -> tuple[str, ...]:
    """What to tell where every passage that answers says that there is none.

    Args:
        reading: the query.
        stances: of the passages; None for one that was not read, which is silent.

    Returns:
        One line for each topic that is asked about. None where a passage says that there is one or leaves it open, and
        none where all are silent: silence is not denial.
    """
    claim = as_claim(reading)
    said = {stance for stance in stances if stance in ("affirms", "denies", "uncertain")}
    if claim is None or len(said) != 1 or "uncertain" in said:
        return ()
    keys = frozenset().union(*(sentence.keys for sentence in claim.sentences))
    turned = _turns(claim, pack)
    notes = []
    for note, words, reverse in pack.topics:
        straight, back = _named(words, keys), _named(reverse, keys)
        if not straight and not back:
            continue
        absent = "affirms" if (back and not straight) != turned else "denies"
        if absent in said:
            notes.append(f"{NOTE}: {note}")
    return tuple(notes)


def _turns(claim: Reading, pack: AbsencePack) -> bool:
    """Whether the claim is that there is none; spelled-out forms ("NKDA") count as they are read."""
    words = [token.lower for sentence in claim.sentences for token in sentence.tokens]
    return sum(word in pack.negators for word in words) % 2 == 1


def _named(phrases: Keys, keys: frozenset[str]) -> bool:
    return any(phrase <= keys for phrase in phrases)


def _keys(phrases: Sequence[str], vocabulary: Vocabulary) -> Keys:
    found = []
    for phrase in phrases:
        keys = frozenset(token.key for token in vocabulary.tokens(phrase, 0, len(phrase)) if token.key)
        if keys:
            found.append(keys)
    return tuple(found)
