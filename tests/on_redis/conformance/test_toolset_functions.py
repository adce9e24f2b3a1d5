"""The user's functions as tools: their definitions, arguments, results and failures."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable
from datetime import date
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import msgspec
import pydantic
import pytest
from anthropic.lib.tools import ToolError
from anthropic.types import TextBlock

from fdstore import Toolset
from fdstore.client import Process
from fdstore.errors import InvalidArgument
from tests.elements import only
from tests.on_redis.conformance.calling import stored


class Filter(msgspec.Struct):
    """An argument with parts."""

    level: str
    limit: int = 10


class Reading(pydantic.BaseModel):
    """What a function returns."""

    celsius: float
    taken: date = date(2026, 11, 28)


class Markup(str):
    """A text of another library."""

    __slots__ = ()


def test_a_tool_definition_is_derived_from_signature_and_docstring(proc: Process) -> None:
    def find(service: str, filters: list[Filter], since: float | None = None, *, exact: bool = False) -> str:
        """Find lines.

        Of one service.
        """
        return f"{service} {filters[0].level} {filters[0].limit} {since} {exact}"

    tools = Toolset(proc, enabled=[], python=[find])
    [definition] = tools.definitions

    assert (definition["name"], definition["description"]) == ("find", "Find lines.\n\nOf one service.")
    assert definition["input_schema"]["required"] == ["service", "filters"]
    result = tools.call("find", {"service": "db", "filters": [{"level": "E"}], "since": 1.0})
    assert (result.content, result.is_error) == ("db E 10 1.0 False", False)
    assert only(tools.call("find", {"service": "db"}).content)["type"] == "invalid_argument"
    assert only(tools.call("find", {"service": 1, "filters": []}).content)["type"] == "invalid_argument"


def test_a_float_stays_a_float_and_a_text_of_digits_a_text(proc: Process) -> None:
    def show(number: float, either: int | float, text: str | int, anything: Any) -> str:
        return repr((number, either, text, anything))

    tools = Toolset(proc, enabled=[], python=[show])
    arguments = {"number": 3.0, "either": 3.0, "text": "3", "anything": 3.0}

    assert tools.call("show", arguments).content == "(3.0, 3.0, '3', 3.0)"


@pytest.mark.parametrize("name", ["read_fd", "spawn", "pipe"])
def test_a_function_cannot_have_the_name_of_a_built_in_tool(proc: Process, name: str) -> None:
    def function() -> str:
        return ""

    function.__name__ = name

    with pytest.raises(InvalidArgument, match=f"there is a tool {name} already; rename the function"):
        Toolset(proc, python=[function])


@pytest.mark.parametrize("function", [lambda: "", print, 3, "module:function"])
def test_an_object_that_cannot_be_a_tool_is_refused_by_the_toolset_constructor(
    proc: Process, function: Any
) -> None:
    with pytest.raises(InvalidArgument, match="python: "):
        Toolset(proc, python=[function])


@pytest.mark.parametrize(
    ("returned", "shown"),
    [
        ("text", "text"),
        (None, ""),
        (b"caf\xe9", "caf\\xe9"),
        ({"a": [1, None]}, '{"a":[1,null]}'),
        (["a", "b"], '["a","b"]'),
        ([], "[]"),
        (3, "3"),
        ("a\udc80b", "a\\udc80b"),
        ({"half": "\ud83d"}, '{"half": "\\ud83d"}'),
        ({None: 1, True: 2, False: 3, 4: 5}, '{"null": 1, "true": 2, "false": 3, "4": 5}'),
        ([float("nan"), {"a": float("-inf"), "b": None}], '[NaN, {"a": -Infinity, "b": null}]'),
        (Reading(celsius=20.5), '{"celsius":20.5,"taken":"2026-11-28"}'),
        ([Reading(celsius=float("nan"))], '[{"celsius": NaN, "taken": "2026-11-28"}]'),
        ({(1, 2): Path("/tmp/a")}, '{"(1, 2)": "/tmp/a"}'),
        (Markup("<b>"), "<b>"),
        (2**70, "1180591620717411303424"),
        (deque([Fraction(1, 3), Decimal("1.50")]), '["1/3","1.50"]'),
    ],
    ids=repr,
)
def test_any_return_value_of_a_function_is_shown_as_text(proc: Process, returned: Any, shown: str) -> None:
    def function() -> Any:
        return returned

    tools = Toolset(proc, python=[function])

    assert tools.call("function", {}).content == shown
    assert tools.wrap(returned) == shown


def test_text_blocks_of_a_function_stay_blocks(proc: Process) -> None:
    returned = [{"type": "text", "text": "a"}, TextBlock(type="text", text="b")]

    def function() -> Any:
        return returned

    tools = Toolset(proc, python=[function])

    blocks = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert tools.call("function", {}).content == blocks
    assert tools.wrap(returned) == blocks


def endless() -> list[Any]:
    found: list[Any] = []
    found.append(found)
    return found


def deep() -> list[Any]:
    found: list[Any] = []
    for _ in range(100_000):
        found = [found]
    return found


@pytest.mark.parametrize("function", [endless, deep])
def test_a_result_without_an_end_is_an_error_that_says_what_to_do(
    proc: Process, function: Callable[[], list[Any]]
) -> None:
    tools = Toolset(proc, python=[function])

    result = tools.call(function.__name__, {}, call_id="toolu_1")

    assert result.is_error
    assert "nested too deep, or holds itself; return a text of it" in only(result.content).message


def test_a_block_with_half_a_surrogate_anywhere_is_one_that_an_api_takes(proc: Process) -> None:
    plain = {"type": "text", "media_type": "text/plain", "data": "half \ud83d"}
    returned = [{"type": "text", "text": "\ud83d"}, {"type": "document", "title": "\udc00", "source": plain}]

    def function() -> Any:
        return returned

    tools = Toolset(proc, python=[function])

    for content in (
        tools.call("function", {}, call_id="toolu_1").content,
        tools.wrap(returned),
        tools.offload(returned, call_id="toolu_2").content,
    ):
        assert "\\ud83d" in msgspec.json.encode(content).decode("utf-8")


def test_blank_texts_of_a_function_are_no_blocks(proc: Process) -> None:
    said = {"type": "text", "text": "12 errors"}
    pieces = {"type": "search_result", "source": "a", "title": "b"}

    def some() -> Any:
        return [{"type": "text", "text": ""}, said, {"type": "text", "text": " \n"}]

    def none() -> Any:
        return [{"type": "text", "text": ""}]

    def search() -> Any:
        return [pieces | {"content": [{"type": "text", "text": ""}, said]}]

    tools = Toolset(proc, python=[some, none, search])

    for shown in (lambda f: tools.call(f.__name__, {}).content, lambda f: tools.wrap(f())):
        assert shown(some) == [said]
        assert shown(none) == [{"type": "text", "text": "(no output)"}]
        assert shown(search) == [pieces | {"content": [said]}]
        assert tools.offload(search()).content == shown(search)


def test_an_error_without_a_text_is_an_error_that_an_api_takes(proc: Process) -> None:
    def function() -> str:
        raise ToolError("")

    result = Toolset(proc, python=[function]).call("function", {})

    assert (result.content, result.is_error) == ("(no output)", True)


def test_code_gets_the_values_that_json_has_no_form_for(proc: Process) -> None:
    def readings() -> Any:
        return {None: float("nan"), (1, 2): "\ud83d", "reading": Reading(celsius=1)}

    tools = Toolset(proc, python=[readings], enabled=["run_python"])
    code = "found = await readings()\nprint(found)"

    result = tools.call("run_python", {"code": code}, call_id="toolu_1")

    assert "{'null': nan, '(1, 2)': '\\\\ud83d', 'reading': {'celsius': 1.0" in result.text


def test_a_result_that_cannot_be_rendered_is_a_clear_error(proc: Process) -> None:
    def function() -> object:
        return object()

    result = Toolset(proc, python=[function]).call("function", {})

    assert result.is_error
    assert only(result.content).message == "the tool returned a object, which is neither text nor JSON"


@pytest.mark.parametrize(
    "error",
    [
        ValueError("no such day"),
        SystemExit("no such day"),
        GeneratorExit("no such day"),
    ],
    ids=lambda error: type(error).__name__,
)  # others: test_failing_tools
def test_a_function_that_fails_is_an_error_that_the_model_can_read(
    proc: Process, error: BaseException
) -> None:
    def function() -> str:
        raise error

    result = Toolset(proc, python=[function]).call("function", {})

    assert (result.content, result.is_error) == (f"{type(error).__name__}: no such day", True)


def test_a_long_error_is_wrapped_and_begins_with_its_cause(proc: Process) -> None:
    def function() -> str:
        raise ValueError("x" * 9000)

    result = Toolset(proc, python=[function]).call("function", {})

    assert result.is_error
    assert (only(result.content).child("preview").body or "").startswith("ValueError: xxx")
    assert stored(proc, result.content) == "ValueError: " + "x" * 9000


def test_a_coroutine_function_completes_even_inside_a_running_loop(proc: Process) -> None:
    async def later() -> str:
        await asyncio.sleep(0)
        return "done"

    tools = Toolset(proc, python=[later])

    async def notebook() -> str:
        return tools.call("later", {}).content

    assert tools.call("later", {}).content == "done"
    assert asyncio.run(notebook()) == "done"
