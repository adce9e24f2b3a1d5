"""Send commands as a person types them and return replies as the server sends them, for `fdstore redis-cli`
on a machine without a redis-cli.

Everything else goes through `retry` and `_async.runner`, which decode replies and send again; here a command
is sent once, and a reply may be awaited for as long as the server takes (BLPOP, MONITOR).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import redis
import redis.exceptions

from fdstore.wire.redis_errors import translate
from fdstore.wire.store_url import StoreUrl, make_pool

_UNENDING = ("MONITOR", "SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE")
"""Commands whose replies never end."""


class StatusReply(bytes):
    """A reply of the kind "status", where redis-py tells it from a string."""


class RawConnection:
    """One connection to a store. Raises `StoreUnavailable` and other errors of the store when it connects."""

    def __init__(self, place: StoreUrl, protocol: int = 2) -> None:
        self._place = place
        self._options = {"protocol": protocol, "socket_timeout": None, "decode_responses": False}
        self._pool = make_pool(place)
        self._connection = self._connect()

    def __enter__(self) -> RawConnection:
        return self

    def __exit__(self, *_: object) -> None:
        self._pool.disconnect()

    def send(self, words: Sequence[str | bytes]) -> Iterator[Any]:
        """Send one command and yield its reply: bytes, int, None, a list of these, or a
        `redis.exceptions.ResponseError` that the server answered; of MONITOR and SUBSCRIBE every further one.

        In a Cluster, follows the command's key to its node. Raises what a lost connection means.
        """
        try:
            reply = self._ask(words)
            if isinstance(reply, redis.exceptions.MovedError):
                self._pool.disconnect()
                self._pool.connection_kwargs.update(host=reply.host, port=reply.port)
                self._connection = self._connect()
                reply = self._ask(words)
            yield reply
            while str(words[0]).upper() in _UNENDING:
                yield self._connection.read_response(disable_decoding=True)
        except (redis.RedisError, OSError) as error:
            raise translate(error, self._place.shown) from error

    def _connect(self) -> Any:
        self._pool.connection_kwargs.update(self._options)
        try:
            return self._pool.get_connection()
        except (redis.RedisError, OSError) as error:
            raise translate(error, self._place.shown) from error

    def _ask(self, words: Sequence[str | bytes]) -> Any:
        self._connection.send_command(*words)
        try:
            reply = self._connection.read_response(disable_decoding=True)
            # the one command whose status may be any of several words
            return StatusReply(reply) if str(words[0]).upper() == "TYPE" else reply
        except redis.exceptions.ResponseError as error:
            return error
