"""An agent's program, and the bundle of all programs that its tree may need.

`load` reads a root file and whatever it links to, through cycles, and resolves every path and
prompt file, so that a `Bundle` stands on its own: stored as JSON with the root process, it is all
that a worker on another machine needs to run any process of the tree.

    agent.toml --expert--> expert.toml        Bundle  root "agent"
        ^                       |                     programs  "agent"  linked {expert: "expert"}
        +---------boss----------+                               "expert" linked {boss: "agent"}

Links are kept as keys into the bundle, never as objects: that is what lets a cycle be JSON.
"""

from __future__ import annotations

import hashlib
import os
from collections import deque
from pathlib import Path
from typing import Any, Literal

import msgspec

from fdstore.agent import program_file
from fdstore.agent.program_file import ProgramFile
from fdstore.agent.program_sections import Limits, check_path
from fdstore.errors import InvalidProgram, NewerFormat, quoted
from fdstore.prepared import prepare
from fdstore.records import TreeLimits
from fdstore.tools.config import FD_TOOLS, FDConfig, has_descriptors

__all__ = ["Bundle", "Limits", "LinkedProgram", "Program", "load"]

MAX_NAME = 48

_NEWER = ("Object contains unknown field", "Invalid enum value")
"""How msgspec begins what it says of a program that says more than this version knows."""


