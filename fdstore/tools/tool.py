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

from fdstore.msgspec_types import prepare
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.tools.arguments import Arguments, schema_of
from fdstore.wire.operation import Operation

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
