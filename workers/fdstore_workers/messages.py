"""What a message of the queue may say: the id of one process, as `fdstore.runtime.queue` sends it.

The queue is not trusted: whoever may write there can wake processes and do nothing else. Celery and
kombu would decompress and unpickle what a message names, call back what it links to, hold it back until
its `eta`, and end the worker over a field of the wrong type. So they never see a message that was taken
from the list. The id is read from it here, with a bound on its size, and the worker goes on with an
envelope of its own making around that id:

    bytes of the list -> process_of -> id -> envelope -> kombu, Celery

Nothing else in a message has any effect.
"""

from __future__ import annotations

import json
import uuid
from typing import Any, Literal

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.runtime.queue import QUEUE, TASK
from fdstore.store.keys import check_process

MAX_BYTES = 8192
"""Of a whole message. One that `fdstore.runtime.queue` sends has a kilobyte, and its id once."""

MAX_ID_CHARS = 200


class Refused(Exception):
    """A message is not one of ours. The text says why: printable, of at most a line."""


class _Headers(msgspec.Struct):
    task: str
    compression: None = None


class _Properties(msgspec.Struct):
    body_encoding: Literal["utf-8"]


class _Envelope(msgspec.Struct):
    body: str
    content_type: Literal["application/json"] = msgspec.field(name="content-type")
    content_encoding: Literal["utf-8"] = msgspec.field(name="content-encoding")
    headers: _Headers
    properties: _Properties


class _NoKeywords(msgspec.Struct, forbid_unknown_fields=True):
    pass


_envelopes = msgspec.json.Decoder(_Envelope)
# the third part is what Celery would call back; it is looked over for where it ends, and dropped
_bodies = msgspec.json.Decoder(tuple[tuple[str], _NoKeywords, msgspec.Raw])
_unacked = msgspec.json.Decoder(tuple[msgspec.Raw, msgspec.Raw, msgspec.Raw])


def process_of(message: bytes) -> str:
    """Return the process id that a message of the queue says. Raises `Refused`."""
    if len(message) > MAX_BYTES:
        raise Refused(f"it has more than {MAX_BYTES} bytes")
    try:
        envelope = _envelopes.decode(message)
        if envelope.headers.task != TASK:
            raise Refused(f"its task is {quoted(envelope.headers.task)}")
        [process], _, _ = _bodies.decode(envelope.body)
    # a ValueError is text that is not UTF-8
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Refused(quoted(str(error), 200)) from None
    if len(process) > MAX_ID_CHARS:
        raise Refused(f"its process id has more than {MAX_ID_CHARS} characters")
    try:
        return check_process(process)
    except InvalidArgument:
        raise Refused(f"{quoted(process)} is not a process id") from None


def unacked_process_of(entry: bytes) -> str:
    """Return the process id of an entry of `unacked`: a message, its exchange, its routing key.
    Raises `Refused`."""
    if len(entry) > 2 * MAX_BYTES:
        raise Refused(f"it has more than {2 * MAX_BYTES} bytes")
    try:
        message, _, _ = _unacked.decode(entry)
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:
        raise Refused(quoted(str(error), 200)) from None
    return process_of(bytes(message))


def envelope(process: str) -> dict[str, Any]:
    """Return a message about `process`, as kombu decodes one. Its tags are made here: another message
    with the same tag would take the place of the first among those whose task still runs."""
    task_id = str(uuid.uuid4())
    return {
        "body": json.dumps(
            [[process], {}, {"callbacks": None, "errbacks": None, "chain": None, "chord": None}]
        ),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {
            "lang": "py",
            "task": TASK,
            "id": task_id,
            "root_id": task_id,
            "parent_id": None,
            "shadow": None,
            "eta": None,
            "expires": None,
            "group": None,
            "group_index": None,
            "retries": 0,
            "timelimit": [None, None],
            "argsrepr": "...",
            "kwargsrepr": "{}",
            "origin": "",
            "ignore_result": True,
        },
        "properties": {
            "correlation_id": task_id,
            "reply_to": "",
            "delivery_mode": 2,
            "delivery_info": {"exchange": "", "routing_key": QUEUE},
            "priority": 0,
            "body_encoding": "utf-8",
            "delivery_tag": str(uuid.uuid4()),
        },
    }
