"""Fail at once while a store does not answer: the breaker of a client with patience.

A call that got no answer opens the breaker of its server. Until the pause is over, calls that need this
server fail without a connection. Then one call probes, while the others still fail:

    no outage --- no answer ---> waiting, 1 s --- the pause is over ---> one call probes
        ^                            ^                                     |         |
        |                            +--- no answer: 2, 4, 8 ... 30 s -----+         |
        +------------------------------- any answer, an error too -------------------+

Pure: `guarded` adapts an operation, so the blocking and the asyncio runner share the breaker. The key of a
server is None for a single Redis, and in a Cluster the nodes that a request needs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Any, TypeVar

import msgspec
from redis.exceptions import ClusterDownError
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as LostReply

from fdstore.errors import FDStoreError, StoreUnavailable, UnknownOutcome
from fdstore.wire.operation import Abandon, Disk, Operation, Receive, Request, Send, served

T = TypeVar("T")

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Pauses after the first failure of an outage and after each failed probe; the last one is repeated."""

NO_ANSWER = (LostConnection, LostReply, ClusterDownError)
"""Errors that mean an outage: no answer, or the reply that the server is loading or down."""


class Outage(msgspec.Struct, frozen=True):
    """The time of the first unanswered call, how many calls failed one after another, and the time of the
    next probe; times are of one clock, in seconds."""

    began: float
    failures: int
    retry_at: float

    def failed_again(self, now: float) -> Outage:
        """Return the outage after a failed probe.

        >>> outage = begin_outage(100.0, 102.0)
        >>> outage.retry_at, outage.failed_again(105.0).retry_at
        (103.0, 107.0)
        """
        pause_s = PAUSES_S[min(self.failures, len(PAUSES_S) - 1)]
        return Outage(self.began, self.failures + 1, now + pause_s)

    def describe(self, now: float) -> str:
        """Return since when there is no answer, and when the store is tried again.

        >>> begin_outage(100.0, 102.0).describe(102.6)
        'it has not answered for 2.6 s; it is tried again in 0.4 s'
        """
        left_s = self.retry_at - now
        when = f"tried again in {left_s:.1f} s" if left_s > 0 else "being tried now"
        return f"it has not answered for {now - self.began:.1f} s; it is {when}"


def begin_outage(began: float, now: float) -> Outage:
    """Return the outage of a server that did not answer a call of the time `began`, which failed now."""
    return Outage(began, 1, now + PAUSES_S[0])


def is_unanswered(error: BaseException | None) -> bool:
    """Return whether a call failed because the store did not answer, and not by an answer of the store."""
    return isinstance(error, (StoreUnavailable, UnknownOutcome)) and isinstance(error.__cause__, NO_ANSWER)


class Breaker:
    """The outages of one store, shared by all threads or tasks that use it.

    where  the store, for messages
    clock  returns the time in seconds
    """

    def __init__(self, where: str, clock: Callable[[], float] = time.monotonic) -> None:
        self._where = where
        self._clock = clock
        self.forget()

    def forget(self) -> None:
        """Forget all outages, as after a fork: a probe of the parent never ends here."""
        self._lock = threading.Lock()
        self._outages: dict[Hashable, Outage] = {}
        self._probed: set[Hashable] = set()

    def attempt(self, server: Hashable = None) -> GuardedRequest:
        """Return a context manager for one request to a server. Raises `StoreUnavailable` at once during an
        outage, unless this request is the probe."""
        is_probe = bool(self._outages) and self._admit(server)
        return GuardedRequest(self, server, self._clock(), is_probe=is_probe)

    def guarded(
        self, operation: Operation[T], server_of: Callable[[Any], Hashable] = lambda request: None
    ) -> Operation[T]:
        """Adapt an operation: its requests fail at once during an outage of the server that `server_of`
        returns for a request."""
        in_flight: dict[str, GuardedRequest] = {}
        try:
            return (
                yield from served(operation, lambda request: self._request(request, in_flight, server_of))
            )
        finally:
            for attempt in in_flight.values():
                attempt.release()

    def _request(
        self, request: Request, in_flight: dict[str, GuardedRequest], server_of: Callable[[Any], Hashable]
    ) -> Operation[Any]:
        match request:
            case Disk():
                return (yield request)
            case Abandon(lane):
                if abandoned := in_flight.pop(lane, None):
                    abandoned.release()
                return (yield request)
            case Send(batch, lane):
                if lane not in in_flight:
                    in_flight[lane] = self.attempt(server_of(batch))
                return (yield request)
            case Receive(lane):
                # the server may have executed what was sent, so this never fails at once
                attempt = in_flight[lane]
                attempt.began = self._clock()
                with attempt:
                    return (yield request)
        with self.attempt(server_of(request)):
            return (yield request)

    def _admit(self, server: Hashable) -> bool:
        """Return whether a request that begins now is the probe. Raises `StoreUnavailable`."""
        with self._lock:
            outage, now = self._outages.get(server), self._clock()
            if outage is None:
                return False
            if now < outage.retry_at or server in self._probed:
                raise StoreUnavailable(self._where, outage.describe(now))
            self._probed.add(server)
            return True

    def _settle(self, attempt: GuardedRequest, error: BaseException | None) -> None:
        if error is None and not self._outages:
            return
        server, now = attempt.server, self._clock()
        with self._lock:
            outage = self._outages.get(server)
            if attempt.is_probe:
                self._probed.discard(server)
            if error is None or (isinstance(error, FDStoreError) and not is_unanswered(error)):
                self._outages.pop(server, None)
            elif not is_unanswered(error):
                pass  # it was cancelled: nothing is known
            elif outage is None:
                self._outages[server] = begin_outage(attempt.began, now)
            elif attempt.is_probe:
                # calls that were under way when the outage began do not lengthen the pause
                self._outages[server] = outage.failed_again(now)


class GuardedRequest:
    """A request to a server, as its breaker knows it; its end opens or closes the breaker."""

    __slots__ = ("_breaker", "began", "is_probe", "server")

    def __init__(self, breaker: Breaker, server: Hashable, began: float, *, is_probe: bool) -> None:
        self._breaker = breaker
        self.server = server
        self.began = began
        self.is_probe = is_probe

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._breaker._settle(self, error)
        self.is_probe = False

    def release(self) -> None:
        """End without a result; another request becomes the probe."""
        if self.is_probe:
            self.__exit__(GeneratorExit, GeneratorExit(), None)
