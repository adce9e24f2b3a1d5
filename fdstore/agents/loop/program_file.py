"""The schema of a program file: one Struct, whose fields are the sections, whose fields are the keys.

This is the only list of them. `program_parser` converts a TOML file to it, `program_loader` makes of it the
record that is stored, `editor_schema` derives the schema for editors and the file that `fdstore init`
writes. So each key has its type, its bounds, its default and its description here.

Types and bounds are checked by msgspec. What they cannot express is checked in `__post_init__`, which
raises `InvalidKey`; whether a named file exists is for `program_loader` to check.
"""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
from msgspec import Meta

from fdstore.agents.loop.models.base import PromptCache
from fdstore.agents.loop.program_checks import (
    BUILT_IN_TOOLS,
    NAME,
    OWNED_PARAMETERS,
    InvalidKey,
    check_command,
    check_functions,
    check_name,
    check_parameter,
    check_path,
    check_tools,
    check_unique,
    show_key,
)
from fdstore.agents.loop.program_limits import LimitsSection, Section
from fdstore.errors import quoted
from fdstore.model.fields import about
from fdstore.model.model_servers import BaseUrl, KeyVariable, ProviderKey, server_mistake
from fdstore.model.msgspec_types import prepare
from fdstore.model.pipeline_limits import Seconds
from fdstore.model.providers import DEFAULT_PROVIDER
from fdstore.model.records import Ordinal
from fdstore.results.config import FDSection
from fdstore.results.people_config import PeopleSection
from fdstore.results.python_config import PriceSection, PythonSection
from fdstore.store.processes.asks import AskSettings
from fdstore.text.numbers import MAX_INTEGER
from fdstore.tools.catalogue import FD_TOOLS, PROCESS_TOOLS
from fdstore.tools.clearing import ClearingConfig

DEFAULT_MAX_TOKENS = 8192


class ProgramSection(Section, frozen=True, kw_only=True):
    """The name of the program."""

    name: Annotated[
        str | None,
        about(
            "The name of the program; its processes are named after it. Default: the file's name without"
            " .toml.",
            "triage",
            pattern=f"^{NAME.pattern}$",
        ),
    ] = None
    description: Annotated[
        str,
        about("What it is for, told to the models that may spawn it.", "finds the cause of a failed build"),
    ] = ""

    def __post_init__(self) -> None:
        if self.name is not None:
            check_name("name", self.name, subject=f"{quoted(self.name)} ")


class ModelSection(Section, frozen=True, kw_only=True):
    """The model that answers."""

    name: Annotated[
        str, about("The model, as its provider calls it. Required.", "claude-sonnet-5-5", minLength=1)
    ]
    provider: ProviderKey = DEFAULT_PROVIDER
    base_url: BaseUrl = None
    api_key_env: KeyVariable = None
    prompt_cache: Annotated[
        PromptCache,
        about(
            "Whether the provider keeps each request in its cache: the next one, which begins with it, costs"
            ' less. For 5 minutes, "5m", or "1h"; false for servers that refuse it.'
        ),
    ] = True
    deferred_tools: Annotated[
        bool | None,
        about(
            "Whether tools on descriptors are deferred until there is one: they cost nothing before, and the"
            " cache is kept. Default: if the server is Anthropic's own; true for another that takes them.",
            True,
        ),
    ] = None
    context_window: Annotated[
        Ordinal | None,
        about("The tokens that the model takes: clear_at_tokens is then at most 0.7 of them.", 200_000),
    ] = None
    give_up_seconds: Annotated[
        Seconds, about("How long a model that cannot be reached is asked again before the agent fails.")
    ] = AskSettings(model="").give_up_seconds
    price: Annotated[
        PriceSection | None,
        about(
            "What a million tokens of the model cost, also as [model.price]: screens then show costs."
            " Default: that of the package genai-prices, if it is installed.",
            {"input": 3.0, "output": 15.0, "cache_read": 0.3, "cache_write": 3.75, "currency": "USD"},
        ),
    ] = None

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidKey("name", "must be the name of a model, not empty")
        if mistake := server_mistake(self.base_url, self.api_key_env):
            raise InvalidKey(*mistake)


class PromptSection(Section, frozen=True, kw_only=True):
    """The beginning of the conversation. The system prompt is given here or in a file of its own, not
    both."""

    system: Annotated[str | None, about("The system prompt.", "You are a careful assistant.")] = None
    system_prompt_file: Annotated[
        str | None, about("A file with the system prompt, relative to this one.", "system.md", minLength=1)
    ] = None
    user: Annotated[
        str | None,
        about("The first message of the user, if `fdstore run` names none.", "Say what you can do."),
    ] = None

    def __post_init__(self) -> None:
        if self.system_prompt_file is not None:
            check_path("system_prompt_file", self.system_prompt_file)
            if self.system is not None:
                raise InvalidKey("system_prompt_file", "system is given too; keep one of them")


ToolOfList = Annotated[str, Meta(extra_json_schema={"enum": list(BUILT_IN_TOOLS)})]
Path = Annotated[str, Meta(extra_json_schema={"minLength": 1})]


