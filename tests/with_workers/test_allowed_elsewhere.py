"""An agent that one worker may not run is run by its neighbour, at its first attempt."""

from __future__ import annotations

import os
from pathlib import Path

from fdstore.client import Store
from fdstore.store.processes import process_records, waiting
from fdstore.testing import Reply, Request, ScriptedModel, call, say
from tests.waiting import wait_until
from tests.with_workers.agent_harness import launch
from tests.with_workers.conftest import StartAgentWorker
from tests.worker_process import WorkerProcess

PROGRAM = """
[model]
name = "scripted"
[prompt]
system = "You are SOLO."
[tools]
python = ["own_tools:greet"]
"""


def test_a_worker_leaves_an_agent_that_it_may_not_run_to_one_that_may(
    store: Store, start_agent_worker: StartAgentWorker, tmp_path: Path
) -> None:
    (tmp_path / "own_tools.py").write_text('def greet() -> str:\n    "Greets."\n    return "hello"\n')
    (tmp_path / "solo.toml").write_text(PROGRAM)

    def script(request: Request) -> Reply:
        results = request.tool_results()
        return say(results[0].text) if results else call("greet")

    with ScriptedModel(script) as model:
        environ = {**os.environ, **model.environ}
        options = ["--url", store.url]
        restricted = WorkerProcess(tmp_path / "few.log", options, environ=environ, folder=tmp_path)
        try:
            restricted.wait_until_ready()
            root = launch(store, tmp_path / "solo.toml")
            wait_until(lambda: f"{root} is not allowed here and waits" in restricted.log)
            before = store.run(process_records.record(store.prefix, root))

            allowed = start_agent_worker(store.url, model)
            ended = store.run(waiting.wait_until_ended(store.prefix, [root], 60))
        finally:
            restricted.kill()

        assert ended, allowed.log
        answer = store.run(process_records.answer_of(store.prefix, root))
    assert (before.state, before.attempt) == ("ready", 0)
    assert (answer.text, answer.record.attempt) == ("hello", 1)
