"""Run a lane of asks as one attempt: each ask is one request to the model, many at once (see `store...asks`).

The thread of the attempt takes asks from the store and stores their answers; a pool of threads reads their
texts and waits for the model. Answers that arrive together are stored together, and the next asks are taken
in the same round trip.

An ask that cannot be answered, because its texts are too long, its descriptor is closed or the model refuses
it, gets the error as its answer; its neighbours go on. A worker that stops takes no more asks, and returns
the lane when those under way are answered.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any

import msgspec

from fdstore.agents.loop.conversation import Assistant
from fdstore.agents.loop.models.base import Listener, Model, ModelFailed, ModelRequest, TimeIsOver
from fdstore.agents.loop.models.observed import ObservedModel
from fdstore.agents.runtime.attempt import Attempt, AttemptOutcome
from fdstore.agents.runtime.claim import WorkerStopping
from fdstore.errors import STORE_FAILURES, DamagedRecord, FDStoreError, Fenced, QuotaExceeded, TooLarge
from fdstore.model import ends
from fdstore.model.lifecycle import ProcessEnd
from fdstore.model.model_servers import ModelServer
from fdstore.model.records import TOKEN_COUNTS, TokenUsage
from fdstore.store.contents import reading
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import asks
from fdstore.store.processes.asks import Answered, AskAnswer, AskPart, AskSettings, LaneTask, StoredAsk
from fdstore.store.record_format import decode_record
from fdstore.text.selection import selector
from fdstore.text.surrogates import escape_surrogates

TOGETHER_S = 0.01
"""After an answer, how long further ones may arrive that are stored with it."""

LOOK_EVERY_S = 0.5
"""The interval at which a lane checks for a stop, and tries again to take asks that it may not take yet."""

ANSWER_S = 3600.0
"""The time for one answer, beside that in which failed tries are made again: a server that sends a little now
and then would hold a lane for ever."""

MODEL_FAILED = "model_failed"
"""The type of an error that is one of the model."""

COMPLETE = frozenset({"end_turn", "stop_sequence", "max_tokens"})
"""The reasons of an answer that is returned, also if `max_tokens` cut it."""

OF_THE_ATTEMPT: tuple[type[FDStoreError], ...] = (Fenced, *STORE_FAILURES)
"""The errors that are not of one ask."""

INCOMPLETE = {
    "refusal": "the model refused to answer",
    "model_context_window_exceeded": "the texts are too long for the model; split them",
}


def run_asks(
    attempt: Attempt, model: Callable[[ModelServer], Model], *, alone_until: int | None
) -> AttemptOutcome:
    """Run a lane until its call has no asks left, or until it is past the journal record `alone_until`."""
    task = decode_record(attempt.claim.task, LaneTask, f"the journal of process {attempt.process}")
    lane = _Lane(attempt, model, task, alone_until)
    with ThreadPoolExecutor(task.width, f"asks {attempt.process}") as pool:
        try:
            woken = lane.run(pool)
        finally:
            lane.is_over = True  # ends the requests under way
    return attempt.ended(ProcessEnd("exited", 0, ""), woken)


class _Dropped(msgspec.Struct, frozen=True):
    """An ask that was not answered because the worker stops: the next attempt has it still."""

    number: int


class _Begun(msgspec.Struct, frozen=True):
    """The answer to the first ask about a shared text has begun, or failed."""

    text: str


class _Lane:
    """The asks of one lane. `is_over` ends its requests."""

    def __init__(
        self,
        attempt: Attempt,
        model: Callable[[ModelServer], Model],
        task: LaneTask,
        alone_until: int | None,
    ) -> None:
        self._attempt = attempt
        self._run = attempt.store.run
        self._model = model
        self._task = task
        self._commits_alone = None if alone_until is None else alone_until + 1 - len(attempt.claim.journal)
        self._parent = ProcessHandle(
            # not the parent that its record names: who writes that would have it answer asks of another tree
            process_keys(attempt.store.prefix, _parent_of(attempt.process)),
            attempt.claim.limits,
        )
        self._settings: dict[str, AskSettings] = {}
        self._arrived: SimpleQueue[Answered | _Dropped | _Begun | BaseException] = SimpleQueue()
        self._running: set[int] = set()
        self._shared: dict[str, list[tuple[int, StoredAsk]] | None] = {}
        """The first texts that several asks share. While the first such ask waits for its answer to begin,
        the others wait too, so that the provider's cache has the text by then; afterwards None."""
        self._has_answer = False
        self.is_over = False

    def run(self, pool: ThreadPoolExecutor) -> tuple[str, ...]:
        """Ask until no asks are left. Return the ancestors that need a wake-up."""
        answered: list[Answered] = []
        lane = (self._attempt.handle, self._parent, self._task.call)
        while True:
            is_leaving = self._is_leaving()
            if is_leaving and not self._running and not answered:
                raise WorkerStopping
            width, running = 0 if is_leaving else self._task.width, sorted(self._running)
            found = self._attempt.keep(
                partial(asks.take_next, *lane, width=width, running=running, answered=answered)
            )
            if answered and self._commits_alone is not None:
                self._commits_alone -= 1
            if found.how == "ended":
                return found.woken
            if found.how == "limit":
                reason = f"{QuotaExceeded.type}: {ends.text_of(*found.limit)}"
                self._run(asks.fail_rest(*lane, running, reason))
            for number, ask in found.asks.items():
                self._begin(pool, number, ask)
            answered = self._collect(pool) if self._running or found.how == "wait" else []

    def _is_leaving(self) -> bool:
        """Return whether to begin no more asks: the worker stops, or the lane is past the point at which it
        was lost and continues among others."""
        return self._attempt.stopping.is_set() or (
            self._commits_alone is not None and self._commits_alone <= 0
        )

    def _collect(self, pool: ThreadPoolExecutor) -> list[Answered]:
        """Wait for answers, and return those that arrive together; none if more asks may be taken. Raises
        what a request raised, and `Fenced`."""
        answered: list[Answered] = []
        until = math.inf
        while not answered or (self._running and time.monotonic() < until):
            try:
                arrived = self._arrived.get(timeout=max(0.0, min(LOOK_EVERY_S, until - time.monotonic())))
            except Empty:
                self._attempt.lease.check_held()
                if answered or self._is_leaving() or len(self._running) < self._task.width:
                    break
                continue
            match arrived:
                case _Begun(text):
                    for number, ask in self._shared[text] or ():
                        pool.submit(self._ask, number, ask)
                    self._shared[text] = None
                case _Dropped(number):
                    self._running.discard(number)
                    if not self._running:
                        break
                case Answered():
                    self._running.discard(arrived.number)
                    answered.append(arrived)
                    until = min(until, time.monotonic() + TOGETHER_S)
                case _:
                    raise arrived
        return answered

    def _begin(self, pool: ThreadPoolExecutor, number: int, ask: StoredAsk) -> None:
        self._running.add(number)
        if ask.settings not in self._settings:
            self._settings[ask.settings] = self._run(asks.read_settings(self._parent, ask.settings))
        if not ask.is_shared:
            pool.submit(self._ask, number, ask)
            return
        text = asks.beginning(ask)
        if text not in self._shared:
            self._shared[text] = []
            pool.submit(self._ask_first, number, ask, text)
        elif (waiting := self._shared[text]) is not None:
            waiting.append((number, ask))
        else:
            pool.submit(self._ask, number, ask)

    def _ask_first(self, number: int, ask: StoredAsk, text: str) -> None:
        """Ask, and report when the answer begins."""
        first = _FirstEvent(lambda: self._arrived.put(_Begun(text)))
        try:
            self._ask(number, ask, first)
        finally:
            first.report()

    def _ask(self, number: int, ask: StoredAsk, listener: Listener | None = None) -> None:
        """Ask the model on a thread of the pool, and pass on the answer, or what prevents one."""
        began = time.monotonic()
        try:
            self._check()
            settings = self._settings[ask.settings]
            answer = ObservedModel(self._model(settings.server)).query(
                ModelRequest(
                    model=settings.model,
                    system=escape_surrogates(settings.system),
                    messages=[{"role": "user", "content": self._content(ask, settings)}],
                    tools=[],
                    parameters={**settings.parameters, "max_tokens": settings.max_tokens},
                    is_first=not self._has_answer,
                    until_s=began + settings.give_up_seconds + ANSWER_S,
                    pause=self._pause,
                    check=self._check,
                    listener=listener,
                    give_up_s=settings.give_up_seconds,
                )
            )
            self._has_answer = True
            seconds = round(time.monotonic() - began, 3)
            self._arrived.put(
                Answered(number=number, answer=self._answer(answer, seconds), usage=_usage(answer))
            )
        except ModelFailed as error:
            seconds = round(time.monotonic() - began, 3)
            is_late = isinstance(error, TimeIsOver)
            said = f"the answer was not whole after {seconds:g} s" if is_late else error
            failed = self._failed(f"{MODEL_FAILED}: {said}", seconds)
            self._arrived.put(Answered(number=number, answer=failed))
        except WorkerStopping:
            self._arrived.put(_Dropped(number))
        except OF_THE_ATTEMPT as error:
            self._arrived.put(error)
        except FDStoreError as error:
            self._arrived.put(Answered(number=number, answer=self._failed(f"{error.type}: {error}")))
        except BaseException as error:  # noqa: BLE001  raised in the thread of the attempt
            self._arrived.put(error)

    def _answer(self, answer: Assistant, seconds: float) -> AskAnswer:
        if answer.stop_reason in COMPLETE:
            error = ""
        else:
            stop = f"the answer ended with stop_reason {answer.stop_reason}"
            error = f"{MODEL_FAILED}: {INCOMPLETE.get(answer.stop_reason or '', stop)}"
        return AskAnswer(
            text=answer.text,
            error=error,
            tokens=answer.tokens,
            seconds=seconds,
            output_tokens=answer.output_tokens,
            lane=self._attempt.process,
        )

    def _failed(self, error: str, seconds: float = 0.0) -> AskAnswer:
        return AskAnswer(error=error, seconds=seconds, lane=self._attempt.process)

    def _check(self) -> None:
        if self.is_over:
            raise WorkerStopping
        self._attempt.lease.check_held()

    def _pause(self, seconds: float) -> None:
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            self._check()
            self._attempt.lease.pause(min(left, LOOK_EVERY_S))

    def _content(self, ask: StoredAsk, settings: AskSettings) -> list[dict[str, Any]]:
        """Return the message of an ask: its texts, whole, each with a line that names it, then the question.
        Raises `TooLarge`, and what reading raises."""
        blocks: list[dict[str, Any]] = []
        size = 0
        for number, part in enumerate(ask.parts, 1):
            name, text = f"Text {number}", part
            if isinstance(part, AskPart):
                name, text = f"{name}, {part.ref}", self._read(part.ref, size, settings.max_chars)
            assert isinstance(text, str)
            size += len(text)
            asks.check_size(size, settings.max_chars)
            blocks.append({"type": "text", "text": f"{name}:\n{escape_surrogates(text)}"})
        if ask.is_shared:
            blocks[0]["cache_control"] = {"type": "ephemeral"}
        return [*blocks, {"type": "text", "text": escape_surrogates(ask.question)}]

    def _read(self, ref: str, before: int, limit: int) -> str:
        """Return a text, or a part of one, of the process that asks. `before`: the length of the texts before
        it."""
        of = selector(ref)
        try:
            return self._run(reading.read(self._parent, of.fd, of.part, max(limit - before, 0))).text
        except TooLarge as error:
            asks.check_size(before + error.size, limit)
            raise


class _FirstEvent:
    """A listener that reports the beginning of an answer, once."""

    def __init__(self, report: Callable[[], None]) -> None:
        self._report: Callable[[], None] | None = report

    def report(self) -> None:
        """Report it, unless it was."""
        if self._report is not None:
            self._report()
            self._report = None

    def on_text(self, text: str) -> None:
        """Implements `Listener`."""
        self.report()

    def on_retry(self) -> None:
        """Implements `Listener`."""


def _parent_of(lane: str) -> str:
    parent, dot, _ = lane.rpartition(".")
    if not dot:
        raise DamagedRecord(f"the record of process {lane}", "a root is no lane")
    return parent


def _usage(answer: Assistant) -> TokenUsage:
    return TokenUsage(**{name: getattr(answer, name) for name in TOKEN_COUNTS})
