"""A timeline of processes and their tool calls, and its geometry. Pure.

A row is one process. Its bar is its life; in it lie its spans (`timeline_spans`): waits, answers of the
model, tool calls. The time axis goes from the first start to the last end, or to now while a process has not
ended: what grows with the time is computed when the page is rendered, so it is no change of the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Protocol

import msgspec

from fdstore.inspector.web.timeline_spans import SpanKind, TimelineSpan
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord, Record

MAX_ROWS = 60

LAYERS: tuple[SpanKind, ...] = ("unread", "processes", "queue", "answer", "call", "loss", "retry")
"""The kinds of spans in the order in which they are drawn."""

STEPS_S = (
    *(0.001, 0.01, 0.1, 0.5),
    *(1, 2, 5, 10, 30),
    *(60, 120, 300, 600, 1800),
    *(3600, 7200, 21_600, 43_200, 86_400),
)
"""Possible distances of marks on the time axis; beyond them, multiples of the last."""

MAX_TICKS = 8


class Spanned(Protocol):
    """What has the spans of a process: its journal, or the answers to asks."""

    @property
    def unread(self) -> int: ...

    def spans(self, process: ProcessRecord) -> tuple[TimelineSpan, ...]: ...


class TimelineRow(Record, frozen=True, kw_only=True):
    """One process; `until` is None while it has not ended. Of asks, `asked_by` and `call` are the process
    that asks and its call, and the positions of spans are their numbers."""

    process: str
    state: str
    asked_by: str = ""
    call: str = ""
    program: str | None = None
    at: float
    until: float | None
    spans: tuple[TimelineSpan, ...] = ()

    @property
    def bars(self) -> list[tuple[str, TimelineSpan]]:
        """The spans in the order in which they are drawn: what must be seen is last. Each has a name that
        stays when others are added."""
        drawn = sorted(self.spans, key=lambda each: (each.is_error, LAYERS.index(each.kind), each.at))
        names, found = Counter[str](), []
        for span in drawn:
            name = f"{self.process}-{span.kind}-{span.position}"
            names[name] += 1
            found.append((f"{name}-{names[name]}", span))
        return found

    @property
    def now(self) -> str:
        """The present work of the process, in words."""
        return "; ".join(each.text for each in self.spans if each.until is None)

    def sums(self, now_s: float) -> dict[str, Sum]:
        """Return how many spans of each kind there are, how long they took, and how many calls failed."""
        return {
            "failed": _sum([each for each in self.spans if each.kind == "call" and each.is_error], now_s),
            **{kind: _sum([each for each in self.spans if each.kind == kind], now_s) for kind in LAYERS},
        }


class Sum(msgspec.Struct, frozen=True):
    """Some spans of one kind together. Of merged ones `seconds` has the gaps between them, too."""

    count: int
    seconds: float


def _sum(spans: Sequence[TimelineSpan], now_s: float) -> Sum:
    return Sum(
        count=sum(each.count for each in spans),
        seconds=sum((now_s if each.until is None else each.until) - each.at for each in spans),
    )


class Timeline(Record, frozen=True, kw_only=True):
    """The rows, how many processes of the tree have none: they are too many, or have not started; and how
    many records of the others are not read yet."""

    rows: tuple[TimelineRow, ...]
    left_out: int = 0
    unread: int = 0

    @property
    def at(self) -> float:
        return min(row.at for row in self.rows)

    def until(self, now_s: float) -> float:
        """Return where the time axis ends."""
        ends = [row.until for row in self.rows] + [span.until for row in self.rows for span in row.spans]
        return max(*(now_s if end is None else end for end in ends), self.at + 0.001)


def with_rows(processes: Sequence[ProcessRecord]) -> list[ProcessRecord]:
    """Return those of these processes that have a row."""
    return [process for process in processes if process.started_at is not None][:MAX_ROWS]


def make_timeline(
    processes: Sequence[ProcessRecord], tracks: Mapping[str, Spanned], total: int
) -> Timeline | None:
    """Return the timeline of these processes, of `total` of the tree; None if none of them has started."""
    started = with_rows(processes)
    if not started:
        return None
    rows = tuple(
        TimelineRow(
            process=process.id,
            state=process.state,
            program=process.program,
            asked_by=(process.parent or "") if process.kind == "asks" else "",
            call=(process.call or "") if process.kind == "asks" else "",
            at=process.started_at or 0.0,
            until=process.ended_at if process.state in ENDED else None,
            spans=tracks[process.id].spans(process) if process.id in tracks else (),
        )
        for process in started
    )
    unread = sum(each.unread for each in tracks.values())
    return Timeline(rows=rows, left_out=total - len(rows), unread=unread)


class Box(msgspec.Struct, frozen=True):
    """The place of something on the time axis, in percent."""

    x: str
    width: str


class Axis:
    """The scale of a timeline: times to percent of its width."""

    def __init__(self, at: float, until: float) -> None:
        self.at, self.length_s = at, until - at

    def box(self, at: float, until: float) -> Box:
        """Return the place of a span; parts beyond the axis are cut off."""
        begin, end = self._percent(at), self._percent(until)
        return Box(f"{begin:.2f}%", f"{max(end - begin, 0):.2f}%")

    def ticks(self) -> list[tuple[str, str]]:
        """Return the marks of the axis: their places and their texts, counted from the beginning."""
        step = next((each for each in STEPS_S if self.length_s / each <= MAX_TICKS), 0.0)
        step = step or STEPS_S[-1] * (int(self.length_s / STEPS_S[-1] / MAX_TICKS) + 1)
        count = int(self.length_s / step)
        return [(f"{self._percent(self.at + n * step):.2f}%", offset(n * step)) for n in range(count + 1)]

    def _percent(self, at: float) -> float:
        return min(max((at - self.at) / self.length_s, 0.0), 1.0) * 100


def offset(seconds: float) -> str:
    """Return a time since the beginning.

    >>> offset(0), offset(0.25), offset(90), offset(7200), offset(200_000)
    ('0', '0.25 s', '1:30', '2:00:00', '2 d 7 h')
    """
    if seconds < 60:
        return f"{seconds:g} s" if seconds else "0"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h"
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def axis_of(timeline: Timeline, now_s: float) -> Axis:
    """Return the axis of a timeline that is shown now."""
    return Axis(timeline.at, timeline.until(now_s))
