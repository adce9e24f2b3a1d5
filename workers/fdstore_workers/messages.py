"""Read messages of the queue: each carries one process id, as `fdstore.agents.runtime.queue` sends it.

The queue is not trusted: write access to it must allow nothing but waking processes. Celery and kombu would
decompress and unpickle a body as the message demands, run its callbacks, delay it until its `eta`, and crash
on a field of the wrong type. So they never see a received message. This module reads the id, with a bound on
the size, and the worker continues with an envelope of its own around that id:

    bytes of the list -> process_of -> id -> envelope -> kombu, Celery

Nothing else in a message has any effect.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

import msgspec

from fdstore.agents.runtime.queue import QUEUE, TASK
from fdstore.errors import InvalidArgument, quoted
from fdstore.store.keys import check_process

MAX_BYTES = 8192
"""The limit for a whole message. `fdstore.agents.runtime.queue` sends about a kilobyte."""

MAX_ID_CHARS = 200


class ForeignMessage(Exception):
    """A message that fdstore did not send. The text is the reason: one printable line."""


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
# the third part holds Celery's callbacks; it is skipped
_bodies = msgspec.json.Decoder(tuple[tuple[str], _NoKeywords, msgspec.Raw])


@contextmanager
def _foreign_unless_decoded() -> Iterator[None]:
    try:
        yield
    except (msgspec.MsgspecError, ValueError, RecursionError) as error:  # ValueError: not UTF-8
        raise ForeignMessage(quoted(str(error), 200)) from None


def process_of(message: bytes) -> str:
    """Return the process id in a message of the queue. Raises `ForeignMessage`."""
    if len(message) > MAX_BYTES:
        raise ForeignMessage(f"it has more than {MAX_BYTES} bytes")
    with _foreign_unless_decoded():
        envelope = _envelopes.decode(message)
        if envelope.headers.task != TASK:
            raise ForeignMessage(f"its task is {quoted(envelope.headers.task)}")
        [process], _, _ = _bodies.decode(envelope.body)
    if len(process) > MAX_ID_CHARS:
        raise ForeignMessage(f"its process id has more than {MAX_ID_CHARS} characters")
    try:
        return check_process(process)
    except InvalidArgument:
        raise ForeignMessage(f"{quoted(process)} is not a process id") from None


def envelope(process: str) -> dict[str, Any]:
    """Return a message with the id `process`, in the form that kombu decodes, with what Celery reads of it.

    Its tags are fresh: a duplicate one would replace the earlier message among those received.
    """
    return {
        "body": json.dumps([[process], {}, {}]),
        "content-encoding": "utf-8",
        "content-type": "application/json",
        "headers": {"task": TASK, "id": str(uuid.uuid4())},
        "properties": {
            "delivery_info": {"exchange": "", "routing_key": QUEUE},
            "body_encoding": "utf-8",
            "delivery_tag": str(uuid.uuid4()),
        },
    }
