"""Search and its stored hits on a real Redis: page boundaries, parts, long lines, both clients."""

from __future__ import annotations

import io
from typing import Any

import pytest

from fdstore.client import Process
from fdstore.errors import InvalidArgument, NotFound, PositionOutOfRange
from fdstore.records import SearchResult
from fdstore.store.contents.searching import search_extract
from fdstore.text.selection import selector


def numbered(result: SearchResult) -> list[tuple[int, str]]:
    return [(hit.line, hit.text) for hit in result.hits]


def exactly(proc: Process, chars: str) -> str:
    """Return the text of a hit's range in the content."""
    return proc.read(f"fd:1#C{chars}").text


@pytest.mark.parametrize("page_size", [1, 2, 7, 4000])
def test_a_match_may_lie_across_pages_of_any_size(proc: Process, page_size: int):
    proc.create("eins\nzwei und drei\n\nvier é drei", page_size=page_size)

    result = proc.search("fd:1", "(und|é) drei")

    assert numbered(result) == [(2, "zwei und drei"), (4, "vier é drei")]
    assert (result.matches, result.shown, result.lines_searched) == (2, 2, 4)
    assert [exactly(proc, hit.chars) for hit in result.hits] == ["und drei", "é drei"]
    assert [hit.column for hit in result.hits] == [6, 6]


def test_matches_are_counted_to_the_end_beyond_those_shown(proc: Process):
    text = "".join(f"{number} {'hit' if number % 3 == 0 else 'miss'} ü\n" for number in range(1, 100_001))
    proc.create(text)

    result = proc.search("fd:1", "h.t", max_matches=2)

    assert numbered(result) == [(3, "3 hit ü"), (6, "6 hit ü")]
    assert (result.matches, result.shown, result.lines_searched) == (33_333, 2, 100_000)


@pytest.mark.parametrize(
    ("part", "lines"),
    [
        ("L2-3", [2, 3]),
        ("L4-99", [4]),
        ("P2", [2]),
        ("P2-3", [2, 3]),
        ("C3-12", [1, 2]),
        ("C10-10", [2]),
    ],
)
def test_a_selector_bounds_the_search_and_numbers_stay_those_of_the_content(
    proc: Process, part: str, lines: list[int]
):
    proc.create("1 aéa\n2 aéa\n3 aéa\n4 aéa\n", page_size=7)

    result = proc.search(f"fd:1#{part}", "é")

    assert [hit.line for hit in result.hits] == lines
    assert all(exactly(proc, hit.chars) == "é" for hit in result.hits)


def test_only_the_inside_of_a_line_cut_by_the_part_is_searched(proc: Process):
    proc.create("abc def\nabc def\n")

    assert numbered(proc.search("fd:1#C5-10", "^")) == [(1, "def"), (2, "ab")]
    assert proc.search("fd:1#C5-10", "abc").matches == 0


def test_context_stays_inside_the_part(proc: Process):
    proc.create("1\n2\n3 hit\n4\n5\n", page_size=2)

    [hit] = proc.search("fd:1#L3-4", "hit", context=5).hits

    assert [near.line for near in hit.before] == []
    assert [(near.line, near.text) for near in hit.after] == [(4, "4")]


def test_context_of_neighbouring_hits_overlaps(proc: Process):
    proc.create("a\nhit\nhit\nb\n", page_size=3)

    first, second = proc.search("fd:1", "hit", context=1).hits

    assert [near.line for near in (*first.before, *first.after)] == [1, 3]
    assert [near.line for near in (*second.before, *second.after)] == [2, 4]


def test_nothing_is_found_in_an_empty_content(proc: Process):
    proc.create("")

    result = proc.search("fd:1", "^$")

    assert (result.hits, result.matches, result.lines_searched) == ((), 0, 0)


