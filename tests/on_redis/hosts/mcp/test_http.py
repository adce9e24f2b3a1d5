"""`fdstore mcp --http`: who may call, and what a token permits."""

from __future__ import annotations

import asyncio
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner
from mcp import Client, MCPError

from fdstore import aio
from fdstore.cli import cli
from fdstore.client import Process, Store
from fdstore.hosts.mcp.access import access_to, tools_of
from fdstore.hosts.mcp.toolsets import Toolsets
from fdstore.http.connections import once_per_minute
from fdstore.local.redis_server import PrivateServer
from fdstore.store.tokens import PERMISSIONS, add_token, new_secret, remove_token
from fdstore.tools.catalogue import READING_TOOLS
from tests.elements import only
from tests.on_redis.hosts.mcp.served import calling, served, serving, status_of
from tests.on_redis.hosts.mcp.sessions import ERAS, text_of, toolsets_at

READ, WRITE = frozenset({"read"}), frozenset({"read", "write"})


def token(store: Store, name: str, process: str, permissions: Any = READ, **options: Any) -> str:
    """Add a token and return it."""
    secret = new_secret()
    store.run(add_token(store.prefix, secret, name, process, permissions, **options))
    return secret


async def is_readable(client: Client, uri: str) -> bool:
    """Return whether a resource can be read; one that cannot does not exist for the caller."""
    try:
        return bool((await client.read_resource(uri)).contents)
    except MCPError as error:
        if error.data["type"] != "not_found":
            raise
        return False


@pytest.mark.parametrize("era", ERAS)
def test_several_clients_share_the_descriptors_of_a_server(redis_url: str, era: str) -> None:
    async def main() -> str:
        async with served(redis_url) as url, calling(url, era=era) as one, calling(url, era=era) as other:
            await one.call_tool("put_fd", {"text": "found by one"})
            return only(text_of(await other.call_tool("read_fd", {"fd": 1}))).body

    assert asyncio.run(main()) == "found by one"


def test_a_web_page_of_another_origin_cannot_call_the_server(redis_url: str) -> None:
    async def main() -> list[int]:
        async with served(redis_url) as url:
            return [
                await status_of(url, Host="attacker.example"),
                await status_of(url, Host="127.0.0.1.attacker.example:80"),
                await status_of(url, Origin="https://attacker.example"),
                await status_of(url, Origin="null"),
            ]

    assert asyncio.run(main()) == [421, 421, 403, 403]


def test_the_names_of_a_server_are_known_in_letters_of_any_size(redis_url: str) -> None:
    async def main() -> list[int]:
        async with served(redis_url, names=("FD.Example.org:8000", "fd00::1")) as url:
            hosts = [
                "fd.example.org",
                "FD.EXAMPLE.ORG:80",
                "LocalHost",
                "[fd00::1]:80",
                "fd.example.org.evil",
            ]
            found = [await status_of(url, Host=host) for host in hosts]
            return [*found, await status_of(url, Origin="HTTPS://FD.example.org")]

    # 400: the request is let in, and begins no session
    assert asyncio.run(main()) == [400, 400, 400, 400, 421, 400]


