"""Mistakes in calls of tools, found before a program runs.

Only what is certainly wrong is a mistake: the name of a tool that does not exist, an argument that a tool
does not take or needs, a literal of the wrong type, a call that nothing awaits. A schema that says nothing of
further arguments takes them. Nothing else stops a program; a whole check of types would refuse right ones.
"""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Mapping, Set
from typing import Any, NamedTuple

from fdstore.errors import InvalidArgument
from fdstore.integrations.gateway.code.catalogue import Catalogue, CodeTool
from fdstore.integrations.gateway.code.signatures import ALTERNATIVES, Schema, Shape, resolved, shape_of
from fdstore.interpreter import prelude

MAKES_NAMES = frozenset({"exec", "eval", "globals", "locals", "*"})
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
    try:
        tree = ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []
    nodes = list(ast.walk(tree))
    bound = _rebound(nodes)
    servers = set(catalogue.servers) - bound
    for node in nodes:
        if isinstance(node, ast.Expr) and (name := _tool_called(node.value, servers)):
            raise _mistake(node, f"{name}: nothing awaits this call; write await {name}(...)")
        if isinstance(node, ast.Attribute) and (name := _tool_named(node, servers)):
            if name not in catalogue.tools:
                raise _mistake(node, f"there is no tool {name}; {catalogue.closest(name)}")
            tool = catalogue.tools[name]
            if not tool.allowed:
                raise _mistake(node, f"{name}: {tool.refusal}")
        if (name := _tool_called(node, servers)) in catalogue.tools:
            assert isinstance(node, ast.Call)
            if problem := _problem_of(node, catalogue.tools[name]):
                raise _mistake(node, problem)
    return _unknown_servers(nodes, bound, catalogue)


def _unknown_servers(nodes: list[ast.AST], bound: set[str], catalogue: Catalogue) -> list[UnknownServer]:
    if not bound.isdisjoint(MAKES_NAMES) or any(
        isinstance(node, ast.Name) and node.id in MAKES_NAMES for node in nodes
    ):
        return []
    known = {*bound, *catalogue.servers, *_USUAL}
    awaited = {id(node.value) for node in nodes if isinstance(node, ast.Await)}
    tools = {name.partition(".")[2] for name in catalogue.tools}
    found: dict[str, UnknownServer] = {}
    for node in nodes:
        match node:
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=tool)) if name not in known:
                near = catalogue.servers_like(name)
                if (near or tool in tools or id(node) in awaited) and not name.startswith(prelude.HOST):
                    problem = f"there is no server {name}; {catalogue.closest_server(near, tool)}"
                    found.setdefault(name, UnknownServer(name, _mistake(node, problem)))
    return list(found.values())


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


def _problem_of(call: ast.Call, tool: CodeTool) -> str:
    if call.args:
        return f"{tool.name} takes its arguments by name: {tool.signature}"
    given = {each.arg: _value_of(each.value) for each in call.keywords if each.arg is not None}
    return problem_with(tool, given, is_whole=all(each.arg is not None for each in call.keywords))


def _value_of(node: ast.expr) -> Any:
    return node.value if isinstance(node, ast.Constant) else UNKNOWN


def _rebound(nodes: list[ast.AST]) -> set[str]:
    """Return the names to which the program itself gives a meaning."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Name) and not isinstance(node.ctx, ast.Load):
            names.add(node.id)
        elif isinstance(node, ast.arg):
            names.add(node.arg)
        elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
        elif isinstance(node, ast.ExceptHandler | ast.MatchAs | ast.MatchStar) and node.name:
            names.add(node.name)
    return names


def _tool_named(node: ast.AST, servers: set[str]) -> str:
    """Return the name of the tool that an expression is, or ""."""
    if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in servers:
        return f"{node.value.id}.{node.attr}"
    return ""


def _tool_called(node: ast.AST, servers: set[str]) -> str:
    return _tool_named(node.func, servers) if isinstance(node, ast.Call) else ""


def _mistake(node: ast.stmt | ast.expr, problem: str) -> InvalidArgument:
    return InvalidArgument("code", f"line {node.lineno}: {problem}; nothing was run")
