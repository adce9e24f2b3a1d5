"""Gauges of a store for operators: sums over all trees, the queue, memory. Read in a few round trips.

    fdstore:totals      hash    trees, live, bytes, open_streams, failures, losses, questions,
                                oldest_question, swept_at, cold, cold_bytes

Each sweep writes them; `failures` and `losses` are those of the last hour. The active sweeper reads every
tree that is in use anyway, so it keeps the sums; to read them costs the same for any number of trees.
`swept_at` is the Redis time at which the sweep ended: if it is old, so are the sums.

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
from fdstore.store.doctor.check import eviction, primaries, version
from fdstore.store.hashes import Hash
from fdstore.store.keys import process_keys
from fdstore.store.processes.process_records import PROCESS, TreeHoldings
from fdstore.store.record_format import replies_or_damage
from fdstore.store.trees.troubles import sum_troubles
from fdstore.store.views.worker_registry import decode_workers, worker_reads
from fdstore.telemetry.metric_table import Metric, Plot
from fdstore.text.quantities import DAY_S
from fdstore.wire.operation import Operation, Value

KEPT_S = DAY_S
"""The time for which the sums are kept after the last sweep."""

OLDEST = 100
"""Messages at the head of the queue among which the oldest process is looked for: some may be for
processes that have ended, or run already."""


class Totals(msgspec.Struct, frozen=True, kw_only=True):
    """The sums over all trees."""

    trees: Count | None = None
    live: Count | None = None
    bytes: Count | None = None
    open_streams: Count | None = None
    failures: Count | None = None
    losses: Count | None = None
    questions: Count | None = None
    oldest_question: Moment | None = None
    swept_at: Moment | None = None
    cold: Count | None = None
    cold_bytes: Count | None = None


TOTALS = Hash(Totals)

_WAITING = PROCESS.some("state", "ready_at")


def totals_key(prefix: str) -> str:
    return f"{prefix}:totals"


class StoreGauges(msgspec.Struct, frozen=True, kw_only=True):
    """The state of a store. The sums over all trees (`failures` and `losses`: of the last hour), and the
    seconds since the last sweep ended, are None before the first sweep. `unsafe` is why the store is not
    safe for content ("" if it is)."""

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
    text_bytes: Annotated[
        int | None,
        Metric(
            "fdstore_store_text_bytes",
            "Stored texts and bytes of all trees (UTF-8), as of the last sweep.",
            plots=(Plot("Memory of Redis", "texts"),),
        ),
    ]
    trees: Annotated[
        int | None,
        Metric("fdstore_store_trees", "Trees, as of the last sweep.", plots=(Plot("Trees"),)),
    ]
    live_processes: Annotated[
        int | None,
        Metric(
            "fdstore_store_live_processes",
            "Processes that have not ended, as of the last sweep.",
            plots=(Plot("Live processes"),),
        ),
    ]
    open_streams: Annotated[
        int | None,
        Metric(
            "fdstore_store_open_streams",
            "Streams that are being written, as of the last sweep.",
            plots=(Plot("Open streams"),),
            otel=("fdstore.store.open_streams", "{stream}"),
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
    open_questions: Annotated[
        int | None,
        Metric(
            "fdstore_store_open_questions",
            "Questions of agents that wait for a person, as of the last sweep.",
            plots=(Plot("Questions to people", "open"),),
            otel=("fdstore.store.open_questions", "{question}"),
        ),
    ]
    oldest_question_s: Annotated[
        float | None,
        Metric(
            "fdstore_store_oldest_question_age_seconds",
            "How long the oldest of them has waited.",
            plots=(Plot("Questions to people", "age of the oldest, s"),),
        ),
    ]
    failures: int | None
    losses: int | None
    cold_contents: Annotated[
        int | None,
        Metric(
            "fdstore_store_cold_contents",
            "Contents in the object store, as of the last sweep.",
            plots=(Plot("Contents in the object store"),),
        ),
    ] = None
    cold_bytes: Annotated[
        int | None,
        Metric(
            "fdstore_store_cold_bytes",
            "Their bytes, which are not in the memory of Redis.",
            plots=(Plot("Memory of Redis", "cold texts"),),
        ),
    ] = None
    unsafe: str = ""


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
    trees = live = size = streams = failures = losses = questions = cold = cold_bytes = 0
    asked: list[float] = []
    for each in usage:
        trees += 1
        live += each.live
        size += each.bytes
        streams += each.open_streams
        failed, lost = sum_troubles(each.troubles, swept_at)
        failures, losses = failures + failed, losses + lost
        questions += each.questions
        cold += each.cold
        cold_bytes += each.cold_bytes
        asked += [] if each.oldest_question is None else [each.oldest_question]
    key = totals_key(prefix)
    oldest = f"{min(asked):.6f}" if asked else ""
    values: list[Value] = [trees, live, size, streams, failures, losses, questions, oldest, f"{swept_at:.6f}"]
    values += [cold, cold_bytes]
    sums = [part for field in zip(TOTALS.names, values, strict=True) for part in field]
    *_, now = yield [
        ("HSET", key, *sums),
        ("EXPIRE", key, KEPT_S),
        ("TIME",),
    ]
    return seconds_of(now)


def read_gauges(prefix: str) -> Operation[StoreGauges]:
    """Return the state of a store. Two round trips. Raises `StoreUnavailable`."""
    sums, *registered = yield from replies_or_damage([TOTALS.read(totals_key(prefix)), *worker_reads(prefix)])
    servers = yield from primaries("server", "memory")
    now_s = seconds_of(registered[0])
    totals = TOTALS.decode_readable(sums)
    is_damaged = any(isinstance(reply, DamagedRecord) for reply in registered)
    alive = [] if is_damaged else decode_workers(registered).alive
    infos = [each.info for each in servers if not each.error]
    unsafe = [found.said for info in infos for found in (version(info), eviction(info)) if not found.ok]
    return StoreGauges(
        trees=totals.trees,
        live_processes=totals.live,
        text_bytes=totals.bytes,
        open_streams=totals.open_streams,
        failures=totals.failures,
        losses=totals.losses,
        cold_contents=totals.cold,
        cold_bytes=totals.cold_bytes,
        open_questions=totals.questions,
        oldest_question_s=_age_of_oldest(totals, now_s),
        sweep_lag_s=None if totals.swept_at is None else max(0.0, now_s - totals.swept_at),
        workers=len(alive),
        used_memory_bytes=sum(int(info.get("used_memory", 0)) for info in infos),
        max_memory_bytes=sum(int(info.get("maxmemory", 0)) for info in infos),
        unsafe="; ".join(unsafe),
    )


def _age_of_oldest(totals: Totals, now_s: float) -> float | None:
    """Return how long the oldest question has waited: 0 if there is none."""
    if totals.questions is None:
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