def test_refused_headers_are_logged_once_and_without_their_control_characters(
    redis_url: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(once_per_minute, "_passed_at", {})

    async def main() -> None:
        async with served(redis_url) as url:
            for host in (b"one\x9b2J.example", b"two.example", b"three.example"):
                await status_of(url, Host=host)

    asyncio.run(main())

    [said] = [each.getMessage() for each in caplog.records if "--allow-host" in each.getMessage()]
    assert "one\\x9b2J.example" in said


def test_a_request_without_a_valid_token_is_refused(redis_url: str, store: Store) -> None:
    valid = token(store, "ada", "triage")
    expired = token(store, "late", "triage", expires_s=-1.0)
    removed = token(store, "gone", "triage")
    store.run(remove_token(store.prefix, "gone"))
    wrong = ["x", valid[:-1], valid + "x", valid.upper(), expired, removed]

    async def main() -> list[int]:
        async with served(redis_url, with_tokens=True) as url:
            refused = [await status_of(url, Authorization=f"Bearer {each}") for each in wrong]
            return [await status_of(url), *refused]

    assert asyncio.run(main()) == [401] * (len(wrong) + 1)


@pytest.mark.parametrize("era", ERAS)
def test_a_token_names_the_process_and_what_may_be_done_there(redis_url: str, store: Store, era: str) -> None:
    store.process("triage").create("of triage")
    store.process("other").create("of other")
    for process in (store.process("triage"), store.process("triage").child(), store.process("other")):
        process.put("plan", f"the plan of {process.id}")
    reader, writer = token(store, "reader", "triage"), token(store, "writer", "other", WRITE)
    family = token(store, "family", "triage", whole_tree=True)

    async def main() -> dict[str, Any]:
        found: dict[str, Any] = {}
        async with served(redis_url, with_tokens=True) as url:
            for name, secret in (("reader", reader), ("writer", writer), ("family", family)):
                async with calling(url, secret, era=era) as client:
                    tools = [tool.name for tool in (await client.list_tools()).tools]
                    put = await client.call_tool("put_fd", {"text": name})
                    read = await client.call_tool("read_fd", {"fd": 1})
                    listed = [each.name for each in (await client.list_resources()).resources]
                    readable = [
                        process
                        for process in ("triage", "triage.1", "other")
                        if await is_readable(client, f"fdstore://{process}/name:plan")
                    ]
                    found[name] = (len(tools), put.is_error, only(text_of(read)).body, listed, readable)
        return found

    found = asyncio.run(main())

    assert found["reader"] == (len(READING_TOOLS), True, "of triage", ["fd:1", "name:plan"], ["triage"])
    assert found["writer"] == (
        *(len(tools_of(["read", "write"])), False, "of other"),
        *(["fd:1", "fd:3", "name:plan"], ["other"]),
    )
    assert found["family"] == (
        *(len(READING_TOOLS), True, "of triage"),
        *(["fd:1", "name:plan"], ["triage", "triage.1"]),
    )


def test_a_server_gives_no_token_more_than_its_own_permissions(redis_url: str, store: Store) -> None:
    secret = token(store, "ada", "triage", frozenset(PERMISSIONS))

    async def main() -> tuple[list[str], bool]:
        async with (
            served(redis_url, with_tokens=True, permissions=READ) as url,
            calling(url, secret) as client,
        ):
            listed = [tool.name for tool in (await client.list_tools()).tools]
            return listed, (await client.call_tool("put_fd", {"text": "x"})).is_error

    assert asyncio.run(main()) == ([*READING_TOOLS], True)


def test_a_removed_token_ends_a_session_that_it_began(redis_url: str, store: Store) -> None:
    secret = token(store, "ada", "triage")

    async def main() -> None:
        async with served(redis_url, with_tokens=True) as url, calling(url, secret, era="legacy") as client:
            await client.list_tools()
            await asyncio.to_thread(store.run, remove_token(store.prefix, "ada"))
            with pytest.raises(MCPError):
                await client.list_tools()

    asyncio.run(main())


def test_a_server_that_stops_ends_the_streams_of_its_clients(redis_url: str, proc: Process) -> None:
    out = proc.open_stream()

    async def main() -> list[object]:
        server = served(redis_url)
        url = await server.__aenter__()
        async with (
            calling(url) as client,
            client.listen(resource_subscriptions=[f"fdstore://triage/{out.fd}"]) as updates,
        ):
            await server.__aexit__(None, None, None)
            return [update async for update in updates]  # SubscriptionLost unless it was ended

    assert asyncio.run(main()) == []
    out.end()


def test_a_store_that_is_down_does_not_make_a_token_invalid() -> None:
    async def main(server: PrivateServer) -> int:
        server.stop()
        toolsets = Toolsets(lambda: aio.connect(server.url), access_to("triage"))
        async with serving(toolsets, with_tokens=True) as url:
            return await status_of(url, Authorization=f"Bearer {new_secret()}")

    with PrivateServer() as server:
        assert asyncio.run(main(server)) == 503


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (["--http", "0.0.0.0:0"], "--allow-host"),
        (["--http", "0.0.0.0:0"], "--require-token is needed; 0.0.0.0 means all interfaces"),
        (["--http", "0.0.0.0:0", "--allow-host", "fd.example.org"], "--require-token is needed"),
        (["--http", "fd.example.org:8000"], "--require-token is needed"),
        (["--http", "[::1]:0", "--allow-host", "https://fd.example.org"], "is not the name of a host"),
        (["--http", "[::1]:0", "--allow-host", "*"], "is not the name of a host"),
        (["--http", "127.0.0.1:0", "--require-token", "--process", "triage"], "leave --process out"),
        (["--http", "127.0.0.1:http"], "is not HOST:PORT"),
        (["--require-token"], "need --http"),
        (["--allow", "everything"], "is not a permission"),
        (["--allow", "read,export"], "--export-root"),
        (["--process", "Triage"], "is not a process"),
    ],
)
def test_options_that_would_open_the_store_to_others_are_refused(options: list[str], problem: str) -> None:
    called = CliRunner().invoke(cli, ["mcp", *options])

    assert called.exit_code == 2
    assert problem in called.output


def test_a_request_that_is_too_large_is_answered_with_the_limit_and_the_remedy() -> None:
    async def main(url: str) -> httpx2.Response:
        async with serving(toolsets_at(url)) as served_at, httpx2.AsyncClient(verify=False) as client:
            return await client.post(served_at, content=b" " * (4 << 20) + b"{}")

    with PrivateServer() as server:
        response = asyncio.run(main(server.url))

    assert response.status_code == 413
    assert response.json()["jsonrpc"] == "2.0"
    assert "4 MiB" in response.json()["error"]["message"]
    assert "put_fd(file=...)" in response.json()["error"]["message"]
