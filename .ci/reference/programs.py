"""The page of program files, from the JSON schema that `fdstore check --schema` prints."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from fdstore.agents.loop.editor_schema import editor_schema, starter_file
from reference import markdown

INTRODUCTION = """
A program file is TOML. `fdstore run PROGRAM.toml` runs it, `fdstore check PROGRAM.toml` names its mistakes
with their keys, `fdstore check --schema` prints its JSON schema for editors, and `fdstore init` writes the
file at the [end of this page](#a-file-with-every-key). Unknown sections and keys are errors. Paths are
relative to the file. Sizes are in characters, times in seconds, unless a key says otherwise.
"""

UNBOUNDED = 1e9
"""Maxima from here on are those of the numbers themselves."""

TYPES = {"string": "string", "integer": "integer", "number": "number", "boolean": "boolean"}


def page() -> str:
    blocks = [markdown.paragraphs(INTRODUCTION)]
    for name, schema in editor_schema()["properties"].items():
        blocks += section(name, schema)
    blocks += ["## A file with every key", "`fdstore init` writes:", markdown.fence(starter_file())]
    return markdown.page("Program files", blocks)


def section(name: str, schema: Mapping[str, Any], level: str = "##") -> Iterator[str]:
    """Yield the blocks of a table of the file, and of the tables in it."""
    yield f"{level} [{name}]"
    yield markdown.paragraph(markdown.prose(schema["description"]))
    properties = schema.get("properties", {})
    required = schema.get("required", ())
    if properties:
        rows = [row(key, about, key in required) for key, about in properties.items()]
        yield markdown.table(["key", "type", "default", "meaning"], rows)
    free = schema.get("additionalProperties")
    if isinstance(free, dict):
        yield from entries(name, free, level)
    elif name == "parameters":
        reserved = ", ".join(f"`{each}`" for each in schema["propertyNames"]["not"]["enum"])
        yield markdown.paragraph(
            f"Any other key is passed on too, except those that fdstore sets itself: {reserved}."
        )
    for key, about in properties.items():
        if "properties" in about:
            yield from section(f"{name}.{key}", about, level + "#")
        elif isinstance(about.get("additionalProperties"), dict):
            inner = about["additionalProperties"]
            yield from section(f"{name}.{key}.NAME", inner, level + "#")


def entries(name: str, value: Mapping[str, Any], level: str) -> Iterator[str]:
    """Yield what the values of a table with free keys may be."""
    for variant in value.get("anyOf", [value]):
        if "properties" in variant:
            yield from section(f"{name}.NAME", variant, level + "#")


def row(key: str, about: Mapping[str, Any], required: bool) -> list[str]:
    default = about.get("default")
    shown = "required" if required else "" if default in (None, "", {}) else f"`{toml(default)}`"
    meaning = markdown.prose(about["description"].removesuffix(" Required."))
    return [f"`{key}`", kind(about), shown, meaning]


def kind(about: Mapping[str, Any]) -> str:
    """Return the type of a value with its bounds, in words."""
    if "anyOf" in about:
        return " or ".join(kind(each) for each in about["anyOf"])
    if "enum" in about:
        return ", ".join(f"`{json.dumps(each)}`" for each in about["enum"])
    match about.get("type"):
        case "array":
            return "list of strings"
        case "object":
            return "table"
        case "integer" | "number" as name:
            return name + bounds(about)
        case name:
            return TYPES[str(name)]


def bounds(about: Mapping[str, Any]) -> str:
    parts = []
    if "minimum" in about:
        parts.append(f">= {about['minimum']}")
    if "exclusiveMinimum" in about:
        parts.append(f"> {about['exclusiveMinimum']}")
    if about.get("maximum", UNBOUNDED) < UNBOUNDED:
        parts.append(f"<= {about['maximum']:g}")
    if "exclusiveMaximum" in about:
        parts.append(f"< {about['exclusiveMaximum']}")
    return f" {', '.join(parts)}" if parts else ""


def toml(value: object) -> str:
    """Return a default as it would stand in the file."""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and value >= 10_000:
        return f"{value:_}"
    return json.dumps(value)
