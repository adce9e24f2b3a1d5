"""The tools of the contract, sentence by sentence: definitions, effects, and idempotent calls."""

from __future__ import annotations

import asyncio
import inspect
import os
import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

import fdstore
from fdstore import FDConfig, Toolset
from fdstore.agent.first_prompt import first_messages
from fdstore.agent.program_loader import load
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument
from fdstore.records import TreeLimits
from fdstore.store import tool_calls
from fdstore.testing.rules import check_creation
from fdstore.tools.context import Context
from fdstore.tools.process_task import SpawnTask
from fdstore.tools.tool_names import FD_TOOLS
from fdstore.tools.tool_outcome import Started
from fdstore.tools.toolbox import Toolbox
from fdstore.toolset.build import context_for, linked_programs
from tests.elements import Element, elements, only

ALL = ["read_fd", "search_fd", "list_fds", "write_fd", "fd_to_file", "close_fd"]
LINES = "".join(f"line {number}\n" for number in range(1, 101))


@pytest.fixture
def tools(proc: Process, tmp_path: Path) -> Toolset:
    return Toolset(proc, enabled=ALL, export_root=tmp_path)


def show(tools: Toolset, name: str, **arguments: Any) -> Element:
    return only(tools.call(name, arguments).content)


def schema(tools: Toolset, name: str) -> dict[str, Any]:
    [found] = [each["input_schema"] for each in tools.definitions if each["name"] == name]
    return dict(found)


# definitions


def test_only_enabled_tools_are_offered(proc: Process) -> None:
    assert [each["name"] for each in Toolset(proc).definitions] == ["read_fd", "list_fds"]
    assert {each["name"] for each in Toolset(proc, enabled=ALL, export_root=".").definitions} == FD_TOOLS


def test_definitions_follow_the_messages_api_schema(proc: Process, spawning: Toolset) -> None:
    for tools in (Toolset(proc, enabled=ALL, export_root="."), spawning):
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
        found = schema(of, name)
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
    assert signature(tools, "list_fds") == {"start": 1, "count": 50}
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


@pytest.mark.parametrize("name", ALL)
def test_an_unknown_field_is_refused_by_name(tools: Toolset, name: str) -> None:
    error = show(tools, name, bogus=1)

    assert error["type"] == "invalid_argument"
    assert error.message.startswith("'bogus': is not an argument of this tool; it takes: ")


def test_a_tool_that_is_not_enabled_cannot_be_called(proc: Process) -> None:
    error = show(Toolset(proc, enabled=["read_fd"]), "list_fds")

    assert error.message == "there is no tool 'list_fds'; there are: read_fd"


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

    assert show(tools, "read_fd", fd=1, page=3) == show(tools, "read_fd", fd=1, start=3)
    assert show(tools, "read_fd", fd=1, page=3, count=2) == show(tools, "read_fd", fd=1, start=3, count=2)
    assert show(tools, "read_fd", fd=1, page=3, mode="line")["type"] == "invalid_argument"
    assert show(tools, "read_fd", fd=1, page=3, start=3)["type"] == "invalid_argument"


def test_start_line_and_end_line_imply_line_mode(proc: Process, tools: Toolset) -> None:
    proc.create(LINES)
    ten_to_twelve = show(tools, "read_fd", fd=1, mode="line", start=10, count=3)

    assert show(tools, "read_fd", fd=1, start_line=10, end_line=12) == ten_to_twelve
    assert show(tools, "read_fd", fd=1, start_line=10, end_line=12, mode="line") == ten_to_twelve
    assert show(tools, "read_fd", fd=1, start_line=10)["lines"] == "10-10"
    assert show(tools, "read_fd", fd=1, end_line=10)["lines"] == "1-10"
    assert show(tools, "read_fd", fd=1, start_line=99, end_line=500)["lines"] == "99-100"
    for wrong in ({"end_line": 9}, {"end_line": 12, "count": 1}, {"end_line": 12, "mode": "char"}):
        assert show(tools, "read_fd", fd=1, start_line=10, **wrong)["type"] == "invalid_argument"


