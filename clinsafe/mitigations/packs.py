"""The controlled words that the guard needs beside the filters' own."""

from __future__ import annotations

from dataclasses import dataclass

from clinsafe.content import Content
from clinsafe.mitigations.absence import AbsencePack, load_absence
from clinsafe.mitigations.annotation import Words, load_words
from clinsafe.mitigations.confirmation import Pack, load_confirmation


@dataclass(frozen=True, slots=True)
class Packs:
    """Words of the marks, what a critical number is, and topics whose absence has to be verified."""

    words: Words
    critical: Pack
    absence: AbsencePack


def load_packs(content: Content) -> Packs:
    """All three files, an overlay's where it has them.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    return Packs(load_words(content), load_confirmation(content), load_absence(content))
