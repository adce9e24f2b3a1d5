"""Arguments of tools: the schema for the model, and the conversion of what it sends."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.errors import InvalidArgument
from fdstore.tools.arguments import Arguments, Number, convert, schema_of
from fdstore.tools.built_in import close_fd, fd_to_file, list_fds, put_fd, read_fd, spawn
from fdstore.tools.built_in.read_fd import ReadFD
from fdstore.tools.built_in.spawn import Spawn

MODULES = [read_fd, list_fds, put_fd, fd_to_file, close_fd, spawn]


class Point(msgspec.Struct):
    x: int
    y: float = 0.0


class Drawing(Arguments, frozen=True, kw_only=True):
    title: str
    copies: Number = 1
    scale: float = 1.0
    either: int | None = None
    name_or_number: str | int = ""
    origin: Point | None = None
    corners: list[Point] = msgspec.field(default_factory=list)


def refused(given: object, arguments: type = Drawing) -> str:
    """Return the error message for these arguments."""
    with pytest.raises(InvalidArgument) as caught:
        convert(arguments, given)
    assert len(str(caught.value)) < 1000
    return str(caught.value)


# the schema


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.TOOL.name)
def test_a_schema_is_flat_and_closed(module: Any) -> None:
    schema = schema_of(module.TOOL.arguments)

    assert (schema["type"], schema["additionalProperties"]) == ("object", False)
    assert {"$ref", "title", "oneOf", "allOf", "anyOf"}.isdisjoint(schema)
    assert set(schema["required"]) <= set(schema["properties"])
    assert json.loads(json.dumps(schema)) == schema


def test_a_schema_has_names_types_defaults_and_bounds() -> None:
    schema = schema_of(Drawing)

    assert schema["required"] == ["title"]
    assert schema["properties"]["title"] == {"type": "string"}
    copies = schema["properties"]["copies"]
    assert (copies["type"], copies["minimum"], copies["default"]) == ("integer", 1, 1)


def test_nested_structs_are_in_the_definitions() -> None:
    schema = schema_of(Drawing)

    assert schema["properties"]["corners"]["items"] == {"$ref": "#/$defs/Point"}
    assert set(schema["$defs"]["Point"]["properties"]) == {"x", "y"}
    assert "title" not in schema["$defs"]["Point"]


def test_aliases_are_accepted_but_not_in_the_schema() -> None:
    assert {"page", "start_line", "end_line"}.isdisjoint(schema_of(ReadFD)["properties"])

    assert convert(ReadFD, {"fd": "fd:1", "page": 2}).page == 2


def test_optional_fields_do_not_add_null_to_the_type() -> None:
    start = schema_of(ReadFD)["properties"]["start"]

    assert (start["type"], start["default"], start["minimum"]) == ("integer", 1, 1)


# numbers, as models write them


@pytest.mark.parametrize(("written", "meant"), [(3, 3), (3.0, 3), ("3", 3), (1e3, 1000), (2**53, 2**53)])
def test_a_whole_number_may_be_written_loosely(written: Any, meant: int) -> None:
    found = convert(Drawing, {"title": "t", "copies": written, "either": written})

    assert (found.copies, found.either) == (meant, meant)
    assert type(found.copies) is int


@pytest.mark.parametrize(
    "written",
    [
        *(True, False, 2.5, "2.5", "", " 3", "3 ", "+3", "1e3", "0x3", "٣", "３", "3\n", None, [3], {"3": 3}),
        *(0, -1, "0"),
    ],
    ids=repr,
)
def test_a_value_that_is_not_a_whole_number_is_refused_by_name(written: Any) -> None:
    assert "copies" in refused({"title": "t", "copies": written})


@pytest.mark.parametrize(
    "written",
    [
        *(math.nan, math.inf, -math.inf, 2**53 + 1, -(2**60), float(2**60), 1e308, 10**5000, -(10**5000)),
        *("9" * 17, "9" * 5000),
    ],
    ids=lambda written: type(written).__name__,
)
def test_out_of_range_numbers_are_refused_and_never_printed(written: Any) -> None:
    for name in ("copies", "either"):
        message = refused({"title": "t", name: written})

        assert name in message
        assert "99999" not in message


def test_digits_stay_text_in_a_text_field() -> None:
    found = convert(Drawing, {"title": "007", "name_or_number": "3"})

    assert (found.title, found.name_or_number) == ("007", "3")


def test_ids_of_descriptors_may_be_numbers() -> None:
    found = convert(Spawn, {"program_name": "p", "query": "q", "additional_preload_fds": ["fd:1", 2]})

    assert found.additional_preload_fds == ["fd:1", 2]


@given(st.integers(1, 2**53))
def test_every_way_to_write_a_number_means_the_same(number: int) -> None:
    exact = float(number)

    assert convert(Drawing, {"title": "t", "copies": number}).copies == number
    assert convert(Drawing, {"title": "t", "copies": exact}).copies == int(exact)
    if number < 10**17:
        assert convert(Drawing, {"title": "t", "copies": str(number)}).copies == number


# anything else that a model may send


@pytest.mark.parametrize("written", [None, [], "", "{}", 3, True, [{"title": "t"}]], ids=repr)
def test_arguments_that_are_not_an_object_are_refused(written: Any) -> None:
    assert "JSON object" in refused(written)


def test_an_unknown_field_is_refused_with_the_known_ones() -> None:
    message = refused({"title": "t", "colour": "red"})

    assert "colour" in message
    assert "title, copies, scale" in message
    assert len(refused({"title": "t", "x" * 100_000: 1})) < 400


def test_a_missing_field_is_named() -> None:
    assert "title" in refused({})


def test_a_nested_mistake_is_reported_with_its_path() -> None:
    assert "corners[1].x" in refused({"title": "t", "corners": [{"x": 1}, {"x": "one"}]})


@pytest.mark.parametrize("written", [3, None, ["t"], {"t": 1}, True])
def test_other_types_are_not_converted_to_text(written: Any) -> None:
    assert "title" in refused({"title": written})


def test_deeply_nested_json_is_refused_without_a_crash() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]
    for name in ("title", "copies", "corners", "origin"):
        assert name in refused({"title": "t", name: deep})
    while deep:  # taken apart by hand: to free it at once would recurse as deep
        deep = deep.pop()


some_json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=10,
)
names = st.sampled_from(sorted(ReadFD.__struct_fields__ + Drawing.__struct_fields__))


@given(st.sampled_from([Drawing, ReadFD, Spawn]), some_json | st.dictionaries(names, some_json))
def test_any_input_is_accepted_or_refused_with_our_own_message(arguments: type, written: Any) -> None:
    try:
        found = convert(arguments, written)
    except InvalidArgument as error:
        found = str(error)

    assert found
    assert isinstance(found, (arguments, str))


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_no_argument_holds_a_number_that_is_not_finite(value: float) -> None:
    class Weigh(Arguments, frozen=True, kw_only=True):
        weight: float = 0.0
        weights: list[float] = msgspec.field(default_factory=list)
        anything: Any = None

    for arguments in ({"weight": value}, {"weights": [1.0, value]}, {"anything": {"deep": [value]}}):
        with pytest.raises(InvalidArgument, match="finite"):
            convert(Weigh, arguments)

    assert convert(Weigh, {"weight": "3", "weights": [1.5]}) == Weigh(weight=3.0, weights=[1.5])
