"""kombu's Redis transport for a queue that is not trusted, under URL schemes of its own.

**Messages.** A channel pops bytes from the list, messages.py reads the process id in them, and kombu gets a
new envelope around that id. A refused message is dropped with one line in the log and not redelivered. The
same happens to entries of `unacked` that return to the queue.

**Size.** Replies of Redis are bounded: a message of 512 MB is dropped together with its connection.

**Errors of Redis.** Any client with write access to the queue can replace the list, or `unacked`, by a
string. While Redis refuses to take messages or to note them as taken (WRONGTYPE, NOPERM, or a refusal that
passes: a replica, too few replicas, a full memory, a busy server), the worker asks again at growing
intervals, and says so once a minute: a new connection would be refused at once, again and again. It is closed
where the next one may find another primary. A message that cannot be noted as taken goes back to the queue;
where Redis refuses that, too, it is dropped, and the sweep sends it again. Other errors are raised as a
ConnectionError, so that Celery reconnects with back-off while the running tasks continue. Otherwise kombu's
main loop would end, and all tasks with it.

**Lost connections.** The defect (kombu 5.7): when Redis goes away, Celery closes the consumer's connection
twice. The first close stops at the first channel that raises, as a pub/sub channel does, and clears the
connection's parameters; the second close reaches the other channels. The one that holds unacknowledged
messages creates a client to restore them to the queue, and reads the parameters of a connection that has
none: `AttributeError: 'NoneType' object has no attribute 'hostname'`. No caller handles that error, so the
worker's main process ends with all its tasks. A late acknowledgement over such a channel has the same effect.
Here such a channel raises ConnectionError, and Celery reconnects. (Our workers have no pub/sub channel unless
remote control, gossip or events are enabled: `celery_config`.)

    redis://          -> fdredis://
    redis+socket://   -> fdredis+socket://
    rediss://         -> fdrediss://
    sentinel://       -> fdsentinel://

Only workers need these; senders acknowledge nothing. Importing this module registers them with kombu, and
raises `StartFailed` if this version of kombu lacks a method that is replaced here: messages would go past
the checks.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from queue import Empty
from typing import Any

import kombu
from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as kombu_redis

from fdstore.agents.runtime.queue import QUEUE
from fdstore.agents.runtime.store_wait import WaitLog
from fdstore.errors import StartFailed
from fdstore.wire.redis_errors import refusal_code
from fdstore_workers import messages

log = logging.getLogger("fdstore.worker")

SCHEME_PREFIX = "fd"

MAX_REPLY_BYTES = 1_000_000
"""The limit for one reply of the queue's Redis. The longest legitimate one lists `RESTORE_AT_ONCE` tags."""

RESTORE_AT_ONCE = 100
"""The number of entries of `unacked` that one pass restores."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""The pause before messages are asked for again after Redis refused that: twice as long each time."""

LONGEST_WAIT_S = 4.0
"""The longest pause for a refusal that passes."""

ELSEWHERE = frozenset({"MASTERDOWN", "READONLY", "UNBLOCKED"})
"""The refusals after which another server may be the primary."""

_taking = WaitLog(log, "the queue's Redis refused")
_forgetting = WaitLog(log, "the queue's Redis refused to forget a taken message")

# untyped, because kombu is; the rest of fdstore reaches redis-py through `fdstore.wire` only
redis: Any = kombu_redis
redis_py: Any = redis.redis
ResponseError: Any = redis_py.exceptions.ResponseError
NoPermission: Any = redis_py.exceptions.NoPermissionError


class ReplyTooLong(Exception):
    """A reply of Redis is larger than any message that fdstore sends."""


class _QueueRefused(Exception):
    """Redis refuses to take messages from the queue, on a new connection, too. `code` is that of a refusal
    that passes."""

    def __init__(self, reason: str, code: str | None) -> None:
        super().__init__(reason)
        self.code = code


def _reason(error: Exception) -> str:
    """Return what Redis said; for a pipelined command it follows a copy of the command."""
    return str(error).rpartition("caused error: ")[2][:200]


def _refusal(error: Exception) -> Exception:
    """Return what an error of Redis means: `_QueueRefused` if a new connection would get it, too."""
    code = refusal_code(error)
    if code or "WRONGTYPE" in str(error) or isinstance(error, NoPermission):
        return _QueueRefused(_reason(error), code)
    return error


