"""The query of a descriptor's page."""

from __future__ import annotations

import pytest
import re2
from hypothesis import given, settings
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.inspector.web.descriptor_query import Position, SearchQuery, parse_go, parse_query
from fdstore.model.records import Descriptor
from tests.properties import examples

TEXT = Descriptor(
    fd="fd:1", state="sealed", chars=10_000, bytes=10_000, lines=500, pages=3, page_size=4000,
    source="text", created_at=1.0, producer="triage",
)  # fmt: skip


@pytest.mark.parametrize(
    ("query", "position"),
    [
        ({}, None),
        ({"page": "3"}, Position("page", 3, 3)),
        ({"lines": "120-130"}, Position("line", 120, 130)),
        ({"chars": "5", "page": ""}, Position("char", 5, 5)),
        ({"offset": "0"}, Position("offset", 0, 0)),
    ],
)
def test_a_position_is_a_number_or_a_range(query: dict[str, str], position: Position | None) -> None:
    assert parse_query(query).position == position


@pytest.mark.parametrize(
    "query",
    [
        {"page": "0"}, {"lines": "5-3"}, {"lines": "x"}, {"chars": "-1"}, {"page": "1", "lines": "2"},
        {"page": "9" * 17}, {"q": "a", "from": "x"}, {"q": "a", "context": "-1"}, {"page": "９"},
    ],
)  # fmt: skip
def test_what_is_no_position_is_refused(query: dict[str, str]) -> None:
    with pytest.raises(InvalidArgument):
        parse_query(query)


@pytest.mark.parametrize(
    ("typed", "position"),
    [
        ("120", Position("line", 120, 120)),
        ("#L120-130", Position("line", 120, 130)),
        ("l 7", Position("line", 7, 7)),
        ("p3", Position("page", 3, 3)),
        ("Page 2", Position("page", 2, 2)),
        ("c500-520", Position("char", 500, 520)),
        ("1,000", Position("line", 500, 500)),
        ("0", Position("line", 1, 1)),
        ("50%", Position("page", 2, 2)),
        ("end", Position("page", 3, 3)),
        ("start", Position("line", 1, 1)),
        ("9" * 20, Position("line", 500, 500)),
    ],
)
def test_a_person_types_a_position_and_gets_into_the_content(typed: str, position: Position) -> None:
    assert parse_go(typed, TEXT) == position


@pytest.mark.parametrize(
    ("typed", "first"), [("4096", 4096), ("0x1f0", 0x1F0), ("end", 9999), ("1e9", None), ("99999", 9999)]
)
def test_bytes_are_reached_by_offset(typed: str, first: int | None) -> None:
    if first is None:
        with pytest.raises(InvalidArgument):
            parse_go(typed, TEXT, is_hex=True)
    else:
        assert parse_go(typed, TEXT, is_hex=True) == Position("offset", first, first)


@settings(max_examples=examples(40))
@given(st.text(max_size=30))
def test_whatever_is_typed_is_a_position_of_the_content_or_refused(typed: str) -> None:
    for is_hex in (False, True):
        try:
            found = parse_go(typed, TEXT, is_hex=is_hex)
        except InvalidArgument:
            continue
        totals = {"page": 3, "line": 500, "char": 10_000, "offset": 9999}
        assert (found.unit == "offset") == is_hex
        assert int(not is_hex) <= found.first <= found.last <= totals[found.unit]


@given(st.text(min_size=1).filter(lambda text: "\n" not in text))
def test_a_search_that_is_no_regular_expression_finds_what_was_typed(typed: str) -> None:
    assert re2.search(SearchQuery(q=typed).pattern, f"a{typed}z")
