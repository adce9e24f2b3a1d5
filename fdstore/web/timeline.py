"""A timeline of processes and their tool calls, and its geometry. Pure.

A row is one process. Its bar is its life; in it lie the answers of the model and the tool calls, as far
as the journal says when they were. The time axis goes from the first start to the last end, or to now
while a process has not ended: what grows with the time is computed when the page is rendered, so it is
no change of the data.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Literal

import msgspec

from fdstore.inspection.entries import ConversationEntry
from fdstore.lifecycle import ENDED
from fdstore.records import ProcessRecord, Record

MAX_ROWS = 60
MAX_SPANS = 80
"""Spans of one row."""

STEPS_S = (
    0.001,
    0.01,
    0.1,
    0.5,
    1,
    2,
    5,
    10,
    30,
    60,
    120,
    300,
    600,
    1800,
    3600,
    7200,
    21_600,
    43_200,
    86_400,
)
"""Possible distances of marks on the time axis; beyond them, multiples of the last."""

MAX_TICKS = 8


class Span(Record, frozen=True, kw_only=True):
    """An answer of the model, a tool call, or a mark without a length: a worker that was lost, a failed
    try."""

    kind: Literal["answer", "call", "loss", "retry"]
    label: str
    at: float
    until: float
    position: int
    is_error: bool = False


class Row(Record, frozen=True, kw_only=True):
    """One process; `until` is None while it has not ended."""

    process: str
    state: str
    program: str | None = None
    at: float
    until: float | None
    spans: tuple[Span, ...] = ()


class Timeline(Record, frozen=True, kw_only=True):
    """The rows, and how many processes have none since they are too many."""

    rows: tuple[Row, ...]
    left_out: int = 0

    @property
    def at(self) -> float:
        return min(row.at for row in self.rows)

    def until(self, now_s: float) -> float:
        """Return where the time axis ends."""
        ends = [now_s if row.until is None else row.until for row in self.rows]
        return max([*ends, *(span.until for row in self.rows for span in row.spans), self.at + 0.001])


def make_timeline(
    processes: Sequence[ProcessRecord], entries: Mapping[str, Sequence[ConversationEntry]]
) -> Timeline | None:
    """Return the timeline of these processes; None if none of them has started."""
    started = [process for process in processes if process.started_at is not None]
    if not started:
        return None
    rows = tuple(
        Row(
            process=process.id,
            state=process.state,
            program=process.program,
            at=process.started_at or 0.0,
            until=process.ended_at if process.state in ENDED else None,
            spans=tuple(_spans(entries.get(process.id, ()))[-MAX_SPANS:]),
        )
        for process in started[:MAX_ROWS]
    )
    return Timeline(rows=rows, left_out=len(processes) - len(rows))


def _spans(entries: Iterable[ConversationEntry]) -> list[Span]:
    found = []
    for each in entries:
        if each.at is None:
            continue
        took = each.duration_s or 0.0
        match each.kind:
            case "answer" if took:
                label = f"answer {each.number}" if each.number else "answer"
                found.append(_span(each, "answer", label, each.at - took, each.at))
            case "result":
                found.append(_span(each, "call", each.tool or "a call", each.at - took, each.at))
            case "attempt" if each.before == "loss":
                found.append(_span(each, "loss", f"lost; attempt {each.number}", each.at, each.at))
            case "retry":
                found.append(_span(each, "retry", "the model failed", each.at, each.at))
    return found


def _span(
    entry: ConversationEntry,
    kind: Literal["answer", "call", "loss", "retry"],
    label: str,
    at: float,
    until: float,
) -> Span:
    return Span(
        kind=kind, label=label[:80], at=at, until=until, position=entry.position, is_error=entry.is_error
    )


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
