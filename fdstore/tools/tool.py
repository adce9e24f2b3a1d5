"""What a tool is: a typed set of arguments, a description, and an operation.

The arguments are a msgspec Struct. The schema that the model sees is generated from it, and what
the model sends is checked against it, so the two cannot differ. Models are loose with numbers, so
`"3"` and `3.0` are taken for 3 here (and nowhere else); unknown fields are refused by name.

A tool never blocks and never raises for what a model got wrong: the toolbox turns a typed error
into an `fd_error`. A tool that starts other processes answers `Started`; whoever runs the loop
decides how to wait.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.records import Mode
from fdstore.render import Rendered
from fdstore.store.operation import Operation
from fdstore.store.views import Namespace
from fdstore.text.selection import MAX_NUMBER
from fdstore.tools.config import FDConfig

Fd = Annotated[
    Any,
    msgspec.Meta(
        description="A descriptor such as fd:3 or ref:plan; a part of it as fd:3#P2-4 (pages), "
        "fd:3#L10-20 (lines) or fd:3#C1-99 (characters).",
        extra_json_schema={"type": "string"},
    ),
]
Number = Annotated[int, msgspec.Meta(ge=1, le=MAX_NUMBER)]
UNSET = msgspec.UNSET

# A field that is left out is UNSET, which its schema does not show; the default that it then means is
# said by hand, because `mode="page"` beside a selector is an error and a mode left out is not.
Start = (
    Annotated[Number, msgspec.Meta(description="1 is the first.", extra_json_schema={"default": 1})]
    | msgspec.UnsetType
)
Count = Annotated[Number, msgspec.Meta(extra_json_schema={"default": 1})] | msgspec.UnsetType
Units = Annotated[Mode, msgspec.Meta(extra_json_schema={"default": "page"})] | msgspec.UnsetType


class Arguments(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The base of all tools' arguments."""

    @staticmethod
    def hidden(context: Context | None) -> frozenset[str]:
        """Fields that are taken, but not shown in the schema."""
        return frozenset()


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """A program that may be spawned: what the model is told, and what the child's process needs."""

    key: str
    description: str
    digest: str
    bundle: str
    preload: tuple[str, ...] = ()


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """What tools work with: whose descriptors, which tools are on, and where files may go."""

    space: Namespace
    prefix: str
    config: FDConfig
    enabled: frozenset[str]
    fds_on: bool
    export_root: str
    files_root: str
    linked: dict[str, Linked]
    wake: Callable[[str], None]


class ToolResult(msgspec.Struct, frozen=True):
    """What the model is shown for a call."""

    content: str
    is_error: bool = False


class Started(msgspec.Struct, frozen=True):
    """A call whose result is the end of other processes, in this order."""

    processes: tuple[str, ...]


Outcome: TypeAlias = Rendered | Started
Run: TypeAlias = Callable[[Context, Any, str | None], Operation[Outcome]]


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool: its name, what it says of itself, its arguments, what it does.

    `describe` gets the context, since some descriptions name what is available.
    """

    name: str
    arguments: type[Arguments]
    describe: Callable[[Context], str]
    run: Run

    def definition(self, context: Context) -> dict[str, Any]:
        """The Messages-API tool dict."""
        return {
            "name": self.name,
            "description": self.describe(context),
            "input_schema": schema_of(self.arguments, context),
        }


def schema_of(arguments: type, context: Context | None = None) -> dict[str, Any]:
    """The JSON schema of a Struct, flat: the root reference inlined, titles dropped."""
    schema = msgspec.json.schema(arguments)
    definitions = schema.get("$defs", {})
    root = definitions.pop(schema["$ref"].rpartition("/")[2]) if "$ref" in schema else schema
    hidden = arguments.hidden(context) if issubclass(arguments, Arguments) else frozenset()
    root["properties"] = {k: v for k, v in root.get("properties", {}).items() if k not in hidden}
    root.setdefault("required", [])
    root.pop("title", None)
    root["type"] = "object"
    root["additionalProperties"] = False
    if definitions:
        root["$defs"] = {name: _untitled(found) for name, found in definitions.items()}
    return dict(root)


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}


_WHOLE = re.compile(r"-?[0-9]{1,17}")


@cache
def _numeric(arguments: type) -> frozenset[str]:
    """The fields that take a whole number."""
    info = msgspec.inspect.type_info(arguments)
    assert isinstance(info, msgspec.inspect.StructType)
    return frozenset(field.encode_name for field in info.fields if _takes_int(field.type))


def _takes_int(kind: msgspec.inspect.Type) -> bool:
    match kind:
        case msgspec.inspect.IntType():
            return True
        case msgspec.inspect.UnionType(types):
            # beside `str`, a text of digits is a text
            whole = any(map(_takes_int, types))
            return whole and not any(isinstance(each, msgspec.inspect.StrType) for each in types)
        case msgspec.inspect.Metadata(inner):
            return _takes_int(inner)
    return False


def converted(arguments: type, given: object) -> Any:
    """`given` as the arguments of a tool. Raises `InvalidArgument`, naming the field."""
    if not isinstance(given, dict):
        raise InvalidArgument("", "the arguments must be a JSON object")
    names = [field.encode_name for field in msgspec.structs.fields(arguments)]
    unknown = [name for name in given if name not in names]
    if unknown:
        known = ", ".join(names) or "none"
        raise InvalidArgument(quoted(unknown[0]), f"is no argument of this tool; it takes: {known}")
    numeric = _numeric(arguments)
    loosened = {name: _loosened(name, value, name in numeric) for name, value in given.items()}
    try:
        return msgspec.convert(loosened, arguments)
    except (msgspec.ValidationError, RecursionError) as error:
        message, _, path = str(error).partition(" - at `$")
        raise InvalidArgument(path.strip("`."), message.replace("Object missing", "missing")) from error


def _loosened(name: str, value: object, numeric: bool) -> object:
    """A number for a text or a float that is one, where a whole number is wanted."""
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_NUMBER:
        return int(value)
    if numeric and isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    if numeric and isinstance(value, int) and abs(value) > MAX_NUMBER:
        # said here and not by msgspec: Python refuses to print integers of thousands of digits
        raise InvalidArgument(name, f"the largest number taken is {MAX_NUMBER}")
    return value


def given(value: Any) -> Any:
    """None for an argument that was left out."""
    return None if value is UNSET else value


Switch: TypeAlias = Literal["write", "append"]