@pytest.mark.parametrize(
    "arguments", [{"read_all": True}, {"mode": "char", "count": 101}, {"count": 9}, {"fd": "fd:1#L1-99"}]
)
def test_a_read_that_is_too_large_is_refused_with_alternatives(
    proc: Process, arguments: dict[str, Any]
) -> None:
    tools = Toolset(proc, enabled=ALL, config=FDConfig(max_read_chars=100), export_root=".")
    proc.create(LINES, page_size=20)

    error = show(tools, "read_fd", **{"fd": "fd:1", **arguments})

    assert (error["type"], error["fd"]) == ("too_large", "fd:1")
    assert all(way in error.message for way in ("more than the limit of 100", "pages", "search", "extract"))


def test_the_default_extraction_is_the_default_read(proc: Process, tools: Toolset) -> None:
    proc.create(LINES, page_size=20)

    made = show(tools, "read_fd", fd=1, extract_to_new_fd=True)

    assert (made["mode"], made["start"], made["count"]) == ("page", "1", "1")
    assert proc.read("fd:2").text == "line 1\nline 2\n"


# write_fd, close_fd


def test_a_written_text_is_sealed_and_paged_as_configured(proc: Process) -> None:
    tools = Toolset(proc, enabled=["write_fd"], config=FDConfig(default_page_size=10))

    made = show(tools, "write_fd", data=LINES)

    note = proc.stat(made["fd"])
    assert (note.state, note.source, note.page_size, note.producer) == ("sealed", "note", 10, "triage")


def test_only_a_whole_descriptor_can_be_closed(proc: Process, tools: Toolset) -> None:
    proc.create("text")

    assert show(tools, "close_fd", fd="fd:1#L1")["type"] == "invalid_argument"
    assert [held.fd for held in proc.list()] == ["fd:1"]


# spawn


@pytest.fixture
def programs(tmp_path: Path) -> dict[str, Path]:
    """A program that preloads a file, and one without links."""
    (tmp_path / "plain.toml").write_text('[program]\ndescription = "adds"\n[model]\nname = "any"\n')
    (tmp_path / "notes.txt").write_text("its own notes")
    (tmp_path / "reader.toml").write_text(
        '[model]\nname = "any"\n[prompt]\nsystem = "You read."\n[tools]\nenabled = ["read_fd"]\n'
        '[preload]\nfiles = ["notes.txt"]\n'
    )
    return {"reader": tmp_path / "reader.toml", "adder": tmp_path / "plain.toml"}


@pytest.fixture
def spawning(proc: Process, programs: dict[str, Path]) -> Toolset:
    return Toolset(proc, enabled=["read_fd", "spawn"], programs=programs, preload_root=".")


@pytest.fixture
def context(proc: Process, programs: dict[str, Path], tmp_path: Path) -> Context:
    """The context of `spawning`; its wake-ups go nowhere."""
    return context_for(
        proc.handle,
        "fdstore",
        enabled=["read_fd", "spawn"],
        config=None,
        linked=linked_programs(programs),
        preload_root=tmp_path,
        wake=lambda process: None,
    )


def started(store: Store, context: Context, call: str | None = None, **arguments: Any) -> Process:
    """Return the child started by a call of spawn."""
    outcome = store.run(Toolbox(context).start("spawn", arguments, call))
    assert isinstance(outcome, Started), outcome
    [child] = outcome.processes
    return store.process(child)


def test_the_description_of_spawn_lists_the_linked_programs(spawning: Toolset) -> None:
    [definition] = [each for each in spawning.definitions if each["name"] == "spawn"]

    assert definition["description"].endswith("Programs:\n- reader\n- adder: adds")


def test_preloads_of_descriptors_are_in_the_schema_only_when_descriptors_are_on(
    proc: Process, programs: dict[str, Path], spawning: Toolset
) -> None:
    without = Toolset(proc, enabled=["spawn"], programs=programs)

    assert "additional_preload_fds" in schema(spawning, "spawn")["properties"]
    assert "additional_preload_fds" not in schema(without, "spawn")["properties"]
    error = show(without, "spawn", program_name="adder", query="add", additional_preload_fds=["fd:1"])
    assert "there are no descriptors; put the text in query" in error.message


def test_spawn_needs_programs_to_start(proc: Process) -> None:
    with pytest.raises(InvalidArgument, match="programs: spawn is enabled, so name the programs"):
        Toolset(proc, enabled=["spawn"])


