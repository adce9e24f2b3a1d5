"""kombu's Redis transport with one function mended, under URL schemes of its own.

The defect (kombu 5.7): when Redis goes away, Celery closes the consumer's connection twice. The first
close stops at the first channel that raises, as a pub/sub channel does, and forgets the connection's
parameters; the second comes to the channels that are left. The one that holds unacknowledged messages
wants to put them back into the queue, makes a client for that, and reads the parameters of a connection
that has none: `AttributeError: 'NoneType' object has no attribute 'hostname'`. Nobody expects this
error, so the worker's main process ends with all its tasks. A late acknowledgement over such a channel
ends the same way.

Our workers have no pub/sub channel unless somebody switches on Celery's remote control, gossip or
events (`celery_config`); then one second without Redis under a running task is enough.

A channel whose connection is gone cannot reach Redis. Said as a ConnectionError, which everybody up the
stack does expect, it makes Celery reconnect as it means to.

    redis://          -> fdredis://
    redis+socket://   -> fdredis+socket://
    rediss://         -> fdrediss://
    sentinel://       -> fdsentinel://

Only workers need these; a sender acknowledges nothing. Importing this module makes them known to kombu.
"""

from __future__ import annotations

from typing import Any

from kombu.transport import TRANSPORT_ALIASES, redis

SCHEME_PREFIX = "fd"


class _KnowsWhenItIsCutOff:
    """The mended function, for a subclass of kombu's Redis channel."""

    connection: Any

    def _connparams(self, asynchronous: bool = False) -> dict[str, Any]:
        if self.connection is None or self.connection.client is None:
            raise ConnectionError("the connection of this channel was closed")
        original: Any = super()
        parameters: dict[str, Any] = original._connparams(asynchronous)
        return parameters


class Channel(_KnowsWhenItIsCutOff, redis.Channel):
    """A channel to one Redis, over TCP, TLS or a unix socket."""


class SentinelChannel(_KnowsWhenItIsCutOff, redis.SentinelChannel):
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


def mended_url(url: str) -> str:
    """`url` of a broker in kombu's form, for this transport.

    >>> mended_url("redis+socket:///run/redis.sock?virtual_host=0")
    'fdredis+socket:///run/redis.sock?virtual_host=0'
    """
    return ";".join(SCHEME_PREFIX + one for one in url.split(";"))
