"""The definition of a tool: a typed set of arguments, a description, and an operation.

The arguments are a msgspec Struct. The schema that the model sees is generated from it, and the model's
arguments are validated against it, so the two cannot differ. Models are loose with numbers, so `"3"` and
`3.0` are accepted as 3 here (and nowhere else); unknown fields are refused by name.

A tool never blocks and never raises for a mistake of the model: the toolbox turns a typed error into an
`fd_error`. A tool that starts other processes returns `Started`; the agent loop decides how to wait. A tool
with an effect declares it (`makes`), and the result of a call is stored under the call's id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import msgspec

from fdstore.files.paths import Root
from fdstore.permissions import Permissions
from fdstore.prepared import prepare
from fdstore.render import Rendered
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import NO_PROGRAM, Program
from fdstore.text.commands import IDLE_SECONDS, OUTPUT_BYTES, WALL_SECONDS
from fdstore.tools.arguments import Arguments, schema_of
from fdstore.tools.config import FDConfig
from fdstore.wire.operation import Operation


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """A program that may be spawned: its description for the model, and what the child process needs."""

    key: str
    description: str
    digest: str
    bundle: str
    preload: tuple[str, ...] = ()


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Environment of the tools of one process: its descriptors, the enabled tools and the permissions.

    export_root       directory below which files are written; None: none was configured
    preload_root      directory below which files named by a model are read; None: none was configured
    linked            programs that may be spawned, by alias
    wake              sends a wake-up for a process id
    permissions       for functions, commands and paths that programs name
    own_program       the program of this process, for forks of it; a user's own loop has none
    forks_may_spawn   whether forks may start processes too
    commands          commands that a pipeline may run; the next three fields are its limits
    wait_for_workers  False: start nothing that no live worker can run
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
    own_program: Program = NO_PROGRAM
    forks_may_spawn: bool = False
    commands: tuple[str, ...] = ()
    stream_bytes: int = OUTPUT_BYTES
    stream_idle_seconds: float = IDLE_SECONDS
    wall_seconds: float = WALL_SECONDS
    wait_for_workers: bool = True

    @property
    def direct_limit(self) -> int | None:
        """Maximum length (characters) of output that stays inline; None (no limit) if descriptors are off."""
        return self.config.max_direct_output_chars if self.fds_on else None


class ToolResult(msgspec.Struct, frozen=True, tag="result", tag_field="kind"):
    """Result of a call for the model: `content` is the text; with `is_error` the call failed and the text
    says why. Both go into the `tool_result` block unchanged.

    >>> ToolResult("12 lines")
    ToolResult(content='12 lines', is_error=False)
    """

    content: str
    is_error: bool = False


class Started(msgspec.Struct, frozen=True, tag="started", tag_field="kind"):
    """A call whose result is the end of other processes, in this order, or their state at `until_s` (seconds
    since the epoch by Redis's clock) if that is earlier."""

    processes: tuple[str, ...]
    until_s: float | None = None


ToolOutcome: TypeAlias = Rendered | Started
Run: TypeAlias = Callable[[Context, Any, str | None], Operation[ToolOutcome]]


def always(_: Any) -> bool:
    return True


def never(_: Any) -> bool:
    return False


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool: its name, arguments, description and operation.

    `describe` receives the context, since some descriptions list what is available. `makes` returns whether a
    call with these arguments has an effect (creates a descriptor, a process, a file): a repeated call then
    returns the first one's result.
    """

    name: str
    arguments: type[Arguments]
    describe: Callable[[Context], str]
    run: Run
    makes: Callable[[Any], bool] = always

    def __post_init__(self) -> None:
        prepare(self.arguments)

    def definition(self, context: Context) -> dict[str, Any]:
        """Return the Messages API tool dict."""
        return {
            "name": self.name,
            "description": self.describe(context),
            "input_schema": schema_of(self.arguments, context),
        }
