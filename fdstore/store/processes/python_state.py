"""The state of a process's programs (`run_python`): the session between calls, and the call that runs.

    fdstore:{triage}:triage:python   hash   head         which of the other fields are current (JSON)
                                            V/0, V/1...  pieces of the session or the snapshot of version V
                                            V/answer/7   the recorded answer to host call 7 since snapshot V
                                            V/held/P     the session of process P is V, by reference

A session is the variables of the interpreter between two calls, as bytes. A snapshot is those of a call that
waits. A call that was interrupted goes on from its last snapshot, or from the session before it if there is
none, with the answers recorded since.

A fork has the session of its parent by reference: its head names the process that stored it, where a field
keeps the pieces until no process has them any more. A session is released with its process's descriptors.

A state is written in pieces under a new version; then one write of `head` makes it the current one, together
with the end of the call if it is a session. A writer that dies before that has changed nothing: the next one
removes its pieces. A small state takes one round trip to read, and one to write.

One call runs in a process at a time. The writer of a process that workers run is fenced by its attempt; of
two clients of another process, the call that begins later replaces the earlier one, which is fenced.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.model.msgspec_types import prepare
from fdstore.model.records import Count, Moment
from fdstore.store.keys import ProcessKeys, in_bounded_pieces, member_of
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import decode_count, decode_record, decoding
from fdstore.wire.operation import Batch, Command, Operation, Value, new_op
from fdstore.wire.scripts import script, text

PIECE_BYTES = 512 * 1024
"""The largest piece of a state that one field holds."""

READ_BYTES = 2 * PIECE_BYTES
"""After this many bytes, further fields are read by requests of their own."""

PIECES_AT_ONCE = 4
"""Pieces that one request reads or writes."""

ANSWERS_AT_ONCE = 500
"""Recorded answers that one request reads or writes."""

LOOKS = 5
"""The most reads of a state that changes while it is read."""


class RunningCall(msgspec.Struct, frozen=True, kw_only=True):
    """A call that has begun and not ended. `snapshot`: its last one. `began_s`: the Redis time of its first
    begin. `recorded`: the answers to host calls since the snapshot, by their numbers."""

    call_id: str
    snapshot: bytes | None
    began_s: float
    seed: int
    recorded: dict[int, bytes]


class PythonState(msgspec.Struct, frozen=True, kw_only=True):
    """The session of a process, None before its first one, and the call that was asked for, if it runs."""

    session: bytes | None
    call: RunningCall | None


Seed = Annotated[int, msgspec.Meta(ge=-(2**63), le=2**63 - 1)]


class _Head(msgspec.Struct, frozen=True):
    """The current versions, as the scripts store them."""

    session: str = ""
    session_chunks: Count = 0
    session_of: str = ""
    call: str = ""
    seed: Seed = 0
    run: str = ""
    began: Moment = 0.0
    snapshot: str = ""
    snapshot_chunks: Count = 0


prepare(_Head)


def read(handle: ProcessHandle, call_id: str) -> Operation[PythonState]:
    """Return the session, and the call `call_id` if it runs. One round trip for up to `READ_BYTES`, and one
    for each further `PIECES_AT_ONCE` pieces. Raises `DamagedRecord`."""
    key = handle.keys.python
    missing = ""
    for _ in range(LOOKS):
        read_all = script("python_read")(
            python=key, tree=handle.keys.tree.record, call=call_id, most_bytes=READ_BYTES
        )
        [reply] = yield [read_all]
        stored, flat, others = outcome(reply, handle.id)
        head = _decode_head(handle.keys, stored) if stored else _Head()
        of_session = f"{head.session}/".encode()
        found: dict[bytes, bytes | None] = dict(zip(flat[::2], flat[1::2], strict=True))
        start = 0
        while start < len(others):
            is_answer, is_session = b"/answer/" in others[start], others[start].startswith(of_session)
            some = others[start : start + (ANSWERS_AT_ONCE if is_answer else PIECES_AT_ONCE)]
            some = [name for name in some if name.startswith(of_session) == is_session]
            [values] = yield [("HMGET", _key_of_session(handle.keys, head) if is_session else key, *some)]
            found.update(zip(some, values, strict=True))
            start += len(some)
        missing = next((text(name) for name, value in found.items() if value is None), "")
        if not missing:
            with decoding(_name(handle.keys)):
                return _decode(call_id, head, found)
    raise DamagedRecord(_name(handle.keys), f"its field {missing} is missing")


def _name(keys: ProcessKeys) -> str:
    return f"the programs of process {keys.process}"


def _decode_head(keys: ProcessKeys, stored: bytes) -> _Head:
    fields = decode_record(stored, dict[str, str], _name(keys))
    with decoding(_name(keys)):
        head = msgspec.convert(fields, _Head, strict=False)
    if head.session_of and member_of(keys.tree, head.session_of.encode()) is None:
        raise DamagedRecord(_name(keys), "its session is of a process of another tree")
    return head


def _key_of_session(keys: ProcessKeys, head: _Head) -> str:
    return ProcessKeys(keys.tree, head.session_of).python if head.session_of else keys.python


def _decode(call_id: str, head: _Head, found: Mapping[bytes, Any]) -> PythonState:
    def whole(version: str, chunks: int) -> bytes | None:
        pieces = range(chunks)
        return b"".join(found[f"{version}/{number}".encode()] for number in pieces) if version else None

    session = whole(head.session, head.session_chunks)
    if not head.call or head.call != call_id:
        return PythonState(session=session, call=None)
    recorded = {
        decode_count(name.rpartition(b"/")[2]): value for name, value in found.items() if b"/answer/" in name
    }
    return PythonState(
        session=session, call=_call(head, whole(head.snapshot, head.snapshot_chunks), recorded)
    )


def _call(head: _Head, snapshot: bytes | None, recorded: dict[int, bytes]) -> RunningCall:
    return RunningCall(
        call_id=head.call,
        snapshot=snapshot,
        began_s=head.began,
        seed=head.seed,
        recorded=dict(sorted(recorded.items())),
    )


def problem_of(keys: ProcessKeys, stored: bytes) -> Operation[str]:
    """Return what is wrong with a state, for `doctor`, by its head; "" for nothing. One round trip. Raises
    `DamagedRecord`."""
    head = _decode_head(keys, stored)
    own, of_session = yield [("HKEYS", keys.python), ("HKEYS", _key_of_session(keys, head))]
    for version, chunks, there in (
        (head.session, head.session_chunks, of_session),
        (head.snapshot, head.snapshot_chunks, own),
    ):
        known = frozenset(there)
        for number in range(chunks if version else 0):
            if (name := f"{version}/{number}").encode() not in known:
                return f"its field {name} is missing"
    return ""


def begin(handle: ProcessHandle, call_id: str, seed: int) -> Operation[RunningCall]:
    """Begin a call, or return when and with which seed it has begun: its first begin wins. The result has no
    snapshot and no answers; `read` returns them. A call that another one replaces is over: the session before
    it stays. Raises `Fenced`, `NotFound`."""
    keys = handle.keys
    [reply] = yield [
        script("python_begin")(
            process=keys.record,
            python=keys.python,
            attempt=handle.attempt,
            call=call_id,
            seed=seed,
            op=new_op(),
        )
    ]
    [stored] = outcome(reply, handle.id)
    return _call(_decode_head(keys, stored), None, {})


def record(handle: ProcessHandle, call_id: str, answers: Mapping[int, bytes]) -> Operation[None]:
    """Record answers to host calls, which a repeat of the call must get again. Raises `Fenced`,
    `NotFound`."""
    for piece in in_bounded_pieces(answers.items(), ANSWERS_AT_ONCE, PIECE_BYTES):
        [reply] = yield [_fields(handle, call_id, "", piece)]
        outcome(reply, handle.id)


def _fields(handle: ProcessHandle, call_id: str, version: str, values: Sequence[Value]) -> Command:
    keys = handle.keys
    return script("python_fields")(
        process=keys.record,
        python=keys.python,
        attempt=handle.attempt,
        call=call_id,
        version=version,
        values=values,
    )


def suspend(handle: ProcessHandle, call_id: str, snapshot: bytes) -> Operation[None]:
    """Replace the snapshot of a running call, and remove the answers recorded before it. Raises `Fenced`,
    `NotFound`, `StoreFull`."""
    yield from _flip(handle, call_id, "snapshot", snapshot, "")


def end(
    handle: ProcessHandle,
    call_id: str,
    session: bytes | None,
    result: str = "",
    withdrawn: Iterable[int] = (),
) -> Operation[None]:
    """End a call with a new session, or with None leave the session as it was before the call. In the same
    step, store the `result` of the call (see `tool_calls.store_result`), so that a call that has changed the
    session never runs again, and withdraw these questions to a person (see `questions`). Raises `Fenced`,
    `NotFound`, `StoreFull`."""
    if session is None:
        yield from _flip(handle, call_id, "end", b"", result, withdrawn)
    else:
        yield from _flip(handle, call_id, "session", session, result, withdrawn)


def _flip(
    handle: ProcessHandle,
    call_id: str,
    what: str,
    state: bytes,
    result: str,
    withdrawn: Iterable[int] = (),
) -> Operation[None]:
    keys, version = handle.keys, new_op()
    pieces = [state[start : start + PIECE_BYTES] for start in range(0, len(state), PIECE_BYTES)] or [b""]
    if what == "end":
        pieces = []
    beside: list[Value] = [*pieces]
    if len(pieces) > 1:
        beside = []
        for start in range(0, len(pieces), PIECES_AT_ONCE):
            staged: Batch = [
                _fields(handle, call_id, version, [number, pieces[number]])
                for number in range(start, min(start + PIECES_AT_ONCE, len(pieces)))
            ]
            for reply in (yield staged):
                outcome(reply, handle.id)
    flip = script("python_flip")(
        process=keys.record,
        python=keys.python,
        calls=keys.calls,
        tree=keys.tree.record,
        questions=keys.questions,
        attempt=handle.attempt,
        call=call_id,
        what=what,
        version=version,
        chunks=len(pieces),
        outcome=result,
        withdrawn=" ".join(map(str, withdrawn)),
        pieces=beside,
    )
    [reply] = yield [flip]
    outcome(reply, handle.id)
