"""The text rules of the contract, sentence by sentence, through the tools of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore import FDConfig, Toolset
from fdstore.client import Process
from fdstore.errors import InvalidArgument
from tests.conftest import lines_of, pages_of, some_numbers, texts, units_of
from tests.elements import Element, only

ALL = ["read_fd", "search_fd", "list_fds", "write_fd", "fd_to_file", "close_fd"]
often = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

# no text here resembles our tags, so bodies are unescaped
ODD = "a\0b\rc\r\nd\ufeffe\u2028f\x85g\x0bh\x0ci\u2029\N{GRINNING FACE}e\N{COMBINING ACUTE ACCENT}\n\n"


@pytest.fixture
def tools(proc: Process, tmp_path: Path) -> Toolset:
    return Toolset(proc, enabled=ALL, config=FDConfig(max_read_chars=10**6), export_root=tmp_path)


def read(tools: Toolset, **arguments: Any) -> Element:
    return only(tools.call("read_fd", arguments).content)


# units


def test_a_character_is_a_unicode_code_point(proc: Process, tools: Toolset) -> None:
    proc.create("e\N{COMBINING ACUTE ACCENT}\N{GRINNING FACE}\N{LATIN SMALL LETTER E WITH ACUTE}")

    assert read(tools, fd=1)["chars"] == "1-4"
    assert read(tools, fd=1, mode="char", start=3).body == "\N{GRINNING FACE}"


def test_every_character_is_kept_exactly(proc: Process, tools: Toolset, tmp_path: Path) -> None:
    tools.call("write_fd", {"data": ODD})
    tools.call("fd_to_file", {"fd": 1, "file_path": "out"})

    assert read(tools, fd=1).body == ODD
    assert (tmp_path / "out").read_bytes() == ODD.encode()


@pytest.mark.parametrize(
    ("name", "arguments"),
    [("write_fd", {"data": "a\udc80b"}), ("search_fd", {"fd": 1, "pattern": "\ud800"})],
)
def test_a_lone_surrogate_is_refused(
    proc: Process, tools: Toolset, name: str, arguments: dict[str, Any]
) -> None:
    proc.create("text")

    result = tools.call(name, arguments)

    assert only(result.content)["type"] == "invalid_argument"
    assert "lone surrogate" in only(result.content).message


# lines


def test_only_a_newline_character_ends_a_line(proc: Process, tools: Toolset) -> None:
    proc.create(ODD)

    found = read(tools, fd=1, mode="line", start=2)

    assert found.body == ODD.split("\n")[1] + "\n"
    assert found["total_lines"] == "3"


@pytest.mark.parametrize(
    ("text", "lines"), [("", 0), ("\n", 1), ("a", 1), ("a\n", 1), ("a\nb", 2), ("a\nb\n", 2), ("\n\n", 2)]
)
def test_a_trailing_newline_does_not_start_another_line(
    proc: Process, tools: Toolset, text: str, lines: int
) -> None:
    proc.create(text)

    assert read(tools, fd=1)["total_lines"] == str(lines)


@pytest.mark.parametrize("mode", ["page", "line", "char"])
def test_the_start_of_an_empty_text_can_be_read(proc: Process, tools: Toolset, mode: str) -> None:
    proc.create("")

    found = read(tools, fd=1, mode=mode, start=1)

    assert (found.body, found["lines"], found["chars"], found["pages"]) == ("", "0-0", "0-0", "1")


# pages


@often
@given(texts, st.integers(1, 9))
def test_the_pages_concatenate_to_the_text_and_none_exceeds_the_page_size(
    proc: Process, tools: Toolset, text: str, size: int
) -> None:
    fd = proc.create(text, page_size=size).fd
    count = int(read(tools, fd=fd)["pages"])

    pages = [read(tools, fd=fd, start=number).body or "" for number in range(1, count + 1)]

    assert "".join(pages) == text
    assert pages == pages_of(text, size)
    assert max(map(len, pages)) <= size
    proc.close(fd)


@often
@given(texts, st.integers(1, 9), st.sampled_from(["page", "line", "char"]), st.integers(1, 40), some_numbers)
def test_a_part_equals_that_slice_of_the_text_and_its_attributes_match(
    proc: Process, tools: Toolset, text: str, size: int, mode: str, start: int, count: int
) -> None:
    fd = proc.create(text, page_size=size).fd
    units = units_of(text, size, mode)

    found = read(tools, fd=fd, mode=mode, start=start, count=count)

    if start > max(len(units), 1):
        assert found["type"] == ("invalid_page" if mode == "page" else "invalid_range")
    else:
        piece = "".join(units[start - 1 : start - 1 + count])
        begin = len("".join(units[: start - 1]))
        end = begin + len(piece)
        first_line = text[:begin].count("\n") + 1
        assert found.body == piece
        assert found["total_lines"] == str(len(lines_of(text)))
        assert found["pages"] == str(len(pages_of(text, size)))
        assert found["chars"] == (f"{begin + 1}-{end}" if piece else "0-0")
        assert found["lines"] == (f"{first_line}-{first_line + len(lines_of(piece)) - 1}" if piece else "0-0")
        starts_inside = bool(piece) and begin > 0 and text[begin - 1] != "\n"
        ends_inside = bool(piece) and end < len(text) and piece[-1] != "\n"
        assert found["continued"] == str(starts_inside).lower()
        assert found["truncated"] == str(ends_inside).lower()
        if "count" in found.attributes:
            assert (found["mode"], found["start"]) == (mode, str(start))
            assert found["count"] == str(len(units[start - 1 : start - 1 + count]))
        else:
            assert (mode, found["page"]) == ("page", str(start))
    proc.close(fd)


@often
@given(texts, st.integers(1, 9), st.sampled_from("PLC"), st.integers(1, 12), st.integers(0, 12))
def test_a_selector_is_equivalent_to_separate_arguments(
    proc: Process, tools: Toolset, text: str, size: int, letter: str, start: int, more: int
) -> None:
    fd = proc.create(text, page_size=size).fd
    mode = {"P": "page", "L": "line", "C": "char"}[letter]

    one = tools.call("read_fd", {"fd": f"{fd}#{letter}{start}-{start + more}"})
    other = tools.call("read_fd", {"fd": fd, "mode": mode, "start": start, "count": more + 1})

    assert one == other
    proc.close(fd)


def test_a_line_split_between_pages_counts_on_both(proc: Process, tools: Toolset) -> None:
    proc.create("0123456789\n", page_size=6)

    assert [read(tools, fd=1, start=page)["lines"] for page in (1, 2)] == ["1-1", "1-1"]


# positions and counts


@pytest.mark.parametrize("written", [2, "2", 2.0])
def test_tools_accept_whole_numbers_in_other_json_types(proc: Process, tools: Toolset, written: Any) -> None:
    proc.create("a\nb\nc\n", page_size=2)

    assert read(tools, fd=1, start=written).body == "b\n"
    assert read(tools, fd=1, start_line=written, end_line=written).body == "b\n"
    assert read(tools, fd=1, page=written).body == "b\n"


@pytest.mark.parametrize("written", ["2", 2.0])
def test_the_python_api_accepts_only_integers_as_numbers(proc: Process, written: Any) -> None:
    proc.create("a\nb\nc\n", page_size=2)

    with pytest.raises(InvalidArgument, match="start: a whole number is needed"):
        proc.read(1, start=written)


def named(value: object) -> str:
    """A test's name for a value that may be too large to print."""
    return "huge" if value == 10**5000 else repr(value)


