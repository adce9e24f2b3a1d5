"""Restricted workers refuse files, functions and directories that programs or models request."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import Bundle, Program, load
from fdstore.agents.runtime.eligibility import describe_permissions, why_not_going_on, why_unclaimed
from fdstore.cli import cli
from fdstore.client import Store
from fdstore.errors import NoWorker, PathRefused
from fdstore.files.permissions import Permissions
from fdstore.model.lifecycle import ProcessEnd
from fdstore.store.clock import redis_now
from fdstore.store.keys import process_keys
from fdstore.store.processes import pipelines
from fdstore.store.views import worker_check, worker_registry
from fdstore.testing import call, say, turn
from fdstore.tools.process_task import PipeTask, encode_task
from tests.elements import only
from tests.on_redis.inspector.inspected import get
from tests.on_redis.running_agents import READER, SMALL, AgentsOf, running, tool
from tests.waiting import stretched

NOTHING = Permissions(all_allowed=False)
"""A worker on a store by URL whose operator allowed nothing."""

SPAWN = {"program_name": "reader", "query": "Read."}


def test_an_agent_with_disallowed_functions_is_left_to_other_workers_and_ps_says_why(
    agents_of: AgentsOf, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "hostile_tool.py").write_text("raise SystemExit('executed')\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    agents = agents_of({"SOLO": [say("Done.")]})
    agents.launch(python=(tool("echo"), "hostile_tool:run"))
    few = Permissions(all_allowed=False, python=(tool("*"),))

    assert agents.attempt("solo", permissions=few) == "not allowed"

    assert (agents.record().state, agents.record().attempt) == ("ready", 0)
    register(store, "few:1", few)
    assert (
        "no live worker accepts it; few:1 says: the Python function 'hostile_tool:run' is not allowed on "
        "this worker; its operator allows it with --allow-python 'hostile_tool:run'"
    ) in shown_by_ps(store)
    register(store, "all:2", Permissions())
    assert "no live worker" not in shown_by_ps(store)
    assert "hostile_tool" not in sys.modules
    assert agents.model.requests == ()


def test_an_agent_whose_function_proves_to_be_of_another_package_is_left_to_other_workers(
    agents_of: AgentsOf, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Regression test: only its import shows that, and then the agent failed for ever."""
    (tmp_path / "kind_tool.py").write_text("from shutil import which\n")
    monkeypatch.syspath_prepend(str(tmp_path))

    agents = agents_of({"SOLO": [say("Done.")]})
    agents.launch(python=("kind_tool:which",))

    few = Permissions(all_allowed=False, python=("kind_tool:*",))
    assert agents.attempt("solo", permissions=few) == "given back"

    assert (agents.record().state, agents.record().losses) == ("ready", 0)
    shown = shown_by_ps(store)
    assert "'kind_tool:which', which 'shutil' defines, is not allowed on this worker" in shown
    assert agents.attempt("solo", permissions=Permissions()) == "ended"
    assert (agents.record().state, agents.record().trouble) == ("exited", None)


def register(store: Store, worker: str, permissions: Permissions, no_agents: str = "") -> None:
    now = store.run(redis_now())
    allowed = describe_permissions(permissions)
    store.run(worker_registry.register_worker("fdstore", worker, 10, now, "", no_agents, allowed))


def shown_by_ps(store: Store) -> str:
    return CliRunner().invoke(cli, ["--url", store.url, "ps"]).output


def test_ps_top_and_the_inspector_say_that_no_live_worker_runs_agents(
    agents_of: AgentsOf, store: Store
) -> None:
    agents = agents_of([])
    agents.launch()
    register(store, "keyless:1", Permissions(), no_agents="there is no key")
    why = "no live worker accepts it; keyless:1 says: there is no key"

    assert why in shown_by_ps(store)
    top = CliRunner().invoke(cli, ["--url", store.url, "top", "--once", "--json"]).output
    assert [each["trouble"] for each in json.loads(top)["processes"]] == [why]
    assert store.run(why_unclaimed(store.prefix, "solo")) == f"solo waits: {why}"
    for page in get(store.url, "/tree/solo", "/process/solo"):
        assert why in page.text


def sorting(store: Store) -> str:
    """Return a pipeline that waits for a worker that may run `sort`."""
    proc, task = store.process("solo"), PipeTask(commands=[["sort"]], page_size=4096)
    return store.run(pipelines.start(proc.handle, encode_task(task), title="sort")).process


def test_a_pipeline_is_never_claimed_where_it_is_not_allowed(agents_of: AgentsOf, store: Store) -> None:
    agents = agents_of([])
    made = sorting(store)

    ending = agents.attempt(made, permissions=NOTHING, pipeline=lambda *_: ProcessEnd("exited", 0, None))

    assert ending == "not allowed"
    assert (agents.record(made).state, agents.record(made).attempt) == ("ready", 0)


