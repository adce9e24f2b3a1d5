"""The texts of a tool's result that are stored, and what is left of the result."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.hosts.gateway.json_parts import dumps
from fdstore.hosts.gateway.tool_results import COMPARED_BYTES, plan_result

LIMIT = 100
LONG = "y" * (LIMIT + 1)


def text(value: str, **fields: Any) -> dict[str, Any]:
    return {"type": "text", "text": value, **fields}


def stored(result: Any) -> list[str]:
    plan = plan_result(json.dumps(result).encode(), LIMIT)
    return [] if plan is None else [long.text for long in plan.long_texts]


def shown(result: Any, count: int) -> Any:
    """The result after each of `count` texts was stored."""
    plan = plan_result(json.dumps(result).encode(), LIMIT)
    assert plan is not None
    return json.loads(dumps(plan.with_shown([f"S{number}" for number in range(count)])))


@given(st.lists(st.text(st.characters(categories=["L", "N", "P"]), max_size=300), max_size=6))
def test_no_more_than_the_limit_remains_and_nothing_is_lost(texts: list[str]) -> None:
    result = {"content": [text(each) for each in texts]}
    plan = plan_result(json.dumps(result).encode(), LIMIT)

    kept = result if plan is None else json.loads(dumps(plan.with_shown([""] * len(plan.long_texts))))
    inline = [block["text"] for block in kept["content"]]

    assert sum(map(len, inline)) <= LIMIT
    parts = [] if plan is None else [part for long in plan.long_texts for part in long.text.split("\n")]
    assert sorted(filter(None, inline + parts)) == sorted(filter(None, texts))


def test_each_long_block_is_replaced_in_its_place() -> None:
    image = {"type": "image", "data": "iVBO" * 99, "mimeType": "image/png"}
    result = {"content": [text("first"), text(LONG, annotations={"priority": 0.5}), image, text(LONG)]}

    assert stored(result) == [LONG, LONG]
    assert shown(result, 2) == {
        "content": [text("first"), text("S0", annotations={"priority": 0.5}), image, text("S1")]
    }


def test_many_short_blocks_are_stored_as_one() -> None:
    result = {"content": [text("a" * 60), text("b" * 60)], "isError": True}

    assert stored(result) == ["a" * 60 + "\n" + "b" * 60]
    assert shown(result, 1) == {"content": [text("S0")], "isError": True}


def test_short_blocks_beside_a_long_one_stay_in_their_order() -> None:
    result = {"content": [text("first"), text(LONG), text("a" * 60), text("b" * 60)]}

    assert stored(result) == [LONG, "a" * 60 + "\n" + "b" * 60]
    assert shown(result, 2) == {"content": [text("first"), text("S0"), text("S1")]}


def test_a_list_of_texts_that_is_structured_too_is_stored_as_its_blocks() -> None:
    texts = ["first", LONG, "last", LONG + "z"]
    result = {"content": [text(each) for each in texts], "structuredContent": {"result": texts}}

    assert stored(result) == [LONG, LONG + "z"]
    assert shown(result, 2) == {"content": [text("first"), text("S0"), text("last"), text("S1")]}


def test_a_list_of_texts_that_is_long_only_as_json_is_stored_once() -> None:
    texts = ["a" * 50, "b" * 49]
    result = {"content": [text(each) for each in texts], "structuredContent": {"result": texts}}

    assert [json.loads(each) for each in stored(result)] == [{"result": texts}]
    assert shown(result, 1) == {"content": [text("S0")]}


def test_the_text_of_an_embedded_resource_is_stored() -> None:
    resource = {"uri": "file:///a", "text": LONG, "mimeType": "text/plain"}

    replaced = shown({"content": [{"type": "resource", "resource": resource}]}, 1)

    assert replaced == {"content": [{"type": "resource", "resource": {**resource, "text": "S0"}}]}


def test_structured_content_that_the_text_repeats_is_stored_once() -> None:
    value = {"rows": [{"name": LONG, "size": 1.0}]}
    result = {"content": [text(json.dumps(value, indent=1))], "structuredContent": value, "_meta": {"a": 1}}

    assert [json.loads(each) for each in stored(result)] == [value]
    assert shown(result, 1) == {"content": [text("S0")], "_meta": {"a": 1}}


PAD = '"pad":"' + "y" * LIMIT + '"'


@pytest.mark.parametrize(
    ("said", "structured"),
    [
        ('"a":false', '"a":0'),
        ('"a":true', '"a":1'),
        ('"a":[true]', '"a":[1.0]'),
        ('"a":1.0000000000000000001', '"a":1'),
        ('"a":9007199254740993.0', '"a":9007199254740992'),
        ('"a":1,"a":2', '"a":2'),
        ('"a":2', '"a":1,"a":2'),
        ('"a":1e400', '"a":2e400'),
        ('"a":NaN', '"a":"NaN"'),
    ],
)
def test_structured_content_that_may_differ_from_the_text_is_kept(said: str, structured: str) -> None:
    content = json.dumps([text("{" + said + "," + PAD + "}")])
    result = f'{{"content": {content}, "structuredContent": {{{structured},{PAD}}}}}'.encode()

    plan = plan_result(result, LIMIT)

    assert plan is not None
    assert [long.text for long in plan.long_texts] == [
        "{" + said + "," + PAD + "}",
        "{" + structured + "," + PAD + "}",
    ]


@pytest.mark.parametrize(
    ("said", "structured"),
    [
        ('"a":1,"b":2', '"b": 2, "a": 1'),
        ('"a":1e5', '"a":100000.0'),
        ('"a":NaN', '"a": NaN'),
        ('"a":1', '"a":1.0'),
    ],
)
def test_the_same_json_in_another_form_is_stored_once(said: str, structured: str) -> None:
    content = json.dumps([text("{" + said + "," + PAD + "}")])
    result = f'{{"content": {content}, "structuredContent": {{{structured},{PAD}}}}}'.encode()

    plan = plan_result(result, LIMIT)

    assert plan is not None
    assert len(plan.long_texts) == 1


def test_structured_content_of_its_own_is_shown_after_the_text() -> None:
    result = {"content": [text("3 rows")], "structuredContent": [LONG]}

    assert shown(result, 1) == {"content": [text("3 rows"), text("S0")]}


def test_a_text_that_was_made_structured_content_is_stored_as_text() -> None:
    result = {"content": [text(LONG)], "structuredContent": {"result": LONG}}

    assert stored(result) == [LONG]
    assert shown(result, 1) == {"content": [text("S0")]}


def test_a_string_as_structured_content_is_stored_as_the_text_it_is() -> None:
    lines = "a line\n" * LIMIT

    assert stored({"content": [], "structuredContent": lines}) == [lines]
    assert stored({"content": [text(lines)], "structuredContent": lines}) == [lines]
    assert shown({"content": [text(lines)], "structuredContent": lines}, 1) == {"content": [text("S0")]}


def test_a_long_value_that_the_text_repeats_is_stored_once() -> None:
    value = {"rows": [{"name": "a name", "size": 1.5}] * (COMPARED_BYTES // 20)}
    result = {"content": [text(json.dumps(value, indent=1))], "structuredContent": value}

    assert [json.loads(each) for each in stored(result)] == [value]


def test_a_value_with_a_number_that_is_none_is_stored_once_as_it_came() -> None:
    value = {"rows": [float("nan"), float("inf")] * LIMIT}
    result = {"content": [text(json.dumps(value))], "structuredContent": value}

    assert stored(result) == [json.dumps(value)]


def test_an_empty_text_is_not_stored_and_stays() -> None:
    result = {"content": [text(""), text(LONG), text("")], "structuredContent": {"result": ""}}

    assert stored(result) == [LONG]
    assert shown(result, 1)["content"] == [text(""), text("S0"), text("")]
    assert stored({"content": [text(""), text("")]}) == []


def test_a_text_that_a_server_names_otherwise_is_stored_once() -> None:
    """As the server for files of the MCP project does."""
    result = {"content": [text("read"), text(LONG)], "structuredContent": {"content": LONG}}

    assert stored(result) == [LONG]
    assert shown(result, 1) == {"content": [text("read"), text("S0")]}


def test_a_text_of_its_own_under_another_name_is_structured_content() -> None:
    result = {"content": [text("read")], "structuredContent": {"content": LONG}}

    assert [json.loads(each) for each in stored(result)] == [{"content": LONG}]


def test_a_list_that_was_made_many_blocks_is_stored_once() -> None:
    items = [{"n": number, "name": "a name"} for number in range(9)]
    result = {"content": [text(json.dumps(item)) for item in items], "structuredContent": {"result": items}}

    assert [json.loads(each) for each in stored(result)] == [{"result": items}]
    assert shown(result, 1) == {"content": [text("S0")]}


def test_a_text_that_could_not_be_stored_stays() -> None:
    result = {"content": [text(LONG)], "structuredContent": {"a": LONG, "b": 1}}
    plan = plan_result(json.dumps(result).encode(), LIMIT)

    assert plan is not None
    assert json.loads(dumps(plan.with_shown([None, None]))) == result
