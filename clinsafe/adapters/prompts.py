"""Prompts: the words that a model was trained to see before a query and before a passage.

A model measured without its prompts is not the model that is deployed, so the text of each prompt stands
in the evidence. Where both sides get the same prompt the result is an `Encoder`; where they differ it is a
`QueryEncoder`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, runtime_checkable

from clinsafe.errors import UsageError
from clinsafe.protocols import Encoder, QueryEncoder, Vectors

PASSAGE_KEYS = ("document", "passage", "corpus")
FAMILIES = {
    "nomic": r"nomic-embed",
    "qwen": r"qwen3-embedding|gte-qwen|e5-[\w-]*instruct",
    "e5": r"(^|[/_-])e5([_-]|$)",
    "bge": r"bge-(small|base|large)-en",
}
"""Style -> what a model of that family has in its name; the first that fits counts."""


@dataclass(frozen=True, slots=True)
class Prompts:
    """What stands before each text, "" for nothing. `source` says who chose it."""

    query: str
    passage: str
    source: str

    def __bool__(self) -> bool:
        return bool(self.query or self.passage)


STYLES = {
    "nomic": Prompts("search_query: ", "search_document: ", "style nomic"),
    "e5": Prompts("query: ", "passage: ", "style e5"),
    "bge": Prompts("Represent this sentence for searching relevant passages: ", "", "style bge"),
    "gte": Prompts("", "", "style gte"),
    "qwen": Prompts(
        "Instruct: Given a web search query, retrieve relevant passages that answer the query\nQuery:",
        "",
        "style qwen",
    ),
}


@runtime_checkable
class PromptedEncoder(Protocol):
    """An encoder that must be told the prompt apart from the text, because its pooling may leave it out."""

    def encode_prompted(self, texts: Sequence[str], prompt: str, /) -> Vectors:
        """Like `Encoder.encode`, with `prompt` before each text."""
        ...


def choose(
    config_prompts: Mapping[str, str | None],
    default_prompt_name: str | None,
    *,
    style: str = "auto",
    query: str | None = None,
    passage: str | None = None,
) -> Prompts:
    """The prompts to use.

    Args:
        config_prompts: name -> text, from the model's own configuration.
        default_prompt_name: which of them the configuration puts before every text, None for none.
        style: ``auto`` takes the configuration's query and document (or passage) prompts, or else its
            default prompt for both sides; ``none`` takes none; else a key of `STYLES`.
        query: the text itself; wins over `style`, also when it is empty.
        passage: likewise for the passage side.

    Raises:
        UsageError: no such style.
    """
    if style == "auto":
        chosen = _own(config_prompts, default_prompt_name)
    elif style == "none":
        chosen = Prompts("", "", "none")
    elif style in STYLES:
        chosen = STYLES[style]
    else:
        raise UsageError(f"no prompt style {style!r}; there are: auto, none, {', '.join(STYLES)}")
    if query is None and passage is None:
        return chosen
    rest = chosen.passage if passage is None else chosen.query if query is None else ""
    return Prompts(
        query=chosen.query if query is None else query,
        passage=chosen.passage if passage is None else passage,
        source=f"given, {chosen.source}" if rest else "given",
    )


def _own(prompts: Mapping[str, str | None], default: str | None) -> Prompts:
    query = prompts.get("query") or ""
    passage = next((text for key in PASSAGE_KEYS if (text := prompts.get(key))), "")
    if not query and not passage and default is not None:
        query = passage = prompts.get(default) or ""
    return Prompts(query, passage, "model configuration" if query or passage else "none")


def hint(name: str) -> str:
    """One sentence for the report of a model in use *without* prompts, "" where its name tells of no need.

    Args:
        name: ``identity.name`` of a model whose ``settings["prompts"]`` is ``none``.
    """
    for style, pattern in FAMILIES.items():
        if re.search(pattern, name, re.IGNORECASE):
            return (
                f"{name} is by its name of a family that is trained with prompts, and it was measured without "
                f"any; --prompts {style} adds them."
            )
    return ""


def with_prompts(inner: Encoder, prompts: Prompts) -> Encoder:
    """`inner` itself where there are no prompts, else an encoder (a `QueryEncoder` where the sides differ)."""
    if not prompts:
        return inner
    return Prompted(inner, prompts) if prompts.query == prompts.passage else PromptedApart(inner, prompts)


def hinted(inner: Encoder) -> Encoder:
    """For a model without prompts: `inner` itself, or where `hint` has a sentence, with that in its settings."""
    sentence = hint(inner.identity.name)
    if not sentence or isinstance(inner, QueryEncoder):
        return inner
    return Prompted(inner, Prompts("", "", "none"), prompt_hint=sentence)


class Prompted:
    """An `Encoder` that puts the passage prompt before every text; `settings` goes into its identity."""

    def __init__(self, inner: Encoder, prompts: Prompts, **settings: str) -> None:
        self._inner, self._prompts = inner, prompts
        shown = {
            **inner.identity.settings,
            "prompts": prompts.source,
            "prompt_query": prompts.query,
            "prompt_passage": prompts.passage,
            **settings,
        }
        self.identity = replace(inner.identity, settings=shown)

    def encode(self, texts: Sequence[str], /) -> Vectors:
        """float32 (len(texts), dim), unit rows; the passage side."""
        return self._encode(texts, self._prompts.passage)

    def _encode(self, texts: Sequence[str], prompt: str) -> Vectors:
        if isinstance(self._inner, PromptedEncoder):
            return self._inner.encode_prompted(texts, prompt)
        return self._inner.encode([prompt + text for text in texts])


class PromptedApart(Prompted):
    """A `QueryEncoder`: another prompt for each side."""

    def encode_queries(self, texts: Sequence[str], /) -> Vectors:
        """float32 (len(texts), dim), unit rows; the query side."""
        return self._encode(texts, self._prompts.query)
