"""kombu's Redis transport for a queue that is not trusted, under URL schemes of its own.

**Messages.** The client of a channel turns each popped message into a new envelope around the process id in
it (messages.py), before kombu decodes anything. A refused message is dropped with one line in the log.

**Size.** Replies of Redis are bounded: a message of 512 MB is dropped together with its connection.

**Refusals.** Any client with write access to the queue can replace the list by a string, and Redis refuses
to pop while it is a replica, has too few of them, cannot write to its disk or is busy. A new connection of
Celery would be refused at once, again and again, with a traceback each; one that a busy Redis refuses would
end the worker. So the worker asks again at growing intervals, on a new connection, which may find another
primary, and says so once a minute.

**No acknowledgements.** Redis does not know which messages were received: `ack_emulation` is off. kombu
would note them in a hash, which would have to be read as carefully as the queue, and with a lost connection
restoring from it ends the worker (kombu 5.7: AttributeError, no attribute 'hostname'). Leases tell who is at
work. What a dead worker had received and not started is woken by its supervisor, and what is ready and nobody
takes by the sweep.

    redis://          -> fdredis://
    redis+socket://   -> fdredis+socket://
    rediss://         -> fdrediss://
    sentinel://       -> fdsentinel://

Only workers need these, so importing this module registers them with kombu.
"""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import kombu
from kombu.transport import TRANSPORT_ALIASES, virtual
from kombu.transport import redis as kombu_redis

from fdstore.agents.runtime.store_wait import WaitLog
from fdstore.errors import StartFailed
from fdstore.wire.redis_errors import refusal_code
from fdstore_workers import messages

log = logging.getLogger("fdstore.worker")

SCHEME_PREFIX = "fd"

MAX_REPLY_BYTES = 1_000_000
"""The limit for one reply of the queue's Redis."""

FIRST_PAUSE_S, LONGEST_PAUSE_S = 0.5, 30.0
"""The pause before messages are asked for again after Redis refused that: twice as long each time."""

LONGEST_WAIT_S = 4.0
"""The longest pause for a refusal that passes."""

_taking = WaitLog(log, "the queue's Redis refused")

# untyped, because kombu is; the rest of fdstore reaches redis-py through `fdstore.wire` only
redis: Any = kombu_redis
redis_py: Any = redis.redis


class ReplyTooLong(Exception):
    """A reply of Redis is larger than any message that fdstore sends."""


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


class Pauses:
    """The pauses of a channel whose Redis refuses to pop: each twice as long as the one before."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._pause_s = 0.0
        self._resume_at = float("-inf")

    @property
    def is_over(self) -> bool:
        """Return whether messages may be asked for now."""
        return self._clock() >= self._resume_at

    def begin(self, error: Exception) -> None:
        """Pause because of this refusal."""
        _taking.waits(str(error)[:200])
        longest_s = LONGEST_WAIT_S if refusal_code(error) else LONGEST_PAUSE_S
        self._pause_s = min(2 * self._pause_s or FIRST_PAUSE_S, longest_s)
        self._resume_at = self._clock() + self._pause_s

    def end(self) -> None:
        """Note that Redis has answered."""
        self._pause_s = 0.0
        _taking.goes_on()


class QueueClient(redis.PrefixedStrictRedis):
    """The client of a channel: what it pops are envelopes with a process id in them, and nothing else."""

    def __init__(self, *, pauses: Pauses, connection_pool: Any, **options: Any) -> None:
        connection_pool.connection_kwargs["parser_class"] = BoundedParser
        super().__init__(connection_pool=connection_pool, **options)
        self._pauses = pauses

    def parse_response(self, connection: Any, command_name: str, **options: Any) -> Any:
        """Return the reply of Redis; for BRPOP None unless it is a valid message."""
        if command_name != "BRPOP":
            return super().parse_response(connection, command_name, **options)
        try:
            reply = super().parse_response(connection, command_name, **options)
        except ReplyTooLong:
            # the rest of the reply is still in transit: the next BRPOP opens a new connection
            connection.disconnect()
            log.warning("dropped a message of more than %d bytes", MAX_REPLY_BYTES)
            return None
        except redis_py.exceptions.ResponseError as error:
            self._pauses.begin(error)
            connection.disconnect()
            return None
        self._pauses.end()
        if not reply:
            return None
        queue, message = reply
        try:
            process = messages.process_of(message)
        except messages.ForeignMessage as reason:
            log.warning("dropped a message of %d bytes: %s", len(message), reason)
            return None
        return queue, json.dumps(messages.envelope(process)).encode()


class QoS(virtual.QoS):
    """The received messages whose tasks have not ended, in this process: as many as it has slots."""

    def can_consume(self) -> bool:
        """Return whether to ask for another message; the loop calls this at least once a second."""
        original: Any = super()
        return self.channel.pauses.is_over and bool(original.can_consume()) and self.channel.connects()


class _Guarded:
    """A mixin for kombu's Redis channels: they reach Redis through a `QueueClient`."""

    do_restore = False
    """Messages of tasks that run do not return to the queue when the connection is lost."""

    client: Any
    connection: Any
    global_keyprefix: str

    def __init__(self, *arguments: Any, **options: Any) -> None:
        self.pauses = Pauses()
        super().__init__(*arguments, **options)
        self.QoS = QoS  # kombu sets its own where `ack_emulation` is off
        if not isinstance(self.client, QueueClient):  # messages would go past the checks
            raise StartFailed("worker", f"kombu {kombu.__version__} has no Channel._get_client")

    def connects(self) -> bool:
        """Connect for BRPOP, unless it is connected. Return False if Redis refuses that, as a busy one does:
        where kombu connects, a refusal would end the worker."""
        client = self.client
        try:
            if getattr(client, "connection", None) is None:
                client.connection = client.connection_pool.get_connection()
            elif client.connection._sock is None:
                # else kombu would take the new socket for the one that it watches
                self.connection.cycle._chan_to_sock.pop((self, client, "BRPOP"), None)
                client.connection.connect()
        except redis_py.exceptions.ResponseError as error:
            self.pauses.begin(error)
            return False
        except redis_py.exceptions.ConnectionError:
            pass  # kombu finds the same, and its worker connects anew
        return True

    def _get_client(self) -> Callable[..., QueueClient]:
        return partial(QueueClient, pauses=self.pauses, global_keyprefix=self.global_keyprefix)


class Channel(_Guarded, redis.Channel):
    """A channel to one Redis, over TCP, TLS or a unix socket."""


class SentinelChannel(_Guarded, redis.SentinelChannel):
    """A channel to the Redis master that Sentinels report."""


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
    """Return a broker URL in kombu's form with the schemes of this transport.

    >>> quote_url("redis+socket:///run/redis.sock?virtual_host=0")
    'fdredis+socket:///run/redis.sock?virtual_host=0'
    """
    return ";".join(SCHEME_PREFIX + one for one in url.split(";"))
