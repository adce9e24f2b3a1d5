"""Idempotency records, one set of fields per tool call: a repeated call returns its first result.

    fdstore:{triage}:triage:calls   hash   toolu_1          reply of the script that created something
                                           toolu_1/request  the tool, and a digest of the arguments
                                           toolu_1/outcome  result of the whole call (JSON)
                                           toolu_1/begun    the run of a tool that must not run twice
                                           toolu_1/plan     the file about to be renamed into place (JSON)
                                           toolu_1/exported bytes written to a file (see `export_quota`)

A call id belongs to one request for ever: with another request it is refused, and never returns the first
one's result. Those of an agent come from its journal, so the attempt that wrote the model's answer there
begins its calls without recording their requests, and stores their outcomes with the next journal record.

The script's reply is stored atomically with the object it created, so nothing is created twice even if
the worker dies in between. `outcome` saves work: a repeat does not read files, copy texts or run a
user's function again, and returns its result even if the inputs have been closed since. `begun` is for
side effects that the store cannot observe: one attempt alone writes it, before the function runs. `plan`
is for effects that can be checked afterwards: it tells the next attempt what to check.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from contextlib import suppress
from typing import Any

from fdstore.errors import InvalidArgument, StoreFull, StoreReadOnly, quoted
from fdstore.store.outcomes import outcome
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.record_format import decoding
from fdstore.wire.operation import Batch, Command, Operation, new_op
from fdstore.wire.scripts import script, text


def identify(handle: ProcessHandle, call_id: str, request: str) -> Operation[str | None]:
    """Record the request of a call (`request_of`). Return its stored outcome, or None. One round trip.

    Raises `InvalidArgument` when the id belongs to another request, `Fenced`, `NotFound`.
    """
    keys, fields = handle.keys, (f"{call_id}/request", f"{call_id}/outcome")
    before: Command = ("HMGET", keys.calls, *fields)
    note = _put_once_command(handle, fields[0], request)
    reply = None
    try:
        (stored_request, result), reply = yield [before, note]
    except (StoreFull, StoreReadOnly):
        # go on: the call may need no memory, or free some
        [(stored_request, result)] = yield [before]
    if stored_request is None and result is None and reply is not None:
        [stored_request] = outcome(reply, handle.id)
    if stored_request is not None and _decode(handle, stored_request) != request:
        problem = "was used for another call; give each call an id of its own"
        raise InvalidArgument("call_id", f"{quoted(call_id)} {problem}")
    return None if result is None else _decode(handle, result)


def request_of(tool: str, arguments: object) -> str:
    """Return a text that identifies a tool and its arguments, whatever the order of their names. Raises
    `InvalidArgument` for arguments that cannot be encoded as JSON.

    >>> request_of("read_fd", {"fd": 1, "start": 2}) == request_of("read_fd", {"start": 2, "fd": 1})
    True
    """
    try:
        written = json.dumps(arguments, sort_keys=True, default=repr)
    except (TypeError, ValueError, RecursionError) as error:
        raise InvalidArgument("", f"the arguments cannot be written as JSON: {error}") from error
    return f"{tool} {hashlib.sha256(written.encode()).hexdigest()[:32]}"


def store_result(handle: ProcessHandle, call_id: str, result: str) -> Operation[None]:
    """Store the result of a call, unless one is stored already or Redis is full. Raises `Fenced`,
    `NotFound`."""
    yield from store_results(handle, [result_command(handle, call_id, result)])


def result_command(handle: ProcessHandle, call_id: str, result: str) -> Command:
    """Return the command that stores the result of a call, for `store_results` or `run_beside`."""
    return _put_once_command(handle, f"{call_id}/outcome", result)


def store_results(handle: ProcessHandle, commands: Batch) -> Operation[None]:
    """Store the results of calls. Raises as `store_result`."""
    with suppress(StoreFull):  # the calls have succeeded; an error here would report them as failed
        for reply in (yield commands):
            outcome(reply, handle.id)


def run_beside(
    handle: ProcessHandle, commands: Batch, batch: Callable[[Batch], Operation[list[Any]]]
) -> Operation[list[Any]]:
    """Run `batch(commands)`, which sends these commands that store results first, and return its other
    replies. If Redis is full, the results are lost, as in `store_results`. Raises as `store_result`."""
    try:
        replies = yield from batch(commands)
    except StoreFull:
        if not commands:
            raise
        return (yield from batch([]))
    for reply in replies[: len(commands)]:
        outcome(reply, handle.id)
    return replies[len(commands) :]


def begin(handle: ProcessHandle, call_id: str) -> Operation[bool]:
    """Return whether this run of a call is the first to begin. Exactly one run gets True, even if its
    request is retried. Raises `Fenced`, `NotFound`."""
    run = new_op()
    return (yield from _put_once(handle, f"{call_id}/begun", run)) == run


def read_plan(handle: ProcessHandle, call_id: str) -> Operation[str | None]:
    """Return what the last attempt at this call was about to do, or None."""
    [found] = yield [("HGET", handle.keys.calls, f"{call_id}/plan")]
    return None if found is None else _decode(handle, found)


def plan(handle: ProcessHandle, call_id: str, before: str | None, what: str) -> Operation[bool]:
    """Record what this attempt is about to do, replacing the plan `before`. Return False if another attempt
    has recorded its plan in between. Raises `Fenced`, `NotFound`."""
    keys = handle.keys
    [reply] = yield [
        script("plan")(
            process=keys.record,
            calls=keys.calls,
            attempt=handle.attempt,
            field=f"{call_id}/plan",
            before=before or "",
            new=what,
        )
    ]
    [stored] = outcome(reply, handle.id)
    return text(stored) == what


def _decode(handle: ProcessHandle, found: bytes) -> str:
    with decoding(f"the calls of process {handle.id}"):
        return text(found)


def _put_once(handle: ProcessHandle, field: str, value: str) -> Operation[str]:
    """Set a field unless it exists. Return its value."""
    [reply] = yield [_put_once_command(handle, field, value)]
    [stored] = outcome(reply, handle.id)
    return _decode(handle, stored)


def _put_once_command(handle: ProcessHandle, field: str, value: str) -> Command:
    keys = handle.keys
    return script("put_once")(
        process=keys.record, calls=keys.calls, attempt=handle.attempt, field=field, value=value
    )
