"""Connections of an HTTP server: how many there may be, how long clients may take, what is logged of them.

uvicorn speaks HTTP, but waits for ever for the rest of a request, and accepts without a limit; at the limit
of open files asyncio logs thousands of lines a second. Here a connection is in one of two states:

    the client's turn   it has to send the rest of a request, or to read what was sent. It has `request_s`
    ours                a response is being made or streamed; that may take as long as it needs

When there are too many connections, or no file descriptor for another, the one that has waited longest for a
request is closed. So slow clients do not block others. Only running requests can, when there are as many as
connections allowed; then a new client gets 503.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import resource
import socket
from collections.abc import Callable, Iterable
from typing import Any

from uvicorn.config import Config
from uvicorn.protocols.http.h11_impl import H11Protocol
from uvicorn.server import ServerState

ACCEPT_PAUSE_S = 0.5
"""The pause in accepting connections after the system refused one, as at the limit of open files, and none
could be closed for it."""

PROGRESS_BYTES = 16_384
"""The bytes of a response that a slow client must read within each `request_s`."""

LOG_EVERY_S = 60
"""The least interval between logged messages of one kind."""

BUSY = b"HTTP/1.1 503 Service Unavailable\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"

_GONE = (errno.EAGAIN, errno.EINTR, errno.ECONNABORTED)
"""Errors of accept for a client that left before it was accepted."""

_log = logging.getLogger(__name__)


def possible_connections(wanted: int) -> int:
    """Return how many connections a server may have: `wanted`, or a quarter of the files that the process may
    open, which leaves room for files, Redis, and a connection onward for each."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return wanted if soft == resource.RLIM_INFINITY else max(1, min(wanted, soft // 4))


class Connection(H11Protocol):
    """One connection of a client, closed if the client is too slow."""

    def __init__(
        self, config: Config, state: ServerState, app_state: dict[str, Any], *, most: int, request_s: float
    ) -> None:
        super().__init__(config, state, app_state)
        self._most = most
        self._request_s = request_s
        self._deadline: asyncio.TimerHandle | None = None
        self._unsent_bytes = 0

    @property
    def waits_for_request(self) -> bool:
        """Return whether the client has yet to send a request, or the rest of one."""
        return self.cycle is None or self.cycle.more_body or self.cycle.response_complete

    @property
    def is_closing(self) -> bool:
        return self.transport.is_closing()

    @property
    def closes_at(self) -> float:
        """Return when the client's time ends, on the loop's clock; infinite while it is our turn."""
        return self._deadline.when() if self._deadline else float("inf")

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()
        others = [each for each in self.connections if isinstance(each, Connection) and each is not self]
        if sum(not each.is_closing for each in others) < self._most:
            return
        if not drop_slowest(others):
            _log.warning("all %d connections are busy: new clients get 503", self._most)
            transport.write(BUSY)
            transport.close()
        else:
            _log.warning("more than %d connections: those that wait for their clients are closed", self._most)

    def connection_lost(self, exc: Exception | None) -> None:
        super().connection_lost(exc)
        self._stop_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def on_response_complete(self) -> None:
        super().on_response_complete()
        self._watch()

    def pause_writing(self) -> None:
        super().pause_writing()
        self._watch()

    def resume_writing(self) -> None:
        super().resume_writing()
        self._watch()

    def shutdown(self) -> None:
        """End soon: at once if the client is slow, else with the response."""
        if self.waits_for_request or self.flow.write_paused:
            self.transport.abort()
        else:
            super().shutdown()

    def _watch(self) -> None:
        """Start the deadline when the client's turn begins, stop it when it ends."""
        if not (self.waits_for_request or self.flow.write_paused):
            self._stop_deadline()
        elif self._deadline is None:
            self._start_deadline()

    def _start_deadline(self) -> None:
        self._unsent_bytes = self.transport.get_write_buffer_size()
        self._deadline = self.loop.call_later(self._request_s, self._check_progress)

    def _stop_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _check_progress(self) -> None:
        read_bytes = self._unsent_bytes - self.transport.get_write_buffer_size()
        if read_bytes >= PROGRESS_BYTES:
            self._start_deadline()
        else:
            self.transport.abort()


def drop_slowest(connections: Iterable[Connection]) -> bool:
    """Close the connection that has waited longest for a request. Returns whether there was one."""
    waiting = [each for each in connections if each.waits_for_request and not each.is_closing]
    if waiting:
        min(waiting, key=lambda each: each.closes_at).transport.abort()
    return bool(waiting)


class Acceptor:
    """Accepts the connections of a listening socket, until it is closed.

    The loop of asyncio does not pause between failures of accept, so it is not used.
    """

    def __init__(self, listening: socket.socket, make: Callable[[], Connection], state: ServerState) -> None:
        listening.setblocking(False)
        self._listening = listening
        self._make = make
        self._state = state
        self._loop = asyncio.get_running_loop()
        self._opening: set[asyncio.Task[Any]] = set()
        self._paused: asyncio.TimerHandle | None = None
        self._listen()

    def close(self) -> None:
        """Accept no more connections. The socket stays open."""
        if self._paused is not None:
            self._paused.cancel()
        self._loop.remove_reader(self._listening)

    def _listen(self) -> None:
        self._loop.add_reader(self._listening, self._accept)

    def _accept(self) -> None:
        try:
            connection, _ = self._listening.accept()
        except OSError as error:
            if error.errno not in _GONE:
                self._make_room(error)
            return
        connection.setblocking(False)
        opening = self._loop.create_task(self._open(connection))
        self._opening.add(opening)
        opening.add_done_callback(self._opening.discard)

    async def _open(self, connection: socket.socket) -> None:
        try:
            await self._loop.connect_accepted_socket(self._make, connection)
        except OSError as error:
            connection.close()
            self._make_room(error)

    def _make_room(self, error: OSError) -> None:
        """Close a connection, or wait a little: the client that was not accepted stays in the queue of the
        system, so the socket stays readable."""
        _log.warning("cannot accept connections: %s; trying again", error.strerror or error)
        if not drop_slowest(each for each in self._state.connections if isinstance(each, Connection)):
            self._loop.remove_reader(self._listening)
            self._paused = self._loop.call_later(ACCEPT_PAUSE_S, self._listen)


class OncePerMinute(logging.Filter):
    """A filter that passes a message of one kind once a minute: whoever can connect can cause them at will. A
    kind is the text before its arguments are filled in, and the place where an exception was raised."""

    def __init__(self) -> None:
        super().__init__()
        self._passed_at: dict[tuple[str, str], float] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        error = record.exc_info[1] if record.exc_info else None
        if isinstance(error, asyncio.CancelledError):
            return False  # a request that was open at shutdown
        kind = (str(record.msg), place_of(error))
        if record.created - self._passed_at.get(kind, float("-inf")) < LOG_EVERY_S:
            return False
        self._passed_at[kind] = record.created
        return True


def place_of(error: BaseException | None) -> str:
    """Return the type of an error and the line of code that raised it; "" without an error."""
    if error is None:
        return ""
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    where = "" if last is None else f" {last.tb_frame.f_code.co_filename}:{last.tb_lineno}"
    return f"{type(error).__qualname__}{where}"


once_per_minute = OncePerMinute()
"""One filter for all servers of the process: adding it to a logger twice changes nothing."""

_log.addFilter(once_per_minute)
