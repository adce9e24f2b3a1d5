"""One program file: TOML in, checked sections out.

A program file is written by hand, so every mistake in it is answered with the file, the key
and what is allowed: `agent.toml: limits.max_turns: must be an integer >= 1`. What a section
alone can get wrong is checked by its Struct in `program_sections`; keys, files and the rules
between sections are checked here. Following links to other files is left to `program`.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from fdstore.agent.program_sections import (
    NAME,
    NAME_RULE,
    CommandsSection,
    Days,
    ExportSection,
    Limits,
    LinkedEntry,
    ModelSection,
    PreloadSection,
    ProgramSection,
    PromptSection,
    Size,
    ToolsSection,
)
from fdstore.errors import InvalidArgument, InvalidProgram, TargetMissing, quoted
from fdstore.records import TreeLimits
from fdstore.text.numbers import MAX_INTEGER
from fdstore.tools.config import FD_TOOLS, FDConfig

DEFAULT_MAX_TOKENS = 8192
MAX_PARAMETER_DEPTH = 32
SHOWN_PATH = 400
"""How much of a path a message shows: the end of a long one is what tells."""

OWNED_PARAMETERS: Mapping[str, str] = {
    "model": "use [model] name",
    "messages": "the conversation begins with [prompt] user",
    "system": "use [prompt] system",
    "tools": "use [tools] enabled and python",
    "stream": "answers are always streamed",
}
"""Parameters of the Messages API that the loop sets itself, and what to write instead."""

SectionT = TypeVar("SectionT", bound=msgspec.Struct)


class ProgramFile(msgspec.Struct, frozen=True, kw_only=True):
    """A program file as read: `path` as it was given, `system` the text of the system prompt.

    `fd_settings` are the keys of [file_descriptor] that do nothing while descriptors are off.
    """

    path: Path
    name: str
    description: str
    model: ModelSection
    system: str
    user: str | None
    parameters: dict[str, Any]
    tools: ToolsSection
    file_descriptor: FDConfig
    fd_settings: tuple[str, ...]
    preload: tuple[Path, ...]
    preload_root: Path | None
    tools_path: Path | None
    linked_programs: dict[str, LinkedEntry]
    export: ExportSection
    commands: CommandsSection
    limits: Limits
    tree_limits: TreeLimits


SECTIONS = (
    "program",
    "model",
    "prompt",
    "parameters",
    "tools",
    "file_descriptor",
    "preload",
    "linked_programs",
    "export",
    "commands",
    "limits",
)


def read(path: Path, named_by: str | None = None) -> ProgramFile:
    """The program file at `path`; `named_by` is the "file: key" that links to it, if one does.

    Raises `TargetMissing` if there is no such file and nothing links to it, `InvalidProgram` for
    whatever else is wrong with it or with the files it names.
    """
    document = _parse(path, _read_text(path, named_by))
    for name in document:
        if name not in SECTIONS:
            allowed = ", ".join(f"[{known}]" for known in SECTIONS)
            raise InvalidProgram(f"{path}: {_shown(name)}", f"unknown section; the sections are: {allowed}")
    tables = {name: _table(document.get(name, {}), f"{path}: {name}") for name in SECTIONS}

    def section(name: str, kind: type[SectionT]) -> SectionT:
        return _section(tables[name], kind, f"{path}: {name}")

    program = section("program", ProgramSection)
    prompt = section("prompt", PromptSection)
    preload = section("preload", PreloadSection)
    tools = section("tools", ToolsSection)
    limits, tree_limits = _limits(tables["limits"], f"{path}: limits")
    file = ProgramFile(
        path=path,
        name=program.name if program.name is not None else _stem_name(path),
        description=program.description,
        model=section("model", ModelSection),
        system=_system(prompt, path),
        user=prompt.user,
        parameters=_parameters(tables["parameters"], f"{path}: parameters"),
        tools=tools,
        file_descriptor=section("file_descriptor", FDConfig),
        fd_settings=tuple(key for key in tables["file_descriptor"] if key != "enabled"),
        preload=tuple(_preloaded(path, name) for name in preload.files),
        preload_root=_directory(path, "preload.root", preload.root),
        tools_path=_directory(path, "tools.path", tools.path),
        linked_programs=_linked(tables["linked_programs"], f"{path}: linked_programs"),
        export=section("export", ExportSection),
        commands=section("commands", CommandsSection),
        limits=limits,
        tree_limits=tree_limits,
    )
    used = ", ".join(tool for tool in file.tools.enabled if tool in FD_TOOLS)
    if file.file_descriptor.enabled is False and used:
        problem = f"is false, but [tools] enabled has {used}; take them out, or leave this out"
        raise InvalidProgram(f"{path}: file_descriptor.enabled", problem)
    return file


def _read_text(path: Path, named_by: str | None) -> str:
    """The UTF-8 text at `path`, exactly; `named_by` as in `read`."""
    where = str(path) if named_by is None else named_by
    subject = "" if named_by is None else f"{quoted(str(path), SHOWN_PATH)} "
    try:
        return path.read_bytes().decode("utf-8")
    except FileNotFoundError as error:
        if named_by is None:
            raise TargetMissing(where, "give the path of a program file (TOML)") from error
        raise InvalidProgram(where, f"{subject}does not exist") from error
    except IsADirectoryError as error:
        raise InvalidProgram(where, f"{subject}is a directory; name a file") from error
    except OSError as error:
        raise InvalidProgram(where, f"{subject}cannot be read: {error.strerror}") from error
    except UnicodeDecodeError as error:
        raise InvalidProgram(where, f"{subject}is not UTF-8: see byte {error.start + 1}") from error


def _parse(path: Path, text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except RecursionError as error:
        raise InvalidProgram(str(path), "is nested too deep") from error
    except ValueError as error:  # TOMLDecodeError, and a plain one for an integer of thousands of digits
        raise InvalidProgram(str(path), f"is not TOML: {str(error)[:200]}") from error


def _table(value: object, where: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise InvalidProgram(where, "must be a table, written as a [section]")
    return value


def _section(table: dict[str, Any], kind: type[SectionT], where: str) -> SectionT:
    _check_keys(table, kind.__struct_fields__, where)
    section: SectionT = _convert(table, kind, where)
    return section


def _check_keys(table: Mapping[str, Any], allowed: Sequence[str], where: str) -> None:
    for key in table:
        if key not in allowed:
            raise InvalidProgram(f"{where}.{_shown(key)}", f"unknown key; the keys are: {', '.join(allowed)}")


def _convert(value: object, kind: Any, where: str) -> Any:
    """`value` as a `kind`; the library's complaint and the section's own both become ours."""
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        key, problem = _explain(str(error))
        raise InvalidProgram(where + key, problem) from error
    except InvalidArgument as error:
        raise InvalidProgram(f"{where}.{error.argument}", error.problem) from error


NOUNS: Mapping[str, str] = {
    "int": "an integer",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "a list",
    "object": "a table",
    "date": "a date",
    "time": "a time",
    "datetime": "a date and time",
}


def _explain(message: str) -> tuple[str, str]:
    """The key path and the problem of msgspec's "Expected `int`, got `str` - at `$.a.b`".

    >>> _explain("Expected `int | null`, got `str` - at `$.token_budget`")
    ('.token_budget', 'must be an integer, not a string')
    """
    problem, _, path = message.partition(" - at `$")
    key = path.removesuffix("`")
    if missing := re.fullmatch(r"Object missing required field `(.+)`", problem):
        return f"{key}.{missing[1]}", "is required"
    if wrong := re.fullmatch(r"Expected `([^`]+)`(?:, got `(.+)`| (.+))", problem):
        wanted = " or ".join(NOUNS.get(kind, kind) for kind in wrong[1].split(" | ") if kind != "null")
        got = f", not {NOUNS.get(wrong[2], wrong[2])}" if wrong[2] else f" {wrong[3]}"
        return key, f"must be {wanted}{got}"
    return key, problem


def _stem_name(path: Path) -> str:
    if not NAME.fullmatch(path.stem):
        problem = f"is missing, and the file's own name {quoted(path.stem)} cannot be one: {NAME_RULE}"
        raise InvalidProgram(f"{path}: program.name", problem)
    return path.stem


def _system(prompt: PromptSection, path: Path) -> str:
    if prompt.system_prompt_file is None:
        return prompt.system or ""
    return _read_text(path.parent / prompt.system_prompt_file, f"{path}: prompt.system_prompt_file")


def _preloaded(path: Path, name: str) -> Path:
    """Where a preload file is. It is read when the agent starts; a missing one is told now."""
    file = (path.parent / name).absolute()
    problem = ""
    if os.path.isdir(file):
        problem = "is a directory; name a file"
    elif not os.path.exists(file):
        problem = "does not exist"
    elif not os.path.isfile(file):
        problem = "is not a regular file"
    elif os.fsencode(file).decode("utf-8", "replace") != str(file):
        problem = "has a path that is not UTF-8 and cannot be stored; rename it"
    if problem:
        raise InvalidProgram(f"{path}: preload.files", f"{quoted(str(file), SHOWN_PATH)} {problem}")
    return file


def _directory(path: Path, key: str, name: str | None) -> Path | None:
    """A directory that the file names, relative to itself."""
    if name is None:
        return None
    directory = Path(os.path.abspath(path.parent / name))
    if not directory.is_dir():
        problem = f"{quoted(str(directory), SHOWN_PATH)} is not a directory"
        raise InvalidProgram(f"{path}: {key}", problem)
    return directory


def _parameters(table: dict[str, Any], where: str) -> dict[str, Any]:
    max_tokens = _convert(table.get("max_tokens", DEFAULT_MAX_TOKENS), Size, f"{where}.max_tokens")
    for key, value in table.items():
        if key in OWNED_PARAMETERS:
            raise InvalidProgram(f"{where}.{key}", f"is set by the agent itself; {OWNED_PARAMETERS[key]}")
        if not _is_json(value, MAX_PARAMETER_DEPTH):
            problem = (
                "must be made of strings, integers up to 2**53, finite numbers, booleans, lists and tables"
            )
            raise InvalidProgram(f"{where}.{_shown(key)}", f"{problem}, at most {MAX_PARAMETER_DEPTH} deep")
    return {**table, "max_tokens": max_tokens}


def _is_json(value: object, depth: int) -> bool:
    match value:
        case str() | bool():
            return True
        case int():
            return abs(value) <= MAX_INTEGER
        case float():
            return math.isfinite(value)
        case list():
            return depth > 0 and all(_is_json(item, depth - 1) for item in value)
        case dict():
            return depth > 0 and all(_is_json(item, depth - 1) for item in value.values())
        case _:  # TOML's dates and times
            return False


def _linked(table: dict[str, Any], where: str) -> dict[str, LinkedEntry]:
    linked: dict[str, LinkedEntry] = {}
    for alias, entry in table.items():
        here = f"{where}.{_shown(alias)}"
        if not NAME.fullmatch(alias):
            raise InvalidProgram(here, f"is not a name; {NAME_RULE}")
        if not isinstance(entry, str | dict):
            raise InvalidProgram(here, "must be a path, or a table { path, description }")
        linked[alias] = _section({"path": entry} if isinstance(entry, str) else entry, LinkedEntry, here)
    return linked


def _limits(table: dict[str, Any], where: str) -> tuple[Limits, TreeLimits]:
    """[limits] holds those of a process and those of a tree side by side."""
    of_tree = TreeLimits.__struct_fields__
    _check_keys(table, (*Limits.__struct_fields__, *of_tree), where)
    limits: Limits = _convert({key: v for key, v in table.items() if key not in of_tree}, Limits, where)
    given = {key: value for key, value in table.items() if key in of_tree}
    for key, value in given.items():
        given[key] = _convert(value, Days if key == "retention_days" else Size, f"{where}.{key}")
    return limits, TreeLimits(**given)


def _shown(key: str) -> str:
    """A key of the file for a message: bare if it could be written so, else quoted."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", key) else quoted(key)
