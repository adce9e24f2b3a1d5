"""Parameters that pydantic validates: its models and constraints, alone or within other types.

pydantic is imported when a function has such a parameter, and never otherwise, since the import takes a tenth
of a second. So the types are recognized without it.
"""

from __future__ import annotations

import dataclasses
import json
import typing
from collections.abc import Callable
from typing import Any

import msgspec

from fdstore.errors import InvalidArgument
from fdstore.model.msgspec_types import prepare
from fdstore.text.layout import show_controls
from fdstore.tools.arguments import LONE_SURROGATE, PROBLEM_CHARS

_PACKAGES = frozenset({"pydantic", "pydantic_core", "annotated_types"})
_HOOKS = ("__get_pydantic_core_schema__", "__pydantic_core_schema__")
"""Attributes by which a type says how pydantic validates it; each is enough."""


class Validated(msgspec.Struct, frozen=True):
    """A parameter that pydantic validates: its JSON schema, and the conversion of its value."""

    schema: dict[str, Any]
    validate: Callable[[Any], Any]


def needs_pydantic(hint: Any) -> bool:
    """Return whether a type has a part that only pydantic can validate: a model, a type or a constraint of
    pydantic, or a type that msgspec does not know."""
    return _has_pydantic_part(hint, set()) or not _is_known_to_msgspec(hint)


def is_field(value: object) -> bool:
    """Return whether `value`, the default of a parameter, is a `pydantic.Field`."""
    return _is_of_pydantic(type(value)) and type(value).__name__ == "FieldInfo"


def validated(name: str, hint: Any) -> Validated:
    """Return how pydantic describes and validates the parameter `name`.

    Raises `TypeError` if pydantic is not installed or does not know the type either.
    """
    try:
        import pydantic
    except ImportError as error:
        raise TypeError(f"the type of {name} needs the package pydantic") from error
    try:
        adapter: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(hint)
        schema = adapter.json_schema()
    except pydantic.PydanticUserError as error:
        raise TypeError(f"{name}: {str(error).partition(chr(10))[0]}") from error

    def validate(value: Any) -> Any:
        try:
            # as JSON: strict models take dates and enums as strings only from there
            return adapter.validate_json(json.dumps(value, ensure_ascii=False).encode())
        except UnicodeEncodeError as error:
            raise InvalidArgument(name, LONE_SURROGATE) from error
        except (ValueError, RecursionError) as error:  # ValidationError is a ValueError
            raise invalid_argument(error, name) from error

    return Validated(_without_titles(schema), validate)


def is_validation_error(error: BaseException | None) -> bool:
    """Return whether pydantic refused a value."""
    return isinstance(error, ValueError) and _is_of_pydantic(type(error)) and hasattr(error, "errors")


def invalid_argument(error: BaseException, name: str = "") -> InvalidArgument:
    """Return the error for a value of the parameter `name` that was refused, without the value."""
    if not is_validation_error(error):
        return InvalidArgument(name, "is not a value it takes")
    first, *others = error.errors(  # type: ignore[attr-defined]
        include_url=False, include_context=False, include_input=False
    )
    where = name
    for key in first["loc"]:
        where += f"[{key}]" if isinstance(key, int) else f".{key}" if where else str(key)
    problem = show_controls(first["msg"][:PROBLEM_CHARS], keep="")
    more = f" (and {len(others)} more)" if others else ""
    return InvalidArgument(where[:PROBLEM_CHARS], problem + more)


def _is_known_to_msgspec(hint: Any) -> bool:
    try:
        prepare(hint)
        msgspec.json.schema(hint)
    except (TypeError, NameError):  # NameError: a field's type that cannot be resolved
        return False
    return True


def _is_of_pydantic(kind: type) -> bool:
    return any(base.__module__.partition(".")[0] in _PACKAGES for base in kind.__mro__)


def _has_hook(value: object) -> bool:
    return any(hasattr(value, hook) for hook in _HOOKS)


def _has_pydantic_part(hint: Any, seen: set[Any]) -> bool:
    """Search a type, its arguments and the fields of its dataclasses and TypedDicts."""
    if typing.get_origin(hint) is typing.Literal:
        return False
    if typing.get_origin(hint) is typing.Annotated:
        inner, *notes = typing.get_args(hint)
        if any(_is_of_pydantic(type(note)) or _has_hook(note) for note in notes):
            return True
        return _has_pydantic_part(inner, seen)
    if _has_hook(hint):
        return True
    is_typed_dict = hasattr(hint, "__required_keys__")  # also that of typing_extensions
    if isinstance(hint, type) and (dataclasses.is_dataclass(hint) or is_typed_dict):
        if hint in seen:
            return False
        seen.add(hint)
        fields = typing.get_type_hints(hint, include_extras=True).values()
        return any(_has_pydantic_part(field, seen) for field in fields)
    return any(_has_pydantic_part(each, seen) for each in typing.get_args(hint))


def _without_titles(schema: Any) -> Any:
    """Return a schema without titles, which repeat the names and cost tokens at every turn."""
    if isinstance(schema, list):
        return [_without_titles(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    bare = {}
    for key, value in schema.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            bare[key] = {name: _without_titles(each) for name, each in value.items()}  # names, not keywords
        elif key in ("default", "enum", "const", "examples"):
            bare[key] = value
        elif key != "title":
            bare[key] = _without_titles(value)
    return bare