def test_a_background_child_without_a_way_to_read_it_is_not_started(
    proc: Process, programs: dict[str, Path], store: Store
) -> None:
    alone = Toolset(proc, enabled=["spawn"], programs=programs)

    assert "background" not in schema(alone, "spawn")["properties"]
    error = show(alone, "spawn", program_name="adder", query="add", background=True)

    assert error.message == "background: there is no tool to read or wait for it with; leave it out"
    assert len(store.tree("triage").members) == 1


def test_a_child_holds_shared_descriptors_under_the_same_ids(
    store: Store, proc: Process, context: Context
) -> None:
    for text in ("one", "two", "three"):
        proc.create(text)

    child = started(
        store, context, program_name="adder", query="add", additional_preload_fds=["fd:3", 1, "fd-3"]
    )

    assert [(held.fd, child.read(held.fd).text) for held in child.list()] == [
        ("fd:1", "one"),
        ("fd:3", "three"),
    ]


def test_a_shared_selector_is_passed_as_an_extraction_of_that_part(
    store: Store, proc: Process, context: Context
) -> None:
    proc.create(LINES)

    child = started(store, context, program_name="adder", query="add", additional_preload_fds=["fd:1#L2-3"])

    assert [held.fd for held in child.list()] == ["fd:2"]
    assert child.read("fd:2").text == proc.read("fd:2").text == "line 2\nline 3\n"


def test_preloaded_files_are_read_by_the_parent_and_passed_as_descriptors(
    store: Store, proc: Process, context: Context, tmp_path: Path
) -> None:
    (tmp_path / "data.bin").write_bytes(b"caf\xe9\n")

    child = started(
        store, context, program_name="reader", query="read", additional_preload_files=["data.bin"]
    )

    assert [(held.fd, held.source, child.read(held.fd).text) for held in child.list()] == [
        ("fd:1", "notes.txt", "its own notes"),
        ("fd:2", "data.bin", "caf\\xe9\n"),
    ]


@pytest.mark.parametrize(
    "path",
    [
        "../plain.toml",
        "/etc/passwd",
        "link",
        "no/such",
        "",
        "\0",
        "a" * 300,
        "fifo",
        "socket",
        ".env",
        ".git/config",
        "sub/.ssh/key",
    ],
)
def test_a_model_can_preload_no_file_outside(
    context: Context, store: Store, tmp_path: Path, path: str
) -> None:
    (tmp_path / "link").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "fifo")
    for folder in (".git", "sub/.ssh"):
        (tmp_path / folder).mkdir(parents=True)
    for name in (".env", ".git/config", "sub/.ssh/key"):
        (tmp_path / name).write_text("secret")
    with socket.socket(socket.AF_UNIX) as listening, pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        listening.bind("socket")

    result = store.run(
        Toolbox(context).start(
            "spawn", {"program_name": "adder", "query": "q", "additional_preload_files": [path]}
        )
    )

    assert not isinstance(result, Started)
    assert only(result.content)["type"] in {"permission_error", "file_not_found"}
    assert len(store.tree("triage").members) == 1


def test_small_preloads_are_shown_whole_and_large_ones_by_head_and_tail(
    store: Store, proc: Process, context: Context, programs: dict[str, Path]
) -> None:
    proc.create("small")
    proc.create(LINES * 20)
    child = started(
        store, context, program_name="reader", query="read", additional_preload_fds=["fd:2", "fd:1"]
    )
    bundle = load(programs["reader"])
    toolbox = Toolbox(
        context_for(
            child.handle,
            "fdstore",
            enabled=["read_fd"],
            config=None,
            linked={},
            wake=lambda process: None,
        )
    )

    brief = SpawnTask(query="read", preload=["fd:2", "fd:1", "fd:3"])
    start = store.run(first_messages(toolbox, bundle.programs[bundle.root], brief))

    said, _, preloaded = start.system.partition("# Preloaded texts\n")
    assert said.startswith("You read.\n\n# Large texts\n")
    large, small, own = elements(preloaded)
    assert (large.name, large["fd"], large["total_lines"]) == ("fd_result", "fd:2", "2000")
    assert (small.name, small["fd"], small.body) == ("fd_content", "fd:1", "small")
    assert (own.name, own["fd"], own.body) == ("fd_content", "fd:3", "its own notes")