NOT_A_NUMBER = [
    True,
    0,
    -1,
    1.5,
    float("nan"),
    float("inf"),
    -float("inf"),
    2**53 + 1,
    1e300,
    10**5000,
    "1.5",
    "٣",
    " 3",
    "3\n",
    "",
    "NaN",
    [1],
    {},
]


@pytest.mark.parametrize("written", NOT_A_NUMBER, ids=named)
@pytest.mark.parametrize("field", ["start", "count"])
def test_invalid_positions_are_refused_by_the_api_and_the_tools(
    proc: Process, tools: Toolset, field: str, written: Any
) -> None:
    proc.create("text")

    error = read(tools, fd=1, **{field: written})

    assert (error["type"], error.message.partition(":")[0]) == ("invalid_argument", field)
    assert len(error.message) < 200
    with pytest.raises(InvalidArgument) as caught:
        proc.read(1, **{field: written})
    assert len(str(caught.value)) < 200


@pytest.mark.parametrize(
    "written", [True, 0, -1, 1.5, float("nan"), 10**5000, None, [], {}, "fd", "fd:", "#"], ids=named
)
def test_an_invalid_descriptor_id_is_refused(proc: Process, tools: Toolset, written: Any) -> None:
    error = read(tools, fd=written)

    assert (error["type"], error.message[:4]) == ("invalid_argument", "fd: ")
    assert len(error.message) < 200


