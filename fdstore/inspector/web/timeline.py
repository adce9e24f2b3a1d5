"""A timeline of processes and their tool calls, and its geometry. Pure.

A row is one process. Its bar is its life; in it lie its spans (`timeline_spans`): waits, answers of the
model, tool calls. The time axis goes from the first start to the last end, or to now while a process has not
ended: what grows with the time is computed when the page is rendered, so it is no change of the data.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from math import ceil, floor
from typing import Protocol

import msgspec

from fdstore.errors import InvalidArgument
from fdstore.inspector.web.timeline_spans import SpanKind, TimelineSpan
from fdstore.model.ends import in_words
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord, Record

MAX_ROWS = 60

LAYERS: tuple[SpanKind, ...] = ("unread", "processes", "person", "queue", "answer", "call", "loss", "retry")
"""The kinds of spans in the order in which they are drawn."""

STEPS_S = (
    *(0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5),
    *(1, 2, 5, 10, 20, 30),
    *(60, 120, 300, 600, 1800),
    *(3600, 7200, 21_600, 43_200, 86_400),
)
"""Possible distances of marks on the time axis; beyond them, multiples of the last."""

MAX_TICKS = 8

LEAST_ROOM = 0.08
"""The part of the axis that the reason in a bar needs."""

LEAST_PERCENT = 0.01
"""The width of what took no time: of a bar whose width is 0 browsers draw nothing, not even its edge."""

SHORTEST_S = 0.001
"""The shortest axis."""

MARGIN = 0.05
"""The part of a process's time that is shown before and after it."""


class Spanned(Protocol):
    """What has the spans of a process: its journal, or the answers to asks."""

    @property
    def unread(self) -> int: ...

    def spans(self, process: ProcessRecord) -> tuple[TimelineSpan, ...]: ...


class TimelineRow(Record, frozen=True, kw_only=True):
    """One process; `until` is None while it has not ended. Of asks, `asked_by` and `call` are the process
    that asks and its call, and the positions of spans are their numbers. `reason` is why it failed."""

    process: str
    state: str
    asked_by: str = ""
    call: str = ""
    reason: str = ""
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

    def room(self, now_s: float, axis: Axis) -> Box | None:
        """Return the longest part of its bar without a span that is on the axis, where its reason can stand;
        None if that is too short."""
        at, end = max(self.at, axis.at), min(now_s if self.until is None else self.until, axis.until)
        found, longest = at, 0.0
        for span in sorted(self.spans, key=lambda each: each.at):
            if min(span.at, end) - at > longest:
                found, longest = at, min(span.at, end) - at
            at = max(at, now_s if span.until is None else span.until)
        if end - at > longest:
            found, longest = at, end - at
        return axis.box(found, found + longest) if longest >= LEAST_ROOM * axis.length_s else None

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
        """Where the time axis begins. The times of records are cut to milliseconds, those of processes are
        not: a first record may seem to be before the start of its process."""
        return min(self._begins)

    def rows_on(self, axis: Axis, now_s: float) -> list[TimelineRow]:
        """Return the rows of the processes that lived at any time of the axis."""
        return [row for row in self.rows if axis.shows(row.at, now_s if row.until is None else row.until)]

    def until(self, now_s: float) -> float:
        """Return where the time axis ends."""
        ends = [row.until for row in self.rows] + [span.until for row in self.rows for span in row.spans]
        return max(*(now_s if end is None else end for end in ends), *self._begins, self.at + SHORTEST_S)

    @property
    def _begins(self) -> list[float]:
        return [row.at for row in self.rows] + [span.at for row in self.rows for span in row.spans]


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
            reason=in_words(process.reason) if process.state == "failed" else "",
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


class Window(Record, frozen=True, kw_only=True):
    """A part of a timeline, in seconds from its beginning; None: from there, or to its end."""

    since: float | None = None
    until: float | None = None

    def __post_init__(self) -> None:
        if self.since is not None and self.until is not None and self.since >= self.until:
            raise InvalidArgument("until", f"{self.until:g} is not after since={self.since:g}")


