"""The environment of the tools of one process."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any, Protocol, TypeAlias

import msgspec

from fdstore.elements.build import Rendered
from fdstore.elements.stored_message import Offer, Shown, stored_message
from fdstore.files.paths import Root
from fdstore.files.permissions import Permissions
from fdstore.model.model_servers import ModelServer
from fdstore.model.people import PersonAnswer, Question
from fdstore.model.pipeline_limits import DEFAULTS, PipelineLimits
from fdstore.model.records import Descriptor, ModelPrice, ProcessRecord
from fdstore.results.config import FDConfig
from fdstore.results.coverage import ReadParts
from fdstore.results.people_config import ASK_PERSON, PeopleSection
from fdstore.results.python_config import PythonSection
from fdstore.results.token_counter import TokenCounter
from fdstore.results.tool_outcome import Started
from fdstore.results.tool_policy import NO_POLICY, ToolPolicy
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes.asks import AskSettings
from fdstore.store.processes.processes import NO_PROGRAM, StoredProgram
from fdstore.wire.operation import Operation

Progress: TypeAlias = Callable[[int, int | None], None]
UserCode: TypeAlias = Callable[[], AbstractContextManager[None]]
Watch: TypeAlias = Callable[[Callable[[], None]], AbstractContextManager[Any]]
"""Returns a context manager in whose block the function, which ends what runs, may be called."""
Function: TypeAlias = Callable[..., Operation[Any]]
"""A function of the user's for code: its arguments and the id of the call, to its `FunctionOutcome`; with
`at_most_once=True` it never runs twice under that id."""


class Passed(msgspec.Struct, frozen=True, kw_only=True):
    """What a person said to a call. `arguments` are those to run it with, unless there is an `error`: then it
    must not run. Of `ask_person` `value` is the answer. `shown` is what a person said, `note` what code is
    told of it."""

    arguments: Any = None
    value: str = ""
    error: str = ""
    shown: Rendered | None = None
    note: str = ""


Gate: TypeAlias = Callable[[str, dict[str, Any], str], Operation["Passed | Started | None"]]
"""Asks a person about a call of code, by the tool, its arguments and the id of the call; None if nobody needs
to be asked."""


class OutsideFunctions(Protocol):
    """Functions for code that something else runs, many calls at the same time, such as the tools of an MCP
    server. Their names have a dot, as `github.list_issues`."""

    @property
    def names(self) -> Sequence[str]: ...

    def begin(self, name: str, arguments: dict[str, Any], call_id: str) -> Operation[None]:
        """Begin a call. What is wrong with it is a typed error, which code gets as an exception."""

    def end(self, call_id: str) -> Operation[Any]:
        """Wait until a call is over, and return its `FunctionOutcome`."""


class FirstResult(msgspec.Struct):
    """The descriptor of a conversation's first `fd_result`, which explains how descriptors are read; None
    before it."""

    fd: str | None = None

    def is_of(self, fd: str) -> bool:
        """Return whether it is of this descriptor, which it becomes if there was none before."""
        if self.fd is None:
            self.fd = fd
        return self.fd == fd


class Linked(msgspec.Struct, frozen=True, kw_only=True):
    """A program that may be spawned: its description for the model, what the child process needs, and the
    server that it asks."""

    key: str
    description: str
    digest: str
    bundle: str
    preload: tuple[str, ...] = ()
    price: ModelPrice | None = None
    server: ModelServer = ModelServer()


class Context(msgspec.Struct, frozen=True, kw_only=True):
    """Environment of the tools of one process: its descriptors, the enabled tools and the permissions.

    export_root       directory below which files are written; None: none was configured
    preload_root      directory below which files named by a model are read; None: none was configured
    linked            programs that may be spawned, by alias
    wake              sends a wake-up for a process id
    permissions       for functions, commands and paths that programs name
    own_program       the program of this process, for forks of it; a user's own loop has none
    forks_may_spawn   whether forks may start processes too
    refused           enabled tools that this process may not call: a fork is offered what its parent is, so
                      that their requests begin with the same bytes
    commands          commands that a pipeline may run, within `pipeline_limits`
    wait_for_workers  False: start nothing that no live worker can run
    progress          called during a long call, with the bytes done and the total (None: unknown)
    meter             session under which is counted what is kept out and read back; None: nothing is counted
    policies          what becomes of the results of single tools, by name
    count_tokens      counts tokens for thresholds that are given in tokens
    read_parts        returns what the agent has read of each descriptor; None: it has no journal
    watch             ends the code of run_python when its attempt is lost, or a person wants it
    user_code         returns a context manager around each run of a user's function
    is_new_call       whether the call cannot have begun before
    offers            how the usable tools continue with a stored result; the toolbox sets them
    python            the limits of run_python
    ask               the model that code may ask, and how; None: it may ask none
    functions         the user's functions that code may call, by name; the toolbox sets them
    outside           further functions that code may call, and something else runs
    code_may_create   whether code of run_python may store texts with `create`
    first_result      what the conversation was shown first
    people            what a person decides, and how long is waited
    approve           asks a person of the user's own loop; None: questions are stored, for any person
    gate              asks about calls of code; None: nobody is asked. The toolbox sets it
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
    own_program: StoredProgram = NO_PROGRAM
    forks_may_spawn: bool = False
    refused: frozenset[str] = frozenset()
    commands: tuple[str, ...] = ()
    pipeline_limits: PipelineLimits = DEFAULTS
    wait_for_workers: bool = True
    progress: Progress | None = None
    meter: str | None = None
    policies: dict[str, ToolPolicy] = {}
    count_tokens: TokenCounter = TokenCounter()
    read_parts: Callable[[], Mapping[str, ReadParts]] | None = None
    watch: Watch = nullcontext
    user_code: UserCode = nullcontext
    is_new_call: bool = False
    offers: tuple[Offer, ...] = ()
    python: PythonSection = PythonSection()
    ask: AskSettings | None = None
    functions: Mapping[str, Function] = {}
    outside: OutsideFunctions | None = None
    code_may_create: bool = True
    first_result: FirstResult = msgspec.field(default_factory=FirstResult)
    people: PeopleSection = PeopleSection()
    approve: Callable[[Question], PersonAnswer] | None = None
    gate: Gate | None = None

    def stored_message(self, d: Descriptor, shows: Shown = "first page") -> str:
        """Return the message of an `fd_result`, which says how to continue if it is the conversation's
        first."""
        return stored_message(d, self.offers, shows=shows, is_first=self.first_result.is_of(d.fd))

    @property
    def names_for_code(self) -> tuple[str, ...]:
        """The names of the functions that code may call beside those of fdstore."""
        asking = (ASK_PERSON,) if ASK_PERSON in self.enabled else ()
        return (*self.functions, *asking, *(() if self.outside is None else self.outside.names))

    def servers_of(self, program: object) -> list[ModelServer]:
        """Return the server that a linked program asks."""
        return [self.linked[program].server] if isinstance(program, str) and program in self.linked else []

    def servers_for(self, process: ProcessRecord) -> list[ModelServer]:
        """Return the servers that a process which was started here asks, as far as they are known."""
        if process.kind == "asks":
            return [] if self.ask is None else [self.ask.server]
        started = [each for each in self.linked.values() if each.key == process.program]
        return list(dict.fromkeys(each.server for each in started))

    def policy_of(self, tool: str) -> ToolPolicy:
        """Return what becomes of the results of a tool, by its name or by a source: `Bash: make test`."""
        return self.policies.get(tool) or self.policies.get(tool.partition(": ")[0], NO_POLICY)

    @property
    def direct_limit(self) -> int | None:
        """Maximum length (characters) of output that stays inline; None (no limit) if descriptors are off."""
        return self.config.direct_chars if self.fds_on else None