@pytest.mark.parametrize("written", ["fd:1", "fd-1", "1", 1, 1.0])
def test_all_spellings_of_a_descriptor_are_shown_in_one_form(
    proc: Process, tools: Toolset, written: Any
) -> None:
    proc.create("text")

    assert read(tools, fd=written)["fd"] == "fd:1"


@pytest.mark.parametrize(
    "written", ["fd:01", "FD:1", "fd:1 ", "fd:1\n", "fd:１", "fd:-1", "fd:1.0", "ref:", "ref:a b"]
)
def test_a_lookalike_of_a_descriptor_id_is_refused(proc: Process, tools: Toolset, written: str) -> None:
    proc.create("text")

    assert read(tools, fd=written)["type"] == "invalid_argument"


@pytest.mark.parametrize(
    "part", ["P0", "P2-1", "L", "p1", "P1-", "P-1", "P1-2-3", "X1", "C1-99999999999999999", "P１", "P1\n", ""]
)
def test_a_malformed_selector_is_refused(proc: Process, tools: Toolset, part: str) -> None:
    proc.create("text")

    error = read(tools, fd=f"fd:1#{part}")

    assert (error["type"], error["fd"] if "fd" in error.attributes else None) == ("invalid_argument", None)
    assert "write fd:3#P2-4 for pages" in error.message


@pytest.mark.parametrize(
    "extra", [{"mode": "page"}, {"start": 1}, {"count": 1}, {"read_all": True}, {"page": 1}]
)
def test_a_selector_combined_with_part_arguments_is_an_error(
    proc: Process, tools: Toolset, extra: dict[str, Any]
) -> None:
    proc.create("text")

    assert read(tools, fd="fd:1#P1", **extra)["type"] == "invalid_argument"


# thresholds


@pytest.mark.parametrize(("chars", "shown"), [(8000, "text"), (8001, "fd_result")])
def test_a_text_of_exactly_the_threshold_stays_inline(proc: Process, chars: int, shown: str) -> None:
    def produce() -> str:
        return "x" * chars

    tools = Toolset(proc, python=[produce])

    for text in (tools.wrap("x" * chars), tools.call("produce", {}).content, tools.wrap_input("x" * chars)):
        assert isinstance(text, str)
        assert text.startswith("<fd_result ") == (shown == "fd_result")


@pytest.mark.parametrize(("limit", "name"), [(5, "fd_content"), (4, "fd_error")])
def test_a_read_of_exactly_the_limit_is_shown(proc: Process, limit: int, name: str) -> None:
    tools = Toolset(proc, config=FDConfig(max_read_chars=limit))
    proc.create("12345")

    for arguments in ({}, {"read_all": True}, {"mode": "char", "count": 5}, {"mode": "line"}):
        assert read(tools, fd=1, **arguments).name == name
