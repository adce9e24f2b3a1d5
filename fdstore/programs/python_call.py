"""One call of `run_python`: the code is fed to the interpreter, and each of its calls answered.

When every task of the code waits for other processes, the state of the interpreter is stored and the call
returns what it waits for. The next attempt, on whatever machine, goes on there. An attempt that was lost is
repeated from the last such point: the same code gets the same answers (see `host`), so it does the same.
"""

from __future__ import annotations

import logging
import secrets
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from functools import partial

import msgspec

from fdstore.elements.build import Rendered
from fdstore.elements.facts import ResultFacts
from fdstore.elements.render import python_result
from fdstore.errors import DamagedRecord, InvalidArgument, quoted
from fdstore.model.call_limits import CallLimits
from fdstore.model.msgspec_types import prepare
from fdstore.model.records import MAX_MOMENT_S
from fdstore.programs.host import Host, Starters, cancel_all
from fdstore.programs.interpreter.events import (
    Answer,
    DamagedState,
    Event,
    Failed,
    Finished,
    HostCall,
    InterpreterEnded,
    StateTooLarge,
    UnreadableState,
    Waiting,
)
from fdstore.programs.interpreter.session import Session
from fdstore.programs.pending_calls import PendingCalls
from fdstore.programs.recorded_answers import ChangedText
from fdstore.results.context import Context
from fdstore.results.tool_outcome import Offloaded, Started, ToolOutcome, ToolResult, tool_result
from fdstore.results.wrapping import exceeds_threshold, wrap_text
from fdstore.store.keys import is_process
from fdstore.store.processes import python_state
from fdstore.store.record_format import decoding
from fdstore.text.numbers import MAX_INTEGER
from fdstore.wire.operation import Disk, Operation

log = logging.getLogger("fdstore.tools")

MAX_RUNS = 3
"""The most runs of a call whose interpreter ends before it."""

NOT_SUSPENDED = (
    "too_large: the variables take too much memory to wait for an answer; variables are as before the call. "
    "Keep less in them before ask, spawn or pipe is awaited: create(text) stores a long text, if you have it."
)
ENDED = "The interpreter ended unexpectedly; variables are as before the call."

CHANGED = (
    "conflict: the program was interrupted, and {} means another text than it read before; variables are as "
    "before the call. What it has stored and asked stays. Look at both, and run what is left: a text that is "
    "read by its number, as fd('fd:1'), stays the same."
)

MAX_CODE_BYTES = 64 * 1024
"""The most UTF-8 bytes of the code of one call."""

SOURCE = "run_python"
"""The source of a long result, as the model sees it."""


class Snapshot(msgspec.Struct, frozen=True):
    """A call that waits, as it is stored: the interpreter, and what it waits for."""

    interpreter: bytes
    pending: PendingCalls


prepare(Snapshot)


def check_size(code: str) -> None:
    """Raise `InvalidArgument` for code that is too long."""
    size = len(code) if len(code) > MAX_CODE_BYTES else len(code.encode("utf-8", "surrogatepass"))
    if size > MAX_CODE_BYTES:
        raise InvalidArgument(
            "code",
            f"it has more than {MAX_CODE_BYTES >> 10} KiB; define functions in one call and use them in the "
            "next, and store long texts as descriptors, which fd('fd:1').text() reads",
        )


def run_call(context: Context, starters: Starters, code: str, run_id: str) -> Operation[ToolOutcome]:
    """Run the code as far as it goes without waiting. Return its result, or `Started` with the processes
    whose ends it waits for: then the same call is to be made again.

    A call whose interpreter ended before it is repeated, as after a lost attempt. Raises `InvalidArgument`
    for code that is too long."""
    check_size(code)
    for _ in range(MAX_RUNS - 1):
        with suppress(InterpreterEnded):
            return (yield from _run(context, starters, code, run_id, is_last=False))
    return (yield from _run(context, starters, code, run_id, is_last=True))


def abandon(context: Context, run_id: str) -> Operation[None]:
    """End a call that is not made again, and cancel what it waits for. The variables stay as they were before
    it. Does nothing for a call that has ended, or that another one has replaced."""
    running = (yield from python_state.read(context.handle, run_id)).call
    if running is None:
        return
    asked: list[int] = []
    if running.snapshot is not None:
        pending = _decode(context, running.snapshot).pending
        yield from cancel_all(context.prefix, [*pending.lanes, *pending.processes.values()])
        asked = [each.question for each in pending.people.values()]
    yield from python_state.end(context.handle, run_id, None, withdrawn=asked)