@pytest.mark.parametrize(
    ("arguments", "kind", "message"),
    [
        ({"program_name": "none"}, "unknown_program", "there is no program 'none'; there are: reader, adder"),
        ({"query": " \n"}, "invalid_argument", "query: must say what is to be done"),
        ({"query": "\udcff"}, "invalid_argument", "query: it holds the lone surrogate"),
        ({"additional_preload_fds": ["fd:9"]}, "not_found", "fd:9 does not exist"),
        ({"additional_preload_fds": ["fd:1#L9"]}, "invalid_range", "fd:1 has lines 1-1"),
        ({"additional_preload_fds": "fd:1"}, "invalid_argument", "additional_preload_fds: Expected `array`"),
        ({"additional_preload_fds": ["fd:1"] * 101}, "invalid_argument", "at most 100 preloads are taken"),
    ],
)
def test_a_refused_spawn_creates_nothing(
    store: Store, proc: Process, context: Context, arguments: dict[str, Any], kind: str, message: str
) -> None:
    proc.create("text")

    result = store.run(Toolbox(context).start("spawn", {"program_name": "adder", "query": "q", **arguments}))

    assert not isinstance(result, Started)
    error = only(result.content)
    assert (error["type"], message in error.message) == (kind, True)
    assert (len(store.tree("triage").members), store.tree("triage").fds) == (1, 1)


def test_exceeding_a_tree_limit_is_an_error_result(store: Store, context: Context) -> None:
    root = store.process("small", limits=TreeLimits(tree_live=1, tree_bytes=10, tree_fds=1))
    limited = Toolset(root, enabled=["write_fd"])
    toolbox = Toolbox(msgspec.structs.replace(context, handle=root.handle))

    spawned = store.run(toolbox.start("spawn", {"program_name": "adder", "query": "q"}))
    assert not isinstance(spawned, Started)
    assert only(spawned.content)["type"] == "spawn_limit"
    assert show(limited, "write_fd", data="x" * 11)["type"] == "quota_exceeded"
    assert show(limited, "write_fd", data="x")["fd"] == "fd:1"
    assert show(limited, "write_fd", data="x")["type"] == "quota_exceeded"


# idempotent calls


def test_a_text_is_written_once(proc: Process, tools: Toolset) -> None:
    first = tools.call("write_fd", {"data": "note"}, "toolu_1")

    assert tools.call("write_fd", {"data": "note"}, "toolu_1") == first
    assert len(proc.list()) == 1
    assert only(tools.call("write_fd", {"data": "note"}, "toolu_2").content)["fd"] == "fd:2"


@pytest.mark.parametrize("name", ["read_fd", "search_fd"])
def test_a_part_is_extracted_once_even_if_its_source_is_closed_meanwhile(
    proc: Process, tools: Toolset, name: str
) -> None:
    proc.create(LINES)
    arguments = {
        "fd": "fd:1#L1-3",
        "extract_to_new_fd": True,
        **({"pattern": "."} if name == "search_fd" else {}),
    }
    first = tools.call(name, arguments, "toolu_1")
    proc.close("fd:1")

    assert tools.call(name, arguments, "toolu_1") == first
    assert [held.fd for held in proc.list()] == ["fd:2"]


def test_a_descriptor_is_closed_once(proc: Process, tools: Toolset) -> None:
    proc.create("x")

    first = tools.call("close_fd", {"fd": 1}, "toolu_1")

    assert tools.call("close_fd", {"fd": 1}, "toolu_1") == first
    assert not first.is_error


def test_a_function_of_the_user_is_called_once(proc: Process) -> None:
    called: list[int] = []

    def count(length: int) -> str:
        called.append(length)
        return str(len(called)) * length

    tools = Toolset(proc, python=[count])

    for call, length in (("toolu_1", 3), ("toolu_2", 9000)):
        first = tools.call("count", {"length": length}, call)
        assert tools.call("count", {"length": length}, call) == first
    assert called == [3, 9000]
    assert len(proc.list()) == 1


def test_a_function_that_failed_is_not_called_again(proc: Process) -> None:
    called: list[int] = []

    def fail() -> str:
        called.append(1)
        raise ValueError("no")

    tools = Toolset(proc, python=[fail])

    assert tools.call("fail", {}, "toolu_1") == tools.call("fail", {}, "toolu_1")
    assert called == [1]


