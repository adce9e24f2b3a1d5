"""Program files: their contents, the reports of mistakes, and the bundles made from them."""

from __future__ import annotations

import os
import pickle

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from fdstore.agent.program_loader import Bundle, Limits, LinkedProgram, Program, load
from fdstore.errors import InvalidArgument, InvalidProgram, TargetMissing
from fdstore.records import TreeLimits
from fdstore.tools.config import FDConfig

MODEL = '[model]\nname = "claude-x"\n'


@pytest.fixture
def write(tmp_path):
    """Write a file under the test's folder; a program gets a [model] unless it has one."""

    def write(name: str, text: str = ""):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text if "[model]" in text or not name.endswith(".toml") else MODEL + text)
        return path

    return write


@pytest.fixture
def root(write):
    """Load a one-file bundle and return its root program."""

    def root(text: str = "") -> Program:
        bundle = load(write("agent.toml", text))
        return bundle.programs[bundle.root]

    return root


@pytest.fixture
def load_error(write):
    """Return the key and problem of the error for a program file."""

    def load_error(text: str) -> tuple[str, str]:
        path = write("agent.toml", text)
        with pytest.raises(InvalidProgram) as caught:
            load(path)
        return caught.value.argument.removeprefix(str(path)).removeprefix(": "), caught.value.problem

    return load_error


# what a file says


def test_a_file_with_only_a_model_gives_a_program_with_all_defaults(root):
    program = root()

    assert program == Program(name="agent", model="claude-x", parameters={"max_tokens": 8192})
    assert program.limits == Limits(
        max_turns=50,
        wall_seconds=3600,
        token_budget=None,
        max_losses=3,
        forks_may_spawn=False,
        stream_bytes=1 << 30,
        stream_idle_seconds=600,
    )
    assert program.tree_limits == TreeLimits()
    assert program.file_descriptor == FDConfig()
    assert not program.fds_on


def test_every_section_is_loaded_into_the_program(write):
    notes = write("data/notes.md", "n")
    write("expert.toml", '[program]\ndescription = "knows law"')
    path = write(
        "agent.toml",
        """
        [program]
        name = "triage"
        description = "sorts mail"
        [model]
        name = "claude-x"
        provider = "anthropic"
        [prompt]
        system = "Be brief."
        user = "Sort."
        [parameters]
        max_tokens = 100
        thinking = { type = "adaptive" }
        tool_choice = { type = "any" }
        [tools]
        enabled = ["read_fd", "spawn"]
        python = ["mail.box:fetch", "clock:now"]
        [file_descriptor]
        default_page_size = 2000
        [preload]
        files = ["data/notes.md"]
        [linked_programs]
        expert = "expert.toml"
        [export]
        root = "out"
        [commands]
        allow = ["grep", "sort"]
        [limits]
        max_turns = 5
        wall_seconds = 60
        token_budget = 1000
        forks_may_spawn = true
        tree_depth = 3
        retention_days = 0
        """,
    )

    bundle = load(path)

    assert bundle.root == "triage"
    assert bundle.warnings == ()
    assert bundle.programs["triage"] == Program(
        name="triage",
        description="sorts mail",
        model="claude-x",
        system="Be brief.",
        user="Sort.",
        parameters={"max_tokens": 100, "thinking": {"type": "adaptive"}, "tool_choice": {"type": "any"}},
        tools=("read_fd", "spawn"),
        python=("mail.box:fetch", "clock:now"),
        file_descriptor=FDConfig(default_page_size=2000),
        preload=(str(notes),),
        linked={"expert": LinkedProgram(key="expert", description="knows law")},
        export_root="out",
        commands=("grep", "sort"),
        limits=Limits(max_turns=5, wall_seconds=60, token_budget=1000, forks_may_spawn=True),
        tree_limits=TreeLimits(tree_depth=3, retention_days=0),
    )


def test_the_system_prompt_may_be_a_file_next_to_the_program_and_is_kept_exactly(write):
    path = write("sub/agent.toml", '[prompt]\nsystem_prompt_file = "prompts/system.md"')
    prompt = write("sub/prompts/system.md")
    prompt.write_bytes("\ufeffDo.\r\nGrüße\n".encode())

    assert load(path).programs["agent"].system == "\ufeffDo.\r\nGrüße\n"


def test_paths_are_relative_to_the_file_in_any_working_directory(write, tmp_path, monkeypatch):
    write("sub/notes.md")
    write("sub/agent.toml", '[preload]\nfiles = ["notes.md"]')
    monkeypatch.chdir(tmp_path)

    [preload] = load("sub/agent.toml").programs["agent"].preload

    assert preload == str(tmp_path / "sub" / "notes.md")


