"""The tools of `fdstore mcp` as a host sees and calls them."""

from __future__ import annotations

import asyncio
import base64
import gzip
from pathlib import Path
from typing import Any

import pytest
from mcp import Client
from mcp_types import EmbeddedResource, ImageContent

from fdstore import aio
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument
from fdstore.hosts.mcp.access import tools_of
from fdstore.hosts.mcp.server import build_server
from fdstore.hosts.mcp.tool_list import HostTool
from fdstore.hosts.mcp.toolsets import ToolOptions
from fdstore.local.redis_server import PrivateServer
from fdstore.store.tokens import PERMISSIONS
from fdstore.tools.catalogue import BUILT_IN, READING_TOOLS
from tests.elements import elements, only
from tests.on_redis.hosts.mcp.sessions import ERAS, call_all, talk, text_of, toolsets_at
from tests.outages import SilentServer
from tests.unit.files.documents_made import DOCUMENTS, pdf_of
from tests.waiting import LOOK_EVERY_S, PATIENCE_S

PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)
SHOWN_CHARS = 2048
"""Claude Code cuts longer descriptions."""
LINES = "".join(f"line {number}\n" for number in range(1, 2001))


@pytest.mark.parametrize("era", ERAS)
def test_a_text_is_stored_and_read_in_both_eras(redis_url: str, era: str) -> None:
    calls = (
        ("put_fd", {"text": LINES}),
        ("read_fd", {"fd": "fd:1#L1000-1001"}),
        ("search_fd", {"fd": 1, "pattern": "line 77$"}),
    )

    stored, page, found = map(text_of, call_all(redis_url, *calls, era=era))

    assert only(stored)["fd"] == "fd:1"
    assert only(page).body == "line 1000\nline 1001\n"
    assert only(found).body == "77:line 77"


def test_the_tools_are_described_without_an_output_schema(redis_url: str) -> None:
    async def work(client: Client) -> Any:
        return (await client.list_tools()).tools

    everything = frozenset(PERMISSIONS)
    options = ToolOptions(export_root="out", commands=("grep",))
    tools = {tool.name: tool for tool in talk(redis_url, work, permissions=everything, options=options)}

    assert list(tools) == [name for name, tool in BUILT_IN.items() if tool.permission]
    assert all(tool.output_schema is None for tool in tools.values())
    assert all(tool.annotations.open_world_hint is False for tool in tools.values())
    hints = {
        name: (tool.annotations.read_only_hint, tool.annotations.destructive_hint)
        for name, tool in tools.items()
    }
    assert hints["read_fd"] == (True, False)
    assert hints["put_fd"] == (False, False)
    assert hints["close_fd"] == hints["fd_to_file"] == hints["kill"] == (False, True)
    assert tools["read_fd"].meta == {"anthropic/alwaysLoad": True, "anthropic/maxResultSizeChars": 100_000}
    assert tools["list_fds"].meta is None
    assert all(len(tool.description) <= SHOWN_CHARS for tool in tools.values())
    assert "file" not in tools["put_fd"].input_schema["properties"]


def test_a_mistake_of_the_model_is_a_result_and_not_an_error_of_the_protocol(redis_url: str) -> None:
    calls = ("read_fd", {"fd": 7}), ("read_fd", {}), ("none", {}), ("put_fd", {"file": "x"})

    results = call_all(redis_url, *calls)

    assert all(result.is_error for result in results)
    types = [only(text_of(result))["type"] for result in results]
    assert types == ["not_found", "invalid_argument", "invalid_argument", "permission_error"]


def test_one_read_shows_no_more_than_hosts_keep_inline(redis_url: str, proc: Process) -> None:
    proc.create("x" * 45_000, source="fits")
    proc.create("x" * 45_001)

    reads = [("read_fd", {"fd": fd, "read_all": True}) for fd in (1, 2)]

    fits, refused = map(text_of, call_all(redis_url, *reads))

    assert only(fits).body == "x" * 45_000
    assert only(refused)["type"] == "too_large"


