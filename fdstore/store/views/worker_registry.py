"""The live workers of a store: when they last reported, and what they run. One of them sweeps."""

from __future__ import annotations

from fdstore.store.clock import redis_now
from fdstore.store.record_format import show_bytes
from fdstore.wire.operation import Batch, Operation, Value

LONGEST_S = 60.0
"""The longest registration. One that lasts longer was made before the Redis clock was set back."""

ACCEPTS_AGENTS = "taken"
"""The value of a worker that accepts agents, in `agents_key`."""


def workers_key(prefix: str) -> str:
    return f"{prefix}:workers"


def commands_key(prefix: str) -> str:
    return f"{prefix}:workers:commands"


def agents_key(prefix: str) -> str:
    return f"{prefix}:workers:agents"


def permissions_key(prefix: str) -> str:
    return f"{prefix}:workers:permissions"


def register_worker(
    prefix: str,
    worker: str,
    for_s: float,
    now_s: float,
    commands: str = "",
    no_agents: str = "",
    permissions: str = "",
) -> Operation[None]:
    """Register a worker as alive until `for_s` seconds after `now_s`, in Redis time. `commands` names its
    sandbox for commands, `no_agents` why it accepts no agents ("" if it does), `permissions` what
    its operator allows, as JSON ("" if that is not known). Remove workers whose
    registration expired a minute ago, or lasts too long: if such a worker lives, it registers again."""
    expired, too_long, *_ = yield [
        ("ZRANGEBYSCORE", workers_key(prefix), "-inf", f"{now_s - 60:.3f}"),
        ("ZRANGEBYSCORE", workers_key(prefix), f"({now_s + LONGEST_S:.3f}", "+inf"),
        ("ZADD", workers_key(prefix), f"{now_s + for_s:.3f}", worker),
        ("HSET", commands_key(prefix), worker, commands),
        ("HSET", agents_key(prefix), worker, no_agents or ACCEPTS_AGENTS),
        ("HSET", permissions_key(prefix), worker, permissions),
    ]
    if dead := [each for each in (*expired, *too_long) if each != worker.encode()]:
        yield _removal(prefix, *dead)


def unregister_worker(prefix: str, worker: str) -> Operation[None]:
    """Remove a worker that shuts down."""
    yield _removal(prefix, worker)


def _removal(prefix: str, *workers: Value) -> Batch:
    hashes = (commands_key(prefix), agents_key(prefix), permissions_key(prefix))
    return [("ZREM", workers_key(prefix), *workers), *(("HDEL", key, *workers) for key in hashes)]


def sandboxes_of(prefix: str, workers: list[str]) -> Operation[list[str]]:
    """Return a description of each worker's sandbox for commands; "" if it registered none."""
    if not workers:
        return []
    [found] = yield [("HMGET", commands_key(prefix), *workers)]
    return [show_bytes(each or b"") for each in found]


def agent_refusals_of(prefix: str, workers: list[str]) -> Operation[list[str]]:
    """Return why each of these workers accepts no agents; "" for one that does."""
    if not workers:
        return []
    [found] = yield [("HMGET", agents_key(prefix), *workers)]
    return ["" if each in (None, ACCEPTS_AGENTS.encode()) else show_bytes(each) for each in found]


def permissions_of(prefix: str, workers: list[str]) -> Operation[list[bytes | None]]:
    """Return what the operator of each of these workers allows, as JSON; None or empty if it is not known."""
    if not workers:
        return []
    [found] = yield [("HMGET", permissions_key(prefix), *workers)]
    return list(found)


def has_agent_worker(prefix: str) -> Operation[bool]:
    """Return whether a live worker accepts agents. Three round trips."""
    living = yield from workers(prefix)
    return "" in (yield from agent_refusals_of(prefix, living))


def workers(prefix: str) -> Operation[list[str]]:
    """Return the live workers, by the Redis clock. Two round trips."""
    now_s = yield from redis_now()
    [found] = yield [("ZRANGEBYSCORE", workers_key(prefix), f"{now_s:.3f}", f"{now_s + LONGEST_S:.3f}")]
    return [show_bytes(worker) for worker in found]


def acquire_sweep(prefix: str, worker: str, seconds: float) -> Operation[float]:
    """Acquire or renew the right to sweep for `seconds`, and return 0.0; if another worker holds it, return
    in how many seconds its right ends. Two that hold it do no harm."""
    key, ttl_ms = f"{prefix}:sweeper", int(seconds * 1000)
    taken, holder, left_ms = yield [("SET", key, worker, "NX", "PX", ttl_ms), ("GET", key), ("PTTL", key)]
    if taken is None and holder == worker.encode():
        yield [("PEXPIRE", key, ttl_ms)]
    elif taken is None and left_ms > 2 * ttl_ms:  # the clock was set back, and its holder may be dead
        yield [("SET", key, worker, "PX", ttl_ms)]
        return 0.0
    is_ours = taken is not None or holder == worker.encode()
    return 0.0 if is_ours else max(left_ms, 1) / 1000
