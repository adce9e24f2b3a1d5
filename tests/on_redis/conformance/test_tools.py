"""The tools of the contract, sentence by sentence: definitions and effects, blocking and awaited."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore import FDConfig, Toolset
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument
from fdstore.testing.rules import check_creation
from fdstore.tools.catalogue import FD_TOOLS
from tests.elements import Element
from tests.on_redis.conformance.calling import LINES, TEXT_TOOLS, schema_of, show_element

# definitions


def test_only_enabled_tools_are_offered(proc: Process) -> None:
    assert [each["name"] for each in Toolset(proc).definitions] == ["read_fd", "list_fds"]
    assert {
        each["name"] for each in Toolset(proc, enabled=list(FD_TOOLS), export_root=".").definitions
    } == FD_TOOLS


def test_definitions_follow_the_messages_api_schema(proc: Process, spawning: Toolset) -> None:
    for tools in (Toolset(proc, enabled=TEXT_TOOLS, export_root="."), spawning):
        body = {
            "model": "any",
            "max_tokens": 1,
            "messages": [{"role": "user", "content": "hi"}],
            "tools": tools.definitions,
        }
        check_creation(body)
        for definition in tools.definitions:
            assert definition.keys() == {"name", "description", "input_schema"}
            assert definition["input_schema"]["additionalProperties"] is False
            assert "title" not in str(definition["input_schema"])
            assert "$ref" not in str(definition["input_schema"])
            for field in definition["input_schema"]["properties"].values():
                assert field["type"] in {"string", "integer", "number", "boolean", "array"}


def test_the_signatures_are_those_of_the_contract(tools: Toolset, spawning: Toolset) -> None:
    def signature(of: Toolset, name: str) -> dict[str, Any]:
        found = schema_of(of, name)
        return {
            field: ... if field in found["required"] else what.get("default")
            for field, what in found["properties"].items()
        }

    assert signature(tools, "read_fd") == {
        "fd": ...,
        "mode": "page",
        "start": 1,
        "count": 1,
        "read_all": False,
        "extract_to_new_fd": False,
        "wait_seconds": 0,
    }
    assert signature(tools, "search_fd") == {
        "fd": ...,
        "pattern": ...,
        "context": 0,
        "max_matches": 50,
        "ignore_case": False,
        "extract_to_new_fd": False,
    }
    assert signature(tools, "list_fds") == {"start": 1, "count": 50, "prefix": ""}
    assert signature(tools, "fd_to_file") == {
        "fd": ...,
        "file_path": ...,
        "mode": "write",
        "create": True,
        "exist_ok": True,
    }
    assert signature(tools, "close_fd") == {"fd": ...}
    assert signature(tools, "write_fd") == {"data": ..., "fd": None, "eof": None}
    assert signature(spawning, "spawn") == {
        "program_name": ...,
        "query": ...,
        "additional_preload_files": [],
        "additional_preload_fds": [],
        "background": False,
    }


@pytest.mark.parametrize("name", TEXT_TOOLS)
def test_an_unknown_field_is_refused_by_name(tools: Toolset, name: str) -> None:
    error = show_element(tools, name, bogus=1)

    assert error["type"] == "invalid_argument"
    assert error.message.startswith("'bogus': is not an argument of this tool; it takes: ")


def test_a_tool_that_is_not_enabled_cannot_be_called(proc: Process) -> None:
    error = show_element(Toolset(proc, enabled=["read_fd"]), "list_fds")

    assert error.message == "there is no tool 'list_fds'; there are: read_fd"


@pytest.mark.parametrize(
    ("name", "problem"),
    [
        ("/bin/cat", "is a path"),
        ("grep -n", "is not the name"),
        ("", "is not the name"),
        (3, "is not the name"),
    ],
)
def test_a_command_that_could_never_run_is_refused(proc: Process, name: Any, problem: str) -> None:
    with pytest.raises(InvalidArgument, match=rf"^commands: .* {problem}"):
        fdstore.Toolset(proc, enabled=["pipe"], commands=[name])


def test_a_string_is_not_accepted_as_a_list(proc: Process) -> None:
    with pytest.raises(InvalidArgument, match=r'^enabled: a list of names is needed, as \["read_fd"\]'):
        fdstore.Toolset(proc, enabled="read_fd")
    with pytest.raises(InvalidArgument, match=r'^commands: a list of programs is needed, as \["grep"\]'):
        fdstore.Toolset(proc, enabled=["pipe"], commands="grep")
    with pytest.raises(InvalidArgument, match=r'^share: a list of ids is needed, as \["fd:1"\]'):
        proc.child("fd:1")


def test_an_unknown_tool_cannot_be_enabled(proc: Process) -> None:
    with pytest.raises(InvalidArgument, match="there is no tool 'read'; there are: read_fd, "):
        Toolset(proc, enabled=["read"])


def test_enabling_descriptors_enables_read_fd(proc: Process) -> None:
    tools = Toolset(proc, enabled=[], config=FDConfig(enabled=True))

    assert [each["name"] for each in tools.definitions] == ["read_fd"]


def test_with_descriptors_off_nothing_is_stored_and_no_fd_tool_is_offered(proc: Process) -> None:
    tools = Toolset(proc, config=FDConfig(enabled=False))

    assert tools.wrap("x" * 9000) == tools.wrap_input("x" * 9000) == "x" * 9000
    assert tools.take_references('<ref id="a">b</ref>') == []
    assert (tools.definitions, tools.instructions, proc.list()) == ([], "", [])


# read_fd


def test_page_is_an_alias_of_start(proc: Process, tools: Toolset) -> None:
    proc.create(LINES, page_size=20)

    assert show_element(tools, "read_fd", fd=1, page=3) == show_element(tools, "read_fd", fd=1, start=3)
    assert show_element(tools, "read_fd", fd=1, page=3, count=2) == show_element(
        tools, "read_fd", fd=1, start=3, count=2
    )
    assert show_element(tools, "read_fd", fd=1, page=3, mode="line")["type"] == "invalid_argument"
    assert show_element(tools, "read_fd", fd=1, page=3, start=3)["type"] == "invalid_argument"


def test_start_line_and_end_line_imply_line_mode(proc: Process, tools: Toolset) -> None:
    proc.create(LINES)

    def read(**part: Any) -> Element:
        return show_element(tools, "read_fd", fd=1, **part)

    ten_to_twelve = read(mode="line", start=10, count=3)

    assert read(start_line=10, end_line=12) == read(start_line=10, end_line=12, mode="line") == ten_to_twelve
    assert [
        read(**part)["lines"]
        for part in ({"start_line": 10}, {"end_line": 10}, {"start_line": 99, "end_line": 500})
    ] == ["10-10", "1-10", "99-100"]
    for wrong in ({"end_line": 9}, {"end_line": 12, "count": 1}, {"end_line": 12, "mode": "char"}):
        assert read(start_line=10, **wrong)["type"] == "invalid_argument"


@pytest.mark.parametrize(
    "arguments", [{"read_all": True}, {"mode": "char", "count": 101}, {"count": 9}, {"fd": "fd:1#L1-99"}]
)
def test_a_read_that_is_too_large_is_refused_with_alternatives(
    proc: Process, arguments: dict[str, Any]
) -> None:
    tools = Toolset(proc, enabled=TEXT_TOOLS, config=FDConfig(max_read_chars=100), export_root=".")
    proc.create(LINES, page_size=20)

    error = show_element(tools, "read_fd", **{"fd": "fd:1", **arguments})

    assert (error["type"], error["fd"]) == ("too_large", "fd:1")
    assert all(way in error.message for way in ("more than the limit of 100", "pages", "search", "extract"))


def test_the_default_extraction_is_the_default_read(proc: Process, tools: Toolset) -> None:
    proc.create(LINES, page_size=20)

    made = show_element(tools, "read_fd", fd=1, extract_to_new_fd=True)

    assert (made["mode"], made["start"], made["count"]) == ("page", "1", "1")
    assert proc.read("fd:2").text == "line 1\nline 2\n"


# write_fd, close_fd


def test_a_written_text_is_sealed_and_paged_as_configured(proc: Process) -> None:
    tools = Toolset(proc, enabled=["write_fd"], config=FDConfig(default_page_size=10))

    made = show_element(tools, "write_fd", data=LINES)

    note = proc.stat(made["fd"])
    assert (note.state, note.source, note.page_size, note.producer) == ("sealed", "note", 10, "triage")


def test_only_a_whole_descriptor_can_be_closed(proc: Process, tools: Toolset) -> None:
    proc.create("text")

    assert show_element(tools, "close_fd", fd="fd:1#L1")["type"] == "invalid_argument"
    assert [held.fd for held in proc.list()] == ["fd:1"]


# the awaitable toolset


async def test_the_awaitable_toolset_returns_the_same_results(
    redis_url: str, store: Store, tmp_path: Path
) -> None:
    def shout(text: str) -> str:
        return text.upper()

    async def later(text: str) -> str:
        await asyncio.sleep(0)
        return text * 9000

    script: list[tuple[str, Any]] = [
        ("write_fd", {"data": LINES}),
        ("read_fd", {"fd": "fd:1#L2-3"}),
        ("search_fd", {"fd": 1, "pattern": "7"}),
        ("fd_to_file", {"fd": 1, "file_path": "out"}),
        ("shout", {"text": "{{fd:1#L1}}"}),
        ("later", {"text": "x"}),
        ("read_fd", {"fd": 99}),
        ("close_fd", {"fd": 1}),
        ("list_fds", {}),
    ]
    here, there = tmp_path / "here", tmp_path / "there"
    here.mkdir()
    there.mkdir()
    options: dict[str, Any] = {"enabled": TEXT_TOOLS, "python": [shout, later]}

    blocking = Toolset(store.process("one"), export_root=here, **options)
    expected = [blocking.call(name, arguments) for name, arguments in script]

    async with await fdstore.aio.connect(redis_url) as connected:
        awaited = fdstore.aio.Toolset(await connected.process("two"), export_root=there, **options)
        assert awaited.definitions == blocking.definitions
        assert awaited.instructions == blocking.instructions
        shown = [await awaited.call(name, arguments) for name, arguments in script]
        assert await awaited.wrap(["a"]) == blocking.wrap(["a"])
        assert await awaited.wrap_input("a") == "a"
        assert await awaited.take_references('<ref id="a">b</ref>') == ["ref:a"]
    assert [each.content.replace('"two"', '"one"') for each in shown] == [each.content for each in expected]
    assert [each.is_error for each in shown] == [each.is_error for each in expected]
