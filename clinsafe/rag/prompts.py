"""Prompts as versioned content, and passages fenced so that no text can pose as the end of its fence.

A fence carries a code that is made from everything that stands in the prompt and occurs in none of it. So a passage
that writes an end of its own, a next passage or an instruction stays inside of its own fence, whole and verbatim.
"""

from __future__ import annotations

import hashlib
import json
import string
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, Field, model_validator

from clinsafe.content import Content, Record
from clinsafe.rag.item import TASKS, Task
from clinsafe.rag.question import Question

FILE = "benchmarks/rag/prompts.yaml"
Setting: TypeAlias = Literal["rag", "direct", "long-context"]
SETTINGS: tuple[Setting, ...] = ("rag", "direct", "long-context")
LONGEST_ID = 80  # characters of a passage's id that are shown
CODE = 8  # hex digits
_FENCE = "1"  # version of how passages are fenced; part of every prompt's hash


def _placeholders(text: str) -> list[str]:
    """Names in braces, in their order; ValueError: a brace that is none, or a name with a format."""
    found = []
    for _, name, form, conversion in string.Formatter().parse(text):
        if name is None:
            continue
        if not name.isidentifier() or form or conversion:
            raise ValueError(
                f"{{{name[:40]}}} is no placeholder; a brace that is meant as one is written twice"
            )
        found.append(name)
    return found


def _plain(text: str) -> str:
    if not text.strip():
        raise ValueError("is empty")
    if _placeholders(text):
        raise ValueError("takes no placeholder")
    return text


def _coded(text: str) -> str:
    if _placeholders(text) != ["code"]:
        raise ValueError("needs {code} once, and takes no other placeholder")
    return text


class PromptText(Record):
    """One prompt.

    Attributes:
        id, version: as they stand in a trace.
        setting: what is shown.
        task: type of task.
        text: with {question}, {context} unless the setting is direct, {options} for a choice; {abstention} if wanted.
    """

    id: Annotated[str, Field(pattern=r"^[a-z][a-z0-9_]{0,59}$")]
    version: Annotated[str, Field(pattern=r"^[\w.\-]{1,20}$")]
    setting: Setting
    task: Task
    text: Annotated[str, Field(min_length=1)]

    @model_validator(mode="after")
    def _whole(self) -> PromptText:
        found = _placeholders(self.text)
        needed = {"question"}
        needed |= {"context"} if self.setting != "direct" else set()
        needed |= {"options"} if self.task == "mcq" else set()
        for name in sorted(needed):
            if found.count(name) != 1:
                raise ValueError(f"prompt {self.id}: {{{name}}} must stand in its text once")
        if other := sorted(set(found) - needed - {"abstention"}):
            valid = ", ".join(f"{{{name}}}" for name in sorted(needed | {"abstention"}))
            raise ValueError(f"prompt {self.id}: no placeholder {{{other[0]}}} here; valid: {valid}")
        return self


class Prompts(Record):
    """``benchmarks/rag/prompts.yaml``: exactly one prompt for each setting and type of task.

    Attributes:
        abstention: how to decline; stands for {abstention}.
        quoted: what passages are, said above them, with {code}.
        guarded: what the guard's marks are, said above guarded passages.
    """

    prompts_version: str
    abstention: Annotated[str, AfterValidator(_plain)]
    quoted: Annotated[str, AfterValidator(_coded)]
    guarded: Annotated[str, AfterValidator(_plain)]
    prompts: tuple[PromptText, ...]

    @model_validator(mode="after")
    def _one_of_each(self) -> Prompts:
        there = [(one.setting, one.task) for one in self.prompts]
        for wanted in ((setting, task) for setting in SETTINGS for task in TASKS):
            if there.count(wanted) != 1:
                raise ValueError(
                    f"there must be one prompt for setting {wanted[0]} and task {wanted[1]}, not {there.count(wanted)}"
                )
        if len({one.id for one in self.prompts}) != len(self.prompts):
            raise ValueError("two prompts have the same id")
        return self

    def of(self, setting: Setting, task: Task) -> PromptText:
        """The prompt of a setting for a type of task."""
        return next(one for one in self.prompts if (one.setting, one.task) == (setting, task))

    def version(self, prompt: PromptText) -> str:
        """``rag_mcq@1 sha256:…``: over every word that this prompt puts around passages and question."""
        words = [_FENCE, prompt.text, self.abstention, self.quoted, self.guarded]
        return f"{prompt.id}@{prompt.version} sha256:{hashlib.sha256(json.dumps(words).encode()).hexdigest()}"

    @property
    def versions(self) -> dict[str, str]:
        """Id -> version of all prompts."""
        return {one.id: self.version(one) for one in self.prompts}


