"""The section of the system prompt names only enabled features; its examples are valid calls."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from fdstore import FDConfig
from fdstore.agents.loop.program_loader import Bundle, Limits, LinkedProgram, Program
from fdstore.agents.runtime.run_agent import make_toolbox
from fdstore.client import Process, Store
from fdstore.files.permissions import Permissions
from fdstore.results.tool_outcome import Started
from fdstore.results.wrapping import store_references
from fdstore.store.processes import journal
from fdstore.tools.process_task import ForkTask, SpawnTask, Task, encode_task
from fdstore.tools.toolbox import Toolbox
from tests.elements import only
from tests.on_redis.conformance.calling import TEXT_TOOLS

EXAMPLE = re.compile(r"\b([a-z_]+)\(([^()]*)\)")
HELD = "".join(f"line {number} {'ERROR' if number % 50 == 0 else ''}\n" for number in range(1, 201))


ON = FDConfig()
BORN = SpawnTask(query="q")

MakeToolbox = Callable[..., Toolbox]


def shout(text: str) -> str:
    """Convert the words to upper case."""
    return text.upper()


@pytest.fixture
def toolbox(store: Store, proc: Process, tmp_path: Path) -> MakeToolbox:
    """Makes the toolbox of an agent's process that holds `fd:1`, `fd:2` and `ref:plan`."""
    proc.create(HELD, page_size=1000)
    proc.create(HELD)
    store.run(
        journal.append(proc.handle, 0, [encode_task(BORN), '{"kind":"start","system":"","content":""}'])
    )

    def make(tools: list[str], config: FDConfig = ON, *, linked: bool = True, task: Task = BORN) -> Toolbox:
        expert = Program(name="expert", model="any")
        program = Program(
            name="root",
            model="any",
            tools=tuple(tools),
            file_descriptor=config,
            linked={"expert": LinkedProgram(key="expert")} if linked else {},
            limits=Limits(),
        )
        bundle = Bundle(root="root", programs={"root": program, "expert": expert})
        made = make_toolbox(
            proc.handle,
            store.prefix,
            bundle,
            program,
            task,
            wake=lambda process: None,
            permissions=Permissions(export_root=str(tmp_path)),
        )
        store.run(store_references(made.context, '<ref id="plan">all is well</ref>'))
        return made

    return make


def examples(text: str) -> list[tuple[str, dict[str, Any]]]:
    """Return the example calls in a text, as a model would make them."""
    found = []
    for name, arguments in EXAMPLE.findall(text):
        written = re.sub(r"\b(true|false)\b", lambda hit: hit[0].capitalize(), arguments)
        call = ast.parse(f"f({written})", mode="eval").body
        assert isinstance(call, ast.Call)
        found.append((name, {each.arg: ast.literal_eval(each.value) for each in call.keywords}))
    return found


@pytest.mark.parametrize(
    "enabled", [TEXT_TOOLS, ["read_fd"], ["read_fd", "spawn"], [*TEXT_TOOLS, "spawn", "fork"]]
)
def test_every_example_is_a_valid_call(store: Store, toolbox: MakeToolbox, enabled: list[str]) -> None:
    made = toolbox(enabled)
    found = examples(made.instructions)

    assert {name for name, _ in found} >= set(enabled)
    found.sort(key=lambda each: each[0] == "close_fd")  # the other calls need the descriptor that it closes
    for number, (name, arguments) in enumerate(found):
        outcome = store.run(made.start(name, arguments, f"toolu_{number}"))
        assert isinstance(outcome, Started) or not outcome.is_error, (name, arguments, outcome)


def test_each_read_example_explains_itself(store: Store, toolbox: MakeToolbox) -> None:
    made = toolbox(["read_fd"])
    [line] = [line for line in made.instructions.splitlines() if line.startswith("- lines 120 to 139")]

    for name, arguments in examples(line):
        assert only(store.run(made.start(name, arguments)).content)["lines"] == "120-139"


