"""What an operation is: a generator that says what it needs and is handed the answer.

An operation knows nothing of sockets, threads or event loops. It yields requests; a runner (see
`connection`) serves them, blocking or awaiting, so that every operation is written once for both:

    def read_page(keys: ContentKeys, number: int) -> Operation[bytes | None]:
        [page] = yield [("HGET", keys.pages, number)]
        return page

One list yielded is one round trip, so the cost of an operation is visible in its code, and a test
can drive it without a server and count.

Every request must be safe to repeat: a read, a write of the same value to the same place, or a
script that remembers its operation id. A runner that loses a connection sends it again.

An operation is thrown the errors of fdstore, and where it blocks Ctrl-C, wherever that comes: it may yet ask
for something, to put away what it began. Its lanes may have lost a reply, so it gives them up (`Abandon`).
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


class Send(msgspec.Struct, frozen=True):
    """Send these commands and do not wait: several batches may be on their way. A lane is a
    connection of its own, held until the operation ends. Answer: None."""

    batch: Batch
    lane: str


class Receive(msgspec.Struct, frozen=True):
    """Wait for the replies to the lane's oldest `Send` that has none yet. Answer: those replies."""

    lane: str


class Abandon(msgspec.Struct, frozen=True):
    """Ask no more for what is on its way on a lane. Its connection is closed once the server has done what
    was sent, if that does not take long: what is sent afterwards elsewhere comes later. Answer: None."""

    lane: str


class Block(msgspec.Struct, frozen=True):
    """One command that Redis holds back for up to `seconds`, on a connection of its own.
    Answer: its reply."""

    command: Command
    seconds: float


class Everywhere(msgspec.Struct, frozen=True):
    """The same reads at every primary of the store (there is one, unless it is a Cluster), tried once.
    Answer: for each its address, and its replies or the error that it could not be asked for."""

    batch: Batch


class Disk(msgspec.Struct, frozen=True):
    """A call that may wait for a disk. Answer: what it returns. `must_end`: it uses what the operation
    releases at its end, so an operation that is cancelled ends after it (see `in_thread`)."""

    call: Callable[[], Any]
    must_end: bool = False


Request: TypeAlias = Batch | Send | Receive | Abandon | Block | Everywhere | Disk

T = TypeVar("T")
Operation: TypeAlias = Generator[Request, Any, T]


@lru_cache(maxsize=4096)
def _packed_number(number: int) -> bytes:
    text = b"%d" % number
    return b"$%d\r\n%b\r\n" % (len(text), text)


class NumberedFields:
    """How the numbered fields of a hash are requested, each with the field of another hash that proves
    what they belong to. The proof comes last: if it still holds then, it held when the field was read."""

    __slots__ = ("_head", "_key", "_proof", "_tail")

    def __init__(self, key: str, proof: Command) -> None:
        self._key = key
        self._proof = proof
        self._head = self._tail = b""

    def batch(self, number: int) -> Batch:
        return [("HGET", self._key, number), self._proof]

    def request(self, number: int) -> bytes:
        """The batch as it goes over the wire, in a third of the time that `wire.packed` takes."""
        if not self._head:
            key = self._key.encode("utf-8")
            self._head = b"*3\r\n$4\r\nHGET\r\n$%d\r\n%b\r\n" % (len(key), key)
            words = [str(word).encode("utf-8") for word in self._proof]
            self._tail = b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%b\r\n" % (len(w), w) for w in words)
        return self._head + _packed_number(number) + self._tail

    def read(self, number: int) -> Operation[list[bytes | None]]:
        """The field and the proof, None for one that is not there."""
        return cast("list[bytes | None]", (yield self.batch(number)))


def new_op() -> str:
    """A fresh operation id."""
    return os.urandom(8).hex()
