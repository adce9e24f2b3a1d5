"""What an agent has read of each descriptor, from the results in its conversation."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.agent.conversation import PRELOADED, Conversation, Start
from fdstore.elements.coverage import ReadParts, count_in, coverage, merge
from fdstore.elements.shown_result import ShownResult

numbers = st.integers(1, 40)
intervals = st.lists(st.tuples(numbers, numbers).map(lambda pair: (min(pair), max(pair))), max_size=8)


def shown(text: object, tool: str = "read_fd", *, is_error: bool = False) -> ShownResult:
    return ShownResult("turn1:a", 1, tool, {}, text, is_error)


def content(attributes: str, fd: str = "fd:1") -> str:
    return f'<fd_content fd="{fd}" {attributes}>\nthe text\n</fd_content>'


@given(intervals)
def test_merged_intervals_hold_the_same_numbers_once(some: list[tuple[int, int]]) -> None:
    merged = merge(some)
    inside = {number for first, last in some for number in range(first, last + 1)}

    assert {number for first, last in merged for number in range(first, last + 1)} == inside
    assert count_in(merged) == len(inside)
    assert count_in(merged, 20) == len([number for number in inside if number <= 20])
    assert all(before[1] + 1 < after[0] for before, after in itertools.pairwise(merged))


@pytest.mark.parametrize(
    ("attributes", "parts"),
    [
        ('page="3" pages="9" chars="20-29"', ReadParts(pages=((3, 3),))),
        ('page="all" pages="9" chars="1-90"', ReadParts(pages=((1, 9),))),
        ('pages="9" chars="20-49" mode="page" start="3" count="3"', ReadParts(pages=((3, 5),))),
        ('pages="9" chars="20-49" mode="line" start="3" count="3"', ReadParts(chars=((20, 49),))),
        ('pages="9" chars="20-49" mode="char" start="20" count="30"', ReadParts(chars=((20, 49),))),
        ('pages="1" chars="2-4" mode="char" start="2" count="3"', ReadParts(pages=((1, 1),))),
        ('pages="1" chars="0-0" mode="line" start="1" count="1"', ReadParts(pages=((1, 1),))),
    ],
)
def test_a_result_tells_which_part_it_shows(attributes: str, parts: ReadParts) -> None:
    assert coverage([shown(content(attributes))]) == {"fd:1": parts}


def test_parts_of_many_reads_are_put_together() -> None:
    reads = [content(f'page="{number}" pages="9"', fd) for number in (4, 2, 3) for fd in ("fd:1", "fd:20")]

    assert coverage(map(shown, reads)) == dict.fromkeys(("fd:1", "fd:20"), ReadParts(pages=((2, 4),)))


@pytest.mark.parametrize(
    "result",
    [
        shown(content('page="1" pages="9"'), is_error=True),
        shown(content('page="1" pages="9"'), tool="my_function"),
        shown(content('page="1" pages="9"', "name:notes")),
        shown('<fd_result fd="fd:1" pages="9"><preview>x</preview></fd_result>'),
        shown('<fd_search fd="fd:1" matches="3">'),
        shown('<fd_extraction source_fd="fd:1" new_fd="fd:2">'),
        shown([{"type": "text", "text": '<fd_content fd="fd:1" kind="bytes"/>'}, {"type": "image"}]),
        shown(content('kind="bytes" size_bytes="12"')),
        shown("a quote of " + content('page="1" pages="9"')),
    ],
    ids=["error", "function", "name", "preview", "search", "extraction", "picture", "bytes", "quote"],
)
def test_what_shows_no_page_does_not_count(result: ShownResult) -> None:
    assert coverage([result]) == {}


def test_huge_and_damaged_numbers_cost_nothing_and_count_no_page_that_is_not_there() -> None:
    big = 10**15
    found = coverage(
        [
            shown(content(f'page="all" pages="{big}"')),
            shown(content(f'pages="9" mode="page" start="{big}" count="{big}"', "fd:2")),
            shown(content(f'pages="9" chars="{big}-{big}"', "fd:3")),
            shown(content('page="1" pages="9"', "fd:" + "9" * 400)),
            *(shown(content(f'page="{bad}" pages="9" chars="{bad}-{bad}"')) for bad in ("0", "-1", "x", "٣")),
        ]
    )

    assert list(found) == ["fd:1", "fd:2", "fd:3"]
    assert count_in(found["fd:1"].pages, 9) == 9
    assert count_in(found["fd:2"].pages, 9) == 0


def test_a_preloaded_text_that_the_first_prompt_shows_whole_is_read() -> None:
    small, large = content('page="all" pages="2"'), '<fd_result fd="fd:2" pages="9">\n</fd_result>'
    quoted = content('page="1" pages="9"', "fd:3")
    start = Start(system=f"Results look so:\n{quoted}\n\n{PRELOADED}{small}\n{large}", content="Go.")

    assert Conversation([start]).read_parts() == {"fd:1": ReadParts(pages=((1, 2),))}
