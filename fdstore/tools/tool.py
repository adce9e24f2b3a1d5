"""What a tool is: a typed set of arguments, a description, and an operation.

The arguments are a msgspec Struct. The schema that the model sees is generated from it, and what
the model sends is checked against it, so the two cannot differ. Models are loose with numbers, so
`"3"` and `3.0` are taken for 3 here (and nowhere else); unknown fields are refused by name.

A tool never blocks and never raises for what a model got wrong: the toolbox turns a typed error
into an `fd_error`. A tool that starts other processes answers `Started`; whoever runs the loop
decides how to wait. A tool that makes something says so (`makes`), and what a call of it came to is
kept under the call's id.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Annotated, Any, Literal, TypeAlias

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.files.paths import Root
from fdstore.permissions import Permissions
from fdstore.prepared import prepare
from fdstore.records import Mode
from fdstore.render import Rendered
from fdstore.store.content_info import ProcessHandle
from fdstore.store.processes import NO_PROGRAM, Program
from fdstore.text.commands import IDLE_SECONDS, OUTPUT_BYTES, WALL_SECONDS
from fdstore.text.layout import show_controls
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.paging import encode
from fdstore.tools.config import FDConfig
from fdstore.wire.operation import Operation

KNOWN_TYPES = 256
"""Types of arguments whose schemas are remembered. Not more: a user's function gets a type of its own
for every agent that is offered it, and a worker runs for weeks."""

_NAMES_FD: dict[str, Any] = {"names": "a descriptor"}
"""Marks the fields in which 3 and 3.0 mean fd:3, for the conversion."""

Fd = Annotated[
    Any,
    msgspec.Meta(
        description="A stored text such as fd:3 or ref:plan, or a part of it: fd:3#P2-4 (pages), "
        "fd:3#L10-20 (lines), fd:3#C1-99 (characters).",
        extra_json_schema={"type": "string"},
        extra=_NAMES_FD,
    ),
]
WholeFd = Annotated[
    Any,
    msgspec.Meta(
        description="A stored text such as fd:3 or ref:plan.",
        extra_json_schema={"type": "string"},
        extra=_NAMES_FD,
    ),
]
# its upper bound, MAX_INTEGER, is not shown: a schema is read by the model at every turn
Number = Annotated[int, msgspec.Meta(ge=1)]
UNSET = msgspec.UNSET

# A field that is left out is UNSET, which its schema does not show; the default that it then means is
# said by hand, because `mode="page"` beside a selector is an error and a mode left out is not.
Start = (
    Annotated[
        Number,
        msgspec.Meta(
            description="The first page, line or character; 1 is the first of all.",
            extra_json_schema={"default": 1},
        ),
    ]
    | msgspec.UnsetType
)
Count = (
    Annotated[
        Number,
        msgspec.Meta(description="How many pages, lines or characters.", extra_json_schema={"default": 1}),
    ]
    | msgspec.UnsetType
)
Units = (
    Annotated[
        Mode,
        msgspec.Meta(
            description="What start and count count.",
            extra_json_schema={"type": "string", "default": "page"},
        ),
    ]
    | msgspec.UnsetType
)


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
    """What tools work with: whose descriptors, which tools are on, and what a person allowed.

    Files are written below `export_root`, and those that a model names are read below `preload_root`; None
    if no person named such a directory. `permissions` are for what programs name.
    `itself` is the program that this process runs, so that copies of it can be made; a loop of
    somebody's own has none. `forks_may_spawn` says whether those copies may start processes too.
    `commands` are the programs that a pipeline may run, the limits after it what one may use.
    Without `wait_for_workers` nothing is started that no worker could take now.
    """

    handle: ProcessHandle
    prefix: str
    config: FDConfig
    enabled: frozenset[str]
    fds_on: bool
    export_root: Root | None
    preload_root: Root | None
    linked: dict[str, Linked]
    wake: Callable[[str], None]
    permissions: Permissions = Permissions()
    itself: Program = NO_PROGRAM
    forks_may_spawn: bool = False
    commands: tuple[str, ...] = ()
    stream_bytes: int = OUTPUT_BYTES
    stream_idle_seconds: float = IDLE_SECONDS
    wall_seconds: float = WALL_SECONDS
    wait_for_workers: bool = True

    @property
    def direct_limit(self) -> int | None:
        """The longest output (characters) that a model is shown itself; None if any, without descriptors."""
        return self.config.max_direct_output_chars if self.fds_on else None


class ToolResult(msgspec.Struct, frozen=True, tag="result", tag_field="kind"):
    """What the model is to see of a call: `content` is the text; `is_error` says that the call failed, and
    the text why. Both go into the `tool_result` block as they are.

    >>> ToolResult("12 lines")
    ToolResult(content='12 lines', is_error=False)
    """

    content: str
    is_error: bool = False


class Started(msgspec.Struct, frozen=True, tag="started", tag_field="kind"):
    """A call whose result is the end of other processes, in this order; or, once `until_s` (seconds
    since the epoch, by the clock of Redis) has come, their state then."""

    processes: tuple[str, ...]
    until_s: float | None = None


Outcome: TypeAlias = Rendered | Started
Run: TypeAlias = Callable[[Context, Any, str | None], Operation[Outcome]]


def always(_: Any) -> bool:
    return True


def never(_: Any) -> bool:
    return False


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool: its name, what it says of itself, its arguments, what it does.

    `describe` gets the context, since some descriptions name what is available. `makes` says whether
    a call with these arguments makes something (a descriptor, a process, a file): the same call a
    second time then gets the first one's result.
    """

    name: str
    arguments: type[Arguments]
    describe: Callable[[Context], str]
    run: Run
    makes: Callable[[Any], bool] = always

    def __post_init__(self) -> None:
        prepare(self.arguments)

    def definition(self, context: Context) -> dict[str, Any]:
        """The Messages-API tool dict."""
        return {
            "name": self.name,
            "description": self.describe(context),
            "input_schema": schema_of(self.arguments, context),
        }


