"""Mistakes in program files: each is reported with its file, its key and the remedy."""

from __future__ import annotations

import os
import pickle

import pytest

from fdstore.agent.program_loader import load
from fdstore.errors import InvalidArgument, InvalidProgram, TargetMissing
from fdstore.tools.catalogue import BUILT_IN

MODEL = '[model]\nname = "claude-x"\n'


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        ("[modell]", "modell", "unknown section (did you mean model?); the sections are: [program], [model]"),
        ("['a b']", "'a b'", "unknown section"),
        (
            "[limits]\nmax_turn = 1",
            "limits.max_turn",
            "unknown key (did you mean max_turns?); the keys are: max_turns, wall_seconds",
        ),
        (
            "[file_descriptor]\npage_size = 1",
            "file_descriptor.page_size",
            "the keys are: enabled, max_direct",
        ),
        ('[linked_programs]\na = { path = "a.toml", x = 1 }', "linked_programs.a.x", "unknown key"),
        ("[program]\nname = 3", "program.name", "must be a string, not an integer"),
        ("[program]\nname = 2020-01-01", "program.name", "must be a string, not a date"),
        ("[tools]\nenabled = 'read_fd'", "tools.enabled", "must be a list, not a string"),
        ("[preload]\nfiles = ['a', 3]", "preload.files[1]", "must be a string, not an integer"),
        ("[prompt]\nsystem = ['a']", "prompt.system", "must be a string, not a list"),
        ("[[limits]]\nmax_turns = 3", "limits", "must be a table"),
        ("[limits]\nmax_turns = 4.0", "limits.max_turns", "must be an integer, not a number"),
        ("[limits]\nmax_turns = true", "limits.max_turns", "must be an integer, not true or false"),
        ("[limits]\ntoken_budget = 'x'", "limits.token_budget", "must be an integer, not a string"),
        ("[limits]\nforks_may_spawn = 1", "limits.forks_may_spawn", "must be true or false, not an integer"),
        ("[file_descriptor]\nmax_read_chars = '9'", "file_descriptor.max_read_chars", "must be an integer"),
        ("[file_descriptor]\nmax_read_chars = 0", "file_descriptor.max_read_chars", "an integer from 1 to"),
        (
            "[file_descriptor]\nenabled = 1",
            "file_descriptor.enabled",
            "must be true or false, not an integer",
        ),
        ("[linked_programs]\na = 3", "linked_programs.a", "must be a path, or a table { path, description }"),
        ("[linked_programs]\na = {}", "linked_programs.a.path", "is required"),
        ("[linked_programs]\na = ''", "linked_programs.a.path", "must be a path"),
        ("[linked_programs]\n'A b' = 'a.toml'", "linked_programs.'A b'", "is not a name; a name is 1-48"),
        ("[preload]\nfiles = ['']", "preload.files", "must be a path"),
        ('[export]\nroot = "a\\u0000b"', "export.root", "must be a path, not empty and without NUL"),
        ("[file_descriptor]\ntool = 3", "file_descriptor.tool", "must be a table"),
        ("[file_descriptor.tool]\na = 3", "file_descriptor.tool.a", "must be a table"),
        ("[file_descriptor.tool.a]\nlines = 3", "file_descriptor.tool.a.lines", "the keys are: inline, max_"),
        (
            "[file_descriptor.tool.a]\ninline = 'no'",
            "file_descriptor.tool.a.inline",
            '\'no\' is not known; it must be "auto" or "always" or "never"',
        ),
        (
            "[file_descriptor.tool.a]\npreview_chars = 9",
            "file_descriptor.tool.a.preview_chars",
            "must be an integer from 100 to",
        ),
        (
            "[file_descriptor.tool.a]\ninline = 'never'\nmax_direct_output_chars = 9",
            "file_descriptor.tool.a.max_direct_output_chars",
            'has no effect with inline = "never"; leave one of them out',
        ),
        (
            "[file_descriptor]\nmax_direct_output_chars = 9\nmax_direct_output_tokens = 9",
            "file_descriptor.max_direct_output_tokens",
            "max_direct_output_chars is given too; keep one of them",
        ),
        ("[file_descriptor]\ncount_tokens = 'len'", "file_descriptor.count_tokens", "unknown key"),
        ("[context]\nclear_at_tokens = -1", "context.clear_at_tokens", "must be an integer from 0 to"),
        ("[context]\nkeep_turns = 0", "context.keep_turns", "must be an integer from 1 to"),
        ("[context]\nclear_to = 1", "context.clear_to", "must be a number above 0 and below 1"),
        ("[context]\nclear_to = nan", "context.clear_to", "must be a number above 0 and below 1"),
        (
            "[context]\nclear_at_tokens = 0\nkeep_turns = 5",
            "context.keep_turns",
            "has no effect with clear_at_tokens = 0",
        ),
        (
            "[context]\nclear_at_tokens = 0\nclear_to = 0.2",
            "context.clear_to",
            "has no effect with clear_at_tokens = 0",
        ),
        ("[context]\nclear_at = 9", "context.clear_at", "unknown key"),
        ("[commands]\nallow = ['grep -n']", "commands.allow", "name it alone, without arguments"),
        ("[commands]\nallow = ['']", "commands.allow", "is not the name of a program"),
    ],
)
def test_a_mistake_is_reported_with_its_key_and_the_allowed_values(load_error, text, key, problem):
    error_key, error_problem = load_error(text)

    assert error_key == key
    assert problem in error_problem


