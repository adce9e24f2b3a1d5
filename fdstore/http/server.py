"""An HTTP server of this program: where it listens, by which names clients may call it, how it ends. All of
them are this one: of `fdstore mcp`, `gateway`, `ui`, and the metrics of workers. What clients may do to it is
in `http_connections`.

Web pages that a browser shows can send requests to this machine, so servers check the header Host against
`allowed_names`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Sequence
from contextlib import suppress
from ipaddress import ip_address
from typing import Any

import uvicorn

from fdstore.errors import FDStoreError, InvalidArgument, quoted
from fdstore.http.connections import Acceptor, Connection, once_per_minute, possible_connections
from fdstore.setup import settings

SHUTDOWN_S = 2
"""The time that open requests, such as streams of updates, may take to end when the server is stopped."""


class PortRefused(FDStoreError):
    """A server cannot listen where it was told to."""

    type = "invalid_argument"
    says = "cannot listen on {where}: {problem}; use another port, or 0 for a free one"

    where: str
    problem: str


def parse_address(address: str) -> tuple[str, int]:
    """Return host and port of `HOST:PORT`, or of a port of this machine. Raises `InvalidArgument`.

    >>> parse_address("8000"), parse_address("[::1]:8000")
    (('127.0.0.1', 8000), ('::1', 8000))
    """
    host, _, port = address.rpartition(":")
    host = (host.removeprefix("[").removesuffix("]") if host.startswith("[") else host) or "127.0.0.1"
    if not (port.isascii() and port.isdigit() and int(port) < 65_536) or (":" in host and "[" not in address):
        raise InvalidArgument("http", f"{quoted(address)} is not HOST:PORT, e.g. 127.0.0.1:8000")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Return whether only this machine can reach a host.

    >>> is_loopback("127.0.0.1"), is_loopback("localhost"), is_loopback("0.0.0.0"), is_loopback("example.org")
    (True, True, False, False)
    """
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Return whether a host means all interfaces of this machine."""
    try:
        return ip_address(host).is_unspecified
    except ValueError:
        return False


def allowed_names(host: str, names: Sequence[str]) -> list[str]:
    """Return the host names by which clients may call the server. Raises `InvalidArgument` if none is
    known."""
    found = list(names)
    if is_loopback(host):
        found += ["127.0.0.1", "localhost", "[::1]"]
    elif not is_wildcard(host):
        found.append(f"[{host}]" if ":" in host else host)
    if not found:
        raise InvalidArgument(
            "host", f"{host} means all interfaces, so name the hosts that clients call with --allow-host"
        )
    return list(dict.fromkeys(found))


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens; port 0 takes a free one. Raises `PortRefused`.

    Its connections send at once: asyncio asks for that only of sockets that name their protocol, which those
    of `create_server` do not, and an answer's body would wait 40 ms for the client's delayed ACK of its head.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        found = socket.create_server((host, port), family=family)
        found.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return found
    except OSError as error:
        raise PortRefused(f"{host}:{port}", (error.strerror or str(error)).lower()) from error


class HttpServer(uvicorn.Server):
    """The server of an app. Its `serve` runs until SIGINT, SIGTERM, or `should_exit` is set; then it sets
    `stopping`, so that streams of updates end.

    app        ASGI
    stopping   set when the server ends; None if no response waits for it
    limits     of connections and of their time; default: those of the environment
    date       whether responses get a Date; not those that are passed on from another server

    Raises `InvalidArgument` for limits in the environment that are no numbers.
    """

    def __init__(
        self,
        app: Any,
        stopping: asyncio.Event | None = None,
        *,
        limits: settings.HttpLimits | None = None,
        date: bool = True,
    ) -> None:
        self._limits = settings.read_http() if limits is None else limits
        self._stopping = stopping
        self._acceptors: list[Acceptor] = []
        config = uvicorn.Config(
            app,
            interface="asgi3",
            http=Connection,
            # a connection of a WebSocket would leave the limits of `Connection`
            ws="none",
            log_config=None,
            log_level="warning",
            access_log=False,
            timeout_graceful_shutdown=SHUTDOWN_S,
            server_header=False,
            date_header=date,
        )
        super().__init__(config)
        logging.getLogger("uvicorn.error").addFilter(once_per_minute)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets=[])
        most = possible_connections(self._limits.connections)

        def make() -> Connection:
            return Connection(
                self.config,
                self.server_state,
                self.lifespan.state,
                most=most,
                request_s=self._limits.request_s,
            )

        self._acceptors = [Acceptor(each, make, self.server_state) for each in sockets or []]

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        for each in self._acceptors:
            each.close()
        if self._stopping is not None:
            self._stopping.set()
        await super().shutdown(sockets)
        if self.force_exit:
            # a second Ctrl-C: uvicorn leaves the app's lifespan then, which would end in a traceback
            with suppress(TimeoutError):
                async with asyncio.timeout(SHUTDOWN_S):
                    await self.lifespan.shutdown()


def origin_of(listening: socket.socket, names: Sequence[str] = ()) -> str:
    """Return the URL of a server on this socket, without a path. One that listens on all interfaces has that
    of the first of these host names: its own address would be refused."""
    host, port = listening.getsockname()[:2]
    if is_wildcard(host) and names:
        return f"http://{names[0]}:{port}"
    return f"http://{f'[{host}]' if ':' in host else host}:{port}"
