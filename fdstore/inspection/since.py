"""Find where in a journal a time is, by bisection: a long journal is not read for its end."""

from __future__ import annotations

from fdstore.agent.record_facts import read_facts
from fdstore.store.processes import journal
from fdstore.wire.operation import Operation


def position_since(prefix: str, process: str, at: float) -> Operation[int]:
    """Return the position of the first journal record that was written at `at` or later (seconds since the
    epoch by Redis), or the length of the journal. Records without a time count as older; the task of the
    process, which has none, is included if nothing is older. 15 round trips for 10 000 records. Raises
    `NotFound`."""
    window = yield from journal.read_window(prefix, process, 0, 1)
    low, high = 0, window.length
    while low < high:
        middle = (low + high) // 2
        window = yield from journal.read_window(prefix, process, middle, 1)
        if not window.records:
            high = middle
            continue
        written_ms = read_facts(window.records[0]).at_ms
        if written_ms is None or written_ms / 1000 < at:
            low = middle + 1
        else:
            high = middle
    return low if low > 1 else 0
