"""Arguments of tools: their types, their JSON schema, and their conversion from what a model sent."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.model.msgspec_types import prepare
from fdstore.model.records import Mode
from fdstore.text.layout import show_controls
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.paging import encode

if TYPE_CHECKING:
    from fdstore.results.context import Context

KNOWN_TYPES = 256
"""Size of the schema caches. Bounded, because a user's function gets a new argument type for every agent
that is offered it, and a worker runs for weeks."""

NAMES_FD: dict[str, Any] = {"names": "a descriptor"}
"""Marker of fields in which 3 and 3.0 mean fd:3."""

Fd = Annotated[
    Any,
    msgspec.Meta(
        description="fd:3, ref:plan, or a part: fd:3#P2-4 (pages), fd:3#L10-20 (lines), fd:3#C1-99 "
        "(characters), fd:3#J/key/0 (JSON).",
        extra_json_schema={"type": "string"},
        extra=NAMES_FD,
    ),
]

WholeFd = Annotated[
    Any,
    msgspec.Meta(
        description="A stored text such as fd:3 or ref:plan.",
        extra_json_schema={"type": "string"},
        extra=NAMES_FD,
    ),
]


Number = Annotated[int, msgspec.Meta(ge=1)]

UNSET = msgspec.UNSET


# A missing field is UNSET and has no default in the generated schema. Its effective default is written by
# hand, because `mode="page"` beside a selector is an error and a missing mode is not.
Start = (
    Annotated[
        Number,
        msgspec.Meta(description="Counted from 1.", extra_json_schema={"default": 1}),
    ]
    | msgspec.UnsetType
)

Count = (
    Annotated[
        Number,
        msgspec.Meta(extra_json_schema={"default": 1}),
    ]
    | msgspec.UnsetType
)

Units = (
    Annotated[
        Mode,
        msgspec.Meta(
            description="Unit of start and count.",
            extra_json_schema={"default": "page"},
        ),
    ]
    | msgspec.UnsetType
)


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Base class of all tools' arguments."""

    @staticmethod
    def hidden(context: Context | None) -> frozenset[str]:
        """Return the fields that are accepted but left out of the schema."""
        return frozenset()


