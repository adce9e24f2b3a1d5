"""The gateway before a server by HTTP: for hosts that speak HTTP, and for hosts on standard input."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any
from urllib.parse import urlsplit

import httpx2
import pytest

from fdstore.client import Store
from fdstore.hosts.gateway import http_connection
from fdstore.hosts.gateway.code.programs import Programs
from fdstore.hosts.gateway.descriptors import Descriptors
from fdstore.hosts.gateway.http_relay import HttpRelay, listening_socket, serve
from fdstore.hosts.gateway.http_upstream import HttpUpstream
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.relay import Relay
from fdstore.hosts.gateway.sse import EventSplitter, data_of
from tests import plain_http
from tests.mcp_http_upstream import LARGE, NEWEST, NOTE, UNANSWERED, Upstream, served
from tests.on_redis.integrations.hosts import PROJECT, PipedHost
from tests.thorough import thorough
from tests.waiting import PATIENCE_S, wait_until


@pytest.fixture(scope="module")
def upstream() -> Upstream:
    return Upstream()


@pytest.fixture(scope="module")
def upstream_url(upstream: Upstream) -> Iterator[str]:
    with served(upstream) as url:
        yield url


def started(url: str, **options: Any) -> Descriptors:
    found = Descriptors(GatewayOptions(**options), PROJECT, print, url=url)
    found.start()
    return found


@pytest.fixture
def descriptors(redis_url: str) -> Descriptors:
    return started(redis_url)


@pytest.fixture
def url(upstream: Upstream, upstream_url: str, descriptors: Descriptors) -> Iterator[str]:
    """The URL of the gateway."""
    with served(HttpRelay(f"{upstream_url}?key=1", descriptors, {"Authorization": "Bearer s"})) as url:
        see_tools(url)
        upstream.requests.clear()
        yield url


def see_tools(url: str, headers: Any = None, **params: Any) -> list[str]:
    """Ask for the tools, after which results become descriptors, and return their names."""
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/list", "params": params}
    listed = plain_http.post(url, json=message, headers=headers).json()["result"]["tools"]
    return [tool["name"] for tool in listed]


def post(url: str, tool: str, id: Any = 1, headers: Any = None, **arguments: Any) -> httpx2.Response:
    params = {"name": tool, "arguments": arguments}
    message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
    return plain_http.post(url, json=message, headers=headers)


def shown(message: Any) -> str:
    [block] = message["result"]["content"]
    return str(block["text"])


# --- a host by HTTP


def test_a_long_result_by_http_is_a_descriptor_that_is_read(url: str) -> None:
    response = post(url, "lines", id="a")

    assert shown(response.json()).startswith('<fd_result fd="fd:1" ')
    assert response.json()["id"] == "a"
    assert response.headers["x-kept"] == "1"
    page = post(url, "read_fd", id=2, fd="fd:1#L4321").json()
    assert "\nline 4321\n" in shown(page)
    assert page["id"] == 2


def test_by_http_each_host_is_shown_our_tools_before_its_results_are_descriptors(
    upstream: Upstream, upstream_url: str, descriptors: Descriptors
) -> None:
    """A host is a session, or what a client says of itself."""

    def meta(client: str) -> dict[str, Any]:
        return {"io.modelcontextprotocol/clientInfo": {"name": client, "version": "1"}}

    def is_stored(url: str, headers: Any = None, **params: Any) -> bool:
        params = {"name": "lines", **params}
        message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
        return shown(plain_http.post(url, json=message, headers=headers).json()).startswith("<fd_result ")

    upstream.session = "s1"
    first = {"Mcp-Session-Id": "s1"}
    with served(HttpRelay(upstream_url, descriptors, {})) as url:
        assert not is_stored(url)
        see_tools(url, _meta=meta("ann"))
        assert [is_stored(url, _meta=meta(client)) for client in ("ann", "bob")] == [True, False]
        assert not is_stored(url, {"User-Agent": "other"}, _meta=meta("ann"))
        assert not is_stored(url, first)
        see_tools(url, first)
        assert is_stored(url, first)
        upstream.session = "s2"
        assert not is_stored(url, {"Mcp-Session-Id": "s2"})


@pytest.mark.thorough("many megabytes")
@pytest.mark.parametrize("tool", [*thorough("as JSON", "large"), "large_stream"])
def test_a_large_result_by_http_is_stored_exactly(url: str, tool: str, store: Store) -> None:
    response = post(url, tool)

    assert shown(json.loads(data_of_last(response))).startswith('<fd_result fd="fd:1" ')
    assert store.process("triage").read("fd:1", read_all=True).text == LARGE


@pytest.mark.thorough("many megabytes")
@pytest.mark.parametrize("tool", ["large", "large_stream"])
def test_a_large_result_passes_while_the_store_is_away(upstream_url: str, tool: str) -> None:
    descriptors = Descriptors(GatewayOptions(), PROJECT, print, url="redis://127.0.0.1:1")
    descriptors.start()
    with served(HttpRelay(upstream_url, descriptors, {})) as url:
        see_tools(url)
        through = post(url, tool).content

    assert through == post(upstream_url, tool).content


def data_of_last(response: httpx2.Response) -> bytes:
    """The last message with an id: that of a body, or of a stream of events."""
    if not response.headers["content-type"].startswith("text/event-stream"):
        return response.content
    found = [data_of(event) for event in EventSplitter().feed(response.content)]
    return bytes(next(data for data in reversed(found) if data and b'"id"' in data))


def test_a_short_result_by_http_passes_byte_for_byte(url: str, upstream: Upstream) -> None:
    response = post(url, "other", headers={"X-Mine": "2", "Origin": "http://localhost:1"})

    assert response.content == b'{"id" : 1, "result":{"n":1.50}}\n'
    [(line, headers, _)] = upstream.requests
    assert line == "POST /mcp?key=1"
    assert (headers["x-mine"], headers["authorization"], "origin" in headers) == ("2", "Bearer s", False)


def test_stored_content_is_passed_on_unless_a_header_repeats_the_argument(
    url: str, upstream: Upstream
) -> None:
    post(url, "lines")

    post(url, "other", text="{{fd:1#L7}}")
    post(url, "other", headers={"Mcp-Param-Text": "{{fd:1#L7}}"}, text="{{fd:1#L7}}")

    sent = [message["params"]["arguments"] for _, _, message in upstream.requests[1:]]
    assert sent == [{"text": "line 7\n"}, {"text": "{{fd:1#L7}}"}]


@pytest.mark.parametrize(("tool", "text"), [("read_fd", "fd:1"), ("other", "{{fd:1}}")])
def test_by_http_a_batch_with_a_call_of_ours_reaches_no_server(
    url: str, upstream: Upstream, tool: str, text: str
) -> None:
    calls = [
        {"id": id, "method": "tools/call", "params": {"name": name, "arguments": {"fd": text}}}
        for id, name in ((1, tool), ("b", "other"))
    ]

    answers = plain_http.post(url, json=[*calls, {"method": "notifications/progress"}]).json()

    assert [each["id"] for each in answers] == [1, "b"]
    assert all("send each message alone" in each["error"]["message"] for each in answers)
    assert upstream.requests == []


async def test_by_http_a_cancellation_never_overtakes_the_call_that_waits_for_stored_content(
    upstream: Upstream, upstream_url: str, descriptors: Descriptors
) -> None:
    upstream.session = "s1"
    relay = HttpRelay(upstream_url, descriptors, {})
    transport = httpx2.ASGITransport(relay)
    async with httpx2.AsyncClient(transport=transport, headers={"Mcp-Session-Id": "s1"}) as client:

        async def send(method: str, **more: Any) -> httpx2.Response:
            message = {"jsonrpc": "2.0", "method": method, **more}
            return await client.post("http://localhost/mcp", json=message, timeout=PATIENCE_S)

        def call(id: int, tool: str, **arguments: Any) -> Any:
            return send("tools/call", id=id, params={"name": tool, "arguments": arguments})

        await send("tools/list", id=1)
        await call(2, "lines")
        for id in range(3, 23):
            upstream.forget()
            cancelled = send("notifications/cancelled", params={"requestId": id})
            answers = await asyncio.gather(call(id, "other", text="{{fd:1#L7}}"), cancelled)

            sent = [message["method"] for _, _, message in upstream.requests]
            assert sent in ([], ["tools/call", "notifications/cancelled"])
            assert [each.status_code for each in answers] == [200 if sent else 202, 202]


def test_only_the_answer_in_a_stream_is_changed(url: str) -> None:
    body = post(url, "stream").content

    assert body.startswith(NOTE + b"event: message\r\nid: 7\r\ndata: {")
    assert body.endswith(b"\r\n\r\n")
    data = body.removeprefix(NOTE).partition(b"data: ")[2]
    assert shown(json.loads(data)).startswith("<fd_result ")


def test_a_client_that_lost_the_stream_gets_the_descriptor(url: str) -> None:
    post(url, "broken", id=5)

    body = plain_http.get(url, headers={"Last-Event-ID": "5"}).content

    assert b"<fd_result " in body


def test_other_requests_and_refusals_pass(url: str, upstream: Upstream) -> None:
    assert post(url, "refused").headers["www-authenticate"] == "Bearer"
    assert plain_http.get(url).status_code == 405

    plain_http.delete(url.replace("/mcp", "/.well-known/a%20b?c=d"))

    assert upstream.requests[-1][0] == "DELETE /.well-known/a b?c=d"


@pytest.mark.parametrize(
    "headers", [{"Host": "evil.example"}, {"Origin": "https://evil.example"}, {"Origin": "null"}]
)
def test_a_foreign_web_page_reaches_no_server(url: str, upstream: Upstream, headers: dict[str, str]) -> None:
    assert post(url, "lines", headers=headers).status_code == 403
    assert upstream.requests == []


@pytest.mark.parametrize("tool", UNANSWERED)
def test_a_client_that_leaves_takes_its_request_back(url: str, upstream: Upstream, tool: str) -> None:
    upstream.forget()

    message = {"id": 1, "method": "tools/call", "params": {"name": tool}}
    with pytest.raises(httpx2.ReadTimeout):
        plain_http.post(url, json=message, timeout=httpx2.Timeout(10, read=0.2))

    assert upstream.cancelled.wait(PATIENCE_S)


@pytest.mark.parametrize("path", ["/admin", "/mcp/../admin", "/mcp/", "//mcp", "/MCP", "/mcp%2fx"])
def test_the_operators_headers_and_login_go_only_to_the_configured_path(
    upstream: Upstream, upstream_url: str, descriptors: Descriptors, path: str
) -> None:
    upstream.requests.clear()
    secret = upstream_url.replace("//", "//ann:pw@") + "?key=1"
    with served(HttpRelay(secret, descriptors, {"X-Token": "s"})) as url:
        connection = HTTPConnection(urlsplit(url).netloc)
        connection.request("POST", path, headers={"X-Token": "mine"})
        connection.getresponse().read()
        connection.close()
        plain_http.delete(url)

    (line, elsewhere, _), (_, at_home, _) = upstream.requests
    assert elsewhere["x-token"] == "mine"
    assert "authorization" not in elsewhere
    assert "key=1" not in line
    assert at_home["x-token"] == "s"
    assert at_home["authorization"].startswith("Basic ")


def test_the_operators_headers_go_to_the_paths_that_are_named(
    upstream: Upstream, upstream_url: str, redis_url: str
) -> None:
    upstream.requests.clear()
    relay = HttpRelay(upstream_url, started(redis_url, header_path=("/events",)), {"X-Token": "s"})
    with served(relay) as url:
        for path in ("/events", "/events/2"):
            plain_http.delete(url.replace("/mcp", path))

    assert [headers.get("x-token") for _, headers, _ in upstream.requests] == ["s", None]


def test_a_redirect_passes_and_is_not_followed(url: str, upstream: Upstream) -> None:
    response = post(url, "moved")

    assert (response.status_code, response.headers["location"]) == (307, "/elsewhere")
    assert [line for line, _, _ in upstream.requests] == ["POST /mcp?key=1"]


def test_a_cookie_for_one_client_is_not_sent_with_the_requests_of_another(
    url: str, upstream: Upstream
) -> None:
    assert post(url, "greeted").headers["set-cookie"] == "who=me; Path=/"

    post(url, "other")
    post(url, "other", headers={"Cookie": "who=you"})

    assert [headers.get("cookie") for _, headers, _ in upstream.requests] == [None, None, "who=you"]


@pytest.mark.parametrize("target", ["*", "@evil.example"])
def test_what_is_no_path_is_refused(url: str, upstream: Upstream, target: str) -> None:
    connection = HTTPConnection(urlsplit(url).netloc)

    connection.request("OPTIONS", target)

    assert connection.getresponse().status == 400
    connection.close()
    assert upstream.requests == []


def test_a_server_that_is_gone_is_named(descriptors: Descriptors) -> None:
    with served(HttpRelay("http://127.0.0.1:9/mcp", descriptors, {})) as url:
        response = post(url, "lines")

    assert response.status_code == 502
    assert "cannot be reached" in response.json()["error"]["message"]


ODD = [r'"\ud83d"', "NaN", "1e400", '"a\x01b"']
LINES = "a line\n" * 5000


def odd_answer(odd: str, *, is_stream: bool, mark: str) -> dict[str, Any]:
    """The arguments of a tool that answers with a long text beside what is no strict JSON."""
    line = f'{{"id":"ID","result":{{"content":[{{"type":"text","text":{json.dumps(LINES)}}}],"odd":{odd}}}}}'
    return {"text": mark + (f"data: {line}\r\n\r\n" if is_stream else line), "stream": is_stream}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("is_stream", [True, *thorough("a document", False)])
@pytest.mark.parametrize("mark", ["", *thorough("with a mark", "\ufeff")])
def test_a_client_gets_a_descriptor_beside_what_is_no_strict_json(
    url: str, store: Store, odd: str, is_stream: bool, mark: str
) -> None:
    response = post(url, "raw", **odd_answer(odd, is_stream=is_stream, mark=mark))

    body = (data_of_last(response) if is_stream else response.content).decode()
    assert body.startswith('{"id":1,"result":{"content":[{"type":"text","text":"<fd_result fd=')
    assert body.endswith(f'"odd":{odd}}}}}')
    assert store.process("triage").read("fd:1", read_all=True).text == LINES


def test_a_result_whose_data_is_several_lines_stays_one_event(url: str) -> None:
    line = json.dumps(
        {"id": "ID", "result": {"content": [{"type": "text", "text": LINES}], "n": [1, 2]}}, indent=1
    )
    data = "".join(f"data: {each}\r\n" for each in line.splitlines())

    response = post(url, "raw", text=f"{data}\r\n", stream=True)

    assert shown(json.loads(data_of_last(response))).startswith('<fd_result fd="fd:1" ')


# --- a host on standard input


class StdioHost(PipedHost):
    """A host of `HttpUpstream`."""

    def __init__(self, url: str, descriptors: Descriptors, programs: Programs | None = None) -> None:
        headers = {"Authorization": "Bearer s"}
        self.heard: list[Any] = []
        super().__init__(
            lambda **fds: Relay(HttpUpstream(url, headers), descriptors, grace_s=0, programs=programs, **fds)
        )

    def ask(self, method: str, **params: Any) -> Any:
        """Send a request and return the answer, the first message with its id."""
        id = self.send(method, **params)
        while (message := self.read()).get("id") != id:
            self.heard.append(message)
        return message


@pytest.fixture
def host(upstream: Upstream, upstream_url: str, descriptors: Descriptors) -> Iterator[StdioHost]:
    upstream.session = "s7"
    made = StdioHost(upstream_url, descriptors)
    made.see_tools()
    upstream.requests.clear()
    yield made
    made.close()


def test_a_host_on_standard_input_uses_a_server_by_http(
    upstream: Upstream, upstream_url: str, descriptors: Descriptors
) -> None:
    upstream.requests.clear()
    upstream.session = "s7"
    host = StdioHost(upstream_url, descriptors)
    assert host.ask("initialize")["result"]["protocolVersion"] == "2025-11-25"
    host.tell("notifications/initialized")
    host.see_tools()

    assert shown(host.ask("tools/call", name="lines")).startswith('<fd_result fd="fd:1" ')
    assert "\nline 4321\n" in shown(host.ask("tools/call", name="read_fd", arguments={"fd": "fd:1#L4321"}))
    host.close()

    lines = [line for line, _, _ in upstream.requests]
    assert (lines[0], lines[-1]) == ("POST /mcp", "DELETE /mcp")
    for _, headers, _ in upstream.requests[1:]:
        assert (headers["mcp-session-id"], headers["mcp-protocol-version"]) == ("s7", "2025-11-25")
        assert headers["authorization"] == "Bearer s"


@pytest.mark.parametrize("tool", UNANSWERED)
def test_for_a_host_that_was_killed_no_answer_is_waited_for(
    host: StdioHost, upstream: Upstream, tool: str
) -> None:
    upstream.forget()
    host.begin(tool)
    assert upstream.waiting.wait(PATIENCE_S)

    host.hang_up()

    assert host.leave() == 0
    assert upstream.cancelled.wait(PATIENCE_S)


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("is_stream", [True, *thorough("a document", False)])
@pytest.mark.parametrize("mark", ["", *thorough("with a mark", "\ufeff")])
def test_a_host_gets_one_descriptor_beside_what_is_no_strict_json(
    host: StdioHost, odd: str, is_stream: bool, mark: str
) -> None:
    id = host.begin("raw", **odd_answer(odd, is_stream=is_stream, mark=mark))
    line = bytes(next(host.lines)).decode()

    assert line.startswith(f'{{"id":{id},"result":{{"content":[{{"type":"text","text":"<fd_result fd=')
    assert line.endswith(f'"odd":{odd}}}}}\n')
    assert host.ask("ping")["result"] == {"n": 1.5}


@pytest.mark.parametrize("is_stream", [True, False])
def test_what_cannot_be_read_reaches_the_host_once_and_no_error_follows(
    host: StdioHost, is_stream: bool
) -> None:
    broken = '{"id":"ID","result":{"a":1,,"b":2}}'

    id = host.begin("raw", text=f"data: {broken}\n\n" if is_stream else broken, stream=is_stream)

    assert bytes(next(host.lines)).decode() == broken.replace('"ID"', str(id)) + "\n"
    assert host.ask("ping")["result"] == {"n": 1.5}


@pytest.mark.thorough("many megabytes")
@pytest.mark.parametrize("tool", ["large", *thorough("as a stream", "large_stream")])
def test_a_large_result_of_a_server_by_http_is_stored_exactly(
    host: StdioHost, tool: str, store: Store
) -> None:
    answer = host.ask("tools/call", name=tool)

    assert shown(answer).startswith('<fd_result fd="fd:1" ')
    assert store.process("triage").read("fd:1", read_all=True).text == LARGE


def test_what_a_server_says_unasked_reaches_the_host(host: StdioHost, upstream: Upstream) -> None:
    host.ask("initialize")
    upstream.unasked.append({"jsonrpc": "2.0", "id": "s1", "method": "ping"})

    host.tell("notifications/initialized")

    assert host.read() == {"jsonrpc": "2.0", "id": "s1", "method": "ping"}


def test_a_server_that_lost_the_session_gets_a_new_one(host: StdioHost, upstream: Upstream) -> None:
    host.ask("initialize")
    upstream.session = "s8"

    assert shown(host.ask("tools/call", name="lines")).startswith("<fd_result ")

    sent = [(message["method"], headers.get("mcp-session-id")) for _, headers, message in upstream.requests]
    assert sent == [
        *(("initialize", None), ("tools/call", "s7"), ("initialize", None)),
        *(("notifications/initialized", "s8"), ("tools/call", "s8")),
    ]


def test_a_server_that_lost_the_session_is_listened_to_in_the_new_one(
    host: StdioHost, upstream: Upstream
) -> None:
    host.ask("initialize")
    host.tell("notifications/initialized")
    wait_until(lambda: upstream.gets() == ["s7"])
    upstream.session = "s8"
    upstream.unasked.append({"jsonrpc": "2.0", "id": "s1", "method": "ping"})

    host.send("tools/call", "a", name="other")

    assert {host.read()["id"], host.read()["id"]} == {"a", "s1"}
    assert upstream.gets()[:2] == ["s7", "s8"]


def test_a_new_session_begins_though_the_stream_of_its_answer_stays_open(
    host: StdioHost, upstream: Upstream
) -> None:
    host.ask("initialize")
    upstream.session = "s8"
    upstream.keeps_streams_open = True
    try:
        assert shown(host.ask("tools/call", name="lines")).startswith("<fd_result ")
    finally:
        upstream.keeps_streams_open = False


def test_what_is_no_stream_of_events_is_not_what_a_server_says_unasked(
    host: StdioHost, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "RECONNECT_S", 0.0)
    upstream.unasked_kind = "text/html"
    upstream.unasked += [{"page": 1}, {"page": 2}]
    host.ask("initialize")
    host.tell("notifications/initialized")
    wait_until(lambda: upstream.gets() == ["s7"])

    for _ in range(5):
        assert host.ask("tools/call", name="other")["result"] == {"n": 1.5}
    upstream.unasked_kind = "text/event-stream"

    assert host.heard == []
    assert upstream.unasked == [{"page": 1}]
    upstream.unasked.clear()


HELD = {
    "initialized": {"method": "notifications/initialized"},
    "cancelled": {"method": "notifications/cancelled", "params": {"requestId": 77}},
    "progress": {"method": "notifications/progress"},
    "an answer": {"id": "s1", "result": {}},
}


@pytest.mark.parametrize("held", [[each] for each in HELD.values()] + [list(HELD.values())])
def test_a_server_that_holds_what_expects_no_answer_holds_up_nothing_else(
    host: StdioHost, upstream: Upstream, held: list[dict[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "IN_ORDER_S", 0.1)
    upstream.forget()
    monkeypatch.setattr(upstream, "holds_others", True)

    for message in held:
        host.write(message)

    assert host.ask("tools/call", name="other")["result"] == {"n": 1.5}
    assert host.leave() == 0


def test_a_server_that_holds_what_begins_a_new_session_holds_up_no_call(
    host: StdioHost, upstream: Upstream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_connection, "IN_ORDER_S", 0.1)
    host.ask("initialize")
    upstream.session = "s8"
    monkeypatch.setattr(upstream, "holds_others", True)

    assert host.ask("tools/call", name="other")["result"] == {"n": 1.5}


def test_a_batch_that_is_held_holds_up_nothing_else(host: StdioHost, upstream: Upstream) -> None:
    upstream.forget()
    host.write_batch({"id": "b", "method": "tools/call", "params": {"name": "never"}})
    assert upstream.waiting.wait(PATIENCE_S)

    assert host.ask("tools/call", name="other")["result"] == {"n": 1.5}
    host.hang_up()
    assert host.leave() == 0


def test_a_host_that_sends_nothing_more_waits_as_long_as_the_server_asks(
    upstream: Upstream, upstream_url: str
) -> None:
    def call(id: int, tool: str) -> None:
        params = {"name": tool}
        server.send(json.dumps({"id": id, "method": "tools/call", "params": params}).encode())

    upstream.forget()
    server = HttpUpstream(upstream_url, {})
    said = server.messages()
    call(0, "later")
    wait_until(lambda: upstream.requests)
    server.close_stdin()

    for id in range(1, 10):
        call(id, "other")
        assert bytes(next(said).fields["id"]).decode() == str(id)

    assert upstream.gets() == []
    server.end(0)


def test_a_stream_that_broke_off_is_continued(host: StdioHost) -> None:
    assert shown(host.ask("tools/call", name="broken")).startswith("<fd_result ")


def test_each_request_of_the_newest_era_has_its_headers(host: StdioHost, upstream: Upstream) -> None:
    host.ask("tools/call", name="größer", _meta=NEWEST)

    [(_, headers, _)] = upstream.requests
    assert headers["mcp-protocol-version"] == "2026-07-28"
    assert (headers["mcp-method"], headers["mcp-name"]) == ("tools/call", "=?base64?Z3LDtsOfZXI=?=")


@pytest.fixture
def coding_host(upstream: Upstream, upstream_url: str, redis_url: str) -> Iterator[StdioHost]:
    """A host whose model writes programs."""
    upstream.forget()
    upstream.session = "s7"
    upstream.tools = [{"name": name, "inputSchema": {}} for name in ("lines", "stream")]
    descriptors = started(redis_url, code="also", code_allow=("*",))
    made = StdioHost(upstream_url, descriptors, Programs(descriptors))
    yield made
    made.close()
    upstream.tools = []


def test_a_program_calls_the_tools_of_a_server_by_http(coding_host: StdioHost, upstream: Upstream) -> None:
    """Since 2026-07-28 each request has its version, which those of programs take from the host's."""
    code = "import asyncio\n[len(each) for each in await asyncio.gather(server.lines(), server.stream())]"

    ran = coding_host.ask("tools/call", name="run_python", arguments={"code": code}, _meta=NEWEST)

    assert "\n[48893, 9000]\n" in shown(ran)
    by_method = {headers["mcp-method"]: headers for _, headers, _ in upstream.requests}
    assert by_method.keys() == {"tools/list", "tools/call"}
    assert {headers["mcp-protocol-version"] for headers in by_method.values()} == {"2026-07-28"}


