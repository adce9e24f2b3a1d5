"""Derive what a model must pass to a function from its signature: a JSON schema, and how to validate it.

All parameters are fields of one msgspec Struct. Those whose types need pydantic are fields of any type there,
and are validated one by one afterwards. Defaults are never validated, as in a call of the function.
"""

from __future__ import annotations

import inspect
import logging
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

import msgspec

from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.errors.description import describe_error, logged
from fdstore.model.msgspec_types import prepare
from fdstore.tools.arguments import PROBLEM_CHARS, convert, schema_of
from fdstore.tools.functions.pydantic_types import Validated, is_field, needs_pydantic, validated

log = logging.getLogger("fdstore.tools")


class Parameters(msgspec.Struct, frozen=True):
    """The parameters of a function: the Struct of their types, the values that pydantic validates, and the
    schema, encoded, so that callers cannot modify it."""

    arguments: type
    validated: dict[str, Validated]
    encoded_schema: bytes

    @property
    def schema(self) -> dict[str, Any]:
        found: dict[str, Any] = msgspec.json.decode(self.encoded_schema)
        return found

    def convert(self, values: object) -> dict[str, Any]:
        """Return the values for the function from a model's arguments. Raises `InvalidArgument` with the
        parameter's name."""
        try:
            return self._convert(values)
        except FDStoreError:
            raise
        # the checks of a dataclass or a model are the user's code
        except Exception as error:
            log.error(
                "the arguments of %s cannot be checked", self.arguments.__name__, exc_info=logged(error)
            )
            problem = f"the arguments cannot be checked: {describe_error(error)[:PROBLEM_CHARS]}"
            raise InvalidArgument("", problem) from error

    def _convert(self, values: object) -> dict[str, Any]:
        checked = convert(self.arguments, values)
        given = typing.cast("Mapping[str, Any]", values)
        found = {name: getattr(checked, name) for name in checked.__struct_fields__}
        for name, parameter in self.validated.items():
            if name in given:
                found[name] = parameter.validate(given[name])
        return found


def parameters_of(function: Callable[..., Any], name: str, described: Mapping[str, str]) -> Parameters:
    """Return the parameters of a function. `described` has the descriptions in its docstring, which are used
    where the annotation has none.

    Raises `InvalidArgument` for a parameter that cannot be given by name, and `TypeError`, `NameError` or
    `ValueError` for a type that cannot be described.
    """
    hints = typing.get_type_hints(function, include_extras=True)
    fields: list[Any] = []
    by_pydantic: dict[str, Validated] = {}
    descriptions = dict(described)
    for parameter in inspect.signature(function).parameters.values():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise InvalidArgument("python", f"{name}: parameter {parameter.name} cannot be given by name")
        hint, default = hints.get(parameter.name, Any), parameter.default
        if is_field(default):
            hint, default = Annotated[hint, default], _default_of_field(default)
        if text := _note(hint):
            descriptions[parameter.name] = text
        if needs_pydantic(hint):
            by_pydantic[parameter.name] = validated(parameter.name, hint)
            hint = Any
        fields.append((parameter.name, hint, *([] if default is parameter.empty else [_default(default)])))
    arguments = msgspec.defstruct(name, fields, kw_only=True, frozen=True, forbid_unknown_fields=True)
    prepare(arguments)
    schema = schema_of(arguments)
    for each, parameter_of_pydantic in by_pydantic.items():
        default = {k: v for k, v in schema["properties"][each].items() if k == "default"}
        schema["properties"][each] = _hoisted(parameter_of_pydantic.schema, schema) | default
    for each, text in descriptions.items():
        schema["properties"][each]["description"] = text  # rather than the docstring of a model
    return Parameters(arguments, by_pydantic, msgspec.json.encode(schema))


def _default_of_field(field: Any) -> Any:
    return inspect.Parameter.empty if field.is_required() else field.get_default(call_default_factory=True)


def _default(value: Any) -> Any:
    if isinstance(value, (list, dict, set)):
        return msgspec.field(default_factory=lambda: type(value)(value))
    try:
        hash(value)
        msgspec.to_builtins(value)
    except TypeError:  # the schema cannot show it, but the function gets it
        return msgspec.field(default_factory=lambda: value)
    return value


def _note(hint: Any) -> str | None:
    """Return the description in an annotation: `Annotated[..., "text"]`, or that of a `msgspec.Meta`, of a
    `pydantic.Field` or of PEP 727's `Doc`."""
    if typing.get_origin(hint) is not Annotated:
        return None
    texts = (
        [note, getattr(note, "description", None), getattr(note, "documentation", None)]
        for note in typing.get_args(hint)[1:]
    )
    return next((text for three in texts for text in three if isinstance(text, str)), None)


def _hoisted(schema: dict[str, Any], root: dict[str, Any]) -> dict[str, Any]:
    """Return a parameter's schema after moving its definitions to the root, where its references point. A
    definition whose name is taken by another one gets a number."""
    own = schema.get("$defs", {})
    taken = root.get("$defs", {})
    names = {}
    for name, definition in own.items():
        free, number = name, 1
        while (free in taken and taken[free] != definition) or (free != name and free in own):
            number += 1
            free = f"{name}_{number}"
        names[name] = free
    pointers = {f"#/$defs/{name}": f"#/$defs/{free}" for name, free in names.items()}
    for name, definition in own.items():
        root.setdefault("$defs", {})[names[name]] = _renamed(definition, pointers)
    bare = {key: value for key, value in schema.items() if key != "$defs"}
    renamed: dict[str, Any] = _renamed(bare, pointers)
    return renamed


def _renamed(schema: Any, names: Mapping[str, str]) -> Any:
    if isinstance(schema, dict):
        return {key: _renamed(value, names) for key, value in schema.items()}
    if isinstance(schema, list):
        return [_renamed(each, names) for each in schema]
    return names.get(schema, schema) if isinstance(schema, str) else schema  # in "$ref" and "mapping"
