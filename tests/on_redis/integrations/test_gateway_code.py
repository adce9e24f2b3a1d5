"""Programs of a host's model, which call the tools of the server behind a gateway."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.hosts.gateway.json_texts import LONG_BYTES
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.tool_list import CODE_TOOLS
from fdstore.inspector.reading.conversation import conversation
from fdstore.local.redis_server import PrivateServer
from fdstore.tools.catalogue import READING_TOOLS
from tests.on_redis.integrations.hosts import CodeHost, printed

OURS = [*READING_TOOLS, *CODE_TOOLS]


@pytest.fixture
def make_host(redis_url: str) -> Iterator[Callable[..., CodeHost]]:
    hosts: list[CodeHost] = []

    def make(url: str = redis_url, **options: Any) -> CodeHost:
        hosts.append(CodeHost(url, GatewayOptions(**{"code": "also", **options})))
        return hosts[-1]

    yield make
    for host in hosts:
        host.close()


@pytest.fixture
def host(make_host: Callable[..., CodeHost]) -> CodeHost:
    return make_host()


def test_the_host_sees_our_two_tools_beside_those_of_the_server(host: CodeHost) -> None:
    names = host.list_tools()

    assert names[10 : 10 + len(OURS)] == OURS  # at the end of the first page
    assert "get-rows" in names
    assert len(set(names)) == len(names) > 10 + len(OURS)


def test_with_only_the_host_sees_none_of_the_servers_tools(make_host: Callable[..., CodeHost]) -> None:
    host = make_host(code="only", tools="read")

    assert host.list_tools() == OURS
    assert host.run("await server.echo(text='hi')") == "'hi'"


def test_code_calls_tools_and_only_what_it_prints_comes_back(host: CodeHost) -> None:
    assert host.run("text = await server.echo(text='hi')\nprint(len(text))") == "2"
    assert host.run("text") == "'hi'"
    assert host.run("(await server.get_rows(count=3))['rows'][2]") == "{'number': 2}"
    assert host.run("await server.get_list(count=3)") == "[0, 1, 2]"
    assert host.run("[each['type'] for each in await server.picture()]") == "['text', 'image']"


def test_a_failed_call_is_an_exception_and_the_program_goes_on(host: CodeHost) -> None:
    caught = "try:\n    await server.{}\nexcept Exception as error:\n    print(type(error).__name__, error)"

    assert host.run(caught.format("fails(text='no such day')")) == "ValueError no such day"
    assert host.run(caught.format("breaks()")) == "RuntimeError out of order (error -32603)"
    assert "no such day" in host.fails("await server.fails(text='no such day')")


WHY = {"code": "no_such_day", "days": ["Mon", "Tue"]}
SAID = [{"type": "text", "text": "no such day"}]


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        ({"result": {"isError": True, "structuredContent": WHY}}, json.dumps(WHY)),
        ({"result": {"isError": True, "content": [], "structuredContent": "no day"}}, "no day"),
        (
            {"result": {"isError": True, "content": SAID, "structuredContent": WHY}},
            f"no such day\n{json.dumps(WHY)}",
        ),
        (
            {"result": {"isError": True, "content": SAID, "structuredContent": None}},
            "no such day",
        ),
        (
            {
                "result": {
                    "isError": True,
                    "content": [{"type": "text", "text": json.dumps(WHY, indent=2)}],
                    "structuredContent": WHY,
                }
            },
            json.dumps(WHY, indent=2),
        ),
        ({"result": {"isError": True, "content": []}}, "the tool failed"),
        (
            {"result": {"isError": True, "content": [{"type": "resource_link", "uri": "a:b"}]}},
            '[{"type": "resource_link", "uri": "a:b"}]',
        ),
        (
            {"error": {"code": -32602, "message": "no such day", "data": WHY}},
            f"no such day (error -32602)\n{json.dumps(WHY)}",
        ),
    ],
)
def test_the_exception_of_a_failed_call_has_all_that_the_tool_said(
    host: CodeHost, answer: dict[str, Any], said: str
) -> None:
    code = f"try:\n    await server.fails_with(**{answer!r})\nexcept Exception as error:\n    print(error)"

    assert host.run(code) == said


def test_a_long_structured_error_is_stored_whole(host: CodeHost, store: Store) -> None:
    code = "await server.fails_with(result={'isError': True, 'structuredContent': {'why': 'x' * 9000}})"

    shown = host.fails(code)

    assert '{"why": "xxx' in shown
    assert "(the whole error is fd:1)" in shown
    assert "x" * 9000 in store.process("triage").read("fd:1", read_all=True).text


def test_a_long_error_is_stored_whole(host: CodeHost, store: Store) -> None:
    assert "(the whole error is fd:1)" in host.fails("await server.fails(text='x' * 100_000)")
    assert store.process("triage").read("fd:1", read_all=True).text == "x" * 100_000


def test_a_long_result_is_a_text_that_goes_into_the_next_call_as_its_content(host: CodeHost) -> None:
    host.run("big = await server.lines(count=200_000)")

    assert host.run("big") == 'Text("fd:1", 2288895 chars, 200000 lines)'
    assert host.run("big.line(1234)") == "'line 1234\\n'"
    assert host.run("(await server.echo(text=big.split(lines=2000)[1]))[:10]") == "'line 2001\\n'"
    assert "too_large" in host.fails("await server.echo(text=big)")


@pytest.mark.thorough("many megabytes")
def test_a_result_of_many_megabytes_is_stored_from_where_it_stands(host: CodeHost, store: Store) -> None:
    megabytes = 2 * LONG_BYTES >> 20

    assert host.run(f"text = await server.megabytes(count={megabytes})\ntext.total_lines") == str(
        megabytes << 16
    )
    assert store.process("triage").read("fd:1#L7").text == "0123456789abcde\n"


def test_a_mistake_is_told_before_anything_is_called(host: CodeHost) -> None:
    said = host.fails("await server.echo(text='a')\nawait server.ecko(text='b')")

    assert "line 2: there is no tool server.ecko; did you mean server.echo(text: str) -> str | Text?" in said
    assert "needs the argument 'text'" in host.fails("await server.echo()")
    requests = json.loads(host.run("print(await server.requests())"))
    assert [each["method"] for each in requests if each["method"] == "tools/call"] == ["tools/call"]


def test_a_wrong_name_of_a_server_is_told_before_anything_is_called(
    make_host: Callable[..., CodeHost],
) -> None:
    host = make_host(code="only", tools="read")
    code = "await server.echo(text='a')\nawait {}.echo(text='b')"

    for name in ("servr", "github"):  # before there are variables, and beside some
        said = host.fails(code.format(name))
        assert f"line 2: there is no server {name}; did you mean " in said
        assert "did you mean server.echo(text: str) -> str | Text?" in said
        host.run("mine = server")

    assert host.run("await mine.echo(text='c')") == "'c'"
    requests = json.loads(host.run("print(await server.requests())"))
    called = [each["params"]["name"] for each in requests if each["method"] == "tools/call"]
    assert called == ["echo", "requests"]


def test_arguments_that_only_the_run_knows_are_checked_then(host: CodeHost) -> None:
    assert "does not take text=3: server.echo(text: str) -> str" in host.fails(
        "x = 3\nawait server.echo(text=x)"
    )


def test_a_tool_that_may_change_things_needs_the_operators_word(make_host: Callable[..., CodeHost]) -> None:
    refused, allowed = make_host(), make_host(code_allow=("server.remove",))

    assert "--code-allow server.remove" in refused.fails("await server.remove(text='a')")
    assert "--code-allow server.remove" in refused.fails(
        "tools = [server]\nawait getattr(tools[0], 're' + 'move')(text='a')"
    )
    assert allowed.run("await server.remove(text='a')") == "'done'"


def test_a_server_that_changes_its_tools_is_asked_again(host: CodeHost) -> None:
    assert "there is no tool server.grown" in host.fails("await server.grown()")

    assert host.run("await server.grow()") == "'grown'"

    assert host.run("await server.grown()") == "'done'"
    assert [note["method"] for note in host.notes] == ["notifications/tools/list_changed"]


def test_the_host_answers_what_a_tool_asks_it_meanwhile(host: CodeHost) -> None:
    """Elicitation and sampling pass while a program waits."""
    program = host.begin_code("await server.asks()")
    asked = host.read()
    assert asked["method"] == "elicitation/create"
    host.write({"id": asked["id"], "result": {"action": "accept", "content": {"day": "Monday"}}})

    assert "Monday" in printed(host.answer_to(program))


def test_progress_of_the_server_reaches_the_host_under_its_own_token(host: CodeHost) -> None:
    host.answer_to(host.begin_code("await server.together(number=1, of=1)", progressToken="mine"))

    assert [note["params"]["progressToken"] for note in host.notes] == ["mine"] * len(host.notes)
    assert [note["params"]["progress"] for note in host.notes] == list(range(1, len(host.notes) + 1))
    assert host.notes


def test_a_cancelled_program_takes_its_calls_back_and_is_not_answered(host: CodeHost) -> None:
    program = host.begin_code("await server.asks()")
    assert host.read()["method"] == "elicitation/create"  # so it is under way
    host.write({"method": "notifications/cancelled", "params": {"requestId": program}})

    requests = json.loads(host.run("text = await server.requests()\nprint(text)"))

    calls = [each["id"] for each in requests if each.get("params", {}).get("name") == "asks"]
    cancelled = [
        each["params"]["requestId"] for each in requests if each["method"] == "notifications/cancelled"
    ]
    assert cancelled == calls


def test_a_loop_without_end_is_ended_by_the_host(host: CodeHost) -> None:
    program = host.begin_code("x = 1\nwhile True:\n    pass")
    host.write({"method": "notifications/cancelled", "params": {"requestId": program}})

    assert "NameError" in host.fails("x")


def test_a_program_outlives_its_server_as_an_exception(host: CodeHost) -> None:
    program = host.begin_code(
        "try:\n    await server.exit()\nexcept RuntimeError as error:\n    print('ended:', error)"
    )

    assert printed(host.answer_to(program)).startswith("ended: the MCP server has ended: ")
    assert host.leave() == 3


def test_a_host_that_hangs_up_ends_its_programs(host: CodeHost) -> None:
    host.begin_code("await server.asks()")
    assert host.read()["method"] == "elicitation/create"

    host.hang_up()

    assert host.leave() is not None


def test_programs_of_one_process_run_one_after_the_other(host: CodeHost) -> None:
    first = host.begin_code("n = 0\nfor _ in range(200):\n    n += len(await server.echo(text='a'))")
    second = host.begin_code("n")

    host.answer_to(first)
    assert printed(host.answer_to(second)) == "200"


@pytest.mark.thorough("many programs")
def test_programs_run_in_the_order_in_which_a_host_sends_them(host: CodeHost) -> None:
    calls = [host.begin_code("order = []")]
    calls += [host.begin_code(f"order = order + [{number}]\norder") for number in range(12)]

    shown = {}
    while len(shown) < len(calls):  # answers may overtake one another
        message = host.read()
        shown[message["id"]] = printed(message["result"])

    assert [shown[call] for call in calls[1:]] == [str([*range(number + 1)]) for number in range(12)]


def test_without_a_store_a_program_says_so(make_host: Callable[..., CodeHost]) -> None:
    with PrivateServer() as server:
        url = server.url
    host = make_host(url)

    assert 'type="store_unavailable"' in host.fails("1 + 1")
    assert host.find("rows").startswith("server.get_rows")


def test_the_journal_tells_what_a_program_has_called(host: CodeHost, store: Store) -> None:
    host.run("rows = await server.get_rows(count=3)\nprint('done')")
    host.fails("await server.fails(text='no')")

    entries = store.run(conversation(store.prefix, "triage")).entries

    assert [(each.kind, each.tool, each.is_error) for each in entries] == [
        ("call", "run_python", False),
        ("call", "server.get_rows", False),
        ("result", "server.get_rows", False),
        ("result", "run_python", False),
        ("call", "run_python", False),
        ("call", "server.fails", False),
        ("result", "server.fails", True),
        ("result", "run_python", True),
    ]
    assert entries[0].arguments == {"code": "rows = await server.get_rows(count=3)\nprint('done')"}
    assert (entries[1].arguments, entries[2].text) == (
        {"count": 3},
        "a dict of 49 characters as JSON",
    )
    assert all(each.duration_s is not None for each in entries if each.kind == "result")


@pytest.mark.parametrize("arguments", [{}, {"code": 3}, {"code": "1", "more": 1}, {"code": None}])
def test_wrong_arguments_are_told(host: CodeHost, arguments: dict[str, Any]) -> None:
    result = host.answer_to(host.send("tools/call", name="run_python", arguments=arguments))

    assert result["isError"]
    assert 'type="invalid_argument"' in result["content"][0]["text"]
