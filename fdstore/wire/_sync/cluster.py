# Generated from fdstore/wire/_async/cluster.py by `make generate`: change that one.
"""The runner for a Redis Cluster: sends each attempt to a node, over a connection cached for it.

`cluster_routing` decides which node to try and how to retry; this module does the I/O. `make_runner` returns
the right runner for any store URL.
"""

from __future__ import annotations

import time
from collections import defaultdict
from typing import Any, TypeVar

from redis.exceptions import RedisError

from fdstore.setup.url_options import Address
from fdstore.wire._sync.link import Link
from fdstore.wire._sync.runner import Runner
from fdstore.wire._sync.support import sleep
from fdstore.wire.cluster_routing import ROUTED, AtNode, AttemptFailed, Drop, Pause, ReceiveAt, Router, SendAt
from fdstore.wire.operation import Batch, NumberedFields, Operation, Working
from fdstore.wire.packing import pack
from fdstore.wire.redis_errors import Codes, refusal_code
from fdstore.wire.retry import MIN_WAIT_S, InFlight
from fdstore.wire.store_url import StoreUrl, parse_store_url

T = TypeVar("T")


def make_runner(url: str, patience_s: float | None = None) -> Runner:
    """Return a runner for the store at `url`. Raises `InvalidArgument`."""
    place = parse_store_url(url)
    return ClusterRunner(place, patience_s) if place.kind == "cluster" else Runner(place, patience_s)


class ClusterRunner(Runner):
    """Runs operations on a Cluster. `_idle` holds the idle connections to each node."""

    def __init__(self, place: StoreUrl, patience_s: float | None = None) -> None:
        super().__init__(place, patience_s)
        self._router = Router(self.where, place.hosts, patience_s)
        self._adapt = None
        self._idle: defaultdict[Address, list[Link]] = defaultdict(list)

    def run(self, operation: Operation[T]) -> T:
        is_working = type(operation) is Working
        if self._breaker is not None:
            operation = self._breaker.guarded(operation, self._router.nodes_of)
        routed = self._router.routed(operation)
        return super().run(Working(routed) if is_working else routed)

    def read_field(self, fields: NumberedFields, number: int) -> list[Any]:
        return self.run(fields.read(number))

    def _reach(self) -> None:
        """Load the slot map, trying each node in the URL once."""
        super().run(self._router.load())

    def close(self) -> None:
        super().close()
        idle, self._idle = self._idle, defaultdict(list)
        for links in idle.values():
            for link in links:
                link.close()

    def _serve(self, request: Any, flights: dict[str, InFlight], waits_for: Codes) -> Any:
        match request:
            case AtNode(address, batch, wait_s, without):
                return self._try(address, batch, wait_s, waits_for - without)
            case SendAt(address, batch, lane):
                if lane not in flights:
                    flights[lane] = InFlight(self._take_at(address))
                    flights[lane].link.waits_for = waits_for - ROUTED
                flights[lane].batches.append(batch)
                return self._start(flights[lane])
            case ReceiveAt(lane):
                flight = flights[lane]
                return self._finish(flight.link, flight.batches.popleft())
            case Drop(lane):
                flight = flights.pop(lane)
                flight.link.disconnect()
                return self._give(flight.link)
            case Pause(seconds):
                return sleep(seconds)
        return super()._serve(request, flights, waits_for)

    def _try(
        self, address: Address, batch: Batch, wait_s: float | None, waits_for: Codes
    ) -> list[Any] | AttemptFailed:
        link = self._take_at(address)
        link.waits_for = waits_for - ROUTED
        started = time.monotonic()
        try:
            link.send(pack(batch), len(batch), wait_s)
            if self.patience_s is not None and wait_s is not None:
                wait_s = max(wait_s - (time.monotonic() - started), MIN_WAIT_S)
            return self._finish(link, batch, wait_s)
        except RedisError as error:
            sent = link.owed > 0 and not refusal_code(error)
            link.disconnect()
            return AttemptFailed(error, sent=sent)
        finally:
            self._give(link)

    def _start(self, flight: InFlight) -> AttemptFailed | None:
        try:
            flight.link.send(pack(flight.batches[-1]), len(flight.batches[-1]))
        except RedisError as error:
            return AttemptFailed(error, sent=flight.link.owed > 0)
        return None

    def _finish(self, link: Link, batch: Batch, wait_s: float | None = None) -> list[Any] | AttemptFailed:
        replies: list[Any] = []
        try:
            link.receive(replies, len(batch), wait_s)
        except RedisError as error:
            link.disconnect()
            return AttemptFailed(error, sent=not refusal_code(error), replies=replies)
        return replies

    def leave_to_parent(self) -> None:
        super().leave_to_parent()
        self._idle = defaultdict(list)

    def _take_at(self, address: Address) -> Link:
        try:
            return self._idle[address].pop()
        except IndexError:
            host, port = address
            return self._make_link(host=host, port=port)

    def _give(self, link: Link) -> None:
        if link.owed:
            link.disconnect()
        connection = link.connection
        self._idle[connection.host, connection.port].append(link)
