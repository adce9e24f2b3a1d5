"""A worker asks the servers of models that its operator allows, with the keys that belong to them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from fdstore.agents.runtime.eligibility import why_unclaimed
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.processes import process_records, waiting
from fdstore.testing import ScriptedModel, say
from tests.waiting import wait_until
from tests.with_workers.agent_harness import launch
from tests.with_workers.conftest import ALLOW_ALL
from tests.worker_process import WorkerProcess


@pytest.fixture
def model() -> Iterator[ScriptedModel]:
    with ScriptedModel(lambda _: say("Done.")) as scripted:
        yield scripted


@pytest.fixture
def worker(agents_server: PrivateServer, model: ScriptedModel, tmp_path: Path) -> Iterator[WorkerProcess]:
    """A worker without a key of any SDK, which may ask one server, with one variable."""
    environ = {
        name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "OPENAI_"))
    }
    environ |= {"HOME": str(tmp_path), "MINE": model.api_key, "FDSTORE_ALLOW_MODEL_SERVERS": "http://gpu2:1"}
    options = ["--url", agents_server.url, *ALLOW_ALL, "--allow-model-server", f"{model.base_url}/=MINE"]
    started = WorkerProcess(tmp_path / "worker.log", options, environ=environ, folder=tmp_path)
    started.wait_until_ready()
    yield started
    started.kill()


def program(folder: Path, name: str, url: str, variable: str) -> Path:
    file = folder / f"{name}.toml"
    file.write_text(f'[model]\nname = "any"\nbase_url = "{url}"\napi_key_env = "{variable}"\n')
    return file


def test_a_worker_asks_what_is_allowed_and_leaves_the_rest_with_the_reason(
    worker: WorkerProcess, model: ScriptedModel, store: Store, tmp_path: Path
) -> None:
    good = launch(store, program(tmp_path, "good", model.base_url, "MINE"))
    stealing = launch(store, program(tmp_path, "stealing", model.base_url, "FDSTORE_URL"))

    ended = store.run(waiting.wait_until_ended(store.prefix, [good], 60))
    wait_until(lambda: f"{stealing} is not allowed here" in worker.log)

    assert ended, worker.log
    assert store.run(process_records.record(store.prefix, good)).exit_code == 0
    assert store.run(process_records.record(store.prefix, stealing)).attempt == 0
    assert "runs only agents of programs that name a server of models: no key for" in worker.log
    why = store.run(why_unclaimed(store.prefix, stealing))
    assert f"the variable FDSTORE_URL for the server of models {model.base_url} is not allowed" in why
    assert {request.headers["authorization"] for request in model.requests} == {f"Bearer {model.api_key}"}
    assert model.api_key not in worker.log
