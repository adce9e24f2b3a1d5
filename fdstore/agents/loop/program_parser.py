"""Read one program file: TOML in, a `ProgramFile` out, or an error that names file, key and reason.

A program file is written by hand, so the answer to every mistake is what a person needs to mend it:
`agent.toml: limits.max_turns: must be an integer >= 1`. `msgspec.convert` finds the mistake; its message
is turned into ours with the document beside it, because msgspec names neither the keys of a dict nor those
that are allowed. Files that a program names, and links to other programs, are left to `program_loader`.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, get_args

import msgspec

from fdstore.agents.loop.program_checks import NAME, NAME_RULE, InvalidKey, meant, show_key
from fdstore.agents.loop.program_file import LinkedEntry, ProgramFile
from fdstore.errors import InvalidArgument, InvalidProgram, TargetMissing, quoted
from fdstore.results.tool_policy import ToolPolicy
from fdstore.tools.clearing import ClearingConfig

REQUIRED, MISSING = "model.name", "is required"
"""The one key that every program file needs, and what is said if it is not there."""

MAX_MISTAKES = 50
"""The most mistakes of one file that are reported."""

SHOWN_PATH = 400
"""The most characters of a path that a message shows."""


class ProgramSource(msgspec.Struct, frozen=True):
    """A program file as it was read: its path as it was given, and what it says.

    `fd_settings` are the keys of [file_descriptor] that have no effect while descriptors are off.
    """

    path: Path
    file: ProgramFile
    fd_settings: tuple[str, ...]


def read(path: Path, named_by: str | None = None) -> ProgramSource:
    """Read and check the program file at `path`; `named_by` is the "file: key" that links to it, if one does.

    Raises `TargetMissing` if there is no such file and nothing links to it, `InvalidProgram` for anything
    else that is wrong with it.
    """
    text = read_text(path, named_by)
    try:
        document = tomllib.loads(text)
    except RecursionError as error:
        raise InvalidProgram(str(path), "is nested too deep") from error
    except ValueError as error:  # TOMLDecodeError, and a plain one for an integer of thousands of digits
        raise InvalidProgram(str(path), f"is not TOML: {str(error)[:200]}") from error
    try:
        file = convert(document)
    except InvalidKey as error:
        raise InvalidProgram(f"{path}: {error.key}", error.problem) from error
    settings = tuple(key for key in document.get("file_descriptor", ()) if key != "enabled")
    return ProgramSource(path, file, settings)


def read_text(path: Path, named_by: str | None) -> str:
    """Return the UTF-8 text at `path`, exactly; `named_by` and errors as in `read`."""
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


def stem_name(path: Path) -> str:
    """Return the name of a program whose file gives none: the file's own, without its suffix."""
    if not NAME.fullmatch(path.stem):
        problem = f"is missing, and the file's own name {quoted(path.stem)} cannot be one: {NAME_RULE}"
        raise InvalidProgram(f"{path}: program.name", problem)
    return path.stem


def read_right_keys(path: Path) -> tuple[ProgramSource | None, list[InvalidKey]]:
    """Read a file without its wrong keys, which are left out one after the other, and return these too. The
    source is None if nothing can be read without them."""
    try:
        document = tomllib.loads(read_text(path, None))
    except (InvalidProgram, TargetMissing, ValueError, RecursionError):
        return None, []
    found: dict[str, InvalidKey] = {}
    source: ProgramSource | None = None
    while len(found) < MAX_MISTAKES:
        try:
            source = ProgramSource(path, convert(document), ())
            break
        except InvalidKey as error:
            if error.key in found:
                break
            found[error.key] = error
            if error.key == REQUIRED and error.problem == MISSING:
                document.setdefault("model", {})["name"] = "x"
            else:
                _leave_out(document, error.key)
    left_out = tuple(f"{key}." for key in found)
    return source, [each for key, each in found.items() if not key.startswith(left_out)]


def _leave_out(document: dict[str, Any], key: str) -> None:
    """Remove the value at a key as messages show it, or what it is in."""
    table, rest = document, key
    while True:
        inner = [
            name
            for name in table
            if rest == show_key(name) or rest.startswith((f"{show_key(name)}.", f"{show_key(name)}["))
        ]
        if not inner:
            return
        name = max(inner, key=len)
        rest = rest[len(show_key(name)) :].removeprefix(".")
        value = table[name]
        if not (rest and isinstance(value, dict) and any(rest.startswith(show_key(each)) for each in value)):
            del table[name]
            return
        table = value


def convert(document: dict[str, Any]) -> ProgramFile:
    """Return what a parsed TOML document says. Raises `InvalidKey` with the whole path of the key."""
    try:
        # [model] has a required key; without the section, that key is what is missing
        return msgspec.convert({"model": {}, **document}, ProgramFile)
    except msgspec.ValidationError as error:
        raise _explain(error, document, ProgramFile) from error
    except InvalidArgument as error:
        # of the sections that check themselves for Python callers, too
        if error.argument.startswith(("python.", "people.")):
            raise InvalidKey(error.argument, error.problem) from error
        section = "context" if error.argument in ClearingConfig.__struct_fields__ else "file_descriptor"
        raise InvalidKey(f"{section}.{error.argument}", error.problem) from error


