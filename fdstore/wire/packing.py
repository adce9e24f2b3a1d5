"""Requests packed for the wire, and the reader of replies."""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from hiredis import Reader, pack_command
from redis.exceptions import InvalidResponse

from fdstore.errors import InvalidArgument, quoted
from fdstore.wire.operation import Batch, Command

INCOMPLETE = object()
"""Returned by a reply parser that needs more bytes."""


def make_reader(make_error: Callable[[str], Exception]) -> Reader:
    """Return a parser of replies: strings stay bytes, an error reply becomes `make_error(text)`."""
    return Reader(protocolError=InvalidResponse, replyError=make_error, notEnoughData=INCOMPLETE)


# its stub declares a one-element tuple
_pack_command = cast("Callable[[Command], bytes]", pack_command)


def pack(batch: Batch) -> bytes:
    """Encode a batch for the wire, as one byte string even for large commands: each separate write wakes
    Redis, and its reply wakes the client. redis-py's own packing takes four times as long for the same
    bytes. Raises `InvalidArgument` for a lone surrogate.

    >>> pack([("HGET", "key", 1)])
    b'*3\\r\\n$4\\r\\nHGET\\r\\n$3\\r\\nkey\\r\\n$1\\r\\n1\\r\\n'
    """
    try:
        # hiredis crashes the interpreter if a signal handler raises while it formats a number
        packed = [
            _pack_command(tuple([part if isinstance(part, (str, bytes)) else str(part) for part in command]))
            for command in batch
        ]
    except UnicodeEncodeError as error:
        problem = f"{quoted(error.object)} has a lone surrogate, which UTF-8 cannot store"
        raise InvalidArgument("text", problem) from error
    return packed[0] if len(packed) == 1 else b"".join(packed)
