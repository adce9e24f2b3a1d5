"""The workers that commands start, and the messages of commands about unsuitable or missing workers."""

from __future__ import annotations

import fcntl
import json
import re
from pathlib import Path

import msgspec
import pytest
import redis

import fdstore
from fdstore.agents.runtime.local_worker import warn_of_misfits
from fdstore.local.redis_server import PrivateServer
from fdstore.local.worker import BackgroundWorker
from fdstore.local.worker_environment import Surroundings
from fdstore.testing import Request, ScriptedModel, call, say
from tests.acceptance.conftest import Command
from tests.conftest import is_running
from tests.thorough import thorough

CHILD = """
[model]
name = "scripted"
[prompt]
system = "You are CHILD."
"""
PARENT = (
    CHILD.replace("CHILD", "PARENT")
    + """
[tools]
enabled = ["spawn"]
[linked_programs]
child = "child.toml"
"""
)
CALLING = '[tools]\npython = ["house_tools:where"]\n'
TOOL = '''
import os

def where() -> str:
    """The directory and a variable."""
    return f"{os.getcwd()} {os.environ.get('HOUSE')}"
'''

SPAWNS = """
import fdstore
with fdstore.connect() as store:
    tools = fdstore.Toolset(
        store.process("own-loop"), enabled=["spawn", "read_fd"], programs={"child": "child.toml"}
    )
    print(tools.call("spawn", {"program_name": "child", "query": "Go."}).text)
"""


def answers(request: Request) -> object:
    if "CHILD" in request.system:
        if '"where"' in json.dumps(request.tools) and request.turn_number == 0:
            return call("where")
        return say(f"child: {request.messages[-1]['content']}")
    if request.turn_number == 0:
        return call("spawn", program_name="child", query="Go.")
    return say(f"parent: {request.messages[-1]['content']}")


def worker_pid(command: Command) -> int | None:
    pid = command("status", "--json").document["worker"]["pid"]
    assert pid is None or isinstance(pid, int)
    return pid


def write_programs(folder: Path, child: str = CHILD) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "parent.toml").write_text(PARENT)
    (folder / "child.toml").write_text(child)


@pytest.mark.thorough("it starts several workers")
def test_run_replaces_an_idle_worker_by_one_with_its_own_key_directory_and_tools(fresh, tmp_path):
    fresh.environment = fresh.without_key() | {"HOME": str(tmp_path)}
    write_programs(fresh.folder, CHILD + CALLING)
    fresh("up")
    first = worker_pid(fresh)

    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "house_tools.py").write_text(TOOL)
    with ScriptedModel(answers) as model:
        fresh.environment |= model.environ | {"PYTHONPATH": str(tmp_path / "lib"), "HOUSE": "number 7"}
        ran = fresh("run", "parent.toml", "-p", "go")

    assert (
        f"the background worker (pid {first}) was started elsewhere (ANTHROPIC_API_KEY is not set there;"
        in ran.err
    )
    assert ran.code == 0, ran.err
    assert f"{tmp_path} number 7" in ran.out
    assert worker_pid(fresh) != first


@pytest.mark.thorough("it starts several workers")
def test_a_loop_of_your_own_replaces_an_idle_worker_that_has_no_key(fresh, tmp_path):
    fresh.environment = fresh.without_key() | {"HOME": str(tmp_path)}
    write_programs(fresh.folder)
    fresh("up")
    first = worker_pid(fresh)

    with ScriptedModel(answers) as model:
        fresh.environment |= model.environ
        ran = fresh.python(SPAWNS)

    assert ran.code == 0, ran.err
    assert "child: Go." in ran.out
    assert worker_pid(fresh) not in (None, first)


def test_run_starts_a_worker_for_a_program_that_only_runs_pipelines(fresh, tmp_path):
    (tmp_path / "piper.toml").write_text(
        '[model]\nname = "scripted"\n[tools]\nenabled = ["pipe"]\n[commands]\nallow = ["sort"]\n'
    )
    with ScriptedModel([say("Nothing to sort.")]) as model:
        fresh.environment |= model.environ
        ran = fresh("run", "piper.toml", "-p", "go")

    assert ran.out == "Nothing to sort.\n"
    assert worker_pid(fresh) is not None


