"""What all rule packs share: ids that are unique, patterns that compile, and faults told by file, line and field."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, TypeVar

import yaml
from pydantic import AfterValidator, Field

from clinsafe.content import LOADER, Content, Record
from clinsafe.errors import ContentError


def _compiles(pattern: str) -> str:
    try:
        re.compile(pattern)
    except re.error as error:
        raise ValueError(f"not a valid regular expression: {error}") from error
    return pattern


RuleId = Annotated[str, Field(pattern=r"^[a-z][a-z0-9_.-]*$", max_length=60)]
Regex = Annotated[str, AfterValidator(_compiles)]
P = TypeVar("P", bound=Record)


def load_pack(content: Content | None, name: str, model: type[P]) -> P:
    """One rule pack (``mitigations/negation.yaml``), every ``id`` in it unique.

    Raises:
        ContentError: file, line and field of the first fault.
    """
    content = content or Content()
    pack = content.yaml(f"mitigations/{name}.yaml", model)
    path = content.path(f"mitigations/{name}.yaml")
    _unique_ids(path, path.read_text(encoding="utf-8"))
    return pack


@lru_cache(maxsize=32)  # as `Content.yaml` keeps what it read
def _unique_ids(path: Path, text: str) -> None:
    seen: dict[str, int] = {}
    waiting = [yaml.compose(text, Loader=LOADER)]
    while waiting:
        node = waiting.pop(0)
        if isinstance(node, yaml.SequenceNode):
            waiting += node.value
        elif isinstance(node, yaml.MappingNode):
            for key, value in node.value:
                if key.value == "id" and isinstance(value, yaml.ScalarNode):
                    line = value.start_mark.line + 1
                    if value.value in seen:
                        where = (
                            f"the rule id {value.value!r} is given twice, first in line {seen[value.value]}"
                        )
                        raise ContentError(path, line, "id", where)
                    seen[value.value] = line
                waiting.append(value)
