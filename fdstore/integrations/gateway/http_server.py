"""Serve the HTTP relay on a port of this machine."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from fdstore.errors import InvalidArgument
from fdstore.http_server import HttpServer, PortRefused, listen, origin_of
from fdstore.integrations.gateway.http_relay import LOOPBACK

if TYPE_CHECKING:
    from fdstore.integrations.gateway.http_relay import HttpRelay


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
    try:
        return listen(host, port)
    except PortRefused as error:
        raise InvalidArgument("listen", str(error)) from error


def serve(relay: HttpRelay, listening: socket.socket, url: str, report: Callable[[str], None]) -> None:
    """Serve until a signal comes. Raises `InvalidArgument` for limits in the environment that are no
    numbers."""
    server = HttpServer(relay, date=False)
    report(f"listening on {origin_of(listening)}{urlsplit(url).path}")
    asyncio.run(server.serve(sockets=[listening]))
