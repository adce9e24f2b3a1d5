"""An HTTP server of this program, and how it ends. All of them are this one; what clients may do to it is in
`connections`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from contextlib import suppress
from typing import Any

import uvicorn

from fdstore.http.connections import Acceptor, Connection, once_per_minute, possible_connections
from fdstore.setup import settings

SHUTDOWN_S = 2
"""The time that open requests, such as streams of updates, may take to end when the server is stopped."""


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
