"""Mistakes in program files: each is reported with its file, its key and the remedy."""

from __future__ import annotations

import os
import pickle

import pytest

from fdstore.agents.loop.program_loader import load
from fdstore.errors import InvalidArgument, InvalidProgram, TargetMissing
from fdstore.model.records import TreeLimits
from fdstore.tools.catalogue import BUILT_IN

MODEL = '[model]\nname = "claude-x"\n'
NOT_A_NAME = "a name is 1-48 of a-z, 0-9, _ and -"
NOT_A_FUNCTION = 'is not of the form "package.module:function"'
NO_SUCH_TOOL = f"the tools are: {', '.join(sorted(BUILT_IN))}"
NO_CLEARING = "has no effect with clear_at_tokens = 0"

MISTAKES = {
    "program": [
        ("name = 3", "name", "must be a string, not an integer"),
        ("name = 2020-01-01", "name", "must be a string, not a date"),
        *(
            (f'name = "{name}"', "name", NOT_A_NAME)
            for name in ("", "Agent", "a b", "-a", "a\\n", "é", "a.b", "a" * 49, "1٣")
        ),
    ],
    "model": [
        ("name = ' '", "name", "must be the name of a model"),
        ("name = 3", "name", "must be a string, not an integer"),
        ("name = 'm'\nprovider = 'other'", "provider", "'other' is not known; it must be \"anthropic\""),
        ("provider = 'a - at `$.b`'", "provider", "'a - at `$.b`' is not known; it must be \"anthropic\""),
        ("provider = 3", "provider", "must be a string, not an integer"),
        ("'x` - at `$.limits' = 3", "'x` - at `$.limits'", "unknown key; the keys are: name, provider"),
    ],
    "prompt": [
        ("system = ['a']", "system", "must be a string, not a list"),
        ('system = ""\nsystem_prompt_file = "s.md"', "system_prompt_file", "system is given too; keep one"),
    ],
    "parameters": [
        *((f"{key} = 1", key, "is set by") for key in ("model", "messages", "system", "tools", "stream")),
        *(
            (f"max_tokens = {value}", "max_tokens", "must be an integer")
            for value in ("0", "-5", "true", "1.5", "'many'", 2**53 + 1)
        ),
        *(
            (f"metadata = {value}", "metadata", "finite numbers")
            for value in ("2020-01-01", "[nan]", "{ a = [inf] }", 10**30, "[" * 40 + "]" * 40, "12:00:00")
        ),
    ],
    "tools": [
        ("enabled = 'read_fd'", "enabled", "must be a list, not a string"),
        ("enabled = ['']", "enabled", f"there is no tool ''; {NO_SUCH_TOOL}"),
        *(
            (f"enabled = ['{tool}']", "enabled", f"'{tool}' (did you mean read_fd?); {NO_SUCH_TOOL}")
            for tool in ("read", "Read_fd", "read_fd ")
        ),
        ("enabled = ['wait', 'kill', 'wait']", "enabled", "'wait' is listed twice"),
        ("python = ['a:f', 'a:f']", "python", "'a:f' is listed twice"),
        ("python = ['a:f', 'b:f']", "python", "two tools are named 'f'"),
        ("enabled = ['wait']\npython = ['a:wait']", "python", "two tools are named 'wait'"),
        *(
            (f'python = ["{path}"]', "python", NOT_A_FUNCTION)
            for path in ("", "f", "a.b", ":f", "a:", "a:b:c", "a b:f", "a..b:f", "a:f()", "a-b:f", "a:class")
        ),
        ('python = ["a:f\\n"]', "python", NOT_A_FUNCTION),
    ],
    "file_descriptor": [
        ("page_size = 1", "page_size", "the keys are: enabled, max_direct"),
        ("max_read_chars = '9'", "max_read_chars", "must be an integer"),
        ("max_read_chars = 0", "max_read_chars", "an integer from 1 to"),
        ("enabled = 1", "enabled", "must be true or false, not an integer"),
        (
            "max_direct_output_chars = 9\nmax_direct_output_tokens = 9",
            "max_direct_output_tokens",
            "max_direct_output_chars is given too; keep one of them",
        ),
        ("count_tokens = 'len'", "count_tokens", "unknown key"),
        ("tool = 3", "tool", "must be a table"),
        ("tool.a = 3", "tool.a", "must be a table"),
        ("tool.a.lines = 3", "tool.a.lines", "the keys are: inline, max_"),
        ("tool.a.inline = 'no'", "tool.a.inline", 'it must be "auto" or "always" or "never"'),
        ("tool.a.preview_chars = 9", "tool.a.preview_chars", "must be an integer from 100 to"),
        (
            "tool.a = { inline = 'never', max_direct_output_chars = 9 }",
            "tool.a.max_direct_output_chars",
            'has no effect with inline = "never"; leave one of them out',
        ),
    ],
    "preload": [
        ("files = ['a', 3]", "files[1]", "must be a string, not an integer"),
        ("files = ['']", "files", "must be a path"),
        ("files = ['a', 'a']", "files", "'a' is listed twice"),
    ],
    "linked_programs": [
        ('a = { path = "a.toml", x = 1 }', "a.x", "unknown key"),
        ("a = 3", "a", "must be a path, or a table { path, description }"),
        ("a = {}", "a.path", "is required"),
        ("a = ''", "a.path", "must be a path"),
        ("a = 'a.toml'\nb = { path = 'a.toml' }\nc = { path = 3 }", "c.path", "must be a string"),
        ("'A b' = 'a.toml'", "'A b'", f"is not a name; {NOT_A_NAME}"),
    ],
    "export": [('root = "a\\u0000b"', "root", "must be a path, not empty and without NUL")],
    "context": [
        ("clear_at_tokens = -1", "clear_at_tokens", "must be an integer from 0 to"),
        ("keep_turns = 0", "keep_turns", "must be an integer from 1 to"),
        ("clear_to = 1", "clear_to", "must be a number above 0 and below 1"),
        ("clear_to = nan", "clear_to", "must be a number above 0 and below 1"),
        ("clear_at_tokens = 0\nkeep_turns = 5", "keep_turns", NO_CLEARING),
        ("clear_at_tokens = 0\nclear_to = 0.2", "clear_to", NO_CLEARING),
        ("clear_at = 9", "clear_at", "unknown key"),
    ],
    "commands": [
        ("allow = ['grep -n']", "allow", "name it alone, without arguments"),
        ("allow = ['']", "allow", "is not the name of a program"),
        ("allow = ['/bin/cat']", "allow", "'/bin/cat' is a path; name the program alone"),
        ("allow = ['grep', 'grep']", "allow", "'grep' is listed twice"),
    ],
    "limits": [
        ("max_turn = 1", "max_turn", "unknown key (did you mean max_turns?); the keys are: max_turns, wall"),
        ("max_turns = 4.0", "max_turns", "must be an integer, not a number"),
        ("max_turns = true", "max_turns", "must be an integer, not true or false"),
        ("token_budget = 'x'", "token_budget", "must be an integer, not a string"),
        ("forks_may_spawn = 1", "forks_may_spawn", "must be true or false, not an integer"),
        *(
            (f"retention_days = {days}", "retention_days", "must be ")
            for days in ("-1", "nan", "inf", "'7'", "true")
        ),
    ],
}
"""By section: what is written there, the key that the error names, and what it says."""


