"""The calls whose results begin a page: they are in the records before it."""

from __future__ import annotations

from collections.abc import Collection

from fdstore.inspection.build_entries import build_entries
from fdstore.inspection.entries import ConversationEntry
from fdstore.store.processes import journal
from fdstore.wire.operation import Operation


def find_calls(
    prefix: str, process: str, calls: Collection[str], before: int, count: int, *, max_chars: int
) -> Operation[dict[str, ConversationEntry]]:
    """Return those of these calls that are in the `count` records before the position `before`, by their
    keys, with arguments of at most `max_chars` characters. Fewer records are searched if they are large
    (`journal.MAX_WINDOW_BYTES`). No round trip if there is nothing to find, else those of
    `journal.read_window`. Raises `NotFound`.

    >>> from fdstore.inspection.earlier_calls import find_calls
    >>> store.run(find_calls(store.prefix, proc.id, ["turn1:toolu_1"], 0, 60, max_chars=100))
    {}
    """
    first = max(0, before - count)
    if not calls or first == before:
        return {}
    window = yield from journal.read_window(prefix, process, first, before - first)
    entries = build_entries(window.records, window.first, max_chars=max_chars)
    return {each.call: each for each in entries if each.kind == "call" and each.call in calls}
