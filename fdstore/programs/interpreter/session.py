"""One session of the interpreter: fed with code, answered, dumped and loaded.

    feed(code) -> HostCall   a function of the host was called         resume(answer), or resume(LATER)
               -> Waiting    every task awaits calls answered LATER    settle({number: answer}), or dump
               -> Finished   the code has ended                        feed, or dump
               -> Failed     it raised, or passed a limit              feed or dump, if keeps_session

The interpreter runs one task at a time, so the same code from the same state, with the same answers, makes
the same calls in the same order. They are numbered 0, 1, 2... in it, over all snapshots of a call: the
interpreter's own numbers do not go on. "The same answers" includes which numbers each `settle` had. Reading
the clock and sleeping are calls too, and random numbers follow the seed. `events.py` lists the calls.

Any call can be answered `LATER`. If it is not of those that programs await, the whole program waits for it.
"""

from __future__ import annotations

import random
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any

from fdstore.model.call_limits import CallLimits
from fdstore.programs.interpreter import dumps, failures, host_calls, pool, prelude, processor_time
from fdstore.programs.interpreter.events import (
    LATER,
    Answer,
    DamagedState,
    Event,
    Failed,
    Finished,
    HostCall,
    InterpreterEnded,
    Later,
    Limit,
    StateTooLarge,
    UnreadableState,
    Waiting,
)
from fdstore.programs.interpreter.host_calls import Step
from fdstore.programs.interpreter.printed import Printed
from fdstore.programs.interpreter.rewrite import rewrite
from fdstore.programs.interpreter.values import VALUE_ERRORS, to_result, without_surrogates

MAX_SUSPENSIONS = 1 << 40
"""The interpreter's own limit of calls begins again with a snapshot; `CallLimits.calls` is ours."""

LOOKUPS_PER_CALL = 20
"""Programs may look up so many unknown names for each of their `calls`: a look-up asks the host, too."""