WITHOUT_SANDBOX = Permissions(commands_off="no sandbox works")


def test_a_worker_without_a_sandbox_leaves_pipelines_to_one_that_has_it(
    agents_of: AgentsOf, store: Store
) -> None:
    agents = agents_of([])
    made = sorting(store)
    register(store, "without:1", WITHOUT_SANDBOX)
    register(store, "with:2", Permissions())

    ending = agents.attempt(
        made, permissions=WITHOUT_SANDBOX, pipeline=lambda *_: ProcessEnd("exited", 0, None)
    )

    assert ending == "not allowed"
    assert (agents.record(made).state, agents.record(made).attempt) == ("ready", 0)


def test_where_no_worker_has_a_sandbox_a_pipeline_fails_and_whoever_does_not_wait_is_told(
    agents_of: AgentsOf, store: Store
) -> None:
    agents = agents_of([])
    made = sorting(store)
    register(store, "without:1", WITHOUT_SANDBOX)

    with pytest.raises(NoWorker, match="without:1 says: commands are off on this worker: no sandbox works"):
        store.run(worker_check.require_worker("fdstore", for_agents=False, commands=["sort"]))
    ending = agents.attempt(
        made, permissions=WITHOUT_SANDBOX, pipeline=lambda *_: ProcessEnd("failed", None, "commands are off")
    )

    assert ending == "ended"
    assert agents.record(made).reason == "commands are off"


def test_a_lost_pipeline_without_a_live_worker_says_why_it_stands_still(
    store: Store, execute: Callable[..., Any]
) -> None:
    made = sorting(store)
    record = process_keys("fdstore", made).record
    execute("HSET", record, "state", "running", "worker", "gone:1", "lease_until", 1)

    said = store.run(why_not_going_on("fdstore", made))

    assert said == (
        f"{made}: the lease of gone:1 has expired; no worker takes processes of this store; "
        "start one with: fdstore worker, or fdstore up"
    )
    register(store, "alive:2", Permissions())
    assert store.run(why_not_going_on("fdstore", made)) == ""
    execute("HSET", record, "lease_until", 4_000_000_000)
    assert store.run(why_not_going_on("fdstore", made)) == ""


def test_ps_says_that_no_live_worker_may_run_a_pipeline_until_one_may(store: Store) -> None:
    made = sorting(store)
    register(store, "greps:1", Permissions(all_allowed=False, commands=("grep",)))
    why = "no live worker accepts it; greps:1 says: the command 'sort' is not allowed on this worker"

    assert why in shown_by_ps(store)
    assert store.run(why_unclaimed(store.prefix, made)).startswith(f"{made} waits: {why}")
    with pytest.raises(
        NoWorker, match="no worker of this store may run it; greps:1 says: the command 'sort'"
    ):
        store.run(worker_check.require_worker(store.prefix, for_agents=False, commands=["sort"]))

    register(store, "sorts:2", Permissions(all_allowed=False, commands=("so*",)))
    assert "no live worker" not in shown_by_ps(store)


def test_ps_says_that_no_worker_lives_for_what_is_ready(agents_of: AgentsOf, store: Store) -> None:
    agents_of([]).launch()

    assert "no worker takes processes of this store; start one with: fdstore worker" in shown_by_ps(store)


def test_resume_without_permission_says_what_is_missing_and_leaves_the_agent_as_it_is(
    agents_of: AgentsOf, store: Store
) -> None:
    script = [call("echo", words="hi"), say("Done.")]
    agents = agents_of({"SOLO": script})
    agents.launch(python=(tool("echo"),))
    resume = ["--url", store.url, "resume", "-q", "solo"]

    refused = CliRunner().invoke(cli, resume, env=agents.model.environ)
    between = agents.record()
    done = CliRunner().invoke(cli, [*resume, "--allow-python", tool("echo")], env=agents.model.environ)

    assert (refused.exit_code, between.state, between.attempt) == (1, "ready", 0)
    assert f"its operator allows it with --allow-python '{tool('echo')}'" in refused.output
    assert (done.exit_code, agents.answer()) == (0, "Done."), done.output


@pytest.mark.parametrize("name", ["echo", "sdk_echo"])
def test_allowed_functions_run(agents_of: AgentsOf, name: str) -> None:
    agents = agents_of({"SOLO": [call(name, words="hi"), say("Done.")]})
    agents.launch(python=(tool(name),))
    agents.attempt("solo", permissions=Permissions(all_allowed=False, python=(tool("*"),)))

    assert agents.results()[0].content == "you said hi"
    assert agents.answer() == "Done."


