"""Permissions of programs on this machine, beyond reading and writing texts.

A program file is code: it names Python functions, commands and directories. Programs that this user runs, or
that are in the embedded store, have all permissions. A worker on any other store runs programs written by
anyone with write access to that store: they may use only what the operator allows by the worker's options.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase

import msgspec

from fdstore.errors import FDStoreError, InvalidArgument, NotAllowed, PathRefused, quoted
from fdstore.files.paths import Root, hidden_name
from fdstore.files.source import open_below
from fdstore.model.model_servers import AllowedServer, ModelAccess


class CommandsOff(NotAllowed):
    """Commands are off on this worker."""

    says = "commands are off on this worker: {why}"

    why: str

    def __init__(self, why: str) -> None:
        FDStoreError.__init__(self, why)


class Permissions(msgspec.Struct, frozen=True, kw_only=True):
    """The permissions of programs.

    all_allowed   everything is allowed; `python` and `commands` are ignored
    python        patterns of allowed functions, "pkg.tools:*"
    commands      patterns of allowed pipeline commands
    commands_off  why no command runs, for example without a sandbox; "" if commands do
    export_root   directory below which agents write files
    preload_root  directory below which files named by programs and models are read
    models        servers of models that programs may name
    """

    all_allowed: bool = True
    python: tuple[str, ...] = ()
    commands: tuple[str, ...] = ()
    commands_off: str = ""
    export_root: str | None = None
    preload_root: str | None = None
    models: ModelAccess = ModelAccess()

    def check_python(self, functions: Iterable[str]) -> None:
        """Raise `NotAllowed` for a function that may not be imported."""
        for function in functions:
            if not self.all_allowed and not _matches(function, self.python):
                raise NotAllowed(
                    f"the Python function {quoted(function, 200)}", f"--allow-python {quoted(function, 200)}"
                )

    def check_origin(self, modules: Mapping[str, str]) -> None:
        """Raise `NotAllowed` for a function that its module only imported from another package, such as
        `os.system`, unless it is allowed under its own module or without a wildcard. `modules` maps functions
        to the modules that define them."""
        for function, defined in modules.items():
            module, _, name = function.partition(":")
            within = module.partition(".")[0] == str(defined).partition(".")[0]
            by_name = function in self.python or _matches(f"{defined}:{name}", self.python)
            if not (self.all_allowed or within or by_name):
                raise NotAllowed(
                    f"the Python function {quoted(function, 200)}, which {quoted(str(defined))} defines,",
                    f"--allow-python {quoted(function, 200)}",
                )

    def check_commands(self, commands: Iterable[str]) -> None:
        """Raise `NotAllowed` for a command that may not run, and `CommandsOff` if none can."""
        named = list(commands)
        for command in named:
            if not self.all_allowed and not _matches(command, self.commands):
                raise NotAllowed(f"the command {quoted(command)}", f"--allow-command {quoted(command)}")
        if named and self.commands_off:
            raise CommandsOff(self.commands_off)

    def resolve_export_root(self, named: str | None) -> Root | None:
        """Return the export root of an agent whose program's `[export] root` is `named`; None if none is
        configured. Raises `PathRefused` if it would lead out of the worker's root."""
        if self.export_root is None:
            return Root(os.path.abspath(named), make=True) if named and self.all_allowed else None
        if named is None:
            return Root(self.export_root, make=True)
        if self.all_allowed and os.path.isabs(named):
            return Root(named, make=True)
        names = _components(named)
        if os.path.isabs(named) or ".." in names or hidden_name(names):
            raise PathRefused(
                named,
                "the [export] root of a program lies below the worker's --export-root, so it must be "
                "relative, without '..' and hidden names",
            )
        return Root(self.export_root, names, make=True)

    def resolve_preload_root(self, named: str | None) -> Root | None:
        """Return the directory below which a model may name files. `named`, an absolute path, is the
        program's `[preload] root`. None if the model may name no files."""
        if named is None or self.all_allowed:
            return None if named is None else Root(named, kind="preload root")
        below = self._below_preload_root(named)
        return None if below is None else Root(self.preload_root or "", below, kind="preload root")

    def open_preload(self, path: str) -> int:
        """Open a regular file that a program names by an absolute path, and return its handle. Raises
        `NotAllowed`, `TargetMissing`, `PathRefused`."""
        if self.all_allowed:
            return open_below(path, None)
        below = self._below_preload_root(path)
        if not below:
            raise NotAllowed(
                f"reading the file {quoted(path, 300)} of a program",
                f"--preload-root {quoted(os.path.dirname(path), 300)}",
            )
        return open_below("/".join(below), Root(self.preload_root or "", kind="preload root"))

    def _below_preload_root(self, path: str) -> tuple[str, ...] | None:
        """Return the components from the preload root to `path`; None if it lies elsewhere. Links are not
        followed, neither here nor when the components are used."""
        names = _components(path)
        if self.preload_root is None or ".." in names or not os.path.isabs(path):
            return None
        root = _components(self.preload_root)
        return names[len(root) :] if names[: len(root)] == root else None

    @property
    def described(self) -> str:
        """The allowed commands as text, for the worker's log; "" if everything is allowed."""
        if self.all_allowed:
            return ""
        return (
            f"allowed: {', '.join(self.commands)}" if self.commands else "none is allowed (--allow-command)"
        )


def parse_permissions(
    *,
    embedded: bool,
    python: Iterable[str] = (),
    commands: Iterable[str] = (),
    export_root: str | None = None,
    preload_root: str | None = None,
    model_servers: Iterable[str] = (),
) -> Permissions:
    """Build permissions from command-line options. On the embedded store everything is allowed unless
    `python` or `commands` restrict it. Raises `InvalidArgument`."""
    python, commands = tuple(python), tuple(commands)
    for pattern in commands:
        if "/" in pattern:
            problem = f"{quoted(pattern)} is a path; programs are named alone, as 'grep' or '*'"
            raise InvalidArgument("--allow-command", problem)
    servers = tuple(map(AllowedServer.parse, model_servers))
    return Permissions(
        all_allowed=embedded and not (python or commands),
        python=python,
        commands=commands,
        export_root=None if export_root is None else os.path.abspath(export_root),
        preload_root=None if preload_root is None else os.path.abspath(preload_root),
        models=ModelAccess(all_allowed=embedded, allowed=servers),
    )


def _matches(name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def _components(path: str) -> tuple[str, ...]:
    return tuple(name for name in path.split("/") if name not in ("", "."))
