"""The memory tool: the words of the SDK's tool on local files, both colours, many agents at a time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import anthropic
import pytest
from anthropic.lib.tools import ToolError
from anthropic.tools import BetaLocalFilesystemMemoryTool
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fdstore
from fdstore.client import Store
from fdstore.integrations.anthropic_memory import AsyncMemoryTool, MemoryTool
from fdstore.testing import ScriptedModel, call, say

Run = Callable[..., Any]


@pytest.fixture(params=["blocking", "awaited"])
def memory(request: pytest.FixtureRequest, redis_url: str) -> Iterator[Run]:
    """`memory(command, **fields)` runs a command of the tool, in both colours."""
    if request.param == "blocking":
        with fdstore.connect(redis_url) as store:
            tool = MemoryTool(store.process("team-memory"))
            yield lambda command, **fields: tool.call({"command": command, **fields})
        return
    with asyncio.Runner() as runner:
        store = runner.run(fdstore.aio.connect(redis_url))
        awaited = AsyncMemoryTool(runner.run(store.process("team-memory")))
        yield lambda command, **fields: runner.run(awaited.call({"command": command, **fields}))
        runner.run(store.close())


def test_files_are_made_viewed_edited_renamed_and_deleted(memory: Run) -> None:
    path = "/memories/notes/plan.md"

    said = [
        memory("create", path=path, file_text="one\ntwo\nthree\n"),
        memory("str_replace", path=path, old_str="two", new_str="2"),
        memory("insert", path=path, insert_line=1, insert_text="one and a half\n"),
        memory("view", path=path),
        memory("view", path=path, view_range=[2, 3]),
        memory("view", path="/memories"),
        memory("rename", old_path="/memories/notes", new_path="/memories/old"),
        memory("view", path="/memories"),
        memory("delete", path="/memories/old"),
        memory("view", path="/memories"),
    ]

    assert said[0] == f"File created successfully at: {path}"
    assert said[1].endswith("(with line numbers):\n     1\tone\n     2\t2\n     3\tthree\n     4\t")
    assert said[2] == f"The file {path} has been edited."
    assert said[3].endswith("     1\tone\n     2\tone and a half\n     3\t2\n     4\tthree\n     5\t")
    assert said[4].endswith("line numbers:\n     2\tone and a half\n     3\t2")
    assert said[5].endswith("27B\t/memories\n27B\t/memories/notes/\n27B\t/memories/notes/plan.md")
    assert said[6] == "Successfully renamed /memories/notes to /memories/old"
    assert said[7].endswith("/memories/old/plan.md")
    assert said[8] == "Successfully deleted /memories/old"
    assert said[9].endswith("hidden items:\n0B\t/memories")


@pytest.mark.parametrize(
    ("command", "fields", "problem"),
    [
        ("view", {"path": "/memories/none"}, "does not exist. Please provide a valid path."),
        ("view", {"path": "/etc/passwd"}, "Path must start with /memories"),
        ("view", {"path": "/memories/../etc/passwd"}, "would escape /memories directory"),
        ("create", {"path": "/memories/a", "file_text": ""}, "File /memories/a already exists"),
        ("create", {"path": "/memories", "file_text": ""}, "File /memories already exists"),
        ("create", {"path": "/memories/a/b", "file_text": ""}, "The path /memories/a is not a directory."),
        ("create", {"path": "/memories/a\n", "file_text": ""}, "control character"),
        ("str_replace", {"path": "/memories/a", "old_str": "z", "new_str": ""}, "did not appear verbatim"),
        ("str_replace", {"path": "/memories/a", "old_str": "x", "new_str": ""}, "in lines: 1, 3. Please"),
        ("str_replace", {"path": "/memories", "old_str": "x", "new_str": ""}, "is not a file."),
        ("insert", {"path": "/memories/a", "insert_line": 9, "insert_text": ""}, "within the range [0, 3]"),
        ("delete", {"path": "/memories"}, "Cannot delete the /memories directory itself"),
        ("delete", {"path": "/memories/none"}, "The path /memories/none does not exist"),
        ("rename", {"old_path": "/memories/a", "new_path": "/memories/b"}, "/memories/b already exists"),
        ("rename", {"old_path": "/memories/n", "new_path": "/memories/m"}, "/memories/n does not exist"),
        ("rename", {"old_path": "/memories/d", "new_path": "/memories/d/e"}, "to a path inside it"),
        ("forget", {"path": "/memories"}, "Unknown command: forget"),
    ],
)
def test_mistakes_of_the_model_are_errors_of_the_tool(
    redis_url: str, command: str, fields: dict[str, Any], problem: str
) -> None:
    with fdstore.connect(redis_url) as store:
        tool = MemoryTool(store.process("team-memory"))
        for path in ("/memories/a", "/memories/b", "/memories/d/f"):
            tool.call({"command": "create", "path": path, "file_text": "x\ny\nx\n"})

        with pytest.raises(ToolError) as raised:
            tool.call({"command": command, **fields})

    assert problem in str(raised.value)


PATHS = st.sampled_from(
    ["/memories/a.txt", "/memories/d/b.txt", "/memories/d/e/c.txt", "/memories/d", "/memories"]
)
TEXTS = st.sampled_from(["", "x", "x\n", "x\ny", "\n\n", "häh?\r\nx\n", "y\nx\ny\n"])
COMMANDS = st.one_of(
    st.fixed_dictionaries({"command": st.just("create"), "path": PATHS, "file_text": TEXTS}),
    st.fixed_dictionaries(
        {
            "command": st.just("view"),
            "path": PATHS,
            "view_range": st.none() | st.tuples(st.integers(1, 3), st.just(-1)),
        }
    ),
    st.fixed_dictionaries(
        {"command": st.just("str_replace"), "path": PATHS, "old_str": st.sampled_from("xy"), "new_str": TEXTS}
    ),
    st.fixed_dictionaries(
        {"command": st.just("insert"), "path": PATHS, "insert_line": st.integers(0, 3), "insert_text": TEXTS}
    ),
    st.fixed_dictionaries({"command": st.just("delete"), "path": PATHS}),
    st.fixed_dictionaries({"command": st.just("rename"), "old_path": PATHS, "new_path": PATHS}),
)


@pytest.mark.parametrize(("text", "shown"), [("a\n\n", "     3\t"), ("a\nb", "")])
def test_a_range_that_begins_after_the_last_line_end_shows_the_empty_line_there(
    store: Store, text: str, shown: str
) -> None:
    memory = MemoryTool(store.process())
    memory.call({"command": "create", "path": "/memories/a.txt", "file_text": text})

    viewed = memory.call({"command": "view", "path": "/memories/a.txt", "view_range": [3, -1]})

    assert viewed == f"Here's the content of /memories/a.txt with line numbers:\n{shown}"


@pytest.mark.parametrize(("text", "at"), [("x\ny", 2), ("x\ny\n", 2), ("", 0), ("x", 0)])
def test_inserting_an_empty_text_leaves_what_the_tool_on_local_files_leaves(
    tmp_path: Path, store: Store, text: str, at: int
) -> None:
    local, ours = BetaLocalFilesystemMemoryTool(str(tmp_path)), MemoryTool(store.process())

    for tool in (local, ours):
        tool.call({"command": "create", "path": "/memories/a.txt", "file_text": text})
        tool.call({"command": "insert", "path": "/memories/a.txt", "insert_line": at, "insert_text": ""})

    assert files_in(ours) == files_of(local)


@given(st.lists(COMMANDS, max_size=12))
@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
def test_files_and_answers_are_those_of_the_tool_on_local_files(
    tmp_path_factory: pytest.TempPathFactory, store: Store, commands: list[dict[str, Any]]
) -> None:
    local = BetaLocalFilesystemMemoryTool(str(tmp_path_factory.mktemp("memory")))
    ours = MemoryTool(store.process())

    for command in commands:
        before = files_of(local)
        expected, shown = answer(local, command), answer(ours, command)
        if "view" in command["command"] and "directories" in (expected or ""):
            continue  # a directory of theirs has a size of its own, and stays when it is empty
        if expected is None or shown is None:
            if not (expected is None and shown is None):  # only an empty directory makes a difference
                assert before == files_of(local)
                return
        else:
            assert shown == expected
        assert files_in(ours) == files_of(local)


def answer(tool: Any, command: dict[str, Any]) -> str | None:
    """Return what a command says, None for an error."""
    try:
        return str(tool.call({name: value for name, value in command.items() if value is not None}))
    except (ToolError, OSError):
        return None


def files_of(tool: BetaLocalFilesystemMemoryTool) -> dict[str, str]:
    root = Path(str(tool.memory_root))
    return {
        f"/memories/{path.relative_to(root)}": path.read_bytes().decode()
        for path in root.rglob("*")
        if path.is_file()
    }


def files_in(tool: MemoryTool) -> dict[str, str]:
    return {
        found.fd.removeprefix("name:"): tool.process.read(found.fd, read_all=True).text
        for found in tool.process.list(prefix="")
    }


def test_edits_of_many_agents_at_a_time_are_all_kept(redis_url: str) -> None:
    path, agents, edits = "/memories/tally.md", 6, 15

    def work(agent: int) -> None:
        with fdstore.connect(redis_url) as store:
            tool = MemoryTool(store.process("team-memory"))
            for edit in range(edits):
                line = f"agent {agent} edit {edit}"
                if edit % 2:
                    tool.call({"command": "insert", "path": path, "insert_line": 0, "insert_text": line})
                else:
                    end = {"old_str": "the end", "new_str": f"{line}\nthe end"}
                    tool.call({"command": "str_replace", "path": path, **end})

    with fdstore.connect(redis_url) as store:
        memory = MemoryTool(store.process("team-memory"))
        memory.call({"command": "create", "path": path, "file_text": "the end\n"})
        with ThreadPoolExecutor(agents) as pool:
            list(pool.map(work, range(agents)))
        text = memory.process.read(f"name:{path}", read_all=True).text

    wanted = {f"agent {agent} edit {edit}" for agent in range(agents) for edit in range(edits)}
    assert sorted(text.splitlines()) == sorted(wanted | {"the end"})


def test_of_agents_that_create_the_same_file_one_succeeds(redis_url: str) -> None:
    def create(agent: int) -> bool:
        with fdstore.connect(redis_url) as store:
            tool = MemoryTool(store.process("team-memory"))
            return (
                answer(tool, {"command": "create", "path": "/memories/a", "file_text": str(agent)})
                is not None
            )

    with ThreadPoolExecutor(6) as pool:
        assert sum(pool.map(create, range(6))) == 1


def test_a_model_uses_it_through_the_runner_and_another_agent_reads_what_it_wrote(store: Store) -> None:
    script = [
        call("memory", command="create", path="/memories/plan.md", file_text="Ship it.\n"),
        call("memory", command="view", path="/memories/none"),
        say("Done."),
    ]
    memory = MemoryTool(store.process("team-memory"))

    with (
        ScriptedModel(script) as model,
        anthropic.Anthropic(base_url=model.base_url, api_key=model.api_key) as client,
    ):
        client.beta.messages.tool_runner(
            model="any", max_tokens=100, messages=[{"role": "user", "content": "Plan."}], tools=[memory]
        ).until_done()

    created, refused = model.requests[-1].tool_results()
    assert created.text == "File created successfully at: /memories/plan.md"
    assert refused.is_error
    assert store.process("team-memory").read("name:/memories/plan.md").text == "Ship it.\n"


def test_clearing_deletes_every_file_and_nothing_else(memory: Run, redis_url: str) -> None:
    memory("create", path="/memories/a", file_text="x")
    with fdstore.connect(redis_url) as store:
        process = store.process("team-memory")
        process.put("other", "text")

        said = MemoryTool(process).clear_all_memory()

        assert said == "All memory cleared"
        assert [found.fd for found in process.list()] == ["name:other"]


def test_a_long_file_is_viewed_in_parts(memory: Run, log_text: str) -> None:
    memory("create", path="/memories/log", file_text=log_text)

    with pytest.raises(ToolError, match="more than the limit of 100000"):
        memory("view", path="/memories/log")

    assert memory("view", path="/memories/log", view_range=[4321, 4321]).endswith(
        "\n  4321\tline 4321 of the build"
    )
