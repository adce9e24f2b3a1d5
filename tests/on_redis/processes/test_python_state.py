"""The state of a process's programs: written whole or not at all, by the attempt that runs the process."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import DamagedRecord, Fenced, NotFound
from fdstore.store.doctor.audit import check_tree
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import processes, python_state, tool_calls
from fdstore.store.processes.python_state import PIECE_BYTES
from fdstore.wire.operation import Operation
from tests.round_trips import count_round_trips, killed_after, one_request

KEY = "fdstore:{triage}:triage:python"


def large(seed: int, pieces: float = 5.5) -> bytes:
    return random.Random(seed).randbytes(int(pieces * PIECE_BYTES))


def leave(store: Store, handle: ProcessHandle, call: str, session: bytes | None) -> None:
    """Run a call that leaves this session."""
    store.run(python_state.begin(handle, call, 1))
    store.run(python_state.end(handle, call, session))


def test_a_process_begins_without_a_session(store: Store, proc: Process) -> None:
    assert store.run(python_state.read(proc.handle, "c")) == python_state.PythonState(session=None, call=None)


@pytest.mark.parametrize("session", [b"", b"small", large(1), b"x" * 2 * PIECE_BYTES])
def test_the_next_call_reads_the_session_that_a_call_left(
    store: Store, proc: Process, session: bytes
) -> None:
    store.run(python_state.begin(proc.handle, "first", 7))
    store.run(python_state.end(proc.handle, "first", session))

    found = store.run(python_state.read(proc.handle, "second"))

    assert found == python_state.PythonState(session=session, call=None)


def test_the_first_begin_of_a_call_wins(store: Store, proc: Process) -> None:
    first = store.run(python_state.begin(proc.handle, "c", -(2**63)))
    store.run(python_state.record(proc.handle, "c", {0: b"zero"}))

    again = store.run(python_state.begin(proc.handle, "c", 2))

    assert again == first
    assert (first.seed, first.snapshot, first.recorded) == (-(2**63), None, {})
    assert first.began_s > 1_000_000_000
    call = store.run(python_state.read(proc.handle, "c")).call
    assert call is not None
    assert call.recorded == {0: b"zero"}


def test_an_interrupted_call_finds_its_snapshot_and_the_answers_since(store: Store, proc: Process) -> None:
    store.run(python_state.begin(proc.handle, "c", 1))
    store.run(python_state.record(proc.handle, "c", {0: b"before", 1: b"before"}))
    store.run(python_state.suspend(proc.handle, "c", large(2)))
    store.run(python_state.record(proc.handle, "c", {3: b"", 2: b"after"}))

    call = store.run(python_state.read(proc.handle, "c")).call

    assert call is not None
    assert call.snapshot == large(2)
    assert call.recorded == {2: b"after", 3: b""}


def test_another_call_does_not_see_the_running_one(store: Store, proc: Process) -> None:
    store.run(python_state.begin(proc.handle, "c", 1))
    store.run(python_state.suspend(proc.handle, "c", b"snapshot"))

    assert store.run(python_state.read(proc.handle, "d")).call is None


def test_many_answers_are_recorded_and_read(store: Store, proc: Process) -> None:
    answers = {number: b"%d" % number * 300 for number in range(5000)}
    store.run(python_state.begin(proc.handle, "c", 1))
    store.run(python_state.record(proc.handle, "c", answers))

    call = store.run(python_state.read(proc.handle, "c")).call

    assert call is not None
    assert call.recorded == answers


def test_a_call_that_ends_without_a_session_leaves_the_one_before_it(
    store: Store, proc: Process, execute: Any
) -> None:
    leave(store, proc.handle, "a", b"kept")
    store.run(python_state.begin(proc.handle, "b", 1))
    store.run(python_state.record(proc.handle, "b", {0: b"zero"}))
    store.run(python_state.suspend(proc.handle, "b", large(3)))

    store.run(python_state.end(proc.handle, "b", None))

    assert store.run(python_state.read(proc.handle, "b")) == python_state.PythonState(
        session=b"kept", call=None
    )
    assert execute("HLEN", KEY) == 2


def test_nothing_of_earlier_states_is_left(store: Store, proc: Process, execute: Any) -> None:
    for number in range(4):
        store.run(python_state.begin(proc.handle, f"call {number}", 1))
        store.run(python_state.record(proc.handle, f"call {number}", {0: b"zero"}))
        store.run(python_state.suspend(proc.handle, f"call {number}", large(number)))
        store.run(python_state.record(proc.handle, f"call {number}", {1: b"one"}))
        store.run(python_state.end(proc.handle, f"call {number}", large(number, 2.5)))

    assert execute("HLEN", KEY) == 1 + 3


def test_the_result_of_a_call_is_stored_with_its_session(store: Store, proc: Process) -> None:
    store.run(python_state.begin(proc.handle, "c", 1))
    store.run(python_state.end(proc.handle, "c", b"session", result='{"content": "done"}'))

    request = tool_calls.request_of("run_python", {"code": "1"})
    assert store.run(tool_calls.identify(proc.handle, "c", request)) == '{"content": "done"}'


@pytest.mark.parametrize("what", ["record", "suspend", "a large snapshot", "end"])
def test_a_call_that_another_one_has_replaced_changes_nothing(store: Store, proc: Process, what: str) -> None:
    store.run(python_state.begin(proc.handle, "a", 1))
    store.run(python_state.begin(proc.handle, "b", 2))
    write: dict[str, Operation[None]] = {
        "record": python_state.record(proc.handle, "a", {0: b"zero"}),
        "suspend": python_state.suspend(proc.handle, "a", b"snapshot"),
        "a large snapshot": python_state.suspend(proc.handle, "a", large(1)),
        "end": python_state.end(proc.handle, "a", b"session", result="wrong"),
    }

    with pytest.raises(Fenced, match="another call of run_python has replaced this one"):
        store.run(write[what])

    call = store.run(python_state.read(proc.handle, "b")).call
    assert call is not None
    assert (call.seed, call.snapshot, call.recorded) == (2, None, {})


def test_an_attempt_that_was_replaced_writes_nothing(store: Store, proc: Process) -> None:
    stale = ProcessHandle(proc.handle.keys, proc.handle.limits, attempt=1)
    for write in (
        python_state.begin(stale, "c", 1),
        python_state.record(stale, "c", {0: b"zero"}),
        python_state.suspend(stale, "c", large(1)),
        python_state.end(stale, "c", b"session"),
    ):
        with pytest.raises(Fenced, match="attempt 1 no longer runs it"):
            store.run(write)

    assert store.run(python_state.read(proc.handle, "c")).session is None


@pytest.mark.parametrize("requests", [1, 2, 3])
@pytest.mark.parametrize("how", ["suspend", "end"])
def test_a_writer_killed_between_two_requests_leaves_the_state_before_it(
    store: Store, proc: Process, execute: Any, how: str, requests: int
) -> None:
    leave(store, proc.handle, "a", large(1, 2.5))
    store.run(python_state.begin(proc.handle, "b", 1))
    store.run(python_state.suspend(proc.handle, "b", large(2, 1.5)))
    store.run(python_state.record(proc.handle, "b", {5: b"five"}))
    before = store.run(python_state.read(proc.handle, "b"))
    write = python_state.suspend if how == "suspend" else python_state.end

    killed_after(store, write(proc.handle, "b", large(3, 13.5)), requests)

    assert store.run(python_state.read(proc.handle, "b")) == before
    store.run(python_state.end(proc.handle, "b", b"small"))
    assert execute("HLEN", KEY) == 2, "the pieces of the dead writer are gone"


def test_a_small_state_is_one_round_trip_to_read_and_one_to_write(store: Store, proc: Process) -> None:
    for operation in (
        python_state.begin(proc.handle, "c", 1),
        python_state.record(proc.handle, "c", {0: b"zero", 1: b"one"}),
        python_state.suspend(proc.handle, "c", b"x" * PIECE_BYTES),
        python_state.read(proc.handle, "c"),
        python_state.end(proc.handle, "c", b"x" * 11_000, result="{}"),
    ):
        assert count_round_trips(store, operation)[1] == 1


def test_a_repeated_write_after_a_lost_reply_changes_nothing(store: Store, proc: Process) -> None:
    store.run(python_state.begin(proc.handle, "c", 1))
    for write in (
        python_state.suspend(proc.handle, "c", b"snapshot"),
        python_state.end(proc.handle, "c", b"session"),
    ):
        batch = next(write)
        first = store.run(one_request(batch))
        assert store.run(one_request(batch)) == first == [[b"ok"]]


def test_a_copy_has_the_session_and_not_the_call_that_runs(store: Store, proc: Process, execute: Any) -> None:
    leave(store, proc.handle, "a", large(1, 1.5))
    store.run(python_state.begin(proc.handle, "b", 1))
    store.run(python_state.suspend(proc.handle, "b", b"snapshot"))
    store.run(python_state.record(proc.handle, "b", {0: b"zero"}))

    copy = proc.fork()
    child = proc.child()

    assert store.run(python_state.read(copy.handle, "b")) == python_state.PythonState(
        session=large(1, 1.5), call=None
    )
    assert execute("HLEN", f"fdstore:{{triage}}:{copy.id}:python") == 1
    assert store.run(python_state.read(child.handle, "b")).session is None
    leave(store, copy.handle, "c", b"its own")
    assert store.run(python_state.read(proc.handle, "x")).session == large(1, 1.5)


def test_the_state_goes_with_the_tree(store: Store, proc: Process, execute: Any) -> None:
    leave(store, proc.handle, "a", large(1))

    store.drop_tree("triage")

    assert execute("EXISTS", KEY) == 0


def test_a_missing_piece_is_reported_as_damage(store: Store, proc: Process, execute: Any) -> None:
    leave(store, proc.handle, "a", large(1))
    [piece] = [name for name in execute("HKEYS", KEY) if name.endswith(b"/3")]
    execute("HDEL", KEY, piece)

    with pytest.raises(DamagedRecord, match="the programs of process triage"):
        store.run(python_state.read(proc.handle, "b"))

    execute("UNLINK", KEY)


def test_a_process_that_has_ended_takes_no_state(store: Store, proc: Process) -> None:
    store.run(processes.end(proc.handle))

    with pytest.raises((Fenced, NotFound)):
        store.run(python_state.begin(proc.handle, "c", 1))


def session_of(store: Store, handle: ProcessHandle) -> bytes | None:
    return store.run(python_state.read(handle, "another call")).session


def stored_bytes(execute: Any) -> int:
    """Return the bytes of all states of programs in the tree."""
    keys = [key for key in execute("KEYS", "fdstore:*") if key.endswith(b":python")]
    return sum(len(value) for key in keys for value in execute("HVALS", key))


def test_copies_of_copies_share_one_session(store: Store, proc: Process, execute: Any) -> None:
    leave(store, proc.handle, "a", large(1))
    before = stored_bytes(execute)

    copies = [proc.fork(), proc.fork()]
    copies.append(copies[0].fork())

    assert stored_bytes(execute) < before + 1000
    assert [session_of(store, copy.handle) for copy in copies] == [large(1)] * 3


def test_a_shared_session_is_kept_until_its_last_process_has_another(
    store: Store, proc: Process, execute: Any
) -> None:
    leave(store, proc.handle, "a", large(1))
    first = proc.fork()
    second = first.fork()

    leave(store, proc.handle, "b", b"of the root")
    leave(store, first.handle, "c", b"of the first")
    assert session_of(store, second.handle) == large(1)
    leave(store, second.handle, "d", b"of the second")

    assert stored_bytes(execute) < 1000
    assert session_of(store, proc.handle) == b"of the root"
    assert session_of(store, first.handle) == b"of the first"


def test_a_session_is_released_when_its_process_ends(store: Store, proc: Process, execute: Any) -> None:
    leave(store, proc.handle, "a", large(1))
    store.run(python_state.begin(proc.handle, "b", 1))
    store.run(python_state.suspend(proc.handle, "b", large(2)))

    proc.end()

    assert execute("EXISTS", KEY) == 0


def test_a_session_outlives_its_process_in_a_copy(store: Store, proc: Process, execute: Any) -> None:
    leave(store, proc.handle, "a", large(1))
    copy = proc.fork()
    proc.end()

    assert session_of(store, copy.handle) == large(1)
    copy.end()

    assert stored_bytes(execute) == 0


def test_a_process_that_fails_keeps_its_session_until_a_client_ends_it(
    store: Store, proc: Process, execute: Any
) -> None:
    leave(store, proc.handle, "a", b"variables")
    store.run(processes.end(proc.handle, "failed", exit_code=None, reason="x", release=False))
    assert session_of(store, proc.handle) == b"variables"

    proc.end()

    assert execute("EXISTS", KEY) == 0


def test_a_session_that_is_handed_back_unchanged_is_the_parents_own(
    store: Store, proc: Process, execute: Any
) -> None:
    leave(store, proc.handle, "a", large(1))
    before = stored_bytes(execute)
    copy = proc.fork()

    store.run(processes.return_descriptors(copy.handle))
    copy.end()

    assert session_of(store, proc.handle) == large(1)
    assert stored_bytes(execute) <= before


def test_a_copy_that_was_not_made_keeps_no_session(store: Store, proc: Process, execute: Any) -> None:
    leave(store, proc.handle, "a", large(1))
    version = next(name for name in execute("HKEYS", KEY) if name.endswith(b"/0")).partition(b"/")[0]
    execute("HSET", KEY, version + b"/held/triage.7", "")  # as half of a torn log

    leave(store, proc.handle, "b", b"small")

    assert execute("HLEN", KEY) == 2


HEADS = {
    "a number of pieces that loops": {"session_chunks": "99999999999999"},
    "a number past 2**53": {"session_chunks": "9007199254740993"},
    "an infinite number": {"session_chunks": "inf"},
    "no number": {"session_chunks": "nan"},
    "an empty number": {"session_chunks": ""},
    "a negative number": {"session_chunks": "-1"},
    "a fraction": {"session_chunks": "0.5"},
    "a JSON number": {"session_chunks": 3},
    "a list": {"session": []},
    "null": {"session": None},
    "a process of another tree": {"session_of": "other"},
    "a key": {"session_of": "x}:y"},
    "a process without a state": {"session_of": "triage.9"},
    "snapshots that loop": {"call": "c", "snapshot": "V", "snapshot_chunks": "1e15"},
    "a seed of 5000 digits": {"call": "c", "seed": "1" * 5000},
    "no time": {"call": "c", "began": "1e308"},
}


@pytest.mark.parametrize("head", [*HEADS.values()], ids=[*HEADS])
@pytest.mark.parametrize("work", ["read", "begin", "fork", "end"])
def test_a_damaged_head_is_damage_of_its_process_alone(
    store: Store, proc: Process, execute: Any, head: dict[str, object], work: str
) -> None:
    leave(store, proc.handle, "a", b"variables")
    version = json.loads(execute("HGET", KEY, "head"))["session"]
    execute("HSET", KEY, "head", json.dumps({"session": version, "session_chunks": "1"} | head))
    handle = proc.handle

    steps: dict[str, Callable[[], object]] = {
        "read": lambda: store.run(python_state.read(handle, "c")),
        "begin": lambda: store.run(python_state.begin(handle, "c", 1)),
        "fork": lambda: session_of(store, proc.fork().handle),
        "end": proc.end,
    }
    with suppress(DamagedRecord):
        steps[work]()

    assert store.process("other").create("text").fd == "fd:1"
    assert work != "read" or list(store.run(check_tree(proc.handle.keys.tree)))
    store.drop_tree("triage")
    execute("UNLINK", KEY)


@pytest.mark.parametrize("head", ["null", "1", '"head"', "[1]", "{", "[" * 5000, "\xff", '{"session":{}}'])
def test_a_head_that_is_no_head_is_damage(store: Store, proc: Process, execute: Any, head: str) -> None:
    execute("HSET", KEY, "head", head)

    with pytest.raises(DamagedRecord):
        store.run(python_state.read(proc.handle, "c"))
    with pytest.raises(DamagedRecord):
        store.run(python_state.begin(proc.handle, "c", 1))

    execute("UNLINK", KEY)
