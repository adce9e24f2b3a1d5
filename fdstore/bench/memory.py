"""Memory in Redis: the overhead of a content's keys over its text, by MEMORY USAGE."""

from __future__ import annotations

from collections.abc import Iterator

from fdstore.bench import texts
from fdstore.bench.measuring import Row, at_most, row
from fdstore.bench.stage import KB, MB, Stage, format_size, keys_of


def rows(stage: Stage) -> Iterator[Row]:
    for size in (100 * KB, MB, 10 * MB) if stage.quick else (100 * KB, MB, 10 * MB, 100 * MB):
        with stage.process() as proc:
            stored = proc.ingest(texts.log_file(size)).bytes
            keys = keys_of(proc, 1)
            index = used(stage, keys.index)
            over = index + used(stage, keys.record, keys.pages, keys.holders) - stored
            yield row(f"memory over the text, {format_size(size)} logs", at_most(7, "%"), 100 * over / stored)
            yield row(
                f"memory of the index, {format_size(size)} logs", at_most(0.5, "%"), 100 * index / stored
            )
    with stage.process() as proc:
        stored = proc.create(texts.of_kind(texts.LOGS, 2 * KB)).bytes
        keys = keys_of(proc, 1)
        over = used(stage, keys.record, keys.pages, keys.index, keys.holders) - stored
        yield row("memory over the text, 2 KB logs", at_most(950, "B"), over)


def used(stage: Stage, *keys: str) -> int:
    """Return the bytes of these keys, with every field counted."""
    return sum(stage.plain.memory_usage(key, samples=0) or 0 for key in keys)
