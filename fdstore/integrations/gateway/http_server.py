"""Serve the HTTP relay on a port of this machine."""

from __future__ import annotations

import socket
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import uvicorn

from fdstore.errors import InvalidArgument
from fdstore.integrations.gateway.http_relay import LOOPBACK

if TYPE_CHECKING:
    from fdstore.integrations.gateway.http_relay import HttpRelay

END_S = 2
"""How long open streams may go on after a signal."""


def listening_socket(address: str) -> socket.socket:
    """Return a socket that listens on HOST:PORT; port 0 is any free one. Raises `InvalidArgument`, also for a
    host that others could reach: the gateway has no passwords."""
    try:
        parts = urlsplit(f"//{address}")
        host, port = parts.hostname, parts.port
    except ValueError:
        host, port = None, None
    if host is None or port is None:
        raise InvalidArgument("listen", "HOST:PORT is needed, as 127.0.0.1:3002")
    if host not in LOOPBACK:
        raise InvalidArgument("listen", "the host must be 127.0.0.1, localhost or [::1]")
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
    except OSError as error:
        listener.close()
        raise InvalidArgument("listen", f"{address}: {error.strerror}") from error
    return listener


def serve(relay: HttpRelay, listener: socket.socket, url: str, report: Callable[[str], None]) -> None:
    """Serve until a signal comes."""
    config = uvicorn.Config(
        relay,
        log_level="warning",
        lifespan="on",
        server_header=False,
        date_header=False,
        timeout_graceful_shutdown=END_S,
    )
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    report(f"listening on http://{shown}:{port}{urlsplit(url).path}")
    uvicorn.Server(config).run(sockets=[listener])