LIMITS = ["max_turns", "wall_seconds", "token_budget", "max_losses", "stream_bytes", "stream_idle_seconds"]
TREE_SIZES = [
    *("tree_depth", "tree_live", "tree_processes", "tree_fds", "tree_bytes"),
    *("tree_token_budget", "tree_model_calls"),
]


@pytest.mark.parametrize("name", LIMITS + TREE_SIZES)
@pytest.mark.parametrize("size", ["0", "-1", "9007199254740993", str(10**30), "true", "'5'", "nan", "inf"])
def test_a_limit_below_1_or_above_2_to_the_53_is_refused(load_error, name, size):
    key, problem = load_error(f"[limits]\n{name} = {size}")

    assert key == f"limits.{name}"
    assert problem.startswith("must be ")


@pytest.mark.parametrize("name", TREE_SIZES)
def test_limits_of_the_tree_are_loaded_as_tree_limits(root, name):
    assert getattr(root(f"[limits]\n{name} = 7").tree_limits, name) == 7


@pytest.mark.parametrize("days", ["-1", "nan", "inf", "'7'", "true"])
def test_a_retention_is_a_number_of_days_from_0_on(load_error, root, days):
    assert root("[limits]\nretention_days = 0.5").tree_limits.retention_days == 0.5

    assert load_error(f"[limits]\nretention_days = {days}")[0] == "limits.retention_days"


@pytest.mark.parametrize("text", ["[program]", "[model]", "[model]\nprovider = 'anthropic'"])
def test_a_model_must_be_named(tmp_path, text):
    path = tmp_path / "agent.toml"
    path.write_text(text)

    with pytest.raises(InvalidProgram) as caught:
        load(path)

    assert caught.value.args == (f"{path}: model.name", "is required")


@pytest.mark.parametrize(
    ("text", "key"), [("name = ' '", "name"), ("name = 'm'\nprovider = 'other'", "provider")]
)
def test_a_model_has_a_name_and_a_known_provider(load_error, text, key):
    assert load_error(f"[model]\n{text}")[0] == f"model.{key}"


@pytest.mark.parametrize("name", ["", "Agent", "a b", "-a", "a\\n", "é", "a.b", "a" * 49, "1٣"])
def test_a_program_is_named_like_a_process(load_error, name):
    key, problem = load_error(f'[program]\nname = "{name}"')

    assert key == "program.name"
    assert "a name is 1-48 of a-z, 0-9, _ and -" in problem


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


@pytest.mark.parametrize("key", ["model", "messages", "system", "tools", "stream"])
def test_a_parameter_that_the_loop_sets_itself_is_refused(load_error, key):
    told, problem = load_error(f"[parameters]\n{key} = 'x'")

    assert told == f"parameters.{key}"
    assert problem.startswith("is set by the agent itself; ")


@pytest.mark.parametrize("value", ["0", "-5", "true", "1.5", "'many'", str(2**53 + 1)])
def test_max_tokens_is_a_whole_number_from_1_on(load_error, value):
    key, problem = load_error(f"[parameters]\nmax_tokens = {value}")

    assert key == "parameters.max_tokens"
    assert problem.startswith("must be an integer")


@pytest.mark.parametrize(
    "value", ["2020-01-01", "[nan]", "{ a = [inf] }", str(10**30), "[" * 40 + "]" * 40, "12:00:00"]
)
def test_a_parameter_that_json_cannot_carry_is_refused(load_error, value):
    key, problem = load_error(f"[parameters]\nmetadata = {value}")

    assert key == "parameters.metadata"
    assert "finite numbers" in problem


@pytest.mark.parametrize("tool", ["read", "Read_fd", "read_fd ", ""])
def test_the_error_for_an_unknown_tool_lists_the_known_ones(load_error, tool):
    key, problem = load_error(f"[tools]\nenabled = ['{tool}']")

    assert key == "tools.enabled"
    similar = " (did you mean read_fd?)" if tool else ""
    assert problem == f"there is no tool '{tool}'{similar}; the tools are: {', '.join(sorted(BUILT_IN))}"


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("[tools]\nenabled = ['wait', 'kill', 'wait']", "tools.enabled"),
        ("[tools]\npython = ['a:f', 'a:f']", "tools.python"),
        ("[preload]\nfiles = ['a', 'a']", "preload.files"),
        ("[commands]\nallow = ['grep', 'grep']", "commands.allow"),
    ],
)
def test_a_duplicate_list_item_is_refused(load_error, text, key):
    told, problem = load_error(text)

    assert told == key
    assert "is listed twice" in problem


@pytest.mark.parametrize("python", [("a:f", "b:f"), ("a:wait",)])
def test_two_tools_cannot_have_one_name(load_error, python):
    key, problem = load_error(f"[tools]\nenabled = ['wait']\npython = {list(python)}")

    assert key == "tools.python"
    assert "two tools are named" in problem


@pytest.mark.parametrize(
    "path", ["", "f", "a.b", ":f", "a:", "a:b:c", "a b:f", "a..b:f", "a:f()", "a-b:f", "a:class", "a:f\\n"]
)
def test_a_python_tool_is_named_as_module_and_function(load_error, path):
    key, problem = load_error(f'[tools]\npython = ["{path}"]')

    assert key == "tools.python"
    assert '"package.module:function"' in problem


def test_a_system_prompt_can_be_set_only_once(load_error):
    key, problem = load_error('[prompt]\nsystem = ""\nsystem_prompt_file = "s.md"')

    assert (key, problem) == ("prompt.system_prompt_file", "system is given too; keep one of them")


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
