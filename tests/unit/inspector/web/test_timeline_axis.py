"""The axis of a timeline: offsets from its beginning, parts of it, and where the reason of a failure
stands."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.inspector.web.timeline import (
    MAX_TICKS,
    Axis,
    Timeline,
    TimelineRow,
    Window,
    axis_of,
    zoom_to,
)
from fdstore.inspector.web.timeline_spans import TimelineSpan


def row(at: float, until: float | None, *spans: TimelineSpan, name: str = "t") -> TimelineRow:
    return TimelineRow(process=name, state="failed", at=at, until=until, spans=spans, reason="no disk")


def call(at: float, until: float | None) -> TimelineSpan:
    return TimelineSpan(kind="call", label="get", at=at, until=until, position=1)


LINE = Timeline(rows=(row(1000.0, 1060.0), row(1020.0, 1030.0, name="t.1"), row(1055.0, None, name="t.2")))

NOW_S = 1_795_947_111.918
"""A time since the epoch: the difference of two has not all digits."""


def test_marks_are_offsets_from_the_start_also_in_a_part() -> None:
    whole, part = axis_of(LINE, 1060.0), axis_of(LINE, 1060.0, Window(since=20.0, until=21.0))

    assert [label for _, label in whole.ticks()] == ["0 s", "10 s", "20 s", "30 s", "40 s", "50 s", "1:00"]
    assert [label for _, label in part.ticks()] == ["20 s", "20.2 s", "20.4 s", "20.6 s", "20.8 s", "21 s"]
    now = Timeline(rows=(row(NOW_S, NOW_S + 1),))
    assert axis_of(now, NOW_S, Window(since=0.2, until=0.5)).ticks()[0] == ("0.00%", "0.2 s")
    assert (whole.ticks()[1][0], part.ticks()[0][0]) == ("16.67%", "0.00%")


def test_what_took_no_time_has_a_width_that_browsers_draw() -> None:
    """Regression: lost workers, and calls that were short beside their tree, were not seen."""
    assert axis_of(LINE, 1060.0).box(1020.0, 1020.0).width == "0.01%"


TIMES = st.floats(0.0, 2.0, allow_nan=False)


@given(st.lists(st.tuples(TIMES, TIMES, st.none() | TIMES), min_size=1, max_size=5), TIMES)
def test_the_whole_axis_shows_every_span_whatever_the_clocks_say(
    spans: list[tuple[float, float, float | None]], now: float
) -> None:
    """Records have whole milliseconds: one that follows a process's start at once may be before it."""
    drawn = [call(NOW_S + at, None if took is None else NOW_S + at + took) for _, at, took in spans]
    line = Timeline(
        rows=tuple(row(NOW_S + at, None, span) for (at, _, _), span in zip(spans, drawn, strict=True))
    )
    axis = axis_of(line, NOW_S + now)

    assert all(axis.shows(each.at, NOW_S + now if each.until is None else each.until) for each in drawn)


def test_a_part_shows_what_lived_in_it_and_cuts_off_the_rest() -> None:
    part = axis_of(LINE, 1060.0, Window(since=10.0, until=20.5))

    assert [each.process for each in LINE.rows_on(part, 1060.0)] == ["t", "t.1"]
    assert part.box(1000.0, 1060.0).width == "100.00%"
    assert not part.shows(1000.0, 1009.0)


def test_one_zooms_to_a_process_with_a_margin_and_goes_in_and_on() -> None:
    whole = axis_of(LINE, 1060.0)
    to = zoom_to(LINE.rows[1], whole, 1060.0)
    part = axis_of(LINE, 1060.0, to)

    assert to == Window(since=19.5, until=30.5)
    assert [name for name, _ in whole.moves(1060.0)] == ["Zoom in"]
    assert dict(part.moves(1060.0)) == {
        "Zoom in": Window(since=22.25, until=27.75),
        "Earlier": Window(since=14.0, until=25.0),
        "Later": Window(since=25.0, until=36.0),
    }
    assert dict(axis_of(LINE, 1060.0, Window(since=1.0, until=11.0)).moves(1060.0))["Earlier"] == Window(
        since=0.0, until=10.0
    )


def test_a_part_that_ends_before_it_begins_is_refused_and_one_beyond_the_end_is_empty() -> None:
    with pytest.raises(InvalidArgument, match="until"):
        Window(since=3.0, until=3.0)
    assert LINE.rows_on(axis_of(LINE, 1060.0, Window(since=900.0)), 1060.0) == []


@given(st.floats(0.001, 1e7), st.floats(0, 1e7))
def test_there_are_few_marks_within_the_axis(length: float, since: float) -> None:
    axis = Axis(1e9 + since, 1e9 + since + length, 1e9)

    assert len(axis.ticks()) <= MAX_TICKS + 1
    assert all(0 <= float(place.removesuffix("%")) <= 100 for place, _ in axis.ticks())


def test_a_reason_stands_in_the_longest_free_part_of_its_bar() -> None:
    axis = Axis(1000.0, 1100.0)

    busy = row(1000.0, 1100.0, call(1010.0, 1040.0), call(1060.0, 1065.0))
    free = busy.room(1100.0, axis)
    full = row(1000.0, 1100.0, call(1000.0, 1100.0)).room(1100.0, axis)
    short = row(1000.0, 1005.0).room(1100.0, axis)

    assert free is not None
    assert (free.x, free.width) == ("65.00%", "35.00%")
    assert (full, short) == (None, None)
