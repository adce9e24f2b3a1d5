"""Run a whole tree of agents in a test: their programs, loops and tools, on a scripted model.

The root and all that it spawns run in this process, each in a thread of its own, and no worker is needed.
What needs one, the commands of `pipe`, waits until the agent's time limit.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence
from contextlib import ExitStack, closing
from pathlib import Path
from typing import Any

from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.models.base import Model
from fdstore.agents.loop.models.providers import open_class
from fdstore.agents.loop.program_loader import load
from fdstore.agents.runtime.run_process import run_process
from fdstore.client import Process, Store
from fdstore.files.permissions import Permissions
from fdstore.model.model_servers import ModelServer
from fdstore.model.providers import PROVIDERS, SPEAKERS
from fdstore.model.records import ProcessRecord
from fdstore.store.processes import process_records
from fdstore.testing.requests import Request, ToolResult
from fdstore.testing.script import Script
from fdstore.testing.server import ScriptedModel

WORKER = "test"
SHOWN_CHARS = 2000


class AgentRun:
    """A tree of agents that has ended.

    process   the root, to look at its descriptors
    record    how it ended: `state`, `exit_code`, `reason`, tokens
    answer    its answer
    requests  all requests to the model, those of children too, in the order of their arrival
    """

    def __init__(
        self, process: Process, answer: process_records.ProcessAnswer, requests: Sequence[Request]
    ) -> None:
        self.process = process
        self.record: ProcessRecord = answer.record
        self.answer = answer.text
        self.requests = list(requests)

    def results(self) -> list[ToolResult]:
        """Return all results of tools that a model was shown, each once, in the order of their arrival."""
        found: dict[tuple[str, str], ToolResult] = {}
        for request in self.requests:
            for result in request.tool_results():
                found.setdefault((request.system, result.tool_use_id), result)
        return list(found.values())

    def was_shown(self, text: str) -> bool:
        """Return whether a model was shown `text`, in a prompt or in the result of a tool."""
        return any(text in part for request in self.requests for part in _texts(request.raw))

    def assert_shown(self, *texts: str) -> None:
        """Fail unless a model was shown each of these texts."""
        for text in texts:
            assert self.was_shown(text), f"no model was shown {text!r}; {self._last()}"

    def assert_not_shown(self, *texts: str) -> None:
        """Fail if a model was shown one of these texts, as a long output that should be a descriptor."""
        for text in texts:
            assert not self.was_shown(text), f"a model was shown {text!r}; {self._last()}"

    def _last(self) -> str:
        if not self.requests:
            return "no model was asked"
        messages = json.dumps(self.requests[-1].raw.get("messages"), ensure_ascii=False)
        return f"the last of {len(self.requests)} requests ends with: {messages[-SHOWN_CHARS:]}"


def run_agent(
    store: Store,
    program: str | Path,
    script: Script,
    query: str | None = None,
    *,
    permissions: Permissions | None = None,
) -> AgentRun:
    """Run a program with a scripted model until its whole tree has ended.

    `program` is the path of a program file, `script` that of `ScriptedModel`: answers, a function of
    requests, or a mapping from a text in the system prompt to either of them, for trees of several programs.
    It plays whichever provider a program names, in that one's API.

    Raises `InvalidProgram`, `InvalidArgument`, and what a script's own function raises.
    """
    bundle = load(program)
    threads: list[threading.Thread] = []
    with ScriptedModel(script) as model, ExitStack() as open_clients:
        clients: dict[str, Model] = {}
        opening = threading.Lock()

        def client_for(server: ModelServer) -> Model:
            provider = SPEAKERS[PROVIDERS[server.provider].api]
            with opening:
                if provider not in clients:
                    client = open_class(provider)(api_key=model.api_key, base_url=model.url_of(provider))
                    clients[provider] = open_clients.enter_context(closing(client))
                return clients[provider]

        def start(process: str) -> None:
            thread = threading.Thread(target=run, args=(process,), name=process, daemon=True)
            threads.append(thread)
            thread.start()

        def run(process: str) -> None:
            run_process(
                store,
                process,
                worker=WORKER,
                model=client_for,
                wake=start,
                permissions=permissions or Permissions(),
                own=bundle if process == root.id else None,
                wait_here=True,
            )

        root = launch_root(store, bundle, query)
        run(root.id)
        for thread in threads:  # grows while it is read
            thread.join()
        answer = store.run(process_records.answer_of(store.prefix, root.id))
        return AgentRun(root, answer, model.requests)


def _texts(value: Any) -> list[str]:
    """Return all strings in a JSON value."""
    if isinstance(value, str):
        return [value]
    if isinstance(value, dict):
        value = list(value.values())
    return [text for part in value for text in _texts(part)] if isinstance(value, list) else []
