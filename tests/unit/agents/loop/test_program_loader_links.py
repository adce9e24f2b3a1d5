"""Program files that link to each other."""

from __future__ import annotations

import pytest

from fdstore.agents.loop.program_loader import Bundle, load
from fdstore.errors import InvalidProgram


def test_two_programs_that_link_to_each_other_are_read_once_each(write):
    write("expert.toml", '[linked_programs]\nboss = "agent.toml"')
    path = write("agent.toml", '[linked_programs]\nexpert = "expert.toml"\nself = "./agent.toml"')

    bundle = load(path)

    assert list(bundle.programs) == ["agent", "expert"]
    assert {alias: link.key for alias, link in bundle.programs["agent"].linked.items()} == {
        "expert": "expert",
        "self": "agent",
    }
    assert bundle.programs["expert"].linked["boss"].key == "agent"
    assert Bundle.from_json(bundle.json) == bundle


def test_a_file_reached_by_two_paths_is_one_program(write, tmp_path):
    write("expert.toml")
    (tmp_path / "other.toml").symlink_to("expert.toml")
    path = write("agent.toml", f'[linked_programs]\na = "other.toml"\nb = "../{tmp_path.name}/expert.toml"')

    linked = load(path).programs["agent"].linked

    assert linked["a"].key == linked["b"].key


def test_different_files_with_one_name_get_numbers(write):
    write("a/helper.toml")
    write("b/helper.toml", '[prompt]\nsystem = "b"')
    write("c/x.toml", '[program]\nname = "helper"\n[prompt]\nsystem = "c"')
    path = write(
        "agent.toml", '[linked_programs]\none = "a/helper.toml"\ntwo = "b/helper.toml"\nthree = "c/x.toml"'
    )

    bundle = load(path)

    assert [link.key for link in bundle.programs["agent"].linked.values()] == [
        "helper",
        "helper-2",
        "helper-3",
    ]
    assert bundle.programs["helper-3"].system == "c"
    assert bundle.programs["helper-3"].name == "helper-3"


def test_a_numbered_name_is_still_a_valid_name(write):
    long = "a" * 48
    write("b.toml", f'[program]\nname = "{long}"')
    path = write("agent.toml", f'[program]\nname = "{long}"\n[linked_programs]\nb = "b.toml"')

    assert list(load(path).programs) == [long, "a" * 46 + "-2"]


def test_the_description_of_a_linked_program_is_used_unless_the_link_sets_one(write):
    write("expert.toml", '[program]\ndescription = "own"')
    path = write(
        "agent.toml",
        '[linked_programs]\na = "expert.toml"\nb = { path = "expert.toml", description = "given" }',
    )

    linked = load(path).programs["agent"].linked

    assert (linked["a"].description, linked["b"].description) == ("own", "given")


def test_a_mistake_in_a_linked_file_names_that_file(write):
    expert = write("sub/expert.toml", "[limits]\nmax_turns = 0")
    path = write("agent.toml", '[linked_programs]\nexpert = "sub/expert.toml"')

    with pytest.raises(InvalidProgram) as caught:
        load(path)

    assert caught.value.argument == f"{expert}: limits.max_turns"


def test_links_are_relative_to_the_file_that_contains_them(write):
    write("sub/deep/leaf.toml")
    write("sub/expert.toml", '[linked_programs]\nleaf = "deep/leaf.toml"')
    path = write("agent.toml", '[linked_programs]\nexpert = "sub/expert.toml"')

    assert list(load(path).programs) == ["agent", "expert", "leaf"]
