"""kombu's Redis transport for a queue that is not trusted, under URL schemes of its own.

**Messages.** A channel takes bytes from the list, has messages.py read the process id in them, and
hands kombu an envelope of its own around that id. What is refused there is dropped with one line in the
log and never comes again. Entries of `unacked` go the same way when they return to the queue.

**Size.** The reply of Redis is read up to a bound: a message of 512 MB is dropped with its connection.

**Errors of Redis.** Anyone who may write the queue can put a string where a list should be. What Redis
answers then (WRONGTYPE, NOPERM, OOM) is said as a ConnectionError, so that Celery connects again, with
pauses, while the running tasks go on; as it is, kombu's main loop ends with all of them.

**Lost connections.** The defect (kombu 5.7): when Redis goes away, Celery closes the consumer's
connection twice. The first close stops at the first channel that raises, as a pub/sub channel does, and
forgets the connection's parameters; the second comes to the channels that are left. The one that holds
unacknowledged messages wants to put them back into the queue, makes a client for that, and reads the
parameters of a connection that has none: `AttributeError: 'NoneType' object has no attribute
'hostname'`. Nothing expects this error, so the worker's main process ends with all its tasks. A late
acknowledgement over such a channel ends the same way. A channel whose connection is gone cannot reach
Redis; said as a ConnectionError, this too makes Celery reconnect as it means to. (Our workers have no
pub/sub channel unless remote control, gossip or events are switched on: `celery_config`.)

    redis://          -> fdredis://
    redis+socket://   -> fdredis+socket://
    rediss://         -> fdrediss://
    sentinel://       -> fdsentinel://

Only workers need these; a sender acknowledges nothing. Importing this module makes them known to kombu.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from queue import Empty
from typing import Any

from kombu.transport import TRANSPORT_ALIASES
from kombu.transport import redis as kombu_redis

from fdstore.runtime.queue import QUEUE
from fdstore_workers import messages

log = logging.getLogger("fdstore.worker")

SCHEME_PREFIX = "fd"

MAX_REPLY_BYTES = 1_000_000
"""Of one reply of the queue's Redis. The longest that is meant is a list of `RESTORE_AT_ONCE` tags."""

RESTORE_AT_ONCE = 100
"""Entries of `unacked` that are put back in one look."""

# kombu has no types; redis-py as kombu knows it: the rest of fdstore speaks to Redis through its store alone
redis: Any = kombu_redis
redis_py: Any = redis.redis
ResponseError: Any = redis_py.exceptions.ResponseError


class ReplyTooLong(Exception):
    """Redis answers with more than any message of ours has."""


class _CountedSocket:
    """A socket that counts what is received over it."""

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
    """The parser of replies, which gives up after `MAX_REPLY_BYTES` of one."""

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
    """Say what Redis refuses as an error that Celery expects."""
    try:
        yield
    except ReplyTooLong:
        raise ConnectionError("a reply of the queue's Redis was too long") from None
    except ResponseError as error:
        # of a pipeline it quotes the whole command before the reason
        reason = str(error).rpartition("caused error: ")[2]
        raise ConnectionError(f"the queue's Redis refused: {reason[:200]}") from error


class QoS(redis.QoS):
    """What becomes of messages whose task is running."""

    def append(self, message: Any, delivery_tag: str) -> None:
        with _expected_errors():
            super().append(message, delivery_tag)

    def ack(self, delivery_tag: str) -> None:
        with _expected_errors():
            super().ack(delivery_tag)

    def reject(self, delivery_tag: str, requeue: bool = False) -> None:
        with _expected_errors():
            super().reject(delivery_tag, requeue)

    def restore_visible(self, *arguments: Any, **options: Any) -> None:
        with _expected_errors():
            super().restore_visible(*arguments, **options)

    def restore_by_tag(self, tag: str | bytes, client: Any = None, leftmost: bool = False) -> None:
        """Put a message back into the queue, if it is one of ours; forget it in any case."""

        def restore(pipe: Any) -> None:
            # kombu's client puts its prefix before the keys of the commands that kombu uses, not of this one
            key = f"{self.channel.global_keyprefix}{self.unacked_key}"
            size = pipe.execute_command("HSTRLEN", key, tag)
            entry = pipe.hget(self.unacked_key, tag) if 0 < size <= MAX_REPLY_BYTES else b""
            pipe.multi()
            self._remove_from_indices(tag, pipe)
            if not size:
                return
            try:
                process = messages.unacked_process_of(entry)
            except messages.Refused as reason:
                log.warning("dropped an unacknowledged message of %d bytes: %s", size, reason)
            else:
                (pipe.lpush if leftmost else pipe.rpush)(QUEUE, json.dumps(messages.envelope(process)))

        with _expected_errors(), self.channel.conn_or_acquire(client) as client:
            client.transaction(restore, self.unacked_key)


class _Guarded:
    """The functions of kombu's Redis channel that are replaced, for a subclass of it."""

    QoS = QoS
    connection: Any
    client: Any
    qos: Any
    connection_errors: Any
    _queue_cycle: Any
    _flush_brpop_reauth: Any

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection is None or self.connection.client is None:
            raise ConnectionError("the connection of this channel was closed")
        original: Any = super()
        parameters: dict[str, Any] = original._connparams(asynchronous)
        return parameters | {"parser_class": BoundedParser}

    def _brpop_read(self, **options: Any) -> bool:
        """Read the reply of BRPOP, and deliver the message in it. Raises `Empty` when there is none."""
        connection = self.client.connection
        try:
            try:
                with _expected_errors():
                    reply = self._read_reply()
            except self.connection_errors:
                connection.disconnect()
                raise
            if not reply:
                raise Empty
            _, message = reply
            self._queue_cycle.rotate(QUEUE)
            try:
                process = messages.process_of(message)
            except messages.Refused as reason:
                log.warning("dropped a message of %d bytes: %s", len(message), reason)
                raise Empty from None
            self.connection._deliver(messages.envelope(process), QUEUE)
            return True
        finally:
            self._in_poll = None
            self._flush_brpop_reauth()

    def _read_reply(self) -> Any:
        connection = self.client.connection
        try:
            return self.client.parse_response(connection, "BRPOP")
        except ReplyTooLong:
            # the rest of the reply is on its way: another connection is opened by the next BRPOP
            connection.disconnect()
            log.warning("dropped a message of more than %d bytes", MAX_REPLY_BYTES)
            return None

    def _restore(self, message: Any, leftmost: bool = False) -> None:
        self.qos.restore_by_tag(message.delivery_tag, leftmost=leftmost)


class Channel(_Guarded, redis.Channel):
    """A channel to one Redis, over TCP, TLS or a unix socket."""


class SentinelChannel(_Guarded, redis.SentinelChannel):
    """A channel to the Redis that Sentinels name."""


class Transport(redis.Transport):
    Channel = Channel


class SentinelTransport(redis.SentinelTransport):
    Channel = SentinelChannel


TRANSPORT_ALIASES.update(
    fdredis=f"{__name__}:Transport",
    fdrediss=f"{__name__}:Transport",
    fdsentinel=f"{__name__}:SentinelTransport",
)


def quote_url(url: str) -> str:
    """`url` of a broker in kombu's form, for this transport.

    >>> quote_url("redis+socket:///run/redis.sock?virtual_host=0")
    'fdredis+socket:///run/redis.sock?virtual_host=0'
    """
    return ";".join(SCHEME_PREFIX + one for one in url.split(";"))
