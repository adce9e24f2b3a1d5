"""Several servers as one: their processes, and their messages as the group's routing decides.

What a server writes waits until the host has taken what it wrote before, one line for each server; what the
host writes waits for the server alone that it is for.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from heapq import heappop, heappush
from queue import Empty, SimpleQueue
from time import monotonic
from typing import Literal, TypeAlias

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.group_routing import GroupRouter
from fdstore.hosts.gateway.group_steps import Limit, Say, Steps, ToHost
from fdstore.hosts.gateway.json_scan import Buffer
from fdstore.hosts.gateway.messages import Message
from fdstore.hosts.gateway.own_requests import OWN_REQUEST_S
from fdstore.hosts.gateway.server_config import ServerStart
from fdstore.hosts.gateway.upstream import UpstreamProcess

EXIT_S = 2.0
"""The time in which a server that has closed its output ends, so that its exit code is told."""


class _Member:
    """A server of the group, with the lines for it that it has not read yet; None ends them."""

    def __init__(self, name: str, process: UpstreamProcess) -> None:
        self.name, self.process = name, process
        self.waiting: SimpleQueue[Buffer | None] = SimpleQueue()
        self.may_write = threading.Semaphore(1)

    def write(self) -> None:
        """Pass on the lines for it, to their end."""
        while (line := self.waiting.get()) is not None:
            self.process.send(line)
        self.process.close_stdin()


_Event: TypeAlias = tuple[Buffer, _Member | None] | Literal["limit", "end"]
"""What the loop of a group takes up: a line for the host with the server that waits until it is taken, a new
limit of time, or the end of a server's output."""


class ServerGroup:
    """The servers of a configuration.

    say       tells the operator something
    begin_s   the time that a host waits for servers that begin; those that need longer join later
    list_s    the time that it waits for a list, alike
    """

    def __init__(
        self,
        starts: Sequence[ServerStart],
        say: Callable[[str], None],
        *,
        begin_s: float = OWN_REQUEST_S,
        list_s: float = OWN_REQUEST_S,
    ) -> None:
        """Start them. Raises `InvalidArgument` if none can be started."""
        self.command = f"{len(starts)} MCP servers"
        self._say = say
        self._limits_s = {"begin": begin_s, "begin_any": max(0.0, OWN_REQUEST_S - begin_s), "list": list_s}
        self._is_closing = False
        self._members: dict[str, _Member] = {}
        problem = ""
        for start in starts:
            try:
                process = UpstreamProcess(start.command, env=start.env, directory=start.directory)
            except InvalidArgument as error:
                problem = f"the MCP server {start.name}: {error.problem}"
                say(problem)
                continue
            self._members[start.name] = _Member(start.name, process)
        if not self._members:
            raise InvalidArgument("--config", problem or "it has no server that a gateway can serve")
        self._router = GroupRouter(list(self._members))
        self._lock = threading.Lock()
        self._events: SimpleQueue[_Event] = SimpleQueue()
        self._limits: list[tuple[float, int]] = []

    def pid(self, name: str) -> int:
        """Return the process id of a server."""
        return self._members[name].process.pid

    def send(self, line: Buffer) -> None:
        """Pass a line of the host on to the servers that it is for."""
        self._act(self._router.from_host(line))

    def messages(self) -> Iterator[Message]:
        """Yield what is for the host, until all servers have closed their output."""
        for member in self._members.values():
            threading.Thread(target=member.write, name=f"fdstore-to-{member.name}", daemon=True).start()
            threading.Thread(
                target=self._read, args=(member,), name=f"fdstore-from-{member.name}", daemon=True
            ).start()
        left = len(self._members)
        while left:
            match self._next_event():
                case "end":
                    left -= 1
                case (line, source):
                    yield Message(line)
                    del line  # which may be large
                    if source is not None:
                        source.may_write.release()

    def _next_event(self) -> _Event:
        """Wait for an event. What the host waits for too long is answered meanwhile."""
        while True:
            with self._lock:
                next_at = self._limits[0][0] if self._limits else None
            if next_at is not None and next_at <= monotonic():
                with self._lock:
                    _, number = heappop(self._limits)
                self._act(self._router.time_over(number))
                continue
            try:
                return self._events.get(timeout=None if next_at is None else next_at - monotonic())
            except (Empty, ValueError):  # ValueError: it is over since it was looked at
                continue

    def _read(self, member: _Member) -> None:
        for message in member.process.messages():
            member.may_write.acquire()
            _ = message.problem  # a long one is read here, where it holds up no other server
            if not self._act(self._router.from_server(member.name, message), member):
                member.may_write.release()
            del message
        self._act(self._router.server_ended(member.name, self._end_of(member)))
        self._events.put("end")

    def _end_of(self, member: _Member) -> str:
        code = member.process.wait(EXIT_S)
        if code is None:
            return f"the MCP server {member.name} has closed its output"
        return f"{member.name}: {member.process.describe_end(code)}"

    def _act(self, steps: Steps, source: _Member | None = None) -> bool:
        """Carry decisions out. Return whether a line for the host holds up what `source` writes next."""
        with self._lock:
            decided = list(steps)
            holds_up = False
            for step in decided:
                if isinstance(step, Say):
                    if not self._is_closing:
                        self._say(step.text)
                elif isinstance(step, ToHost):
                    self._events.put((step.line, None if holds_up else source))
                    holds_up = source is not None
                elif isinstance(step, Limit):
                    heappush(self._limits, (monotonic() + self._limits_s[step.kind], step.number))
                    self._events.put("limit")
                else:
                    self._members[step.server].waiting.put(step.line)
            return holds_up

    def pass_stderr(self, target: int) -> None:
        """Begin to write the logs of all to a file descriptor."""
        for member in self._members.values():
            member.process.pass_stderr(target)

    def finish_stderr(self, timeout_s: float) -> None:
        """Wait until the logs are written, at most `timeout_s` for each side of each."""
        for member in self._members.values():
            member.process.finish_stderr(timeout_s)

    def close_stdin(self) -> None:
        """Tell all servers that no request follows: that they end then is nothing to tell."""
        self._is_closing = True
        for member in self._members.values():
            member.waiting.put(None)

    def wait(self, timeout_s: float | None = None) -> int | None:
        """Return the first exit code that is not 0, once all have ended; None if some still run after
        `timeout_s`."""
        until = None if timeout_s is None else monotonic() + timeout_s
        codes = []
        for member in self._members.values():
            left = None if until is None else max(0.0, until - monotonic())
            if (code := member.process.wait(left)) is None:
                return None
            codes.append(code)
        return next(filter(None, codes), 0)

    def end(self, grace_s: float) -> int:
        """End all: SIGTERM, and SIGKILL after `grace_s`. Return the first exit code that is not 0."""
        enders = [
            threading.Thread(target=member.process.end, args=(grace_s,)) for member in self._members.values()
        ]
        for thread in enders:
            thread.start()
        for thread in enders:
            thread.join()
        return self.wait() or 0

    def describe_end(self, code: int) -> str:
        """Return a sentence about the end of all."""
        return f"all {self.command} have ended; the exit code is {code}"
