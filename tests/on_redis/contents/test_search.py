"""Search and its stored hits on a real Redis: page boundaries, parts, long lines, both clients."""

from __future__ import annotations

import io

import pytest

from fdstore.client import Process
from fdstore.model.records import SearchResult
from fdstore.store.contents import searching
from fdstore.store.contents.searching import search_extract, search_or_near
from fdstore.text.selection import selector
from tests.round_trips import Tally, tallied


def numbered(result: SearchResult) -> list[tuple[int, str]]:
    return [(hit.line, hit.text) for hit in result.hits]


def exactly(proc: Process, chars: str) -> str:
    """Return the text of a hit's range in the content."""
    return proc.read(f"fd:1#C{chars}").text


def test_case_is_ignored_beyond_ascii(proc: Process):
    proc.create("ÉCOLE\nécole\n", page_size=3)

    assert proc.search("fd:1", "éCOle", ignore_case=True).matches == 2
    assert proc.search("fd:1", "école").matches == 1


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


@pytest.mark.parametrize(("lines", "reads"), [(1000, 1), (1_000_000, 2)])
def test_a_short_text_is_read_once_to_learn_what_it_has_instead(proc: Process, lines: int, reads: int):
    made = proc.create("lost\n" * lines)
    tally = Tally()

    operation = search_or_near(proc.handle, "fd:1", None, "LOST")
    _, near = proc.store.run(tallied(operation, tally))

    assert near is not None
    assert near.ignoring_case == lines
    assert tally.reply_bytes // made.bytes == reads


def test_a_very_large_text_is_not_looked_at_again(proc: Process, monkeypatch: pytest.MonkeyPatch):
    made = proc.create("lost\n" * 1000)
    monkeypatch.setattr(searching, "MAX_AGAIN_BYTES", made.bytes - 1)

    _, near = proc.store.run(search_or_near(proc.handle, "fd:1", None, "LOST"))

    assert near is None


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


@pytest.mark.thorough("many megabytes")
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
