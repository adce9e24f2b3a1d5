"""The asks of programs on a timeline: each answer is a span, from when a lane asked to when it was stored.

As with journals (`journal_tracks`), an answer is read once: what was answered stays so. A request reads a
bounded number of them, and the next one reads on.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence

from fdstore.inspector.web.timeline_spans import MAX_KEPT, TimelineSpan, merge
from fdstore.model.records import ProcessRecord
from fdstore.store.processes.asks import AskAnswer, read_answers
from fdstore.wire.operation import Operation

MAX_TRACKS = 200
"""Calls whose spans are kept: those shown last."""

ANSWERS_AT_ONCE = 500
"""Answers that one request reads."""


class AskTrack:
    """The spans of the asks of a call. `unread` is the number of answers that were not added yet."""

    def __init__(self) -> None:
        self.known: set[int] = set()
        self.unread = 0
        self._spans: list[TimelineSpan] = []

    def add(self, answers: Sequence[tuple[int, AskAnswer | None]]) -> None:
        """Add answers, each with the number of its ask; None is a damaged one."""
        for number, answer in answers:
            if number in self.known:
                continue  # another request has added it
            self.known.add(number)
            if answer is not None and answer.at_ms is not None:
                at = answer.at_ms / 1000
                self._spans.append(
                    TimelineSpan(
                        kind="answer",
                        label=f"ask {number}",
                        at=at - answer.seconds,
                        until=at,
                        position=number,
                        is_error=bool(answer.error),
                    )
                )
        if len(self._spans) > MAX_KEPT:
            self._spans = merge(self._spans, MAX_KEPT // 2)

    def spans(self, process: ProcessRecord) -> tuple[TimelineSpan, ...]:
        """Return the spans of the asks, whose lanes are shown as this process."""
        return tuple(merge([*self._spans, *self._now(process)]))

    def _now(self, process: ProcessRecord) -> list[TimelineSpan]:
        since, left = process.started_at, process.asks
        if since is None or left is None or left.done >= left.total:
            return []
        since = max([since, *(each.until or since for each in self._spans)])
        if process.state == "ready":
            return [TimelineSpan(kind="queue", label="waits for a worker", at=since, until=None, position=0)]
        if process.state == "running":
            return [TimelineSpan(kind="answer", label=str(left), at=since, until=None, position=0)]
        return []


class AskTracks:
    """The tracks of the calls that were shown last."""

    def __init__(self) -> None:
        self._tracks: OrderedDict[tuple[str, float | None], AskTrack] = OrderedDict()

    def read(self, prefix: str, processes: Sequence[ProcessRecord]) -> Operation[dict[str, AskTrack]]:
        """Return the tracks of those of these processes that answer asks, with the answers that were added;
        at most `ANSWERS_AT_ONCE`. Two round trips for each call that has new ones."""
        found: dict[str, AskTrack] = {}
        left = ANSWERS_AT_ONCE
        for each in processes:
            if each.kind != "asks" or each.asks is None:
                continue
            track = found[each.id] = self._track(each)
            track.unread = max(0, each.asks.done - len(track.known))
            if track.unread and left:
                parent, call = each.parent or "", each.call or ""
                answers = yield from read_answers(prefix, parent, call, track.known, left)
                track.add(answers)
                left -= len(answers)
                # a count that is damaged, or of asks that are gone, must not be waited for
                track.unread = max(0, each.asks.done - len(track.known)) if answers else 0
        return found

    def _track(self, process: ProcessRecord) -> AskTrack:
        key = (process.id, process.started_at)
        track = self._tracks.setdefault(key, AskTrack())
        self._tracks.move_to_end(key)
        while len(self._tracks) > MAX_TRACKS:
            self._tracks.popitem(last=False)
        return track