def test_a_file_below_the_root_is_stored_unread_with_progress(
    redis_url: str, proc: Process, tmp_path: Path
) -> None:
    (tmp_path / "build.log").write_bytes(LINES.encode() * 300)
    (tmp_path / "photo.png").write_bytes(PIXEL)
    (tmp_path / "packed.log.gz").write_bytes(gzip.compress(LINES.encode()))
    (tmp_path / "cut.gz").write_bytes(gzip.compress(LINES.encode())[:-9])
    (tmp_path / ".env").write_text("secret")
    told: list[tuple[float, float | None]] = []

    async def note(done: float, total: float | None, message: str | None) -> None:
        told.append((done, total))

    async def work(client: Client) -> list[str]:
        return [
            text_of(await client.call_tool("put_fd", {"file": name}, progress_callback=note))
            for name in ("build.log", "photo.png", "packed.log.gz", "cut.gz", ".env", "../up", "/etc/passwd")
        ]

    async def search(client: Client) -> None:
        await client.call_tool("search_fd", {"fd": 1, "pattern": "x"}, progress_callback=note)

    stored, photo, packed, cut, *refused = talk(redis_url, work, options=ToolOptions(put_root=tmp_path))

    size = (tmp_path / "build.log").stat().st_size
    assert (only(stored)["fd"], only(stored)["source"]) == ("fd:1", "build.log")
    assert proc.read_bytes("fd:1") == LINES.encode() * 300
    assert (size, size) in told
    told.clear()
    talk(redis_url, search)
    assert told[-1] == (size, size)
    assert only(photo)["media_type"] == "image/png"
    assert only(packed)["source"] == "packed.log"
    assert proc.read_bytes("fd:3") == LINES.encode()
    assert "cut.gz: it is damaged and cannot be unpacked: it ends too soon" in only(cut).message
    assert {only(each)["type"] for each in refused} == {"permission_error"}
    assert len(proc.list()) == 3


def test_a_document_below_the_root_is_stored_with_its_text_as_two_descriptors(
    redis_url: str, proc: Process, tmp_path: Path
) -> None:
    (tmp_path / "report.pdf").write_bytes(DOCUMENTS[".pdf"])
    (tmp_path / "scan.pdf").write_bytes(pdf_of(""))

    async def work(client: Client) -> list[str]:
        names = ("report.pdf", "scan.pdf")
        return [text_of(await client.call_tool("put_fd", {"file": name})) for name in names]

    both, scan = talk(redis_url, work, options=ToolOptions(put_root=tmp_path))

    document, text = elements(both)
    assert (document["fd"], document["media_type"]) == ("fd:1", "application/pdf")
    assert (text["fd"], text["source"]) == ("fd:2", "report.pdf.txt")
    assert proc.read_bytes("fd:1") == DOCUMENTS[".pdf"]
    assert proc.read("fd:2").text == "[page 1]\none\n[page 2]\ntwo\n"
    assert only(scan)["media_type"] == "application/pdf"
    assert len(proc.list()) == 3


def test_an_image_is_an_image_block_and_a_pdf_a_resource(redis_url: str, proc: Process) -> None:
    proc.create(PIXEL, media_type="image/png")
    proc.create(b"%PDF-1.4\n%%EOF\n", media_type="application/pdf")

    reads = call_all(redis_url, *(("read_fd", {"fd": fd}) for fd in (1, 2)))

    image, document = (read.content[1] for read in reads)

    assert isinstance(image, ImageContent)
    assert (image.mime_type, base64.b64decode(image.data)) == ("image/png", PIXEL)
    assert isinstance(document, EmbeddedResource)
    assert document.resource.mime_type == "application/pdf"


