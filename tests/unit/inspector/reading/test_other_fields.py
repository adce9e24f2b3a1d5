"""A new field of a descriptor is seen by people without a line of code for it."""

from __future__ import annotations

from typing import Any

from fdstore.cli.contents import _described
from fdstore.inspector.reading.other_fields import LAID_OUT, other_fields
from fdstore.model.records import Count, Descriptor, Moment

FACTS: dict[str, Any] = {
    "fd": "fd:1",
    "state": "sealed",
    "chars": 3,
    "bytes": 3,
    "lines": 1,
    "pages": 1,
    "page_size": 100,
    "source": "notes",
    "created_at": 1_795_363_200.0,
    "producer": "triage",
}


class Newer(Descriptor, frozen=True, kw_only=True):
    read_at: Moment | None = None
    times_read: Count = 0
    owner: str | None = None


def test_a_field_that_no_screen_lays_out_is_shown_by_its_name_and_type() -> None:
    found = Newer(**FACTS, read_at=1_795_363_201.0, times_read=7)

    assert other_fields(found) == [("read", "2026-11-22T16:00:01Z"), ("times read", "7")]
    assert _described(found, 1_795_363_300.0)[-2:] == other_fields(found)


def test_every_field_of_a_descriptor_is_shown_once() -> None:
    assert set(Descriptor.__struct_fields__) == LAID_OUT
    assert other_fields(Descriptor(**FACTS)) == []