class LinkedProgram(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A program that may be spawned: its key in the bundle, and what the model is told of it."""

    key: str
    description: str = ""


class Program(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one agent is: everything its file says, with nothing left to look up.

    `name` is its key in the bundle. `system` and `user` are texts, `tools` built-in tools in the
    order of the file, `python` functions as "package.module:function", `preload` absolute paths of files,
    `preload_root` that of the directory below which the model may name others, `tools_path` that of the
    directory that `python` is imported from if it is not installed (both count on the author's machine),
    `linked` maps an alias to what it stands for, `export_root` is None or a path relative to where
    the agent's process runs, `commands` what pipelines may run. `tree_limits` count in the root only.
    """

    name: str
    model: str
    provider: Literal["anthropic"] = "anthropic"
    give_up_seconds: float = 600.0
    description: str = ""
    system: str = ""
    user: str | None = None
    parameters: dict[str, Any] = msgspec.field(
        default_factory=lambda: {"max_tokens": program_file.DEFAULT_MAX_TOKENS}
    )
    tools: tuple[str, ...] = ()
    python: tuple[str, ...] = ()
    file_descriptor: FDConfig = FDConfig()
    preload: tuple[str, ...] = ()
    preload_root: str | None = None
    tools_path: str | None = None
    linked: dict[str, LinkedProgram] = {}
    export_root: str | None = None
    commands: tuple[str, ...] = ()
    limits: Limits = Limits()
    tree_limits: TreeLimits = TreeLimits()

    @property
    def fds_on(self) -> bool:
        """Whether this agent has descriptors: asked for, or implied by a tool that works on them."""
        return has_descriptors(self.file_descriptor, self.tools)


class Bundle(msgspec.Struct, frozen=True, kw_only=True):
    """A root program and all that it can reach, by name.

    `warnings` are for the person who runs it: they are neither stored nor part of the digest.
    """

    root: str
    programs: dict[str, Program]
    warnings: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.root not in self.programs:
            raise InvalidProgram("bundle: root", f"there is no program {quoted(self.root)} in it")
        for name, program in self.programs.items():
            for alias, linked in program.linked.items():
                if linked.key not in self.programs:
                    where = f"bundle: programs.{name}.linked.{alias}"
                    raise InvalidProgram(where, f"there is no program {quoted(linked.key)} in it")

    def to_json(self) -> str:
        """This bundle as one JSON document; `from_json` gives an equal one, order included."""
        return msgspec.json.encode({"root": self.root, "programs": self.programs}).decode()

    @classmethod
    def from_json(cls, text: str | bytes) -> Bundle:
        """The bundle that `to_json` wrote. Raises `NewerFormat` for that of a newer version, with keys or
        choices that this one does not know, `InvalidProgram` for anything else."""
        try:
            return msgspec.json.decode(text, type=cls)
        except msgspec.ValidationError as error:
            if str(error).startswith(_NEWER):
                raise NewerFormat("the program", str(error)) from error
            raise InvalidProgram("bundle", f"is not a stored bundle: {error}") from error
        except (msgspec.DecodeError, RecursionError, UnicodeError) as error:
            raise InvalidProgram("bundle", f"is not a stored bundle: {error}") from error

    def exporting_below(self, directory: str) -> Bundle:
        """This bundle with every relative `export_root` below `directory`, for a store whose processes all
        run on this machine: they write below one directory then, wherever their worker was started."""
        programs = {
            name: program
            if program.export_root is None
            else msgspec.structs.replace(program, export_root=os.path.join(directory, program.export_root))
            for name, program in self.programs.items()
        }
        return msgspec.structs.replace(self, programs=programs)

    def digest(self) -> str:
        """8 hex digits that change when a program changes, and not with the order of its keys."""
        # through JSON first: 7 and 7.0 days are equal limits, but only decoding writes them alike
        stored = Bundle.from_json(self.to_json())
        canonical = msgspec.json.encode({"root": stored.root, "programs": stored.programs}, order="sorted")
        return hashlib.sha256(canonical).hexdigest()[:8]


def load(path: str | Path) -> Bundle:
    """The bundle of the program file at `path` and of all files linked from it, each read once.

    Paths in a file are relative to that file. Raises `TargetMissing` if `path` does not exist,
    and `InvalidProgram` with "file: key" for anything wrong in any of the files.
    """
    check_path("path", str(path))
    files: dict[str, ProgramFile] = {}  # by real path, in the order found: the root is the first
    unread: deque[tuple[Path, str | None]] = deque([(Path(path), None)])
    while unread:
        place, named_by = unread.popleft()
        identity = os.path.realpath(place)
        if identity not in files:
            files[identity] = file = program_file.read(place, named_by)
            for alias in file.linked_programs:
                unread.append((_linked_path(file, alias), f"{place}: linked_programs.{alias}"))

    keys = _unique_names(files)
    programs: dict[str, Program] = {}
    warnings: list[str] = []
    for identity, file in files.items():
        linked = {}
        for alias, entry in file.linked_programs.items():
            target = os.path.realpath(_linked_path(file, alias))
            description = files[target].description if entry.description is None else entry.description
            linked[alias] = LinkedProgram(key=keys[target], description=description)
        program = _program(file, keys[identity], linked)
        programs[program.name] = program
        warnings.extend(f"{file.path}: {warning}" for warning in _warnings(file, program))
    return Bundle(root=next(iter(programs)), programs=programs, warnings=tuple(warnings))


def _linked_path(file: ProgramFile, alias: str) -> Path:
    return file.path.parent / file.linked_programs[alias].path


def _unique_names(files: dict[str, ProgramFile]) -> dict[str, str]:
    """A key for each file: its program's name, with -2, -3, ... where other files have it too."""
    keys: dict[str, str] = {}
    for identity, file in files.items():
        key, number = file.name, 1
        while key in keys.values():
            number += 1
            suffix = f"-{number}"
            key = file.name[: MAX_NAME - len(suffix)] + suffix
        keys[identity] = key
    return keys


def _program(file: ProgramFile, key: str, linked: dict[str, LinkedProgram]) -> Program:
    tools = file.tools.enabled
    if file.file_descriptor.enabled and FD_TOOLS.isdisjoint(tools):
        tools = (*tools, "read_fd")  # descriptors that the model cannot read would be a dead end
    return Program(
        name=key,
        model=file.model.name,
        give_up_seconds=file.model.give_up_seconds,
        description=file.description,
        system=file.system,
        user=file.user,
        parameters=file.parameters,
        tools=tools,
        python=file.tools.python,
        file_descriptor=file.file_descriptor,
        preload=tuple(map(str, file.preload)),
        preload_root=None if file.preload_root is None else str(file.preload_root),
        tools_path=None if file.tools_path is None else str(file.tools_path),
        linked=linked,
        export_root=file.export.root,
        commands=file.commands.allow,
        limits=file.limits,
        tree_limits=file.tree_limits,
    )


def _warnings(file: ProgramFile, program: Program) -> list[str]:
    """What is allowed, but cannot be what the author wanted."""
    warnings = []
    if file.fd_settings and not program.fds_on:
        names = ", ".join(file.fd_settings)
        off = "descriptors are off; use enabled = true or enable an FD tool"
        warnings.append(f"[file_descriptor] sets {names}, but {off}")
    if "fd_to_file" in program.tools and program.export_root is None:
        unnamed = "[export] root names no directory to write below: there is no such tool"
        warnings.append(f"[tools] enables fd_to_file, but {unnamed}, except on workers with --export-root")
    if "spawn" in program.tools and not program.linked:
        warnings.append("[tools] enables spawn, but [linked_programs] names no program to spawn")
    if "pipe" in program.tools and not program.commands:
        warnings.append("[tools] enables pipe, but [commands] allow names no command to run")
    return warnings


prepare(Bundle)
