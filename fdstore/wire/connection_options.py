"""Options of the connections to Redis: time-outs and buffers, and what becomes of unsent requests."""

from __future__ import annotations

import socket
import struct
from contextlib import suppress
from typing import Any

import redis.connection
from redis.backoff import NoBackoff
from redis.retry import Retry

SOCKET_TIMEOUT_S = 5.0

CONNECT_TIMEOUT_S = 2.0

READ_SIZE_BYTES = 256 * 1024

SEND_BUFFER_BYTES = 1 << 20
"""Send buffer of a Unix socket, in bytes. Linux limits it to twice `net.core.wmem_max` (default: 416 KiB)."""

UNNAMED: dict[str, None] = dict.fromkeys(
    ["driver_info"] if hasattr(redis.connection, "DriverInfo") else ["lib_name", "lib_version"]
)
"""The options with which redis-py does not send its name, a round trip; before 7.2 they had other names."""


def connection_options() -> dict[str, Any]:
    """Return the options of every connection: our time-outs, and none of redis-py's retries."""
    return {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_read_size": READ_SIZE_BYTES,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        **UNNAMED,
    }


def take_whole_requests(sock: Any) -> None:
    """Enlarge the send buffer of a Unix socket, so that a client that stores a text prepares the next request
    while Redis reads this one; storing then takes a fifth less time. TCP adapts its buffers itself."""
    if sock.family == socket.AF_UNIX:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, SEND_BUFFER_BYTES)


def discard_unsent(sock: Any) -> None:
    """Have the kernel discard what was not sent yet when this socket is closed.

    Otherwise it goes on sending for minutes: once a broken network heals, Redis would execute a request that
    its caller has given up, even after later ones.
    """
    with suppress(OSError):  # it is closed
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