def _decode(context: Context, snapshot: bytes) -> Snapshot:
    process = context.handle.id
    with decoding(f"the programs of process {process}"):
        found = msgspec.msgpack.decode(snapshot, type=Snapshot)
        for child in (*found.pending.lanes, *found.pending.processes.values()):
            if not child.startswith(f"{process}.") or not is_process(child):
                raise ValueError(f"it waits for {quoted(child)}, which is not below it")
        if not 0 <= found.pending.slept_s <= MAX_INTEGER:
            raise ValueError("its clock is not a time")
        for call in found.pending.people.values():
            if not (0 <= call.until < MAX_MOMENT_S and 0 <= call.seconds < MAX_MOMENT_S):
                raise ValueError("a question waits for a time that is none")
    return found


@contextmanager
def damage_reported(process: str) -> Iterator[None]:
    """Raise `DamagedRecord` of the process for a `DamagedState` in the block."""
    try:
        yield
    except DamagedState as error:
        raise DamagedRecord(f"the programs of process {process}", error.why) from error


def _run(
    context: Context, starters: Starters, code: str, run_id: str, *, is_last: bool
) -> Operation[ToolOutcome]:
    handle = context.handle
    state = yield from python_state.read(handle, run_id)
    running = state.call
    if running is None:
        running = yield from python_state.begin(handle, run_id, secrets.randbits(53))
    pending, interpreter = PendingCalls(), None
    if running.snapshot is not None:
        stored = _decode(context, running.snapshot)
        pending, interpreter = stored.pending, stored.interpreter
    names = context.names_for_code
    limits = context.python.limits_under(handle.limits)
    with damage_reported(handle.id), ExitStack() as held:
        opened: Opened = yield Disk(
            lambda: _held(held, open_session(limits, names, state.session, interpreter, running.seed)),
            must_end=True,
        )
        session = opened.session
        if not opened.is_restored:
            pending = PendingCalls()
        host = Host(context, starters, run_id, running.recorded, pending)
        with context.watch(session.kill):
            event: Event = yield Disk(session.restored if opened.is_restored else lambda: session.feed(code))
            event = yield from drive(session, host, event, host.settle)
            if isinstance(event, Failed) and event.is_crash and not is_last:
                raise InterpreterEnded
            try:
                if isinstance(event, Waiting):
                    return (yield from _suspend(context, session, host, run_id, event))
                ended = yield from _end(context, opened, host, event, run_id)
            except StateTooLarge:
                failed = Failed(NOT_SUSPENDED, keeps_session=False, limit="memory")
                ended = yield from _end(context, opened, host, failed, run_id)
            except InterpreterEnded:
                if not is_last:
                    raise
                ended = yield from _end(context, opened, host, Failed(ENDED, keeps_session=False), run_id)
            # after the end, which a lost attempt cannot write: the next one still needs them
            yield from host.leave()
            return ended


class Opened(msgspec.Struct, frozen=True):
    """A session of the interpreter. `is_restored`: it waits where the snapshot was taken. `note` is for the
    model."""

    session: Session
    is_restored: bool = False
    note: str = ""


def _held(held: ExitStack, opened: Opened) -> Opened:
    """Let `held` end the session, even if the operation is cancelled before it receives it."""
    session = opened.session

    def end(kind: type[BaseException] | None, *_: object) -> None:
        if kind is GeneratorExit:  # cancelled: `close` would wait for the code, which a thread still runs
            session.kill()
        session.close()

    held.push(end)
    return opened


def open_session(
    limits: CallLimits, functions: Sequence[str], state: bytes | None, snapshot: bytes | None, seed: int
) -> Opened:
    """Open the session of a call. A snapshot or a state that this version of the interpreter cannot read is
    left: then the call is repeated, or begins without the variables of earlier ones.

    Raises `DamagedState`."""
    if snapshot is not None:
        with suppress(UnreadableState):
            return Opened(
                Session(limits, functions=functions, snapshot=snapshot, seed=seed), is_restored=True
            )
    try:
        return Opened(Session(limits, functions=functions, state=state, seed=seed))
    except UnreadableState as error:
        log.warning("the variables of earlier calls are gone: %s", error.why)
        note = f"The variables of earlier calls are gone: {error.why}.\n"
        return Opened(Session(limits, functions=functions, seed=seed), note=note)


