"""Commands started in a directory with hostile files execute none of them."""

from __future__ import annotations

import os
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from functools import partial
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest

from fdstore.local.redis_server import PrivateServer
from fdstore.testing import Request, ScriptedModel, call, say, turn
from tests.acceptance.conftest import Command
from tests.children import Child
from tests.waiting import PATIENCE_S

FDSTORE = Path(sys.executable).with_name("fdstore")
"""The command as people start it."""

ROOT_FOLDER = Path(__file__).parents[2]

NAMES = {"sitecustomize", "usercustomize", "celeryconfig", "conftest", "settings", "main", "fdstore_workers"}
PROGRAMS = ("redis-server", "valkey-server", "redis-cli", "bwrap", "prlimit", "setpriv", "choom", "python3")

ROOT = """
[model]
name = "any"
[prompt]
system = "You are ROOT."
[tools]
enabled = ["spawn", "read_fd", "pipe", "wait"]
[commands]
allow = ["sort"]
[linked_programs]
reader = "reader.toml"
"""

READER = """
[model]
name = "any"
[prompt]
system = "You are READER."
[tools]
enabled = ["read_fd"]
"""


ATTACKER = """
[model]
name = "any"
[tools]
enabled = ["write_fd", "fd_to_file"]
[export]
root = "."
"""


def answers(request: Request) -> object:
    if "READER" in request.system:
        return say("I have read.")
    return call("spawn", program_name="reader", query="Read.") if request.turn_number == 0 else say("Done.")


@pytest.fixture(scope="module")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with a module for every name that Python could import there, and programs."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "workers").mkdir()
    (folder / "workers" / "__init__.py").write_text(_note(folder, "workers"))
    names = {*sys.stdlib_module_names, *packages_distributions(), *NAMES} - {"workers"}
    for name in names:
        (folder / f"{name}.py").write_text(_note(folder, name))
    for name in PROGRAMS:
        (folder / name).write_text(f"#!/bin/sh\necho {name} >> {folder / 'executed'}\nexit 1\n")
        (folder / name).chmod(0o755)
    (folder / "agent.toml").write_text(ROOT)
    (folder / "reader.toml").write_text(READER)
    (folder / "notes.txt").write_text("b\na\n")
    return folder


def _note(folder: Path, name: str) -> str:
    return f"with open({str(folder / 'executed')!r}, 'a') as file:\n    file.write('{name}\\n')\n"


@pytest.fixture(scope="module")
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(answers) as model:
        yield model


def installed(command: Command, *args: str) -> str:
    """Run the command as people start it, and return what it prints."""
    done = subprocess.run(
        [FDSTORE, *args],
        cwd=command.folder,
        env=command.environment,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        stdin=subprocess.DEVNULL,
    )
    assert done.returncode == 0, (args, done.stdout, done.stderr)
    return done.stdout


def executed_files(folder: Path) -> list[str]:
    noted = folder / "executed"
    return noted.read_text().split() if noted.exists() else []


@pytest.mark.thorough("a server, a worker and five commands, each a new interpreter")
def test_no_file_of_the_current_directory_is_executed(hostile, model, tmp_path):
    person = partial(
        installed, Command(tmp_path, hostile, **model.environ, PATH=os.pathsep + os.environ["PATH"])
    )

    try:
        person("status")
        # these start the server and a worker, in that directory
        person("put", "triage", "notes.txt")
        assert person("run", "agent.toml", "-p", "go") == "Done.\n"
        assert person("pipe", "triage", "-i", "fd:1", "--", "sort") == "a\nb\n"
    finally:
        person("down")

    assert executed_files(hostile) == []


@pytest.mark.thorough("the other pool")
def test_a_worker_with_a_process_for_each_agent_executes_no_file_of_the_current_directory(
    hostile, model, tmp_path
):
    with PrivateServer() as server:
        person = partial(installed, Command(tmp_path, hostile, **model.environ, FDSTORE_URL=server.url))
        log = tmp_path / "worker.log"
        with log.open("wb") as output:
            worker = Child(
                [FDSTORE, "worker", "-c", "2", "--pool", "prefork"],
                cwd=hostile,
                env=person.args[0].environment,
                stdout=output,
                stderr=output,
            )
        try:
            assert person("run", "agent.toml", "-p", "go") == "Done.\n"
        finally:
            worker.end()

    assert executed_files(hostile) == [], log.read_text()


@pytest.mark.thorough("files of a user in the same place are tested")
def test_files_written_by_a_model_are_not_executed_by_the_next_run(tmp_path):
    folder = tmp_path / "project"
    (folder / ".git").mkdir(parents=True)
    (folder / ".git" / "config").write_text("ours\n")
    (folder / "agent.toml").write_text(ATTACKER)
    wanted = ["workers.py", "fdstore_workers.py", "msgspec.py", "celeryconfig.py", "sitecustomize.py"]
    refused = [".git/config", ".env", "../escaped.py", "/tmp/fdstore-escaped.py"]

    def attack(request: Request) -> object:
        if "fd_to_file" not in request.tools or request.turn_number > 1:
            return say("Done.")
        if request.turn_number == 0:
            return call("write_fd", data=_note(folder, "attack"))
        return turn(*(call("fd_to_file", fd="fd:1", file_path=path) for path in wanted + refused))

    with ScriptedModel(attack) as model, PrivateServer() as server:
        person = partial(
            installed, Command(tmp_path / "data", folder, **model.environ, FDSTORE_URL=server.url)
        )
        for _ in range(2):
            assert person("run", "agent.toml", "-p", "go") == "Done.\n"
        results = model.requests[-1].tool_results()

    assert [result.is_error for result in results[1:]] == [False] * len(wanted) + [True] * len(refused)
    written = {str(path.relative_to(folder)) for path in folder.rglob("*.py")}
    assert written == set(wanted)
    assert (folder / ".git" / "config").read_text() == "ours\n"
    assert not (folder / ".env").exists()
    assert executed_files(folder) == []


def test_a_relative_entry_of_pythonpath_provides_no_package(tmp_path):
    # what Python itself loads when it starts is beyond our reach, and so are modules of its library
    for name in ("redis", "msgspec", "click", "celery", "hiredis", "re2"):
        (tmp_path / f"{name}.py").write_text(_note(tmp_path, name))
    (tmp_path / "notes.txt").write_text("b\na\n")
    with PrivateServer() as server:
        person = partial(
            installed, Command(tmp_path / "data", tmp_path, FDSTORE_URL=server.url, PYTHONPATH=":.:sub")
        )

        person("put", "triage", "notes.txt")

    assert executed_files(tmp_path) == []


def test_the_project_installs_only_its_own_top_level_packages():
    project = tomllib.loads((ROOT_FOLDER / "pyproject.toml").read_text())

    installed = project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]

    assert [Path(each).name for each in installed] == ["fdstore", "fdstore_workers"]
