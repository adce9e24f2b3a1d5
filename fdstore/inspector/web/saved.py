"""Tokens that were kept out of the context of models, for the pages of a tree and of a process.

Agents are counted from their journals, turn by turn. Doors and loops of users have no journal, and count as
they go (`store.processes.savings`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from fdstore.inspector.web.context_growth import SavedCurve, saved_curve
from fdstore.inspector.web.timeline_spans import Track
from fdstore.model.records import ProcessRecord, Record
from fdstore.store.keys import process_keys
from fdstore.store.processes.savings import read_of
from fdstore.wire.operation import Operation


class Metered(Record, frozen=True, kw_only=True):
    """Counts of programs that run no agent of fdstore: `outputs` that were stored, the tokens that
    these kept out, and those that were read back. Tokens are estimates."""

    outputs: int
    kept_tokens: int
    read_tokens: int


class SavedHere(Record, frozen=True, kw_only=True):
    """Tokens kept out by the agents among some `processes`, and by the others. Of `unread` records of the
    journals nothing is known yet."""

    processes: int
    curve: SavedCurve | None
    metered: Metered | None
    unread: int


def read_saved(
    prefix: str, processes: Sequence[ProcessRecord], tracks: Mapping[str, Track]
) -> Operation[SavedHere]:
    """Return what was kept out of the contexts of these processes, whose journals are read. One round trip if
    programs hold some of them."""
    shown = [tracks[each.id] for each in processes if each.id in tracks]
    held = [process_keys(prefix, each.id) for each in processes if each.program is None]
    rows = (yield from read_of(held)).rows if held else []
    metered = Metered(
        outputs=sum(each.kept for each in rows),
        kept_tokens=sum(each.kept_tokens for each in rows),
        read_tokens=sum(each.read_tokens for each in rows),
    )
    return SavedHere(
        processes=len(processes),
        curve=saved_curve(each.growth for each in shown),
        metered=metered if rows else None,
        unread=sum(each.unread for each in shown),
    )