def test_a_busy_worker_is_not_replaced_and_the_differences_are_printed_before_the_run(
    command, tmp_path, monkeypatch
):
    command.environment = command.without_key() | {"HOME": str(tmp_path)}
    write_programs(command.folder)
    stem = command.data_dir / f"worker@{command.environment['FDSTORE_PREFIX']}"
    started_with = Surroundings.here("salt", command.environment)
    stem.with_suffix(".json").write_bytes(msgspec.json.encode(started_with))
    stem.with_suffix(".pid").write_text("4711\n")
    logged: list[str] = []
    monkeypatch.setenv("ANTHROPIC_API_KEY", "of another shell")
    monkeypatch.setenv("FDSTORE_DATA_DIR", str(command.data_dir))
    with command.store() as store, ScriptedModel([say("Alone.")]) as model:
        start_running_agent(store)
        command.environment |= model.environ
        with stem.with_suffix(".lock").open("wb") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)  # as the worker would
            ran = command("run", "parent.toml", "-p", "go")
            background = BackgroundWorker(command.data_dir, store.url, store.prefix)
            warn_of_misfits(background, for_functions=False, say=logged.append)

    assert logged[0].startswith("the background worker (pid 4711) is at work")  # the log names fdstore
    told = ran.err.splitlines()[0]
    assert told.startswith(
        "fdstore: the background worker (pid 4711) is at work and was started elsewhere: ANTHROPIC_API_KEY"
    )
    assert ran.out == "Alone.\n"


def start_running_agent(store) -> None:
    """Launch an agent that is running elsewhere."""
    store.process("busy")
    with redis.Redis.from_url(store.url) as client:
        client.hset(f"{store.prefix}:{{busy}}:busy", mapping={"state": "running", "attempt": 1})


@pytest.mark.long
def test_each_prefix_has_a_background_worker_and_down_ends_them_all(fresh):
    one = fresh("up", "--json").document["worker"]["pid"]
    other = fresh("up", "--prefix", "other", "--json").document["worker"]["pid"]

    fresh("down")

    assert one != other
    assert not is_running(one)
    assert not is_running(other)


def test_up_with_a_url_starts_a_worker_for_that_store_and_down_ends_it(fresh):
    with PrivateServer() as server:
        fresh.environment["FDSTORE_URL"] = server.url
        up = fresh("up", "--json").document
        status = fresh("status", "--json").document
        down = fresh("down", "--json")
        still_runs = is_running(up["worker"]["pid"])
    del fresh.environment["FDSTORE_URL"]

    assert (up["server"], up["store"]) == (None, server.url)
    assert status["worker"] == up["worker"]
    assert [worker.rpartition(":")[2].partition("-")[0] for worker in status["store"]["workers"]] == [
        str(up["worker"]["pid"])
    ]
    assert down.document == {"server": None, "worker": {"stopped": True}}
    assert not still_runs
    assert not (fresh.data_dir / "redis.log").exists()


def test_up_says_what_waited_for_a_worker_and_drops_it_if_asked(fresh):
    with PrivateServer() as server, fdstore.connect(server.url) as store:
        fresh.environment["FDSTORE_URL"] = server.url
        store.process("triage")
        fresh("pipe", "triage", "--detach", "--", "seq", "1")
        dropped = fresh("up", "--drop")
        fresh("down")
        fresh("pipe", "triage", "--detach", "--", "seq", "1")
        taken = fresh("up")
        fresh("down")
        states = {each.id: each.state for each in store.processes()}
    del fresh.environment["FDSTORE_URL"]

    assert dropped.lines[-1].split() == ["dropped", "triage.1"]
    assert re.fullmatch(
        r"takes up +triage\.2, which waited for a worker, up to .*; `fdstore kill` drops one", taken.lines[-1]
    )
    assert states["triage.1"] == "cancelled"


