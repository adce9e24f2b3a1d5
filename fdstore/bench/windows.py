"""Windows of bytes: 10 KB anywhere in a content, by a client that never met it, compared with GETRANGE of
the same bytes of one string."""

from __future__ import annotations

import io
import random
from collections.abc import Iterator
from itertools import cycle

from fdstore.bench import texts
from fdstore.bench.measuring import BenchRow, at_most, lap
from fdstore.bench.stage import MB, BenchStage, format_size
from fdstore.client import Process

WINDOW = 10_000


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    with stage.process() as proc:
        proc.create(texts.of_kind(texts.CJK, MB))
        yield from window(stage, proc, f"{format_size(MB)} {texts.CJK}")
    with stage.process() as proc:
        proc.ingest(io.BytesIO(random.Random(1).randbytes(MB)), "x", errors="bytes")
        yield from window(stage, proc, f"{format_size(MB)} bytes")
    for size in stage.sizes:
        with stage.process() as proc:
            proc.ingest(texts.log_file(size))
            yield from window(stage, proc, f"{format_size(size)} {texts.LOGS}")


def window(stage: BenchStage, proc: Process, content: str) -> Iterator[BenchRow]:
    """Measure windows of one content, and their round trips."""
    size = proc.stat("fd:1").bytes
    offsets = [number * 61 % 97 * max(size - WINDOW, 0) // 97 for number in range(97)]
    ours, theirs = cycle(offsets), cycle(offset % MB for offset in offsets)
    stage.plain.set("whole", proc.read_bytes("fd:1", 0, MB + WINDOW))

    def mine() -> object:
        proc.handle.forget("fd:1")
        return proc.read_bytes("fd:1", next(ours), WINDOW)

    def plain() -> object:
        start = next(theirs)
        return stage.plain.getrange("whole", start, start + WINDOW - 1)

    yield stage.compare(f"10 KB of bytes, cold, {content}", at_most(4.0), lap(mine), lap(plain))
    stage.plain.delete("whole")
    yield stage.round_trips(f"10 KB of bytes, {content}", 2, mine)