@pytest.mark.parametrize(
    ("section", "text", "key", "problem"),
    [(section, *mistake) for section, mistakes in MISTAKES.items() for mistake in mistakes],
)
def test_a_mistake_is_reported_with_its_key_and_the_remedy(load_error, section, text, key, problem):
    error_key, error_problem = load_error(f"[{section}]\n{text}")

    assert error_key == f"{section}.{key}"
    assert problem in error_problem


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        ("[modell]", "modell", "unknown section (did you mean model?); the sections are: [program], [model]"),
        ("['a b']", "'a b'", "unknown section"),
        ("[[limits]]\nmax_turns = 3", "limits", "must be a table"),
    ],
)
def test_a_wrong_section_is_named(load_error, text, key, problem):
    error_key, error_problem = load_error(text)

    assert error_key == key
    assert problem in error_problem


LIMITS = ["max_turns", "wall_seconds", "token_budget", "max_losses", "stream_bytes", "stream_idle_seconds"]
TREE_SIZES = [name for name in TreeLimits.__struct_fields__ if name.startswith("tree_")]


@pytest.mark.parametrize("name", LIMITS + TREE_SIZES)
@pytest.mark.parametrize("size", ["0", "-1", "9007199254740993", str(10**30), "true", "'5'", "nan", "inf"])
def test_a_limit_below_1_or_above_2_to_the_53_is_refused(load_error, name, size):
    key, problem = load_error(f"[limits]\n{name} = {size}")

    assert key == f"limits.{name}"
    assert problem.startswith("must be ")


@pytest.mark.parametrize("name", [*TREE_SIZES, "retention_days"])
def test_limits_of_the_tree_are_loaded_as_tree_limits(root, name):
    assert getattr(root(f"[limits]\n{name} = 7").tree_limits, name) == 7


@pytest.mark.parametrize("text", ["[program]", "[model]", "[model]\nprovider = 'anthropic'"])
def test_a_model_must_be_named(tmp_path, text):
    path = tmp_path / "agent.toml"
    path.write_text(text)

    with pytest.raises(InvalidProgram) as caught:
        load(path)

    assert caught.value.args == (f"{path}: model.name", "is required")


