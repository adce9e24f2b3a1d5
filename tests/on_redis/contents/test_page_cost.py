"""Reading one page costs one command and that page's bytes, whatever the size of the content."""

from __future__ import annotations

import io
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import pytest

from fdstore.client import Store
from fdstore.model.records import Slice, TreeLimits
from tests.thorough import thorough
from tests.waiting import stretched

LINE = b"a line of a build log that is about as long as such lines are, and then some\n"


class Log(io.RawIOBase):
    """A binary file of `size` bytes of log lines, generated while it is read."""

    def __init__(self, size: int) -> None:
        self._block = LINE * 12_000
        self._left = size
        self._at = 0

    def read(self, size: int = -1) -> bytes:
        block = self._block[self._at : self._at + min(size, self._left)]
        self._at = (self._at + len(block)) % len(self._block)
        self._left -= len(block)
        return block


class Stats(NamedTuple):
    """What Redis says of itself: the calls of each command, and the bytes that it had sent before it said
    so. `of_commands` and `of_stats` are the bytes of the two replies."""

    commands: dict[str, int]
    sent: int
    of_commands: int
    of_stats: int


def stats(execute: Any) -> Stats:
    commands, counters = execute("INFO", "commandstats"), execute("INFO", "stats")
    called = {
        line.partition(":")[0].removeprefix("cmdstat_"): int(line.partition("calls=")[2].partition(",")[0])
        for line in commands.decode().splitlines()
        if line.startswith("cmdstat_")
    }
    sent = counters.decode().partition("total_net_output_bytes:")[2].split()[0]
    sizes = (len(b"$%d\r\n%b\r\n" % (len(each), each)) for each in (commands, counters))
    return Stats(called, int(sent), *sizes)


def calls(execute: Any) -> int:
    """Return how many commands Redis has run."""
    return sum(stats(execute).commands.values())


def cost_of(execute: Any, read: Callable[[], Slice]) -> tuple[Slice, dict[str, int], int]:
    """Return what `read` returns, and the commands and bytes that Redis needed for it.

    The replies to INFO are not counted. They are long, and differ between servers: they name every command
    that the server was ever sent, with counts of as many digits as they have by then.
    """
    before = stats(execute)
    found = read()
    after = stats(execute)
    # between the two counts: the reply that the first was in, and the one before the second
    sent = after.sent - before.sent - before.of_stats - after.of_commands
    calls = {name: n - before.commands.get(name, 0) for name, n in after.commands.items() if name != "info"}
    return found, {name: n for name, n in calls.items() if n}, sent


@pytest.mark.timeout(stretched(100))
@pytest.mark.parametrize("size", [1_000_000, *thorough("its size takes long", 1_000_000_000)])
def test_reading_a_page_costs_two_commands_one_round_trip_and_its_bytes(
    store: Store, execute: Any, size: int, record_property: Any
) -> None:
    proc = store.process("big", limits=TreeLimits(tree_bytes=2 * size))
    started = time.monotonic()
    made = proc.ingest(Log(size), source="a build")
    ingest_s = time.monotonic() - started
    middle = made.pages // 2
    proc.read("fd:1", start=middle)

    number = middle + 1 if (middle % 256) else middle
    found, calls, sent = cost_of(execute, lambda: proc.read("fd:1", start=number))

    page = len(found.text.encode())

    record_property("ingest_s", round(ingest_s, 2))
    record_property("bytes_sent", sent)
    print(f"{made.chars} characters: ingest {ingest_s:.2f} s; one page: {calls}, {sent} bytes for {page}")
    assert made.bytes == size
    assert calls == {"hget": 2}  # the page, and when its content was created
    assert page > 3000
    assert sent == pytest.approx(page, abs=100)
    proc.close("fd:1")


def test_the_first_page_read_by_a_client_costs_one_round_trip_too(store: Store, execute: Any) -> None:
    store.process("big").ingest(Log(5_000_000), source="a build")
    afresh = store.process("big")

    found, calls, sent = cost_of(execute, lambda: afresh.read("fd:1", start=700))

    assert calls["evalsha"] == 1
    assert calls["hmget"] == 2  # the page and, in the script, the metadata
    # the page, the metadata, and one field of the index
    assert sent < len(found.text.encode()) + 6000


def test_reading_a_line_deep_inside_a_content_costs_one_page(store: Store, execute: Any) -> None:
    proc = store.process("big")
    made = proc.ingest(Log(20_000_000), source="a build")
    proc.read("fd:1", mode="line", start=made.lines // 2)

    found, calls, sent = cost_of(execute, lambda: proc.read("fd:1", mode="line", start=made.lines // 2 + 1))

    assert found.text.encode() == LINE
    assert sum(calls.values()) <= 2
    assert sent < 4000 + 100  # the page