def test_without_a_configured_directory_models_are_offered_no_file_access(
    agents_of: AgentsOf, tmp_path: Path
) -> None:
    write = call("fd_to_file", fd="fd:1", file_path="workers.py")
    spawn = call("spawn", **SPAWN, additional_preload_files=["secret.txt"])
    (tmp_path / "secret.txt").write_text("secret")

    agents = agents_of({"SOLO": [turn(write, spawn), say("Done.")]})
    agents.launch(
        "word " * 40, tools=("read_fd", "fd_to_file", "spawn"), file_descriptor=SMALL, others=[READER]
    )
    agents.attempt("solo", permissions=Permissions())

    offered = {each["name"]: each["input_schema"] for each in agents.model.requests[0].raw["tools"]}
    assert offered.keys() == {"read_fd", "spawn"}
    assert "additional_preload_files" not in offered["spawn"]["properties"]
    assert "fd_to_file" not in agents.model.requests[0].system
    refused = [only(result.content) for result in agents.results()]
    assert [each.name for each in refused] == ["fd_error", "fd_error"]
    assert "no directory is named to read files from" in refused[1].message
    assert [path.name for path in tmp_path.iterdir()] == ["secret.txt"]


def test_a_worker_reads_preloaded_files_only_if_allowed(agents_of: AgentsOf, store: Store) -> None:
    reader = Program(name="reader", model="any", system="You are READER.", preload=("/proc/self/environ",))
    agents = agents_of({"SOLO": [call("spawn", **SPAWN), say("Done.")]})
    agents.launch(tools=("spawn",), others=[reader])
    agents.attempt("solo", permissions=NOTHING)

    [refused] = [only(result.content) for result in agents.results()]
    assert refused["type"] == "permission_error"
    assert "with --preload-root '/proc/self'" in refused.message
    assert len(store.tree("solo").members) == 1


def test_a_program_with_an_export_root_outside_that_of_the_worker_is_left_to_others(
    agents_of: AgentsOf, store: Store, tmp_path: Path
) -> None:
    agents = agents_of({"SOLO": [say("Done.")]})
    agents.launch(tools=("fd_to_file",), export_root="../outside")
    confined = Permissions(all_allowed=False, export_root=str(tmp_path))

    assert agents.attempt("solo", permissions=confined) == "not allowed"

    assert (agents.record().state, agents.record().attempt) == ("ready", 0)
    register(store, "confined:1", confined)
    shown = shown_by_ps(store)
    assert "no live worker accepts it; confined:1 says: the path '../outside' cannot be used" in shown
    assert str(tmp_path) not in shown


@pytest.mark.timeout(stretched(20))
def test_a_preload_that_is_not_a_regular_file_is_refused_without_blocking(
    store: Store, tmp_path: Path
) -> None:
    os.mkfifo(tmp_path / "fifo")
    program = Program(name="solo", model="any", preload=(str(tmp_path / "fifo"),))

    with pytest.raises(PathRefused, match="it is a FIFO, not a regular file"):
        launch_root(store, Bundle(root="solo", programs={"solo": program}), "Go.", "solo")


def test_functions_are_imported_from_the_directory_that_the_program_names(
    store: Store, tmp_path: Path
) -> None:
    for name, answer in (("one", "from one"), ("two", "from two")):
        (tmp_path / name / "lib").mkdir(parents=True)
        (tmp_path / name / "lib" / "path_tools.py").write_text(
            f'def where() -> str:\n    """Says where."""\n    return "{answer}"\n'
        )
        (tmp_path / name / "msgspec.py").write_text("raise SystemExit('executed')\n")
        (tmp_path / name / "solo.toml").write_text(
            '[model]\nname = "any"\n[prompt]\nsystem = "You are SOLO."\n'
            '[tools]\npython = ["path_tools:where"]\npath = "lib"\n'
        )
    before = list(sys.path)
    try:
        with running(store, {"SOLO": [call("where"), say("Done.")]}, tmp_path) as agents:
            for name in ("one", "two"):
                launch_root(store, load(tmp_path / name / "solo.toml"), "Go.", name)
                agents.attempt(name, permissions=Permissions())
            launch_root(store, load(tmp_path / "one" / "solo.toml"), "Go.", "three")
            assert agents.attempt("three", permissions=NOTHING) == "not allowed"

            assert agents.results("one")[0].content == "from one"
            # Python keeps one module of a name: never the wrong program's
            assert agents.record("two").state == "failed"
            assert "of another program was imported here from" in agents.record("two").reason
        assert sys.path[: len(before)] == before
    finally:
        sys.path[:] = before
        sys.modules.pop("path_tools", None)