def test_a_refusal_is_an_error_with_the_status(host: StdioHost) -> None:
    assert "HTTP 401" in host.ask("tools/call", name="refused")["error"]["message"]


def test_each_request_of_a_batch_has_its_answer(host: StdioHost, upstream: Upstream) -> None:
    calls = [{"id": name, "method": "tools/call", "params": {"name": name}} for name in ("refused", "other")]

    host.write_batch(*calls, {"method": "notifications/progress"})

    answers = {message["id"]: message for message in (host.read(), host.read())}
    assert "HTTP 401" in answers["refused"]["error"]["message"]
    assert answers["other"]["result"] == {"n": 1.5}


def test_a_redirect_is_an_error_and_is_not_followed(host: StdioHost, upstream: Upstream) -> None:
    upstream.requests.clear()

    assert "HTTP 307" in host.ask("tools/call", name="moved")["error"]["message"]

    assert [line for line, _, _ in upstream.requests] == ["POST /mcp"]


def test_what_a_server_says_oddly_ends_no_connection(host: StdioHost, upstream: Upstream) -> None:
    assert shown(host.ask("tools/call", name="odd_retry")) == "short"
    assert "cannot be used" in host.ask("tools/call", name="odd_id")["error"]["message"]
    upstream.session = "s\xe9"
    host.ask("initialize")

    host.tell("notifications/initialized")

    assert "cannot be used" in host.ask("tools/call", name="lines")["error"]["message"]
    assert shown(host.ask("tools/call", name="read_fd", arguments={})).startswith("<fd_error")


