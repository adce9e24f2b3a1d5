"""What the tool calls of a process came to, so that a call that is made again is not done again.

    fdstore:{triage}:triage:calls   hash   toolu_1          what the script that made something answered
                                           toolu_1/request  the tool, and a digest of the arguments
                                           toolu_1/outcome  what the whole call came to (JSON)
                                           toolu_1/begun    the run of a tool that must not run twice
                                           toolu_1/plan     the file that is about to be put in place (JSON)
                                           toolu_1/exported how many bytes it wrote to a file (see `exports`)

An id belongs to one request for ever: with another one it is refused, and never gets that one's answer.

The first kind is written in one step with what was made, so nothing is made twice even when a worker
dies in between. The second saves the way there: a repeat does not read files, copy texts or run
somebody's function again, and finds its answer when what it was made of is closed by now. The third is
for what the store cannot see the end of: it is written before a function runs, by one attempt alone.
The fourth is for what can be looked at afterwards: with it the next attempt knows what to look for.
"""

from __future__ import annotations

import hashlib
import json
from contextlib import suppress

from fdstore.errors import InvalidArgument, StoreFull, StoreReadOnly, quoted
from fdstore.store.content_info import ProcessHandle
from fdstore.store.decoding import decoding
from fdstore.store.outcomes import outcome
from fdstore.wire.operation import Command, Operation, new_op
from fdstore.wire.scripts import script, text


def identify(handle: ProcessHandle, call_id: str, request: str) -> Operation[str | None]:
    """Note what a call asks for (`request_of`) and return what it came to before, or None. One round trip.

    Raises `InvalidArgument` when the id belongs to another request, `Fenced`, `NotFound`.
    """
    keys, fields = handle.keys, (f"{call_id}/request", f"{call_id}/outcome")
    before: Command = ("HMGET", keys.calls, *fields)
    note = script("keep")((keys.record, keys.calls), handle.attempt, fields[0], request)
    reply = None
    try:
        (asked, made), reply = yield [before, note]
    except (StoreFull, StoreReadOnly):
        # what follows may need no room, or make some
        [(asked, made)] = yield [before]
    if asked is None and made is None and reply is not None:
        [asked] = outcome(reply, handle.id)
    if asked is not None and _said_in(handle, asked) != request:
        problem = "was given to another call before; give each call an id of its own"
        raise InvalidArgument("call_id", f"{quoted(call_id)} {problem}")
    return None if made is None else _said_in(handle, made)


def request_of(tool: str, arguments: object) -> str:
    """Return a text that tells the calls of a tool apart by their arguments, in any order of the names.
    Raises `InvalidArgument` for arguments that JSON cannot hold.

    >>> request_of("read_fd", {"fd": 1, "start": 2}) == request_of("read_fd", {"start": 2, "fd": 1})
    True
    """
    try:
        written = json.dumps(arguments, sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument("", f"the arguments cannot be written as JSON: {error}") from error
    return f"{tool} {hashlib.sha256(written.encode()).hexdigest()[:32]}"


def store_result(handle: ProcessHandle, call_id: str, made: str) -> Operation[None]:
    """Keeps what a call came to, unless Redis is full; what was kept first stays. Raises `Fenced`,
    `NotFound`."""
    with suppress(StoreFull):  # the call has done its work, and its caller must not take it for undone
        yield from _say(handle, f"{call_id}/outcome", made)


def begin(handle: ProcessHandle, call_id: str) -> Operation[bool]:
    """Whether this run of a call is the first to begin. Of any number that ask, one is told so, however
    often its request is sent. Raises `Fenced`, `NotFound`."""
    run = new_op()
    return (yield from _say(handle, f"{call_id}/begun", run)) == run


def read_plan(handle: ProcessHandle, call_id: str) -> Operation[str | None]:
    """What the last attempt at this call was about to do."""
    [found] = yield [("HGET", handle.keys.calls, f"{call_id}/plan")]
    return None if found is None else _said_in(handle, found)


def plan(handle: ProcessHandle, call_id: str, before: str | None, what: str) -> Operation[bool]:
    """Notes what this attempt is about to do, in place of the plan `before`. False when another attempt
    has noted its own in between. Raises `Fenced`, `NotFound`."""
    keys = handle.keys
    [reply] = yield [
        script("plan")((keys.record, keys.calls), handle.attempt, f"{call_id}/plan", before or "", what)
    ]
    [stands] = outcome(reply, handle.id)
    return text(stands) == what


def _said_in(handle: ProcessHandle, found: bytes) -> str:
    with decoding(f"the calls of process {handle.id}"):
        return text(found)


def _say(handle: ProcessHandle, field: str, said: str) -> Operation[str]:
    """Writes a field, unless it is there; what it holds then."""
    [reply] = yield [script("keep")((handle.keys.record, handle.keys.calls), handle.attempt, field, said)]
    [stays] = outcome(reply, handle.id)
    return _said_in(handle, stays)
