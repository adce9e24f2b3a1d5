"""Functions of users as tools: what the model is told of their parameters, and what the function receives."""

from __future__ import annotations

import dataclasses
import enum
import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, Literal, TypedDict

import msgspec
import pydantic
import pytest

from fdstore.errors import InvalidArgument
from fdstore.tools.functions.python_tool import PythonTool, python_tool
from tests.unit.test_imports import libraries_loaded_by
from tests.unit.tools.functions.ticket import Ticket, properties


class Colour(enum.Enum):
    RED = "r"
    GREEN = "g"


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


class Box(TypedDict, total=False):
    width: int
    label: str


class Pen(msgspec.Struct):
    colour: Colour
    width: float = 1.0


@dataclasses.dataclass
class Order:
    tickets: list[Ticket]


def received(arguments: dict[str, Any], function: Callable[..., Any]) -> dict[str, Any]:
    """Return what the function is called with, for a model's arguments."""
    return python_tool(function).convert(arguments)


# descriptions


def test_annotations_and_the_args_section_describe_parameters() -> None:
    def find(
        plain: Annotated[int, "A plain text."],
        meta: Annotated[int, msgspec.Meta(description="A Meta.", ge=1)],
        field: Annotated[int, pydantic.Field(description="A Field.", ge=1)],
        ticket: Annotated[Ticket, "A text on a model."],
        listed: int,
        both: Annotated[int, "The annotation."],
        model: Ticket,
        none: int = 3,
    ) -> str:
        """Find lines.

        In all logs.

        Args:
            listed (int): The docstring,
                continued.
            both: Not the annotation.
            model: A docstring on a model.

        Returns:
            The lines.
        """
        return ""

    definition = python_tool(find).definition()
    described = {name: each.get("description") for name, each in properties(find).items()}

    assert definition["description"] == "Find lines.\n\nIn all logs.\n\nReturns:\n    The lines."
    assert described == {
        "plain": "A plain text.",
        "meta": "A Meta.",
        "field": "A Field.",
        "ticket": "A text on a model.",
        "listed": "The docstring, continued.",
        "both": "The annotation.",
        "model": "A docstring on a model.",
        "none": None,
    }


@pytest.mark.parametrize(
    ("section", "stays"),
    [
        ("Args:\n    word: Taken.", False),
        ("Arguments:\n  word: Taken.", False),
        ("Args:\n    word: Taken.\n    other: Not a parameter.", True),
        ("Args:\n    A sentence without a name.", True),
        ("Args:", True),
        ("For args: see above.", True),
    ],
)
def test_a_section_stays_in_the_description_unless_all_of_it_is_in_the_schema(
    section: str, stays: bool
) -> None:
    def find(word: str) -> str:
        return word

    find.__doc__ = f"Find.\n\n{section}\n"

    assert python_tool(find).definition()["description"] == (f"Find.\n\n{section}" if stays else "Find.")
    assert properties(find)["word"].get("description") == ("Taken." if "Taken." in section else None)


# types


def paint(
    point: Point,
    box: Box,
    pen: Pen,
    colour: Colour,
    mode: Literal["fill", "line"],
    ticket: Ticket,
    order: Order,
    more: list[Ticket] | None = None,
    votes: Annotated[int, pydantic.Field(gt=2)] = 3,
    path: Path = Path("out"),
) -> str:
    return ""


VALID: dict[str, Any] = {
    "point": {"x": 1},
    "box": {"width": 2},
    "pen": {"colour": "g"},
    "colour": "r",
    "mode": "fill",
    "ticket": {"title": "t", "parts": [{"title": "p"}]},
    "order": {"tickets": [{"title": "o"}]},
}


def test_a_function_receives_the_types_of_its_signature() -> None:
    assert received({**VALID, "more": [{"title": "m"}], "path": "a/b"}, paint) == {
        "point": Point(1),
        "box": {"width": 2},
        "pen": Pen(Colour.GREEN),
        "colour": Colour.RED,
        "mode": "fill",
        "ticket": Ticket(title="t", parts=[Ticket(title="p")]),
        "order": Order([Ticket(title="o")]),
        "more": [Ticket(title="m")],
        "votes": 3,
        "path": Path("a/b"),
    }
    assert received(VALID, paint)["path"] == Path("out")


@pytest.mark.parametrize(
    ("argument", "value", "where"),
    [
        ("point", {"x": "one"}, "point.x"),
        ("point", {"y": 1}, "point"),
        ("box", {"width": []}, "box.width"),
        ("pen", {"colour": "blue"}, "pen.colour"),
        ("colour", "blue", "colour"),
        ("mode", "dash", "mode: must be one of: fill, line"),
        ("ticket", {"title": "t", "votes": -1}, "ticket.votes: Input should be greater than or equal to 0"),
        ("ticket", {"parts": [{"title": "t"}, 3], "title": "t"}, "ticket.parts[1]"),
        ("order", {"tickets": [{"title": None}]}, "order.tickets[0].title"),
        ("votes", 2, "votes: Input should be greater than 2"),
        ("votes", None, "votes"),
        ("votes", float("nan"), "votes: a finite number is needed"),
        ("ticket", {"title": "t", "votes": float("inf")}, "ticket: a finite number is needed"),
        ("votes", [10**5000], "votes"),
        ("more", ["\udc80"], "more: a text holds a lone surrogate"),
        ("path", 7, "path"),
        ("other", 1, "other"),
    ],
)
def test_an_invalid_argument_is_refused_with_its_path(argument: str, value: Any, where: str) -> None:
    with pytest.raises(InvalidArgument) as caught:
        received({**VALID, argument: value}, paint)

    assert str(caught.value).startswith((where, f"'{where}'"))
    assert len(str(caught.value)) < 400