_AT = " - at `$"
"""The text in msgspec's messages between the problem and the path, which ends with a backtick."""

_LINK = "linked_programs[...]"
"""The name in msgspec's paths of a value of a dict that has typed values."""

_NO_SECTION = "must be a table, written as a [section]"

_POLICY = "file_descriptor.tool[...]"

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


def _explain(error: msgspec.ValidationError, table: dict[str, Any], kind: type[msgspec.Struct]) -> InvalidKey:
    """Return what is wrong in `table`, which msgspec could not convert to a `kind`."""
    message, cause = str(error), error.__cause__
    if isinstance(cause, InvalidKey):
        path = message.removeprefix(str(cause)).removeprefix(_AT)
        return InvalidKey(_joined(_path(path), cause.key), cause.problem)
    if message.startswith("Object contains unknown field") and (unknown := _unknown_key(table, kind)):
        return unknown
    problem, _, path = message.rpartition(_AT) if _AT in message else (message, "", "")
    key = _path(path)
    if key.startswith(_LINK):
        problem = "must be a path, or a table { path, description }"
        return _wrong_value("linked_programs", table["linked_programs"], LinkedEntry, problem)
    if key.startswith(_POLICY):
        policies = table["file_descriptor"]["tool"]
        return _wrong_value("file_descriptor.tool", policies, ToolPolicy, _NO_SECTION)
    if missing := re.fullmatch(r"Object missing required field `(.+)`", problem):
        return InvalidKey(_joined(key, missing[1]), MISSING)
    if problem.startswith("Invalid enum value"):
        return InvalidKey(key, _not_one_of(key, table, kind))
    if wrong := re.fullmatch(r"Expected `([^`]+)`(?:, got `(.+)`| (.+))", problem):
        expected = " or ".join(NOUNS.get(noun, noun) for noun in wrong[1].split(" | ") if noun != "null")
        if expected == "a table" and "." not in key:
            return InvalidKey(key, _NO_SECTION)
        got = f", not {NOUNS.get(wrong[2], wrong[2])}" if wrong[2] else f" {wrong[3]}"
        return InvalidKey(key, f"must be {expected}{got}")
    return InvalidKey(key, problem)


def _path(path: str) -> str:
    """Return the key path of the "$.a.b`" that `_AT` has been cut from."""
    return path.removesuffix("`").removeprefix(".")


def _joined(section: str, key: str) -> str:
    return f"{section}.{key}" if section else key


def _unknown_key(table: dict[str, Any], kind: type[msgspec.Struct]) -> InvalidKey | None:
    """Find the first key that the Struct or a Struct in it does not have."""
    fields = {field.name: field.type for field in msgspec.structs.fields(kind)}
    for key in table:
        if key not in fields and kind is ProgramFile:
            allowed = ", ".join(f"[{name}]" for name in fields)
            problem = f"unknown section{meant(key, fields)}; the sections are: {allowed}"
            return InvalidKey(show_key(key), problem)
        if key not in fields:
            problem = f"unknown key{meant(key, fields)}; the keys are: {', '.join(fields)}"
            return InvalidKey(show_key(key), problem)
    for name, inner in fields.items():
        is_section = isinstance(inner, type) and issubclass(inner, msgspec.Struct)
        if is_section and isinstance(table.get(name), dict) and (found := _unknown_key(table[name], inner)):
            return InvalidKey(f"{name}.{found.key}", found.problem)
    return None


def _wrong_value(where: str, table: dict[str, Any], kind: type[msgspec.Struct], problem: str) -> InvalidKey:
    """Find the value in a dict that cannot be converted to `kind`; msgspec does not name it. `problem` is
    what to say if it is not a table."""
    for name, value in table.items():
        key = f"{where}.{show_key(name)}"
        if not isinstance(value, dict):
            if kind is LinkedEntry and isinstance(value, str):
                continue
            return InvalidKey(key, problem)
        try:
            msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            found = _explain(error, value, kind)
            return InvalidKey(f"{key}.{found.key}", found.problem)
    raise AssertionError("every value can be converted")


def _not_one_of(key: str, table: dict[str, Any], kind: type[msgspec.Struct]) -> str:
    """Say which values the Literal at `key`, "section.name" or "name", allows."""
    section, _, name = key.rpartition(".")
    if section:
        table = table[section]
        [kind] = [field.type for field in msgspec.structs.fields(kind) if field.name == section]
    [literal] = [field.type for field in msgspec.structs.fields(kind) if field.name == name]
    while (allowed := get_args(literal)) and not isinstance(allowed[0], str):
        literal = allowed[0]  # Annotated
    choices = " or ".join(f'"{value}"' for value in allowed)
    similar = meant(table[name], allowed)
    return f"{quoted(table[name])} is not known{similar}; it must be {choices}"