class ToolsSection(Section, frozen=True, kw_only=True):
    """The tools that the model may call."""

    enabled: Annotated[
        tuple[ToolOfList, ...],
        about(
            f"Built-in tools: on descriptors {', '.join(sorted(FD_TOOLS))}; on processes"
            f" {', '.join(sorted(PROCESS_TOOLS))}.",
            ["read_fd", "search_fd"],
            uniqueItems=True,
        ),
    ] = ()
    python: Annotated[
        tuple[str, ...],
        about('Functions of yours, as "package.module:function".', ["my_tools:search"], uniqueItems=True),
    ] = ()
    path: Annotated[
        str | None,
        about(
            "The directory to import them from if they are not installed, relative to this file.",
            "lib",
            minLength=1,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.path is not None:
            check_path("path", self.path)
        check_unique("enabled", self.enabled)
        check_unique("python", self.python)
        check_tools(self.enabled)
        check_functions(self.python, taken=self.enabled)


class ContextSection(ClearingConfig, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The clearing of old results that can be read again."""

    def __post_init__(self) -> None:
        super().__post_init__()
        default = ClearingConfig()
        for name in ("keep_turns", "clear_to"):
            # only of files: a stored program stays what it was
            if self.clear_at_tokens == 0 and getattr(self, name) != getattr(default, name):
                problem = (
                    "has no effect with clear_at_tokens = 0, which clears nothing; leave one of them out"
                )
                raise InvalidKey(name, problem)


class PreloadSection(Section, frozen=True, kw_only=True):
    """Files that models may read."""

    files: Annotated[
        tuple[Path, ...],
        about(
            "Files that the agent has as descriptors from its first turn on, relative to this one.",
            ["notes.md"],
            uniqueItems=True,
        ),
    ] = ()
    root: Annotated[
        str | None,
        about(
            "The directory below which the model may name files, for put_fd and for the agents that it"
            " spawns, relative to this file. Default: it may name none.",
            "docs",
            minLength=1,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.root is not None:
            check_path("root", self.root)
        check_unique("files", self.files)
        for path in self.files:
            check_path("files", path)


class LinkedEntry(Section, frozen=True, kw_only=True):
    """A program that may be spawned."""

    path: Annotated[str, about("Its file, relative to this one.", minLength=1)]
    description: Annotated[
        str | None, about("What it is for, told to the model. Default: its own [program] description.")
    ] = None

    def __post_init__(self) -> None:
        check_path("path", self.path)


class ExportSection(Section, frozen=True, kw_only=True):
    """Files that the model may write."""

    root: Annotated[
        str | None,
        about(
            "The directory that fd_to_file writes below, relative to where the agent runs; on a worker, to"
            " its --export-root. Default: it writes nothing.",
            "out",
            minLength=1,
        ),
    ] = None

    def __post_init__(self) -> None:
        if self.root is not None:
            check_path("root", self.root)


class CommandsSection(Section, frozen=True, kw_only=True):
    """Programs of the system that pipelines may run."""

    allow: Annotated[
        tuple[str, ...],
        about(
            "Their names, without arguments. One that starts others (sh, env, xargs, find) allows all that"
            " its sandbox has.",
            ["grep", "sort"],
            uniqueItems=True,
        ),
    ] = ()

    def __post_init__(self) -> None:
        check_unique("allow", self.allow)
        for name in self.allow:
            check_command("allow", name)


class ProgramFile(Section, frozen=True, kw_only=True):
    """The program of an agent for `fdstore run`."""

    program: ProgramSection = ProgramSection()
    model: ModelSection
    prompt: PromptSection = PromptSection()
    parameters: Annotated[
        dict[str, Any],
        about(
            "Parameters of the Messages API that are passed as they are.",
            properties={
                "max_tokens": {
                    "description": "The most tokens that one answer may have.",
                    "type": "integer",
                    "minimum": 1,
                    "maximum": MAX_INTEGER,
                    "default": DEFAULT_MAX_TOKENS,
                }
            },
            propertyNames={"not": {"enum": list(OWNED_PARAMETERS)}},
        ),
    ] = msgspec.field(default_factory=dict)
    tools: ToolsSection = ToolsSection()
    file_descriptor: FDSection = FDSection()
    python: PythonSection = PythonSection()
    people: PeopleSection = PeopleSection()
    context: ContextSection = ContextSection()
    preload: PreloadSection = PreloadSection()
    linked_programs: Annotated[
        dict[str, str | LinkedEntry],
        about(
            "Programs that the model may spawn, each under a name: a path relative to this file,"
            " or a table of path and description. They may link back.",
            {"expert": {"path": "expert.toml", "description": "knows the law"}},
            propertyNames={"pattern": f"^{NAME.pattern}$"},
        ),
    ] = msgspec.field(default_factory=dict)
    export: ExportSection = ExportSection()
    commands: CommandsSection = CommandsSection()
    limits: LimitsSection = LimitsSection()

    def __post_init__(self) -> None:
        for key, value in self.parameters.items():
            check_parameter(key, value)
        for alias, entry in self.linked_programs.items():
            check_name(f"linked_programs.{show_key(alias)}", alias)
            if isinstance(entry, str):
                check_path(f"linked_programs.{alias}.path", entry)
        used = ", ".join(tool for tool in self.tools.enabled if tool in FD_TOOLS)
        if self.file_descriptor.enabled is False and used:
            problem = f"is false, but [tools] enabled has {used}; take them out, or leave this out"
            raise InvalidKey("file_descriptor.enabled", problem)

    @property
    def links(self) -> dict[str, LinkedEntry]:
        """[linked_programs], each as a table."""
        return {
            alias: LinkedEntry(path=entry) if isinstance(entry, str) else entry
            for alias, entry in self.linked_programs.items()
        }


prepare(ProgramFile, LinkedEntry)