def test_the_examples_in_results_are_valid_calls(store: Store, toolbox: MakeToolbox) -> None:
    made = toolbox(TEXT_TOOLS)
    extraction = store.run(made.start("read_fd", {"fd": "fd:1#L1-9", "extract_to_new_fd": True})).content
    result = store.run(
        made.start("read_fd", {"fd": "fd:1", "read_all": True, "extract_to_new_fd": True})
    ).content

    for shown in (extraction, result):
        [*found] = examples(only(shown).message)
        assert found
        for name, arguments in found:
            assert not store.run(made.start(name, arguments)).is_error


@pytest.mark.parametrize("enabled", list(itertools.combinations([*TEXT_TOOLS, "spawn", "fork"], 2)))
def test_instructions_name_only_enabled_tools(toolbox: MakeToolbox, enabled: tuple[str, ...]) -> None:
    made = toolbox(list(enabled))

    named = set(re.findall(r"\b(?:[a-z]+_fds?|fd_to_file|spawn|fork)\b", made.instructions))

    assert {name for name in named if name not in enabled} <= {"additional_preload_fds"}
    assert set(enabled) <= named


@pytest.mark.parametrize(
    ("config", "there", "gone"),
    [
        (FDConfig(), '<ref id="plan">', "indented"),
        (FDConfig(enable_references=False), "Large texts", "<ref"),
        (FDConfig(page_user_input=False), "Large texts", "user input"),
        (FDConfig(json_pretty_print=True), "JSON result is indented", "never"),
        (FDConfig(max_direct_output_chars=123, default_page_size=45), "result over 123 characters", "4000"),
        (FDConfig(max_input_chars=77), "user input over 77", "never"),
    ],
)
def test_instructions_state_the_configured_switches_and_sizes(
    toolbox: MakeToolbox, config: FDConfig, there: str, gone: str
) -> None:
    instructions = toolbox(["read_fd"], config).instructions

    assert there in instructions
    assert gone not in instructions


def test_instructions_mention_placeholders_if_a_tool_accepts_them(toolbox: MakeToolbox) -> None:
    without = toolbox(["read_fd"])
    with_shout = Toolbox(without.context, [shout])

    assert "{{fd:1}}" not in without.instructions
    assert (
        "In the arguments of shout, {{fd:1}} or a part such as {{fd:1#L120-139}}" in with_shout.instructions
    )


def test_instructions_do_not_mention_disabled_descriptors(toolbox: MakeToolbox) -> None:
    made = toolbox(["spawn"])

    assert made.instructions.startswith("# Other agents\n")
    assert "fd:" not in made.instructions
    assert "preload_fds" not in made.instructions
    assert toolbox([]).instructions == ""


def test_instructions_leave_out_unusable_tools(toolbox: MakeToolbox) -> None:
    made = toolbox(["read_fd", "spawn"], linked=False)

    assert "spawn" not in made.instructions
    assert [each["name"] for each in made.definitions] == ["read_fd"]


def test_forks_are_offered_the_tools_of_their_parents_and_refused_two(toolbox: MakeToolbox) -> None:
    born = ForkTask(of="triage", records=2, call="c", prompt="p", copy=1, copies=1)
    free = msgspec.structs.replace(born, may_spawn=True)
    enabled = ["read_fd", "spawn", "fork"]

    for task, refused in ((born, {"spawn", "fork"}), (free, set())):
        made = toolbox(enabled, task=task)
        assert [each["name"] for each in made.definitions] == enabled
        assert made.context.refused == refused


def test_instructions_on_pipelines_depend_on_the_enabled_tools(toolbox: MakeToolbox) -> None:
    enabled = ["read_fd", "write_fd", "pipe", "wait", "kill"]
    without = toolbox(enabled)
    context = msgspec.structs.replace(without.context, enabled=frozenset(enabled), commands=("grep", "sort"))
    instructions = Toolbox(context).instructions

    assert "pipe" not in without.instructions
    assert "programs (grep, sort)" in instructions
    assert ("pipe", {"commands": ["grep", "sort"], "in_fd": "fd:1"}) in examples(instructions)
    [paragraph] = [each for each in instructions.split("\n\n") if "pipe runs" in each]
    assert paragraph.index("wait returns when") < paragraph.index("kill ends")
    alone = Toolbox(msgspec.structs.replace(context, enabled=frozenset({"pipe"}), fds_on=False)).instructions
    assert "fd:1" not in alone
    assert "write_fd" not in alone
    assert "wait returns" not in alone