@dataclass(frozen=True, slots=True)
class Shown:
    """A passage as it goes into a prompt: its id and its text, which is not changed."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt that is ready to be sent.

    Attributes:
        text: all of it.
        spans: of each passage's text, in the order given: ``text[start:end]`` is the passage.
        version: of the words around it.
    """

    text: str
    spans: tuple[tuple[int, int], ...]
    version: str


def load_prompts(content: Content) -> Prompts:
    """The prompts; an overlay's file wins.

    Raises:
        ContentError: with file, line and field.
    """
    return content.yaml(FILE, Prompts)


def task_of(question: Question) -> Task:
    """The question's own type of task; where it has none: a choice where it has options, else a short answer.

    A choice without options is asked as a short answer: there is nothing to choose from.
    """
    if question.options:
        return question.task or "mcq"
    return "short_answer" if question.task in (None, "mcq") else question.task


def build(
    prompts: Prompts,
    setting: Setting,
    question: Question,
    passages: Sequence[Shown] = (),
    guard: str | None = None,
) -> Prompt:
    """The prompt for a question.

    Args:
        passages: best first; a direct prompt shows none.
        guard: the guard's own notes, for passages that it marked; None where no guard was at work.
    """
    chosen = prompts.of(setting, task_of(question))
    options = _options(question.options or {})
    context, spans = "", list[tuple[int, int]]()
    if setting != "direct":
        context, spans = _context(prompts, question, options, passages, guard)
    values = {
        "context": context, "question": question.text.strip(), "options": options, "abstention": prompts.abstention,
    }  # fmt: skip
    text, at = "", 0
    for piece, name in _pieces(chosen.text.strip()):
        text += piece
        if name == "context":
            at = len(text)
        text += values[name] if name else ""
    found = tuple((start + at, end + at) for start, end in spans)
    return Prompt(text, found, prompts.version(chosen))


def _pieces(text: str) -> Iterator[tuple[str, str]]:
    """(words, placeholder or "") in one pass: a value that holds braces is not filled in again."""
    for words, name, _, _ in string.Formatter().parse(text):
        yield words, name or ""


def _context(
    prompts: Prompts, question: Question, options: str, passages: Sequence[Shown], guard: str | None
) -> tuple[str, list[tuple[int, int]]]:
    words = [question.text, options, guard or "", *(part for one in passages for part in (one.id, one.text))]
    code = _code(words)
    parts = [prompts.quoted.replace("{code}", code)]
    if guard is not None:
        parts.append(prompts.guarded)
    text = "\n".join(parts) + "\n\n"
    spans = []
    for number, one in enumerate(passages, start=1):
        text += f"[passage {number} | {_line(one.id)} | {code}]\n"
        spans.append((len(text), len(text) + len(one.text)))
        text += f"{one.text}\n[end of passage {number} | {code}]\n\n"
    if not passages:
        text += f"[no passage was found | {code}]\n\n"
    if guard:
        text += f"[notes of the checker | {code}]\n{guard}\n[end of the notes | {code}]\n\n"
    return text.rstrip("\n"), spans


def _code(words: Sequence[str]) -> str:
    """Hex digits that stand in none of the texts, not even by chance or by design; the same texts get the same."""
    joined, number = "\n".join(words).lower(), 0
    while True:
        made = hashlib.sha256(json.dumps([number, *words]).encode()).hexdigest()[:CODE]
        if made not in joined:
            return made
        number += 1


def _options(options: Mapping[str, str]) -> str:
    return "\n".join(name if name == text else f"{name}. {text}" for name, text in options.items())


def _line(name: str) -> str:
    """An id on one line that cannot close its bracket: it comes from whoever wrote the corpus."""
    shown = "".join(letter if letter.isprintable() else "?" for letter in name[:LONGEST_ID])
    return shown.translate({ord("["): "(", ord("]"): ")", ord("|"): "/"})
