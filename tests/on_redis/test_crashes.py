"""An agent that crashes at any request is continued by the next attempt and ends in the same state."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fdstore.agent.conversation import decode_entry
from fdstore.client import Store
from fdstore.errors import FDStoreError
from fdstore.lifecycle import ENDED
from fdstore.testing import Request, Turn, call, say, turn
from fdstore.wire._sync.runner import Runner
from fdstore.wire.operation import Operation
from tests.on_redis.agents import READER, SMALL, Agents, ran, running, tool

Execute = Callable[..., Any]


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
        return super().run(self._counted(operation))

    def _counted(self, operation: Operation[Any]) -> Operation[Any]:
        try:
            request = next(operation)
            while True:
                if self.left == 0:
                    raise Crashed
                self.left -= 1
                try:
                    reply = yield request
                except FDStoreError as error:
                    request = operation.throw(error)
                else:
                    request = operation.send(reply)
        except StopIteration as done:
            return done.value
        finally:
            operation.close()


SPAWN = call(
    "spawn",
    {
        "program_name": "reader",
        "query": "Read it.",
        "additional_preload_fds": ["fd:3#L3-5", "ref:plan"],
        "additional_preload_files": ["notes.txt"],
    },
    id="toolu_spawn",
)


def long_script(request: Request) -> Turn:
    """Answer as a deterministic script that uses every kind of tool."""
    if "READER" in request.system:
        if request.turn_number == 0:
            return call("read_fd", fd="ref:plan", id="toolu_read")
        return say("It says much. " * 20)
    match request.turn_number:
        case 0:
            return turn(call("lines", count=40, id="toolu_lines"), call("echo", words="b", id="toolu_echo"))
        case 1:
            plan = say('<ref id="plan">Read, then write.</ref><ref id="gone">x</ref>')
            return turn(plan, SPAWN, call("close_fd", fd="ref:gone", id="toolu_close"))
        case 2:
            write = call("fd_to_file", fd="ref:plan", file_path="plan.txt", id="toolu_file")
            part = call("read_fd", fd="fd:3#L7", extract_to_new_fd=True, id="toolu_part")
            return turn(write, part, call("breaks", words="no disk", id="toolu_breaks"))
    return say("All is done.")


CALL_OF = {"lines 40": "toolu_lines", "b": "toolu_echo", "no disk": "toolu_breaks"}


def launch_long_script(agents: Agents) -> None:
    (agents.folder / "notes.txt").write_text("one\ntwo\n")
    agents.launch(
        "word " * 40,
        tools=("read_fd", "fd_to_file", "close_fd", "spawn"),
        python=(tool("lines"), tool("echo"), tool("breaks")),
        file_descriptor=SMALL,
        preload=(str(agents.folder / "notes.txt"),),
        preload_root=str(agents.folder),
        others=[READER],
    )


def final_state(agents: Agents) -> dict[str, Any]:
    """Return the final state of an agent, without times and attempt counts."""
    tree = agents.store.tree("solo")
    return {
        "states": [(m.id, m.state, m.exit_code, m.reason) for m in tree.members],
        "answer": agents.answer(),
        "journals": [list(map(decode_entry, agents.journal(member.id))) for member in tree.members],
        "held": [(d.fd, d.chars, d.source, d.producer) for d in agents.store.process("solo").list()],
        "counts": (tree.fds, tree.bytes, tree.live),
        "file": (agents.folder / "plan.txt").read_text(),
    }


def run_until_crash(agents: Agents, crashing: CrashingStore) -> bool:
    """Run the tree on a store that crashes; return whether it crashed before the tree ended."""
    try:
        while ready := [m.id for m in agents.store.tree("solo").members if m.state == "ready"]:
            agents.attempt(ready[0], crashing)
    except Crashed:
        return True
    return False


def test_an_agent_that_crashes_at_any_request_ends_with_the_same_state(
    store: Store, tmp_path: Path, execute: Execute, redis_url: str
) -> None:
    with running(store, long_script, tmp_path) as agents:
        launch_long_script(agents)
        agents.run_all("solo")
        expected = final_state(agents)
        assert expected["states"] == [("solo", "exited", 0, None), ("solo.1", "exited", 0, None)]

        for requests in itertools.count():
            execute("FLUSHALL")
            ran.clear()
            launch_long_script(agents)
            with CrashingStore(redis_url, requests) as crashing:
                crashed = run_until_crash(agents, crashing)
            finished = {result.call for result in agents.results()}
            before = len(ran)
            for member in store.tree("solo").members:
                if member.state not in ENDED:
                    agents.lose(member.id)
            agents.run_all("solo")

            assert final_state(agents) == expected, f"after a crash before request {requests}"
            assert finished.isdisjoint(CALL_OF[words] for words in ran[before:])
            if not crashed:
                break
        assert requests > 60


def test_a_passage_comes_from_the_answer_in_the_journal(
    store: Store, tmp_path: Path, execute: Execute, redis_url: str
) -> None:
    """A repeated model call returns another answer; only the journaled answer counts."""
    answer_count = itertools.count()

    def script(_: Request) -> Turn:
        return say(f'<ref id="plan">plan {next(answer_count)}</ref>')

    with running(store, script, tmp_path) as agents:
        for requests in itertools.count():
            execute("FLUSHALL")
            agents.launch(tools=("read_fd",))
            with CrashingStore(redis_url, requests) as crashing:
                crashed = run_until_crash(agents, crashing)
            if crashed and agents.record().state not in ENDED:
                agents.lose("solo")
                agents.run_all("solo")

            plan = store.process("solo").read("ref:plan").text
            assert agents.answer() == f'<ref id="plan">{plan}</ref>'
            assert [d.fd for d in store.process("solo").list()] == ["ref:plan"]
            if not crashed:
                break