def schema_of(arguments: type, context: Context | None = None) -> dict[str, Any]:
    """The JSON schema of a Struct, flat: the root reference inlined, titles dropped."""
    schema: dict[str, Any] = msgspec.json.decode(_schema(arguments))
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


@lru_cache(KNOWN_TYPES)
def _schema(arguments: type) -> bytes:
    """What msgspec says of a Struct, which takes it a while. As text, so that nobody can change it."""
    return msgspec.json.encode(msgspec.json.schema(arguments))


def _untitled(schema: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in schema.items() if key != "title"}


_WHOLE = re.compile(r"-?[0-9]{1,17}")


@lru_cache(KNOWN_TYPES)
def _fields(arguments: type) -> tuple[tuple[str, ...], frozenset[str], frozenset[str]]:
    """The fields, those that take a whole number, and those that name a descriptor."""
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
            # beside `str` a text of digits is a text, and beside `float` 3.0 is a float
            other = (msgspec.inspect.StrType, msgspec.inspect.FloatType)
            return any(map(_takes_whole_number, types)) and not any(isinstance(each, other) for each in types)
        case msgspec.inspect.Metadata(inner):
            return _takes_whole_number(inner)
    return False


def _names_fd(kind: msgspec.inspect.Type) -> bool:
    return isinstance(kind, msgspec.inspect.Metadata) and kind.extra == _NAMES_FD


def convert(arguments: type, none_if_unset: object) -> Any:
    """`none_if_unset` as the arguments of a tool. Raises `InvalidArgument`, naming the field."""
    if not isinstance(none_if_unset, dict):
        raise InvalidArgument("", "the arguments must be a JSON object")
    names, numbers, fds = _fields(arguments)
    unknown = [name for name in none_if_unset if name not in names]
    if unknown:
        known = ", ".join(names) or "none"
        raise InvalidArgument(quoted(unknown[0]), f"is no argument of this tool; it takes: {known}")
    loosened = {
        name: _number(name, value) if name in numbers else _whole(value) if name in fds else value
        for name, value in none_if_unset.items()
    }
    try:
        made: Any = msgspec.convert(loosened, arguments)
        _require_finite(none_if_unset)
        return made
    except msgspec.ValidationError as error:
        said, _, path = str(error).partition(" - at `$")
        name = path.strip("`.")[:_PROBLEM_CHARS]
        raise InvalidArgument(name, _problem(said, arguments, name)) from error
    except RecursionError as error:
        raise InvalidArgument("", "the arguments are nested too deep") from error
    except UnicodeEncodeError as error:
        raise InvalidArgument("", "a text holds a lone surrogate, which is not a character") from error


def _require_finite(value: object, name: str = "") -> None:
    """Raise `InvalidArgument` for a NaN or an infinity: JSON has none, and Python's reader takes them."""
    if isinstance(value, float) and not math.isfinite(value):
        raise InvalidArgument(name, "a finite number is needed")
    if isinstance(value, dict):
        for key, each in value.items():
            _require_finite(each, name or key)
    elif isinstance(value, list):
        for each in value:
            _require_finite(each, name)


def _number(name: str, value: object) -> object:
    """A number for a text or a float that is one."""
    if isinstance(value, str) and _WHOLE.fullmatch(value):
        value = int(value)
    value = _whole(value)
    if isinstance(value, int) and abs(value) > MAX_INTEGER:
        # said here and not by msgspec: Python refuses to print integers of thousands of digits
        raise InvalidArgument(name, f"the largest number taken is {MAX_INTEGER}")
    return value


def _whole(value: object) -> object:
    if isinstance(value, float) and value.is_integer() and abs(value) <= MAX_INTEGER:
        return int(value)
    return value


_PROBLEM_CHARS = 300


def _problem(said: str, arguments: type, name: str) -> str:
    """msgspec's words; where it would repeat what was given, however long, the choices instead."""
    if said.startswith("Invalid "):
        choices = schema_of(arguments)["properties"].get(name, {}).get("enum")
        return f"must be one of: {', '.join(map(str, choices))}" if choices else "is not a value it takes"
    return show_controls(said.removeprefix("Object ")[:_PROBLEM_CHARS], keep="")


def check_message(name: str, text: str) -> str:
    """A text that is said to another process. Raises `InvalidArgument` if it is blank, or cannot be
    stored."""
    if not text.strip():
        raise InvalidArgument(name, "must say what is to be done")
    return check_storable(name, text)


def check_storable(name: str, text: str) -> str:
    """A text that can be stored. Raises `InvalidArgument` for a lone surrogate."""
    try:
        encode(text)
    except InvalidArgument as error:
        raise InvalidArgument(name, error.problem) from error
    return text


def none_if_unset(value: Any) -> Any:
    """None for an argument that was left out."""
    return None if value is UNSET else value


WriteMode = Annotated[
    Literal["write", "append"],
    msgspec.Meta(
        description='"append" adds to the end of the file.',
        extra_json_schema={"type": "string"},
    ),
]
