"""A damaged state of a process's programs is an error of that process, and harms no other tree."""

from __future__ import annotations

import json
import lzma
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.programs.pending_calls import PendingCalls
from fdstore.programs.python_call import Snapshot
from fdstore.store.processes import processes, python_state
from tests.thorough import thorough

KEY = "fdstore:{triage}:triage:python"


@pytest.fixture
def tools(proc: Process) -> Toolset:
    return Toolset(proc, enabled=["run_python"])


def damaged(tools: Toolset, code: str = "x", call_id: str | None = None) -> str:
    """Run code in a process whose state is damaged, and return the error."""
    result = tools.call("run_python", {"code": code}, call_id)
    assert result.is_error
    assert 'type="store_lost_data"' in result.text
    return result.text


def bomb() -> bytes:
    """A session of some KB that has 64 MB in it."""
    header = {"interpreter": "1", "prelude": "2", "functions": [], "feeds": 1, "own_feeds": []}
    head = msgspec.msgpack.encode(header | {"compressed": True})
    return b"fdpy1" + len(head).to_bytes(4, "big") + head + lzma.compress(bytes(64 << 20), preset=0)


@pytest.mark.parametrize(
    "session", [b"", b"fdpy1", b"fdpy1\0\0\0\5", b"\xff" * 999, *thorough("it takes 64 MB", bomb)]
)
def test_a_damaged_session_is_said_to_be_damaged(
    tools: Toolset, execute: Any, session: bytes | Callable[[], bytes]
) -> None:
    tools.call("run_python", {"code": "x = 1"})
    version = json.loads(execute("HGET", KEY, "head"))["session"]
    execute("HSET", KEY, f"{version}/0", session() if callable(session) else session)

    error = damaged(tools)

    assert "the programs of process triage" in error
    assert "another version" not in error


@pytest.mark.parametrize(
    "snapshot", [b"", b"\x93", b"\x91" * 5000, b"\xc0", b"{}", msgspec.msgpack.encode([b"", {}])]
)
def test_a_damaged_snapshot_is_damage(store: Store, proc: Process, tools: Toolset, snapshot: bytes) -> None:
    store.run(python_state.begin(proc.handle, "c", 1))
    store.run(python_state.suspend(proc.handle, "c", snapshot))

    damaged(tools, call_id="c")


@pytest.mark.parametrize("named", ["victim", "victim.1", "triage", "triage1.2", "triage.x", "x" * 10**5, ""])
@pytest.mark.parametrize("how", ["processes", "lanes"])
def test_a_snapshot_ends_and_reads_no_process_but_those_below(
    store: Store, proc: Process, tools: Toolset, named: str, how: str
) -> None:
    victim = store.process("victim")
    victim.child()
    pending = PendingCalls(lanes=[named]) if how == "lanes" else PendingCalls(processes={0: named})
    store.run(python_state.begin(proc.handle, "c", 1))
    store.run(python_state.suspend(proc.handle, "c", msgspec.msgpack.encode(Snapshot(b"", pending))))

    damaged(tools, call_id="c")

    assert [each.state for each in store.tree("victim").members] == ["open", "open"]
    assert store.tree("triage").members[0].state == "open"


ANSWERS = {
    "no JSON": b"{",
    "null": b"null",
    "a list": b"[]",
    "nested": b'{"value":' + b"[" * 5000 + b"]" * 5000 + b"}",
    "nested deeper": b'{"value":' + b"[" * 100_000 + b"]" * 100_000 + b"}",
    "an unknown exception": b'{"error":{"type":"SystemExit","text":"x"}}',
    "no UTF-8": b'{"value":"\xff"}',
}
TIMES = [b"{}", b'{"value":"x"}', b'{"value":1e300}', b'{"value":-1}', b'{"value":true}', b'{"value":[1]}']


@pytest.mark.parametrize("answer", [*ANSWERS.values()], ids=[*ANSWERS])
def test_a_damaged_recorded_answer_is_damage(
    store: Store, proc: Process, tools: Toolset, answer: bytes
) -> None:
    proc.create("text")
    store.run(python_state.begin(proc.handle, "c", 1))
    store.run(python_state.record(proc.handle, "c", {0: answer}))

    damaged(tools, "fd(1)", call_id="c")


@pytest.mark.parametrize("answer", TIMES)
def test_a_recorded_time_is_a_time(store: Store, proc: Process, tools: Toolset, answer: bytes) -> None:
    store.run(python_state.begin(proc.handle, "c", 1))
    store.run(python_state.record(proc.handle, "c", {0: answer}))

    damaged(tools, "import datetime\ndatetime.datetime.now()", call_id="c")


def test_a_copy_uses_and_changes_the_variables_of_its_parent_apart_from_it(
    store: Store, proc: Process, tools: Toolset
) -> None:
    tools.call("run_python", {"code": "x = [1, 2]"})
    copy = Toolset(proc.fork(), enabled=["run_python"])

    assert "[1, 2, 3]" in copy.call("run_python", {"code": "x.append(3)\nx"}).text
    assert "[1, 2]" in tools.call("run_python", {"code": "x"}).text
    assert "[1, 2, 3]" in copy.call("run_python", {"code": "x"}).text
    store.run(processes.end(proc.handle))