@pytest.mark.parametrize("name", ["a", "0", "a-b_c9", "a" * 48])
def test_a_valid_name_is_accepted(root, name):
    assert root(f'[program]\nname = "{name}"').name == name


def test_a_file_whose_name_is_not_a_valid_program_name_must_set_one(write):
    path = write("My Agent.toml")
    named = write("My Other.toml", '[program]\nname = "other"')

    assert load(named).root == "other"
    with pytest.raises(
        InvalidProgram, match=r"program\.name: is missing, and the file's own name 'My Agent'"
    ):
        load(path)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[prompt]\nsystem_prompt_file = '{}'", "prompt.system_prompt_file"),
        ("[preload]\nfiles = ['{}']", "preload.files"),
        ("[linked_programs]\nexpert = '{}'", "linked_programs.expert"),
    ],
)
@pytest.mark.parametrize(
    ("name", "problem"), [("absent", "does not exist"), ("sub", "is a directory; name a file")]
)
def test_a_file_named_by_a_program_must_exist(load_error, tmp_path, text, key, name, problem):
    (tmp_path / "sub").mkdir()

    error_key, told = load_error(text.format(name))

    assert error_key == key
    assert told == f"'{tmp_path / name}' {problem}"


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("a = 1\nb = \n", "is not TOML: Invalid value (at line 2, column 5)"),
        ("a = 1\na = 2\n", "is not TOML: Cannot overwrite a value"),
        ("a = " + "9" * 5000, "is not TOML: Exceeds the limit"),
        ("a = " + "[" * 5000, "is nested too deep"),
    ],
)
def test_invalid_toml_is_reported_with_its_line(tmp_path, text, problem):
    path = tmp_path / "agent.toml"
    path.write_text(text)

    with pytest.raises(InvalidProgram) as caught:
        load(path)

    assert caught.value.argument == str(path)
    assert caught.value.problem.startswith(problem)


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("", None),
        ("[prompt]\nsystem_prompt_file = 'latin'", "prompt.system_prompt_file"),
        ("[linked_programs]\nexpert = 'latin'", "linked_programs.expert"),
    ],
)
def test_invalid_utf8_is_reported_with_its_byte_offset(write, tmp_path, text, key):
    latin = tmp_path / "latin"
    latin.write_bytes(b"# gr\xfc\xdfe")
    path = write("agent.toml", text) if key else latin

    with pytest.raises(InvalidProgram, match="is not UTF-8: see byte 5") as caught:
        load(path)

    assert caught.value.argument == (f"{path}: {key}" if key else str(latin))


def test_a_missing_root_file_is_reported_with_advice(tmp_path):
    with pytest.raises(TargetMissing, match="give the path of a program file") as caught:
        load(tmp_path / "agent.toml")

    assert caught.value.path == str(tmp_path / "agent.toml")


def test_a_directory_is_not_a_program(tmp_path):
    with pytest.raises(InvalidProgram, match="is a directory; name a file"):
        load(tmp_path)


def test_a_path_through_a_file_cannot_be_read(write):
    with pytest.raises(InvalidProgram, match="cannot be read: Not a directory"):
        load(write("agent.toml") / "agent.toml")


def test_a_circular_symlink_cannot_be_read(tmp_path):
    (tmp_path / "agent.toml").symlink_to(tmp_path / "agent.toml")

    with pytest.raises(InvalidProgram, match="cannot be read: Too many levels of symbolic links"):
        load(tmp_path / "agent.toml")


@pytest.mark.parametrize("path", ["", "a\0b"])
def test_an_impossible_path_is_an_invalid_argument(path):
    with pytest.raises(InvalidArgument, match="path: must be a path"):
        load(path)


def test_a_preload_in_a_folder_that_json_cannot_name_is_refused(tmp_path):
    folder = os.fsdecode(os.fsencode(tmp_path) + b"/\xff")
    os.mkdir(folder)
    path = f"{folder}/agent.toml"
    with open(path, "w") as file:
        file.write(MODEL + "[preload]\nfiles = ['agent.toml']")

    with pytest.raises(InvalidProgram, match="not UTF-8 and cannot be stored"):
        load(path)


def test_a_program_error_survives_pickling_and_names_file_key_and_problem(write):
    path = write("agent.toml", "[limits]\nmax_turns = 0")

    with pytest.raises(InvalidProgram) as caught:
        load(path)

    assert (
        str(pickle.loads(pickle.dumps(caught.value))) == f"{path}: limits.max_turns: must be an integer >= 1"
    )
    assert caught.value.type == "invalid_argument"
