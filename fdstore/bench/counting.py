"""A client that counts the round trips for which it waits, and names each by its commands.

On a network where only the latency counts, an operation takes as long as the round trips for which it waits
one after another. Requests in flight at the same time are one, and so is opening a connection (on TCP; TLS,
a password and a database take more). Servers count less: a script that the server must be sent again, or
a reply that is waited for while others are on their way.
"""

from __future__ import annotations

import threading
from collections import defaultdict, deque
from typing import Any, NamedTuple

from fdstore.client import Store
from fdstore.client._sync.store import open_store
from fdstore.setup.settings import DEFAULT_PREFIX
from fdstore.wire._sync.link import Link
from fdstore.wire._sync.runner import Runner
from fdstore.wire.operation import Batch, NumberedFields, Receive, Send
from fdstore.wire.redis_errors import Codes
from fdstore.wire.retry import InFlight
from fdstore.wire.scripts import name_of

CONNECT = "connect"
"""The name of opening a connection."""


class CountingRunner(Runner):
    """A runner that lists in `waits` each round trip it waited for. Those of a thread that renews a lease,
    beside which an agent works, are left out."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.waits: list[str] = []
        self._sent: defaultdict[str, deque[tuple[int, str]]] = defaultdict(deque)

    def taken(self) -> list[str]:
        """Return the round trips since the last call."""
        found, self.waits = self.waits, []
        return found

    def read_field(self, fields: NumberedFields, number: int) -> list[Any]:
        self._note(_label(fields.batch(number)))
        return super().read_field(fields, number)

    def _take(self) -> Link:
        if not self._free:
            self._note(CONNECT)
        return super()._take()

    def _round_trip(self, batch: Batch, *more: Any, **options: Any) -> list[Any]:
        self._note(_label(batch))
        return super()._round_trip(batch, *more, **options)

    def _serve(self, request: Any, flights: dict[str, InFlight], waits_for: Codes) -> Any:
        match request:
            case Send(batch, lane):
                reply = super()._serve(request, flights, waits_for)
                self._sent[lane].append((len(self.waits), _label(batch)))
                return reply
            case Receive(lane):
                sent_at, label = self._sent[lane].popleft()
                if sent_at == len(self.waits):
                    self._note(label)
        return super()._serve(request, flights, waits_for)

    def _note(self, label: str) -> None:
        if not threading.current_thread().name.startswith("lease "):
            self.waits.append(label)


def _label(batch: Batch) -> str:
    return " ".join(name_of(command) for command in batch)


def counting_store(url: str) -> tuple[Store, CountingRunner]:
    """Connect as `fdstore.connect` does, and return the client with what counts its round trips."""
    runner = CountingRunner(url)
    return open_store(runner, DEFAULT_PREFIX, url), runner


class Trips(NamedTuple):
    """The round trips of an operation, by name: of its first run by a client, and of the next."""

    case: str
    first: list[str]
    again: list[str]
