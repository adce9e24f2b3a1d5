"""Rules for the values of a program file that types and bounds cannot express.

Each function refuses a wrong value with `InvalidKey`; the sections in `program_file` call them when they
are made.
"""

from __future__ import annotations

import keyword
import math
import re
from collections.abc import Iterable, Mapping, Sequence

from fdstore.errors import quoted
from fdstore.text.commands import name_problem
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.similar_names import similar_names
from fdstore.tools.catalogue import BUILT_IN

BUILT_IN_TOOLS = tuple(sorted(BUILT_IN))

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")
"""The form of the name of a program and of an alias; a process is named after its program."""

NAME_RULE = "a name is 1-48 of a-z, 0-9, _ and -, and begins with a letter or a digit"
PATH_RULE = "must be a path, not empty and without NUL"

MAX_PARAMETER_DEPTH = 32

OWNED_PARAMETERS: Mapping[str, str] = {
    "model": "use [model] name",
    "messages": "the conversation begins with [prompt] user",
    "system": "use [prompt] system",
    "tools": "use [tools] enabled and python",
    "stream": "answers are always streamed",
    "cache_control": "use [model] prompt_cache",
}
"""Parameters of the Messages API that the agent loop sets itself, and the key to use instead."""


class InvalidKey(ValueError):
    """A value that is refused in `__post_init__`. `key` is relative to the section.

    A ValueError, because msgspec adds the path of the section to those alone.
    """

    def __init__(self, key: str, problem: str) -> None:
        super().__init__(key, problem)
        self.key, self.problem = key, problem


def is_path(path: str) -> bool:
    """Return whether the system would take `path` as one; it refuses others without saying why."""
    return bool(path) and "\0" not in path


def show_key(key: str) -> str:
    """Return a key of the file for a message: bare if it may be written so, else quoted."""
    return key if re.fullmatch(r"[A-Za-z0-9_-]{1,60}", key) else quoted(key)


def meant(word: object, known: Iterable[str]) -> str:
    """Return the question whether a similar word was meant, if there is one.

    >>> meant("max_turn", ["max_turns", "max_depth"]), meant("x", ["max_turns"])
    (' (did you mean max_turns?)', '')
    """
    close = similar_names(word, known, 1) if isinstance(word, str) else []
    return f" (did you mean {close[0]}?)" if close else ""


def check_path(key: str, path: str) -> None:
    """Refuse what `is_path` refuses."""
    if not is_path(path):
        raise InvalidKey(key, PATH_RULE)


def check_name(key: str, name: str, subject: str = "") -> None:
    """Refuse what is not a name of a program; `subject` begins the message."""
    if not NAME.fullmatch(name):
        raise InvalidKey(key, f"{subject}is not a name; {NAME_RULE}")


def check_unique(key: str, values: Sequence[str]) -> None:
    """Refuse a list that has a value twice."""
    seen: set[str] = set()
    for value in values:
        if value in seen:
            raise InvalidKey(key, f"{quoted(value)} is listed twice")
        seen.add(value)


def check_tools(tools: Sequence[str]) -> None:
    """Refuse a name that is not that of a built-in tool."""
    for tool in tools:
        if tool not in BUILT_IN_TOOLS:
            allowed = ", ".join(BUILT_IN_TOOLS)
            similar = meant(tool, BUILT_IN_TOOLS)
            raise InvalidKey("enabled", f"there is no tool {quoted(tool)}{similar}; the tools are: {allowed}")


def check_functions(paths: Sequence[str], *, taken: Sequence[str]) -> None:
    """Refuse what is not "package.module:function", and a function with the name of another tool."""
    names = set(taken)
    for path in paths:
        module, _, function = path.partition(":")
        if not all(map(_is_identifier, (*module.split("."), function))):
            raise InvalidKey("python", f'{quoted(path)} is not of the form "package.module:function"')
        if function in names:
            raise InvalidKey("python", f"two tools are named {quoted(function)}; rename one")
        names.add(function)


def check_command(key: str, name: str) -> None:
    """Refuse a command line, and what cannot be the name of a program."""
    if problem := name_problem(name):
        raise InvalidKey(key, f"{quoted(name)} {problem}")


def check_parameter(key: str, value: object) -> None:
    """Refuse a parameter of [parameters] that the agent sets itself, or that JSON cannot carry."""
    where = f"parameters.{show_key(key)}"
    if key in OWNED_PARAMETERS:
        raise InvalidKey(where, f"is set by the agent itself; {OWNED_PARAMETERS[key]}")
    if key == "max_tokens" and (type(value) is not int or not 1 <= value <= MAX_INTEGER):
        raise InvalidKey(where, f"must be an integer from 1 to {MAX_INTEGER}")
    if not _is_json(value, MAX_PARAMETER_DEPTH):
        allowed = "strings, integers up to 2**53, finite numbers, booleans, lists and tables"
        raise InvalidKey(where, f"must be made of {allowed}, at most {MAX_PARAMETER_DEPTH} deep")


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


def _is_identifier(word: str) -> bool:
    return word.isidentifier() and not keyword.iskeyword(word)
