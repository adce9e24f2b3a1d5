"""Signatures in Python's notation, made from the JSON schemas of a tool.

>>> signature("docs.find", {"properties": {"query": {"type": "string"}, "limit": {"type": "integer",
...     "default": 10}}, "required": ["query"]}, None)
'docs.find(query: str, limit: int = 10) -> str'
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, TypeAlias

Schema: TypeAlias = Mapping[str, Any]

MAX_DEPTH = 3
"""The depth to which objects are shown with their fields."""

MAX_FIELDS = 12
MAX_VALUES = 12
"""Fields of an object, and values of an enumeration, that are shown."""

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
    `field` of it. A tool without the latter returns a text. Required arguments come first; all are passed by
    name."""
    required = required_of(given)
    properties = properties_of(given)
    ordered = [*(key for key in properties if key in required), *(k for k in properties if k not in required)]
    parts = [_parameter(key, properties[key], given, is_required=key in required) for key in ordered]
    parts += [f"{key}: Any" for key in required if key not in properties]
    result = "str"
    if returned is not None:
        result = type_of(properties_of(returned)[field] if field else returned, returned)
    return f"{name}({', '.join(parts)}) -> {result}"


def required_of(schema: Schema) -> list[str]:
    """Return the names of the required arguments."""
    found = schema.get("required")
    return [name for name in found if isinstance(name, str)] if isinstance(found, list) else []


def properties_of(schema: Schema) -> dict[str, Any]:
    """Return the schemas of the arguments by their names."""
    found = schema.get("properties")
    return dict(found) if isinstance(found, Mapping) else {}


def _parameter(name: str, schema: Any, root: Schema, *, is_required: bool) -> str:
    shown = f"{name if name.isidentifier() else json.dumps(name)}: {type_of(schema, root)}"
    if is_required:
        return shown
    default = schema.get("default", ...) if isinstance(schema, Mapping) else ...
    return f"{shown} = {'...' if default is ... else _literal(default)}"


def type_of(schema: Any, root: Schema, depth: int = 0) -> str:
    """Return a type in Python's notation; `Any` for what has no short one.

    >>> type_of({"anyOf": [{"type": "array", "items": {"type": "string"}}, {"type": "null"}]}, {})
    'list[str] | None'
    >>> type_of({"enum": ["open", "closed"]}, {})
    "Literal['open', 'closed']"
    """
    schema = resolved(schema, root)
    if not schema or depth > MAX_DEPTH:
        return "Any"
    if "const" in schema:
        return f"Literal[{_literal(schema['const'])}]"
    if isinstance(values := schema.get("enum"), list):
        shown = [_literal(value) for value in values[:MAX_VALUES]]
        return f"Literal[{', '.join([*shown, *(['...'] if len(values) > MAX_VALUES else [])])}]"
    for name in ("anyOf", "oneOf"):
        if isinstance(options := schema.get(name), list):
            types = dict.fromkeys(type_of(option, root, depth) for option in options)
            return "Any" if "Any" in types else " | ".join(types)
    kind = schema.get("type")
    if isinstance(kind, list):
        return " | ".join(dict.fromkeys(type_of({**schema, "type": each}, root, depth) for each in kind))
    if kind == "array" and "items" in schema:
        return f"list[{type_of(schema['items'], root, depth + 1)}]"
    properties = properties_of(schema)
    if properties and depth < MAX_DEPTH:
        fields = [
            f"{json.dumps(name)}: {type_of(each, root, depth + 1)}"
            for name, each in list(properties.items())[:MAX_FIELDS]
        ]
        return f"{{{', '.join([*fields, *(['...'] if len(properties) > MAX_FIELDS else [])])}}}"
    return TYPES.get(str(kind), "Any")


def resolved(schema: Any, root: Schema) -> Schema:
    """Return the schema that a reference within `root` names; {} for what is no schema."""
    for _ in range(MAX_DEPTH):
        if not isinstance(schema, Mapping):
            return {}
        ref = schema.get("$ref")
        if not isinstance(ref, str):
            return schema
        found: Any = root
        for part in ref.removeprefix("#/").split("/"):
            found = found.get(part) if isinstance(found, Mapping) else None
        schema = found
    return {}


def _literal(value: Any) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else "..."
