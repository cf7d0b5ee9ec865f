"""From what the user wrote after ``--generator`` or ``--generator-url`` to something that answers prompts.

A generator of this module says what it is and counts tokens where it can; `clinsafe.protocols.Generator` is its part
that turns a prompt into text.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Protocol

from clinsafe.adapters import chat
from clinsafe.adapters.chat import TOKENS, ChatGenerator, Completion, NoText
from clinsafe.adapters.exchange import AccessRefused, EndpointError, EndpointGone, TextRefused
from clinsafe.adapters.local_generator import PromptTooLong, load_local
from clinsafe.errors import MissingDependency, OfflineError, UnknownModel, UsageError
from clinsafe.protocols import ModelIdentity

FAKE = "fake:extractive"

__all__ = ["LASTING", "OF_THE_PROMPT", "Answering", "Completion", "Endpoint", "Extractive", "load_generator"]


class Refused(EndpointError):
    """The service or its model declined, or its answer was filtered. It is alive all the same."""


OF_THE_PROMPT = (NoText, TextRefused, PromptTooLong, Refused)
"""Failures of one prompt: whatever answered is alive."""
LASTING = (EndpointGone, AccessRefused, UnknownModel, OfflineError, MissingDependency)
"""Failures that the next prompt would have too."""


class Answering(Protocol):
    """A `Generator` that says what it is and how many tokens it took."""

    identity: ModelIdentity

    def generate(self, prompt: str, /) -> str:
        """The answer's text."""
        ...

    def complete(self, prompt: str, /) -> Completion:
        """The answer, never without words.

        Raises:
            NoText, TextRefused, PromptTooLong, Refused: this prompt has no answer; the next one may.
            ModelError: the model failed; EndpointGone, AccessRefused, UnknownModel, OfflineError: so will the next.
        """
        ...


class Endpoint:
    """A chat endpoint with an identity.

    Args:
        inner: from `clinsafe.adapters.chat.load`.
        max_new_tokens: longest answer.
    """

    def __init__(self, inner: ChatGenerator, max_new_tokens: int = TOKENS) -> None:
        self._inner, self._most = inner, max_new_tokens
        self.identity = ModelIdentity(
            name=inner.name,
            settings={
                "generator": "OpenAI-compatible chat endpoint",
                "where": inner.where,
                "decoding": "temperature 0",
                "max_new_tokens": str(max_new_tokens),
                "weights": "not verifiable: behind an endpoint",
            },
        )

    def generate(self, prompt: str, /) -> str:
        """The answer's text; raises as `complete`."""
        return self.complete(prompt).text

    def complete(self, prompt: str, /) -> Completion:
        """The answer; raises as `Answering.complete`."""
        found = self._inner.complete(prompt, {"max_tokens": self._most})
        if found.refused:  # what came of a filtered answer is no answer
            raise Refused(f"{self._inner.where} declined to answer")
        return found


class Extractive:
    """The deterministic fake: copies the sentence of the passages that shares most words with the question.

    It shows what a chain does and never how good it is: whatever it took part in carries its mark.
    """

    identity = ModelIdentity(name=FAKE, settings={"generator": "fake"}, fake=True)
    _PASSAGE = re.compile(
        r"^\[passage \d+ \| [^\n]* (?P<code>[0-9a-f]{8})\]\n(?P<text>.*?)\n\[end of passage \d+ \| (?P=code)\]$",
        re.MULTILINE | re.DOTALL,
    )
    _WORD = re.compile(r"\w+")

    def generate(self, prompt: str, /) -> str:
        """The answer's text."""
        return self.complete(prompt).text

    def complete(self, prompt: str, /) -> Completion:
        """A sentence of the passages, or the words that decline where there is none."""
        asked = set(self._words(prompt.rpartition("\nQuestion: ")[2].partition("\n")[0]))
        texts = [match["text"] for match in self._PASSAGE.finditer(prompt)]
        sentences = [part.strip() for text in texts for part in re.split(r"(?<=[.!?])\s+|\n+", text)]
        best = max(filter(None, sentences), key=lambda one: len(asked & set(self._words(one))), default="")
        text = best or "The question cannot be answered."
        return Completion(text, usage=(len(self._words(prompt)), len(self._words(text))))

    def _words(self, text: str) -> list[str]:
        return self._WORD.findall(text.lower())


def load_generator(
    name: str | None = None,
    *,
    url: str | None = None,
    model: str = "",
    key_variable: str | None = None,
    key_file: Path | None = None,
    timeout: float = 60.0,
    max_new_tokens: int = TOKENS,
    device: str | None = None,
    dtype: str = "auto",
    offline: bool = False,
) -> Answering | None:
    """The generator that was asked for; None where none was.

    Args:
        name: folder with safetensors, ``.gguf`` file, hub id, or ``fake:extractive``.
        url, model, key_variable, key_file, timeout: of a chat endpoint, see `clinsafe.adapters.chat.load`.
        max_new_tokens: longest answer.
        device, dtype: of a local model.
        offline: use only what is on this machine.

    Raises:
        UsageError: both, half of one, or an option of the other. ModelError and its kinds, MissingDependency,
            OfflineError.
    """
    if max_new_tokens < 1:
        raise UsageError(f"an answer of {max_new_tokens} tokens cannot be asked for; at least 1")
    if url is None and (model or key_variable or key_file):
        raise UsageError("--generator-model and --generator-key-env belong to --generator-url URL")
    if url is not None and name is not None:
        raise UsageError("one generator answers: give --generator-url or --generator, not both")
    if url is not None:
        inner = chat.load(
            model, url, key_variable=key_variable, key_file=key_file, timeout=timeout, offline=offline
        )
        return Endpoint(inner, max_new_tokens)
    if name is None:
        return None
    if name == FAKE:
        return Extractive()
    if name.startswith("fake:"):
        raise UnknownModel(f"no fake generator is called {name!r}; there is {FAKE}")
    return load_local(name, device=device, dtype=dtype, max_new_tokens=max_new_tokens, offline=offline)
