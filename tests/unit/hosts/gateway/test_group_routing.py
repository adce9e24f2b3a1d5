"""The server of a group to which each message goes."""

from __future__ import annotations

import json
from typing import Any

import pytest

from fdstore.hosts.gateway.code.catalogue import read_tools_of
from fdstore.hosts.gateway.group_names import public_name
from fdstore.hosts.gateway.group_routing import GroupRouter
from fdstore.hosts.gateway.group_steps import Limit, Say, ToHost, ToServer
from fdstore.hosts.gateway.json_texts import LONG_BYTES
from fdstore.hosts.gateway.messages import Message
from fdstore.hosts.gateway.paged_list import MAX_LIST_BYTES


class Wire:
    """A host and its servers, with the messages that they get."""

    def __init__(self, *servers: str) -> None:
        self.router = GroupRouter(servers)
        self.host: list[Any] = []
        self.servers: dict[str, list[Any]] = {name: [] for name in servers}
        self.said: list[str] = []
        self.limits: list[int] = []

    def act(self, steps: Any) -> None:
        for step in steps:
            match step:
                case ToHost(line=line):
                    assert bytes(line).endswith(b"\n")
                    self.host.append(json.loads(line))
                case ToServer(server=name, line=line):
                    assert bytes(line).endswith(b"\n")
                    self.servers[name].append(json.loads(line))
                case Say(text=text):
                    self.said.append(text)
                case Limit(number=number):
                    self.limits.append(number)

    def time_over(self) -> None:
        """Let the time of the last request of the gateway's own be over."""
        self.act(self.router.time_over(self.limits[-1]))

    def ask(self, id: Any, method: str, **params: Any) -> None:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self.act(self.router.from_host(json.dumps(message).encode() + b"\n"))

    def tell(self, **message: Any) -> None:
        self.act(self.router.from_host(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"))

    def answer(self, server: str, result: Any = None, **more: Any) -> None:
        """Let a server answer the oldest request that it has got."""
        asked = self.servers[server].pop(0)
        said = more or {"result": result}
        self.write(server, id=asked["id"], **said)

    def write(self, server: str, **message: Any) -> None:
        line = json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n"
        self.act(self.router.from_server(server, Message(line)))

    def begin(self, **capabilities: dict[str, Any]) -> None:
        """Begin, each server with these capabilities or with those of its name."""
        self.ask(0, "initialize", protocolVersion="2025-11-25")
        for name in self.servers:
            given = capabilities.get(name, {"tools": {}})
            self.answer(name, {"protocolVersion": "2025-11-25", "capabilities": given})
        self.tell(method="notifications/initialized")
        self.host.clear()
        for messages in self.servers.values():
            messages.clear()


@pytest.fixture
def wire() -> Wire:
    made = Wire("git", "files")
    made.begin()
    return made


def test_the_host_gets_the_oldest_protocol_and_all_capabilities() -> None:
    wire = Wire("git", "files")
    wire.ask("start", "initialize", protocolVersion="2025-11-25", capabilities={"roots": {}})
    assert [each[0]["params"]["capabilities"] for each in wire.servers.values()] == 2 * [{"roots": {}}]

    git = {"tools": {}, "logging": {}, "resources": {"subscribe": True}}
    wire.answer("git", {"protocolVersion": "2025-11-25", "capabilities": git, "instructions": "Be kind."})
    assert wire.host == []
    wire.answer("files", {"protocolVersion": "2025-06-18", "capabilities": {"prompts": {}}})

    [begun] = wire.host
    assert begun["id"] == "start"
    assert begun["result"]["protocolVersion"] == "2025-06-18"
    assert begun["result"]["instructions"] == "git: Be kind."
    assert begun["result"]["capabilities"] == {
        "tools": {"listChanged": True},
        "prompts": {"listChanged": True},
        "resources": {"subscribe": True, "listChanged": True},
        "logging": {},
    }


def test_a_server_that_refuses_to_begin_is_left_out() -> None:
    wire = Wire("git", "files")
    wire.ask(0, "initialize", protocolVersion="2026-07-28")
    wire.answer("git", error={"code": -32602, "message": "no such protocol"})
    wire.answer("files", {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}})

    assert wire.host[0]["result"]["protocolVersion"] == "2025-11-25"
    assert wire.said == ["the MCP server git does not begin: no such protocol"]
    wire.ask(1, "tools/call", name="git__log")
    assert wire.host[1]["error"]["message"] == wire.said[0]


@pytest.mark.parametrize(
    ("asked", "told"), [("2025-06-18", "2025-06-18"), ("2026-07-28", "2025-11-25"), ("x", "2025-11-25")]
)
def test_a_host_begins_though_no_server_does(asked: str, told: str) -> None:
    wire = Wire("git", "files")
    wire.ask(0, "initialize", protocolVersion=asked)
    wire.time_over()
    assert wire.host == []  # the first one is waited for

    wire.time_over()

    assert wire.host[0]["result"]["protocolVersion"] == told
    assert wire.host[0]["result"]["capabilities"] == {"tools": {"listChanged": True}}
    wire.answer("git", {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}})
    assert wire.host[1]["method"] == "notifications/tools/list_changed"
    assert wire.said == ["these servers are late, and join when they have begun: git, files"]


