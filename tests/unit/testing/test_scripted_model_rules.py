"""Requests that the scripted model refuses as the real API does: mistakes of agent loops, each with its
location in the request."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.testing.replies import signature_of
from fdstore.testing.requests import read_request
from fdstore.testing.rules import RequestRefused, check_count, check_creation

HELLO: list[dict[str, Any]] = [{"role": "user", "content": "Hello"}]
READ_FD: dict[str, Any] = {"name": "read_fd", "input_schema": {"type": "object"}}


def use(*ids: str) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": [{"type": "tool_use", "id": id, "name": "f", "input": {}} for id in ids],
    }


def result(id: str, **more: Any) -> dict[str, Any]:
    return {"type": "tool_result", "tool_use_id": id, "content": "r", **more}


def user(*blocks: dict[str, Any]) -> dict[str, Any]:
    return {"role": "user", "content": list(blocks)}


def text(content: str = "t") -> dict[str, Any]:
    return {"type": "text", "text": content}


def body(*messages: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {"model": "m", "max_tokens": 1, "messages": [*HELLO, *messages], **changes}


CACHED = {**text(), "cache_control": {"type": "ephemeral"}}
THOUGHT = {"type": "thinking", "thinking": "Hm.", "signature": signature_of("Hm.")}

LATER = {"name": "search_fd", "input_schema": {"type": "object"}, "defer_loading": True}
LOADED = {"type": "tool_reference", "tool_name": "search_fd"}

ALLOWED = {
    "a plain question": body(),
    "answered parallel calls, then text": body(use("a", "b"), user(result("b"), result("a"), text())),
    "results over two neighbouring messages": body(use("a", "b"), user(result("a")), user(result("b"))),
    "a result without content": body(use("a"), user({"type": "tool_result", "tool_use_id": "a"})),
    "an image": body(user({"type": "image", "source": {"type": "url", "url": "x"}})),
    "a final assistant message, as after pause_turn": body({"role": "assistant", "content": [text()]}),
    "instructions in between": body(use("a"), {"role": "system", "content": "s"}, user(result("a"))),
    "thinking sent back as it was": body({"role": "assistant", "content": [THOUGHT, text()]}),
    "a forced tool": body(tools=[READ_FD], tool_choice={"type": "tool", "name": "read_fd"}),
    "a server tool": body(tools=[{"type": "web_search_20250305", "name": "web_search"}]),
    "a deferred tool": body(tools=[READ_FD, LATER]),
    "references to tools, then text": body(
        use("a", "b"), user(result("a", content=[LOADED]), result("b"), text()), tools=[READ_FD, LATER]
    ),
    "an error of text blocks": body(use("a"), user(result("a", content=[text()], is_error=True))),
    "four breakpoints": body(user(CACHED, CACHED, CACHED), system=[CACHED]),
}

REFUSED = {
    "messages: .*length": body() | {"messages": []},
    "missing required field `messages`": {"model": "m", "max_tokens": 1},
    "model: Expected `str`": body(model=None),
    "max_tokens: Expected `int` >= 1": body(max_tokens=0),
    "max_tokens: Expected `int`, got `bool`": body(max_tokens=True),
    'the first message must use the "user" role': body()
    | {"messages": [{"role": "assistant", "content": "a"}]},
    r"messages\.1\.role: Invalid enum value 'robot'": body({"role": "robot", "content": "a"}),
    r"messages\.1: all messages must have content": body(user()),
    r"messages\.2: all messages must have content": body({"role": "assistant", "content": []})
    | {"messages": [*HELLO, user(text()), {"role": "assistant", "content": []}, user(text())]},
    r"messages\.1\.content\.0: text .* non-whitespace": body(user(text(" \n"))),
    r"messages\.1\.content\.0\.type: .* must have a type": body(user({"text": "t"})),
    r"messages\.1\.content\.0: .*unknown field `parsed_output`": body(
        {"role": "assistant", "content": [text() | {"parsed_output": None}]}
    ),
    r"messages\.1\.content\.0\.text: Expected `str`, got `int`": body(user({"type": "text", "text": 1})),
    r"`tool_use` ids without `tool_result` blocks immediately after: b\.": body(
        use("a", "b"), user(result("a"))
    ),
    "`tool_use` ids without .*: a, b": body(use("a", "b")),
    "unexpected `tool_use_id` .*: x": body(use("a"), user(result("a"), result("x"))),
    "unexpected `tool_use_id` .*: late": body(
        use("late"), user(result("late")), {"role": "assistant", "content": "ok"}, user(result("late"))
    ),
    "more than one `tool_result` block for a": body(use("a"), user(result("a"), result("a"))),
    "`tool_result` blocks must come first": body(use("a"), user(text(), result("a"))),
    "ids must be unique: a": body(use("a"), user(result("a")), use("a"), user(result("a"))),
    "content cannot be empty if `is_error`": body(use("a"), user(result("a", content="", is_error=True))),
    "all content must be of type `text` if `is_error`": body(
        use("a"), user(result("a", content=[LOADED], is_error=True)), tools=[READ_FD, LATER]
    ),
    r"messages\.2\.content\.0: Tool definitions/.* cannot be mixed with other content": body(
        use("a"), user(result("a", content=[text(), LOADED])), tools=[READ_FD, LATER]
    ),
    r"messages\.2\.content\.0\.content\.0: Tool reference 'search_fd' not found": body(
        use("a"), user(result("a", content=[LOADED])), tools=[READ_FD]
    ),
    r"messages\.2\.content\.0\.content\.0: .*missing required field `tool_name`": body(
        use("a"), user(result("a", content=[{"type": "tool_reference"}])), tools=[READ_FD]
    ),
    "`tool_reference` blocks can only be in `tool_result`": body(user(LOADED), tools=[READ_FD, LATER]),
    r"tools\.0\.defer_loading: Expected `bool`, got `str`": body(tools=[READ_FD | {"defer_loading": "yes"}]),
    r"tools\.1: a tool cannot have both defer_loading and cache_control": body(
        tools=[READ_FD, LATER | {"cache_control": {"type": "ephemeral"}}]
    ),
    "at least one tool must not have defer_loading": body(tools=[LATER]),
    r"messages\.2\.content\.0: text content blocks must be non-empty": body(
        use("a"), user(result("a", content=[text("")]))
    ),
    r"messages\.1\.content\.0: text content blocks must be non-empty": body(
        user({"type": "document", "source": {"type": "content", "content": [text("")]}})
    ),
    r"messages\.1\.content\.1: text content blocks must be non-empty": body(
        user(text(), {"type": "search_result", "source": "a", "title": "b", "content": [text(""), text()]})
    ),
    "`tool_use` blocks can only be in `assistant`": body(user(*use("a")["content"])),
    "`tool_result` blocks can only be in `user`": body({"role": "assistant", "content": [result("a")]}),
    "`thinking` block must be sent back as it was": body(
        {"role": "assistant", "content": [THOUGHT | {"thinking": "Other."}]}
    ),
    "system: text content blocks must be non-empty": body(system=[text("")]),
    r"tools\.1: tool names must be unique": body(tools=[READ_FD, READ_FD]),
    r"tools\.0\.name: .*matching regex": body(tools=[READ_FD | {"name": "read fd"}]),
    r"tools\.0\.name: a tool must have a name": body(tools=[{"input_schema": {"type": "object"}}]),
    r"tools\.0\.input_schema\.type": body(tools=[{"name": "f", "input_schema": {}}]),
    "anyOf cannot be used at the top level": body(
        tools=[{"name": "f", "input_schema": {"type": "object", "anyOf": []}}]
    ),
    r"tool_choice\.type: Invalid enum value 'maybe'": body(tools=[READ_FD], tool_choice={"type": "maybe"}),
    "tool_choice: may only be given together with tools": body(tool_choice={"type": "any"}),
    "there is no tool 'g' in tools": body(tools=[READ_FD], tool_choice={"type": "tool", "name": "g"}),
    "at most 4 blocks may have cache_control; found 5": body(user(*[CACHED] * 5)),
}


@pytest.mark.parametrize("raw", ALLOWED.values(), ids=ALLOWED.keys())
def test_requests_that_the_api_accepts_are_accepted(raw: dict[str, Any]) -> None:
    check_creation(raw)


@pytest.mark.parametrize(("problem", "raw"), REFUSED.items(), ids=REFUSED.keys())
def test_requests_that_the_api_refuses_are_refused_with_the_location(
    problem: str, raw: dict[str, Any]
) -> None:
    with pytest.raises(RequestRefused, match=problem):
        check_creation(raw)


def test_counting_tokens_needs_no_max_tokens() -> None:
    raw = body()
    del raw["max_tokens"]

    check_count(raw)

    with pytest.raises(RequestRefused, match="max_tokens"):
        check_creation(raw)


KEYS = st.sampled_from(["type", "text", "id", "name", "input", "tool_use_id", "content", "cache_control"])
json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["text", "tool_use", "tool_result", "thinking"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
any_message = st.fixed_dictionaries({"role": st.sampled_from(["user", "assistant"]), "content": json_values})


@given(st.lists(any_message | json_values, max_size=4), json_values, json_values)
def test_any_json_is_accepted_or_refused_with_a_readable_error(
    messages: list[Any], system: Any, tools: Any
) -> None:
    raw = body(*messages, system=system, tools=tools)

    with suppress(RequestRefused):
        check_creation(raw)

    request = read_request(raw, {})
    assert repr(request).startswith("Request(turn_number=")
    assert all(isinstance(result.text, str) for result in request.tool_results())
