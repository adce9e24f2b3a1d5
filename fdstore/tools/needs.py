"""Configuration that some tools need: a directory to write below, programs, commands."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Protocol

import msgspec

from fdstore.setup.optional_packages import how_to_install, is_installed


class Configuration(Protocol):
    """The configuration that a `Need` looks at: the context of the tools, or a program before it runs."""

    @property
    def export_root(self) -> object: ...
    @property
    def linked(self) -> Mapping[str, object]: ...
    @property
    def commands(self) -> Sequence[str]: ...


class Need(msgspec.Struct, frozen=True, kw_only=True):
    """Configuration that a tool needs; without it the tool is not offered.

    is_met     whether it is configured
    argument   of `Toolset`, which refuses a tool that lacks it, and `remedy`, the end of that error
    warning    the end of the warning about a program file that lacks it
    """

    is_met: Callable[[Configuration], bool]
    argument: str
    remedy: str
    warning: str


EXPORT_ROOT = Need(
    is_met=lambda configuration: configuration.export_root is not None,
    argument="export_root",
    remedy='name the directory that it may write below, as "out"',
    warning="it needs a directory to write below: set [export] root, or start the workers with --export-root",
)
LINKED_PROGRAMS = Need(
    is_met=lambda configuration: bool(configuration.linked),
    argument="programs",
    remedy="name the programs that it may start",
    warning="[linked_programs] names no program to spawn",
)
PYTHON = Need(
    is_met=lambda _: is_installed("pydantic_monty"),
    argument="enabled",
    remedy=f"its interpreter is needed: {how_to_install('python')}",
    warning=f"its interpreter is not installed here: {how_to_install('python')}",
)
SQL = Need(
    is_met=lambda _: is_installed("duckdb"),
    argument="enabled",
    remedy=f"DuckDB is needed: {how_to_install('sql')}",
    warning=f"DuckDB is not installed here: {how_to_install('sql')}",
)
COMMANDS = Need(
    is_met=lambda configuration: bool(configuration.commands),
    argument="commands",
    remedy="name the programs that it may run",
    warning="[commands] allow names no command to run",
)