def test_directories_are_relative_to_the_file_but_the_export_root_to_the_working_directory(
    write, tmp_path, monkeypatch
):
    (tmp_path / "sub" / "lib").mkdir(parents=True)
    write("sub/agent.toml", '[tools]\npath = "lib"\n[preload]\nroot = "."\n[export]\nroot = "out"')
    monkeypatch.chdir(tmp_path)

    bundle = load("sub/agent.toml")
    program = bundle.programs["agent"]
    here = bundle.exporting_below("/home/ann").programs["agent"]

    assert program.tools_path == str(tmp_path / "sub" / "lib")
    assert program.preload_root == str(tmp_path / "sub")
    assert (program.export_root, here.export_root) == ("out", "/home/ann/out")


@pytest.mark.parametrize(("section", "key"), [("tools", "path"), ("preload", "root")])
def test_a_path_that_is_not_a_directory_is_reported_with_file_and_key(write, section, key):
    write("notes.md")
    path = write("agent.toml", f'[{section}]\n{key} = "notes.md"')

    with pytest.raises(
        InvalidProgram, match=rf"agent\.toml: {section}\.{key}: '.*notes\.md' is not a directory"
    ):
        load(path)


@pytest.mark.timeout(20)
def test_a_preload_that_is_not_a_regular_file_is_reported_on_loading(write, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    path = write("agent.toml", '[preload]\nfiles = ["fifo"]')

    with pytest.raises(InvalidProgram, match="is not a regular file"):
        load(path)


def test_a_missing_export_directory_is_a_warning(write):
    without = load(write("agent.toml", '[tools]\nenabled = ["fd_to_file"]')).warnings
    named = load(write("agent.toml", '[tools]\nenabled = ["fd_to_file"]\n[export]\nroot = "out"')).warnings

    assert "[export] root names no directory to write below: there is no such tool" in without[0]
    assert named == ()


# descriptors on and off


@pytest.mark.parametrize(
    ("text", "on", "tools"),
    [
        ("", False, ()),
        ('[tools]\nenabled = ["close_fd"]', True, ("close_fd",)),
        ('[tools]\nenabled = ["wait"]', False, ("wait",)),
        ("[file_descriptor]\nenabled = true", True, ("read_fd",)),
        ('[tools]\nenabled = ["wait"]\n[file_descriptor]\nenabled = true', True, ("wait", "read_fd")),
        ('[tools]\nenabled = ["search_fd"]\n[file_descriptor]\nenabled = true', True, ("search_fd",)),
        ("[file_descriptor]\nenabled = false", False, ()),
    ],
)
def test_descriptors_are_on_when_enabled_or_needed_by_a_tool(root, text, on, tools):
    program = root(text)

    assert program.fds_on is on
    assert program.tools == tools


def test_descriptors_cannot_be_off_with_a_tool_that_needs_them(load_error):
    key, problem = load_error('[tools]\nenabled = ["wait", "read_fd"]\n[file_descriptor]\nenabled = false')

    assert key == "file_descriptor.enabled"
    assert "[tools] enabled has read_fd;" in problem


@pytest.mark.parametrize("switch", ["", "enabled = false\n"])
def test_descriptor_settings_are_a_warning_while_descriptors_are_off(write, switch):
    path = write("agent.toml", f"[file_descriptor]\n{switch}max_read_chars = 10")

    [warning] = load(path).warnings

    assert warning.startswith(f"{path}: [file_descriptor] sets max_read_chars, but descriptors are off")


def test_turning_descriptors_off_explicitly_gives_no_warning(write):
    assert load(write("agent.toml", "[file_descriptor]\nenabled = false")).warnings == ()


@pytest.mark.parametrize(("tool", "lacks"), [("spawn", "linked_programs"), ("pipe", "commands")])
def test_a_tool_with_nothing_to_run_is_a_warning(write, tool, lacks):
    [warning] = load(write("agent.toml", f'[tools]\nenabled = ["{tool}"]')).warnings

    assert f"enables {tool}, but [{lacks}]" in warning


# mistakes


@pytest.mark.parametrize(
    ("text", "key", "problem"),
    [
        ("[modell]", "modell", "unknown section; the sections are: [program], [model]"),
        ("['a b']", "'a b'", "unknown section"),
        ("[limits]\nmax_turn = 1", "limits.max_turn", "unknown key; the keys are: max_turns, wall_seconds"),
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
        ("[commands]\nallow = ['grep -n']", "commands.allow", "name it alone, without arguments"),
        ("[commands]\nallow = ['']", "commands.allow", "is not the name of a program"),
    ],
)
def test_a_mistake_is_reported_with_its_key_and_the_allowed_values(load_error, text, key, problem):
    error_key, error_problem = load_error(text)

    assert error_key == key
    assert problem in error_problem


LIMITS = ["max_turns", "wall_seconds", "token_budget", "max_losses", "stream_bytes", "stream_idle_seconds"]
TREE_SIZES = ["tree_depth", "tree_live", "tree_processes", "tree_fds", "tree_bytes"]


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
    assert problem == (
        f"there is no tool '{tool}'; the tools are: close_fd, fd_to_file, fork, kill, list_fds, pipe, "
        "read_fd, search_fd, spawn, wait, write_fd"
    )


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


# links


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
    assert Bundle.from_json(bundle.to_json()) == bundle


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


# bundles


names = st.from_regex(r"[a-z0-9][a-z0-9_-]{0,47}", fullmatch=True)
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
sizes = st.integers(1, 1 << 53)
json_values = st.recursive(
    st.booleans()
    | st.integers(-(1 << 53), 1 << 53)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=5,
)


@st.composite
def bundles(draw) -> Bundle:
    keys = draw(st.lists(names, min_size=1, max_size=4, unique=True))
    links = st.builds(LinkedProgram, key=st.sampled_from(keys), description=texts)
    programs = {
        key: Program(
            name=key,
            model=draw(texts),
            description=draw(texts),
            system=draw(texts),
            user=draw(st.none() | texts),
            parameters=draw(st.dictionaries(texts, json_values, max_size=3)),
            tools=tuple(draw(st.lists(st.sampled_from(["read_fd", "spawn"]), unique=True))),
            file_descriptor=FDConfig(enabled=draw(st.none() | st.booleans()), max_read_chars=draw(sizes)),
            preload=tuple(draw(st.lists(texts, max_size=2))),
            linked=draw(st.dictionaries(names, links, max_size=3)),
            export_root=draw(st.none() | texts),
            limits=Limits(token_budget=draw(st.none() | sizes), wall_seconds=draw(st.integers(1, 9))),
            tree_limits=TreeLimits(retention_days=draw(st.integers(0, 99) | st.floats(0, 99))),
        )
        for key in keys
    }
    return Bundle(root=draw(st.sampled_from(keys)), programs=programs)


@given(bundles())
def test_a_bundle_survives_a_json_round_trip(bundle):
    again = Bundle.from_json(bundle.to_json())

    assert again == bundle
    assert [list(p.linked) for p in again.programs.values()] == [
        list(p.linked) for p in bundle.programs.values()
    ]
    assert again.digest() == bundle.digest()


def test_a_digest_is_8_hex_digits_and_changes_with_the_content(write):
    path = write("agent.toml")
    before = load(path).digest()
    write("agent.toml", "[limits]\nretention_days = 7\nwall_seconds = 3600\nmax_turns = 50")
    spelled_out = load(path).digest()
    write("agent.toml", "[limits]\nmax_turns = 51")
    changed = load(path).digest()

    assert len(before) == 8
    assert set(before) <= set("0123456789abcdef")
    assert before == spelled_out != changed


STORED = """
{"root":"a","programs":{"a":{"name":"a","model":"m","provider":"anthropic","give_up_seconds":600.0,"description":"d",
"system":"s","user":"u","parameters":{"max_tokens":7},"tools":["read_fd","spawn"],"python":["m:f"],
"file_descriptor":{"enabled":null,"max_direct_output_chars":8000,"default_page_size":4000,"max_input_chars":8000,
"page_user_input":true,"enable_references":true,"json_pretty_print":false,"max_read_chars":9,
"max_expand_chars":1000000},"preload":["/n"],"preload_root":"/p","tools_path":"/t",
"linked":{"b":{"key":"a","description":"x"}},"export_root":"out","commands":["grep"],"limits":{"max_turns":2,
"wall_seconds":3600.0,"token_budget":null,"max_losses":3,"forks_may_spawn":false,"stream_bytes":1073741824,
"stream_idle_seconds":600.0},"tree_limits":{"tree_depth":8,"tree_live":64,"tree_processes":1000,"tree_fds":10000,
"tree_bytes":4294967296,"tree_export_bytes":1073741824,"tree_model_calls_per_day":20000,
"tree_tokens_per_day":1000000000,"retention_days":1}}}}
"""
"""A bundle as the first version stored it."""


def test_a_bundle_of_format_version_1_loads_and_keeps_its_text_and_digest():
    bundle = Bundle.from_json(STORED)

    assert bundle.to_json() == STORED.replace("\n", "").replace(
        '"retention_days":1}', '"retention_days":1.0}'
    )
    assert bundle.digest() == "9ec74023"


def test_warnings_are_neither_stored_nor_digested():
    quiet = Bundle(root="a", programs={"a": Program(name="a", model="m")})
    warned = msgspec.structs.replace(quiet, warnings=("look",))

    assert warned.to_json() == quiet.to_json()
    assert warned.digest() == quiet.digest()
    assert Bundle.from_json(warned.to_json()).warnings == ()


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[]",
        "{",
        '{"root": "a"}',
        '{"root": "a", "programs": {}}',
        '{"root": "a", "programs": {"a": {"name": "a", "model": "m", "linked": {"b": {"key": "b"}}}}}',
        '{"root": "a", "programs": {"a": {"name": "a", "model": "m", "limits": {"max_turns": 0}}}}',
        '{"root": "a", "programs": {"a": {"name": "a", "model": "m", "parameters": ' + "[" * 9999,
        b'{"root": "\xff"}',
    ],
)
def test_text_that_is_not_a_bundle_is_refused(text):
    with pytest.raises(InvalidProgram, match="bundle"):
        Bundle.from_json(text)
