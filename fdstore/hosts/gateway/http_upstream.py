"""Relay between a host, on standard input and output, and an MCP server by HTTP."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from concurrent.futures import CancelledError, Future
from contextlib import suppress
from typing import TYPE_CHECKING

import httpx2

from fdstore.hosts.gateway.descriptors import Descriptors
from fdstore.hosts.gateway.host_connection import HostConnection, background_thread
from fdstore.hosts.gateway.http_connection import (
    CONNECT_S,
    RECONNECT_S,
    HttpConnection,
    on_a_thread,
)
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.http.client import open_client

if TYPE_CHECKING:
    from fdstore.hosts.gateway.code.programs import Programs


class HttpUpstream:
    """The relay of one host and one server by HTTP.

    headers             sent with every request; none goes to another address than `url`
    host_in, host_out   file descriptors
    """

    def __init__(
        self,
        url: str,
        descriptors: Descriptors,
        headers: Mapping[str, str],
        *,
        host_in: int = 0,
        host_out: int = 1,
        programs: Programs | None = None,
    ) -> None:
        self._url = url
        self._headers = {**headers, "Accept-Encoding": "identity"}
        self._host = HostConnection(
            descriptors,
            self._send,
            self._host_has_gone,
            host_in=host_in,
            host_out=host_out,
            programs=programs,
        )
        self._loop: asyncio.AbstractEventLoop
        self._server: HttpConnection
        self._gone = asyncio.Event()

    def run(self) -> int:
        """Relay until the host leaves and has its answers. Return the exit code."""
        ended: Future[None] = Future()

        def relay() -> None:
            try:
                asyncio.run(self._relay())
            except BaseException as error:  # noqa: BLE001  it belongs to who waits
                ended.set_exception(error)
            else:
                ended.set_result(None)

        background_thread(relay, "relay").start()
        ended.result()
        return 0

    async def _relay(self) -> None:
        self._loop = asyncio.get_running_loop()
        async with open_client(
            headers=self._headers,
            timeout=httpx2.Timeout(None, connect=CONNECT_S),
            follow_redirects=False,  # the headers are for this server
        ) as client:
            self._server = HttpConnection(
                self._url, client, lambda message: self._host.pass_on(message, b"\n"), self._gone
            )
            background_thread(self._host.read, "host").start()
            await self._gone.wait()
            while (self._server.open_requests or self._host.has_jobs()) and self._host.can_answer():
                if tasks := self._server.open_requests:
                    await asyncio.wait(tasks, timeout=RECONNECT_S, return_when=asyncio.FIRST_COMPLETED)
                else:
                    await on_a_thread(lambda: self._host.wait_for_a_job(RECONNECT_S))
            self._host.end_programs()
            await self._server.end_session()

    def _host_has_gone(self) -> None:
        with suppress(RuntimeError):  # the relay has ended
            self._loop.call_soon_threadsafe(self._gone.set)

    def _send(self, message: Buffer) -> None:
        """Send a message of the host. One that expects no answer is sent before the next one is read."""
        line = bytes(message)
        if not line.strip():
            return
        with suppress(RuntimeError, CancelledError):  # the relay has ended
            asyncio.run_coroutine_threadsafe(self._server.send(line), self._loop).result()
