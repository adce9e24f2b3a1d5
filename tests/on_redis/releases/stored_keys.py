"""The keys of the store of `exchange.write`, as text: `make release-keys` writes those of a release.

    python -m tests.on_redis.releases.stored_keys FILE

A file has the version, the keys with their values, and what that version read of them. Bytes are Latin-1, so
that each is one character. Keys that expire by themselves are left out.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import redis

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests.on_redis.releases import exchange

Execute = Callable[..., Any]

READ = {
    b"string": ("GET",),
    b"hash": ("HGETALL",),
    b"set": ("SMEMBERS",),
    b"list": ("LRANGE", 0, -1),
    b"zset": ("ZRANGE", 0, -1, "WITHSCORES"),
}


def keys_of(execute: Execute) -> dict[str, list[Any]]:
    """Return the type and the value of each key that does not expire."""
    found = {}
    for key in sorted(execute("KEYS", "*")):
        kind = execute("TYPE", key)
        if execute("TTL", key) == -1 and kind in READ:
            command, *rest = READ[kind]
            values = execute(command, key, *rest)
            values = [values] if kind == b"string" else values
            found[key.decode("latin-1")] = [kind.decode(), *(value.decode("latin-1") for value in values)]
    return found


def restore(keys: dict[str, list[Any]], execute: Execute) -> None:
    """Write the keys."""
    for name, (kind, *values) in keys.items():
        key, data = name.encode("latin-1"), [value.encode("latin-1") for value in values]
        match kind:
            case "string":
                execute("SET", key, data[0])
            case "hash":
                execute("HSET", key, *data)
            case "set":
                execute("SADD", key, *data)
            case "list":
                execute("RPUSH", key, *data)
            case "zset":
                pairs = zip(data[::2], data[1::2], strict=True)
                execute("ZADD", key, *(part for member, score in pairs for part in (score, member)))


def executor(client: redis.Redis) -> Execute:
    """Return a function that sends one command and returns the raw reply, as the fixture `execute` does."""
    connection = client.connection_pool.get_connection()

    def execute(*command: Any) -> Any:
        connection.send_command(*command)
        return connection.read_response()

    return execute


def main(file: str) -> None:
    with (
        PrivateServer() as server,
        redis.Redis.from_url(server.url, protocol=2) as client,
        fdstore.connect(server.url) as store,
    ):
        exchange.write(store)
        keys = keys_of(executor(client))
        said = {"version": fdstore.__version__, "read": exchange.read(store), "keys": keys}
    Path(file).write_text(json.dumps(said, indent=0, sort_keys=True) + "\n", "ascii")


if __name__ == "__main__":
    main(*sys.argv[1:])
