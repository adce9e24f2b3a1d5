"""The sections of a program file, each a frozen Struct that checks its own values.

Names and defaults are those of the file; `program_file` reads them from TOML and tells a mistake
with file and key, `program` keeps what they say. A wrong value raises `InvalidArgument` with the
key inside the section; types and bounds are msgspec's to check when it converts.
"""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from typing import Annotated

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.prepared import prepare
from fdstore.text.numbers import MAX_INTEGER
from fdstore.tools.config import FD_TOOLS, PROCESS_TOOLS

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")
"""What a program and an alias may be called; a process is named after its program."""

NAME_RULE = "a name is 1-48 of a-z, 0-9, _ and -, and begins with a letter or a digit"

Size = Annotated[int, msgspec.Meta(ge=1, le=MAX_INTEGER)]
# bounded where clocks and waits still work: a lock refuses a time-out of more than 292 years
Seconds = Annotated[float, msgspec.Meta(ge=1, le=1e9)]
Days = Annotated[float, msgspec.Meta(ge=0, le=1e6)]


class ProgramSection(msgspec.Struct, frozen=True, kw_only=True):
    """[program]: `name` defaults to the file's stem."""

    name: str | None = None
    description: str = ""

    def __post_init__(self) -> None:
        if self.name is not None and not NAME.fullmatch(self.name):
            raise InvalidArgument("name", f"{quoted(self.name)} is not a name; {NAME_RULE}")


class ModelSection(msgspec.Struct, frozen=True, kw_only=True):
    """[model]: who answers, and how long it may give no answer before the agent fails."""

    name: str
    provider: str = "anthropic"
    give_up_seconds: Seconds = 600.0

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidArgument("name", "must be the name of a model, not empty")
        if self.provider != "anthropic":
            raise InvalidArgument("provider", f'{quoted(self.provider)} is not known; it must be "anthropic"')


class PromptSection(msgspec.Struct, frozen=True, kw_only=True):
    """[prompt]: the system prompt, here or in a file of its own, and the first user message."""

    system: str | None = None
    system_prompt_file: str | None = None
    user: str | None = None

    def __post_init__(self) -> None:
        if self.system_prompt_file is not None:
            check_path("system_prompt_file", self.system_prompt_file)
            if self.system is not None:
                raise InvalidArgument("system_prompt_file", "system is given too; keep one of them")


class ToolsSection(msgspec.Struct, frozen=True, kw_only=True):
    """[tools]: built-in tools by name, the user's own as "package.module:function", and the directory that
    these are imported from if they are not installed."""

    enabled: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    path: str | None = None

    def __post_init__(self) -> None:
        if self.path is not None:
            check_path("path", self.path)
        _check_unique("enabled", self.enabled)
        _check_unique("python", self.python)
        known = FD_TOOLS | PROCESS_TOOLS
        for tool in self.enabled:
            if tool not in known:
                allowed = ", ".join(sorted(known))
                raise InvalidArgument("enabled", f"there is no tool {quoted(tool)}; the tools are: {allowed}")
        taken = set(self.enabled)
        for path in self.python:
            module, _, function = path.partition(":")
            if not all(map(_is_identifier, (*module.split("."), function))):
                problem = f'{quoted(path)} is not of the form "package.module:function"'
                raise InvalidArgument("python", problem)
            if function in taken:
                raise InvalidArgument("python", f"two tools are named {quoted(function)}; rename one")
            taken.add(function)


class PreloadSection(msgspec.Struct, frozen=True, kw_only=True):
    """[preload]: files the agent holds from its first turn on, and the directory below which its model may
    name others for the agents that it spawns."""

    files: tuple[str, ...] = ()
    root: str | None = None

    def __post_init__(self) -> None:
        if self.root is not None:
            check_path("root", self.root)
        _check_unique("files", self.files)
        for path in self.files:
            check_path("files", path)


class LinkedEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One of [linked_programs]; without a description, the linked program's own is used."""

    path: str
    description: str | None = None

    def __post_init__(self) -> None:
        check_path("path", self.path)


class ExportSection(msgspec.Struct, frozen=True, kw_only=True):
    """[export]: where `fd_to_file` may write, relative to where the agent's process runs; on a worker, to its
    --export-root."""

    root: str | None = None

    def __post_init__(self) -> None:
        if self.root is not None:
            check_path("root", self.root)


class CommandsSection(msgspec.Struct, frozen=True, kw_only=True):
    """[commands]: the programs that stages of a pipeline may run. One that starts others (a shell, env,
    xargs, find) stands for all that its sandbox has."""

    allow: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _check_unique("allow", self.allow)
        for name in self.allow:
            if not name.isprintable() or name.split() != [name]:
                problem = f"{quoted(name)} is not the name of a program; name it alone, without arguments"
                raise InvalidArgument("allow", problem)


class Limits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one process of a program may use; None is no limit.

    `token_budget` counts tokens in and out, `stream_bytes` what one stream may store, and
    `stream_idle_seconds` how long a stream may stay silent.
    """

    max_turns: Size = 50
    wall_seconds: Seconds = 3600.0
    token_budget: Size | None = None
    max_losses: Size = 3
    forks_may_spawn: bool = False
    stream_bytes: Size = 1 << 30
    stream_idle_seconds: Seconds = 600.0


def _check_unique(key: str, values: Sequence[str]) -> None:
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise InvalidArgument(key, f"{quoted(value)} is listed twice")
        seen.add(value)


def check_path(key: str, path: str) -> None:
    """Refuse what the system would refuse without saying why; `key` is what names the path."""
    if not path or "\0" in path:
        raise InvalidArgument(key, "must be a path, not empty and without NUL")


def _is_identifier(word: str) -> bool:
    return word.isidentifier() and not keyword.iskeyword(word)


prepare(
    ProgramSection,
    ModelSection,
    PromptSection,
    ToolsSection,
    PreloadSection,
    LinkedEntry,
    ExportSection,
    CommandsSection,
    Limits,
    Size,
    Days,
)
