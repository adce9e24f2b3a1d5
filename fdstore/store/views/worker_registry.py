"""The workers of a store: when they last reported, and what they run. One of them sweeps.

A worker that shuts down removes itself. One that is killed, frozen or cut off cannot: it stays for a day, so
that people see when it vanished and what it held.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Annotated, Any

import msgspec

from fdstore.model.records import Moment, Record
from fdstore.store.clock import seconds_of
from fdstore.store.record_format import decode_moment, decode_or_none, show_bytes
from fdstore.text.layout import show_controls
from fdstore.text.quantities import DAY_S
from fdstore.wire.operation import Batch, Operation, Value
from fdstore.wire.scripts import though_full

LONGEST_S = 60.0
"""The longest registration. One that lasts longer was made before the Redis clock was set back."""

HEARTBEAT_S = 8.0
"""The default lifetime of a worker's registration: two of its reports may be missed, and people see within
ten seconds that it is gone."""

KEPT_S = DAY_S
"""The time for which a vanished worker is listed."""

MAX_VANISHED = 100
"""Those that vanished last are kept: a worker that dies at each start must not fill the list."""

MAX_WORKERS = 1000
"""The registered workers that are read: those that reported last."""

MAX_SENTENCE = 2000
"""Bytes that are shown of what a worker says of itself."""

ACCEPTS_AGENTS = "taken"
"""The value of a worker that accepts agents, in `agents_key`."""


MAX_RUNS = 20
"""Processes that a worker names of those that it runs."""

Count = Annotated[int, msgspec.Meta(ge=0, le=1_000_000)]


class WorkerLoad(Record, frozen=True, kw_only=True):
    """The load of a worker, as its supervisor sees it.

    slots       agents that it can run at the same time
    busy        slots that are in use
    lost        of these, slots held by a call that does not end although its process is another's by now, or
                was cancelled
    lost_calls  calls since the start of the worker that were lost for so long that it was replaced
    since       when it began to register, in Redis time; 0.0 if that is not known
    runs        the processes that it runs, at most `MAX_RUNS` of them
    """

    slots: Count
    busy: Count
    lost: Count = 0
    lost_calls: Count = 0
    since: Moment = 0.0
    runs: Annotated[
        tuple[Annotated[str, msgspec.Meta(max_length=200)], ...], msgspec.Meta(max_length=20)
    ] = ()


def workers_key(prefix: str) -> str:
    return f"{prefix}:workers"


def commands_key(prefix: str) -> str:
    return f"{prefix}:workers:commands"


def agents_key(prefix: str) -> str:
    return f"{prefix}:workers:agents"


def permissions_key(prefix: str) -> str:
    return f"{prefix}:workers:permissions"


def load_key(prefix: str) -> str:
    return f"{prefix}:workers:load"


def register_worker(
    prefix: str,
    worker: str,
    for_s: float,
    now_s: float,
    commands: str = "",
    no_agents: str = "",
    permissions: str = "",
    load: WorkerLoad | None = None,
) -> Operation[None]:
    """Register a worker as alive until `for_s` seconds after `now_s`, in Redis time. `commands` names its
    sandbox for commands, `no_agents` why it accepts no agents ("" if it does), `permissions` what
    its operator allows, as JSON ("" if that is not known), `load` what it is busy with. Remove workers that
    vanished `KEPT_S` ago, the oldest beyond `MAX_VANISHED`, and those whose registration lasts too long: if
    such a worker lives, it registers again."""
    facts: dict[Callable[[str], str], Value] = {
        commands_key: commands,
        agents_key: no_agents or ACCEPTS_AGENTS,
        permissions_key: permissions,
        load_key: b"" if load is None else msgspec.json.encode(load),
    }
    vanished, too_long, *_ = yield [
        ("ZRANGEBYSCORE", workers_key(prefix), "-inf", f"{now_s - LONGEST_S:.3f}", "WITHSCORES"),
        ("ZRANGEBYSCORE", workers_key(prefix), f"({now_s + LONGEST_S:.3f}", "+inf"),
        though_full(("ZADD", workers_key(prefix), f"{now_s + for_s:.3f}", worker)),
        *(though_full(("HSET", key(prefix), worker, value)) for key, value in facts.items()),
    ]
    forgotten = _forgotten(vanished, now_s)
    if dead := [each for each in (*forgotten, *too_long) if each != worker.encode()]:
        yield _removal(prefix, *dead)


def check_takes_writes(prefix: str, worker: str) -> Operation[None]:
    """Raise what Redis answers to writes now, as `StoreFull`: of a registered worker this one changes
    nothing."""
    yield [("HSETNX", load_key(prefix), worker, b"")]


def _forgotten(vanished: list[bytes], now_s: float) -> list[bytes]:
    """Return those of these workers, with the ends of their registrations, that are kept no longer."""
    names, ends = vanished[::2], vanished[1::2]
    too_many = max(0, len(names) - MAX_VANISHED)
    return [
        name
        for number, (name, end) in enumerate(zip(names, ends, strict=True))
        if number < too_many or _moment(end) < now_s - KEPT_S
    ]


def unregister_worker(prefix: str, worker: str) -> Operation[None]:
    """Remove a worker that shuts down."""
    yield _removal(prefix, worker)


def _removal(prefix: str, *workers: Value) -> Batch:
    hashes = [("HDEL", key(prefix), *workers) for key in _HASHES]
    return [("ZREM", workers_key(prefix), *workers), *hashes]


_HASHES = (commands_key, agents_key, permissions_key, load_key)
"""The keys of the hashes with a field for each worker."""


class RegisteredWorker(Record, frozen=True, kw_only=True):
    """A registered worker: until when its heartbeat counts (if that has passed, it vanished), its sandbox
    for commands, why it accepts no agents ("" if it does), what its operator allows, as JSON ("" if that is
    not known), and its load (None if that is not known)."""

    name: str
    alive_until: float
    commands: str
    no_agents: str
    permissions: str
    load: WorkerLoad | None = None

    @property
    def seen_at(self) -> float:
        """The time it was last seen, to a few seconds."""
        return self.alive_until - HEARTBEAT_S


class Workers(Record, frozen=True, kw_only=True):
    """The registered workers by name, at the Redis time `now_s`, and the one that sweeps."""

    workers: tuple[RegisteredWorker, ...]
    sweeper: str | None
    now_s: float

    @property
    def alive(self) -> list[RegisteredWorker]:
        """Those whose heartbeat counts."""
        return [each for each in self.workers if self.now_s <= each.alive_until <= self.now_s + LONGEST_S]

    @property
    def vanished(self) -> list[RegisteredWorker]:
        """Those that did not shut down and whose heartbeat counts no more, the last one first."""
        gone = [each for each in self.workers if each.alive_until < self.now_s]
        return sorted(gone, key=lambda each: each.alive_until, reverse=True)


def read_workers(prefix: str) -> Operation[Workers]:
    """Return the registered workers. One round trip."""
    return decode_workers((yield worker_reads(prefix)))


def workers(prefix: str) -> Operation[list[str]]:
    """Return the names of the live workers. One round trip."""
    return [each.name for each in (yield from read_workers(prefix)).alive]


def worker_reads(prefix: str) -> Batch:
    """Return the requests whose replies `decode_workers` takes."""
    return [
        ("TIME",),
        ("GET", f"{prefix}:sweeper"),
        ("ZRANGE", workers_key(prefix), 0, MAX_WORKERS - 1, "REV", "WITHSCORES"),
        *(("HGETALL", key(prefix)) for key in _HASHES),
    ]


def decode_workers(replies: list[Any]) -> Workers:
    """Return the workers that these replies describe."""
    time, sweeper, beats, *tables = replies
    commands, agents, permissions, loads = (dict(zip(flat[::2], flat[1::2], strict=True)) for flat in tables)
    found = []
    for name, until in zip(beats[::2], beats[1::2], strict=True):
        refusal = agents.get(name, b"")
        found.append(
            RegisteredWorker(
                name=show_bytes(name),
                alive_until=_moment(until),
                commands=_sentence(commands.get(name, b"")),
                no_agents="" if refusal == ACCEPTS_AGENTS.encode() else _sentence(refusal),
                permissions=permissions.get(name, b"").decode("utf-8", "backslashreplace"),
                load=decode_load(loads.get(name, b"")),
            )
        )
    return Workers(
        workers=tuple(sorted(found, key=lambda each: each.name)),
        sweeper=None if sweeper is None else show_bytes(sweeper),
        now_s=seconds_of(time),
    )


def decode_load(value: bytes) -> WorkerLoad | None:
    """Return the load in a record; None for that of an older worker, and for one that is no load.

    >>> decode_load(b'{"slots": 8, "busy": 2, "lost": 1}').busy, decode_load(b"busy")
    (2, None)
    """
    if (found := decode_or_none(value, WorkerLoad)) is None:
        return None
    return msgspec.structs.replace(found, runs=tuple(show_controls(each, keep="") for each in found.runs))


def _sentence(value: bytes) -> str:
    return show_controls(value[:MAX_SENTENCE].decode("utf-8", "backslashreplace"), keep="")


def _moment(score: bytes) -> float:
    with suppress(ValueError):
        return decode_moment(score)
    return 0.0


def acquire_sweep(prefix: str, worker: str, seconds: float) -> Operation[float]:
    """Acquire or renew the right to sweep for `seconds`, and return 0.0; if another worker holds it, return
    in how many seconds its right ends. Two that hold it do no harm."""
    key, ttl_ms = f"{prefix}:sweeper", int(seconds * 1000)
    take = though_full(("SET", key, worker, "NX", "PX", ttl_ms))
    taken, holder, left_ms = yield [take, ("GET", key), ("PTTL", key)]
    if taken is None and holder == worker.encode():
        yield [("PEXPIRE", key, ttl_ms)]
    elif taken is None and left_ms > 2 * ttl_ms:  # the clock was set back, and its holder may be dead
        yield [though_full(("SET", key, worker, "PX", ttl_ms))]
        return 0.0
    is_ours = taken is not None or holder == worker.encode()
    return 0.0 if is_ours else max(left_ms, 1) / 1000
