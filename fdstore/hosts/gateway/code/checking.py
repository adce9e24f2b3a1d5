"""Mistakes in calls of tools, found before a program runs.

Only what is certainly wrong is a mistake: the name of a tool that does not exist, an argument that a tool
does not take or needs, a literal of the wrong type, a call that nothing awaits. A schema that says nothing of
further arguments takes them. Nothing else stops a program; a whole check of types would refuse right ones. It
goes by the tokens of the program, in time linear in it.
"""

from __future__ import annotations

import builtins
import re
import sys
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from fdstore.errors import InvalidArgument
from fdstore.hosts.gateway.code.catalogue import Catalogue, CodeTool
from fdstore.hosts.gateway.code.signatures import ALTERNATIVES, Schema, Shape, resolved, shape_of
from fdstore.programs.interpreter import prelude
from fdstore.programs.interpreter.code_tokens import CodeTokens, tokens_of

MAKES_NAMES = frozenset({"exec", "eval", "globals", "locals"})
"""Names whose use gives other names a meaning that is not written."""

_USUAL = frozenset({*dir(builtins), *sys.stdlib_module_names, *prelude.NAMES})

UNKNOWN: Any = object()
"""The value of an argument that only the run will tell."""

_CLASSES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
    "array": (list, tuple),
    "object": (dict,),
    "null": (type(None),),
}


class UnknownServer(NamedTuple):
    """A name that code calls a tool of, and to which it gives no meaning itself: a mistake, unless an earlier
    program did."""

    name: str
    problem: InvalidArgument


def check_code(code: str, catalogue: Catalogue) -> list[UnknownServer]:
    """Look through a program. Return the names that are servers by their use alone. Raises `InvalidArgument`
    with the line and the right signature. What is not Python is left to the interpreter, which says what is
    wrong with it."""
    tokens = tokens_of(code)
    if tokens is None:
        return []
    servers = set(catalogue.servers) - _rebound(tokens, set(catalogue.servers))
    dropped = {begin for begin, end in tokens.statements() if tokens.closed_by.get(begin + 1) == end - 1}
    for index, text in enumerate(tokens.texts):
        server, _, rest = text.partition(".")
        if not rest or server not in servers or tokens.text(index - 1) == ".":
            continue
        attribute, _, further = rest.partition(".")
        name = f"{server}.{attribute}"
        is_called = not further and tokens.text(index + 1) == "("
        if is_called and index in dropped:
            raise _mistake(tokens, index, f"{name}: nothing awaits this call; write await {name}(...)")
        if name not in catalogue.tools:
            raise _mistake(tokens, index, f"there is no tool {name}; {catalogue.closest(name)}")
        tool = catalogue.tools[name]
        if not tool.allowed:
            raise _mistake(tokens, index, f"{name}: {tool.refusal}")
        if is_called and (problem := _problem_of(tokens, index + 1, tool)):
            raise _mistake(tokens, index, problem)
    return _unknown_servers(tokens, catalogue)


def _unknown_servers(tokens: CodeTokens, catalogue: Catalogue) -> list[UnknownServer]:
    texts = tokens.texts
    imports = [index + 1 for index, text in enumerate(texts) if text == "import"]
    if not MAKES_NAMES.isdisjoint(texts) or any(tokens.text(index) == "*" for index in imports):
        return []
    known = {*catalogue.servers, *_USUAL, *(tokens.text(index).partition(".")[0] for index in imports)}
    tools = {name.partition(".")[2] for name in catalogue.tools}
    found: dict[str, UnknownServer] = {}
    for index, text in enumerate(texts):
        name, _, tool = text.partition(".")
        is_call = tool and "." not in tool and tokens.text(index + 1) == "(" and tokens.text(index - 1) != "."
        if not is_call or name in known or name in found or name.startswith(prelude.HOST):
            continue
        near = catalogue.servers_like(name)
        if near or tool in tools or tokens.text(index - 1) == "await":
            problem = f"there is no server {name}; {catalogue.closest_server(near, tool)}"
            found[name] = UnknownServer(name, _mistake(tokens, index, problem))
    bound = _rebound(tokens, set(found))
    return [each for name, each in found.items() if name not in bound]


def problem_with(tool: CodeTool, arguments: Mapping[str, Any], *, is_whole: bool = True) -> str:
    """Return what is wrong with the arguments of a call, or "". `is_whole`: there are no others."""
    shape = shape_of(tool.given)
    known = shape.all_properties()
    problem = _problem_in(shape, arguments, known.keys(), tool.given, is_whole=is_whole)
    if problem.startswith("needs "):
        wrong = [name for name in arguments if name not in known]
        problem = f"takes no argument {wrong[0]!r}" if wrong else problem
    return f"{tool.name} {problem}: {tool.signature}" if problem else ""