def test_without_the_permission_to_write_nothing_can_be_made(redis_url: str, proc: Process) -> None:
    proc.create(LINES)

    async def work(client: Client) -> tuple[list[str], list[str]]:
        tools = (await client.list_tools()).tools
        assert all("extract_to_new_fd" not in tool.input_schema["properties"] for tool in tools)
        calls = [
            ("put_fd", {"text": "x"}),
            ("close_fd", {"fd": 1}),
            ("read_fd", {"fd": 1, "extract_to_new_fd": True}),
            ("search_fd", {"fd": 1, "pattern": "1", "extract_to_new_fd": "true"}),
        ]
        results = [await client.call_tool(name, arguments) for name, arguments in calls]
        return [tool.name for tool in tools], [only(text_of(result))["type"] for result in results]

    names, errors = talk(redis_url, work, permissions=frozenset({"read"}))

    assert names == [*READING_TOOLS]
    assert errors == ["permission_error"] * 4
    assert [d.fd for d in proc.list()] == ["fd:1"]


def test_another_module_adds_a_tool_for_hosts(redis_url: str) -> None:
    async def offload(arguments: dict[str, Any]) -> str:
        if "text" not in arguments:
            raise InvalidArgument("text", "is missing")
        return f"{len(arguments['text'])} characters"

    async def main() -> Any:
        async with await aio.connect(redis_url) as store:
            tools = aio.Toolset(await store.process("triage"))
            hook = HostTool(name="offload", description="For the hook.", run=offload)
            async with Client(build_server(tools, host_tools=[hook])) as client:
                listed = [tool.name for tool in (await client.list_tools()).tools]
                done = await client.call_tool("offload", {"text": "abc"})
                failed = await client.call_tool("offload", {})
            await tools.process.list()  # the caller's store is still open
            with pytest.raises(InvalidArgument, match="read_fd"):
                build_server(tools, host_tools=[HostTool(name="read_fd", description="", run=offload)])
            return listed, text_of(done), only(text_of(failed))["type"]

    assert asyncio.run(main()) == (["read_fd", "list_fds", "offload"], "3 characters", "invalid_argument")


def test_a_process_that_was_removed_is_made_again_and_no_id_means_another_text(
    redis_url: str, store: Store, proc: Process
) -> None:
    proc.create("old")

    async def work(client: Client) -> list[str]:
        await client.call_tool("read_fd", {"fd": 1})
        await asyncio.to_thread(store.drop_tree, "triage")
        calls = [("put_fd", {"text": "new"}), ("read_fd", {"fd": 2}), ("read_fd", {"fd": 1})]
        return [text_of(await client.call_tool(name, arguments)) for name, arguments in calls]

    made, new, old = talk(redis_url, work)

    assert only(made)["fd"] == "fd:2"
    assert only(new).body == "new"
    assert only(old)["type"] == "not_found"


def test_a_store_that_is_down_is_an_error_of_each_call_until_it_is_back(tmp_path: Path) -> None:
    async def main(server: PrivateServer) -> tuple[int, str, str]:
        server.stop()
        async with Client(build_server(toolsets_at(server.url, patience=0.2))) as client:
            offered = len((await client.list_tools()).tools)
            down = await client.call_tool("list_fds", {})
            await asyncio.to_thread(server.start)
            while (up := await client.call_tool("put_fd", {"text": "x"})).is_error:
                await asyncio.sleep(LOOK_EVERY_S)  # until the pause is over
            return offered, only(text_of(down))["type"], only(text_of(up))["fd"]

    with PrivateServer() as server:
        assert asyncio.run(main(server)) == (
            len(tools_of(["read", "write"])),
            "store_unavailable",
            "fd:1",
        )


def test_a_store_that_never_answers_delays_no_list_and_one_call() -> None:
    async def lists(url: str) -> tuple[int, int]:
        toolsets = toolsets_at(url, patience=PATIENCE_S)  # a list that waited for the store would hang
        async with Client(build_server(toolsets)) as client:
            return len((await client.list_tools()).tools), len((await client.list_resources()).resources)

    async def calls(url: str) -> list[str]:
        async with Client(build_server(toolsets_at(url, patience=0.2))) as client:
            return [text_of(await client.call_tool("list_fds", {})) for _ in range(5)]

    with SilentServer() as silent:
        assert asyncio.run(lists(silent.url)) == (len(tools_of(["read", "write"])), 0)
    with SilentServer() as silent:
        errors = asyncio.run(calls(silent.url))
        assert all("it is tried again in" in error for error in errors[1:])
        assert silent.connections == 1
