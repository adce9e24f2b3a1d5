"""The schema for editors and the file of `fdstore init`, both generated from the Struct of a program file."""

from __future__ import annotations

import itertools
import re
import tomllib
from pathlib import Path

import msgspec
import pytest

from fdstore.agents.loop.editor_schema import editor_schema, starter_file
from fdstore.agents.loop.program_file import ProgramFile
from fdstore.agents.loop.program_loader import load
from fdstore.model.providers import PROVIDERS

SECTIONS = {field.name: field.type for field in msgspec.structs.fields(ProgramFile)}
EXAMPLES = {"parameters": {"max_tokens"}, "linked_programs": {"expert"}}
KEYS = {
    name: set(kind.__struct_fields__) if isinstance(kind, type) else EXAMPLES[name]
    for name, kind in SECTIONS.items()
}
"""Every section and its keys; of those with free keys, the ones that are shown."""


ALTERNATIVES = [
    ("system", "system_prompt_file"),
    ("max_direct_output_chars", "max_direct_output_tokens"),
]
"""Keys of which a file may have one."""


def uncommented(text: str) -> str:
    return re.sub(r"(?m)^#(?=[a-z_]+ = )", "", text)


def create_example_files(folder: Path) -> None:
    """Create the files and directories that the examples name."""
    for directory in ("lib", "docs"):
        (folder / directory).mkdir()
    (folder / "notes.md").write_text("n")
    (folder / "system.md").write_text("s")
    (folder / "expert.toml").write_text('[model]\nname = "m"\n')


def nodes(schema):
    """All schemas in a schema."""
    yield schema
    for inner in schema.get("properties", {}).values():
        yield from nodes(inner)
    for inner in (schema.get("items"), schema.get("additionalProperties"), *schema.get("anyOf", ())):
        if isinstance(inner, dict):
            yield from nodes(inner)


def test_the_generated_file_loads_without_a_prompt(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(starter_file())

    bundle = load(path)

    assert bundle.warnings == ()
    assert bundle.programs["agent"].user
    assert bundle.programs["agent"].fds_on


def test_a_file_whose_name_is_not_a_valid_program_name_sets_one(tmp_path):
    path = tmp_path / "My Agent.toml"
    path.write_text(starter_file("agent"))

    assert load(path).root == "agent"


@pytest.mark.parametrize("others", [*itertools.product(*ALTERNATIVES)])
def test_with_every_key_uncommented_the_generated_file_loads_and_has_every_key(tmp_path, others):
    text = uncommented(starter_file())
    path = tmp_path / "agent.toml"
    path.write_text(re.sub(rf"(?m)^({'|'.join(others)}) = .*\n", "", text))
    create_example_files(tmp_path)

    load(path)

    assert {name: set(table) for name, table in tomllib.loads(text).items()} == KEYS


def test_commented_defaults_are_the_real_defaults(tmp_path):
    path = tmp_path / "agent.toml"
    path.write_text(starter_file())
    [as_written] = load(path).programs.values()
    defaults = re.sub(r"(?m)^#.*# an example\n", "", starter_file())
    path.write_text(uncommented(defaults))
    [spelled_out] = load(path).programs.values()

    assert spelled_out == as_written


def test_every_section_and_every_key_is_described_above_its_line():
    lines = starter_file().splitlines()

    for number, line in enumerate(lines):
        if re.match(r"\[|#?[a-z_]+ = ", line) and "expert" not in line:
            assert lines[number - 1].startswith("# "), line


def test_the_schema_has_every_section_and_key_each_with_a_description():
    sections = editor_schema()["properties"]

    described = {
        name: set(section.get("properties", EXAMPLES.get(name, ()))) for name, section in sections.items()
    }
    assert described == KEYS
    for section in sections.values():
        assert section["description"]
        for key in section.get("properties", {}).values():
            assert key["description"]


def test_the_schema_forbids_unknown_keys_where_the_file_does():
    schema = editor_schema()

    assert (schema["additionalProperties"], schema["required"]) == (False, ["model"])
    for name, section in schema["properties"].items():
        assert (section.get("additionalProperties") is False) == (name not in EXAMPLES)


def test_the_schema_is_of_draft_7_without_references_and_null():
    for node in nodes(editor_schema()):
        assert not {"$ref", "$defs"} & node.keys()
        assert node.get("type") != "null"
        assert "default" not in node or node["default"] is not None


def test_the_schema_accepts_valid_files():
    sections = editor_schema()["properties"]

    assert sections["model"]["properties"]["provider"]["enum"] == sorted(PROVIDERS)
    assert sections["limits"]["properties"]["max_turns"] | {"description": ""} == {
        "description": "",
        "type": "integer",
        "minimum": 1,
        "maximum": 1 << 53,
        "default": 50,
    }
    assert "fork" in sections["tools"]["properties"]["enabled"]["items"]["enum"]
    assert sections["parameters"]["propertyNames"]["not"]["enum"][0] == "model"
    [path, table] = sections["linked_programs"]["additionalProperties"]["anyOf"]
    assert (path["type"], table["required"]) == ("string", ["path"])
