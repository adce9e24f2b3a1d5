"""Relay between a host, on standard input and output, and a server: a child process, several as one, or one
by HTTP. Whichever ends first:

the host     stdin of the server is closed. It may finish what it owes a host that still reads; then it
             has `grace_s` to end, `grace_s` after SIGTERM, and is killed
the server   requests without an answer are answered with an error, and its exit code is the gateway's
a signal     the server gets SIGTERM, and is killed after `grace_s`
"""

from __future__ import annotations

from contextlib import suppress
from queue import Empty, SimpleQueue
from time import monotonic
from typing import TYPE_CHECKING, Literal

from fdstore.hosts.gateway.descriptors import Descriptors
from fdstore.hosts.gateway.host_connection import HostConnection, background_thread
from fdstore.setup.signal_waits import SIGNALS_SEEN_S

if TYPE_CHECKING:
    from fdstore.hosts.gateway.code.programs import Programs
    from fdstore.hosts.gateway.http_upstream import HttpUpstream
    from fdstore.hosts.gateway.server_group import ServerGroup
    from fdstore.hosts.gateway.upstream import UpstreamProcess

GRACE_S = 2.0
LOOK_EVERY_S = 0.1
STDERR_END_S = 1.0


class Relay:
    """The relay of one host and one server.

    host_in, host_out, host_err   file descriptors
    """

    def __init__(
        self,
        server: UpstreamProcess | ServerGroup | HttpUpstream,
        descriptors: Descriptors,
        *,
        host_in: int = 0,
        host_out: int = 1,
        host_err: int = 2,
        grace_s: float = GRACE_S,
        programs: Programs | None = None,
    ) -> None:
        self._ended: SimpleQueue[Literal["host", "server"]] = SimpleQueue()
        self._server, self._descriptors = server, descriptors
        self._host = HostConnection(
            descriptors,
            server.send,
            lambda: self._ended.put("host"),
            host_in=host_in,
            host_out=host_out,
            programs=programs,
        )
        self._host_err = host_err
        self._grace_s = grace_s

    def run(self) -> int:
        """Relay until one side ends. Return the exit code of the server."""
        from_server = background_thread(self._read_server, "server")
        try:
            self._server.pass_stderr(self._host_err)
            from_server.start()
            background_thread(self._watch_server, "exit").start()
            background_thread(self._host.read, "host").start()
            has_ended = self._await_end() == "server"
            if not has_ended:
                self._host.finish_jobs()
                self._server.close_stdin()
                has_ended = self._await_server()
            if self._server.wait(self._grace_s if has_ended else 0) is not None:
                from_server.join(self._grace_s)  # children of the server may hold its stdout open
        finally:
            code = self._server.end(self._grace_s)
        self._host.finish_jobs()
        self._host.answer_with_error(self._server.describe_end(code))
        self._server.finish_stderr(STDERR_END_S)
        return code

    def _await_end(self) -> Literal["host", "server"]:
        while True:
            with suppress(Empty):
                return self._ended.get(timeout=SIGNALS_SEEN_S)

    def _await_server(self) -> bool:
        """Wait for the end of a server that gets no more requests, while it owes answers to a host that
        reads, and `grace_s` longer. Return whether it has ended."""
        until = monotonic() + self._grace_s
        while (waits := self._host.waits_for_answers()) or monotonic() < until:
            if waits:
                until = monotonic() + self._grace_s
            try:
                if self._ended.get(timeout=LOOK_EVERY_S) == "server":
                    return True
            except Empty:
                pass
        return False

    def _read_server(self) -> None:
        for message in self._server.messages():
            self._host.answer(message)
            del message  # which may be large
            self._descriptors.start()
        self._host.lose_server(f"the MCP server has ended: {self._server.command}")
        self._ended.put("server")

    def _watch_server(self) -> None:
        self._server.wait()
        self._ended.put("server")
