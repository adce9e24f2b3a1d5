"""The agent loop: act on what the model asked, then ask again.

`step` does one of the two and writes it to the journal before anything else happens, so an attempt
that dies at any point is followed by one that goes on from the last record: finished tool calls are
not run again, and what a call makes is keyed by the call's id.

A step never waits for other processes. When all that is left of a turn is children that still run,
it answers `Waiting`; who runs the agent decides whether to wait for them or to give the worker back.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Literal, TypeAlias

import msgspec

from fdstore import lifecycle
from fdstore.agent.answer_stream import AnswerStream
from fdstore.agent.conversation import Assistant, Note, Result, Start, ToolCall, encode_entry
from fdstore.agent.first_prompt import first_messages
from fdstore.agent.history import History
from fdstore.agent.models.anthropic import Model, ModelFailed, Retry
from fdstore.agent.program import Program
from fdstore.errors import STORE_FAILURES, InvalidArgument, NotFound, QuotaExceeded
from fdstore.lifecycle import ENDED
from fdstore.render import fd_error
from fdstore.store import contents, inspection, journal, leases, processes
from fdstore.store.clock import redis_now
from fdstore.store.content_info import ProcessHandle
from fdstore.tools.task import SpawnTask
from fdstore.tools.tool import Started, ToolResult
from fdstore.tools.toolbox import Toolbox
from fdstore.tools.wrapping import passages, storable, store_passage
from fdstore.wire.operation import Operation

log = logging.getLogger("fdstore.agent")

FINAL = {"end_turn": 0, "stop_sequence": 0}
"""Stop reasons that are a good end; any other that ends the conversation is exit code 1."""

RunOperation = Callable[[Operation[Any]], Any]


class Finished(msgspec.Struct, frozen=True):
    """The conversation is over: how, and the agent's last words."""

    state: Literal["exited", "failed"]
    exit_code: int | None
    reason: str
    answer: str


class Waiting(msgspec.Struct, frozen=True):
    """Nothing to do before these processes have ended, or `left_s` seconds are over."""

    children: tuple[str, ...]
    left_s: float | None = None


Outcome: TypeAlias = Finished | Waiting | None