def test_a_line_of_megabytes_is_one_line_and_is_shown_around_its_match(proc: Process):
    line = "é" * 1_500_000 + "NEEDLE" + "z" * 1_500_000
    proc.create(f"first\n{line}\nNEEDLE")

    result = proc.search("fd:1", "NEEDLE.*z$|^NEEDLE", context=1)
    long, last = result.hits

    assert (long.line, last.line, result.lines_searched) == (2, 3, 3)
    assert long.text[long.column - 1 :].startswith("NEEDLE")
    assert len(long.text) + sum(long.left_out) == len(line)
    assert long.chars == f"{6 + 1_500_001}-{6 + len(line)}"
    assert len(last.before[0].text) + last.before[0].left_out == len(line)


def test_case_is_ignored_beyond_ascii(proc: Process):
    proc.create("ÉCOLE\nécole\n", page_size=3)

    assert proc.search("fd:1", "éCOle", ignore_case=True).matches == 2
    assert proc.search("fd:1", "école").matches == 1


def test_an_invalid_search_is_an_error(proc: Process):
    proc.create("one\n")

    with pytest.raises(NotFound):
        proc.search("fd:2", "x")
    with pytest.raises(PositionOutOfRange):
        proc.search("fd:1#L2", "x")
    with pytest.raises(InvalidArgument, match="missing"):
        proc.search("fd:1", "(")
    with pytest.raises(InvalidArgument, match="max_matches"):
        proc.search("fd:1", "x", max_matches=0)
    with pytest.raises(InvalidArgument, match="context"):
        proc.search("fd:1", "x", context=101)
    with pytest.raises(InvalidArgument, match="ignore_case"):
        proc.search("fd:1", "x", ignore_case=1)


def test_an_awaitable_search_returns_the_same(proc: Process, awaited: Any):
    proc.create("one\ntwo\n" * 200_000)
    expected = proc.search("fd:1", "o$", context=1)

    assert awaited(lambda mine: mine.search("fd:1", "o$", context=1)) == expected
    assert expected.matches == 200_000


# Hits that are stored


def stored(proc: Process, written: str, pattern: str, **options):
    selection = selector(written)
    return proc.store.run(search_extract(proc.handle, selection.fd, selection.part, pattern, **options))


def test_all_hits_are_stored_as_grep_prints_them(proc: Process):
    proc.create("1\n2 hit\n3\n4\n5\n6 hit\n7 hit", page_size=5)

    result, made = stored(proc, "fd:1", "hit", context=1, max_matches=1)

    assert (result.shown, result.matches) == (1, 3)
    assert (made.fd, made.source, made.page_size, made.origin) == ("fd:2", "search", 5, None)
    assert proc.read("fd:2", read_all=True).text == "1-1\n2:2 hit\n3-3\n--\n5-5\n6:6 hit\n7:7 hit\n"


def test_stored_hits_are_whole_lines_of_any_length_and_number(proc: Process):
    line = "é" * 300_000
    text = f"{line}X\n" + "no\n" + "".join(f"{number} X\n" for number in range(100_000))
    proc.ingest(io.BytesIO(text.encode()), "test")

    result, made = stored(proc, "fd:1", "X$")

    expected = [f"1:{line}X\n", *(f"{number + 3}:{number} X\n" for number in range(100_000))]
    assert result.matches == 100_001
    assert proc.read(made.fd, read_all=True).text == "".join(expected)


def test_no_hits_are_stored_as_an_empty_content(proc: Process):
    proc.create("one\n")

    result, made = stored(proc, "fd:1", "two")

    assert (result.matches, made.chars, made.lines, made.pages) == (0, 0, 0, 1)


def test_a_repeated_search_call_stores_its_hits_once(proc: Process):
    proc.create("one\ntwo\n")

    _, first = stored(proc, "fd:1#L2", "t", call_id="call-1")
    _, again = stored(proc, "fd:1#L2", "t", call_id="call-1")

    assert first == again
    assert [d.fd for d in proc.list()] == ["fd:1", "fd:2"]
    assert proc.read("fd:2").text == "2:two\n"
