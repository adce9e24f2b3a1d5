"""The exact elements of searches, produced by a real toolset."""

from __future__ import annotations

import re
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore import FDConfig, Toolset
from fdstore.client import Process
from tests.on_redis.conformance.calling import LINES, TEXT_TOOLS, show, show_element
from tests.properties import examples
from tests.slices import texts

# fd_search


@pytest.mark.parametrize(
    ("arguments", "attributes", "body"),
    [
        pytest.param(
            {"pattern": "5$", "context": 1, "max_matches": 2},
            'pattern="5$" matches="10" shown="2" lines_searched="100" more="fd:1#L16-100"',
            "4-line 4\n5:line 5\n6-line 6\n--\n14-line 14\n15:line 15\n16-line 16",
            id="with context",
        ),
        pytest.param(
            {"pattern": "[13]7"},
            'pattern="[13]7" matches="2" shown="2" lines_searched="100"',
            "17:line 17\n37:line 37",
            id="without context",
        ),
        pytest.param(
            {"pattern": "x"}, 'pattern="x" matches="0" shown="0" lines_searched="100"', "", id="no match"
        ),
    ],
)
def test_fd_search_prints_as_grep_does(
    proc: Process, tools: Toolset, arguments: dict[str, Any], attributes: str, body: str
) -> None:
    proc.create(LINES)

    assert show(tools, "search_fd", fd="fd:1", **arguments) == (
        f'<fd_search fd="fd:1" {attributes}>\n{body}\n</fd_search>'
    )


@pytest.mark.parametrize(
    ("text", "pattern", "attributes"),
    [
        ("a b a\n" * 3, "a", 'matches="3" hits="6" shown="3"'),
        ("a b a " * 20_000, "a", 'matches="1" hits="40000" shown="1"'),
        ("a b a " * 20_000, "[ac]", 'matches="1" hits="40000" shown="1"'),
        ("a b a " * 20_000, "[abc]", 'matches="1" hits="50000+" shown="1"'),
        ("a b\nb a\n", "[ac]", 'matches="2" shown="2"'),
    ],
)
def test_hits_are_counted_where_a_line_has_several(
    proc: Process, tools: Toolset, text: str, pattern: str, attributes: str
) -> None:
    made = proc.create(text)

    found = show(tools, "search_fd", fd="fd:1", pattern=pattern)

    assert found.startswith(
        f'<fd_search fd="fd:1" pattern="{pattern}" {attributes} lines_searched="{made.lines}">'
    )


def test_a_long_line_is_cut_around_the_hit_and_marked(proc: Process, tools: Toolset) -> None:
    proc.create("a" * 1000 + "HERE" + "b" * 1000)

    found = show_element(tools, "search_fd", fd="fd:1", pattern="HERE")

    assert found.body == (
        "1:[867 characters left out]" + "a" * 133 + "HERE" + "b" * 263 + "[737 characters left out]"
    )


@pytest.mark.parametrize(
    ("pattern", "ignore_case", "body"),
    [
        ("Lost", False, "No match; ignore_case=true finds 2."),
        ("^LOST .*", False, "No match; ignore_case=true finds 1."),
        ("conection", False, 'No "conection"; the text has "connection".'),
        ("conection", True, 'No "conection"; the text has "connection".'),
        ("Lost 7", True, ""),
        ("nothing", False, ""),
    ],
)
@pytest.mark.parametrize("size", [1, 40_000])
def test_a_search_without_a_match_says_what_the_text_has_instead(
    proc: Process, tools: Toolset, pattern: str, ignore_case: bool, body: str, size: int
) -> None:
    proc.create("lost the connection\nthe connection is lost\n" + "another line of the text\n" * size)

    found = show_element(tools, "search_fd", fd="fd:1", pattern=pattern, ignore_case=ignore_case)
    elsewhere = show_element(tools, "search_fd", fd="fd:1#L3", pattern=pattern, ignore_case=ignore_case)

    assert (found["matches"], found.body) == ("0", body)
    assert elsewhere.body == ""


def test_an_open_stream_that_has_no_match_yet_says_only_so(proc: Process, tools: Toolset) -> None:
    stream = proc.open_stream()
    stream.write("lost\n")
    stream.flush()
    open_yet = show_element(tools, "search_fd", fd=stream.fd, pattern="LOST")
    stream.end()

    ended = show_element(tools, "search_fd", fd=stream.fd, pattern="LOST")

    assert (open_yet.body, ended.body) == ("", "No match; ignore_case=true finds 1.")


