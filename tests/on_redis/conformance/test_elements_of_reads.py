"""The exact elements of stored, read and extracted texts, produced by a real toolset."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fdstore import FDConfig, Toolset
from fdstore.client import Process
from tests.elements import only
from tests.on_redis.conformance.calling import LINES, TEXT_TOOLS, show, show_element

# fd_result


def test_fd_result_shows_the_first_page_and_the_end(proc: Process) -> None:
    tools = Toolset(
        proc,
        enabled=TEXT_TOOLS,
        export_root=".",
        config=FDConfig(max_direct_output_chars=100, default_page_size=30),
    )

    assert tools.wrap(LINES[:255], source="web_search") == (
        '<fd_result fd="fd:1" pages="11" truncated="false" lines="1-4" total_lines="33" total_chars="255"'
        ' source="web_search" tokens="~99">\n'
        "<message>\n"
        "The text is stored as fd:1 (11 pages of at most 30 characters). Read on with "
        'read_fd(fd="fd:1", start=2), find lines with search_fd(fd="fd:1", pattern="..."), or save it with '
        'fd_to_file(fd="fd:1", file_path="...").\n'
        "</message>\n"
        "<preview>\nline 1\nline 2\nline 3\nline 4\n\n</preview>\n"
        f"<tail>\n{LINES[:255]}\n</tail>\n"
        "</fd_result>"
    )


def test_the_tail_is_at_most_400_characters_cut_at_a_line(proc: Process) -> None:
    tools = Toolset(proc, enabled=TEXT_TOOLS, export_root=".", config=FDConfig(max_direct_output_chars=100))
    text = LINES * 10

    tail = only(tools.wrap(text)).child("tail")

    assert tail.body == text[text.rindex("line 52\n") :]


LONG_LINE = "x" * 9000


@pytest.mark.parametrize(
    ("enabled", "text", "ways"),
    [
        (["read_fd", "search_fd"], LONG_LINE, "Read characters with {}#C4001-8000"),
        (["read_fd", "search_fd"], (LONG_LINE + "\n") * 3, "Read characters with {}#C4001-8000"),
        (["read_fd", "search_fd"], f'["{LONG_LINE}"]', "Read characters with {}#C1-4000"),
        (
            ["read_fd", "search_fd", "run_python"],
            LONG_LINE,
            "Read characters with {}#C4001-8000, or take it apart with run_python",
        ),
        (["search_fd", "run_python"], LONG_LINE, "Take it apart with run_python"),
        (["search_fd", "run_python"], LINES * 10, 'Find lines with search_fd(fd="fd:1", pattern="...")'),
    ],
)
def test_a_text_of_long_lines_is_read_by_characters_or_taken_apart(
    proc: Process, enabled: list[Any], text: str, ways: str
) -> None:
    tools = Toolset(proc, enabled=enabled, config=FDConfig(max_direct_output_chars=100))

    message = only(tools.wrap(text)).child("message").body

    expected = re.sub(r"\{\}(#C[0-9-]+)", r'read_fd(fd="fd:1\1")', ways)
    assert (message or "").partition("). ")[2] == f"{expected}."
    for part in re.findall(r"#C([0-9]+)-([0-9]+)", ways):
        start, end = map(int, part)
        assert proc.read(f"fd:1#C{start}-{end}").text == text[start - 1 : end]


def test_the_tail_of_one_long_line_is_its_last_400_characters(proc: Process) -> None:
    tools = Toolset(proc, enabled=TEXT_TOOLS, export_root=".")

    tail = only(tools.wrap("x" * 8600 + "y" * 400)).child("tail")

    assert tail.body == "y" * 400


def test_an_fd_result_of_one_page_has_no_tail(proc: Process) -> None:
    tools = Toolset(proc, enabled=["read_fd"], config=FDConfig(max_direct_output_chars=4))

    assert tools.wrap("12345") == (
        '<fd_result fd="fd:1" pages="1" truncated="false" lines="1-1" total_lines="1" total_chars="5"'
        ' source="tool_result" tokens="~2">\n'
        "<message>\nThe text is stored as fd:1 (1 page).\n</message>\n"
        "<preview>\n12345\n</preview>\n"
        "</fd_result>"
    )


def test_a_preview_that_ends_inside_a_line_is_truncated(proc: Process) -> None:
    tools = Toolset(
        proc, enabled=["read_fd"], config=FDConfig(max_direct_output_chars=4, default_page_size=3)
    )

    result = only(tools.wrap("12345\n"))

    assert (result["truncated"], result["lines"], result.child("preview").body) == ("true", "1-1", "123")


def test_a_conversation_is_told_once_how_descriptors_are_read(proc: Process) -> None:
    tools = Toolset(proc, enabled=TEXT_TOOLS, export_root=".", config=FDConfig(whole_chars=9000))

    first = only(tools.wrap("a long line\n" * 1000))
    second = only(tools.wrap("a long line\n" * 1000))
    whole = only(tools.wrap("x" * 9000))

    assert "read_fd(" in first.message
    assert (second.message, whole.message) == ("Stored.", "Stored and shown whole.")


def test_the_first_result_is_shown_again_as_it_was(proc: Process) -> None:
    tools = Toolset(proc, enabled=TEXT_TOOLS, export_root=".")
    text = "a long line\n" * 1000

    first = tools.wrap(text, call_id="toolu_1")
    tools.wrap(text, call_id="toolu_2")

    assert tools.wrap(text, call_id="toolu_1") == first


def test_the_fd_result_message_names_only_enabled_tools(proc: Process) -> None:
    tools = Toolset(proc, enabled=["list_fds"])

    assert only(tools.wrap("x" * 9000)).message == (
        "The text is stored as fd:1 (3 pages of at most 4000 characters)."
    )


# fd_content


@pytest.mark.parametrize(
    ("part", "attributes", "body"),
    [
        pytest.param(
            {"start": 2},
            'page="2" pages="50" continued="false" truncated="false" lines="3-4" total_lines="100"',
            "line 3\nline 4\n",
            id="a page",
        ),
        pytest.param(
            {"start": 49, "count": 9},
            'pages="50" continued="false" truncated="false" lines="97-100" total_lines="100"'
            ' mode="page" start="49" count="2"',
            "line 97\nline 98\nline 99\nline 100\n",
            id="several pages",
        ),
        pytest.param(
            {"mode": "line", "start": 10, "count": 2},
            'pages="50" lines="10-11" total_lines="100"',
            "line 10\nline 11\n",
            id="lines",
        ),
        pytest.param(
            {"mode": "char", "start": 3, "count": 8},
            'pages="50" continued="true" truncated="true" lines="1-2" total_lines="100" chars="3-10"'
            ' mode="char" start="3" count="8"',
            "ne 1\nlin",
            id="characters",
        ),
        pytest.param(
            {"read_all": True},
            'page="all" pages="50" continued="false" truncated="false" lines="1-100" total_lines="100"',
            LINES,
            id="all",
        ),
    ],
)
def test_fd_content_says_which_part_it_shows(
    proc: Process, tools: Toolset, part: dict[str, Any], attributes: str, body: str
) -> None:
    proc.create(LINES, page_size=20)

    assert show(tools, "read_fd", fd="fd:1", **part) == (
        f'<fd_content fd="fd:1" {attributes}>\n{body}\n</fd_content>'
    )


def test_fd_content_of_an_empty_text(proc: Process, tools: Toolset) -> None:
    proc.create("")

    assert show(tools, "read_fd", fd="fd:1") == (
        '<fd_content fd="fd:1" page="1" pages="1" continued="false" truncated="false" lines="0-0"'
        ' total_lines="0">\n\n</fd_content>'
    )


# fd_extraction


@pytest.mark.parametrize(
    ("tool", "arguments", "attributes", "message"),
    [
        pytest.param(
            "read_fd",
            {"fd": "fd:1#L99-200"},
            'mode="line" start="99" count="2" content_size="17"',
            "a part of fd:1 (17 characters)",
            id="a part",
        ),
        pytest.param(
            "read_fd",
            {"fd": "fd:1", "read_all": True},
            'mode="page" position="all" content_size="792"',
            "a copy of all of fd:1 (792 characters)",
            id="all",
        ),
        pytest.param(
            "search_fd",
            {"fd": "fd:1", "pattern": "9$"},
            'mode="search" position="all" content_size="108"',
            "the 10 matches of a search in fd:1 (108 characters)",
            id="a search",
        ),
    ],
)
def test_fd_extraction_says_what_the_new_descriptor_holds(
    proc: Process, tools: Toolset, tool: str, arguments: dict[str, Any], attributes: str, message: str
) -> None:
    proc.create(LINES)

    assert show(tools, tool, extract_to_new_fd=True, **arguments) == (
        f'<fd_extraction source_fd="fd:1" new_fd="fd:2" {attributes}>\n'
        f'<message>\nfd:2 holds {message}. Read it with read_fd(fd="fd:2").\n</message>\n'
        "</fd_extraction>"
    )


def test_an_extracted_search_has_the_numbers_of_its_lines(proc: Process, tools: Toolset) -> None:
    proc.create(LINES)

    show(tools, "search_fd", fd="fd:1", pattern="9$", extract_to_new_fd=True)

    assert proc.read("fd:2#L1-2").text == "9:line 9\n19:line 19\n"


def test_fd_extraction_of_a_search_in_a_part_says_which_lines_were_searched(
    proc: Process, tools: Toolset
) -> None:
    proc.create(LINES)

    found = show_element(tools, "search_fd", fd="fd:1#L10-19", pattern="line", extract_to_new_fd=True)

    assert list(found.attributes) == ["source_fd", "new_fd", "mode", "start", "count", "content_size"]
    assert (found["mode"], found["start"], found["count"]) == ("search", "10", "10")


def test_an_extraction_never_shows_the_content(proc: Process, tools: Toolset) -> None:
    proc.create("a secret")

    for name, arguments in (("read_fd", {}), ("search_fd", {"pattern": "secret"})):
        assert "secret" not in show(tools, name, fd="fd:1", extract_to_new_fd=True, **arguments)
