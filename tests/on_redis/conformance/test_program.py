"""The program file, section by section: the prompt, tools and limits of its agent."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import load
from fdstore.client import Store
from fdstore.model.records import TreeLimits
from fdstore.testing import Request, call, say
from tests.elements import elements, only
from tests.on_redis.running_agents import Agents, running

Play = Callable[..., Agents]
MODEL = '[model]\nname = "claude-x"\n'


@pytest.fixture
def play(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Play]:
    """`play(toml, script, query)`: an agent of this program file, run to its end where only the store
    is left: its file and those that it names are gone by then."""
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "agent").mkdir()
    with ExitStack() as stack:

        def played(toml: str, script: Any, query: str | None = "Go.", **files: str) -> Agents:
            agents = stack.enter_context(running(store, script, tmp_path))
            (tmp_path / "agent" / "solo.toml").write_text(toml)
            for name, text in files.items():
                (tmp_path / "agent" / f"{name}.toml").write_text(text)
            bundle = load(tmp_path / "agent" / "solo.toml")
            launch_root(store, bundle, query, "solo")
            for path in (tmp_path / "agent").iterdir():
                path.unlink()
            agents.run_all("solo")
            return agents

        yield played


def first_request(agents: Agents) -> Request:
    return agents.model.requests[0]


def test_requests_use_the_model_and_prompt_of_the_program(play: Play) -> None:
    toml = '[model]\nname = "claude-x"\n[prompt]\nsystem = "You count."\nuser = "Count to 3."\n'

    request = first_request(play(toml, [say("1 2 3")], None))

    assert (request.raw["model"], request.system, request.last_text()) == (
        "claude-x",
        "You count.",
        "Count to 3.",
    )


def test_parameters_are_passed_to_the_messages_api(play: Play) -> None:
    toml = f'{MODEL}[parameters]\nmax_tokens = 77\nmetadata = {{ user_id = "u" }}\n'

    request = first_request(play(toml, [say("ok")]))

    assert (request.raw["max_tokens"], request.raw["metadata"]) == (77, {"user_id": "u"})


def test_only_enabled_tools_are_offered_and_explained(play: Play, tmp_path: Path) -> None:
    (tmp_path / "own_tools.py").write_text(
        'def double(n: int) -> str:\n    "Twice."\n    return str(2 * n)\n'
    )
    toml = f'{MODEL}[tools]\nenabled = ["read_fd"]\npython = ["own_tools:double"]\n'

    agents = play(toml, [call("double", n="21"), say("ok")], "A question to read. " * 2000)

    assert first_request(agents).tools == ("read_fd", "double")
    assert "read_fd(" in first_request(agents).system
    assert "search_fd" not in first_request(agents).system
    assert agents.results()[0].content == "42"


@pytest.mark.parametrize(
    ("of_model", "more", "tools", "unloaded"),
    [
        ("prompt_cache = false", "", ("len",), set()),
        ("prompt_cache = false", "[file_descriptor]\nhold_back_tools = false\n", ("read_fd", "len"), set()),
        ("", "", ("read_fd", "len"), set()),
        ("deferred_tools = false", "", ("read_fd", "len"), set()),
        ("deferred_tools = true", "", ("read_fd", "len"), {"read_fd"}),
        ("deferred_tools = true", "[file_descriptor]\nhold_back_tools = false\n", ("read_fd", "len"), set()),
    ],
)
def test_the_tools_on_descriptors_wait_for_one_as_the_program_says(
    play: Play, tmp_path: Path, of_model: str, more: str, tools: tuple[str, ...], unloaded: set[str]
) -> None:
    (tmp_path / "own_tools3.py").write_text("def len(text: str) -> int:\n    return 1\n")
    toml = f'{MODEL}{of_model}\n[tools]\nenabled = ["read_fd"]\npython = ["own_tools3:len"]\n{more}'

    request = first_request(play(toml, [say("ok")]))

    assert (request.tools, request.unloaded) == (tools, unloaded)


def test_the_descriptor_settings_of_a_program_apply(play: Play, tmp_path: Path, store: Store) -> None:
    (tmp_path / "own_tools2.py").write_text("def data() -> list[int]:\n    return list(range(30))\n")
    toml = (
        f'{MODEL}[tools]\nenabled = ["read_fd"]\npython = ["own_tools2:data"]\n'
        "[file_descriptor]\nmax_direct_output_chars = 50\ndefault_page_size = 20\nmax_input_chars = 10\n"
        "page_user_input = false\nenable_references = false\njson_pretty_print = true\nmax_read_chars = 30\n"
        "max_expand_chars = 5\n"
    )
    reads = [call("read_fd", fd="fd:1"), call("read_fd", fd="fd:1", read_all=True)]

    agents = play(toml, [call("data"), *reads, say('<ref id="a">x</ref>')], "longer than ten")

    made, page, everything = [only(result.content) for result in agents.results()]
    assert first_request(agents).last_text() == "longer than ten"
    assert (made["total_lines"], store.process("solo").stat(1).page_size) == ("32", 20)
    assert page.body == "[\n  0,\n  1,\n  2,\n"
    assert everything["type"] == "too_large"
    assert [held.fd for held in store.process("solo").list()] == ["fd:1"]


def test_an_agent_holds_its_preloaded_files_from_the_first_turn(
    play: Play, tmp_path: Path, store: Store
) -> None:
    (tmp_path / "agent" / "small.txt").write_text("small")
    (tmp_path / "agent" / "large.txt").write_text("large\n" * 2000)
    toml = f'{MODEL}[tools]\nenabled = ["read_fd"]\n[preload]\nfiles = ["small.txt", "large.txt"]\n'

    agents = play(toml, [say("ok")])

    small, large = elements(first_request(agents).system.partition("# Preloaded texts\n")[2])
    assert (small["fd"], small.body) == ("fd:1", "small")
    assert (large.name, large["fd"], large["source"]) == ("fd_result", "fd:2", "large.txt")
    assert store.process("solo").read("fd:2").text.startswith("large\n")


def test_linked_programs_can_be_spawned_even_in_a_cycle(play: Play) -> None:
    toml = (
        f'{MODEL}[prompt]\nsystem = "SOLO"\n[tools]\nenabled = ["spawn"]\n[linked_programs]\n'
        'expert = { path = "expert.toml", description = "knows" }\nsame = "solo.toml"\n'
    )
    expert = f'{MODEL}[prompt]\nsystem = "EXPERT"\n[linked_programs]\nboss = "solo.toml"\n'
    script = {"EXPERT": [say("42")], "SOLO": [call("spawn", program_name="expert", query="?"), say("ok")]}

    agents = play(toml, script, expert=expert)

    [spawn] = first_request(agents).raw["tools"]
    assert spawn["description"].endswith("- expert: knows\n- same")
    assert only(agents.results()[0].content).body == "42"


def test_exports_go_below_the_export_root(play: Play, tmp_path: Path) -> None:
    toml = f'{MODEL}[tools]\nenabled = ["write_fd", "fd_to_file"]\n[export]\nroot = "out"\n'
    calls = [call("write_fd", data="x"), call("fd_to_file", fd="fd:1", file_path="x.txt"), say("ok")]

    agents = play(toml, calls)

    # below the worker's --export-root; created by the first write
    assert only(agents.results()[1].content)["success"] == "true"
    assert (tmp_path / "out" / "x.txt").read_text() == "x"


@pytest.mark.parametrize(
    ("limit", "reason"),
    [
        ("max_turns = 2", "max_turns: 2 answers were given"),
        ("token_budget = 1", "token_budget: 1 tokens are used"),
    ],
)
def test_the_limits_of_the_program_apply_to_its_agent(play: Play, limit: str, reason: str) -> None:
    toml = f'{MODEL}[tools]\nenabled = ["list_fds"]\n[limits]\n{limit}\n'

    agents = play(toml, lambda request: call("list_fds"))

    assert (agents.record().state, agents.record().reason) == ("failed", reason)


def test_the_limits_of_a_tree_come_from_the_program_of_its_root(play: Play, store: Store) -> None:
    sizes = "tree_depth = 2\ntree_live = 3\ntree_processes = 4\ntree_fds = 5\ntree_bytes = 6\n"

    play(f"{MODEL}[limits]\n{sizes}retention_days = 0.5\n", [say("ok")])

    assert store.tree("solo").limits == TreeLimits(
        tree_depth=2, tree_live=3, tree_processes=4, tree_fds=5, tree_bytes=6, retention_days=0.5
    )
