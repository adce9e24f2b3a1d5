"""Decisions of the gateway about a message, without I/O."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.hosts.gateway.messages import Message, error_answer
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.rewriting import (
    AddTools,
    Batch,
    CallOurTool,
    Expand,
    Forward,
    Rewriter,
    Separate,
    StoreTexts,
    TakenBack,
    _renamed_text,
)
from fdstore.hosts.gateway.tool_list import ToolOffer

LIMIT = 100
OURS = ["read_fd", "search_fd", "list_fds"]
LONG = "x" * (LIMIT + 1)
DEFINITIONS = [
    {"name": "read_fd", "description": "Read. Find lines with search_fd.", "inputSchema": {"type": "object"}},
    {"name": "search_fd", "description": "Search.", "inputSchema": {"type": "object"}},
    {"name": "list_fds", "description": "List.", "inputSchema": {"type": "object"}},
]

ids = st.one_of(
    st.integers(-(2**53), 2**53), st.text(max_size=8), st.floats(allow_nan=False, allow_infinity=False)
)
values = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=9)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def encoded(message: Any) -> bytes:
    return json.dumps(message).encode()


def request(method: str, id: Any = 1, **params: Any) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": id, "method": method, "params": params})


def answer(result: Any, id: Any = 1) -> bytes:
    return encoded({"jsonrpc": "2.0", "id": id, "result": result})


def text(value: str) -> dict[str, Any]:
    return {"type": "text", "text": value}


def listed(limit: int = LIMIT, **options: Any) -> Rewriter:
    """A connection on which the host has seen the tools."""
    rewriter = Rewriter(limit, **options)
    rewriter.to_server(request("tools/list", "list"))
    assert isinstance(rewriter.from_server(Message(answer({"tools": []}, "list"))), AddTools)
    return rewriter


def called(tool: str = "grep", id: Any = 1, limit: int = LIMIT, **options: Any) -> Rewriter:
    """A connection on which the host has called a tool of the server."""
    rewriter = listed(limit, **options)
    assert rewriter.to_server(request("tools/call", id, name=tool, arguments={})) == Forward()
    return rewriter


@given(ids, values)
def test_the_answer_to_a_request_with_any_id_is_recognized(id: Any, fields: Any) -> None:
    rewriter = called(id=id)

    decision = rewriter.from_server(Message(answer({"content": [text(LONG)], "other": fields}, id)))

    assert isinstance(decision, StoreTexts)
    assert (decision.source, decision.texts) == ("grep", [LONG])
    shown = json.loads(decision.with_shown(["<fd_result/>"]))
    assert shown["result"] == {"content": [text("<fd_result/>")], "other": fields}
    assert shown["id"] == id
    assert rewriter.from_server(Message(answer({"content": [text(LONG)]}, id))) == Forward()


@given(values)
def test_a_message_without_a_long_text_passes(fields: Any) -> None:
    rewriter = called(limit=10_000)
    result = {"content": [text("short")], "structuredContent": fields}

    assert rewriter.from_server(Message(answer(result))) == Forward()


def test_what_is_not_replaced_keeps_its_bytes() -> None:
    rewriter = called()
    before = b'{"id":1, "big":12345678901234567890123, "result":{"n":1.50e+05,"content":[{"type":"text",'
    before += b'"text":"%s","a":0.10},{"type":"image","data":"\\u0041"}],"_meta":{"k":1E5}}}'

    decision = rewriter.from_server(Message(before % LONG.encode()))

    assert isinstance(decision, StoreTexts)
    assert decision.with_shown(["S"]) == (
        b'{"id":1,"big":12345678901234567890123,"result":{"n":1.50e+05,"content":[{"type":"text",'
        b'"text":"S","a":0.10},{"type":"image","data":"\\u0041"}],"_meta":{"k":1E5}}}'
    )


def test_a_string_and_a_number_are_two_ids() -> None:
    rewriter = called("one", id=1)
    rewriter.to_server(request("tools/call", "1", name="other", arguments={}))

    decisions = [rewriter.from_server(Message(answer({"content": [text(LONG)]}, id))) for id in ("1", 1)]

    assert [decision.source for decision in decisions if isinstance(decision, StoreTexts)] == ["other", "one"]


def test_a_request_of_the_server_is_not_an_answer_to_the_host() -> None:
    rewriter = called(id=1)

    assert rewriter.from_server(Message(request("sampling/createMessage", 1, text=LONG))) == Forward()
    assert rewriter.to_server(answer({"content": [text(LONG)]}, 1)) == Forward()
    assert isinstance(rewriter.from_server(Message(answer({"content": [text(LONG)]}, 1))), StoreTexts)


@pytest.mark.parametrize("line", [b"", b"\xff\xfe", b"Starting...", b"[1, 2", b"null", b"7", b'"id"', b"{}"])
def test_what_is_no_message_passes(line: bytes) -> None:
    rewriter = called()

    assert rewriter.from_server(Message(line)) == Forward()
    assert rewriter.to_server(line) == Forward()


def test_other_answers_pass_whatever_their_size() -> None:
    rewriter = Rewriter(LIMIT)
    rewriter.to_server(request("resources/read", 1, uri="a:b"))

    assert rewriter.from_server(Message(answer({"content": [text(LONG)]}))) == Forward()


def test_a_long_error_is_stored() -> None:
    rewriter = called()
    failed = {"jsonrpc": "2.0", "id": 1, "error": {"code": -32603, "message": LONG, "data": {"a": 1}}}

    decision = rewriter.from_server(Message(encoded(failed)))

    assert isinstance(decision, StoreTexts)
    assert decision.texts == [LONG]
    shown = json.loads(decision.with_shown(["S"]))["error"]
    assert shown == {"code": -32603, "message": "S", "data": {"a": 1}}


def test_a_text_cut_in_the_middle_of_a_character_is_stored() -> None:
    rewriter = called()
    line = b'{"id":1,"result":{"content":[{"type":"text","text":"%s\\ud83d"}]}}' % LONG.encode()

    decision = rewriter.from_server(Message(line))

    assert isinstance(decision, StoreTexts)
    assert decision.texts == [LONG + "\\ud83d"]


@pytest.mark.parametrize("arguments", [b'{"x": "\xff {{fd:1}}"}', b'{"x": 9' + b"9" * 5000 + b"}", b"[1]"])
def test_arguments_that_are_no_json_object_end_no_connection(arguments: bytes) -> None:
    rewriter = Rewriter(LIMIT)
    line = b'{"id":1,"method":"tools/call","params":{"name":"%s","arguments":%s}}'

    own = rewriter.to_server(line % (b"list_fds", arguments))
    assert isinstance(own, CallOurTool)
    assert list(own.arguments) == ["arguments"]
    assert rewriter.to_server(line % (b"grep", arguments)) == Forward()


def test_a_call_cut_in_the_middle_of_a_character_is_ours_if_its_tool_is() -> None:
    line = rb'{"id":1,"method":"tools/call","params":{"name":"search_fd","arguments":{"fd":"\ud83d"}}}'

    own = Rewriter(LIMIT).to_server(line)

    assert isinstance(own, CallOurTool)
    assert own.arguments == {"fd": r"\ud83d"}


@pytest.mark.parametrize("depth", [500, 985, 1000, 5000])
def test_a_text_that_is_deep_json_ends_no_connection(depth: int) -> None:
    deep = "[" * depth + "]" * depth

    decision = called().from_server(
        Message(answer({"content": [text(deep)], "structuredContent": {"a": LONG}}))
    )

    assert isinstance(decision, StoreTexts)
    assert deep in decision.texts


@pytest.mark.parametrize(
    "odd", [rb'"\ud83d"', b"NaN", b"-Infinity", b"1e400", b'"\x01"', b"[" * 5000 + b"]" * 5000]
)
def test_what_is_no_strict_json_is_read_and_passes_as_it_is(odd: bytes) -> None:
    rewriter = called()
    line = b'\xef\xbb\xbf{"id":1,"result":{"content":[{"type":"text","text":"%s"}],"odd":%s}}\n'

    decision = rewriter.from_server(Message(line % (LONG.encode(), odd)))

    assert isinstance(decision, StoreTexts)
    assert decision.texts == [LONG]
    assert decision.with_shown(["S"]) == (
        b'{"id":1,"result":{"content":[{"type":"text","text":"S"}],"odd":%s}}' % odd
    )


def test_tools_beside_half_of_a_character_are_listed() -> None:
    rewriter = Rewriter(LIMIT)
    rewriter.to_server(request("tools/list"))
    line = rb'{"id":1,"result":{"tools":[{"name":"grep","description":"\ud83d","inputSchema":{"max":NaN}}]}}'

    decision = rewriter.from_server(Message(line))

    assert isinstance(decision, AddTools)
    shown = decision.with_definitions(DEFINITIONS) or b""
    assert rb'[{"name":"grep","description":"\ud83d","inputSchema":{"max":NaN}},{"name":"read_fd"' in shown


def test_a_long_result_passes_to_a_host_that_has_not_seen_our_tools_and_the_operator_is_told() -> None:
    said: list[str] = []
    rewriter = Rewriter(LIMIT, tell=said.append)
    rewriter.to_server(request("tools/call", name="grep"))

    assert rewriter.from_server(Message(answer({"content": [text(LONG)]}))) == Forward()
    assert said == [
        "a long result passes unchanged: the host has not asked for tools/list, where the tools that read "
        "descriptors are"
    ]


def test_where_another_gateway_offers_our_tools_a_long_result_is_stored() -> None:
    rewriter = Rewriter(LIMIT, ToolOffer(GatewayOptions(tools="none")))
    rewriter.to_server(request("tools/call", name="grep"))

    assert isinstance(rewriter.from_server(Message(answer({"content": [text(LONG)]}))), StoreTexts)


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (answer({"content": [{"type": "image", "data": LONG}]}), "it has no long text; images"),
        (answer({"content": {"a": LONG}}), "its content is no list of blocks"),
        (answer({"content": [text(LONG)]}, 2), "it has the id of no request that is open"),
        (b'{"id":1,"result":' + LONG.encode(), "passes as it came: it is not JSON"),
        (b'"' + LONG.encode() + b'"', "passes as it came: it is no message"),
        (encoded({"id": 1, "error": {"code": 1, "message": "no", "data": LONG}}), "a long error passes"),
        (answer({"content": [text(LONG)]}).replace(b"xxx", b"\xff\xff\xff"), "is not UTF-8"),
    ],
)
def test_the_operator_is_told_why_what_is_long_passes_unchanged(line: bytes, why: str) -> None:
    said: list[str] = []
    rewriter = called(tell=said.append)

    rewriter.from_server(Message(line))

    [told] = said
    assert why in told


def page(rewriter: Rewriter, *tools: str, cursor: Any = None, **more: Any) -> dict[str, Any]:
    """Let the host ask for a page of the tools, and return what it gets."""
    rewriter.to_server(request("tools/list", "page", **({} if cursor is None else {"cursor": cursor})))
    listed = {"tools": [{"name": name} for name in tools], **more}
    decision = rewriter.from_server(Message(answer(listed, "page")))
    assert isinstance(decision, AddTools)
    result = json.loads(decision.with_definitions(DEFINITIONS) or b"")["result"]
    return {**result, "tools": [tool["name"] for tool in result["tools"]]}


def test_our_tools_follow_those_of_the_first_page() -> None:
    rewriter = Rewriter(LIMIT)
    tool = {"name": "grep", "inputSchema": {"a": 1.5}, "outputSchema": {"type": "object"}, "_meta": {"k": 1}}
    pages = []

    for number, rest in enumerate([{"nextCursor": "2"}, {"ttlMs": 5}]):
        rewriter.to_server(request("tools/list", number, **({"cursor": "2"} if number else {})))
        decision = rewriter.from_server(Message(answer({"tools": [tool], **rest}, number)))
        assert isinstance(decision, AddTools)
        pages.append(json.loads(decision.with_definitions(DEFINITIONS) or b"")["result"])

    del tool["outputSchema"]
    assert pages[1] == {"tools": [tool], "ttlMs": 5}
    assert pages[0]["nextCursor"] == "2"
    assert pages[0]["tools"][0] == tool
    assert [each["name"] for each in pages[0]["tools"][1:]] == OURS
    assert pages[0]["tools"][1]["annotations"]["readOnlyHint"]


@pytest.mark.parametrize("cursor", ["", "2", 7])
def test_an_empty_cursor_is_the_first_page_of_a_host_that_was_shown_none(cursor: Any) -> None:
    rewriter = Rewriter(LIMIT)

    assert page(rewriter, "grep", cursor=cursor)["tools"] == (["grep", *OURS] if cursor == "" else ["grep"])
    assert page(rewriter, "grep")["tools"] == ["grep", *OURS]
    assert page(rewriter, "grep", cursor=cursor)["tools"] == ["grep"]


def test_a_tool_of_our_name_on_a_later_page_is_there_with_the_next_list() -> None:
    rewriter = Rewriter(LIMIT)
    assert page(rewriter, "grep", nextCursor="2")["tools"] == ["grep", *OURS]
    assert page(rewriter, "read_fd", "cut", cursor="2")["tools"] == ["cut"]
    assert isinstance(rewriter.to_server(request("tools/call", name="read_fd")), CallOurTool)

    assert page(rewriter, "grep", nextCursor="2")["tools"] == ["grep", "fdstore_read_fd", *OURS[1:]]
    assert page(rewriter, "read_fd", "cut", cursor="2")["tools"] == ["read_fd", "cut"]
    assert rewriter.to_server(request("tools/call", name="read_fd")) == Forward()


def test_the_only_tools_are_on_one_page() -> None:
    rewriter = Rewriter(LIMIT, ToolOffer(GatewayOptions(code="only", tools="read")))

    assert page(rewriter, "grep", nextCursor="") == {"tools": OURS}
    assert page(rewriter, "grep", cursor="", nextCursor="") == {"tools": []}


def test_results_are_stored_for_a_host_that_was_shown_our_tools_or_calls_one() -> None:
    def is_stored(rewriter: Rewriter) -> bool:
        rewriter.to_server(request("tools/call", name="grep", arguments={}))
        return isinstance(rewriter.from_server(Message(answer({"content": [text(LONG)]}))), StoreTexts)

    unseen = Rewriter(LIMIT)
    assert not is_stored(unseen)
    page(unseen, "grep", cursor="2")
    unseen.to_server(request("tools/list", 5))
    assert unseen.from_server(Message(answer({"n": 1}, 5))) == Forward()
    assert not is_stored(unseen)
    page(unseen, "grep")
    assert is_stored(unseen)
    assert not is_stored(Rewriter(LIMIT, unseen.offer.for_host()))
    caller = Rewriter(LIMIT)
    caller.to_server(request("tools/call", 7, name="read_fd", arguments={}))
    assert is_stored(caller)
    assert is_stored(Rewriter(LIMIT, ToolOffer(GatewayOptions(tools="none"))))


def test_a_tool_with_the_name_of_a_tool_of_the_server_is_renamed() -> None:
    rewriter = Rewriter(LIMIT)
    rewriter.to_server(request("tools/list"))
    theirs = [{"name": "search_fd"}, {"name": "fdstore_search_fd"}]

    decision = rewriter.from_server(Message(answer({"tools": theirs})))
    assert isinstance(decision, AddTools)
    tools = json.loads(decision.with_definitions(DEFINITIONS) or b"")["result"]["tools"][2:]

    assert [tool["name"] for tool in tools] == ["read_fd", "fdstore_fdstore_search_fd", "list_fds"]
    assert tools[0]["description"] == "Read. Find lines with fdstore_fdstore_search_fd."
    assert rewriter.to_server(request("tools/call", name="search_fd", arguments={})) == Forward()
    call = rewriter.to_server(
        request("tools/call", name="fdstore_fdstore_search_fd", arguments={"fd": "fd:1"})
    )
    assert isinstance(call, CallOurTool)
    assert (call.tool, call.arguments) == ("search_fd", {"fd": "fd:1"})
    shown = [text("<fd_error>\n<message>\nUse search_fd.\n</message>\nsearch_fd")]
    said = json.loads(call.answer(shown, is_error=True))["result"]["content"][0]["text"]
    assert said == "<fd_error>\n<message>\nUse fdstore_fdstore_search_fd.\n</message>\nsearch_fd"


def test_a_call_of_our_tool_is_answered_under_its_id() -> None:
    call = Rewriter(LIMIT).to_server(b'{"id":"\\u00e9","method":"tools/call","params":{"name":"list_fds"}}')

    assert isinstance(call, CallOurTool)
    assert call.answer([text("none")], is_error=False) == (
        b'{"jsonrpc":"2.0","id":"\\u00e9","result":{"content":[{"type":"text","text":"none"}],'
        b'"isError":false,"resultType":"complete"}}'
    )


def test_only_string_values_of_arguments_are_expanded() -> None:
    rewriter = Rewriter(LIMIT)
    line = (
        b'{"id":1,"method":"tools/call","params":{"name":"send","arguments":{"n":1.0e3,"{{fd:1}}":'
        b'["a {{fd:1#L2}} b","\\u007b{fd:2}}","{{other}}"]},"_meta":{"k":"{{fd:9}}"}}}'
    )

    decision = rewriter.to_server(line)

    assert isinstance(decision, Expand)
    assert decision.texts == ["a {{fd:1#L2}} b", "{{fd:2}}"]
    assert decision.with_texts(['a "1" b', "2"]) == (
        b'{"id":1,"method":"tools/call","params":{"name":"send","arguments":{"n":1.0e3,"{{fd:1}}":'
        b'["a \\"1\\" b","2","{{other}}"]},"_meta":{"k":"{{fd:9}}"}}}'
    )


def test_a_request_that_is_taken_back_while_it_is_held_back_is_not_sent() -> None:
    rewriter = Rewriter(LIMIT)
    for id in (1, 2):
        held = rewriter.to_server(request("tools/call", id, name="send", arguments={"a": "{{fd:1}}"}))
        assert isinstance(held, Expand)
    cancelled = [{"method": "notifications/cancelled", "params": {"requestId": id}} for id in (1, 2)]

    assert rewriter.to_server(encoded(cancelled[0])) == TakenBack()
    assert [rewriter.release((False, id)) for id in (1, 2)] == [False, True]
    assert rewriter.to_server(encoded(cancelled[1])) == Forward()
    assert rewriter.unanswered() == []


def test_each_message_of_a_batch_with_a_call_of_ours_is_treated_as_if_it_came_alone() -> None:
    rewriter = listed()
    batch = [
        {"id": 1, "method": "tools/call", "params": {"name": "grep"}},
        {"id": 2, "method": "tools/call", "params": {"name": "read_fd", "arguments": {"fd": "fd:1"}}},
        {"id": 3, "method": "tools/call", "params": {"name": "send", "arguments": {"a": "{{fd:1}}"}}},
        {"method": "notifications/cancelled", "params": {"requestId": 3}},
        [4],
    ]

    decision = rewriter.to_server(encoded(batch))

    assert isinstance(decision, Separate)
    assert [type(each) for each in decision.decisions] == [Forward, CallOurTool, Expand, TakenBack, Forward]
    assert [json.loads(bytes(each.whole)) for each in decision.messages] == batch
    assert [bytes(each.id) for each in rewriter.unanswered()] == [b"1"]


def test_the_answers_of_a_batch_are_rewritten_one_by_one() -> None:
    rewriter = listed()
    calls = [{"id": id, "method": "tools/call", "params": {"name": "grep"}} for id in (1, 2)]
    rewriter.to_server(encoded(calls))
    answers = [{"id": id, "result": {"content": [text(long)]}} for id, long in ((1, "short"), (2, LONG))]

    decision = rewriter.from_server(Message(encoded(answers)))

    assert isinstance(decision, Batch)
    assert [type(each) for each in decision.decisions] == [Forward, StoreTexts]


def test_what_the_server_owes_is_known_at_its_end() -> None:
    rewriter = called(id=1)
    for id in (2, "3"):
        rewriter.to_server(request("prompts/list", id))
    rewriter.from_server(Message(answer({}, 2)))
    rewriter.to_server(request("ping", 4))
    cancelled = {"method": "notifications/cancelled", "params": {"requestId": 4}}
    rewriter.to_server(encoded(cancelled))

    owed = rewriter.unanswered()

    assert [bytes(each.id) for each in owed] == [b"1", b'"3"']
    assert json.loads(error_answer(owed[1].id, "gone"))["id"] == "3"
    assert not rewriter.owes_answers


def test_the_source_of_a_result_is_the_name_of_the_servers_own_tool() -> None:
    shown = '<fd_result fd="fd:1" source="read_fd">\n<message>\nread_fd(fd="fd:1")\n</message>\n</fd_result>'

    renamed = _renamed_text(shown, {"fdstore_read_fd": "read_fd"})

    assert 'source="read_fd"' in renamed
    assert '<message>\nfdstore_read_fd(fd="fd:1")' in renamed


def test_the_result_of_a_task_is_stored_like_that_of_a_call() -> None:
    rewriter = listed()
    rewriter.to_server(request("tasks/result", id=3, taskId="786512e2"))

    decision = rewriter.from_server(Message(answer({"content": [text(LONG)]}, id=3)))

    assert isinstance(decision, StoreTexts)
    assert (decision.source, decision.texts) == ("task 786512e2", [LONG])


def test_a_task_that_has_no_tools_result_passes() -> None:
    rewriter = Rewriter(LIMIT)
    for id, method in ((1, "tasks/get"), (2, "tasks/list"), (3, "tasks/result")):
        rewriter.to_server(request(method, id=id, taskId=LONG))

        assert (
            rewriter.from_server(Message(answer({"taskId": LONG, "status": "working"}, id=id))) == Forward()
        )
