"""From a rubric and a task to one prompt. Untrusted text stands between fences that it cannot close.

One message of the user, no system message: the templates of some open models know no other role and refuse two messages
of one kind in a row.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator

from clinsafe.protocols import JudgeTask
from clinsafe.rag.judging.rubrics import Rubric

NAMES = {"question": "QUESTION", "answer": "ANSWER", "reference": "REFERENCE"}


def prompt(rubric: Rubric, task: JudgeTask) -> str:
    """The whole prompt; the same for the same rubric and task."""
    parts = list(_parts(rubric, task))
    fence = _fence([text for _, text in parts])
    shown = "\n\n".join(f"{name}\n<<<{fence}\n{text}\n{fence}>>>" for name, text in parts)
    rules = "\n".join(f"- {rule.strip()}" for rule in rubric.rules)
    anchors = "\n".join(f"{score}: {meaning.strip()}" for score, meaning in rubric.anchors.items())
    verdicts = "\n".join(
        f"{name}: score from {low:g} to {high:g}" for name, (low, high) in rubric.verdicts.items()
    )
    schema = json.dumps(rubric.schema_of_answer, separators=(",", ":"))
    return (
        f"{rubric.about.strip()}\n\n{rubric.task.strip()}\n\nRules\n{rules}\n\nScores\n{anchors}\n\n"
        f"Verdicts\n{verdicts}\n\nThe texts stand between <<<{fence} and {fence}>>>.\n\n{shown}\n\n"
        f"Answer with one JSON object and nothing else. Its schema:\n{schema}"
    )


def again(first: str, fault: str) -> str:
    """The prompt for the second try: the first one, and what of the answer's form was wrong, in our words."""
    return f"{first}\n\nAn earlier answer could not be used: {fault}. Answer with one JSON object of that schema."


def _parts(rubric: Rubric, task: JudgeTask) -> Iterator[tuple[str, str]]:
    for part in rubric.shows:
        if part == "contexts":
            for number, text in enumerate(task.contexts, start=1):
                yield f"PASSAGE {number}", text
        elif text := getattr(task, part):
            yield NAMES[part], text


def _fence(texts: list[str]) -> str:
    """A word that occurs in none of the texts, the same one for the same texts."""
    seed = json.dumps(texts).encode()
    while True:
        seed = hashlib.sha256(seed).digest()
        word = f"TEXT-{seed.hex()[:12]}"
        if not any(word in text for text in texts):
            return word
