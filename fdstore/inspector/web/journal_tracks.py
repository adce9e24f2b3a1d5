"""The journals behind a timeline, each read once: a journal only grows, so what was read stays known.

A request reads a bounded number of bytes of the journals that it shows; of what is left, `Track` says how
many records there are, and the next request reads on. A page that is shown is loaded again and again, so it
has all of them soon.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from fdstore.inspector.web.timeline_spans import Track
from fdstore.model.records import ProcessRecord
from fdstore.store.keys import process_keys
from fdstore.store.processes.journal import MAX_WINDOW_BYTES
from fdstore.store.processes.losses import decode_losses
from fdstore.store.processes.process_records import PROCESS
from fdstore.store.record_format import replies_or_damage
from fdstore.wire.operation import Operation

MAX_TRACKS = 1000
"""Journals whose spans are kept: those shown last."""

FIRST_RECORDS = 125
"""Records that the first round trip reads, when their size is not known."""

AT_ONCE_BYTES = 250_000
"""About how many bytes each further one reads."""


_TIMES = PROCESS.some("ready_at", "claimed_at", "recent_losses")


class JournalTracks:
    """The tracks of the processes that were shown last."""

    def __init__(self) -> None:
        self._tracks: OrderedDict[str, Track] = OrderedDict()

    def read(self, prefix: str, processes: Sequence[ProcessRecord]) -> Operation[dict[str, Track]]:
        """Return the tracks of these processes, with the records that were added to their journals; at most
        about `MAX_WINDOW_BYTES` of them. One round trip if there are none."""
        journals = [each for each in processes if each.kind != "asks"]
        tracks = {each.id: self._track(each) for each in journals}
        keys = {each.id: process_keys(prefix, each.id) for each in journals}
        states = yield from replies_or_damage(
            [read for each in keys.values() for read in (("LLEN", each.journal), _TIMES.read(each.record))]
        )
        for process, length, times in zip(journals, states[::2], states[1::2], strict=True):
            track = tracks[process.id]
            if not isinstance(length, int):  # the page of the tree names it
                length = track.next
            elif length < track.next:
                track = tracks[process.id] = self._tracks[process.id] = Track(process)
            track.length = length
            if isinstance(times, list):
                read = _TIMES.decode_readable(times)
                track.ready_at, track.claimed_at = read.ready_at, read.claimed_at
                track.losses = decode_losses(read.recent_losses or "")
        yield from _read_on(tracks, {process: each.journal for process, each in keys.items()})
        return tracks

    def _track(self, process: ProcessRecord) -> Track:
        """Return the track of a process: another one if another process has its name now."""
        found = self._tracks.get(process.id)
        if found is None or found.began_at != process.started_at:
            found = self._tracks[process.id] = Track(process)
        self._tracks.move_to_end(process.id)
        while len(self._tracks) > MAX_TRACKS:
            self._tracks.popitem(last=False)
        return found


def _read_on(tracks: dict[str, Track], journals: dict[str, str]) -> Operation[None]:
    """Read the records that these tracks do not have, up to the bound."""
    size = count = 0
    pending = [process for process, track in tracks.items() if track.next < track.length]
    while pending and size < MAX_WINDOW_BYTES:
        left = FIRST_RECORDS if not count else max(1, AT_ONCE_BYTES * count // max(size, 1))
        wanted: list[tuple[str, int, int]] = []
        for process in pending:
            begin = tracks[process].next
            end = min(tracks[process].length, begin + left)
            wanted.append((process, begin, end))
            left -= end - begin
            if not left:
                break
        replies = yield from replies_or_damage(
            [("LRANGE", journals[process], begin, end - 1) for process, begin, end in wanted]
        )
        for (process, begin, _), records in zip(wanted, replies, strict=True):
            track = tracks[process]
            if not isinstance(records, list) or not records:
                track.length = track.next  # it is damaged, or was just removed
                continue
            count += len(records)
            size += sum(map(len, records))
            if track.next == begin:  # else another request has added them
                track.add(records)
        pending = [process for process in pending if tracks[process].next < tracks[process].length]
