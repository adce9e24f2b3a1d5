"""Gauges of a store for operators: sums over all trees, the queue, memory. Read in a few round trips.

    fdstore:totals      hash    the fields of `Totals`

Each sweep writes them. The active sweeper reads every tree that is in use anyway, so it keeps the sums; to
read them costs the same for any number of trees.

The queue may be in another Redis. Its messages hold process ids only, so the age of the oldest one is
that of its process: `ready_at` in the record, when it last became ready.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated

import msgspec

from fdstore.errors import DamagedRecord
from fdstore.model.records import Count, Moment
from fdstore.setup.settings import queue_prefix
from fdstore.store.clock import seconds_of
from fdstore.store.doctor.accepted import apply, decode_accepted, key_of_accepted
from fdstore.store.doctor.check import eviction, judge_servers, primaries, version, why_no_writes
from fdstore.store.doctor.safety import Way
from fdstore.store.hashes import Hash
from fdstore.store.keys import process_keys
from fdstore.store.processes.process_records import PROCESS, TreeHoldings
from fdstore.store.record_format import replies_or_damage
from fdstore.store.trees.troubles import sum_troubles
from fdstore.store.views.worker_registry import decode_workers, worker_reads
from fdstore.telemetry.metric_table import Metric, Plot
from fdstore.text.quantities import DAY_S
from fdstore.wire.operation import Operation, Value
from fdstore.wire.scripts import though_full

KEPT_S = DAY_S
"""The time for which the sums are kept after the last sweep."""

OLDEST = 100
"""Messages at the head of the queue among which the oldest process is looked for: some may be for
processes that have ended, or run already."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The sums over all trees, as of the sweep that ended at `swept_at`. `failures` and `losses` are those of
    the last hour. All are None before the first sweep."""

    # each is the sum of the field of `TreeHoldings` with its name in Redis, if there is one
    text_bytes: Annotated[
        Count | None,
        Metric(
            "fdstore_store_text_bytes",
            "Stored texts and bytes of all trees (UTF-8), as of the last sweep.",
            plots=(Plot("Memory of Redis", "texts"),),
        ),
    ] = msgspec.field(default=None, name="bytes")
    trees: Annotated[
        Count | None,
        Metric("fdstore_store_trees", "Trees, as of the last sweep.", plots=(Plot("Trees"),)),
    ] = None
    live_processes: Annotated[
        Count | None,
        Metric(
            "fdstore_store_live_processes",
            "Processes that have not ended, as of the last sweep.",
            plots=(Plot("Live processes"),),
        ),
    ] = msgspec.field(default=None, name="live")
    open_streams: Annotated[
        Count | None,
        Metric(
            "fdstore_store_open_streams",
            "Streams that are being written, as of the last sweep.",
            plots=(Plot("Open streams"),),
            otel=("fdstore.store.open_streams", "{stream}"),
        ),
    ] = None
    open_questions: Annotated[
        Count | None,
        Metric(
            "fdstore_store_open_questions",
            "Questions of agents that wait for a person, as of the last sweep.",
            plots=(Plot("Questions to people", "open"),),
            otel=("fdstore.store.open_questions", "{question}"),
        ),
    ] = msgspec.field(default=None, name="questions")
    oldest_question: Moment | None = None
    failures: Count | None = None
    losses: Count | None = None
    cold_contents: Annotated[
        Count | None,
        Metric(
            "fdstore_store_cold_contents",
            "Contents in the object store, as of the last sweep.",
            plots=(Plot("Contents in the object store"),),
        ),
    ] = msgspec.field(default=None, name="cold_fds")
    cold_bytes: Annotated[
        Count | None,
        Metric(
            "fdstore_store_cold_bytes",
            "Their bytes, which are not in the memory of Redis.",
            plots=(Plot("Memory of Redis", "cold texts"),),
        ),
    ] = None
    swept_at: Moment | None = None


TOTALS = Hash(Totals)

_SOMEHOW = Way(leaves_machine=False, has_password=False, has_tls=False)
"""The way to a store of which nothing is judged: its URL is not known here."""

_SUMMED = [
    each for each in TOTALS.names if each in TreeHoldings.__struct_fields__ and each != "oldest_question"
]

_WAITING = PROCESS.some("state", "ready_at")


def totals_key(prefix: str) -> str:
    return f"{prefix}:totals"


class StoreGauges(Totals, frozen=True, kw_only=True):
    """The state of a store. The seconds since the last sweep ended are None before the first one. `unsafe` is
    why the store is not safe for content ("" if it is), `refuses` why it takes no writes ("" if it does)."""

    used_memory_bytes: Annotated[
        int,
        Metric(
            "fdstore_store_used_memory_bytes",
            "Memory that Redis uses, of all primaries.",
            plots=(Plot("Memory of Redis", "used"),),
        ),
    ]
    max_memory_bytes: Annotated[
        int,
        Metric(
            "fdstore_store_max_memory_bytes",
            "maxmemory of Redis, of all primaries; 0: no limit.",
            plots=(Plot("Memory of Redis", "limit"),),
        ),
    ]
    workers: Annotated[
        int, Metric("fdstore_store_workers", "Live workers.", plots=(Plot("Workers", "registered"),))
    ]
    sweep_lag_s: Annotated[
        float | None,
        Metric(
            "fdstore_sweep_lag_seconds",
            "Time since the last sweep by any worker ended.",
            plots=(Plot("Sweep lag"),),
        ),
    ]
    oldest_question_s: Annotated[
        float | None,
        Metric(
            "fdstore_store_oldest_question_age_seconds",
            "How long the oldest question of an agent has waited.",
            plots=(Plot("Questions to people", "age of the oldest, s"),),
        ),
    ]
    takes_writes: Annotated[
        bool,
        Metric(
            "fdstore_store_takes_writes",
            "1 if Redis takes writes, as far as its INFO says.",
            plots=(Plot("Problems of Redis", "takes writes", unit="short"),),
        ),
    ]
    problems: Annotated[
        int,
        Metric(
            "fdstore_store_problems",
            "Problems that `fdstore doctor` finds in the INFO of all primaries, without accepted ones: one "
            "does not answer, its memory is nearly full, a setting is unsafe, its disk fails.",
            plots=(Plot("Problems of Redis", "problems", unit="short"),),
        ),
    ]
    unsafe: str = ""
    refuses: str = ""


class QueueGauges(msgspec.Struct, frozen=True):
    """The state of the workers' queue. None: its Redis did not answer, or was not asked."""

    length: Annotated[
        int | None,
        Metric(
            "fdstore_queue_length",
            "Wake-ups that no worker has received.",
            plots=(Plot("Queue", "length"),),
            otel=("fdstore.queue.length", "{message}"),
        ),
    ] = None
    oldest_age_s: Annotated[
        float | None,
        Metric(
            "fdstore_queue_oldest_age_seconds",
            "How long the oldest process in the queue has been ready.",
            plots=(Plot("Oldest in the queue"), Plot("Queue", "age of the oldest, s")),
        ),
    ] = None


