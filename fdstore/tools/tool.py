"""A tool: its arguments, its operation, and every fact about it that other parts of fdstore use.

Each file of `tools.built_in` defines one, and `tools.catalogue` finds it there. Whoever needs a fact (which
tools read, what a permission of MCP offers, what the system prompt says) asks the tools, so nothing else
lists them.

The arguments are a msgspec Struct. The schema that the model sees is generated from it, and the model's
arguments are validated against it, so the two cannot differ. Models are loose with numbers, so `"3"` and
`3.0` are accepted as 3 here (and nowhere else); unknown fields are refused by name.

A tool never blocks and never raises for a mistake of the model: the toolbox turns a typed error into an
`fd_error`. A tool that starts other processes returns `Started`; the agent loop decides how to wait. A tool
with an effect declares it (`makes`), and the result of a call is stored under the call's id.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from fdstore.elements.stored_message import Offer
from fdstore.results.context import Context
from fdstore.results.tool_outcome import ToolOutcome
from fdstore.store.tokens import Permission
from fdstore.tools.arguments import Arguments, schema_of, without_bounds
from fdstore.tools.needs import Configuration, Need
from fdstore.wire.operation import Operation

Run: TypeAlias = Callable[[Context, Any, str | None], Operation[ToolOutcome]]

Call: TypeAlias = Mapping[str, Any]
"""The arguments of a call, as a model writes them."""

Effect: TypeAlias = Literal["reads", "adds", "destroys"]
"""The most that a call changes. A part that a reading tool stores on request does not count: no host asks
about it."""

EFFECTS: tuple[Effect, ...] = get_args(Effect)


def always(_: Any) -> bool:
    return True


def never(_: Any) -> bool:
    return False


def extracts(arguments: Any) -> bool:
    """Return whether a call of a reading tool stores what it reads, instead of showing it."""
    return bool(arguments.extract_to_new_fd)


def say_nothing(_: Context) -> str:
    return ""


class Tool(msgspec.Struct, frozen=True, kw_only=True):
    """One tool and its facts.

    name         as models call it
    title        for people, a few words
    position     its place among the others, wherever several are listed
    works_on     "descriptors": enabling it turns descriptors on, without them it is not offered; "processes"
    effect       the most that a call changes
    repeatable   whether a second call with the same arguments changes nothing more; if it reads, it is
    permission   of MCP callers, which offers it to them; None: they are never offered it
    needs        what must be configured; None: nothing
    agents_only  why only agents of program files may have it; "": own loops may too
    starts       what it starts on a worker; "": nothing
    held_back    whether it may be held back until there is a descriptor, since it has no use before
    preloaded    whether hosts load it from the first turn, instead of behind their search for tools
    describe     its description. It receives the context, since some list what is available
    explain      what the system prompt says of it: of a tool on descriptors lines with examples, of one on
                 processes or with a `section` a paragraph, which the tools of a section share
    offer        how a model continues with it after an `fd_result`, as `read on with ...`
    resumes      whether a call may have to be made again after processes that it waits for have ended
    makes        whether a call with these arguments has an effect (creates a descriptor, a process, a file):
                 a repeated call then returns the first one's result

    The reference makes real calls, of a process `triage` that has fd:1, a text; fd:2, a longer one; fd:3,
    bytes; a file old.txt that it has exported; and a child, triage.1:

    failing            arguments of calls that fail, each for another reason
    failing_when_full  those that fail in a tree that has reached its limits
    shown              arguments of calls by the element that they show
    """

    name: str
    title: str
    position: int
    works_on: Literal["descriptors", "processes"]
    effect: Effect
    repeatable: bool = False
    permission: Permission | None = None
    needs: Need | None = None
    agents_only: str = ""
    starts: Literal["", "agents", "commands"] = ""
    held_back: bool = False
    preloaded: bool = False
    arguments: type[Arguments]
    describe: Callable[[Context], str]
    explain: Callable[[Context], str] = say_nothing
    offer: Offer | None = None
    section: str = ""
    run: Run
    resumes: bool = False
    makes: Callable[[Any], bool] = always
    failing: tuple[Call, ...] = ()
    failing_when_full: tuple[Call, ...] = ()
    shown: Mapping[str, tuple[Call, ...]] = {}

    @property
    def has_paragraph(self) -> bool:
        """Return whether the system prompt has a paragraph about it, instead of lines."""
        return self.works_on == "processes" or bool(self.section)

    @property
    def is_repeatable(self) -> bool:
        """Return whether a second call with the same arguments changes nothing more."""
        return self.repeatable or self.effect == "reads"

    def works_with(self, configuration: Configuration) -> bool:
        """Return whether everything that it needs is configured."""
        return self.needs is None or self.needs.is_met(configuration)

    def is_usable(self, context: Context) -> bool:
        """Return whether it can work in this context."""
        if self.works_on == "descriptors" and not context.fds_on:
            return False
        if self.agents_only and not context.own_program.name:
            return False
        return self.works_with(context)

    def definition(self, context: Context) -> dict[str, Any]:
        """Return the Messages API tool dict."""
        return {
            "name": self.name,
            "description": self.describe(context),
            "input_schema": without_bounds(schema_of(self.arguments, context)),
        }
