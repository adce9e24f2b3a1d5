"""A user's Python function as a tool: schema from its signature, description from its docstring."""

from __future__ import annotations

import inspect
import typing
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.text.references import placeholders
from fdstore.tools.tool import Arguments, schema_of


class PythonTool(msgspec.Struct, frozen=True):
    """One function: what the model is told, and how its arguments are checked."""

    name: str
    description: str
    arguments: type
    function: Callable[..., Any]

    def definition(self) -> dict[str, Any]:
        """The Messages-API tool dict."""
        return {
            "name": self.name,
            "description": self.description,
            "input_schema": schema_of(self.arguments),
        }


def python_tool(function: Callable[..., Any]) -> PythonTool:
    """The tool that a function is. Its parameters need types that JSON has (or msgspec Structs).

    Raises `InvalidArgument` for a function that cannot be one.
    """
    name = getattr(function, "__name__", "")
    if not callable(function) or not name.isidentifier():
        raise InvalidArgument("python", f"{quoted(function)} is not a named function")
    try:
        hints = typing.get_type_hints(function, include_extras=True)
        fields: list[Any] = []
        for parameter in inspect.signature(function).parameters.values():
            if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
                raise InvalidArgument("python", f"{name}: parameter {parameter.name} cannot be given by name")
            kind = hints.get(parameter.name, Any)
            default = [] if parameter.default is parameter.empty else [_default(parameter.default)]
            fields.append((parameter.name, kind, *default))
        arguments = msgspec.defstruct(
            name, fields, bases=(Arguments,), kw_only=True, frozen=True, forbid_unknown_fields=True
        )
        schema_of(arguments)
    except (TypeError, NameError, ValueError) as error:
        raise InvalidArgument("python", f"{name} cannot be a tool: {error}") from error
    return PythonTool(name, inspect.getdoc(function) or name, arguments, function)


def _default(value: Any) -> Any:
    mutable = isinstance(value, (list, dict, set))
    return msgspec.field(default_factory=lambda: type(value)(value)) if mutable else value


def imported(path: str) -> Callable[..., Any]:
    """The function at "package.module:function". Raises `InvalidArgument`."""
    module, _, name = path.partition(":")
    try:
        found: Callable[..., Any] = getattr(import_module(module), name)
    except (ImportError, AttributeError, ValueError) as error:
        raise InvalidArgument("tools.python", f"{quoted(path)} cannot be imported here: {error}") from error
    return found


def texts_in(value: Any, depth: int = 0) -> Iterator[str]:
    """All texts in arguments, at any depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)) and depth < 100:
        for each in value.values() if isinstance(value, dict) else value:
            yield from texts_in(each, depth + 1)


def replaced(value: Any, texts: dict[str, str], depth: int = 0) -> Any:
    """The same arguments with every `{{fd:3}}` replaced by the text it stands for."""
    if isinstance(value, str):
        made, end = [], 0
        for found in placeholders(value):
            made += [value[end : found.start], texts[found.selector]]
            end = found.end
        return "".join([*made, value[end:]])
    if isinstance(value, dict) and depth < 100:
        return {key: replaced(each, texts, depth + 1) for key, each in value.items()}
    if isinstance(value, list) and depth < 100:
        return [replaced(each, texts, depth + 1) for each in value]
    return value