def _problem_in(
    shape: Shape, arguments: Mapping[str, Any], known: Set[str], root: Schema, *, is_whole: bool
) -> str:
    """Return what is wrong with arguments of a shape, or "". `known`: the names that a closed one allows."""
    if shape.is_closed:
        for name in arguments:
            if name not in known:
                return f"takes no argument {name!r}"
    for name in shape.required if is_whole else ():
        if name not in arguments:
            return f"needs the argument {name!r}"
    for name, value in arguments.items():
        if value is not UNKNOWN and not _fits(value, shape.properties.get(name), root):
            shown = repr(value) if len(repr(value)) <= 100 else f"a {type(value).__name__}"
            return f"does not take {name}={shown}"
    for part in shape.of_all:
        if problem := _problem_in(part, arguments, known, root, is_whole=is_whole):
            return problem
    for group in shape.of_any:
        elsewhere = known - set().union(*(part.all_properties() for part in group)) | shape.properties.keys()
        problems = [
            _problem_in(part, arguments, elsewhere | part.all_properties().keys(), root, is_whole=is_whole)
            for part in group
        ]
        if all(problems):
            meant = max(group, key=lambda part: len(arguments.keys() & part.all_properties().keys()))
            return problems[group.index(meant)]
    return ""


def _fits(value: Any, schema: Any, root: Mapping[str, Any]) -> bool:
    """Return whether a value can be of a schema, by its type or its enumeration alone."""
    found = resolved(schema, root)
    if "const" in found and found["const"] != value:
        return False
    if isinstance(values := found.get("enum"), list):
        return value in values
    kinds = found.get("type")
    names = [kinds] if isinstance(kinds, str) else kinds if isinstance(kinds, list) else []
    classes = [each for name in names for each in _CLASSES.get(str(name), (object,))]
    if not classes or "$ref" in found or any(name in found for name in ALTERNATIVES):
        return True
    if isinstance(value, bool):
        return bool in classes or object in classes
    if isinstance(value, float) and value.is_integer() and int in classes:
        return True
    return isinstance(value, tuple(classes))


def _problem_of(tokens: CodeTokens, opening: int, tool: CodeTool) -> str:
    given: dict[str, Any] = {}
    is_whole = True
    for begin, end in tokens.arguments(opening):
        if tokens.texts[begin].startswith("**"):
            is_whole = False
        elif tokens.text(begin + 1) != "=":
            return f"{tool.name} takes its arguments by name: {tool.signature}"
        else:
            given[tokens.texts[begin]] = _value_of(tokens.texts[begin + 2 : end])
    return problem_with(tool, given, is_whole=is_whole)


_NAMED = {"None": None, "True": True, "False": False}
_INTEGER = re.compile(r"-?(?:0|[1-9][0-9]{0,99})\Z")
_FLOAT = re.compile(r"-?[0-9]{1,99}\.[0-9]{0,99}\Z")
_STRING = re.compile(r"""[rR]?('{3}|"{3}|'|")([^\\]*)\1\Z""")


def _value_of(texts: list[str]) -> Any:
    """Return the value of a literal of one token, and `UNKNOWN` for what has to be computed."""
    if len(texts) != 1:
        return UNKNOWN
    [text] = texts
    if text in _NAMED:
        return _NAMED[text]
    if _INTEGER.match(text):
        return int(text)
    if _FLOAT.match(text):
        return float(text)
    string = _STRING.match(text)
    return UNKNOWN if string is None else string[2]


def _rebound(tokens: CodeTokens, names: set[str]) -> set[str]:
    """Return which of these names the program itself gives, or may give, another meaning: a name that stands
    alone and is neither an argument of a call nor what is assigned."""
    texts = tokens.texts
    rebound: set[str] = set()
    for index, text in enumerate(texts):
        if text not in names or text in rebound:
            continue
        before, after = tokens.text(index - 1), tokens.text(index + 1)
        opening = tokens.inside[index]
        is_argument = (
            before in ("(", ",")
            and after in (")", ",", "=")
            and tokens.text(opening) == "("
            and (tokens.text(opening - 1)[:1].isidentifier() or tokens.text(opening - 1) in (")", "]"))
            and tokens.text(opening - 1) not in _BEFORE_BRACKETS
            and tokens.text(opening - 2) not in ("def", "class", "case")
        )
        is_assigned = before == "=" and opening == -1 and after[:1] in ("", "\n", "\r", ";")
        is_attribute = before == "."
        if not (is_argument or is_assigned or is_attribute):
            rebound.add(text)
    return rebound


_BEFORE_BRACKETS = frozenset(
    {"and", "as", "assert", "await", "case", "del", "elif", "else", "for", "if", "import", "in", "is"}
    | {"lambda", "match", "not", "or", "return", "while", "with", "yield"}
)
"""Words after which brackets call nothing."""


def _mistake(tokens: CodeTokens, index: int, problem: str) -> InvalidArgument:
    return InvalidArgument("code", f"line {tokens.line(index)}: {problem}; nothing was run")