def drive(
    session: Session, host: Host, event: Event, settle: Callable[[Waiting], Operation[Mapping[int, Answer]]]
) -> Operation[Finished | Failed | Waiting]:
    """Answer the calls of the code until it is over, or waits for what `settle` has no answers to."""
    while not isinstance(event, Finished | Failed):
        if isinstance(event, HostCall):
            try:
                answer = yield from host.answer(event)
            except ChangedText as changed:
                return Failed(CHANGED.format(changed.ref), keeps_session=False, limit="changed")
            event = yield Disk(partial(session.resume, answer))
        elif answers := (yield from settle(event)):
            event = yield Disk(partial(session.settle, answers))
        else:
            return event
    return event


def _suspend(
    context: Context, session: Session, host: Host, run_id: str, event: Waiting
) -> Operation[Started]:
    interpreter: bytes = yield Disk(session.dump)
    stored = msgspec.msgpack.encode(Snapshot(interpreter, host.pending))
    yield from python_state.suspend(context.handle, run_id, stored)
    asked = host.asks_people(event)
    first = min(asked, key=lambda call: call.until, default=None)
    return Started(
        tuple(host.waits_for(event)),
        None if first is None else first.until,
        None if first is None else first.seconds,
        resumes=True,
        questions=tuple(call.question for call in asked),
    )


def _end(
    context: Context, opened: Opened, host: Host, event: Finished | Failed, run_id: str
) -> Operation[ToolResult]:
    session, pending = opened.session, host.pending
    text = "".join([opened.note, *(f"{note}\n" for note in pending.notes), _text_of(session.printed, event)])
    state, problem = yield from state_after(context, session, event)
    if problem:
        text = f"{text}\n{problem}" if text else problem
    shown = yield from _show(context, session, text, run_id)
    result = tool_result(shown, is_error=bool(problem) or isinstance(event, Failed))
    said = tuple(msgspec.structs.replace(each, is_shown=False) for each in pending.said)
    result = result.behind("", ResultFacts(people=said))
    yield from python_state.end(
        context.handle,
        run_id,
        state,
        msgspec.json.encode(result).decode("utf-8"),
        withdrawn=[each.question for each in pending.people.values()],
    )
    return result


def state_after(
    context: Context, session: Session, event: Finished | Failed
) -> Operation[tuple[bytes | None, str]]:
    """Return the state to keep after a call, None for that before it; and why there is none, "" if the call
    ended without one."""
    if isinstance(event, Failed) and not event.keeps_session:
        return None, ""
    most = context.python.state_bytes
    try:
        dump: bytes = yield Disk(session.dump)
        if len(dump) <= most:
            return dump, ""
        size, largest = f"{len(dump)} bytes", (yield Disk(session.largest_variables))
    except StateTooLarge as error:
        size, largest = "too much memory", error.largest
    return None, _too_large(context, size, largest)


def _too_large(context: Context, size: str, largest: list[tuple[str, int]]) -> str:
    named = ", ".join(f"{name} (about {taken} bytes)" for name, taken in largest) or "unknown"
    kept = "Keep long texts as descriptors, with create(text), and s" if context.code_may_create else "S"
    return (
        f"too_large: the variables take {size}; at most {context.python.state_bytes} bytes are kept for the "
        f"next call. The largest: {named}. They are what they were before this call. {kept}et variables to "
        "None when they are not needed any more."
    )


def _show(context: Context, session: Session, text: str, run_id: str) -> Operation[Rendered | Offloaded]:
    if exceeds_threshold(context, text, SOURCE):
        return (yield from wrap_text(context, text, SOURCE, f"{run_id}/result", is_same=False))
    return python_result(text, calls=session.calls, seconds=session.used_s)


def _text_of(printed: str, event: Finished | Failed) -> str:
    last = event.text if isinstance(event, Failed) else event.value
    if last is None:
        return printed.removesuffix("\n")
    if printed and not printed.endswith("\n"):
        printed += "\n"
    return printed + last
