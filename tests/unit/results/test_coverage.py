"""The parts of each descriptor that an agent has read, from the facts of its results."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.agents.loop.conversation import Conversation, Start
from fdstore.elements import render, render_search
from fdstore.elements.build import Rendered
from fdstore.elements.facts import ResultFacts
from fdstore.elements.kinds import FdContent
from fdstore.model.records import SearchResult
from fdstore.results.coverage import ReadParts, count_in, coverage, merge
from tests.unit.rendering import descriptor, make_slice

numbers = st.integers(1, 40)
intervals = st.lists(st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair))), max_size=8)


def content(fd: str = "fd:1", **changes: object) -> Rendered:
    """A result of `read_fd`; by default it shows page 3 of 9."""
    return render.fd_content(make_slice("the text", fd=fd, **{"page": 3, "pages": 9, **changes}))


@given(intervals)
def test_merged_intervals_hold_the_same_numbers_once(some: list[tuple[int, int]]) -> None:
    merged = merge(some)
    inside = {number for first, last in some for number in range(first, last + 1)}

    assert {number for first, last in merged for number in range(first, last + 1)} == inside
    assert count_in(merged) == len(inside)
    assert count_in(merged, 20) == len([number for number in inside if number <= 20])
    assert all(before[1] + 1 < after[0] for before, after in itertools.pairwise(merged))


@pytest.mark.parametrize(
    ("part", "read"),
    [
        ({}, ReadParts(pages=((3, 3),))),
        ({"page": "all"}, ReadParts(pages=((1, 9),))),
        ({"page": None, "start": 3, "count": 3}, ReadParts(pages=((3, 5),))),
        ({"page": None, "mode": "line", "chars": "20-49"}, ReadParts(chars=((20, 49),))),
        ({"page": None, "mode": "char", "chars": "20-49"}, ReadParts(chars=((20, 49),))),
        ({"page": None, "mode": "char", "chars": "2-4", "pages": 1}, ReadParts(pages=((1, 1),))),
    ],
    ids=str,
)
def test_a_result_carries_which_part_it_shows(part: dict[str, object], read: ReadParts) -> None:
    assert coverage([content(**part).facts]) == {"fd:1": read}


def test_parts_of_many_reads_are_put_together() -> None:
    reads = [content(fd, page=number).facts for number in (4, 2, 3) for fd in ("fd:1", "fd:20")]

    assert coverage(reads) == dict.fromkeys(("fd:1", "fd:20"), ReadParts(pages=((2, 4),)))


FOUND = SearchResult(fd="fd:1", pattern="x", hits=(), shown=0, matches=0, total_hits=0, lines_searched=9)


@pytest.mark.parametrize(
    "rendered",
    [
        content("name:notes"),
        render.fd_content(make_slice("", page=None, mode="char", chars="0-0", pages=9)),
        render.fd_result(descriptor(), make_slice("x"), None, "Stored.", 7),
        render_search.fd_search(FOUND),
        render.fd_extraction("fd:1", descriptor("fd:2"), "page", 1, 2),
        render.fd_content_of_bytes(descriptor(kind="bytes", media_type="image/png")),
    ],
    ids=["name", "nothing", "preview", "search", "extraction", "picture"],
)
def test_what_shows_no_page_does_not_count(rendered: Rendered) -> None:
    assert coverage([rendered.facts]) == {}


def test_huge_numbers_cost_nothing_and_count_no_page_that_is_not_there() -> None:
    big = 10**15
    found = coverage(
        [
            content(page="all", pages=big).facts,
            content("fd:2", page=None, start=big, count=big).facts,
            ResultFacts(shown=(FdContent(fd="fd:3", pages=9, chars=f"{big}-{big}"),)),
        ]
    )

    assert list(found) == ["fd:1", "fd:2", "fd:3"]
    assert count_in(found["fd:1"].pages, 9) == 9
    assert count_in(found["fd:2"].pages, 9) == 0


def test_a_preloaded_text_that_the_first_prompt_shows_whole_is_read() -> None:
    quoted = content("fd:3")
    start = Start(system=f"Results look so:\n{quoted}", content="Go.", preloads=content(page="all").facts)

    assert Conversation([start]).read_parts() == {"fd:1": ReadParts(pages=((1, 9),))}