class _CountedSocket:
    """A socket that counts received bytes."""

    def __init__(self, sock: Any) -> None:
        self._sock = sock
        self.received_bytes = 0

    def recv_into(self, *arguments: Any) -> int:
        if self.received_bytes > MAX_REPLY_BYTES:
            raise ReplyTooLong
        size: int = self._sock.recv_into(*arguments)
        self.received_bytes += size
        return size

    def __getattr__(self, name: str) -> Any:
        return getattr(self._sock, name)


class BoundedParser(redis_py.connection.DefaultParser):
    """A parser of replies that raises `ReplyTooLong` after `MAX_REPLY_BYTES`."""

    _sock: Any

    def on_connect(self, connection: Any, **options: Any) -> None:
        super().on_connect(connection, **options)
        self._sock = _CountedSocket(self._sock)

    def read_response(self, *arguments: Any, **options: Any) -> Any:
        if self._sock is not None:
            self._sock.received_bytes = 0
        return super().read_response(*arguments, **options)


@contextmanager
def _expected_errors() -> Iterator[None]:
    """Translate errors of Redis into a ConnectionError, which Celery handles."""
    try:
        yield
    except ReplyTooLong:
        raise ConnectionError("a reply of the queue's Redis was too long") from None
    except ResponseError as error:
        raise ConnectionError(f"the queue's Redis refused: {_reason(error)}") from error


class QoS(redis.QoS):
    """The unacknowledged messages, whose tasks are running."""

    def append(self, message: Any, delivery_tag: str) -> None:
        with _expected_errors():
            try:
                super().append(message, delivery_tag)
            except ResponseError as error:
                raise _refusal(error) from error

    def ack(self, delivery_tag: str) -> None:
        with self._ending(delivery_tag):
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        with self._ending(delivery_tag):
            super().reject(delivery_tag, requeue)

    @contextmanager
    def _ending(self, delivery_tag: str) -> Iterator[None]:
        """Free the place of a message whose task has ended, also if Redis refuses to forget the message.

        Otherwise the worker would wait for that place for ever. The message may be delivered again.
        """
        with _expected_errors():
            try:
                yield
            except ResponseError as error:
                _forgetting.waits(_reason(error))
                super(redis.QoS, self).ack(delivery_tag)

    def restore_visible(self, *arguments: Any, **options: Any) -> None:
        with _expected_errors():
            try:
                super().restore_visible(*arguments, **options)
            except ResponseError as error:
                if not refusal_code(error):
                    raise  # else a later pass restores them

    def restore_by_tag(self, tag: str | bytes, client: Any = None, leftmost: bool = False) -> None:
        """Remove an unacknowledged message, and return it to the queue if it is valid."""

        def restore(pipe: Any) -> None:
            # kombu's client prefixes the keys of the commands that kombu uses; HSTRLEN is not one of them
            key = f"{self.channel.global_keyprefix}{self.unacked_key}"
            size = pipe.execute_command("HSTRLEN", key, tag)
            entry = pipe.hget(self.unacked_key, tag) if 0 < size <= MAX_REPLY_BYTES else b""
            pipe.multi()
            self._remove_from_indices(tag, pipe)
            if not size:
                return
            try:
                process = messages.unacked_process_of(entry)
            except messages.ForeignMessage as reason:
                log.warning("dropped an unacknowledged message of %d bytes: %s", size, reason)
            else:
                (pipe.lpush if leftmost else pipe.rpush)(QUEUE, json.dumps(messages.envelope(process)))

        with _expected_errors(), self.channel.conn_or_acquire(client) as client:
            client.transaction(restore, self.unacked_key)


