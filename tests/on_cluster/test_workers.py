"""Agents on workers whose store is a Cluster; the queue is in a Redis of its own."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

import fdstore
import fdstore.aio
from fdstore.cli import cli
from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import Request, ScriptedModel, call, say
from tests.on_cluster.cluster import Cluster
from tests.process_template import run_command
from tests.waiting import wait_until
from tests.with_workers.conftest import agent_workers

READER = '[prompt]\nsystem = "You read."\n[model]\nname = "scripted"\n[tools]\nenabled = ["read_fd"]\n'
TEXT = "".join(f"line {number}\n" for number in range(1, 5001))


@pytest.fixture
def broker() -> Iterator[PrivateServer]:
    with PrivateServer() as server:
        yield server


@pytest.fixture
def reader(tmp_path: Path) -> Path:
    """A program whose agent reads a page of its input and answers with the last line."""
    program = tmp_path / "reader.toml"
    program.write_text(READER)
    return program


def model_script(request: Request) -> Any:
    if request.turn_number == 0:
        return call("read_fd", fd="fd:1", mode="line", start=4321)
    return say(f"I read: {request.last_text()}")


def test_a_spawned_child_reads_descriptors_shared_by_its_parent(
    cluster: Cluster,
    broker: PrivateServer,
    proc: Process,
    reader: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("FDSTORE_BROKER_URL", broker.url)
    proc.create(TEXT)
    with ScriptedModel(model_script) as model, agent_workers(tmp_path) as start_worker:
        worker = start_worker(cluster.url, model, 2)
        tools = fdstore.Toolset(proc, enabled=["read_fd", "spawn"], programs={"reader": reader})

        answers = [
            tools.call(
                "spawn",
                {"program_name": "reader", "query": "Read.", "additional_preload_fds": ["fd:1"]},
                call_id=f"call-{number}",
            )
            for number in range(3)
        ]
        status = CliRunner().invoke(cli, ["status", "--json", "--url", cluster.url])
        assert json.loads(status.stdout)["store"]["workers"] == [worker.name]
        worker.terminate()
        wait_until(lambda: not worker.is_alive)

    assert [answer.is_error for answer in answers] == [False] * 3
    assert all("line 4321" in str(answer.content) for answer in answers)
    assert proc.store.tree("triage").fds == 1
    assert [member.state for member in proc.store.tree("triage").members] == ["open", *["exited"] * 3]


@pytest.mark.parametrize("enabled", [["spawn"], ["pipe"]])
def test_tools_that_need_workers_require_a_queue_outside_the_cluster(
    proc: Process, reader: Path, enabled: list[str]
) -> None:
    with pytest.raises(InvalidArgument, match="set FDSTORE_BROKER_URL to a single Redis"):
        fdstore.Toolset(proc, enabled=enabled, programs={"reader": reader}, commands=["grep"])

    assert fdstore.Toolset(proc, enabled=["read_fd"]).definitions


async def test_the_awaitable_toolset_requires_a_separate_queue_too(cluster: Cluster, reader: Path) -> None:
    async with await fdstore.aio.connect(cluster.url) as store:
        proc = await store.process("triage")
        with pytest.raises(InvalidArgument, match="FDSTORE_BROKER_URL"):
            fdstore.aio.Toolset(proc, enabled=["spawn"], programs={"reader": reader})


@pytest.mark.parametrize(
    "verb", [["worker"], ["run", "{reader}", "-p", "Read."], ["pipe", "triage", "--", "ls"]]
)
def test_verbs_that_need_workers_fail_before_creating_anything(
    cluster: Cluster,
    store: Store,
    reader: Path,
    verb: list[str],
) -> None:
    store.process("triage")
    words = [word.format(reader=reader) for word in verb]

    done = run_command(*words[:1], "--url", cluster.url, *words[1:])

    assert done.returncode == 2
    assert "invalid_argument" in done.stderr
    assert "set FDSTORE_BROKER_URL" in done.stderr
    assert [process.id for process in store.processes()] == ["triage"]


def test_a_kill_needs_no_queue(cluster: Cluster, proc: Process) -> None:
    child = proc.child()

    done = CliRunner().invoke(cli, ["kill", "--url", cluster.url, child.id])

    assert done.exit_code == 0
    assert f"cancelled {child.id}" in done.stdout