WHOLE = Window()


class Axis:
    """The scale of a timeline: times to percent of its width. `origin` is the time of the beginning of what
    it may be a part of."""

    def __init__(self, at: float, until: float, origin: float | None = None) -> None:
        self.at, self.until = at, until
        self.length_s = until - at
        self.origin = at if origin is None else origin

    def box(self, at: float, until: float) -> Box:
        """Return the place of a span; parts beyond the axis are cut off."""
        begin, end = self._percent(at), self._percent(until)
        return Box(f"{begin:.2f}%", f"{max(end - begin, LEAST_PERCENT):.2f}%")

    def shows(self, at: float, until: float) -> bool:
        """Return whether any of a span is on the axis. One in progress may begin after the time of the page,
        which is its end."""
        return at <= self.until and max(at, until) >= self.at

    def ticks(self) -> list[tuple[str, str]]:
        """Return the marks of the axis: their places and their texts, counted from the beginning."""
        step = next((each for each in STEPS_S if self.length_s / each <= MAX_TICKS), 0.0)
        step = step or STEPS_S[-1] * (int(self.length_s / STEPS_S[-1] / MAX_TICKS) + 1)
        # times since the epoch have no more than microseconds
        since, until = round(self.at - self.origin, 6), round(self.until - self.origin, 6)
        first, last = ceil(round(since / step, 6)), floor(round(until / step, 6))
        return [
            (f"{self._percent(self.origin + n * step):.2f}%", offset(n * step))
            for n in range(first, last + 1)
        ]

    def part(self, at: float, until: float) -> Window:
        """Return the part of the timeline from a time to another one, in milliseconds of which none is beyond
        its beginning."""
        since = round(max(0.0, at - self.origin), 3)
        return Window(since=since, until=max(round(until - self.origin, 3), since + SHORTEST_S))

    def moves(self, end: float) -> list[tuple[str, Window]]:
        """Return where one can go from a part of a timeline that ends at `end`, by name."""
        half = self.length_s / 2
        found = [("Zoom in", self.part(self.at + half / 2, self.until - half / 2))]
        if self.at > self.origin:
            begin = max(self.origin, self.at - half)
            found.append(("Earlier", self.part(begin, begin + self.length_s)))
        if self.until < end:
            found.append(("Later", self.part(self.at + half, self.until + half)))
        return found

    def _percent(self, at: float) -> float:
        return min(max((at - self.at) / self.length_s, 0.0), 1.0) * 100


def offset(seconds: float) -> str:
    """Return a time since the beginning.

    >>> offset(0), offset(0.25), offset(90), offset(90.5), offset(7200), offset(200_000)
    ('0 s', '0.25 s', '1:30', '1:30.5', '2:00:00', '2 d 7 h')
    """
    seconds = round(seconds, 3)
    if seconds < 60:
        return f"{seconds:g} s"
    whole, part = divmod(seconds, 1)
    minutes, rest = divmod(int(whole), 60)
    hours, minutes = divmod(minutes, 60)
    if hours >= 24:
        return f"{hours // 24} d {hours % 24} h"
    shown = f"{rest:02}" + f"{part:.3f}"[1:].rstrip("0").rstrip(".")
    return f"{hours}:{minutes:02}:{shown}" if hours else f"{minutes}:{shown}"


def axis_of(timeline: Timeline, now_s: float, window: Window = WHOLE) -> Axis:
    """Return the axis of a part of a timeline that is shown now."""
    origin, end = timeline.at, timeline.until(now_s)
    at = origin + (window.since or 0.0)
    until = end if window.until is None else origin + window.until
    return Axis(at, max(until, at + SHORTEST_S), origin)


def zoom_to(row: TimelineRow, axis: Axis, now_s: float) -> Window:
    """Return the part of the timeline in which a process lived."""
    until = now_s if row.until is None else row.until
    margin = MARGIN * (until - row.at)
    return axis.part(row.at - margin, until + margin)
