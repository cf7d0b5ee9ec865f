"""A limit on a figure, and what its bounds say about it: decision D5, for models and for filters alike."""

from __future__ import annotations

from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from clinsafe.content import Record
from clinsafe.stats import Figure, NotMeasured

Decision: TypeAlias = Literal["PASS", "FAIL", "INCONCLUSIVE"]
Share = Annotated[float, Field(ge=0, le=1)]


def _said(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty; say it in words, the report prints it beside the limit")
    return text


Words = Annotated[str, AfterValidator(_said)]


class Limit(Record):
    """Exactly one of `at_most` and `at_least`, and why."""

    at_most: Share | None = None
    at_least: Share | None = None
    why: Words

    @model_validator(mode="after")
    def _one_limit(self) -> Limit:
        if (self.at_most is None) == (self.at_least is None):
            raise ValueError("a gate has exactly one of at_most and at_least")
        if self.at_most == 1 or self.at_least == 0:
            raise ValueError("this limit lets everything pass, and is no gate")
        return self

    def decide(self, figure: Figure | None) -> Decision:
        """PASS, FAIL or INCONCLUSIVE."""
        if figure is None or isinstance(figure, NotMeasured) or figure.lower is None or figure.upper is None:
            return "INCONCLUSIVE"
        if self.at_most is not None:
            good, bad = figure.upper <= self.at_most, figure.lower > self.at_most
        else:
            floor = self.at_least if self.at_least is not None else 1.0
            good, bad = figure.lower >= floor, figure.upper < floor
        return "PASS" if good else "FAIL" if bad else "INCONCLUSIVE"

    @property
    def limit_text(self) -> str:
        """The limit in words."""
        return f"at most {self.at_most:g}" if self.at_most is not None else f"at least {self.at_least:g}"