def test_a_detached_run_says_at_once_that_the_worker_it_started_has_no_key(fresh):
    fresh.environment = fresh.without_key()
    write_programs(fresh.folder)

    ran = fresh("run", "child.toml", "-p", "go", "--detach", "--name", "alone")

    assert ran.lines == ["alone"]
    assert "no worker of this store takes agents" in ran.err
    assert "set ANTHROPIC_API_KEY; `python -m fdstore.testing` runs a scripted model" in ran.err
    assert ran.err.endswith("Agents wait for one\n")


def test_a_toolset_starts_a_worker_for_the_embedded_store_if_none_lives(fresh):
    ended = fresh.python(PIPING)

    assert ended.out.split() == ["1", "2", "3"], ended.err
    assert worker_pid(fresh) is not None


def test_up_with_the_url_of_an_unreachable_redis_starts_nothing(fresh):
    ended = fresh("up", "--url", "redis://127.0.0.1:1")

    assert ended.code == 1
    assert ended.err.startswith("fdstore: store_unavailable: Redis at ")
    assert list(fresh.data_dir.glob("worker*")) == []


PIPING = """
import fdstore
with fdstore.connect() as store:
    proc = store.process("caller")
    tools = fdstore.Toolset(proc, enabled=["pipe", "read_fd"], commands=["seq"])
    tools.call("pipe", {"commands": ["seq 3"]})
    print("".join(proc.follow("fd:1")))
"""
HIDING = """
import sys

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("anthropic", "celery", "kombu", "billiard"):
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)

sys.meta_path.insert(0, Hidden())
"""
SPAWNING = """
import fdstore, sys
proc = fdstore.connect(sys.argv[1]).process("caller")
try:
    fdstore.Toolset(proc, enabled=["spawn"], programs={"child": "child.toml"})
except fdstore.errors.MissingExtra as error:
    print(error)
"""


@pytest.fixture
def command_without_agents_extra(make_command, tmp_path: Path) -> Command:
    """The command without the packages of the extra `agents`, in itself and in the processes it starts."""
    (tmp_path / "site").mkdir()
    (tmp_path / "site" / "sitecustomize.py").write_text(HIDING)
    command: Command = make_command(PYTHONPATH=str(tmp_path / "site"))
    write_programs(command.folder)
    return command


@pytest.mark.parametrize(
    "words",
    [
        ["worker"],
        ["run", "parent.toml", "-p", "go"],
        *thorough(
            "other verbs",
            ["up"],
            ["demo", "-o", "out"],
            ["run", "parent.toml", "-p", "go", "--detach"],
            ["resume", "triage"],
        ),
    ],
    ids=lambda words: words[0],
)
def test_without_the_extra_a_verb_names_the_package_to_install_before_starting_anything(
    command_without_agents_extra, words
):
    ended = command_without_agents_extra(*words)

    assert (ended.code, ended.out) == (1, "")
    assert ended.err == (
        "fdstore: missing_extra: this needs the Python package 'anthropic'; install it with: "
        "pip install '.[agents]' in a checkout of fdstore\n"
    )
    assert not command_without_agents_extra.data_dir.exists()
    assert not (command_without_agents_extra.folder / "out").exists()


@pytest.mark.thorough("each command is a new interpreter")
def test_without_the_extra_pipe_and_spawn_create_nothing_and_kill_works(command_without_agents_extra):
    with PrivateServer() as server:
        command_without_agents_extra.environment["FDSTORE_URL"] = server.url
        command_without_agents_extra("put", "triage", "-", stdin=b"text")
        piped = command_without_agents_extra("pipe", "triage", "-i", "fd:1", "--", "cat")
        killed = command_without_agents_extra("kill", "triage")
        spawned = command_without_agents_extra.python(SPAWNING, server.url)
        listed = [each["id"] for each in command_without_agents_extra("ps", "-a", "--json").documents]

    assert piped.err.startswith("fdstore: missing_extra: this needs the Python package 'celery'; ")
    assert (killed.code, killed.out) == (0, "cancelled triage\n")
    assert spawned.out.startswith("this needs the Python package 'celery'; "), spawned.err
    assert listed == ["caller", "triage"]
