"""Writing: a text in memory, and a file that must not be loaded into memory.

A text is compared with redis-py writing its pages, cut in advance, in consecutive HSETs of 1 MB: the minimum
for this layout. The difference is cutting, counting, the index and the commit of the descriptor.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

from fdstore.bench import texts
from fdstore.bench.child import output_of
from fdstore.bench.measuring import Bar, BenchRow, Lap, at_least, at_most, lap, row
from fdstore.bench.stage import GB, KB, MB, BenchStage, format_size
from fdstore.bench.stage import stage as new_stage
from fdstore.client import Process
from fdstore.text.paging import DEFAULT_PAGE_SIZE, cut

Fields = list[bytes | str]
"""Alternating numbers and texts of pages, for HSET."""


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    # up to about 10 MB the reference stays in the CPU caches
    large, bar = (10 * MB, 50) if stage.quick else (100 * MB, 65)
    yield compared(stage, texts.LOGS, large, at_least(bar, "%"))
    with new_stage(quick=stage.quick, options={"appendonly": "yes", "appendfsync": "everysec"}) as logged:
        yield compared(logged, texts.LOGS, large, at_least(80, "%"), ", AOF everysec")
    yield compared(stage, texts.CJK, 10 * MB, at_least(40, "%"))
    yield compared(stage, texts.LOGS, MB, at_least(45, "%"))
    yield compared(stage, texts.LOGS, 100 * KB, at_least(45, "%"))
    with stage.process() as proc:
        text = texts.of_kind(texts.LOGS, 2 * KB)
        laps = creating(stage, proc, text), setting(stage, text)
        yield stage.compare("create, 2 KB logs", at_most(2.2), *laps)
        yield stage.round_trips("create, 2 KB logs", 1, lambda: proc.create(text))
    if not stage.quick:
        yield ingest_memory(stage, GB)


def compared(stage: BenchStage, kind: str, size: int, bar: Bar, also: str = "") -> BenchRow:
    """Compare storing a text with writing its pages."""
    text = texts.of_kind(kind, size)
    case = f"create, {format_size(size)} {kind}{also}"
    with stage.process() as proc:
        laps = creating(stage, proc, text), setting(stage, text)
        return stage.compare_speed(case, bar, *laps, len(text.encode()))


def creating(stage: BenchStage, proc: Process, text: str) -> Lap:
    """Time creating contents; closing them afterwards is not timed."""
    run = lap(lambda: proc.create(text).fd, proc.close)

    def settled(times: int) -> float:
        passed = run(times)
        stage.settle()
        return passed

    return settled


def setting(stage: BenchStage, text: str) -> Lap:
    """Time writing the same pages with redis-py; dropping them afterwards is not timed."""
    requests = list(cut_requests(text))

    def run(times: int) -> float:
        start = time.perf_counter()
        for number in range(times):
            for fields in requests:
                stage.plain.hset(f"pages:{number}", items=fields)
        passed = time.perf_counter() - start
        stage.plain.unlink(*(f"pages:{number}" for number in range(times)))
        stage.settle()
        return passed

    return run


def cut_requests(text: str) -> Iterator[Fields]:
    """Yield the pages of a text as the fields of HSETs of about 1 MB."""
    fields: Fields = []
    size = number = 0
    for pages in cut(text, DEFAULT_PAGE_SIZE):
        for page in pages:
            number += 1
            fields += (str(number), page.data)
            size += len(page.data)
            if size >= MB:
                yield fields
                fields, size = [], 0
    if fields:
        yield fields


def ingest_memory(stage: BenchStage, size: int) -> BenchRow:
    """Measure the growth of a process's peak memory while it ingests `size` bytes."""
    with stage.process() as proc:
        output = output_of("child", "ingest", stage.url, proc.id, size)
    return row(f"ingest, {format_size(size)} logs: growth of memory", at_most(32, "MB"), int(output) / MB)
