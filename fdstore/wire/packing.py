"""Requests packed for the wire, and the reader of replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from hiredis import Reader, pack_command
from redis.exceptions import InvalidResponse

from fdstore.wire.operation import Batch, Command

INCOMPLETE = object()
"""Returned by a reply parser that needs more bytes."""


def make_reader(make_error: Callable[[str], Exception]) -> Reader:
    """Return a parser of replies: strings stay bytes, an error reply becomes `make_error(text)`."""
    return Reader(protocolError=InvalidResponse, replyError=make_error, notEnoughData=INCOMPLETE)


# its stub declares a one-element tuple
_pack = cast("Callable[[Command], bytes]", pack_command)


def _pack_command(command: Command) -> bytes:
    # hiredis crashes the interpreter if a signal handler raises while it formats a number
    return _pack(tuple([part if isinstance(part, (str, bytes)) else str(part) for part in command]))


def pack(batch: Batch) -> bytes:
    """Encode a batch for the wire, as one byte string even for large commands: each separate write wakes
    Redis, and its reply wakes the client. redis-py's own packing takes four times as long for the same
    bytes."""
    return _pack_command(batch[0]) if len(batch) == 1 else b"".join(map(_pack_command, batch))
