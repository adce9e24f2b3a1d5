"""Program files: what they say, and the warnings about it."""

from __future__ import annotations

import os

import pytest

from fdstore.agents.loop.program_loader import Limits, LinkedProgram, Program, load
from fdstore.errors import InvalidProgram
from fdstore.model.records import TreeLimits
from fdstore.results.config import FDConfig
from tests.waiting import stretched

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


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ("", 100_000),
        ("context_window = 32_000", 22_400),
        ("context_window = 1", 1),
        ("context_window = 1_000_000", 100_000),
        ("context_window = 32_000\n[context]\nclear_at_tokens = 9_000", 9_000),
        ("context_window = 32_000\n[context]\nclear_at_tokens = 0", 0),
    ],
)
def test_results_are_cleared_before_the_context_of_the_model_is_full(write, given, expected):
    path = write("p.toml", f'[model]\nname = "m"\n{given}\n')

    assert load(path).programs["p"].clearing.clear_at_tokens == expected


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


@pytest.mark.timeout(stretched(20))
def test_a_preload_that_is_not_a_regular_file_is_reported_on_loading(write, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    path = write("agent.toml", '[preload]\nfiles = ["fifo"]')

    with pytest.raises(InvalidProgram, match="is not a regular file"):
        load(path)


def test_a_missing_export_directory_is_a_warning(write):
    without = load(write("agent.toml", '[tools]\nenabled = ["fd_to_file"]')).warnings
    named = load(write("agent.toml", '[tools]\nenabled = ["fd_to_file"]\n[export]\nroot = "out"')).warnings

    assert "it needs a directory to write below: set [export] root" in without[0]
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


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_program_says_whether_its_tools_are_deferred(write, value):
    model = f'[model]\nname = "claude-x"\ndeferred_tools = {value}\n'
    path = write("agent.toml", f"{model}[tools]\npython = []")

    bundle = load(path)

    assert bundle.programs["agent"].deferred_tools == (value == "true")
    assert bundle.warnings == ()


def test_deferring_tools_that_are_offered_from_the_start_is_a_warning(write):
    model = '[model]\nname = "claude-x"\ndeferred_tools = true\n'
    never = '[tools]\nenabled = ["read_fd"]\n[file_descriptor]\nhold_back_tools = false\n'

    [warning] = load(write("agent.toml", model + never)).warnings

    assert "[model] sets deferred_tools = true, but [file_descriptor] hold_back_tools = false" in warning


@pytest.mark.parametrize(("tool", "lacks"), [("spawn", "linked_programs"), ("pipe", "commands")])
def test_a_tool_with_nothing_to_run_is_a_warning(write, tool, lacks):
    [warning] = load(write("agent.toml", f'[tools]\nenabled = ["{tool}"]')).warnings

    assert f"enables {tool}, but [{lacks}]" in warning
