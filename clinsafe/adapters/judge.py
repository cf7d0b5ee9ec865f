"""A language model behind any OpenAI-compatible chat endpoint as a judge.

What is asked and how an answer is read comes from outside, as a `Form`; here is the road: structured output as far
as the service knows it, one second try, cache, budget, threads. No fault of the service leaves `judge` as an
exception, and none becomes a number.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from clinsafe.adapters import chat as chat_module
from clinsafe.adapters.chat import ChatGenerator, Completion, NoText
from clinsafe.adapters.exchange import (
    PATIENCE,
    AccessRefused,
    BadAnswer,
    EndpointBusy,
    EndpointError,
    EndpointGone,
    Patience,
    Service,
    TextRefused,
)
from clinsafe.adapters.judge_budget import Budget, BudgetSpent, Reserved, Spent, estimate
from clinsafe.adapters.judge_cache import JudgeCache, key_of
from clinsafe.errors import ClinsafeError, OfflineError, UnknownModel, UsageError
from clinsafe.protocols import Judgement, JudgeTask, ModelIdentity

SERVICE = Service(
    kind="chat",
    answer="an answer",
    api="a chat API",
    flag="--judge-url",
    path=chat_module.SERVICE.path,
    key="name the variable with a key that has access and quota with --judge-key-env",
)
LEVELS = ("json_schema", "json_object", "text", "bare")
"""What the service is asked for, best first; ``bare`` leaves out the seed too."""
MOST_TOKENS = 512  # of one answer; a model that thinks aloud needs more
MOST_WORKERS = 64
REASONS: tuple[tuple[type[ClinsafeError], str], ...] = (
    (BudgetSpent, "budget"),
    (EndpointGone, "endpoint gone"),
    (EndpointBusy, "busy"),
    (AccessRefused, "access refused"),
    (UnknownModel, "unknown model"),
    (TextRefused, "text refused"),
    (NoText, "no text"),
    (BadAnswer, "bad answer"),
    (OfflineError, "offline"),
    (EndpointError, "unreachable"),
)


class Form(Protocol):
    """What is asked and how answers are read; `clinsafe.rag.judging.form.RubricForm` is one."""

    digests: Mapping[str, str]
    """Metric -> hash of all that shapes its prompt and the reading of its answer."""

    def unanswerable(self, task: JudgeTask, /) -> Judgement | None:
        """Why a task is not sent; None where it is."""
        ...

    def prompt(self, task: JudgeTask, fault: str = "", /) -> str:
        """What is sent; the second time with the fault of the first answer."""
        ...

    def schema(self, task: JudgeTask, /) -> dict[str, Any]:
        """JSON schema of the answer."""
        ...

    def read(self, task: JudgeTask, text: str, /) -> Judgement | tuple[str, str]:
        """The judgement, or a kind of fault and what to tell the model."""
        ...


@dataclass(frozen=True, slots=True)
class Plan:
    """What a run would ask for; nothing was sent.

    Attributes:
        tasks: all of them.
        not_asked: those that no judge could score (no answer, no contexts, an abstention …).
        cached: those whose judgement is there already, repetitions in the same run among them.
        calls: requests, where no answer has to be asked for twice and no try fails.
        prompt_tokens: an estimate, one token for three bytes.
        completion_tokens: at most.
    """

    tasks: int
    not_asked: int
    cached: int
    calls: int
    prompt_tokens: int
    completion_tokens: int


class _Stopped(ClinsafeError):
    """The run was interrupted; nothing more is sent."""


class EndpointJudge:
    """A `Judge` over HTTP. Safe to use from several threads.

    Args:
        chat: the connection, from `load`.
        form: what is asked.
        cache: where judgements are kept; None keeps none.
        budget: limits; None has none and counts all the same.
        seed: sent with each request; services that know it answer the same way again.
        most_tokens: of one answer.

    Attributes:
        identity: model, host, settings, and the hashes of the rubrics as files.
    """

    def __init__(
        self,
        chat: ChatGenerator,
        form: Form,
        *,
        cache: JudgeCache | None = None,
        budget: Budget | None = None,
        seed: int = 0,
        most_tokens: int = MOST_TOKENS,
    ) -> None:
        self._most = most_tokens
        self._chat, self._form, self._cache, self._seed = chat, form, cache, seed
        self._budget = budget or Budget()
        self._level, self._sure, self._probing = 0, False, threading.Lock()
        self._stopping = threading.Event()
        self.identity = ModelIdentity(
            name=f"openai:{chat.name}",
            files={f"benchmarks/rubrics/{name}.yaml": digest for name, digest in form.digests.items()},
            settings={
                "where": chat.where,
                "temperature": "0",
                "seed": str(seed),
                "max_tokens": str(most_tokens),
            },
        )

    @property
    def spent(self) -> Spent:
        """Calls and tokens so far."""
        return self._budget.spent

    @property
    def level(self) -> str:
        """Which form of answer the service gives: one of `LEVELS`; the best one until an answer has come."""
        return LEVELS[self._level]

    def rules_sha256(self, metric: str, /) -> str:
        """Hash of the rubric and of how its answers are read."""
        return self._form.digests[metric]

    def judge(self, task: JudgeTask, /) -> Judgement:
        """Score one task. Never raises for a fault of the service.

        Outcomes: ``scored``; ``unscored`` for what lies in the task, an unverified quote, or the budget; ``refused``;
        ``error`` with the reason ``prose``, ``half JSON``, ``not a number``, ``out of range``, ``wrong type``,
        ``missing field``, ``contradictory``, ``busy``, ``bad answer``, ``no text``, ``text refused``,
        ``access refused``, ``unknown model``, ``unreachable``, ``endpoint gone`` or ``offline``.
        """
        known = self._form.unanswerable(task)
        if known is not None:
            return known
        key = self._key(task)
        known = self._cache.get(key) if self._cache else None
        if known is not None:
            return known
        try:
            found = self._asked(task)
        except ClinsafeError as error:
            return _failure(error)
        if self._cache:
            self._cache.put(key, found)
        return found

    def judge_many(self, tasks: Sequence[JudgeTask], /, workers: int = 4) -> list[Judgement]:
        """Score tasks, several at a time, in their order; equal tasks are asked once.

        With one worker it is settled which tasks a budget leaves out: the last ones.

        Raises:
            UsageError: no such number of workers. KeyboardInterrupt: as it came; what was judged is in the cache.
        """
        if not 1 <= workers <= MOST_WORKERS:
            raise UsageError(f"{workers} workers: valid is 1 to {MOST_WORKERS}")
        keys = [self._key(task) for task in tasks]
        once = dict(zip(keys, tasks, strict=True))
        self._stopping.clear()
        pool = ThreadPoolExecutor(workers, thread_name_prefix="judge")
        try:
            found = dict(zip(once, pool.map(self.judge, once.values()), strict=True))
        except BaseException:  # Ctrl-C: what has not begun is dropped, what waits gives up at its next try
            self._stopping.set()
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        pool.shutdown()
        return [found[key] for key in keys]

    def plan(self, tasks: Sequence[JudgeTask], /) -> Plan:
        """What `judge_many` would ask for."""
        seen: set[str] = set()
        not_asked = cached = prompt = 0
        for task in tasks:
            key = self._key(task)
            if self._form.unanswerable(task) is not None:
                not_asked += 1
            elif key in seen or (self._cache is not None and self._cache.get(key) is not None):
                cached += 1
            else:
                seen.add(key)
                prompt += estimate(self._form.prompt(task))
        return Plan(len(tasks), not_asked, cached, len(seen), prompt, len(seen) * self._most)

    def _key(self, task: JudgeTask) -> str:
        parts = [task.metric, task.question, task.answer, list(task.contexts), task.reference]
        settings = [self._chat.name, self._chat.where, 0, self._seed, self._most]
        return key_of(settings, self._form.digests.get(task.metric, ""), parts)

    def _asked(self, task: JudgeTask) -> Judgement:
        fault = ("", "")
        for _ in range(2):
            answer = self._answer(task, fault[1])
            if answer.refused:
                return Judgement("refused", None, "refusal")
            read = self._form.read(task, answer.text)
            if isinstance(read, Judgement):
                return read
            fault = read
        return Judgement("error", None, fault[0])

    def _answer(self, task: JudgeTask, fault: str) -> Completion:
        """One answer, in the best form that the service knows; which that is, is found out once."""
        prompt = self._form.prompt(task, fault)
        if self._sure:
            return self._send(task, prompt, self._level)
        with self._probing:
            if self._sure:
                return self._send(task, prompt, self._level)
            for level in range(len(LEVELS)):
                try:
                    answer = self._send(task, prompt, level)
                except TextRefused as error:
                    if error.status == 413 or level == len(LEVELS) - 1:
                        raise
                    continue
                self._level, self._sure = level, True
                return answer
        raise AssertionError("the last level returns or raises")

    def _send(self, task: JudgeTask, prompt: str, level: int) -> Completion:
        held: list[Reserved] = []
        tokens = estimate(prompt)

        def before() -> None:
            if held:  # an earlier try that failed
                self._budget.lost(held.pop())
            if self._stopping.is_set():
                raise _Stopped("interrupted")
            held.append(self._budget.reserve(tokens, self._most))

        try:
            answer = self._chat.complete(prompt, self._options(task, level), before)
        except BaseException:
            if held:
                self._budget.lost(held.pop())
            raise
        self._budget.settle(held.pop(), answer.usage)
        return answer

    def _options(self, task: JudgeTask, level: int) -> dict[str, Any]:
        options: dict[str, Any] = {"max_tokens": self._most}
        if LEVELS[level] != "bare":
            options["seed"] = self._seed
        if LEVELS[level] == "json_schema":
            schema = {"name": task.metric, "strict": True, "schema": self._form.schema(task)}
            options["response_format"] = {"type": "json_schema", "json_schema": schema}
        elif LEVELS[level] == "json_object":
            options["response_format"] = {"type": "json_object"}
        return options


def _failure(error: ClinsafeError) -> Judgement:
    reason = next((words for kind, words in REASONS if isinstance(error, kind)), type(error).__name__)
    return Judgement("unscored" if isinstance(error, BudgetSpent) else "error", None, reason)


def load(
    model: str,
    base_url: str,
    form: Form,
    *,
    key_variable: str | None = None,
    key_file: Path | None = None,
    cache: Path | None = None,
    budget: Budget | None = None,
    timeout: float = 60.0,
    offline: bool = False,
    patience: Patience = PATIENCE,
    seed: int = 0,
    most_tokens: int = MOST_TOKENS,
) -> EndpointJudge:
    """A judge at ``http://HOST:PORT/v1``; nothing is sent yet. Arguments as `clinsafe.adapters.chat.load` has them.

    Raises:
        UsageError, OfflineError, MissingDependency.
    """
    if not 16 <= most_tokens <= 1 << 20:
        raise UsageError(f"{most_tokens} tokens for one answer: valid is 16 or more")
    chat = chat_module.load(
        model,
        base_url,
        key_variable=key_variable,
        key_file=key_file,
        timeout=timeout,
        offline=offline,
        patience=patience,
        service=SERVICE,
    )
    kept = JudgeCache(cache) if cache is not None else None
    return EndpointJudge(chat, form, cache=kept, budget=budget, seed=seed, most_tokens=most_tokens)