def test_a_refused_call_may_be_retried(proc: Process, tools: Toolset) -> None:
    assert tools.call("close_fd", {"fd": 1}, "toolu_1").is_error

    proc.create("x")

    assert not tools.call("close_fd", {"fd": 1}, "toolu_1").is_error


def test_a_child_is_started_once(store: Store, proc: Process, context: Context) -> None:
    proc.create(LINES)
    arguments = {"program_name": "reader", "query": "q", "additional_preload_fds": ["fd:1#L1"]}

    first = started(store, context, "toolu_1", **arguments)
    proc.close("fd:1")

    assert started(store, context, "toolu_1", **arguments).id == first.id
    assert len(store.tree("triage").members) == 2


def test_a_child_is_started_once_even_if_the_call_result_was_not_stored(
    store: Store, proc: Process, context: Context, execute: Callable[..., Any]
) -> None:
    arguments = {"program_name": "reader", "query": "q"}
    first = started(store, context, "toolu_1", **arguments)

    execute(
        "HDEL", "fdstore:{triage}:triage:calls", "toolu_1/outcome"
    )  # as if the worker had died just before this was stored

    assert started(store, context, "toolu_1", **arguments).id == first.id
    assert [held.fd for held in proc.list()] == ["fd:1"]


def test_wrapping_twice_with_one_call_id_stores_once(proc: Process, tools: Toolset) -> None:
    assert tools.wrap("x" * 9000, call_id="toolu_1") == tools.wrap("x" * 9000, call_id="toolu_1")
    assert len(proc.list()) == 1


def test_reading_stores_nothing(proc: Process, tools: Toolset, execute: Callable[..., Any]) -> None:
    proc.create(LINES)

    for name, arguments in (
        ("read_fd", {"fd": 1}),
        ("search_fd", {"fd": 1, "pattern": "5"}),
        ("list_fds", {}),
    ):
        tools.call(name, arguments, "toolu_1")

    assert execute("EXISTS", "fdstore:{triage}:triage:calls") == 0


def test_the_first_stored_result_of_a_call_is_kept(proc: Process, store: Store) -> None:
    store.run(tool_calls.store_result(proc.handle, "toolu_1", "first"))
    store.run(tool_calls.store_result(proc.handle, "toolu_1", "second"))

    assert store.run(tool_calls.identify(proc.handle, "toolu_1", "post 1")) == "first"
    assert store.run(tool_calls.identify(proc.handle, "toolu_2", "post 2")) is None


# the awaitable toolset


def test_the_awaitable_toolset_has_the_same_api() -> None:
    blocking, awaited = (
        {name: member for name, member in vars(kind).items() if not name.startswith("_")}
        for kind in (Toolset, fdstore.aio.Toolset)
    )

    assert blocking.keys() == awaited.keys()
    for name, member in blocking.items():
        assert awaited[name].__doc__
        if callable(member):
            ours, theirs = inspect.signature(member), inspect.signature(awaited[name])
            assert list(ours.parameters.values()) == list(theirs.parameters.values())


def test_the_awaitable_toolset_returns_the_same_results(redis_url: str, store: Store, tmp_path: Path) -> None:
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
    options: dict[str, Any] = {"enabled": ALL, "python": [shout, later]}

    blocking = Toolset(store.process("one"), export_root=here, **options)
    expected = [blocking.call(name, arguments) for name, arguments in script]

    async def main() -> list[Any]:
        async with await fdstore.aio.connect(redis_url) as connected:
            awaited = fdstore.aio.Toolset(await connected.process("two"), export_root=there, **options)
            assert awaited.definitions == blocking.definitions
            assert awaited.instructions == blocking.instructions
            found = [await awaited.call(name, arguments) for name, arguments in script]
            assert await awaited.wrap(["a"]) == blocking.wrap(["a"])
            assert await awaited.wrap_input("a") == "a"
            assert await awaited.take_references('<ref id="a">b</ref>') == ["ref:a"]
            return found

    shown = asyncio.run(main())
    assert [each.content.replace('"two"', '"one"') for each in shown] == [each.content for each in expected]
    assert [each.is_error for each in shown] == [each.is_error for each in expected]
