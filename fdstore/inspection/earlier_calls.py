"""Where the calls are whose results begin a page: in the records before it."""

from __future__ import annotations

from collections.abc import Collection

from fdstore.inspection.build_entries import build_entries
from fdstore.store.processes import journal
from fdstore.wire.operation import Operation


def find_calls(
    prefix: str, process: str, calls: Collection[str], before: int, count: int
) -> Operation[dict[str, str]]:
    """Return the position and part, "POS-PART", of those of these calls that are in the `count` records
    before the position `before`, by the key of the call. Large records are read in part only. No round trip
    if there is nothing to find, else those of `journal.read_window`. Raises `NotFound`.

    >>> from fdstore.inspection.earlier_calls import find_calls
    >>> store.run(find_calls(store.prefix, proc.id, ["turn1:toolu_1"], 0, 60))
    {}
    """
    first = max(0, before - count)
    if not calls or first == before:
        return {}
    window = yield from journal.read_window(prefix, process, first, before - first)
    entries = build_entries(window.records, window.first, max_chars=0)
    return {
        each.call: f"{each.position}-{each.part}"
        for each in entries
        if each.kind == "call" and each.call in calls
    }
