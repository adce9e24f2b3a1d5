"""Fail at once while a store does not answer: the breaker of a client with patience.

A call that got no answer opens the breaker of its server. Until the pause is over, calls that need this
server fail without a connection. Then one call probes, while the others still fail:

    no outage --- no answer ---> waiting, 1 s --- the pause is over ---> one call probes
        ^                            ^                                     |         |
        |                            +--- no answer: 2, 4, 8 ... 30 s -----+         |
        +------------------------------- any answer, an error too -------------------+

A server that does nothing for now, as one that is busy with a script, counts as one that does not answer. One
that only refuses writes has a breaker for these: reads go on.

Pure: `guarded` adapts an operation, so the blocking and the asyncio runner share the breaker. The key of a
server is None for a single Redis, and in a Cluster the nodes that a request needs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Hashable
from types import TracebackType
from typing import Any, NamedTuple, TypeVar

import msgspec
from redis.exceptions import ClusterDownError
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as LostReply

from fdstore.errors import FDStoreError, StoreNotReady, StoreReadOnly, StoreUnavailable, UnknownOutcome
from fdstore.model.msgspec_types import prepare
from fdstore.wire.operation import Abandon, Alongside, Disk, Operation, Receive, Request, Send, served
from fdstore.wire.redis_errors import refusal_code
from fdstore.wire.scripts import is_read

T = TypeVar("T")

PAUSES_S = (1.0, 2.0, 4.0, 8.0, 16.0, 30.0)
"""Pauses after the first failure of an outage and after each failed probe; the last one is repeated."""

NO_ANSWER = (LostConnection, LostReply, ClusterDownError)
"""Errors that mean an outage: no answer, or the reply that the server is loading or down."""

NO_WRITES = frozenset({"NOREPLICAS", "READONLY"})
"""The refusals of a server that reads."""


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
        return f"it has not answered for {now - self.began:.1f} s; it is {self.when(now)}"

    def when(self, now: float) -> str:
        """Return when the store is tried again."""
        left_s = self.retry_at - now
        return f"tried again in {left_s:.1f} s" if left_s > 0 else "being tried now"


prepare(Outage)


def begin_outage(began: float, now: float) -> Outage:
    """Return the outage of a server that did not answer a call of the time `began`, which failed now."""
    return Outage(began, 1, now + PAUSES_S[0])


def is_unanswered(error: BaseException | None) -> bool:
    """Return whether a call failed because the store did not answer, or did nothing for as long as the call
    could wait."""
    if not isinstance(error, (StoreUnavailable, UnknownOutcome, StoreReadOnly)):
        return False
    return isinstance(error.__cause__, NO_ANSWER) or _is_refused(error) or refuses_writes(error)


def _is_refused(error: BaseException) -> bool:
    return isinstance(error, StoreNotReady) and refusal_code(error.__cause__) is not None


def refuses_writes(error: BaseException | None) -> bool:
    """Return whether a call failed because the store took no writes for as long as the call could wait."""
    return isinstance(error, StoreReadOnly) and refusal_code(error.__cause__) in NO_WRITES


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
        self._lock = threading.RLock()
        self._outages: dict[Hashable, Outage] = {}
        self._found: dict[Hashable, FDStoreError] = {}
        self._probed: set[Hashable] = set()

    def attempt(self, server: Hashable = None, request: Request | None = None) -> GuardedRequest:
        """Return a context manager for one request to a server. During an outage, or if the request writes
        while the server takes no writes, raises the error of the call that found it out at once, unless this
        request is the probe."""
        keys: tuple[Hashable, ...] = (server,)
        if self._outages and request is not None and _writes(request):
            keys = (server, _Writes(server))
        probes = self._admit(keys) if self._outages else ()
        return GuardedRequest(self, keys, self._clock(), probes)

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
                    in_flight[lane] = self.attempt(server_of(batch), request)
                return (yield request)
            case Receive(lane):
                # the server may have executed what was sent, so this never fails at once
                attempt = in_flight[lane]
                attempt.began = self._clock()
                with attempt:
                    return (yield request)
        with self.attempt(server_of(request), request):
            return (yield request)

    def _admit(self, keys: tuple[Hashable, ...]) -> tuple[Hashable, ...]:
        """Return of which outages a request that begins now is the probe. Raises `StoreUnavailable` or
        `StoreReadOnly`."""
        with self._lock:
            now = self._clock()
            away = [key for key in keys if key in self._outages]
            for key in away:
                if now < self._outages[key].retry_at or key in self._probed:
                    raise self._failure(key, now)
            self._probed.update(away)
            return tuple(away)

    def _failure(self, key: Hashable, now: float) -> FDStoreError:
        outage, error = self._outages[key], self._found.get(key)
        if isinstance(error, StoreReadOnly):
            return StoreReadOnly(f"{error.problem}; it is {outage.when(now)}")
        if isinstance(error, StoreNotReady):
            return StoreNotReady(self._where, f"{error.problem}: {outage.describe(now)}", error.advice)
        return StoreUnavailable(self._where, outage.describe(now))

    def _settle(self, attempt: GuardedRequest, error: BaseException | None) -> None:
        if error is None and not self._outages:
            return
        now = self._clock()
        with self._lock:
            self._probed.difference_update(attempt.probes)
            if error is not None and not isinstance(error, FDStoreError):
                return  # it was cancelled: nothing is known
            over = set(attempt.keys)
            if error is not None and is_unanswered(error):
                over = over - {_Writes(attempt.server)} if refuses_writes(error) else set()
                key = _Writes(attempt.server) if refuses_writes(error) else attempt.server
                outage = self._outages.get(key)
                if outage is None:
                    self._outages[key], self._found[key] = begin_outage(attempt.began, now), error
                elif key in attempt.probes:
                    # calls that were under way when the outage began do not lengthen the pause
                    self._outages[key], self._found[key] = outage.failed_again(now), error
            for key in over:
                self._outages.pop(key, None)
                self._found.pop(key, None)


class _Writes(NamedTuple):
    """The key of the writes to a server."""

    server: Hashable


def _writes(request: Request) -> bool:
    match request:
        case list():
            return not all(map(is_read, request))
        case Send(batch) | Alongside(_, batch):
            return not all(map(is_read, batch))
    return False


class GuardedRequest:
    """A request to a server, as its breaker knows it; its end opens or closes the breaker. `keys` are the
    outages that it would end, `probes` those that it is the probe of."""

    __slots__ = ("_breaker", "began", "keys", "probes")

    def __init__(
        self, breaker: Breaker, keys: tuple[Hashable, ...], began: float, probes: tuple[Hashable, ...]
    ) -> None:
        self._breaker = breaker
        self.keys = keys
        self.began = began
        self.probes = probes

    @property
    def server(self) -> Hashable:
        return self.keys[0]

    def __enter__(self) -> None:
        return None

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._breaker._settle(self, error)
        self.probes = ()

    def release(self) -> None:
        """End without a result; another request becomes the probe."""
        if self.probes:
            self.__exit__(GeneratorExit, GeneratorExit(), None)