def schema_of(arguments: type, context: Context | None = None) -> dict[str, Any]:
    """Return the JSON schema of a Struct with the root reference inlined and titles removed."""
    schema: dict[str, Any] = msgspec.json.decode(_schema(arguments))
    definitions = schema.get("$defs", {})
    root = definitions.pop(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else schema
    hidden = arguments.hidden(context) if issubclass(arguments, Arguments) else frozenset()
    root["properties"] = {k: _typed(v) for k, v in root.get("properties", {}).items() if k not in hidden}
    root.setdefault("required", [])
    root.pop("title", None)
    root["type"] = "object"
    root["additionalProperties"] = False
    if definitions:
        root["$defs"] = {name: _untitled(found) for name, found in definitions.items()}
    return dict(root)


def _typed(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a field; that of a choice of words with its type, which msgspec leaves out."""
    words = schema.get("enum")
    if words and all(isinstance(word, str) for word in words):
        return {"type": "string", **schema}
    return schema


BOUNDS = ("minimum", "maximum")


def without_bounds(schema: dict[str, Any]) -> dict[str, Any]:
    """Return the schema of a tool without the bounds of numbers: they would be sent with every request, and
    each call checks them.

    >>> without_bounds({"properties": {"n": {"type": "integer", "minimum": 0, "default": 0}}})
    {'properties': {'n': {'type': 'integer', 'default': 0}}}
    """
    properties = {
        name: {key: value for key, value in about.items() if key not in BOUNDS}
        for name, about in schema["properties"].items()
    }
    return {**schema, "properties": properties}


@lru_cache(KNOWN_TYPES)
def _schema(arguments: type) -> bytes:
    """Return msgspec's schema of a Struct, which is slow to build. Encoded, so that callers cannot modify the
    cached value."""
    prepare(arguments)
    return msgspec.json.encode(msgspec.json.schema(arguments))


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}


_WHOLE = re.compile(r"-?[0-9]{1,17}")


@lru_cache(KNOWN_TYPES)
def _fields(arguments: type) -> tuple[tuple[str, ...], frozenset[str], frozenset[str]]:
    """Return the names of all fields, of those that accept integers, and of those that name descriptors."""
    prepare(arguments)
    info = msgspec.inspect.type_info(arguments)
    assert isinstance(info, msgspec.inspect.StructType)
    numbers = frozenset(field.encode_name for field in info.fields if _takes_whole_number(field.type))
    fds = frozenset(field.encode_name for field in info.fields if _names_fd(field.type))
    return tuple(field.encode_name for field in info.fields), numbers, fds


def _takes_whole_number(kind: msgspec.inspect.Type) -> bool:
    match kind:
        case msgspec.inspect.IntType() | msgspec.inspect.FloatType():
            return True
        case msgspec.inspect.UnionType(types):
            # in a union with `str` digits stay a string, and with `float` 3.0 stays a float
            other = (msgspec.inspect.StrType, msgspec.inspect.FloatType)
            return any(map(_takes_whole_number, types)) and not any(isinstance(each, other) for each in types)
        case msgspec.inspect.Metadata(inner):
            return _takes_whole_number(inner)
    return False


def _names_fd(kind: msgspec.inspect.Type) -> bool:
    return isinstance(kind, msgspec.inspect.Metadata) and kind.extra == NAMES_FD


_REFERENCE = re.compile(r"(?:fd[:-]|name:|ref:).{1,2000}", re.DOTALL)


def named_fds(arguments: type, values: Mapping[str, Any]) -> tuple[object, ...]:
    """Return the descriptors that arguments of a built-in tool name: in fields for them, and wherever a whole
    text is a reference.

    >>> from fdstore.tools.built_in.spawn import Spawn
    >>> named_fds(Spawn, {"query": "Read fd:1.", "additional_preload_fds": ["fd:2#L1"]})
    ('fd:2#L1',)
    """
    _, _, fds = _fields(arguments)
    found = [value for name, value in values.items() if name in fds and value is not None]
    rest: list[Any] = [value for name, value in values.items() if name not in fds]
    while rest:
        value = rest.pop()
        if isinstance(value, dict):
            rest += value.values()
        elif isinstance(value, list):
            rest += value
        elif isinstance(value, str) and _REFERENCE.fullmatch(value):
            found.append(value)
    return tuple(found)


LONE_SURROGATE = "a text holds a lone surrogate, which is not a character"
_NO_OBJECT = "the arguments must be a JSON object"


def convert(arguments: type, values: object) -> Any:
    """Convert a model's arguments, `values`, to a tool's. Raises `InvalidArgument` with the field's name."""
    if not isinstance(values, dict):
        raise InvalidArgument("", _NO_OBJECT)
    names, numbers, fds = _fields(arguments)
    unknown = [name for name in values if name not in names]
    if unknown:
        known = ", ".join(names) or "none"
        raise InvalidArgument(quoted(unknown[0]), f"is not an argument of this tool; it takes: {known}")
    loosened = {
        name: _number(name, value) if name in numbers else _whole(value) if name in fds else value
        for name, value in values.items()
    }
    try:
        converted: Any = msgspec.convert(loosened, arguments)
        _require_finite(values)
        return converted
    except msgspec.ValidationError as error:
        message, _, path = str(error).partition(" - at `$")
        name = path.strip("`.")[:PROBLEM_CHARS]
        raise InvalidArgument(name, _problem(message, arguments, name)) from error
    except RecursionError as error:
        raise InvalidArgument("", "the arguments are nested too deep") from error
    except UnicodeEncodeError as error:
        raise InvalidArgument("", LONE_SURROGATE) from error


def require_object(values: object) -> dict[str, Any]:
    """Return a model's arguments unconverted. Raises `InvalidArgument` unless they are a JSON object."""
    if not isinstance(values, dict) or not all(isinstance(name, str) for name in values):
        raise InvalidArgument("", _NO_OBJECT)
    try:
        _require_finite(values)
    except RecursionError as error:
        raise InvalidArgument("", "the arguments are nested too deep") from error
    return values


def _require_finite(value: object, name: str = "") -> None:
    """Raise `InvalidArgument` for a NaN or an infinity, which Python's JSON parser accepts."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgument(name, "a finite number is needed")
    if isinstance(value, dict):
        for key, each in value.items():
            _require_finite(each, name or key)
    elif isinstance(value, list):
        for each in value:
            _require_finite(each, name)


def _number(name: str, value: object) -> object:
    """Convert a string of digits or an integral float to an int. Raises `InvalidArgument` above the limit."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    value = _whole(value)
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        # checked here, not by msgspec: Python refuses to format integers of thousands of digits
        raise InvalidArgument(name, f"the largest number accepted is {MAX_INTEGER}")
    return value


def _whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER:
        return int(value)
    return value


PROBLEM_CHARS = 300
"""The most characters that are shown of the message of another library."""


def _problem(message: str, arguments: type, name: str) -> str:
    """Return msgspec's message; if it would repeat the value, which may be long, the choices instead."""
    if message.startswith("Invalid "):
        choices = schema_of(arguments)["properties"].get(name, {}).get("enum")
        return f"must be one of: {', '.join(map(str, choices))}" if choices else "is not a value it takes"
    return show_controls(message.removeprefix("Object ")[:PROBLEM_CHARS], keep="")


def check_message(name: str, text: str) -> str:
    """Return `text`, a message to another process. Raises `InvalidArgument` if it is blank or cannot be
    stored."""
    if not text.strip():
        raise InvalidArgument(name, "must say what is to be done")
    return check_storable(name, text)


def check_storable(name: str, text: str) -> str:
    """Return `text`. Raises `InvalidArgument` if it contains a lone surrogate, which cannot be stored."""
    try:
        encode(text)
    except InvalidArgument as error:
        raise InvalidArgument(name, error.problem) from error
    return text


def unset_to_none(value: Any) -> Any:
    """Return `value`, or None for a missing argument."""
    return None if value is UNSET else value


WriteMode = Annotated[
    Literal["write", "append"],
    msgspec.Meta(
        description='"append" adds to the end of the file.',
    ),
]
