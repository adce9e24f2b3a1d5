"""Memory in Redis: what a content takes beside its text.

By MEMORY USAGE of its keys; for small texts also by `used_memory`, which counts its share of the tables of
its tree and of Redis, and what the allocator rounds up. The replies that Redis keeps for half a minute, in
case they are lost, are not counted.

The allocator of Redis rounds sizes up. Pages of 4000 ASCII characters just fit one of its sizes (4096 bytes),
those of 4000 CJK characters another (12 288). Pages of mixed scripts and of bytes do not:
`store.contents.page_fields` says what is done about it.
"""

from __future__ import annotations

from collections.abc import Iterator

from fdstore.bench import texts
from fdstore.bench.measuring import BenchRow, at_most, row
from fdstore.bench.stage import KB, MB, BenchStage, format_size, keys_of
from fdstore.client import Process


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    yield from rows_of_small(stage)  # first: large requests leave buffers, which Redis frees later
    for size in (100 * KB, MB, 10 * MB) if stage.quick else (100 * KB, MB, 10 * MB, 100 * MB):
        with stage.process() as proc:
            stored = proc.ingest(texts.log_file(size)).bytes
            over = beside(stage, proc, stored)
            index = used(stage, keys_of(proc, 1).index)
            yield row(f"memory over the text, {format_size(size)} logs", at_most(7, "%"), 100 * over / stored)
            yield row(
                f"memory of the index, {format_size(size)} logs", at_most(0.5, "%"), 100 * index / stored
            )
    for kind in (texts.CJK, texts.MIXED, "bytes"):
        text = bytes(10 * MB) if kind == "bytes" else texts.of_kind(kind, 10 * MB)
        with stage.process() as proc:
            stored = proc.create(text).bytes
            over = beside(stage, proc, stored)
        yield row(f"memory over the content, 10 MB {kind}", at_most(7, "%"), 100 * over / stored)


def rows_of_small(stage: BenchStage) -> Iterator[BenchRow]:
    text = texts.of_kind(texts.LOGS, 2 * KB)
    with stage.process() as proc:
        stored = proc.create(text).bytes
        yield row("memory over the text, 2 KB logs", at_most(950, "B"), beside(stage, proc, stored))
    many = 2000 if stage.quick else 10_000
    for others, count in ((100, 100), (0, many)):
        with stage.process() as proc:
            take(stage, proc, text, others)
            over = take(stage, proc, text, count) / count - stored
        yield row(f"memory in all over the text, 2 KB logs, one of {others + count}", at_most(950, "B"), over)


def beside(stage: BenchStage, proc: Process, stored: int) -> int:
    """Return the bytes of all keys of a process's first content, without the `stored` bytes of its text."""
    keys = keys_of(proc, 1)
    return used(stage, keys.record, keys.pages, keys.index, keys.holders) - stored


def used(stage: BenchStage, *keys: str) -> int:
    """Return the bytes of these keys, with every field counted."""
    return sum(stage.plain.memory_usage(key, samples=0) or 0 for key in keys)


def take(stage: BenchStage, proc: Process, text: str, count: int) -> int:
    """Create a text so many times. Return by how many bytes the memory of Redis has grown."""
    before = stage.plain.info("memory")["used_memory"]
    for _ in range(count):
        proc.create(text)
    replies = list(stage.plain.scan_iter(proc.handle.keys.tree.answer("*"), count=1000))
    for start in range(0, len(replies), 1000):
        stage.plain.delete(*replies[start : start + 1000])
    return int(stage.plain.info("memory")["used_memory"]) - int(before)
