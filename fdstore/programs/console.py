"""Code that a person runs over the texts of a process: at a prompt, or once.

It is the interpreter of `run_python`, with the same functions and limits, and what it leaves is the session
of the process. It differs in its end: the parts of the result are returned as they are, and the caller waits
here for what the code awaits, so nothing is suspended.

In a process that agents run, or that has ended, a session can be looked at and not replaced: then variables
live as long as the console.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial

import msgspec

from fdstore.programs.host import Host, Starters
from fdstore.programs.interpreter.events import Answer, Event, Failed, InterpreterEnded, Waiting
from fdstore.programs.pending_calls import PendingCalls
from fdstore.programs.python_call import ENDED, check_size, damage_reported, drive, open_session, state_after
from fdstore.results.context import Context
from fdstore.store.processes import python_state, waiting
from fdstore.wire.operation import Disk, Operation, new_op

LOOK_EVERY_S = 0.5
"""The time within which an interrupt ends a wait."""


class Ran(msgspec.Struct, frozen=True, kw_only=True):
    """The result of one run of code: its output, the value of its last expression, the traceback of its
    error, its number of calls and its seconds of processor time. A `note` is about the session. `exited`: the
    code has ended itself, as by `exit()`."""

    printed: str = ""
    value: str | None = None
    error: str | None = None
    note: str = ""
    calls: int = 0
    seconds: float = 0.0
    exited: bool = False


class Console:
    """Runs code over the texts of one process. `keeps`: what the code leaves is the session of the
    process. `starters` start what the code spawns and pipes."""

    def __init__(self, context: Context, starters: Starters, *, keeps: bool) -> None:
        self._context = msgspec.structs.replace(context, watch=self._watch)
        self._starters = starters
        self._keeps = keeps
        self._state: bytes | None = None
        self._is_first = True
        self._lock = threading.Lock()
        self._kill: Callable[[], None] | None = None
        self._is_interrupted = False

    def interrupt(self) -> None:
        """End the code of the last `run`, from another thread, also if it has not begun."""
        with self._lock:
            self._is_interrupted = True
            if self._kill is not None:
                self._kill()

    @contextmanager
    def _watch(self, kill: Callable[[], None]) -> Iterator[None]:
        with self._lock:
            self._kill = kill
            if self._is_interrupted:
                kill()
        try:
            yield
        finally:
            with self._lock:
                self._kill = None

    def run(self, code: str) -> Operation[Ran]:
        """Return the operation that runs code until it ends. It raises `InvalidArgument` for code that is too
        long, `Fenced`, `NotFound`, and other errors of the store."""
        with self._lock:
            self._is_interrupted = False
        return self._run(code)

    def _run(self, code: str) -> Operation[Ran]:
        check_size(code)
        context, handle, run_id = self._context, self._context.handle, new_op()
        seed = secrets.randbits(53)
        if self._keeps or self._is_first:
            self._state = (yield from python_state.read(handle, run_id)).session
            self._is_first = False
        if self._keeps:
            yield from python_state.begin(handle, run_id, seed)
        state, names = self._state, context.names_for_code
        limits = context.python.limits_under(handle.limits)
        with damage_reported(handle.id):
            opened = yield Disk(lambda: open_session(limits, names, state, None, seed))
        session = opened.session
        host = (Host if self._keeps else _Unrecorded)(context, self._starters, run_id, {}, PendingCalls())
        try:
            with context.watch(session.kill):
                event: Event = yield Disk(lambda: session.feed(code))
                event = yield from drive(session, host, event, partial(self._settle, host))
                if isinstance(event, Waiting):
                    event = Failed("KeyboardInterrupt", False, "killed")
                yield from host.leave()
                printed, calls, seconds = session.printed, session.calls, session.used_s
                try:
                    kept, problem = yield from state_after(context, session, event)
                except InterpreterEnded:
                    kept, problem = None, ENDED
        finally:
            session.close()
        if self._keeps:
            yield from python_state.end(handle, run_id, kept)
        elif kept is not None:
            self._state = kept
        value, failure = (None, event.text) if isinstance(event, Failed) else (event.value, "")
        return Ran(
            printed=printed,
            value=value,
            error="\n".join(filter(None, [failure, problem])) or None,
            note=opened.note,
            calls=calls,
            seconds=seconds,
            exited=session.exited,
        )

    def _settle(self, host: Host, event: Waiting) -> Operation[dict[int, Answer]]:
        """Wait for the awaited calls, and return their answers; none if this is interrupted."""
        while not self._is_interrupted:
            if answers := (yield from host.settle(event)):
                return answers
            processes = host.waits_for(event)
            yield from waiting.wait_until_ended(self._context.prefix, processes, LOOK_EVERY_S)
        return {}


class _Unrecorded(Host):
    """Answers the calls of code that is never run again."""

    def _save(self) -> Operation[None]:
        self._answers.drop()
        return
        yield
