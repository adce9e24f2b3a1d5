"""A worker without a model key runs pipelines, and leaves agents to workers with a key."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.processes import process_records, waiting
from fdstore.store.views import worker_registry
from fdstore.testing import ScriptedModel, say
from fdstore.toolset._sync import Toolset
from tests.elements import only
from tests.waiting import wait_until
from tests.with_workers.agent_harness import launch
from tests.with_workers.conftest import ALLOW_ALL, StartAgentWorker
from tests.worker_process import WorkerProcess

PROGRAM = '[model]\nname = "scripted"\n[prompt]\nsystem = "You are ROOT."\n'


@pytest.fixture
def keyless(agents_server: PrivateServer, tmp_path: Path) -> Iterator[WorkerProcess]:
    """A ready worker without a key and without a home directory where the SDK could find one."""
    environ = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
    options = ["--url", agents_server.url, "--unsandboxed-commands", *ALLOW_ALL]
    environ["HOME"] = str(tmp_path)
    worker = WorkerProcess(tmp_path / "keyless.log", options, environ=environ, folder=tmp_path)
    worker.wait_until_ready()
    yield worker
    worker.kill()


def test_a_worker_without_a_key_runs_pipelines_and_leaves_agents_to_one_with_a_key(
    keyless: WorkerProcess, store: Store, start_agent_worker: StartAgentWorker, tmp_path: Path
) -> None:
    [listed] = store.run(worker_registry.read_workers(store.prefix)).alive  # as soon as it is ready
    assert "ANTHROPIC_API_KEY" in listed.no_agents
    (tmp_path / "root.toml").write_text(PROGRAM)
    root = launch(store, tmp_path / "root.toml")
    proc = store.process("caller")
    tools = Toolset(proc, enabled=["pipe", "wait", "read_fd"], commands=["echo"])

    made = only(tools.call("pipe", {"commands": ["echo yes"]}).content)
    tools.call("wait", {"target": made.attributes["process"], "seconds": 30})
    wait_until(lambda: f"{root} is an agent and waits" in keyless.log)
    before = store.run(process_records.record(store.prefix, root))
    with ScriptedModel([say("Done.")]) as model:
        keyed = start_agent_worker(store.url, model)
        ended = store.run(waiting.wait_until_ended(store.prefix, [root], 30))
        living = store.run(worker_registry.workers(store.prefix))

    assert proc.read(made.attributes["fd"]).text == "yes\n"
    assert (before.state, before.attempt) == ("ready", 0)
    assert "runs pipelines only, and leaves agents to other workers: no key for" in keyless.log
    assert ended, keyed.log
    assert store.run(process_records.record(store.prefix, root)).attempt == 1
    assert f"{root} exited: program root, exit code 0, " in keyed.log
    assert " exited: program echo yes, exit code 0, " in keyless.log
    assert len(living) == 2
