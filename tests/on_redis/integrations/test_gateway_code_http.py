"""Programs of hosts that reach the gateway by HTTP."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest

from fdstore.hosts.gateway.code.programs import Programs
from fdstore.hosts.gateway.descriptors import Descriptors
from fdstore.hosts.gateway.http_relay import HttpRelay
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.sse import EventSplitter, data_of
from fdstore.hosts.gateway.tool_list import CODE_TOOLS
from fdstore.tools.catalogue import READING_TOOLS
from tests import plain_http
from tests.mcp_http_upstream import NEWEST, Upstream, served
from tests.on_redis.integrations.hosts import PROJECT, printed
from tests.waiting import PATIENCE_S

BOTH = {"Accept": "application/json, text/event-stream", "Mcp-Session-Id": "s7", "X-Mine": "2"}
TOOLS = ("lines", "stream", "never")


@pytest.fixture
def upstream() -> Upstream:
    made = Upstream()
    made.tools = [{"name": name, "inputSchema": {}} for name in TOOLS]
    return made


@pytest.fixture
def url(upstream: Upstream, redis_url: str) -> Iterator[str]:
    """The URL of a gateway with `--code`."""
    options = GatewayOptions(code="also", code_allow=("*",))
    descriptors = Descriptors(options, PROJECT, print, url=redis_url)
    descriptors.start()
    programs = Programs(descriptors)
    with served(upstream) as behind:
        relay = HttpRelay(behind, descriptors, {"Authorization": "Bearer s"}, programs=programs)
        with served(relay) as url:
            yield url


def request(code: str, id: Any = 1, **meta: Any) -> Any:
    params = {"name": "run_python", "arguments": {"code": code}, "_meta": meta}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def messages_of(response: httpx2.Response) -> list[Any]:
    return [json.loads(data) for event in EventSplitter().feed(response.content) if (data := data_of(event))]


def run(url: str, code: str, **meta: Any) -> str:
    """Run code, and return what the model sees."""
    [*_, answer] = messages_of(
        plain_http.post(url, json=request(code, **meta), headers=BOTH, timeout=PATIENCE_S)
    )
    return printed(answer["result"])


def test_a_host_by_http_sees_our_two_tools(url: str) -> None:
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}

    tools = plain_http.post(url, json=listing, headers=BOTH).json()["result"]["tools"]

    assert [tool["name"] for tool in tools] == [*TOOLS, *READING_TOOLS, *CODE_TOOLS]


def test_a_program_calls_the_server_as_its_client_does(url: str, upstream: Upstream) -> None:
    """With the headers of its client's session, and those of the operator."""
    code = "import asyncio\n[len(each) for each in await asyncio.gather(server.lines(), server.stream())]"

    assert run(url, code) == "[48893, 9000]"

    calls = [headers for _, headers, message in upstream.requests if message["method"] == "tools/call"]
    assert len(calls) == 2
    for headers in calls:
        assert (headers["mcp-session-id"], headers["x-mine"]) == ("s7", "2")
        assert headers["authorization"] == "Bearer s"


def test_each_call_of_the_newest_era_has_its_own_headers(url: str, upstream: Upstream) -> None:
    headers = {**BOTH, "Mcp-Method": "tools/call", "Mcp-Name": "run_python"}
    plain_http.post(url, json=request("await server.lines()", **NEWEST), headers=headers, timeout=PATIENCE_S)

    [sent] = [headers for _, headers, message in upstream.requests if message["method"] == "tools/call"]
    assert (sent["mcp-name"], sent["mcp-protocol-version"]) == ("lines", "2026-07-28")


def test_a_client_that_takes_no_stream_gets_the_answer_alone(url: str) -> None:
    response = plain_http.post(url, json=request("1 + 1"), headers={"Accept": "application/json"})

    assert printed(response.json()["result"]) == "2"


def test_what_a_server_says_meanwhile_reaches_the_client(url: str) -> None:
    response = plain_http.post(
        url, json=request("len(await server.stream())"), headers=BOTH, timeout=PATIENCE_S
    )

    note, answer = messages_of(response)
    assert note["method"] == "notifications/message"
    assert printed(answer["result"]) == "9000"


@pytest.mark.parametrize("meta", [{}, NEWEST], ids=["2025-11-25", "2026-07-28"])
def test_a_client_that_goes_away_ends_its_program(url: str, upstream: Upstream, meta: dict[str, str]) -> None:
    with plain_http.stream("POST", url, json=request("await server.never()", **meta), headers=BOTH):
        assert upstream.waiting.wait(PATIENCE_S)

    assert upstream.cancelled.wait(PATIENCE_S)
    assert run(url, "'next'") == "'next'"


def test_a_program_that_is_cancelled_in_its_session_ends_without_an_answer(
    url: str, upstream: Upstream
) -> None:
    said: list[Any] = []

    def ask() -> None:
        sent = request("await server.never()", id=5)
        said.append(plain_http.post(url, json=sent, headers=BOTH, timeout=PATIENCE_S))

    asking = threading.Thread(target=ask)
    asking.start()
    assert upstream.waiting.wait(PATIENCE_S)
    params = {"requestId": 5}
    cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}

    assert plain_http.post(url, json=cancel, headers={**BOTH, "Mcp-Session-Id": "s7"}).status_code == 202

    assert upstream.cancelled.wait(PATIENCE_S)
    asking.join()
    assert messages_of(said[0]) == []
