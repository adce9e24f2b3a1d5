"""Cold contents in a directory: what they take in Redis, and what a page of one costs.

The references are a bare range request of as many bytes by the same library, and what any client of this
layout must do, by redis-py: ask for the page, then for the record and the checksum, make that request, and
count the read. A content that is read again and again comes back, so each read is forgotten before the next
one; the time of that is taken off.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import cycle

from fdstore.bench import texts
from fdstore.bench.measuring import BenchRow, at_most, format_duration, lap, row, take_turns
from fdstore.bench.memory import used
from fdstore.bench.stage import MB, BenchStage, format_size, keys_of
from fdstore.client import Process
from fdstore.store.cold.moving import move_due
from fdstore.store.keys import ContentKeys
from fdstore.store.objects import object_store
from fdstore.store.objects.checksums import DIGEST_BYTES
from fdstore.store.objects.records import path_of
from fdstore.store.trees import ceilings
from fdstore.wire.operation import Operation

SMALLEST = 128 * 1024
"""The default of `cold_min`; texts that end at a whole character have up to three bytes less."""

PLACES = 64
"""Pages of a content that are read in turn."""


def missing() -> str:
    """Return why nothing can be measured here; "" if it can be."""
    return "" if find_spec("obstore") else "cold contents: their package is not installed: the extra [cold]"


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    """Measure contents of several sizes."""
    if missing():
        return
    with tempfile.TemporaryDirectory(prefix="fdstore-bench-") as folder:
        url = f"file://{folder}"
        limits = {"cold": url, "cold_after": "0s", "cold_min": "0", "cold_mb_per_s": "10000"}
        for name, value in limits.items():
            stage.store.run(ceilings.put(stage.store.prefix, name, value))
        for size in (SMALLEST, MB, 10 * MB) if stage.quick else (SMALLEST, MB, 10 * MB, 100 * MB):
            for kind in (texts.LOGS, texts.CJK):
                text = texts.log_file(size) if kind == texts.LOGS else texts.of_kind(kind, size)
                with stage.process() as proc:
                    stored = (proc.create(text) if isinstance(text, str) else proc.ingest(text)).bytes
                    assert move_due(stage.store).contents == 1
                    yield from _content(stage, proc, url, f"{format_size(size)} {kind}", stored)


def _content(stage: BenchStage, proc: Process, url: str, what: str, stored: int) -> Iterator[BenchRow]:
    keys = keys_of(proc, 1)
    kept = used(stage, keys.record, keys.index, keys.sums, keys.holders, keys.pages)
    yield row(f"memory of a cold content, {what}", at_most(0.6, "%"), 100 * kept / stored)
    where = stage.plain.hget(keys.record, "where")
    assert isinstance(where, bytes)
    path = path_of(proc.handle.keys.tree, where.decode())
    pages = proc.stat("fd:1").pages
    numbers = [1 + i * (pages - 1) // PLACES for i in range(PLACES)]
    ours, sizes = cycle(numbers), cycle([_bounds(proc, stage, keys, number) for number in numbers])

    def read() -> object:
        stage.store.run(_forget_reads(keys))
        return proc.read("fd:1", start=next(ours))

    def bare() -> object:
        return object_store.get_range(url, path, *next(sizes))

    def all_requests() -> None:
        stage.plain.hget(keys.pages, "1")
        place = stage.plain.pipeline(transaction=False)
        place.hmget(keys.record, "created_at", "tier", "where")
        place.getrange(keys.sums, 0, DIGEST_BYTES - 1)
        place.execute()
        bare()
        counting = stage.plain.pipeline()
        counting.set(keys.reads, 0, ex=60, nx=True)
        counting.incr(keys.reads)
        counting.execute()

    rounds = take_turns(
        [lap(read), lap(lambda: stage.store.run(_forget_reads(keys))), lap(bare), lap(all_requests)],
        stage.budget_s,
    )
    both, forgot, of_range, of_all = map(format_duration, rounds.medians)
    case, took = f"page of a cold content, {what}", f"{both} - {forgot}"
    value = rounds.value(lambda with_it, without, one, _: (with_it - without) / one)
    yield row(f"{case}, of a range", at_most(10), value, took, of_range)
    value = rounds.value(lambda with_it, without, _, every: (with_it - without) / every)
    yield row(f"{case}, of all its requests", at_most(1.5), value, took, of_all)


def _bounds(proc: Process, stage: BenchStage, keys: ContentKeys, number: int) -> tuple[int, int]:
    """Return where about a page is in its object: as many bytes, at the same share of it."""
    stage.store.run(_forget_reads(keys))
    size = len(proc.read("fd:1", start=number).text.encode())
    d = proc.stat("fd:1")
    start = min((number - 1) * d.bytes // d.pages, d.bytes - size)
    return start, start + size


def _forget_reads(keys: ContentKeys) -> Operation[None]:
    yield [("DEL", keys.reads)]
