"""What both runners share: how connections are made, when to try again, what an error means.

Everything here is plain state without I/O, so the blocking and the awaiting runner differ only in
how they wait.
"""

from __future__ import annotations

import re
import time
from collections import deque
from collections.abc import Callable
from typing import Any, cast

from hiredis import Reader, pack_command
from redis.backoff import NoBackoff
from redis.exceptions import (
    AskError,
    AuthenticationError,
    BusyLoadingError,
    ClusterDownError,
    InvalidResponse,
    NoPermissionError,
    NoScriptError,
    OutOfMemoryError,
    ReadOnlyError,
    RedisError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as LostReply
from redis.retry import Retry

from fdstore.errors import (
    DamagedRecord,
    FDStoreError,
    StoreFull,
    StoreReadOnly,
    StoreRefused,
    StoreUnavailable,
    UnknownOutcome,
)
from fdstore.wire.operation import Batch, Command
from fdstore.wire.scripts import as_one_script, name_of, only_reads

DEADLINE_S = 10.0
"""How long after it was first sent an operation whose reply was lost is asked again, and waited for."""

SOCKET_TIMEOUT_S = 5.0
CONNECT_TIMEOUT_S = 2.0
READ_SIZE_BYTES = 256 * 1024

MIN_WAIT_S = 0.01
"""The shortest time-out of a try: what is left of the deadline may be nothing."""

PAUSES_S = (0.0, 0.05, 0.1, 0.2, 0.5)
"""Waits before each further try; the last one is repeated."""

NOT_ON_THIS_NODE = (AskError, TryAgainError, ClusterDownError, NoScriptError)
"""What the node of a Cluster answers that did nothing: another one serves the key (MOVED is an AskError,
too), or none can now, or the script must be sent with its text."""

WRONG_TYPE = "WRONGTYPE Operation against a key holding the wrong kind of value"
"""What Redis says of a field for a key that is no hash."""

NO_KEY = "no such key"
"""What Redis says when there is nothing to rename."""

_EXPECTED = (WRONG_TYPE, NO_KEY, f"ERR {NO_KEY}")

IN_A_SCRIPT = re.compile(r"NOPERM|NOAUTH|ACL failure in script|The user executing the script can't")
"""How a refusal of ACLs reads that a script met; versions of Redis differ."""

_NO_WRITES = re.compile(r"READONLY|MISCONF|NOREPLICAS")

TRANSIENT_ERRORS = (LostConnection, LostReply, BusyLoadingError, ReadOnlyError, *NOT_ON_THIS_NODE)
"""What may be over at the next try. An authentication error is a LostConnection by class only. A server that
takes no writes was perhaps a primary until now, and the next connection finds the new one."""


def refuses_service(reply: Any) -> RedisError | None:
    """Return the error that a reply is if it says that this server serves nobody now, or no writes: then a
    new connection is needed, which may find another server. Redis 6 wraps what a script met."""
    if isinstance(reply, (LostConnection, ReadOnlyError)):
        return reply
    return ReadOnlyError(str(reply)) if isinstance(reply, RedisError) and "-READONLY " in str(reply) else None


def connection_options() -> dict[str, Any]:
    return {
        "socket_timeout": SOCKET_TIMEOUT_S,
        "socket_connect_timeout": CONNECT_TIMEOUT_S,
        "socket_read_size": READ_SIZE_BYTES,
        "retry": Retry(NoBackoff(), 0),
        "protocol": 2,
        "driver_info": None,
    }


def translate(error: Exception, where: str) -> FDStoreError:
    """A library's error as one of ours. redis-py takes the code off a reply it has a class for, and
    leaves it on where a script wraps it."""
    message = str(error)
    if isinstance(error, TryAgainError):
        message = "the slot of this tree is on its way to another node"
    if isinstance(error, OutOfMemoryError) or "OOM " in message or "'maxmemory'" in message:
        return StoreFull("maxmemory is reached")
    if isinstance(error, ReadOnlyError) or _NO_WRITES.search(message):
        return StoreReadOnly(message.partition(".")[0])
    if isinstance(error, AuthenticationError):
        return StoreRefused(where, message.rstrip("."), "check the user and the password in the store's URL")
    if isinstance(error, NoPermissionError) or IN_A_SCRIPT.search(message):
        return StoreRefused(where, message.rstrip("."), "ACL SETUSER grants it, as deploy/users.acl does")
    return StoreUnavailable(where, message.rstrip("."))


INCOMPLETE = object()
"""What a reader of replies gives while a reply is not whole."""


def make_reader(take_refusal: Callable[[str], Exception]) -> Reader:
    """Make what parses replies: bytes as they came, an error as what `take_refusal` makes of its text."""
    return Reader(protocolError=InvalidResponse, replyError=take_refusal, notEnoughData=INCOMPLETE)


class RetryState:
    """A batch whose connection was lost: the replies so far, what to send next, and when to give up.

    Every request is safe to repeat, but what was answered is not asked again: a network that loses
    every n-th reply would never let a batch of n through. The rest is sent together once more; when that
    brings nothing, one by one. Of a transaction only the last reply says that it happened, so alone it is
    sent as one script.

    `sent` says that Redis may have received what was sent in this try: only then is the outcome of a
    write in doubt. `started` is the time (monotonic) of the first try, `block_s` for how many seconds the
    server may hold the reply back. `fails_over` says that another server may become the primary of this
    store any moment, so that one that takes no writes is asked until the time is over, not twice.
    """

    def __init__(
        self,
        where: str,
        batch: Batch,
        replies: list[Any],
        *,
        sent: bool,
        started: float,
        block_s: float = 0.0,
        fails_over: bool = False,
    ) -> None:
        self._where = where
        self._batch = batch
        self._replies = replies
        self.sent = sent
        self._block_s = block_s
        self._until = started + block_s + DEADLINE_S
        self._fails_over = fails_over
        self._failures = 0
        self._in_doubt = False
        self._known = 0
        self._one_by_one = False
        self._pauses = 0

    def patience_s(self) -> float:
        """For how many seconds the next try may wait for its connection, and for a reply."""
        left = self._until - time.monotonic()
        return max(min(left, self._block_s + SOCKET_TIMEOUT_S), MIN_WAIT_S)

    def piece(self) -> Batch:
        """What to send next; nothing when all is answered."""
        rest = self._batch[len(self._replies) :]
        if not (rest and self._one_by_one):
            return rest
        unit = rest[: _unit_end(rest, 0)]
        return unit if len(unit) == 1 else [as_one_script(unit[1:-1])]

    def took(self, piece: Batch, replies: list[Any]) -> None:
        """Takes the replies to a piece, or as many as came."""
        if piece[0] is self._batch[len(self._replies)]:
            self._replies += replies
        elif replies:
            done = len(self._replies)
            queued = _unit_end(self._batch, done) - done - 2
            self._replies += [b"OK", *[b"QUEUED"] * queued, replies[0]]

    def after(self, error: Exception) -> float:
        """Seconds to pause before trying again. Raises when it is no use, or the time is over."""
        now = time.monotonic()
        self._failures += 1
        if isinstance(error, AuthenticationError) or not isinstance(error, TRANSIENT_ERRORS):
            raise translate(error, self._where) from error
        read_only = isinstance(error, ReadOnlyError)
        known, self._known = self._known, self._settle()
        if self._known > known:
            self._pauses = 0
        elif self._failures > 1 and self.sent and not read_only:
            self._one_by_one = True
        # a server that takes no writes did none
        self._in_doubt, self.sent = self._in_doubt or (self.sent and not read_only), False
        if read_only and not self._in_doubt and self._failures > 1 and not self._fails_over:
            raise translate(error, self._where) from error
        pause = PAUSES_S[min(self._pauses, len(PAUSES_S) - 1)]
        self._pauses += 1
        if now + pause > self._until:
            writes = [name_of(command) for command in self._batch[self._known :] if not only_reads(command)]
            if writes and self._in_doubt:
                # the name of a script says more than EXEC does
                raise UnknownOutcome(f"{max(reversed(writes), key=str.islower)!r}") from error
            raise translate(error, self._where) from error
        return pause

    def _settle(self) -> int:
        """Drops the replies of a transaction that did not come through whole; how many are left."""
        end = 0
        while end < len(self._replies):
            after = _unit_end(self._batch, end)
            if after > len(self._replies):
                del self._replies[end:]
            else:
                end = after
        return end


def _unit_end(batch: Batch, start: int) -> int:
    """Where the commands end that stand or fall with the one at `start`: itself, or a transaction."""
    return batch.index(("EXEC",), start) + 1 if batch[start] == ("MULTI",) else start + 1


class InFlight:
    """A link with batches on their way, oldest first."""

    def __init__(self, link: Any) -> None:
        self.link = link
        self.batches: deque[Batch] = deque()

    @property
    def broken(self) -> bool:
        """Whether older batches were on a connection that is lost: they are all sent again, in their
        order, when the first of their replies is asked for."""
        return bool(self.batches) and not self.link.is_connected


# its stub says a tuple of one
_pack = cast("Callable[[Command], bytes]", pack_command)


def _pack_command(command: Command) -> bytes:
    # hiredis crashes the interpreter when a signal handler raises while it turns a number into digits
    return _pack(tuple([part if isinstance(part, (str, bytes)) else str(part) for part in command]))


def pack(batch: Batch) -> bytes:
    """The batch as it goes over the wire. In one piece, large commands too: for each that is sent by itself
    Redis wakes up, and so does who waits for its reply. redis-py's own packing gives the same bytes in four
    times the time."""
    return _pack_command(batch[0]) if len(batch) == 1 else b"".join(map(_pack_command, batch))


def error_in(command: Command, reply: Any) -> RedisError | None:
    """The error that a reply is, or that of a transaction holds: it does all its commands, whatever becomes
    of some. Two are none: that a key of another kind takes no fields, and that nothing has to be put back
    (see `scripts.hset_if_accepted`)."""
    if command == ("EXEC",) and isinstance(reply, list):
        errors = (part for part in reply if isinstance(part, RedisError))
        return next((error for error in errors if str(error) not in _EXPECTED), None)
    return reply if isinstance(reply, RedisError) else None


def unloaded_scripts(batch: Batch, replies: list[Any]) -> list[slice]:
    """What of the batch is to be sent with the texts of its scripts, which the server does not know yet."""
    found = []
    start = 0
    while start < len(batch):
        end = _unit_end(batch, start)
        if isinstance(error_in(batch[end - 1], replies[end - 1]), NoScriptError):
            found.append(slice(start, end))
        start = end
    return found


def raise_error(batch: Batch, replies: list[Any], where: str) -> None:
    """Raises the first error among the replies, if there is one."""
    for i, error in enumerate(map(error_in, batch, replies)):
        if error is not None:
            raise _damage(batch, i, str(error)) or translate(error, where) from error


_DAMAGE = re.compile(
    r"WRONGTYPE|(?<!@)user_script:\d+: |not an integer|not a valid float|would overflow|would produce NaN"
    r"|Invalid stream ID|smaller than the target stream top item"
)
"""What Redis says of a key that holds something else than was written there; of an error in Lua, too: a
script counts and compares what it reads."""


def _damage(batch: Batch, number: int, message: str) -> DamagedRecord | None:
    """The error for a command, or a transaction, that met a damaged record; None for any other refusal."""
    if not _DAMAGE.search(message) or any(code in message for code in ("OOM ", "MISCONF", "READONLY")):
        return None
    command = batch[number]
    if command == ("EXEC",):
        command = next((each for each in reversed(batch[:number]) if each[0] == "EVALSHA"), batch[number - 1])
    problem = message.partition(" script:")[0]
    if command[0] not in ("EVALSHA", "EVAL"):
        key = str(command[-2 if command[0] == "XREAD" else 1])
        return DamagedRecord(f"the key {key}", problem)
    tree = str(command[3]).partition("{")[2].partition("}")[0]
    return DamagedRecord(f"a record of tree {tree}", f"{problem} ({name_of(command)})")
