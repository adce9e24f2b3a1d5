"""Operations: generators that yield requests and receive the replies.

An operation knows nothing of sockets, threads or event loops. It yields requests; a runner (`_sync.runner`,
`_async.runner`) serves them, so that every operation is written once for both:

    def read_page(keys: ContentKeys, number: int) -> Operation[bytes | None]:
        [page] = yield [("HGET", keys.pages, number)]
        return page

Each list yielded is one round trip, so the cost of an operation is visible in its code, and a test can
drive it without a server and count.

Every request must be idempotent: a read, a write of the same value to the same place, or a script that
remembers its operation id. A runner that loses a connection sends it again.

A runner throws errors into the operation, those of a `Disk` call included, and a blocking one
KeyboardInterrupt too. The operation may then yield more requests to clean up. Its lanes may have lost a
reply, so it first abandons them (`Abandon`).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Generator
from functools import lru_cache
from typing import Any, TypeAlias, TypeVar, cast

import msgspec

Value: TypeAlias = str | bytes | int | float
Command: TypeAlias = tuple[Value, ...]
Batch: TypeAlias = list[Command]


def key_of(command: Command) -> Value | None:
    """Return the first key of a command; None if it has none."""
    match command:
        case ("EVALSHA" | "EVAL", _, count, *rest):
            return rest[0] if count else None
        case ("OBJECT", _, key):
            return key
        case ("XREAD", *rest):
            return rest[rest.index("STREAMS") + 1]
        case ("MULTI" | "EXEC" | "PING" | "INFO" | "TIME", *_):
            return None
    return command[1]


class Apart(list[Command]):
    """A batch of reads of many trees: in a Cluster a node that does not answer costs its own trees alone. In
    place of their replies stands the error, `StoreUnavailable`. No reply waits for a lost node to return."""

    __slots__ = ()


class Send(msgspec.Struct, frozen=True):
    """Send a batch without waiting for its replies: several may be in flight. A lane is a connection of its
    own, held until the operation ends. Result: None."""

    batch: Batch
    lane: str


class Receive(msgspec.Struct, frozen=True):
    """Wait for the replies to the lane's oldest unanswered `Send`. Result: those replies."""

    lane: str


class Abandon(msgspec.Struct, frozen=True):
    """Discard the replies in flight on a lane. Its connection is closed after the server has executed the
    batches, or after a short time-out, so that later requests on other connections follow them. Result:
    None."""

    lane: str


class Block(msgspec.Struct, frozen=True):
    """Run one command that may block in Redis for up to `seconds`, on a connection of its own. Result: its
    reply; None also if the server ended the wait early, as in a failover."""

    command: Command
    seconds: float


class Alongside(msgspec.Struct, frozen=True):
    """Run a batch, and in the same round trip `reads` that it does not depend on. In a Cluster these may be
    on another node, which gets one attempt: the batch does not wait for a lost one. Result: the replies to
    the reads, all None if that node failed, and those to the batch."""

    reads: Batch
    batch: Batch


class Upkeep(msgspec.Struct, frozen=True):
    """Run a batch of writes that a reader makes for others, and can do without: the refusal of a server that
    takes no writes is not waited for. Result: its replies; None if they were refused."""

    batch: Batch


class Everywhere(msgspec.Struct, frozen=True):
    """Run the same reads on every primary of the store (one, except in a Cluster), with one attempt each.
    Result: for each its address, and its replies or the error. The reply to an `optional` one that the server
    refuses is None."""

    batch: Batch
    optional: Batch = []


class Disk(msgspec.Struct, frozen=True):
    """Call a function that may do disk I/O. Result: its return value. `must_end`: it uses resources that the
    operation releases at its end, so a cancelled operation waits for it (see `in_thread`)."""

    call: Callable[[], Any]
    must_end: bool = False


Request: TypeAlias = Batch | Send | Receive | Abandon | Block | Alongside | Upkeep | Everywhere | Disk

T = TypeVar("T")
Operation: TypeAlias = Generator[Request, Any, T]


class Working(Generator[Request, Any, T]):
    """An operation of work that runs: its requests wait also for the refusals that others raise at once (see
    `redis_errors`)."""

    __slots__ = ("_operation",)

    def __init__(self, operation: Operation[T]) -> None:
        self._operation = operation

    def send(self, value: Any) -> Request:
        return self._operation.send(value)

    def throw(self, *error: Any) -> Request:
        return self._operation.throw(*error)

    def close(self) -> None:
        self._operation.close()


@lru_cache(maxsize=4096)
def _packed_number(number: int) -> bytes:
    text = b"%d" % number
    return b"$%d\r\n%b\r\n" % (len(text), text)


class NumberedFields:
    """Requests for numbered fields of a hash, each with a `proof`: a field of another hash that identifies
    the content. The proof is read last: if it is valid then, it was valid when the field was read.

    With `rest_mark`, a field may go on in a second one, whose name ends in the mark; the reply lists both.
    """

    __slots__ = ("_head", "_key", "_proof", "_rest_mark", "_tail")

    def __init__(self, key: str, proof: Command, rest_mark: str = "") -> None:
        self._key = key
        self._proof = proof
        self._rest_mark = rest_mark
        self._head = self._tail = b""

    def batch(self, number: int) -> Batch:
        """Return the commands for the field and its proof."""
        if self._rest_mark:
            return [("HMGET", self._key, number, f"{number}{self._rest_mark}"), self._proof]
        return [("HGET", self._key, number), self._proof]

    def request(self, number: int) -> bytes:
        """Return the batch encoded for the wire, in a third of the time of `packing.pack`."""
        if not self._head:
            key = self._key.encode("utf-8")
            command = b"*4\r\n$5\r\nHMGET" if self._rest_mark else b"*3\r\n$4\r\nHGET"
            self._head = b"%b\r\n$%d\r\n%b\r\n" % (command, len(key), key)
            words = [str(word).encode("utf-8") for word in self._proof]
            self._tail = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)
        if self._rest_mark:
            rest = b"%d%b" % (number, self._rest_mark.encode("utf-8"))
            return b"%b%b$%d\r\n%b\r\n%b" % (
                *(self._head, _packed_number(number)),
                *(len(rest), rest, self._tail),
            )
        return self._head + _packed_number(number) + self._tail

    def read(self, number: int) -> Operation[list[Any]]:
        """Read the field and its proof; each is None if missing."""
        return cast("list[Any]", (yield self.batch(number)))


def new_op() -> str:
    """Return a new operation id."""
    return os.urandom(8).hex()


def served(
    operation: Operation[T], serve: Callable[[Any], Generator[Any, Any, Any]]
) -> Generator[Any, Any, T]:
    """Run an operation whose requests are served by `serve`, which yields other requests: its result is the
    reply, and what it raises is raised in the operation."""
    try:
        request = next(operation)
        while True:
            try:
                reply = yield from serve(request)
            except (Exception, KeyboardInterrupt) as error:  # noqa: BLE001  thrown into the operation
                request = operation.throw(error)
            else:
                request = operation.send(reply)
    except StopIteration as done:
        result: T = done.value
        return result
    finally:
        operation.close()
