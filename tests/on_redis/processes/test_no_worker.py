"""Processes started without a worker wait and log why, or are refused when the caller does not wait."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fdstore
import fdstore.aio
from fdstore.agents.runtime.eligibility import describe_permissions
from fdstore.client import Process, Store
from fdstore.errors import NoWorker
from fdstore.files.permissions import Permissions
from fdstore.model.model_servers import ModelAccess
from fdstore.store.clock import redis_now
from fdstore.store.processes import processes
from fdstore.store.views import worker_check, worker_registry
from tests.waiting import PATIENCE_S, wait_until

CHILD = '[model]\nname = "any"\n[prompt]\nsystem = "You are CHILD."\n'
SPAWN = {"program_name": "child", "query": "Go."}


@pytest.fixture
def toolset(
    proc: Process, tmp_path: Path, execute: Callable[..., Any]
) -> Iterator[Callable[..., fdstore.Toolset]]:
    (tmp_path / "child.toml").write_text(CHILD)

    def make(**more: Any) -> fdstore.Toolset:
        return fdstore.Toolset(
            proc,
            enabled=["spawn", "pipe", "wait"],
            programs={"child": tmp_path / "child.toml"},
            commands=["cat"],
            **more,
        )

    yield make
    execute("DEL", "fdq:fdstore:queue")  # no worker receives these wake-ups


def add_worker(store: Store, **more: str) -> None:
    store.run(worker_registry.register_worker("fdstore", "host:1", 60, store.run(redis_now()), **more))


def test_a_spawn_without_a_worker_logs_a_warning_and_waits(
    store: Store,
    toolset: Callable[..., fdstore.Toolset],
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(worker_check, "PATIENCE_S", 0.1)
    tools = toolset()
    results: list[fdstore.ToolResult] = []
    spawning = threading.Thread(target=lambda: results.append(tools.call("spawn", SPAWN)))
    spawning.start()

    wait_until(lambda: bool(caplog.messages))
    store.run(processes.cancel("fdstore", "triage.1"))
    spawning.join(PATIENCE_S)

    assert caplog.messages == [
        "triage.1 waits for a worker: no worker takes processes of this store; "
        "start one with: fdstore worker, or fdstore up"
    ]
    assert "cancelled" in results[0].content


def test_the_warning_is_about_the_provider_of_the_program(
    store: Store,
    toolset: Callable[..., fdstore.Toolset],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(worker_check, "PATIENCE_S", 0.1)
    (tmp_path / "child.toml").write_text(CHILD.replace("[prompt]", 'provider = "openai"\n[prompt]'))
    keyless = {"anthropic": "", "openai": "no key for Chat Completions"}
    add_worker(store, permissions=describe_permissions(Permissions(models=ModelAccess(keyless=keyless))))
    tools = toolset()
    spawning = threading.Thread(target=lambda: tools.call("spawn", SPAWN))
    spawning.start()

    wait_until(lambda: bool(caplog.messages))
    store.run(processes.cancel("fdstore", "triage.1"))
    spawning.join(PATIENCE_S)

    assert caplog.messages == [
        "triage.1 waits for a worker: no worker of this store takes agents; host:1 says: "
        "no key for Chat Completions"
    ]


@pytest.mark.parametrize(("name", "arguments"), [("spawn", SPAWN), ("pipe", {"commands": ["cat"]})])
def test_a_toolset_that_does_not_wait_raises_without_a_worker_and_creates_nothing(
    store: Store, toolset: Callable[..., fdstore.Toolset], name: str, arguments: dict[str, Any]
) -> None:
    tools = toolset(wait_for_workers=False)

    with pytest.raises(NoWorker, match="no worker takes processes of this store"):
        tools.call(name, arguments, call_id="1")

    assert [process.id for process in store.processes()] == ["triage"]


def test_a_spawn_is_refused_with_the_reason_why_workers_run_only_pipelines(
    store: Store, toolset: Callable[..., fdstore.Toolset]
) -> None:
    add_worker(store, no_agents="there is no key")
    tools = toolset(wait_for_workers=False)

    with pytest.raises(NoWorker, match="takes agents; host:1 says: there is no key"):
        tools.call("spawn", SPAWN)

    assert not tools.call("pipe", {"commands": ["cat"]}).is_error


def test_the_awaitable_toolset_raises_without_a_worker_too(
    awaited: Any, toolset: Callable[..., object], tmp_path: Path
) -> None:
    programs = {"child": tmp_path / "child.toml"}

    async def spawn(proc: fdstore.aio.Process) -> None:
        tools = fdstore.aio.Toolset(proc, enabled=["spawn"], programs=programs, wait_for_workers=False)
        await tools.call("spawn", SPAWN)

    with pytest.raises(NoWorker):
        awaited(spawn)