def test_a_very_long_line_says_where_to_read_and_search_next(proc: Process, tools: Toolset) -> None:
    line = "a" * 4000 + "HERE" + "b" * 3000 + "HERE" + "c" * 2000
    proc.create(f"first\n{line}\nlast\n")

    found = show_element(tools, "search_fd", fd="fd:1", pattern="HERE")
    way = (found.body or "").splitlines()[-1]
    around, following = re.findall("fd:1#C[0-9-]+", way)
    read = show_element(tools, "read_fd", fd=around)
    next_hit = show_element(tools, "search_fd", fd=following, pattern="HERE")

    assert way == (
        "Line 2 is long: read fd:1#C3341-5340 around its first hit, or search fd:1#C4011-9014 for the next."
    )
    assert "aHEREb" in (read.body or "")
    assert (next_hit["matches"], "bHEREc" in (next_hit.body or "")) == ("1", True)


@pytest.mark.parametrize(
    ("enabled", "way"),
    [
        (["read_fd", "search_fd"], "read fd:1#C1-2000 around its first hit"),
        (["search_fd"], ""),
        (
            ["read_fd", "search_fd", "run_python"],
            "read fd:1#C1-2000 around its first hit, or take it apart with Python",
        ),
    ],
)
def test_the_way_on_in_a_long_line_is_one_of_the_tools_at_hand(
    proc: Process, enabled: list[Any], way: str
) -> None:
    tools = Toolset(proc, enabled=enabled)
    proc.create("x" + "a" * 5000)
    proc.create("x" + "a" * 1000)

    found = show_element(tools, "search_fd", fd="fd:1", pattern="^x")
    shorter = show_element(tools, "search_fd", fd="fd:2", pattern="^x")

    assert (found.body or "").splitlines()[1:] == ([f"Line 1 is long: {way}."] if way else [])
    assert len((shorter.body or "").splitlines()) == 1


@pytest.mark.parametrize(
    ("fd", "first"), [("fd:1", 1), ("fd:1#L20-80", 20), ("fd:1#P3-9", 5), ("fd:1#C150-700", 21)]
)
def test_following_more_finds_every_match_once(proc: Process, tools: Toolset, fd: str, first: int) -> None:
    proc.create(LINES, page_size=20)
    whole = show_element(tools, "search_fd", fd=fd, pattern="line")
    numbers: list[int] = []
    next_part: str | None = fd

    while next_part:
        found = show_element(tools, "search_fd", fd=next_part, pattern="line", max_matches=7)
        numbers += [int(line.partition(":")[0]) for line in (found.body or "").splitlines()]
        next_part = found.attributes.get("more")

    assert numbers == list(range(first, first + len(numbers)))
    assert len(numbers) == int(whole["matches"])


@pytest.mark.parametrize(
    ("part", "more"),
    [
        ("#C1-9", "#C4-9"),  # ends inside the third line
        ("#P1-2", "#C4-14"),
        ("#C1-18", "#L2-3"),  # ends with it
        ("#L1-3", "#L2-3"),
        ("#P1-3", "#L2-4"),
    ],
)
def test_following_more_stops_where_a_part_ends_inside_a_line(
    proc: Process, tools: Toolset, part: str, more: str
) -> None:
    proc.create("é1\né2\né3 é4 é5 é6\né7\n", page_size=8)

    found = show_element(tools, "search_fd", fd=f"fd:1{part}", pattern="é[126]", max_matches=1)
    rest = show_element(tools, "search_fd", fd=found["more"], pattern="é[126]")

    assert found["more"] == f"fd:1{more}"
    assert int(rest["matches"]) == int(found["matches"]) - 1


@given(text=texts, page_size=st.integers(1, 5), data=st.data())
@settings(max_examples=examples(40), suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_following_more_finds_every_match_in_any_part(
    proc: Process, tools: Toolset, text: str, page_size: int, data: st.DataObject
) -> None:
    made = proc.create(text, page_size=page_size)
    mode, total = data.draw(st.sampled_from([("P", made.pages), ("L", made.lines), ("C", made.chars)]))
    start = data.draw(st.integers(1, max(total, 1)))
    part = f"{made.fd}#{mode}{start}-{data.draw(st.integers(start, max(total, 1) + 1))}"
    pattern = data.draw(st.sampled_from(["a", ".", "$", "^", "l?", r"\B"]))
    expected = [(hit.line, hit.text) for hit in proc.search(part, pattern, max_matches=1000).hits]
    found: list[tuple[int, str]] = []
    next_part: str | None = part

    while next_part:
        shown = show_element(tools, "search_fd", fd=next_part, pattern=pattern, max_matches=1)
        found += [(hit.line, hit.text) for hit in proc.search(next_part, pattern, max_matches=1).hits]
        next_part = shown.attributes.get("more")

    assert found == expected


def test_a_search_shows_no_more_characters_than_a_read(proc: Process) -> None:
    tools = Toolset(proc, enabled=TEXT_TOOLS, export_root=".", config=FDConfig(max_read_chars=1000))
    proc.create(LINES * 20)

    found = show_element(tools, "search_fd", fd="fd:1", pattern="line", max_matches=10_000)

    assert found["matches"] == "2000"
    assert 0 < int(found["shown"]) < 50
    assert len(found.body or "") <= 1000
    assert found["more"] == f"fd:1#L{int(found['shown']) + 1}-2000"