class _Guarded:
    """A mixin with the methods of kombu's Redis channel that are replaced."""

    QoS = QoS
    connection: Any
    client: Any
    qos: Any
    connection_errors: Any
    _queue_cycle: Any
    _flush_brpop_reauth: Any
    _pause_s = 0.0
    _resume_at = 0.0

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection is None or self.connection.client is None:
            raise ConnectionError("the connection of this channel was closed")
        original: Any = super()
        parameters: dict[str, Any] = original._connparams(asynchronous)
        return parameters | {"parser_class": BoundedParser}

    def _size(self, queue: str) -> int:
        """Return how many messages wait, 0 if Redis refuses to say: asked for when the queue is declared."""
        original: Any = super()
        try:
            size: int = original._size(queue)
        except ResponseError:
            return 0
        return size

    def _brpop_start(self, timeout: Any = None) -> None:
        """Ask for a message, unless a pause lasts; the loop calls this at least once a second."""
        if time.monotonic() >= self._resume_at:
            original: Any = super()
            original._brpop_start(timeout)

    def _pause(self, refused: _QueueRefused) -> None:
        _taking.waits(refused)
        longest_s = LONGEST_WAIT_S if refused.code else LONGEST_PAUSE_S
        self._pause_s = min(2 * self._pause_s or FIRST_PAUSE_S, longest_s)
        self._resume_at = time.monotonic() + self._pause_s
        if refused.code in ELSEWHERE:
            self.client.connection.disconnect()

    def _resume(self) -> None:
        self._pause_s = 0.0
        _taking.goes_on()

    def _brpop_read(self, **options: Any) -> bool:
        """Read the reply of BRPOP and deliver its message. Raises `Empty` without a valid message."""
        connection = self.client.connection
        try:
            try:
                with _expected_errors():
                    reply = self._read_reply()
            except _QueueRefused as refused:
                self._pause(refused)
                raise Empty from None
            except self.connection_errors:
                connection.disconnect()
                raise
            if not reply:
                self._resume()
                raise Empty
            _, message = reply
            self._queue_cycle.rotate(QUEUE)
            try:
                process = messages.process_of(message)
            except messages.ForeignMessage as reason:
                log.warning("dropped a message of %d bytes: %s", len(message), reason)
                raise Empty from None
            try:
                self.connection._deliver(messages.envelope(process), QUEUE)
            except _QueueRefused as refused:  # it cannot be noted as taken
                with _expected_errors(), suppress(*((ResponseError,) if refused.code else ())):
                    self.client.rpush(QUEUE, message)
                self._pause(refused)
                raise Empty from None
            self._resume()
            return True
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()

    def _read_reply(self) -> Any:
        connection = self.client.connection
        try:
            return self.client.parse_response(connection, "BRPOP")
        except ResponseError as error:
            raise _refusal(error) from error
        except ReplyTooLong:
            # the rest of the reply is still in transit: the next BRPOP opens a new connection
            connection.disconnect()
            log.warning("dropped a message of more than %d bytes", MAX_REPLY_BYTES)
            return None

    def _restore(self, message: Any, leftmost: bool = False) -> None:
        self.qos.restore_by_tag(message.delivery_tag, leftmost=leftmost)


class Channel(_Guarded, redis.Channel):
    """A channel to one Redis, over TCP, TLS or a unix socket."""


class SentinelChannel(_Guarded, redis.SentinelChannel):
    """A channel to the Redis master that Sentinels report."""


class Transport(redis.Transport):
    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    Channel = SentinelChannel


CHANNEL_METHODS = ("_brpop_read", "_brpop_start", "_size", "_connparams", "_flush_brpop_reauth", "_restore")
QOS_METHODS = ("append", "ack", "reject", "restore_visible", "restore_by_tag", "_remove_from_indices")
"""The methods that are replaced here, and those that the replacements call."""


def check_methods(original: type, methods: tuple[str, ...]) -> None:
    """Raise `StartFailed` if a class of kombu lacks one of these methods."""
    missing = [method for method in methods if not hasattr(original, method)]
    if missing:
        name = f"{original.__name__}.{missing[0]}"
        raise StartFailed("worker", f"kombu {kombu.__version__} has no {name}: install an earlier version")


check_methods(redis.Channel, CHANNEL_METHODS)
check_methods(redis.QoS, QOS_METHODS)
TRANSPORT_ALIASES.update(
    fdredis=f"{__name__}:Transport",
    fdrediss=f"{__name__}:Transport",
    fdsentinel=f"{__name__}:SentinelTransport",
)


def quote_url(url: str) -> str:
    """Return a broker URL in kombu's form with the schemes of this transport.

    >>> quote_url("redis+socket:///run/redis.sock?virtual_host=0")
    'fdredis+socket:///run/redis.sock?virtual_host=0'
    """
    return ";".join(SCHEME_PREFIX + one for one in url.split(";"))
