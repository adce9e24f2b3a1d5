"""Refusals of a real server that did nothing: each kind, begun and ended by commands of Redis.

`refused(server, kind)` has the server refuse during a block:

    NOREPLICAS   min-replicas-to-write is above the number of replicas
    READONLY     it is a replica, of a port where nothing listens
    MASTERDOWN   the same, and it serves no stale data
    OOM          its memory is full
    MISCONF      something is in the way of its file, so its last BGSAVE failed
    BUSY         a script runs

In all of them but BUSY and MASTERDOWN it answers reads.
"""

from __future__ import annotations

import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import redis

from fdstore.local.redis_server import PrivateServer
from tests.waiting import wait_until

CLIENT = ("NOREPLICAS", "READONLY", "MASTERDOWN", "BUSY")
"""The kinds that every call waits for."""

WORK = ("OOM", "MISCONF")
"""Those that work that runs waits for, too."""

LOOP = "while true do end"


@contextmanager
def refused(server: PrivateServer, kind: str) -> Iterator[redis.Redis]:
    """Have a server refuse during the block. Yields a client of it."""
    with redis.Redis.from_url(server.url, protocol=2) as client:
        lift = _begin(client, server.url, kind)
        try:
            yield client
        finally:
            lift()


def lasting(seconds: float) -> None:
    """Let a refusal last."""
    threading.Event().wait(seconds)


def _begin(client: redis.Redis, url: str, kind: str) -> Any:
    match kind:
        case "NOREPLICAS":
            return _set(client, **{"min-replicas-to-write": 1})
        case "OOM":
            return _set(client, maxmemory=1)
        case "READONLY" | "MASTERDOWN":
            undo = _set(client, **{"replica-serve-stale-data": "no" if kind == "MASTERDOWN" else "yes"})
            client.execute_command("REPLICAOF", "127.0.0.1", "1")

            def lead() -> None:
                client.execute_command("REPLICAOF", "NO", "ONE")
                undo()

            return lead
        case "MISCONF":
            return _fail_to_save(client)
        case "BUSY":
            return _run_script(client, url)
    raise AssertionError(kind)


def _set(client: redis.Redis, **options: Any) -> Any:
    before = {name: client.config_get(name)[name] for name in options}
    for name, value in options.items():
        client.config_set(name, value)
    return lambda: [client.config_set(name, value) for name, value in before.items()]


def _fail_to_save(client: redis.Redis) -> Any:
    where = client.config_get("dir")["dir"], client.config_get("dbfilename")["dbfilename"]
    in_the_way = Path(*where)
    (in_the_way / "occupied").mkdir(parents=True)
    undo = _set(client, save="3600 1000000")
    client.bgsave()
    wait_until(lambda: client.info("persistence")["rdb_last_bgsave_status"] == "err")

    def end() -> None:
        undo()
        shutil.rmtree(in_the_way)

    return end


def _run_script(client: redis.Redis, url: str) -> Any:
    undo = _set(client, **{"lua-time-limit": 1})
    thread = threading.Thread(target=_loop, args=(url,))
    thread.start()

    def is_busy() -> bool:
        try:
            client.ping()
        except redis.ResponseError:
            return True
        return False

    wait_until(is_busy)

    def end() -> None:
        client.script_kill()
        thread.join()
        undo()

    return end


def _loop(url: str) -> None:
    with (
        redis.Redis.from_url(url, protocol=2, socket_timeout=None) as client,
        suppress(redis.ResponseError),  # it was killed
    ):
        client.eval(LOOP, 0)