class Session:
    """One interpreter process, until `close`. For one thread at a time, except `kill`.

    functions  names of further awaitable functions, Python names or `object.name`; a call of one is `_tool`
    state      a dump between calls
    snapshot   a dump in a `Waiting`, which `restored` returns; functions are those of its session
    seed       of random numbers, if the session has drawn none yet; a snapshot has its own

    `exited` says whether the call has ended itself, as by `exit()`.

    Raises `UnreadableState`, `DamagedState`, `MissingExtra`, and ValueError for names in `functions` that
    cannot be such.
    """

    def __init__(
        self,
        limits: CallLimits | None = None,
        *,
        functions: Sequence[str] = (),
        state: bytes | None = None,
        snapshot: bytes | None = None,
        seed: int = 0,
    ) -> None:
        prelude.check_functions(functions)
        self.limits = limits or CallLimits()
        self._seed = seed
        self._suspended: Any = None
        self._ended: Limit | None = None
        self._over = self._running = False
        self._ending = threading.Lock()
        self._pending: dict[int, int] = {}
        self._ready: dict[int, Any] = {}
        self._blocked: int | None = None
        self._calling = False
        self._clock: processor_time.ProcessorClock | None = None
        for starts in range(1, pool.MAX_STARTS + 1):
            try:
                self._open(state, snapshot, functions)
                break
            except UnreadableState as error:
                # one that was killed while it loaded has run nothing, and the session may be good
                crashed = isinstance(error.__cause__, Exception) and failures.is_crash(error.__cause__)
                if starts == pool.MAX_STARTS or not crashed:
                    raise

    def __enter__(self) -> Session:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the interpreter process. Idempotent."""
        self._over = True
        self._suspended = None
        self._process.close()

    def kill(self) -> None:
        """End the interpreter process, from any thread; what it runs ends with `Failed(limit="killed")`."""
        self._end("killed")

    @property
    def printed(self) -> str:
        """The text that the call has printed so far, with that of before its snapshot."""
        return self._printed.text

    @property
    def calls(self) -> int:
        """The number of calls of the host that the call has made, those before a snapshot included."""
        return self._number

    @property
    def used_s(self) -> float:
        """The processor time that the call has used, in seconds."""
        running = self._clock.read() - self._clock_began if self._clock else 0.0
        return self._used_s + running

    def feed(self, code: str) -> Event:
        """Begin a call."""
        self._require(suspended=False)
        code = without_surrogates(code)
        self._begin_call(code)
        changed, self._has_repr = rewrite(code, self.limits.max_output)
        try:
            self._restore_names()
        except _errors() as error:
            return self._failed(error)
        self._is_rewritten = changed != code
        return self._run(self._feeding(changed))

    def restored(self) -> Event:
        """Return the `Waiting` in which the snapshot was taken."""
        self._require(suspended=True)
        return self._waiting()

    def resume(self, answer: Answer | Later) -> Event:
        """Answer the `HostCall`. Raises TypeError for an answer of a type that code cannot have."""
        self._require(suspended=True)
        if not self._calling:
            raise RuntimeError("there is no call to answer; settle() answers those of a Waiting")
        call, number = self._suspended, self._number - 1
        if not host_calls.is_awaited(call):
            if answer is LATER:
                self._blocked, self._calling = number, False
                return self._waiting()
            return self._run(host_calls.answer_call(call, answer))
        # the interpreter takes the results of awaited calls where every task waits
        if answer is not LATER:
            self._ready[call.call_id] = to_result(answer)
        self._pending[call.call_id] = number
        return self._run(lambda: call.resume({"future": ...}))

    def settle(self, answers: Mapping[int, Answer]) -> Event:
        """Answer some or all calls of a `Waiting`, by number. Others than these are ignored."""
        self._require(suspended=True)
        if self._calling:
            raise RuntimeError("a HostCall is answered with resume()")
        if self._blocked is not None:
            if self._blocked not in answers:
                return self._waiting()
            step = host_calls.answer_call(self._suspended, answers[self._blocked])
            self._blocked = None
            return self._run(step)
        results = {
            call_id: to_result(answers[self._pending[call_id]])
            for call_id in self._suspended.pending_call_ids
            if self._pending[call_id] in answers
        }
        return self._run(self._settling(self._suspended, results)) if results else self._waiting()

    def dump(self) -> bytes:
        """Return the state between calls; in a `Waiting` a snapshot of the call.

        Raises `StateTooLarge`: the dump is made beside the variables, and both count as memory.
        `InterpreterEnded`; RuntimeError after `kill`.
        """
        import pydantic_monty

        if self._suspended is None:
            self._require(suspended=False)
        suspended = self._suspended
        if suspended is not None and self._calling:
            raise RuntimeError("a session is dumped between calls or in a Waiting")
        largest = self.largest_variables() if suspended is None else []
        used_s, payload = self.used_s, b""
        try:
            payload = self._process.session.dump() if suspended is None else suspended.dump()
        except (pydantic_monty.MontyError, RuntimeError) as error:
            self.close()
            if not self._ended:
                if failures.is_crash(error) and failures.limit_of(error) is None:
                    raise InterpreterEnded("the interpreter has ended during a dump") from error
                raise StateTooLarge(largest) from error
        if self._ended == "killed":
            raise RuntimeError("the session was killed")
        if self._ended:
            raise InterpreterEnded("the interpreter has used up its time")
        self._count_time_from(used_s)
        header = dumps.Header(
            interpreter=pydantic_monty.__version__,
            prelude=prelude.VERSION,
            functions=self._functions,
            feeds=self._feeds,
            own_feeds=sorted(self._own_feeds),
            entropy=self._entropy,
        )
        if suspended is not None:
            header.code, header.has_repr, header.seed = self._code, self._has_repr, self._seed
            header.number, header.pending, header.blocked = self._number, self._pending, self._blocked
            header.printed, header.used_s = self.printed, used_s
        return dumps.join(header, payload)

    def largest_variables(self, count: int = 5) -> list[tuple[str, int]]:
        """Return the names of the largest variables and about how many bytes each takes, largest first.

        Between calls only. Empty if the interpreter cannot measure them, as without memory left.
        """
        self._require(suspended=False)
        most = self.limits.memory_bytes
        expected = _errors() + VALUE_ERRORS
        try:
            # a program may have put a function of its own in the place of this one
            sizes = self._feed_own(f"{prelude.HOST}largest(locals(), {count})")
            return [(str(name)[:100], max(0, min(int(size), most))) for name, size in sizes[:count]]
        except expected:
            return []

    def _open(self, state: bytes | None, snapshot: bytes | None, functions: Sequence[str]) -> None:
        self._feeds, self._own_feeds, self._entropy = 0, set[int](), 0
        self._functions: list[str] = []
        self._begin_call("")
        self._process = self._start()
        try:
            self._load(state, snapshot, functions)
            self._watch_time()
        except BaseException:
            self._process.close()
            raise

    def _start(self) -> pool.InterpreterProcess:
        limits = self.limits
        return pool.start(
            limits.memory_bytes,
            limits={
                "max_feed_duration_secs": processor_time.wall_limit(limits.seconds),
                "max_memory": limits.memory_bytes,
                "max_recursion_depth": limits.recursion,
                "max_suspensions": MAX_SUSPENSIONS,
            },
            os_policy={
                "datetime": "call_host",
                "sleep": "call_host",
                "random_start": {"seed": self._seed},
            },
        )

    def _load(self, state: bytes | None, snapshot: bytes | None, functions: Sequence[str]) -> None:
        try:
            if snapshot is not None:
                self._take(self._load_dump(snapshot, is_snapshot=True))
                return
            header = self._load_dump(state, is_snapshot=False) if state is not None else None
            if header is not None:
                self._take(header)
            wanted = sorted(set(functions))
            if header is None or header.prelude != prelude.VERSION:
                self._define(wanted)
            elif wanted != self._functions:
                self._feed_own(prelude.define(wanted, self._functions))
            self._functions = wanted
        except _errors() as error:
            is_damage = failures.limit_of(error) is None and not failures.is_crash(error)
            kind = DamagedState if is_damage else UnreadableState
            raise kind(f"the interpreter cannot load the session: {error}") from error

    def _define(self, functions: Sequence[str]) -> None:
        self._feed_own(prelude.SOURCE)
        self._feed_own(prelude.define(functions, self._functions))

    def _restore_names(self) -> None:
        """Give the names of the prelude and of the user's functions their meaning again."""
        import pydantic_monty

        try:
            if self._feed_own(prelude.RESTORE) == prelude.VERSION:
                return
        except pydantic_monty.MontyRuntimeError as error:
            if failures.limit_of(error) is not None:
                raise
        self._define(self._functions)

    def _load_dump(self, dump: bytes, *, is_snapshot: bool) -> dumps.Header:
        import pydantic_monty

        header, payload = dumps.split(dump, interpreter=pydantic_monty.__version__, snapshot=is_snapshot)
        session = self._process.session
        if is_snapshot:
            self._suspended = session.load_snapshot(payload, print_callback=self._print)
            waits = hasattr(self._suspended, "pending_call_ids")
            if waits != (header.blocked is None) or (not waits and not hasattr(self._suspended, "call_id")):
                raise DamagedState("the session is damaged: it waits for other calls than its header says")
            self._check_pending(header.pending)
        else:
            session.load_session(payload)
        return header

    def _check_pending(self, known: Mapping[int, int]) -> None:
        """Raise `DamagedState` if the interpreter waits for calls that are not `known`: others have written
        its snapshot."""
        if not set(getattr(self._suspended, "pending_call_ids", ())) <= known.keys():
            raise DamagedState("the session is damaged: it waits for calls that were not made")

    def _take(self, header: dumps.Header) -> None:
        self._functions, self._entropy = header.functions, header.entropy
        self._feeds, self._own_feeds = header.feeds, set(header.own_feeds)
        if header.code is not None:
            self._code, self._has_repr, self._seed = header.code, header.has_repr, header.seed
            self._number, self._pending, self._blocked = header.number, header.pending, header.blocked
            self._printed = Printed(self.limits.max_output, header.printed)
            self._used_s = header.used_s

    def _begin_call(self, code: str) -> None:
        self._code, self._is_rewritten, self._has_repr = code, False, False
        self._number = self._lookups = 0
        self._calling = self.exited = False
        self._pending, self._ready, self._blocked = {}, {}, None
        self._printed = Printed(self.limits.max_output)
        self._count_time_from(0.0)

    def _count_time_from(self, used_s: float) -> None:
        self._used_s = used_s
        self._clock_began = self._clock.read() if self._clock else 0.0

    def _watch_time(self) -> None:
        self._clock = self._process.find_clock()
        self._count_time_from(self._used_s)
        own = weakref.ref(self)

        def check() -> bool:
            session = own()
            return session is not None and session._check_time()

        if self._clock is not None:
            processor_time.watch.add(check)

    def _check_time(self) -> bool:
        with self._ending:
            # a suspended program uses no time; one past its limit is ended when it goes on
            if self._running and self.used_s > self.limits.seconds:
                self._end("seconds")
        return not self._over

    def _end(self, limit: Limit) -> None:
        if not self._over:
            self._ended = self._ended or limit
            self._process.kill()

    def _step(self, step: Step) -> Any:
        """Let the interpreter run, within its time."""
        with self._ending:
            if self.used_s > self.limits.seconds:
                self._end("seconds")
            self._running = True
        began = time.monotonic()
        try:
            return step()
        finally:
            with self._ending:
                self._running = False
            if self._clock is None:
                self._used_s += time.monotonic() - began

    def _feed_own(self, code: str) -> Any:
        """Run code of ours, and return its value. It may call what a program has put in the place of ours."""
        self._own_feeds.add(self._feeds)
        self._feeds += 1
        session = self._process.session
        return self._step(
            lambda: session.feed_run(
                code, external_lookup=host_calls.STAND_INS, print_callback=lambda _, text: None
            )
        )

    def _feeding(self, code: str) -> Step:
        self._feeds += 1
        # the interpreter gives an empty piece no number, and an empty line one
        return lambda: self._process.session.feed_start(code or "\n", print_callback=self._print)

    def _require(self, *, suspended: bool) -> None:
        if self._over:
            raise RuntimeError("the session is over")
        if self._process.inherited:
            raise RuntimeError("the session belongs to the process of which this is a fork")
        if (self._suspended is not None) != suspended:
            raise RuntimeError("no call is suspended" if suspended else "a call of this session is suspended")

    def _print(self, _: str, text: str) -> None:
        if not self._printed.add(text):
            self._end("output")  # what is raised here ends the code only at its next call of the host
            raise OverflowError("the limit of printed characters is passed")

    def _waiting(self) -> Waiting:
        if self._blocked is not None:
            return Waiting((self._blocked,))
        return Waiting(tuple(sorted(self._pending[call_id] for call_id in self._suspended.pending_call_ids)))

    def _settling(self, suspended: Any, results: dict[int, Any]) -> Step:
        # tasks go on in the order of their calls, in whatever order the answers came
        ordered = {call_id: results[call_id] for call_id in sorted(results, key=self._pending.__getitem__)}
        for call_id in ordered:
            del self._pending[call_id]
        return lambda: suspended.resume(ordered)

    def _run(self, step: Step) -> Event:
        """Let the interpreter go on to the next event."""
        self._suspended, self._calling = None, False
        while True:
            try:
                stop = self._step(step)
            except _errors() as error:
                if self._is_rewritten and failures.is_refused(error):
                    # what is wrong is said of the code as it was written
                    self._is_rewritten = self._has_repr = False
                    step = self._feeding(self._code)
                    continue
                return self._failed(error)
            if self._ended:
                return self._stopped(self._ended)
            if self._lookups > LOOKUPS_PER_CALL * self.limits.calls:
                return self._stopped("calls")
            try:
                reached = self._reached(stop)
            except VALUE_ERRORS as error:
                self._lookups += 1
                reached = host_calls.refuse(stop, error)
            if isinstance(reached, Event):
                return reached
            step = reached

    def _reached(self, stop: Any) -> Event | Step:
        """Return the event where the interpreter stops, or how it goes on without the host."""
        import pydantic_monty

        match stop:
            case pydantic_monty.MontyComplete():
                return Finished(self._value(stop.output))
            case pydantic_monty.FutureSnapshot(pending_call_ids=pending):
                ready = {call_id: self._ready.pop(call_id) for call_id in pending if call_id in self._ready}
                if pending and not ready:
                    self._suspended = stop
                    self._check_pending(self._pending)
                    return self._waiting()
                # if nothing will ever come, the interpreter raises
                return self._settling(stop, ready)
            case pydantic_monty.NameLookupSnapshot():
                self._lookups += 1
                return lambda: stop.resume()
            case _:
                return self._called(stop)

    def _called(self, call: Any) -> Event | Step:
        """Return the event of a call, or how the interpreter goes on without the host."""
        asked = host_calls.read_call(call, self._random_bytes)
        if not isinstance(asked, host_calls.AskedHost):
            self._lookups += 1
            return asked
        if self._number >= self.limits.calls:
            return self._stopped("calls")
        self._suspended, self._calling = call, True
        self._number += 1
        return HostCall(self._number - 1, asked.name, asked.args, asked.kwargs)

    def _random_bytes(self, size: int) -> bytes:
        self._entropy += 1
        return random.Random(f"{self._seed} {self._entropy}").randbytes(size)

    def _value(self, output: Any) -> str | None:
        if output is None or (self._has_repr and isinstance(output, str)):
            return output
        return failures.host_repr(output, self.limits.max_output)

    def _failed(self, error: Exception) -> Event:
        limit = self._ended or failures.limit_of(error)
        if limit is not None or failures.is_crash(error) or self._process.ended:
            return self._stopped(limit or "", error)
        failed = failures.FailedCode(self._code, self._feeds - 1, self._own_feeds, self._functions)
        self.exited = failures.is_exit(error)
        ended, text = failures.describe(error, failed)
        return Finished(None) if ended else Failed(text, keeps_session=True)

    def _stopped(self, limit: Limit, error: Exception | None = None) -> Failed:
        self.close()
        failed = failures.FailedCode(self._code, self._feeds - 1, self._own_feeds, self._functions)
        return Failed(failures.describe_stop(limit, self.limits, failed, error), False, limit)


def _errors() -> tuple[type[Exception], ...]:
    """Return what the interpreter raises."""
    import pydantic_monty

    return (pydantic_monty.MontyError, RuntimeError)