def store_totals(prefix: str, usage: Iterable[TreeHoldings], swept_at: float) -> Operation[float]:
    """Store the sums over all trees at `swept_at` (Redis time). Return the Redis time. One round
    trip."""
    swept = list(usage)
    sums: dict[str, Value] = {name: sum(getattr(each, name) for each in swept) for name in _SUMMED}
    troubles = [sum_troubles(each.troubles, swept_at) for each in swept]
    asked = [each.oldest_question for each in swept if each.oldest_question is not None]
    sums |= {
        "trees": len(swept),
        "failures": sum(failures for failures, _ in troubles),
        "losses": sum(losses for _, losses in troubles),
        "oldest_question": f"{min(asked):.6f}" if asked else "",
        "swept_at": f"{swept_at:.6f}",
    }
    key = totals_key(prefix)
    *_, now = yield [
        though_full(("HSET", key, *(part for field in sums.items() for part in field)), KEPT_S),
        ("TIME",),
    ]
    return seconds_of(now)


def read_gauges(prefix: str) -> Operation[StoreGauges]:
    """Return the state of a store. Two round trips. Raises `StoreUnavailable`."""
    sums, accepted, *registered = yield from replies_or_damage(
        [TOTALS.read(totals_key(prefix)), ("HGETALL", key_of_accepted(prefix)), *worker_reads(prefix)]
    )
    servers = yield from primaries("server", "memory", "persistence", "replication")
    now_s = seconds_of(registered[0])
    totals = TOTALS.decode_readable(sums)
    is_damaged = any(isinstance(reply, DamagedRecord) for reply in registered)
    alive = [] if is_damaged else decode_workers(registered).alive
    infos = [each.info for each in servers if not each.error]
    known = {} if isinstance(accepted, DamagedRecord) else decode_accepted(accepted)
    refuses = "; ".join(filter(None, map(why_no_writes, infos)))
    unsafe = [found.said for info in infos for found in (version(info), eviction(info)) if not found.ok]
    return StoreGauges(
        **msgspec.structs.asdict(totals),
        oldest_question_s=_age_of_oldest(totals, now_s),
        sweep_lag_s=None if totals.swept_at is None else max(0.0, now_s - totals.swept_at),
        workers=len(alive),
        used_memory_bytes=sum(int(info.get("used_memory", 0)) for info in infos),
        max_memory_bytes=sum(int(info.get("maxmemory", 0)) for info in infos),
        unsafe="; ".join(unsafe),
        refuses=refuses,
        takes_writes=not refuses,
        problems=sum(not each.ok for each in apply(judge_servers(servers, _SOMEHOW), known)),
    )


def _age_of_oldest(totals: Totals, now_s: float) -> float | None:
    """Return how long the oldest question has waited: 0 if there is none."""
    if totals.open_questions is None:
        return None
    return 0.0 if totals.oldest_question is None else max(0.0, now_s - totals.oldest_question)


class QueueHead(msgspec.Struct, frozen=True):
    """The number of messages in the queue, and the oldest ones, unparsed."""

    length: int
    oldest: list[bytes]


def read_queue(prefix: str) -> Operation[QueueHead]:
    """Return the head of the workers' queue, from the Redis that holds it. One round trip."""
    key = f"{queue_prefix(prefix)}queue"
    length, oldest = yield [("LLEN", key), ("LRANGE", key, -OLDEST, -1)]
    return QueueHead(length, oldest)


def oldest_wait(prefix: str, processes: list[str]) -> Operation[float]:
    """Return for how many seconds the first of these processes has been ready and not claimed; 0.0 if
    none is. One round trip."""
    if not processes:
        return 0.0
    records = [_WAITING.read(process_keys(prefix, each).record) for each in processes]
    *replies, time = yield from replies_or_damage([*records, ("TIME",)])
    now_s, longest_s = seconds_of(time), 0.0
    for each in map(_WAITING.decode_readable, replies):
        if each.state == "ready" and each.ready_at is not None:
            longest_s = max(longest_s, now_s - each.ready_at)
    return longest_s
