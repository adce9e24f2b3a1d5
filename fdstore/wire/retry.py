"""Retry policy, shared by both runners: what is sent again, when, and when to give up.

There is no I/O here, so the blocking and the asynchronous runner differ only in how they wait.
"""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from redis.exceptions import (
    AskError,
    AuthenticationError,
    ClusterDownError,
    NoScriptError,
    TryAgainError,
)
from redis.exceptions import ConnectionError as LostConnection
from redis.exceptions import TimeoutError as LostReply

from fdstore.errors import UnknownOutcome
from fdstore.wire.connection_options import SOCKET_TIMEOUT_S
from fdstore.wire.operation import Batch
from fdstore.wire.redis_errors import WORK_WAITS_FOR, error_in, refusal_code, translate
from fdstore.wire.scripts import as_one_script, is_read, name_of

DEADLINE_S = 10.0
"""For how long, from its first attempt, a request whose reply was lost is retried, unless the client has a
patience of its own."""

MIN_WAIT_S = 0.01
"""The shortest time-out of an attempt, also when the deadline is over."""

PAUSES_S = (0.0, 0.05, 0.1, 0.2, 0.5)
"""Pauses before each retry; the last one is repeated."""

NOT_ON_THIS_NODE = (AskError, TryAgainError, ClusterDownError, NoScriptError)
"""Refusals of a Cluster node that executed nothing: another node serves the key (MOVED is an AskError, too),
or no node does now, or the script must be sent with its source."""

TRANSIENT_ERRORS = (LostConnection, LostReply, *NOT_ON_THIS_NODE)
"""Errors worth a retry, besides the refusals that pass. An authentication error is excluded, although it is a
LostConnection by class."""


def is_transient(error: Exception) -> bool:
    """Return whether the same request may succeed soon."""
    if isinstance(error, AuthenticationError):
        return False
    # a link returns those that its request does not wait for as replies, and raises the others
    return isinstance(error, TRANSIENT_ERRORS) or refusal_code(error) in WORK_WAITS_FOR


class RetryState:
    """The retries of a batch whose connection was lost, or which the server refused: its replies so far, the
    next piece, the deadline.

    Every request is safe to repeat, but answered ones are not sent again: a network that loses every n-th
    reply would never let a batch of n through. The others are resent together once; if that yields no
    reply, one by one. Of a transaction only the last reply proves that it was executed, so in this mode it
    is sent as one script.

    `sent`: Redis may have received this attempt's requests; only then is the outcome of a write in doubt.
    `started` is the time (monotonic) of the first attempt, `block_s` how long the server may delay the
    reply. `deadline_s` is for how long it is retried (default: `DEADLINE_S`).
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
        deadline_s: float | None = None,
    ) -> None:
        self._where = where
        self._batch = batch
        self._replies = replies
        self.sent = sent
        self._block_s = block_s
        self._until = started + block_s + (DEADLINE_S if deadline_s is None else deadline_s)
        self._failures = 0
        self._in_doubt = False
        self._known = 0
        self._one_by_one = False
        self._pauses = 0

    def patience_s(self) -> float:
        """Return how many seconds the next attempt may wait for its connection, and for a reply."""
        left = self._until - time.monotonic()
        return max(min(left, self._block_s + SOCKET_TIMEOUT_S), MIN_WAIT_S)

    def piece(self) -> Batch:
        """Return the commands to send next; none when all are answered."""
        rest = self._batch[len(self._replies) :]
        if not (rest and self._one_by_one):
            return rest
        unit = rest[: _unit_end(rest, 0)]
        return unit if len(unit) == 1 else [as_one_script(unit[1:-1])]

    def add_replies(self, piece: Batch, replies: list[Any]) -> None:
        """Record the replies to a piece, possibly incomplete."""
        if piece[0] is self._batch[len(self._replies)]:
            self._replies += replies
        elif replies:
            done = len(self._replies)
            queued = _unit_end(self._batch, done) - done - 2
            self._replies += [b"OK", *[b"QUEUED"] * queued, replies[0]]

    def after(self, error: Exception) -> float:
        """Return the seconds to pause before the next attempt. Raises the translated error if a retry is
        useless or the deadline is over."""
        now = time.monotonic()
        self._failures += 1
        if not is_transient(error):
            raise translate(error, self._where) from error
        refused = refusal_code(error)
        if self._block_s and (refused == "UNBLOCKED" or self._failures > 1):
            # its caller looks again, which has a deadline of its own, and blocks for the time that is left
            self._replies.append(None)
            return PAUSES_S[1]
        known, self._known = self._known, self._drop_partial()
        if self._known > known:
            self._pauses = 0
        elif self._failures > 1 and self.sent and not refused:
            self._one_by_one = True
        # a server that refuses has done nothing
        self._in_doubt, self.sent = self._in_doubt or (self.sent and not refused), False
        pause = PAUSES_S[min(self._pauses, len(PAUSES_S) - 1)]
        self._pauses += 1
        if now + pause > self._until:
            writes = [name_of(command) for command in self._batch[self._known :] if not is_read(command)]
            if writes and self._in_doubt:
                # prefer the name of a script (lower case) to that of a command such as EXEC
                raise UnknownOutcome(f"{max(reversed(writes), key=str.islower)!r}") from error
            raise translate(error, self._where) from error
        return pause

    def _drop_partial(self) -> int:
        """Drop the replies of an incomplete transaction. Return how many replies are left."""
        end = 0
        while end < len(self._replies):
            after = _unit_end(self._batch, end)
            if after > len(self._replies):
                del self._replies[end:]
            else:
                end = after
        return end


def _unit_end(batch: Batch, start: int) -> int:
    """Return the end of the unit that begins at `start`: one command, or a transaction."""
    return batch.index(("EXEC",), start) + 1 if batch[start] == ("MULTI",) else start + 1


class InFlight:
    """A link with batches in flight, oldest first."""

    def __init__(self, link: Any) -> None:
        self.link = link
        self.batches: deque[Batch] = deque()
        self.waited_s = 0.0
        """The time that sending waited in vain; it counts for the deadline of the oldest batch."""

    @property
    def broken(self) -> bool:
        """Return whether the connection was lost with batches in flight: they are all resent, in order, when
        the first of their replies is requested."""
        return bool(self.batches) and not self.link.is_connected


def unloaded_scripts(batch: Batch, replies: list[Any]) -> list[slice]:
    """Return the slices of the batch whose scripts the server did not know, to send again with source."""
    found = []
    start = 0
    while start < len(batch):
        end = _unit_end(batch, start)
        if isinstance(error_in(batch[end - 1], replies[end - 1]), NoScriptError):
            found.append(slice(start, end))
        start = end
    return found
