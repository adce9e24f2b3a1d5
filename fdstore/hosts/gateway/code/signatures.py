"""Signatures in Python's notation, made from the JSON schemas of a tool.

>>> signature("docs.find", {"properties": {"query": {"type": "string"}, "limit": {"type": "integer",
...     "default": 10}}, "required": ["query"]}, None)
'docs.find(query: str, limit: int = 10) -> str | Text'

A schema is a server's, so what is made of it has bounds: parts that are looked at, depth, and length. A
reference leads to a part of the same schema; nothing is fetched.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias
from urllib.parse import unquote

import msgspec

Schema: TypeAlias = Mapping[str, Any]

MAX_DEPTH = 3
"""The depth to which objects are shown with their fields."""

MAX_FIELDS = 12
MAX_VALUES = 12
"""Fields of an object, and values of an enumeration, that are shown."""

MAX_PARAMETERS = 60
MAX_SIGNATURE_CHARS = 4000

MAX_PARTS = 500
MAX_NESTED = 16
"""The parts of one schema that are looked at, and how deeply references and alternatives may be nested."""

TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "array": "list",
    "object": "dict",
    "null": "None",
}


def signature(name: str, given: Schema, returned: Schema | None, *, field: str = "") -> str:
    """Return the signature of a tool by the schemas of its arguments and of its structured result, or of one
    `field` of it. A tool without the latter returns a text, and code gets a long one as a `Text`. Required
    arguments come first; all are passed by name."""
    shape = shape_of(given)
    properties, required = shape.all_properties(), shape.all_required()
    ordered = [*(key for key in properties if key in required), *(k for k in properties if k not in required)]
    left = Budget()
    parts = [
        _parameter(key, properties[key], given, left, is_required=key in required)
        for key in ordered[:MAX_PARAMETERS]
    ]
    parts += [f"{key}: Any" for key in required if key not in properties][:MAX_PARAMETERS]
    if len(ordered) > MAX_PARAMETERS:
        parts.append("...")
    result = "str"
    if returned is not None:
        fields = shape_of(returned).all_properties()
        result = type_of(fields[field] if field else returned, returned, left=left)
    if "str" in result.split(" | "):
        result += " | Text"
    shown = f"{name}({', '.join(parts)}) -> {result}"
    return shown if len(shown) <= MAX_SIGNATURE_CHARS else f"{shown[:MAX_SIGNATURE_CHARS]}..."


class Budget:
    """The parts of a schema that may still be looked at."""

    def __init__(self) -> None:
        self._left = MAX_PARTS

    def take(self) -> bool:
        """Take one. Return whether there was one."""
        self._left -= 1
        return self._left >= 0


class Shape(msgspec.Struct, frozen=True):
    """The rules of a schema about the fields of an object, as far as they are certain.

    is_closed   there may be no others; which are named elsewhere in the schema is not held against a call
    of_all      shapes that hold too
    of_any      groups of shapes, of each of which one holds
    """

    properties: dict[str, Any] = {}
    required: list[str] = []
    is_closed: bool = False
    of_all: list[Shape] = []
    of_any: list[list[Shape]] = []

    def all_properties(self) -> dict[str, Any]:
        """Return the schemas of all fields that it names; of one that several alternatives name all."""
        found: dict[str, list[Any]] = {}
        for shape in self._parts():
            for name, schema in shape.properties.items():
                if schema not in found.setdefault(name, []):
                    found[name].append(schema)
        return {name: each[0] if len(each) == 1 else {"anyOf": each} for name, each in found.items()}

    def all_required(self) -> list[str]:
        """Return the fields that are needed in each case."""
        found = dict.fromkeys(self.required)
        for shape in self.of_all:
            found |= dict.fromkeys(shape.all_required())
        for group in self.of_any:
            first, *others = (shape.all_required() for shape in group)
            found |= dict.fromkeys(name for name in first if all(name in each for each in others))
        return list(found)

    def _parts(self) -> Iterable[Shape]:
        yield self
        for shape in [*self.of_all, *(each for group in self.of_any for each in group)]:
            yield from shape._parts()


def shape_of(schema: Any) -> Shape:
    """Return the shape of a whole schema. What is no object, or goes beyond the bounds, rules nothing."""
    return _shape(schema, schema, Budget(), 0)


def _shape(schema: Any, root: Any, left: Budget, nested: int) -> Shape:
    if not isinstance(schema, Mapping) or nested > MAX_NESTED or not left.take():
        return Shape()
    is_closed = any(schema.get(name) is False for name in ("additionalProperties", "unevaluatedProperties"))
    others = [each for each in _list_at(schema, "allOf") if isinstance(each, Mapping)]
    if "$ref" in schema:
        others.append(_target(schema["$ref"], root))
    groups = ([each for each in _list_at(schema, name) if _takes_objects(each)] for name in ALTERNATIVES)
    return Shape(
        properties=properties_of(schema),
        required=required_of(schema),
        is_closed=is_closed and not schema.get("patternProperties"),
        of_all=[_shape(each, root, left, nested + 1) for each in others],
        of_any=[[_shape(each, root, left, nested + 1) for each in group] for group in groups if group],
    )


ALTERNATIVES = ("anyOf", "oneOf")


def _list_at(schema: Schema, name: str) -> list[Any]:
    found = schema.get(name)
    return found if isinstance(found, list) else []


def _takes_objects(schema: Any) -> bool:
    """Return whether an object can be of a schema, by its type alone."""
    if not isinstance(schema, Mapping):
        return schema is True
    kind = schema.get("type", "object")
    return kind == "object" or (isinstance(kind, list) and "object" in kind)


def required_of(schema: Schema) -> list[str]:
    """Return the names of the required arguments."""
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def properties_of(schema: Schema) -> dict[str, Any]:
    """Return the schemas of the arguments by their names."""
    found = schema.get("properties")
    return dict(found) if isinstance(found, Mapping) else {}


def _parameter(name: str, schema: Any, root: Schema, left: Budget, *, is_required: bool) -> str:
    shown = f"{name if name.isidentifier() else json.dumps(name)}: {type_of(schema, root, left=left)}"
    if is_required:
        return shown
    default = schema.get("default", ...) if isinstance(schema, Mapping) else ...
    return f"{shown} = {'...' if default is ... else _literal(default)}"


def type_of(schema: Any, root: Schema, depth: int = 0, *, nested: int = 0, left: Budget | None = None) -> str:
    """Return a type in Python's notation; `Any` for what has no short one.

    >>> type_of({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}, {})
    'list[str] | None'
    >>> type_of({"enum": ["open", "closed"]}, {})
    "Literal['open', 'closed']"
    """
    left = left or Budget()
    schema = resolved(schema, root)
    if not schema or depth > MAX_DEPTH or nested > MAX_NESTED or not left.take():
        return "Any"

    def inner(schema: Any, depth: int) -> str:
        return type_of(schema, root, depth, nested=nested + 1, left=left)

    if "const" in schema:
        return f"Literal[{_literal(schema['const'])}]"
    if isinstance(values := schema.get("enum"), list):
        shown = [_literal(value) for value in values[:MAX_VALUES]]
        return f"Literal[{', '.join([*shown, *(['...'] if len(values) > MAX_VALUES else [])])}]"
    for name in ALTERNATIVES:
        if options := _list_at(schema, name):
            types = dict.fromkeys(inner(option, depth) for option in options[:MAX_VALUES])
            return "Any" if "Any" in types or len(options) > MAX_VALUES else " | ".join(types)
    if len(parts := _list_at(schema, "allOf")) == 1:
        return inner(parts[0], depth)
    kind = schema.get("type")
    if isinstance(kind, list):
        kinds = [each for each in kind if isinstance(each, str)]
        return " | ".join(dict.fromkeys(inner({**schema, "type": each}, depth) for each in kinds)) or "Any"
    if kind == "array" and "items" in schema:
        return f"list[{inner(schema['items'], depth + 1)}]"
    properties = properties_of(schema)
    if properties and depth < MAX_DEPTH:
        fields = [
            f"{json.dumps(name)}: {inner(each, depth + 1)}"
            for name, each in list(properties.items())[:MAX_FIELDS]
        ]
        return f"{{{', '.join([*fields, *(['...'] if len(properties) > MAX_FIELDS else [])])}}}"
    return TYPES.get(str(kind), "Any")


def resolved(schema: Any, root: Schema) -> Schema:
    """Return the schema that a reference within `root` names; {} for what is no schema."""
    for _ in range(MAX_NESTED):
        if not isinstance(schema, Mapping):
            return {}
        if "$ref" not in schema:
            return schema
        schema = _target(schema["$ref"], root)
    return {}


def _target(ref: Any, root: Any) -> Any:
    """Return the part of a schema that a reference names; {} for one that leads elsewhere or nowhere."""
    if not isinstance(ref, str) or not (ref == "#" or ref.startswith("#/")):
        return {}
    found = root
    for part in ref.split("/")[1:]:
        name = unquote(part).replace("~1", "/").replace("~0", "~")
        if isinstance(found, Mapping):
            found = found.get(name)
        elif isinstance(found, list) and name.isascii() and name.isdigit() and len(name) < 6:
            found = found[int(name)] if int(name) < len(found) else None
        else:
            return {}
    return {} if found is None else found


def _literal(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else "..."
