"""The recipe of a mined suite: which corpora, how many cases, and what the filters knew when it was made."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field

from clinsafe.benchmarks.mining.select import Wanted
from clinsafe.benchmarks.suite import Slug
from clinsafe.content import Content, Record

FILE = "benchmarks/generated/recipe.yaml"
CARD = "benchmarks/generated/mined.card.yaml"

Share = Annotated[float, Field(gt=0, lt=1)]


class CorpusEntry(Record):
    """One corpus of the recipe.

    Attributes:
        file: its name in the data folder.
        id, text, cluster: fields of a record; see `clinsafe.corpus.Layout`. Records of one cluster are
            one source document.
        source, licence: printed wherever figures of the suite stand.
        genre, specialty: what its sentences are, for the cases.
    """

    name: Slug
    file: Annotated[str, Field(min_length=1)]
    id: str = "id"
    text: Annotated[tuple[str, ...], Field(min_length=1)] = ("text",)
    cluster: str = ""
    source: Annotated[str, Field(min_length=3)]
    licence: Annotated[str, Field(min_length=3)]
    genre: Slug = "text"
    specialty: Slug = "not-stated"


class Sizes(Record):
    """How many cases a hazard has, and what share of them anything may take; see `Wanted`."""

    dev: Annotated[int, Field(ge=1)]
    test: Annotated[int, Field(ge=1)]
    dev_share: Share
    family_share: Share
    alike: Share
    plausibility_floor: float


class Recipe(Record):
    """``benchmarks/generated/recipe.yaml``."""

    suite_version: Slug
    title: str
    language: str
    authorship: str
    second_reader: str
    clinician_review: str
    not_covered: list[str]
    seed: int
    hazards: Annotated[list[Slug], Field(min_length=1)]
    sizes: Sizes
    corpora: Annotated[list[CorpusEntry], Field(min_length=1)]

    @property
    def wanted(self) -> Wanted:
        """The sizes as the selection takes them."""
        return Wanted(
            self.sizes.dev, self.sizes.test, self.sizes.dev_share, self.sizes.family_share,
            self.sizes.plausibility_floor, self.sizes.alike, self.seed,
        )  # fmt: skip


def load_recipe(content: Content) -> Recipe:
    """The recipe.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    return content.yaml(FILE, Recipe)
