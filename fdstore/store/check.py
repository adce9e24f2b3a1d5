"""Whether a Redis can be trusted with content, asked once when a client connects."""

from __future__ import annotations

from fdstore.errors import UnsafeStore
from fdstore.store.operation import Operation
from fdstore.store.scripts import text

MIN_VERSION = (6, 2)


def check_server(where: str) -> Operation[dict[str, str]]:
    """What INFO says of the server and its memory. One round trip.

    Raises `UnsafeStore` when it is older than 6.2 or evicts keys at its memory limit.
    """
    replies = yield [("INFO", "server"), ("INFO", "memory")]
    info = dict(line.split(":", 1) for reply in replies for line in text(reply).splitlines() if ":" in line)
    version = tuple(int(part) for part in info.get("redis_version", "0").split(".")[:2])
    if version < MIN_VERSION:
        raise UnsafeStore(where, f"it is version {info.get('redis_version')}, and 6.2 or later is needed")
    policy = info.get("maxmemory_policy", "noeviction")
    if policy != "noeviction":
        raise UnsafeStore(
            where,
            f"its maxmemory-policy is {policy}, which drops content when memory is short; "
            "set it with: redis-cli CONFIG SET maxmemory-policy noeviction",
        )
    return info
