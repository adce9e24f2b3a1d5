"""The JSON schema of a program file for editors, and the commented file of `fdstore init`.

Both are derived from `ProgramFile`: sections, keys, bounds, defaults, examples and descriptions stand there
alone, so a key that is added to the Struct appears in both.
"""

from __future__ import annotations

import json
import textwrap
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from fdstore.agents.loop.program_file import ProgramFile

SCHEMA_FILE = "fdstore-program.schema.json"
"""The file name that the text of `init` suggests for the schema."""

COLUMNS = 100

STARTER: Mapping[tuple[str, str], object] = {
    ("model", "name"): "claude-sonnet-5-5",
    ("prompt", "system"): "You are a careful assistant.",
    ("prompt", "user"): "Say in one sentence what you can do.",
    ("tools", "enabled"): ["read_fd", "search_fd", "list_fds"],
}
"""The values that a new file sets; its other keys are commented out."""

HEAD = f"""\
# An agent for `fdstore run`. Lines like `#key = value` show a default, or an example where they say so:
# remove the # to set the key. Paths are relative to this file.
#
# Completion and checks in an editor with taplo (VS Code: Even Better TOML):
#   fdstore check --schema > {SCHEMA_FILE}
# and make this the first line of the file:
#   #:schema ./{SCHEMA_FILE}
"""


def editor_schema() -> dict[str, Any]:
    """Return the JSON schema of a program file: draft 7 without references, which every editor reads."""
    schema = msgspec.json.decode(msgspec.json.encode(msgspec.json.schema(ProgramFile)))  # tuples as lists
    definitions = schema["$defs"]
    inlined: dict[str, Any] = _inline(schema, definitions)
    for section in inlined["properties"].values():
        section.pop("default", None)  # that of each key stands with the key
    heading = {"$schema": "http://json-schema.org/draft-07/schema#", "title": "fdstore program"}
    return heading | inlined


def starter_file(name: str | None = None) -> str:
    """Return a program file with every section and key, commented where the default holds.

    It can be run as it stands. `name` is set as that of the program, for a file whose own cannot be one.
    """
    chosen = dict(STARTER) | ({} if name is None else {("program", "name"): name})
    blocks = [HEAD]
    for section, schema in editor_schema()["properties"].items():
        blocks.append("\n".join(_section_lines(section, schema, chosen)) + "\n")
    return "\n".join(blocks)


def _inline(node: Any, definitions: Mapping[str, Any]) -> Any:
    """Replace references by what they name, and leave out null, which TOML does not have."""
    if not isinstance(node, dict):  # additionalProperties may be true or false
        return node
    if "$ref" in node:
        node = definitions[node["$ref"].rpartition("/")[2]] | node
    # the titles are names of classes
    kept = {key: value for key, value in node.items() if key not in ("$defs", "$ref", "title")}
    if "description" in kept:
        kept["description"] = " ".join(kept["description"].partition("\n\n")[0].split())
    if kept.get("default", ...) is None:
        del kept["default"]
    if "properties" in kept:
        kept["properties"] = {key: _inline(value, definitions) for key, value in kept["properties"].items()}
    for key in ("items", "additionalProperties"):
        if key in kept:
            kept[key] = _inline(kept[key], definitions)
    variants = [_inline(each, definitions) for each in kept.pop("anyOf", ()) if each != {"type": "null"}]
    if len(variants) == 1:
        return kept | variants[0]
    return kept | {"anyOf": variants} if variants else kept


def _section_lines(
    section: str, schema: Mapping[str, Any], chosen: Mapping[tuple[str, str], object]
) -> Iterator[str]:
    yield from _comment(schema["description"])
    yield f"[{section}]"
    for key, about in schema.get("properties", {}).items():
        yield from _comment(about["description"])
        if (section, key) in chosen:
            yield f"{key} = {_toml(chosen[section, key])}"
        else:
            yield f"#{_setting(key, about)}"
    if "additionalProperties" in schema and schema["additionalProperties"] is not False:
        for key, value in schema["examples"][0].items():
            yield f"#{key} = {_toml(value)}  # an example"


def _setting(key: str, about: Mapping[str, Any]) -> str:
    """Return "key = value" with the default, or with an example where the default is empty or None."""
    default = about.get("default")
    if default in (None, "", [], {}):
        return f"{key} = {_toml(about['examples'][0])}  # an example"
    return f"{key} = {_toml(default)}"


def _comment(text: str) -> list[str]:
    return textwrap.wrap(text, COLUMNS, initial_indent="# ", subsequent_indent="# ")


def _toml(value: object) -> str:
    match value:
        case bool() | str():
            return json.dumps(value, ensure_ascii=False)  # a JSON string is a basic string of TOML
        case int():
            return f"{value:_}" if value >= 10_000 else str(value)
        case float():
            return _toml(int(value)) if value.is_integer() else str(value)
        case list():
            return f"[{', '.join(map(_toml, value))}]"
        case dict():
            items = [f"{key} = {_toml(item)}" for key, item in value.items() if item is not None]
            return f"{{ {', '.join(items)} }}"
    raise TypeError(f"{type(value).__name__} is not used in a program file")
