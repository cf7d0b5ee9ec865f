"""What a framework's documents carry of a guarded answer, whatever the framework.

Most generators join the documents' text and look at nothing else. So the text is the annotated one, and what concerns
the answer as a whole (a person has to look, passages contradict each other, one was withheld) stands in a *notice*, a
first document of its own. It is no prefix of the first passage: a reader could take it for that source's words, there
is nothing to put it before where everything was withheld, and a reranker would weigh the passage by it. Everything
also stands as plain JSON in every document's metadata, so that no step after the guard can lose it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from clinsafe.adapters.retrievers import OWN, materialised, retrieved
from clinsafe.guarded import Guard, GuardedAnswer, GuardedPassage

PASSAGE, ANSWER, NOTICE = OWN
NOTICE_ID = "clinsafe-notice"
BEYOND = "content other than text"
LONGEST = 600  # characters of a line of the notice; the metadata holds all of it


@dataclass(frozen=True, slots=True)
class Checked:
    """An answer, and what each of its passages was made of.

    Attributes:
        answer: with the notes on what the retriever did wrong.
        items: passage id -> the framework's own document or node.
        data: `answer_json` of the answer.
    """

    answer: GuardedAnswer
    items: dict[str, Any]
    data: dict[str, Any]

    def item(self, passage: GuardedPassage) -> Any:
        """The document or node; None where the guard handed on a passage of its own."""
        return self.items.get(passage.passage.id)


def checked(
    guard: Guard, query: str, raw: object, k: int | None, beyond: Callable[[Any], str] | None = None
) -> Checked:
    """Guard what a framework's retriever returned.

    Args:
        guard: does the checking.
        query: what is asked or claimed.
        raw: what was returned.
        k: at most so many are shown.
        beyond: what an item holds besides text (``an image``), "" for none; no filter reads that, and it is said.
    """
    found = retrieved(materialised(raw))
    items = {passage.id: item for passage, item in zip(found.passages, found.items, strict=True)}
    answer = guard.check(query, found.passages, k=k)
    answer = replace(answer, notes=tuple(dict.fromkeys((*found.notes, *answer.notes))))
    if beyond is not None:
        answer = _with_beyond(answer, {name: why for name, item in items.items() if (why := beyond(item))})
    return Checked(answer, items, answer_json(answer))


def _with_beyond(answer: GuardedAnswer, held: dict[str, str]) -> GuardedAnswer:
    def told(row: GuardedPassage) -> GuardedPassage:
        why = held.get(row.passage.id)
        if why is None:
            return row
        line = f"[NOT CHECKED: this document also holds {why}]"
        return replace(
            row,
            unchecked={**row.unchecked, BEYOND: why},
            confidence=0.0,
            annotated=f"{line}\n{shown_text(row)}",
        )

    shown = {row.passage.id for row in (*answer.passages, *answer.withheld)}
    lines = tuple(
        f"passage {name}: holds {why}, which no filter reads" for name, why in held.items() if name in shown
    )
    return replace(
        answer,
        passages=tuple(told(row) for row in answer.passages),
        withheld=tuple(told(row) for row in answer.withheld),
        unchecked=(*answer.unchecked, *lines),
        review=(*answer.review, *(f"not checked: {line}" for line in lines)),
    )


def shown_text(row: GuardedPassage) -> str:
    """The text for the generator. A guard that annotates nothing still cannot make a flagged passage look clean."""
    if row.annotated or not row.flagged:
        return row.annotated or row.passage.text
    why = [*row.reasons, *(f"NOT CHECKED, {name}: {reason}" for name, reason in row.unchecked.items())]
    return f"[{row.action}: {_line('; '.join(why))}]\n{row.passage.text}"


def notice(answer: GuardedAnswer) -> str:
    """What concerns the answer as a whole, for the generator; "" where there is nothing to say."""
    lines = [*_review(answer)]
    for pair in answer.disagreements:
        later = f" ({pair.superseding} is the later one)" if pair.superseding else ""
        what = f": {pair.findings[0].sentence}" if pair.findings else ""
        lines.append(f"passages {pair.first} and {pair.second} contradict each other{later}{what}")
    lines += [f"passage {row.passage.id} was withheld: {'; '.join(row.reasons)}" for row in answer.withheld]
    lines += [
        f"not checked: {line}" for line in answer.unchecked if f"not checked: {line}" not in answer.review
    ]
    lines += [confirmation.prompt for confirmation in answer.confirmations]
    lines += answer.notes
    if not lines:
        return ""
    head = (
        "[clinsafe notice: about the passages below, not a source; do not cite it, and pass its warnings on]"
    )
    return "\n".join([head, *(f"- {_line(line)}" for line in lines)])


def _review(answer: GuardedAnswer) -> Iterator[str]:
    """Who has to look and why; a passage that is shown says why itself."""
    asked = "a person has to look at this before it is used"
    told = {row.passage.id for row in answer.passages if row.action == "escalate"}
    if told:
        yield f"{asked}: {', '.join(f'passage {name}' for name in sorted(told))}"
    told |= {row.passage.id for row in answer.withheld}
    for line in answer.review:
        if not line.startswith(tuple(f"passage {name}: " for name in told)):
            yield f"{asked}: {line}"


def passage_json(row: GuardedPassage) -> dict[str, Any]:
    """A passage's part as plain JSON: `GuardedPassage` without ``annotated``, with ``id``, ``source``, ``original``."""
    data: dict[str, Any] = _adapter(GuardedPassage).dump_python(
        row, mode="json", warnings="none", exclude={"annotated", "passage"}
    )
    passage = row.passage
    return {
        "id": passage.id,
        "source": passage.source,
        "score": passage.score,
        **data,
        "original": passage.text,
    }


def answer_json(answer: GuardedAnswer) -> dict[str, Any]:
    """The answer as plain JSON, its passages left out: each document carries its own."""
    data: dict[str, Any] = _adapter(GuardedAnswer).dump_python(
        answer, mode="json", warnings="none", exclude={"passages", "withheld"}
    )
    data["withheld"] = [passage_json(row) for row in answer.withheld]
    return {**data, "needs_review": answer.needs_review, "safe": answer.safe}


def passage_metadata(own: Any, row: GuardedPassage, data: dict[str, Any]) -> dict[str, Any]:
    """A document's own metadata with ours; whatever it says in our name is overwritten or taken out."""
    kept = {key: value for key, value in dict(own or {}).items() if key not in OWN}
    return {**kept, PASSAGE: passage_json(row), ANSWER: deepcopy(data)}


def notice_metadata(data: dict[str, Any]) -> dict[str, Any]:
    """Metadata of the notice."""
    return {"source": "clinsafe", NOTICE: True, ANSWER: deepcopy(data)}


def _line(text: str) -> str:
    """One bounded line: an id or a reason cannot begin a line of its own, nor push the passages out of a prompt."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else f"{line[: LONGEST - 1]}…"


@lru_cache(maxsize=2)
def _adapter(kind: type[Any]) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(kind)