def test_a_client_can_connect_when_the_gateway_says_that_it_listens(descriptors: Descriptors) -> None:
    connected = []

    class Stop(Exception):
        pass

    def connect(said: str) -> None:
        url = urlsplit(said.rpartition(" ")[2])
        connected.append(HTTPConnection(str(url.hostname), url.port, timeout=10))
        connected[0].connect()
        raise Stop

    relay = HttpRelay("http://127.0.0.1:9/mcp", descriptors, {})
    with listening_socket("127.0.0.1:0") as listening, pytest.raises(Stop):
        serve(relay, listening, "http://127.0.0.1:9/mcp", connect)
    connected[0].close()


@pytest.mark.parametrize("tool", UNANSWERED)
def test_a_request_that_is_taken_back_ends_the_response_stream_since_2026_07_28(
    host: StdioHost, upstream: Upstream, tool: str
) -> None:
    upstream.forget()
    host.send("tools/call", "a", name=tool, _meta=NEWEST)
    assert upstream.waiting.wait(PATIENCE_S)

    host.tell("notifications/cancelled", requestId="a", _meta=NEWEST)

    assert upstream.cancelled.wait(PATIENCE_S)
    assert [message.get("method") for _, _, message in upstream.requests] == ["tools/call"]


def test_a_request_that_is_taken_back_keeps_no_gateway_alive(host: StdioHost, upstream: Upstream) -> None:
    upstream.forget()
    host.ask("initialize")
    host.send("tools/call", "n", name="never")
    assert upstream.waiting.wait(PATIENCE_S)

    host.tell("notifications/cancelled", requestId="n")

    assert upstream.cancelled.wait(PATIENCE_S)
    host.tell("notifications/cancelled", requestId=77)  # of another request it is only passed on
    assert host.ask("tools/call", name="other")["result"] == {"n": 1.5}
    sent = [message.get("method") for _, _, message in upstream.requests]
    assert sent.count("notifications/cancelled") == 2
    host.close()  # which waits for the end of the gateway