def test_after_its_time_a_host_begins_with_the_first_server() -> None:
    wire = Wire("git", "files")
    wire.ask(0, "initialize", protocolVersion="2025-11-25")
    wire.time_over()

    wire.answer("files", {"protocolVersion": "2025-06-18", "capabilities": {"prompts": {}}})

    assert wire.host[0]["result"]["protocolVersion"] == "2025-06-18"
    assert wire.said == ["these servers are late, and join when they have begun: git"]


def test_lists_are_those_of_all_servers_with_all_their_pages(wire: Wire) -> None:
    wire.ask("a", "tools/list")
    wire.answer("files", {"tools": [{"name": "read", "x": 1.50}]})
    wire.answer("git", {"tools": [{"name": "log"}], "nextCursor": "2"})
    assert wire.servers["git"][0]["params"] == {"cursor": "2"}
    assert wire.host == []
    wire.answer("git", {"tools": [{"name": "show"}], "nextCursor": None})

    names = [tool["name"] for tool in wire.host[0]["result"]["tools"]]
    assert (wire.host[0]["id"], names) == ("a", ["git__log", "git__show", "files__read"])


def test_a_server_that_gives_no_list_is_told_and_left_out(wire: Wire) -> None:
    wire.ask(1, "tools/list")
    wire.answer("git", error={"code": -32603, "message": "out of order"})
    wire.answer("files", {"tools": [{"name": "read"}]})

    assert [tool["name"] for tool in wire.host[0]["result"]["tools"]] == ["files__read"]
    assert wire.said == ["tools/list of the MCP server git: out of order"]


def names_listed(wire: Wire) -> list[str]:
    return [tool["name"] for tool in wire.host[-1]["result"]["tools"]]


@pytest.mark.parametrize("given", [None, 5, {"a": 1}])
def test_a_server_whose_tools_are_no_list_is_told(wire: Wire, given: Any) -> None:
    wire.ask(2, "tools/list")
    wire.answer("files", {"tools": given})
    wire.answer("git", {"tools": [{"name": "one"}]})

    assert [each["name"] for each in wire.host[-1]["result"]["tools"]] == ["git__one"]
    assert wire.said == ["tools/list of the MCP server files: it has no list of tools"]


@pytest.mark.parametrize("given", [{"capabilities": None}, {"capabilities": []}, {}])
def test_a_server_that_does_not_say_what_it_can_do_is_told(given: Any) -> None:
    wire = Wire("a", "b")
    wire.ask(1, "initialize", protocolVersion="2025-06-18")
    wire.answer("a", {"protocolVersion": "2025-06-18", **given})
    wire.answer("b", {"protocolVersion": "2025-06-18", "capabilities": {}})

    assert wire.said == ["the MCP server a does not say what it can do, so it is not asked for tools"]


def test_a_list_that_was_late_is_shown_from_then_on_though_it_is_late_again(wire: Wire) -> None:
    wire.ask(1, "tools/list")
    wire.answer("git", {"tools": [{"name": "log"}]})
    wire.time_over()
    assert names_listed(wire) == ["git__log"]
    assert wire.said == ["tools/list: these servers are late, and join later: files"]

    wire.answer("files", {"tools": [{"name": "read"}]})
    assert wire.host[-1]["method"] == "notifications/tools/list_changed"

    for id in (2, 3):
        wire.ask(id, "tools/list")
        wire.answer("git", {"tools": [{"name": "log"}]})
        wire.time_over()
        assert names_listed(wire) == ["git__log", "files__read"]
        wire.answer("files", {"tools": [{"name": "read"}]})
    assert [each.get("method") for each in wire.host].count("notifications/tools/list_changed") == 1
    assert len(wire.said) == 1