class Agent:
    """One attempt at one process: its conversation, its tools, its model."""

    def __init__(
        self,
        run: RunOperation,
        handle: ProcessHandle,
        program: Program,
        toolbox: Toolbox,
        model: Model,
        *,
        past: History,
        age_s: float,
        pause: Callable[[float], None],
        voice: AnswerStream | None = None,
    ) -> None:
        self._run = run
        self._handle = handle
        self._program = program
        self._toolbox = toolbox
        self._definitions = toolbox.definitions
        self._model = model
        self._pause = pause
        self._voice = voice
        self._until_s = time.monotonic() + program.limits.wall_seconds - age_s
        self._written = len(past.own)
        self._trouble = ""
        self._tree: journal.Appended | None = None
        """What the last write said of the tree's daily limits; None before the first of this attempt."""
        self.birth = past.birth
        self.conversation = past.conversation()
        if past.own and isinstance(past.own[-1], Assistant):
            # the attempt before may have ended between writing the answer and this
            self._take_references()

    @property
    def written(self) -> int:
        """How many records the journal has."""
        return self._written

    def step(self) -> Outcome:
        """Does the next thing. Raises `Fenced` when another attempt runs the process."""
        if self.conversation.start is None and isinstance(self.birth, SpawnTask):
            self._write(self._run(first_messages(self._toolbox, self._program, self.birth)))
            return None
        calls = self.conversation.open_calls()
        if calls:
            return self._act(calls)
        answer = self.conversation.answer
        if answer and answer[-1].is_last:
            return self._end(answer[-1])
        return self._over_limit() or self._ask()

    def _ask(self) -> Outcome:
        start = self.conversation.start
        try:
            answer = self._model.ask(
                model=self._program.model,
                system=start.system if start else "",
                messages=self.conversation.messages(),
                tools=self._definitions,
                parameters=self._program.parameters,
                until_s=self._until_s,
                pause=self._pause,
                listener=None if self._voice is None else StreamListener(self._run, self._voice),
                give_up_s=self._program.give_up_seconds,
                report=self._note_retry,
            )
        except ModelFailed as error:
            return Finished("failed", None, str(error), "")
        self._note_trouble("")
        if self._voice is None:
            self._write(answer)
        else:
            self._write(msgspec.structs.replace(answer, said=self._voice.chars))
            self._run(self._voice.complete(is_paused=answer.is_paused))
        self._take_references()
        return None

    def _note_retry(self, retry: Retry) -> None:
        log.info("%s: %s", self._handle.id, retry)
        self._note_trouble(str(retry))

    def _note_trouble(self, trouble: str) -> None:
        """Say in the record what holds this agent up, for those who watch it."""
        if trouble == self._trouble:
            return
        with suppress(*STORE_FAILURES):  # watchers see that for themselves
            self._run(leases.renew(self._handle, trouble))
            self._trouble = trouble

    def _take_references(self) -> None:
        """Store the passages of the last answer, before the tools of that turn run, so that they can
        use them. The answer is in the journal first: another attempt might get another answer. A note
        to the model names those that exceed the quota."""
        context, slot = self._toolbox.context, f"turn{len(self.conversation.turns)}"
        *paused, last = self.conversation.answer
        before = "".join(turn.text for turn in paused)
        there = passages(context, before)
        refused = []
        for name, passage in passages(context, before + last.text).items():
            if there.get(name) == passage:
                continue
            try:
                self._run(store_passage(context, name, passage, slot))
            except NotFound:
                continue  # it was stored, and a tool of this turn dropped it, before the attempt ended
            except QuotaExceeded as error:
                refused.append(f"ref:{name} was not stored.\n{fd_error(error, f'ref:{name}')}")
                log.warning("%s: ref:%s was not stored: %s", self._handle.id, name, error)
        if refused:
            self._write(Note(text="\n".join(refused)))

    def _act(self, calls: list[ToolCall]) -> Outcome:
        started: list[tuple[ToolCall, Started]] = []
        for call in calls:
            if call.malformed:
                error = InvalidArgument("", f"{call.malformed}; make the call again")
                self._write(_result(call, ToolResult(fd_error(error), is_error=True)))
                continue
            outcome = self._run(self._toolbox.start(call.name, call.input, call.key))
            if isinstance(outcome, Started):
                started.append((call, outcome))
            else:
                self._write(_result(call, outcome))
        live: list[str] = []
        waits: list[float] = []
        now_s = self._run(redis_now()) if any(each.until_s is not None for _, each in started) else 0.0
        for call, children in started:
            running = [child for child in children.processes if not self._ended(child)]
            left_s = None if children.until_s is None else children.until_s - now_s
            if not running or (left_s is not None and left_s <= 0):
                self._write(_result(call, self._run(self._toolbox.finished(children))))
                continue
            live += running
            if left_s is not None:
                waits.append(left_s)
        return Waiting(tuple(live), min(waits, default=None)) if live else None

    def _ended(self, process: str) -> bool:
        return self._run(inspection.record(self._toolbox.context.prefix, process)).state in ENDED

    def _over_limit(self) -> Finished | None:
        limits, conversation = self._program.limits, self.conversation
        if self._tree is None:
            self._tree = self._run(journal.append(self._handle, self._written, []))
        last = conversation.text
        if len(conversation.own_turns) >= limits.max_turns:
            return Finished(
                "failed", None, f"{lifecycle.MAX_TURNS}: {limits.max_turns} answers were given", last
            )
        if time.monotonic() >= self._until_s:
            return Finished(
                "failed", None, f"{lifecycle.WALL_SECONDS}: {limits.wall_seconds:g} s are over", last
            )
        if limits.token_budget is not None and conversation.tokens >= limits.token_budget:
            return Finished(
                "failed", None, f"{lifecycle.TOKEN_BUDGET}: {limits.token_budget} tokens are used", last
            )
        if self._tree.reached:
            name, top = self._tree.reached
            reason = f"{name}: this tree has used the {top} of today (UTC); `fdstore limits` shows ceilings"
            return Finished("failed", None, reason, last)
        return None

    def _end(self, last: Assistant) -> Finished:
        exit_code = FINAL.get(last.stop_reason or "", 1)
        return Finished(
            "exited",
            exit_code,
            "" if exit_code == 0 else f"stop_reason {last.stop_reason}",
            self.conversation.text,
        )

    def _write(self, entry: Start | Assistant | Result | Note) -> None:
        answers, tokens = (1, entry.tokens) if isinstance(entry, Assistant) else (0, 0)
        added = journal.append(
            self._handle, self._written, [encode_entry(entry)], answers=answers, tokens=tokens
        )
        self._tree = self._run(added)
        self._written = self._tree.length
        self.conversation.add(entry)

    def hand_over(self, end: Finished, *, is_root: bool) -> tuple[str, ...]:
        """End the process. Return the ids of the ancestors that need a wake-up. A long answer becomes
        a descriptor that the parent gets, unless it is all that its stream holds; a process that did
        well, and is not a root, drops its own descriptors. An answer beyond the quota is cut."""
        fd = ""
        limit = self.birth.answer_limit
        answer = storable(end.answer)
        if limit is not None and len(answer) > limit and self._voice and self._voice.chars == len(answer):
            fd = self._voice.fd
        elif limit is not None and len(answer) > limit:
            size = self._program.file_descriptor.default_page_size
            source = f"answer of {self._handle.id}"
            try:
                fd = self._run(contents.create(self._handle, answer, source, size, call_id="answer")).fd
            except QuotaExceeded as error:
                log.warning("%s: its answer of %s characters is cut: %s", self._handle.id, len(answer), error)
                note = f"[cut here, as all {len(answer)} characters could not be stored: {error}]"
                answer = f"{answer[:limit]}\n{note}"
        woken: tuple[str, ...] = self._run(
            processes.end(
                self._handle,
                end.state,
                exit_code=end.exit_code,
                reason=end.reason,
                release=end.state == "exited" and end.exit_code == 0 and not is_root,
                answer="" if fd else answer,
                answer_fd=fd,
                broken=end.reason,
            )
        )
        return woken


class StreamListener:
    """Hears the model for a voice, whose operations it runs."""

    def __init__(self, run: RunOperation, voice: AnswerStream) -> None:
        self._run = run
        self._voice = voice

    def hear(self, text: str) -> None:
        self._run(self._voice.hear(text))

    def break_off(self) -> None:
        self._voice.break_off()


def _result(call: ToolCall, outcome: ToolResult) -> Result:
    return Result(call=call.id, content=storable(outcome.content), is_error=outcome.is_error)
