"""Asking a language model, end to end: from raw passages and from the guarded context, as often as it may be asked."""

from __future__ import annotations

from collections.abc import Iterator

from clinsafe.benchmarks.endtoend import answers, figures
from clinsafe.benchmarks.endtoend.corpus import Collection, Task
from clinsafe.benchmarks.endtoend.journal import Journal
from clinsafe.benchmarks.endtoend.queries import Query
from clinsafe.benchmarks.endtoend.search import Score, Unscored, search
from clinsafe.errors import ClinsafeError, OfflineError, UnknownModel
from clinsafe.guarded import Guard
from clinsafe.protocols import Generator


def prompts(
    task: Task, score: Score, collection: Collection, guard: Guard, k: int
) -> Iterator[tuple[str, str]]:
    """(arm, prompt): one from the passages as they were retrieved, one from the guard's context; none where the query
    cannot be searched.
    """
    query = task.query.row.query
    try:
        found = search(collection, task, score(query), k, control=False)
    except Unscored:
        return
    raw = "\n\n".join(passage.text for passage in found.passages)
    yield figures.BEFORE, answers.prompt_of(query, raw)
    yield figures.AFTER, answers.prompt_of(query, guard.check(query, list(found.passages), k=k).context)


class Asked:
    """A generator behind a limit and a journal: what was answered before, or to an equal prompt, is not asked again.

    Args:
        generator: the language model.
        name: its name in the journal.
        most: prompts sent at most.
        journal: where answers are kept; failures are not.

    Attributes:
        notes: why no more were asked for.
    """

    def __init__(self, generator: Generator, name: str, most: int, journal: Journal) -> None:
        self._generator, self._name, self._most, self._journal = generator, name, most, journal
        self._left, self._over = most, ""
        self.notes: list[str] = []

    def row(self, query: Query, arm: str, prompt: str, conflicts: answers.Conflicts) -> answers.AnswerRow:
        """The answer to a prompt, judged; a failure is an outcome."""
        digest = answers.digest(prompt)
        text = self._journal.text(self._name, digest)
        if text is None:
            if not self._left and not self._over:
                self._stop(f"--max-calls {self._most} is used up")
            if self._over:
                return answers.missing(query, arm, prompt, self._over, asked=False)
            self._left -= 1
            text, reason = self._ask(prompt)
            if text is None:
                return answers.missing(query, arm, prompt, reason)
            self._journal.add_text(self._name, digest, text)
        return answers.judged(query, arm, prompt, text, conflicts)

    def _ask(self, prompt: str) -> tuple[str | None, str]:
        """(answer, "") or (None, kind of failure)."""
        from clinsafe.adapters.endpoint import AccessRefused, EndpointGone

        try:
            return self._generator.generate(prompt), ""
        except (AccessRefused, EndpointGone, OfflineError, UnknownModel) as error:  # the next would fail too
            self._stop(str(error))
            return None, type(error).__name__
        except ClinsafeError as error:
            return None, type(error).__name__

    def _stop(self, why: str) -> None:
        self._over = why
        self.notes.append(f"generated answers: no more are asked for: {why}")
