"""Writing: a text in memory, and a file that must not be loaded into memory.

A text is compared with redis-py writing its pages, cut in advance, in consecutive HSETs of 1 MB: the minimum
for this layout. The difference is cutting, counting, the index and the commit of the descriptor.
"""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator

from fdstore.bench import texts
from fdstore.bench.measuring import Bar, Lap, Row, at_least, at_most, row, share_of_speed, slower, take_turns
from fdstore.bench.stage import GB, KB, MB, Stage, format_size
from fdstore.bench.stage import stage as new_stage
from fdstore.client import Process
from fdstore.store.contents.staging import DEFAULT_PAGE_SIZE
from fdstore.text.paging import cut

LARGE_AT_ONCE = 1

Fields = list[bytes | str]
"""Alternating numbers and texts of pages, for HSET."""


def rows(stage: Stage) -> Iterator[Row]:
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
        rounds = take_turns([creating(stage, proc, text), setting(stage, text)], stage.budget_s)
        yield slower("create, 2 KB logs", at_most(2.2), rounds)
        yield row(
            "create, 2 KB logs: round trips", at_most(1, "trips"), stage.trips(lambda: proc.create(text))
        )
    if not stage.quick:
        yield ingest_memory(stage, GB)


def compared(stage: Stage, kind: str, size: int, bar: Bar, also: str = "") -> Row:
    """Compare storing a text with writing its pages."""
    text = texts.of_kind(kind, size)
    with stage.process() as proc:
        rounds = take_turns(
            [creating(stage, proc, text), setting(stage, text)], stage.budget_s, at_once=LARGE_AT_ONCE
        )
    return share_of_speed(f"create, {format_size(size)} {kind}{also}", bar, rounds, len(text.encode()))


def creating(stage: Stage, proc: Process, text: str) -> Lap:
    """Time creating contents; closing them afterwards is not timed."""

    def run(times: int) -> float:
        start = time.perf_counter()
        descriptors = [proc.create(text) for _ in range(times)]
        passed = time.perf_counter() - start
        for descriptor in descriptors:
            proc.close(descriptor.fd)
        stage.settle()
        return passed

    return run


def setting(stage: Stage, text: str) -> Lap:
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


def ingest_memory(stage: Stage, size: int) -> Row:
    """Measure the growth of a process's peak memory while it ingests `size` bytes."""
    with stage.process() as proc:
        command = [sys.executable, "-m", "fdstore.bench.ingesting", stage.url, proc.id, str(size)]
        output = subprocess.run(command, check=True, capture_output=True, text=True).stdout
    return row(f"ingest, {format_size(size)} logs: growth of memory", at_most(32, "MB"), int(output) / MB)
