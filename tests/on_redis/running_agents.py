"""Run agents in the test process: a scripted model, the test's Redis, and tools that record calls."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import anthropic
import pytest

from fdstore.agents.loop.conversation import Result, decode_entry
from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.models.base import Model
from fdstore.agents.loop.program_loader import Bundle, LinkedProgram, Program
from fdstore.agents.runtime.run_process import AttemptOutcome, run_process
from fdstore.client import Process, Store
from fdstore.files.permissions import Permissions
from fdstore.model.records import ProcessRecord
from fdstore.results.config import FDConfig
from fdstore.store.keys import ProcessKeys, process_keys
from fdstore.store.processes import journal, leases, process_records
from fdstore.testing import Script, ScriptedModel
from fdstore.testing.rules import Feature
from fdstore.wire._sync.runner import Runner
from fdstore.wire.operation import Operation, served
from tests.dialects import model_of

SYSTEM = "You are SOLO."
SMALL = FDConfig(max_direct_output_chars=100, default_page_size=50, max_input_chars=100)

READER = Program(
    name="reader", model="any", system="You are READER.", tools=("read_fd",), file_descriptor=SMALL
)

ran: list[str] = []
"""The calls of the tools below, in the order in which they ran."""


def echo(words: str) -> str:
    """Repeat the words."""
    ran.append(words)
    return f"you said {words}"


def lines(count: int) -> str:
    """That many lines."""
    ran.append(f"lines {count}")
    return "".join(f"line {number}\n" for number in range(1, count + 1))


def blocks(count: int) -> list[dict[str, str]]:
    """Text blocks, as tools of MCP servers return them."""
    return [{"type": "text", "text": f"block {number}"} for number in range(count)]


def breaks(words: str) -> str:
    """Always fails."""
    ran.append(words)
    raise RuntimeError(words)


@anthropic.beta_tool
def sdk_echo(words: str) -> str:
    """Repeat the words."""
    return echo(words)


def tool(name: str) -> str:
    return f"{__name__}:{name}"


class Crashed(BaseException):
    """The crash of the worker process; no code under test may catch it."""


class CrashingStore(Store):
    """A store whose client crashes before its n-th request; calls of the user's functions count as requests.

    All values of n together produce every state that a crash can leave. Requests of the thread that renews
    the lease are not counted.
    """

    def __init__(self, url: str, requests: int) -> None:
        super().__init__(Runner(url), "fdstore", url)
        self.left = requests
        self._thread = threading.get_ident()

    def run(self, operation: Operation[Any]) -> Any:
        if threading.get_ident() != self._thread:
            return super().run(operation)
        return super().run(served(operation, self._count))

    def _count(self, request: Any) -> Operation[Any]:
        if self.left == 0:
            raise Crashed
        self.left -= 1
        return (yield request)


class Agents:
    """Launches and runs agents of a scripted model in this process."""

    def __init__(self, store: Store, model: ScriptedModel, client: Model, folder: Path) -> None:
        self.store = store
        self.model = model
        self.folder = folder
        self.woken: list[str] = []
        self._client = client

    def launch(self, query: Any = "Go.", **fields: Any) -> Process:
        fields.setdefault("system", SYSTEM)
        others = {program.name: program for program in fields.pop("others", ())}
        linked = {name: LinkedProgram(key=name) for name in others}
        root = Program(name="solo", model="any", linked=linked, **fields)
        return launch_root(self.store, Bundle(root="solo", programs={"solo": root, **others}), query, "solo")

    def attempt(self, process: str, store: Store | None = None, **more: Any) -> AttemptOutcome:
        return run_process(
            store or self.store,
            process,
            worker="here",
            model=more.pop("model", lambda _: self._client),
            wake=self.woken.append,
            permissions=more.pop("permissions", Permissions(export_root=str(self.folder))),
            **more,
        )

    def run_all(self, root: str) -> None:
        """Run the ready processes of the tree, as workers would, until none is left."""
        while ready := [m.id for m in self.store.tree(root).members if m.state == "ready"]:
            for process in ready:
                self.attempt(process)

    def crash(self, *requests: int) -> None:
        """Run attempts at the root that crash before their n-th request, one for each of these numbers."""
        for number in requests:
            with pytest.raises(Crashed), CrashingStore(self.store.url, number) as crashing:
                self.attempt("solo", crashing)
            self.lose("solo")

    def expire(self, process: str) -> None:
        """Make the process due for the sweep immediately."""
        self.store.run(_expire(process_keys("fdstore", process)))

    def lose(self, process: str) -> None:
        """Expire the lease of the process and sweep, as after the death of its worker."""
        self.expire(process)
        self.store.run(leases.check_overdue(process_keys("fdstore", process)))

    def record(self, process: str = "solo") -> ProcessRecord:
        return self.store.run(process_records.record("fdstore", process))

    def answer(self, process: str = "solo") -> str:
        return self.store.run(process_records.answer_of("fdstore", process)).text

    def journal(self, process: str = "solo") -> list[bytes]:
        return self.store.run(journal.read("fdstore", process))

    def results(self, process: str = "solo") -> list[Result]:
        """Return the tool results, in the order of the last request that contained them."""
        return [e for e in map(decode_entry, self.journal(process)) if isinstance(e, Result)]


AgentsOf = Callable[..., Agents]
Play = Callable[..., Agents]


class StopAfterClaim:
    """A stop event that is set as soon as the worker has claimed the process."""

    def __init__(self, agents: Agents, process: str) -> None:
        self._agents, self._process = agents, process

    def is_set(self) -> bool:
        return self._agents.record(self._process).attempt > 0


def _expire(keys: ProcessKeys) -> Operation[None]:
    [lease] = yield [("HGET", keys.record, "lease_until")]
    if lease is not None:
        yield [("HSET", keys.record, "lease_until", "0")]
    yield [("ZADD", keys.tree.leases, "XX", "0", keys.process)]


@contextmanager
def running(
    store: Store, script: Script, folder: Path, refuses: Collection[Feature] = ()
) -> Iterator[Agents]:
    """Yield `Agents` that run this script on a server that refuses this; clear `ran`."""
    ran.clear()
    with ScriptedModel(script, refuses=refuses) as model, model_of(model) as client:
        yield Agents(store, model, client, folder)
