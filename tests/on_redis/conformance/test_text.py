"""The text rules of the contract, sentence by sentence, through the tools of an agent."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore import FDConfig, Toolset
from fdstore.client import Process
from tests.elements import Element, only
from tests.on_redis.conformance.calling import TEXT_TOOLS
from tests.properties import examples
from tests.slices import lines_of, pages_of, some_numbers, texts, units_of

often = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)

# no text here resembles our tags, so bodies are unescaped
ODD = "a\0b\rc\r\nd\ufeffe\u2028f\x85g\x0bh\x0ci\u2029\N{GRINNING FACE}e\N{COMBINING ACUTE ACCENT}\n\n"


@pytest.fixture
def tools(proc: Process, tmp_path: Path) -> Toolset:
    return Toolset(proc, enabled=TEXT_TOOLS, config=FDConfig(max_read_chars=10**6), export_root=tmp_path)


def read(tools: Toolset, **arguments: Any) -> Element:
    return only(tools.call("read_fd", arguments).content)


# units


def test_a_character_is_a_unicode_code_point(proc: Process, tools: Toolset) -> None:
    proc.create("e\N{COMBINING ACUTE ACCENT}\N{GRINNING FACE}\N{LATIN SMALL LETTER E WITH ACUTE}")

    assert proc.stat("fd:1").chars == 4
    assert read(tools, fd=1, mode="char", start=3).body == "\N{GRINNING FACE}"


def test_every_character_is_kept_exactly(proc: Process, tools: Toolset, tmp_path: Path) -> None:
    tools.call("write_fd", {"data": ODD})
    tools.call("fd_to_file", {"fd": 1, "file_path": "out"})

    assert read(tools, fd=1).body == ODD
    assert (tmp_path / "out").read_bytes() == ODD.encode()


# lines


def test_only_a_newline_character_ends_a_line(proc: Process, tools: Toolset) -> None:
    proc.create(ODD)

    found = read(tools, fd=1, mode="line", start=2)

    assert found.body == ODD.split("\n")[1] + "\n"
    assert found["total_lines"] == "3"


# pages


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
        assert found["lines"] == (f"{first_line}-{first_line + len(lines_of(piece)) - 1}" if piece else "0-0")
        starts_inside = bool(piece) and begin > 0 and text[begin - 1] != "\n"
        ends_inside = bool(piece) and end < len(text) and piece[-1] != "\n"
        assert found.attributes.get("continued", "false") == str(starts_inside).lower()
        assert found.attributes.get("truncated", "false") == str(ends_inside).lower()
        if mode == "char":
            assert found["chars"] == (f"{begin + 1}-{end}" if piece else "0-0")
        if "count" in found.attributes:
            assert (found["mode"], found["start"]) == (mode, str(start))
            assert found["count"] == str(len(units[start - 1 : start - 1 + count]))
        elif mode == "page":
            assert found["page"] == str(start)
        else:
            assert (mode, bool(piece)) == ("line", True)
    proc.close(fd)


# positions and counts


@pytest.mark.parametrize("written", [2, "2", 2.0])
def test_tools_accept_whole_numbers_in_other_json_types(proc: Process, tools: Toolset, written: Any) -> None:
    proc.create("a\nb\nc\n", page_size=2)

    assert read(tools, fd=1, start=written).body == "b\n"
    assert read(tools, fd=1, start_line=written, end_line=written).body == "b\n"
    assert read(tools, fd=1, page=written).body == "b\n"


# all values, ids and selectors: tests/unit/tools/test_schema.py and tests/unit/text/test_selection.py


@pytest.mark.parametrize("written", [True, 0, 1.5, 2**53 + 1, "٣"])
@pytest.mark.parametrize("field", ["start", "count"])
def test_invalid_positions_are_refused_by_name(
    proc: Process, tools: Toolset, field: str, written: Any
) -> None:
    proc.create("text")

    error = read(tools, fd=1, **{field: written})

    assert (error["type"], error.message.partition(":")[0]) == ("invalid_argument", field)
    assert len(error.message) < 200


@pytest.mark.parametrize("written", [True, 0, 1.5, float("nan"), None, [], "fd:"], ids=repr)
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


@pytest.mark.parametrize("part", ["P2-1", "X1"])
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