def test_a_list_is_as_long_as_its_bound_at_most(wire: Wire) -> None:
    long = {"name": "log", "description": "x" * (MAX_LIST_BYTES // 2)}
    wire.ask(1, "tools/list")
    wire.answer("files", {"tools": []})
    wire.answer("git", {"tools": [long], "nextCursor": "1"})
    wire.answer("git", {"tools": [{**long, "name": "show"}], "nextCursor": "2"})

    assert names_listed(wire) == ["git__log"]
    assert wire.servers["git"] == []
    assert wire.said == [
        "tools/list of the MCP server git: it is longer than 32 MiB; 1 of its tools are known"
    ]


def test_a_tool_that_is_listed_twice_or_has_no_name_is_left_out(wire: Wire) -> None:
    wire.ask(1, "tools/list")
    wire.answer(
        "git", {"tools": [{"name": "log", "a": 1}, {"name": "log"}, {"name": 3}, {}, 7, {"name": ""}]}
    )
    wire.answer("files", {"tools": None})

    assert names_listed(wire) == ["git__log", "git__"]
    assert wire.host[-1]["result"]["tools"][0]["a"] == 1
    assert wire.said == [
        "tools/list of the MCP server git: one of its tools has no name, and is left out",
        "tools/list of the MCP server files: it has no list of tools",
    ]


@pytest.mark.parametrize("name", ["log_" * 30, "\u00e9" * 61, "l" * 5000, "a__b" * 20])
def test_a_name_that_hosts_refuse_for_its_length_is_cut_and_leads_to_its_tool(wire: Wire, name: str) -> None:
    others = [name[:-1] + "2", name + name]
    wire.ask(1, "tools/list")
    wire.answer("git", {"tools": [{"name": each, "_meta": {"k": 1}} for each in [name, *others]]})
    wire.answer("files", {"tools": [{"name": name}]})
    wire.servers["git"].clear()

    shown = names_listed(wire)

    assert all(len(each) <= 64 for each in shown)
    assert len(set(shown)) == 4
    assert shown[0] == public_name(f"git__{name}")
    assert wire.host[-1]["result"]["tools"][0]["_meta"]["k"] == 1
    for each, whole in zip(shown[:3], [name, *others], strict=True):
        wire.ask(2, "tools/call", name=each)
        assert wire.servers["git"].pop()["params"]["name"] == whole


def test_a_cut_name_that_the_host_knows_from_an_earlier_gateway_leads_to_its_tool(wire: Wire) -> None:
    name = "list_" * 20
    shown = public_name(f"git__{name}")
    wire.ask(7, "tools/call", name=shown, arguments={"a": 1})
    assert [each["method"] for each in wire.servers["git"]] == ["tools/list"]

    wire.answer("files", {"tools": []})
    wire.answer("git", {"tools": [{"name": name}]})

    [called] = wire.servers["git"]
    assert (called["id"], called["params"]) == (7, {"name": name, "arguments": {"a": 1}})
    assert wire.host == []
    wire.ask(8, "tools/call", name=shown[:-1] + "0")
    for server in ("git", "files"):
        wire.servers[server] = wire.servers[server][-1:]
        wire.answer(server, {"tools": []})
    assert wire.servers["git"].pop()["params"]["name"] == shown[len("git__") : -1] + "0"


def test_code_calls_a_tool_by_its_whole_name(wire: Wire) -> None:
    name = "list_" * 20
    wire.ask(1, "tools/list")
    wire.answer("git", {"tools": [{"name": name}, {"name": "log", "_meta": {"fdstore/name": "files__read"}}]})
    wire.answer("files", {"tools": []})

    tools = read_tools_of(["git", "files"], wire.host[-1]["result"]["tools"], ())

    assert [(tool.name, tool.tool) for tool in tools] == [
        (f"git.{name}", f"git__{name}"),
        ("git.log", "git__log"),
    ]
    wire.ask(2, "tools/call", name=tools[0].tool)
    assert wire.servers["git"].pop()["params"]["name"] == name


def test_a_name_leads_to_its_server_and_the_answer_passes_as_it_is(wire: Wire) -> None:
    wire.ask(7, "tools/call", name="files__read__all", arguments={"path": "__"}, _meta={"progressToken": 7})

    [called] = wire.servers["files"]
    assert (called["id"], called["params"]["name"]) == (7, "read__all")
    assert called["params"]["_meta"] == {"progressToken": 7}
    line = b'{"id":7,  "result":{"n":1.50}}\n'
    assert [step.line for step in wire.router.from_server("files", Message(line))] == [line]


@pytest.mark.parametrize("name", ["read", "other__read", "", "__read"])
def test_a_name_of_no_server_is_an_error(wire: Wire, name: str) -> None:
    wire.ask(7, "tools/call", name=name)

    assert "begins with one of git, files" in wire.host[0]["error"]["message"]


def test_resources_lead_to_the_server_that_listed_them_or_whose_template_fits() -> None:
    wire = Wire("git", "files")
    wire.begin(git={"resources": {}}, files={"resources": {}})
    wire.ask(1, "resources/read", uri="file:///a")
    assert wire.host.pop()["error"]["code"] == -32002

    wire.ask(2, "resources/list")
    wire.answer("git", {"resources": [{"uri": "git://head"}]})
    wire.answer("files", {"resources": [{"uri": "file:///a"}]})
    wire.ask(3, "resources/templates/list")
    wire.answer("git", {"resourceTemplates": [{"uriTemplate": "git://{commit}"}]})
    wire.answer("files", {"resourceTemplates": [{"uriTemplate": "file:///{path}"}]})
    wire.ask(4, "resources/read", uri="file:///a")
    wire.ask(5, "resources/read", uri="git://abc")

    assert [len(wire.host), wire.servers["files"][0]["id"], wire.servers["git"][0]["id"]] == [2, 4, 5]


def test_prompts_and_completions_lead_to_their_server() -> None:
    wire = Wire("git", "files")
    wire.begin(git={"prompts": {}, "completions": {}}, files={"tools": {}})
    wire.ask(1, "prompts/list")
    wire.answer("git", {"prompts": [{"name": "review"}]})
    assert wire.host[0]["result"]["prompts"] == [{"name": "git__review"}]

    wire.ask(2, "prompts/get", name="git__review")
    wire.ask(3, "completion/complete", ref={"type": "ref/prompt", "name": "git__review"}, argument={})

    assert wire.servers["git"][0]["params"]["name"] == "review"
    assert wire.servers["git"][1]["params"]["ref"] == {"type": "ref/prompt", "name": "review"}


def test_what_a_server_takes_back_is_taken_back_under_the_hosts_id(wire: Wire) -> None:
    wire.write("git", id=1, method="elicitation/create", params={})
    wire.write("files", id=1, method="elicitation/create", params={})
    first, second = (each["id"] for each in wire.host)

    wire.write("files", method="notifications/cancelled", params={"requestId": 1, "reason": "late"})
    assert wire.host[-1]["params"] == {"requestId": second, "reason": "late"}
    wire.tell(id=second, result={})
    wire.tell(id=first, result={"action": "accept"})

    assert wire.servers == {
        "git": [{"jsonrpc": "2.0", "id": 1, "result": {"action": "accept"}}],
        "files": [],
    }


def test_what_the_host_takes_back_is_taken_back_at_its_server_alone(wire: Wire) -> None:
    wire.ask(7, "tools/call", name="git__log")
    wire.servers["git"].clear()

    wire.tell(method="notifications/cancelled", params={"requestId": 7})

    [cancelled] = wire.servers["git"]
    assert cancelled["params"] == {"requestId": 7}
    assert wire.servers["files"] == []


def test_a_level_of_logging_is_for_all_that_log() -> None:
    wire = Wire("git", "files")
    wire.begin(git={"logging": {}})
    wire.ask(1, "logging/setLevel", level="debug")

    assert wire.host == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert wire.servers["git"][0]["params"] == {"level": "debug"}
    assert wire.servers["files"] == []
    wire.answer("git", {})
    assert len(wire.host) == 1


@pytest.mark.parametrize("method", ["server/discover", "tasks/list", "no/such"])
def test_what_is_not_served_is_an_error_that_lets_a_host_begin_otherwise(wire: Wire, method: str) -> None:
    wire.ask(1, method)

    assert wire.host[0]["error"]["code"] == -32601
    wire.ask(2, "ping")
    assert wire.host[1]["result"] == {}


def test_a_server_that_ends_while_all_are_asked_holds_up_nothing(wire: Wire) -> None:
    wire.ask(1, "tools/list")
    wire.answer("files", {"tools": [{"name": "read"}]})

    wire.act(wire.router.server_ended("git", "git has ended"))

    assert [tool["name"] for tool in wire.host[0]["result"]["tools"]] == ["files__read"]
    assert wire.host[1]["method"] == "notifications/tools/list_changed"
    assert wire.said == ["git has ended"]


def test_a_long_answer_passes_unread_and_a_long_question_does_not(wire: Wire) -> None:
    long = "x" * LONG_BYTES
    answer = json.dumps({"id": 7, "result": {"text": long}}).encode() + b"\n"
    assert [step.line for step in wire.router.from_server("git", Message(answer))] == [answer]

    wire.write("git", id=1, method="sampling/createMessage", params={"text": long})

    assert wire.host[0]["id"] != 1
    assert wire.host[0]["params"]["text"] == long


@pytest.mark.parametrize("size", [1, LONG_BYTES])
@pytest.mark.parametrize("form", ["%s", "[%s]"])
@pytest.mark.parametrize("key", ["result", "error"])
def test_an_answer_reaches_the_host_only_from_the_server_that_was_asked(
    wire: Wire, size: int, form: str, key: str
) -> None:
    wire.ask(7, "tools/call", name="files__read")
    answer = json.dumps({"id": 7, key: {"message": "x" * size}})

    for _ in range(2):
        wire.act(wire.router.from_server("git", Message((form % answer).encode() + b"\n")))
    assert wire.host == []
    assert wire.said == ["the MCP server git answers what it was not asked; such answers are dropped"]

    wire.answer("files", {"n": 1})
    assert [(each["id"], each["result"]) for each in wire.host] == [(7, {"n": 1})]


@pytest.mark.parametrize("size", [1, LONG_BYTES])
@pytest.mark.parametrize("form", ["%s", "[%s]"])
@pytest.mark.parametrize("order", [["id", "result"], ["result", "id"]])
def test_what_a_server_has_answered_is_not_answered_again(
    wire: Wire, size: int, form: str, order: list[str]
) -> None:
    wire.ask(7, "tools/call", name="git__log")
    answer = {"id": 7, "result": {"text": "x" * size}}
    line = (form % json.dumps({name: answer[name] for name in order})).encode() + b"\n"

    for _ in range(2):
        wire.act(wire.router.from_server("git", Message(line)))
    wire.act(wire.router.server_ended("git", "git has ended"))

    assert [each["id"] for each in wire.host if "id" in each] == [7]


def test_what_the_host_took_back_is_not_answered_when_its_server_ends(wire: Wire) -> None:
    wire.ask(7, "tools/call", name="git__log")
    wire.ask(8, "tools/call", name="git__log")
    wire.tell(method="notifications/cancelled", params={"requestId": 7})

    wire.act(wire.router.server_ended("git", "git has ended"))

    assert [each["id"] for each in wire.host if "id" in each] == [8]


def test_the_messages_of_a_batch_reach_their_servers_as_lines() -> None:
    wire = Wire("git", "files")
    wire.begin(git={"resources": {}})
    batch = [
        {"jsonrpc": "2.0", "id": 7, "method": "resources/read", "params": {"uri": "git://head"}},
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}},
        [3],
    ]

    wire.act(wire.router.from_host(json.dumps(batch).encode() + b"\n"))

    assert [each["method"] for each in wire.servers["git"]] == ["resources/read", "notifications/cancelled"]
    wire.act(wire.router.from_host(b"[" * 9000 + b"]" * 9000 + b"\n"))
    deep = Message(b"[" * 9000 + b"]" * 9000 + b"\n")
    assert len(list(wire.router.from_server("git", deep))) == 1


@pytest.mark.parametrize("line", [b"no JSON\n", b"[]\n", b"3\n", b'{"id":1}\n', b'"text"\n'])
def test_what_is_no_message_harms_nothing(wire: Wire, line: bytes) -> None:
    wire.act(wire.router.from_host(line))
    assert [step.line for step in wire.router.from_server("git", Message(line))] == [line]
    wire.ask(1, "ping")

    assert wire.host[-1]["result"] == {}