def test_the_schema_resolves_and_has_neither_titles_nor_unknown_references() -> None:
    schema = python_tool(paint).definition()["input_schema"]
    written = json.dumps(schema)
    references = {each.partition('"')[0] for each in written.split('"$ref": "#/$defs/')[1:]}

    assert references == {"Point", "Box", "Pen", "Colour", "Ticket", "Order"} & references
    assert references <= schema["$defs"].keys()
    assert schema["required"] == list(VALID)
    assert schema["properties"]["votes"] == {"type": "integer", "exclusiveMinimum": 2, "default": 3}
    ticket = schema["$defs"]["Ticket"]["properties"]
    assert ticket["title"] == {"type": "string"}  # a field of that name, not a title
    assert ticket["votes"] == {
        "type": "integer",
        "minimum": 0,
        "default": 0,
        "description": "How many want it.",
    }


def test_types_of_the_same_name_keep_their_own_definitions() -> None:
    class Inner(pydantic.BaseModel):
        a: list[Point]

    class Outer(pydantic.BaseModel):
        inner: list[Inner]

    first = dataclasses.make_dataclass("Inner", [("b", int)])

    def show(one: Any, two: Any) -> str:
        return ""

    show.__annotations__ = {"one": first, "two": Outer}
    schema = python_tool(show).definition()["input_schema"]

    assert schema["properties"]["one"]["$ref"] == "#/$defs/Inner"
    assert schema["$defs"]["Inner"]["properties"].keys() == {"b"}
    assert schema["properties"]["two"]["properties"]["inner"]["items"]["$ref"] == "#/$defs/Inner_2"
    assert schema["$defs"]["Inner_2"]["properties"]["a"]["items"] == {"$ref": "#/$defs/Point"}


def test_a_field_as_default_and_defaults_that_json_cannot_show() -> None:
    fallback = Ticket(title="fallback")

    def show(
        votes: int = pydantic.Field(3, ge=1, description="How many."),
        title: str = pydantic.Field(description="Which."),
        ticket: Ticket = fallback,
        point: Point = Point(1),  # noqa: B008
    ) -> str:
        return ""

    schema = python_tool(show).definition()["input_schema"]

    assert schema["required"] == ["title"]
    assert schema["properties"]["votes"] == {
        "type": "integer",
        "minimum": 1,
        "default": 3,
        "description": "How many.",
    }
    got = received({"title": "t"}, show)
    assert (got["votes"], got["title"], got["point"]) == (3, "t", Point(1))
    assert got["ticket"] is fallback


def explode(value: object) -> int:
    raise RuntimeError("boom")


@pytest.mark.parametrize(
    "hint",
    [
        Annotated[int, pydantic.AfterValidator(explode)],
        dataclasses.make_dataclass("Checked", [("x", int)], namespace={"__post_init__": explode}),
    ],
    ids=["pydantic", "dataclass"],
)
def test_a_check_of_the_users_that_crashes_refuses_the_arguments(hint: Any) -> None:
    def show(value: Any) -> str:
        return ""

    show.__annotations__ = {"value": hint}

    with pytest.raises(InvalidArgument, match="the arguments cannot be checked: RuntimeError: boom"):
        received({"value": 1 if "Annotated" in repr(hint) else {"x": 1}}, show)


def test_strict_models_take_dates_and_enums_as_json_has_them() -> None:
    class Strict(pydantic.BaseModel, strict=True):
        colour: Colour
        size: tuple[int, int]

    def show(value: Any) -> str:
        return ""

    show.__annotations__ = {"value": Strict}

    assert received({"value": {"colour": "r", "size": [1, 2]}}, show)["value"].size == (1, 2)


def test_a_type_that_cannot_be_described_is_refused_by_the_name_of_its_parameter() -> None:
    def show(what: Callable[[], int] | PythonTool) -> str:
        return ""

    with pytest.raises(InvalidArgument, match="show cannot be a tool: what: "):
        python_tool(show)


@pytest.mark.thorough("new interpreters")
def test_pydantic_is_imported_only_for_a_parameter_that_needs_it() -> None:
    make = "from fdstore.tools.functions.python_tool import python_tool\n"
    plain = "import dataclasses\nd = dataclasses.make_dataclass('D', [('a', int)])\ndef f(x: d): ...\n"
    needing = "import pathlib\ndef f(x: pathlib.Path): ...\n"

    assert libraries_loaded_by(f"{make}{plain}python_tool(f)", "pydantic", "anthropic") == set()
    assert libraries_loaded_by(f"{make}{needing}python_tool(f)", "pydantic", "anthropic") == {"pydantic"}


def test_a_definition_is_a_copy() -> None:
    made = python_tool(paint)
    made.definition()["input_schema"]["properties"].clear()

    assert made.definition()["input_schema"]["properties"]
