"""A store, a scripted model and program files, for agents that run on real workers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import redis

import fdstore
from fdstore.agents.loop.conversation import Result, decode_entry
from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import load
from fdstore.agents.runtime.queue import Dispatcher
from fdstore.agents.runtime.waker import waker
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.processes import journal, process_records, waiting
from fdstore.testing import Request, ScriptedModel
from tests.dialects import current
from tests.worker_process import WorkerProcess

Replies = Callable[[Request], Any]
TOOLS = '''
def lines(count: int) -> str:
    """That many lines."""
    return "".join(f"line {number}\\n" for number in range(1, count + 1))


def own_process() -> str:
    """The id of the operating-system process that runs this."""
    import os
    return f"process {os.getpid()}"
'''


class AgentHarness:
    """A store, a scripted model and program files, for agents that run on workers."""

    def __init__(self, server: PrivateServer, folder: Path, start: Callable[..., WorkerProcess]) -> None:
        self.url = server.url
        self.folder = folder
        self.store: Store = fdstore.connect(server.url)
        self.redis = redis.Redis.from_url(server.url, decode_responses=True)
        self.model = ScriptedModel(
            lambda request: self._parts[request.system.split()[2].rstrip(".")](request)
        )
        self.start_worker = partial(start, self.url, self.model)
        self._wakes = Dispatcher(server.url)
        self._parts: dict[str, Replies] = {}
        self._seen = 0
        (folder / "agent_tools.py").write_text(TOOLS)

    def close(self) -> None:
        self._wakes.close()
        self.redis.close()
        self.store.close()
        self.model.close()

    def set_script(self, parts: Mapping[str, Replies | list[Any]]) -> None:
        """Set the replies for each agent by the NAME in its system prompt `You are NAME.`."""
        self._seen = len(self.model.requests)
        self._parts = {
            name: part if callable(part) else lambda request, part=part: part[request.turn_number]
            for name, part in parts.items()
        }

    @property
    def requests(self) -> tuple[Request, ...]:
        """The requests to the model since the script was set."""
        return self.model.requests[self._seen :]

    def program(self, name: str, *, tools: str = "", links: str = "", more: str = "") -> Path:
        """A program file; `tools` and `links` are names with blanks between."""
        path = self.folder / f"{name}.toml"
        linked = "\n".join(f'{link} = "{link}.toml"' for link in links.split())
        path.write_text(
            f'[model]\nname = "any"\n{current().in_program()}[prompt]\nsystem = "You are {name.upper()}."\n'
            f'[tools]\nenabled = {tools.split()}\npython = ["agent_tools:lines", "agent_tools:own_process"]\n'
            f"[linked_programs]\n{linked}\n{more}"
        )
        return path

    def launch(self, query: str = "Go.", program: str = "root") -> str:
        """Launch a root for the workers to run."""
        root = launch_root(self.store, load(self.folder / f"{program}.toml"), query).id
        self._wakes.wake(root)
        return root

    def wait(self, process: str, seconds: float = 40) -> None:
        assert self.store.run(waiting.wait_until_ended("fdstore", [process], seconds)), (
            f"{process} did not end"
        )

    def run(self, query: str = "Go.", program: str = "root") -> str:
        root = self.launch(query, program)
        self.wait(root)
        return root

    def results(self, process: str) -> list[Result]:
        records = self.store.run(journal.read("fdstore", process))
        return [entry for entry in map(decode_entry, records) if isinstance(entry, Result)]

    def record(self, process: str) -> fdstore.ProcessRecord:
        return self.store.run(process_records.record("fdstore", process))

    def answer(self, process: str) -> str:
        return self.store.run(process_records.answer_of("fdstore", process)).text


def launch(store: Store, program: Path, query: str = "Go.") -> str:
    """Launch a root for workers, and return its id."""
    root = launch_root(store, load(program), query).id
    waker(store.url, store.prefix)(root)
    return root


@contextmanager
def open_harness(
    server: PrivateServer, folder: Path, start: Callable[..., WorkerProcess]
) -> Iterator[AgentHarness]:
    harness = AgentHarness(server, folder, start)
    try:
        yield harness
    finally:
        harness.close()


def spawner(harness: AgentHarness) -> fdstore.Toolset:
    proc = harness.store.process("own-loop")
    proc.create("one\ntwo\n")
    return fdstore.Toolset(
        proc, enabled=["spawn", "read_fd"], programs={"reader": harness.folder / "reader.toml"}
    )


SPAWN = {"program_name": "reader", "query": "Read.", "additional_preload_fds": ["fd:1"]}
