"""The Struct of a program file: any value at a key gives a program or an error that names the key."""

from __future__ import annotations

import json
import re
from datetime import date, datetime, time

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore.agents.loop.program_file import LinkedEntry, ProgramFile
from fdstore.agents.loop.program_limits import Limits, LimitsSection
from fdstore.agents.loop.program_loader import Program, load
from fdstore.errors import InvalidProgram
from fdstore.model.records import TreeLimits
from fdstore.results.config import FDConfig
from tests.properties import examples
from tests.thorough import sample

SECTIONS = {field.name: field.type for field in msgspec.structs.fields(ProgramFile)}
KEYS = [
    (name, key) for name, kind in SECTIONS.items() if isinstance(kind, type) for key in kind.__struct_fields__
] + [
    ("parameters", "max_tokens"),
    ("parameters", "metadata"),
    ("linked_programs", "expert"),
]


def toml(value: object) -> str:
    """`value` as TOML."""
    match value:
        case bool():
            return str(value).lower()
        case int() | float():
            return str(value)
        case str():
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case date() | time():
            return value.isoformat()
        case list():
            return f"[{', '.join(map(toml, value))}]"
        case dict():
            return f"{{ {', '.join(f'{toml(key)} = {toml(item)}' for key, item in value.items())} }}"
    raise TypeError(value)


texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20) | st.sampled_from(
    ["", "a", "agent.toml", "x - at `$.limits`", "read_fd", "m:f", "anthropic", "grep -n", "path"]
)
values = st.recursive(
    st.booleans()
    | st.integers(-(10**30), 10**30)
    | st.integers(-2, 5)
    | st.floats()
    | texts
    | st.dates()
    | st.times()
    | st.datetimes(min_value=datetime(1, 1, 1)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)


def program_or_key(path, text: str) -> Program | str:
    """Return the program of a file, or the key that its error names."""
    path.write_text(text, "utf-8")
    try:
        bundle = load(path)
    except InvalidProgram as error:
        return error.argument.removeprefix(f"{path}: ")
    return bundle.programs[bundle.root]


@pytest.fixture
def path(tmp_path):
    return tmp_path / "agent.toml"


@pytest.mark.parametrize(("section", "key"), sample(KEYS, 20, "other keys"))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(value=values)
def test_any_value_at_any_key_gives_a_program_or_an_error_that_names_the_key(path, section, key, value):
    others = {"model": {"name": "m"}} if (section, key) != ("model", "name") else {}
    tables = others | {section: others.get(section, {}) | {key: value}}

    found = program_or_key(path, "".join(f"{name} = {toml(table)}\n" for name, table in tables.items()))

    assert isinstance(found, Program) or found.startswith(f"{section}.{key}")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(section=st.sampled_from([*SECTIONS, "other"]), value=values)
def test_any_value_in_place_of_a_section_is_a_program_or_an_error_in_that_section(path, section, value):
    others = {} if section == "model" else {"model": {"name": "m"}}

    found = program_or_key(
        path, "".join(f"{name} = {toml(each)}\n" for name, each in (others | {section: value}).items())
    )

    assert isinstance(found, Program) or found.startswith(section)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(section=st.sampled_from([*SECTIONS]), key=texts.filter(bool))
def test_an_unknown_key_is_named_and_the_known_keys_are_listed(path, section, key):
    kind = SECTIONS[section]
    if not isinstance(kind, type) or key in kind.__struct_fields__:
        return
    model = "" if section == "model" else 'model = { name = "m" }\n'
    path.write_text(f"{model}{section} = {toml({key: 1})}", "utf-8")

    with pytest.raises(InvalidProgram) as caught:
        load(path)

    assert caught.value.argument.startswith(f"{path}: {section}.")
    said, _, keys = caught.value.problem.partition("; ")
    assert said == "unknown key" or re.fullmatch(r"unknown key \(did you mean \w+\?\)", said)
    assert keys == f"the keys are: {', '.join(kind.__struct_fields__)}"


def test_no_section_or_link_accepts_an_unknown_key():
    for kind in (ProgramFile, LinkedEntry, FDConfig, *SECTIONS.values()):
        assert not isinstance(kind, type) or kind.__struct_config__.forbid_unknown_fields


def test_the_limits_section_has_the_limits_of_processes_and_trees():
    of_file = LimitsSection()

    assert (of_file.of_process, of_file.of_tree) == (Limits(), TreeLimits())
    # ceilings of operators, which programs set in [python]
    of_tree = [name for name in TreeLimits.__struct_fields__ if not name.startswith("python_")]
    assert LimitsSection.__struct_fields__ == (*Limits.__struct_fields__, *of_tree)
