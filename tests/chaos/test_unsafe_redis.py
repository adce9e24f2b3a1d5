"""A Redis that becomes unsafe while workers run: they report it, pause, and resume when it is safe."""

from __future__ import annotations

import os
from pathlib import Path

from fdstore.client import Store
from fdstore.testing import Reply, Request, call, say
from tests.chaos.agents import answer_of, has_ended, launch, record_of, write_program
from tests.chaos.conftest import Execute, Faults
from tests.chaos.worker_pool import WorkerPool
from tests.process_template import run_command
from tests.waiting import wait_until

SECTIONS = """
[tools]
enabled = ["read_fd"]
python = ["agent_tools:numbered"]
"""


def test_agents_pause_while_redis_may_evict_content_and_resume_afterwards(
    store: Store, worker_pool: WorkerPool, tmp_path: Path, execute: Execute, faults: Faults
) -> None:
    program = write_program(tmp_path, "careful", SECTIONS)

    def script(request: Request) -> Reply:
        if request.turn_number > 0:
            return say("done")
        if not faults.kinds.total():
            execute("CONFIG", "SET", "maxmemory-policy", "allkeys-lru")
            execute("HDEL", f"fdstore:{{{root.id}}}", "checked_at")  # a minute later
            faults.note("redis made unsafe")
        return call("numbered", count=3000)

    with worker_pool.scripted(script):
        worker = worker_pool.start_worker(1).wait_until_ready()
        root = launch(store, program, "go on")

        wait_until(lambda: f"{root.id} is given back: " in worker.log, what="the pause of the agent")
        wait_until(lambda: "allkeys-lru" in worker.log.partition("sweep failed")[2])
        said = status(store.url)
        found = record_of(store, root.id)
        assert (found.state, found.losses, root.list()) == ("ready", 0, [])

        execute("CONFIG", "SET", "maxmemory-policy", "noeviction")
        wait_until(lambda: has_ended(store, root.id))

    assert "unsafe_store" in said
    assert "CONFIG SET maxmemory-policy noeviction" in said
    ended = answer_of(store, root.id)
    assert (ended.text, ended.record.losses) == ("done", 0)
    assert [d.source for d in root.list()] == ["numbered"]
    assert worker.is_alive


def status(url: str) -> str:
    """Return the warnings of `fdstore status`, which shows everything else as usual."""
    ended = run_command("status", env={**os.environ, "FDSTORE_URL": url})
    assert (ended.returncode, "holds" in ended.stdout) == (0, True)
    return ended.stderr
