"""Round trips of operations that write."""

from __future__ import annotations

from typing import Any

from fdstore.client import Process, Store
from fdstore.store.contents import contents
from fdstore.store.streams import streams
from fdstore.wire.scripts import name_of

LOG = "".join(f"line {n}\n" for n in range(1, 5001))

STAGED = ["MULTI", "HSET", "EXPIRE", "EXEC"]


def commands(runner: Any) -> list[list[str]]:
    """The round trips since the last call, as the names of their commands."""
    trips = [[name_of(command) for command in batch] for batch in runner.trips]
    runner.trips.clear()
    runner.sent.clear()
    return trips


def test_a_small_create_is_one_round_trip(proc: Process, runner: Any) -> None:
    commands(runner)

    proc.create(LOG)

    [batch] = commands(runner)
    assert batch == [*STAGED, "commit"]


def test_a_large_create_is_staged_and_committed_once(proc: Process, runner: Any) -> None:
    commands(runner)

    proc.create(LOG * 100)

    assert len(runner.sent) > 3
    assert all(name_of(c) in STAGED for batch in runner.sent for c in batch)
    assert commands(runner) == [[*STAGED, "commit", "HDEL"]]  # no longer listed as being stored


def test_no_text_goes_through_the_arguments_of_a_script(proc: Process, runner: Any) -> None:
    commands(runner)

    proc.create("SECRET" * 1000)

    [batch] = runner.trips
    [commit] = [command for command in batch if command[0] == "EVALSHA"]
    assert not any("SECRET" in str(argument) for argument in commit)


def test_staged_content_expires_even_if_its_writer_dies_between_two_commands(
    proc: Process, runner: Any
) -> None:
    operation = contents.create(proc.handle, LOG, "text")
    batch = next(operation)
    operation.close()
    assert isinstance(batch, list)

    names = [name_of(command) for command in batch]
    assert (names[0], names[-2]) == ("MULTI", "EXEC")
    staged = {command[1] for command in batch if command[0] == "HSET"}
    expiring = {command[1] for command in batch if command[0] == "EXPIRE"}

    assert staged == expiring
    assert all(":staging:" in str(key) for key in staged)


def test_close_child_and_fork_are_one_round_trip_each(proc: Process, runner: Any) -> None:
    for _ in range(100):
        proc.create("x")
    commands(runner)

    proc.child(share=["fd:1", "fd:2"])
    proc.fork()
    proc.close("fd:1")

    assert commands(runner) == [["child"], ["child"], ["close"]]


def test_an_end_is_one_round_trip(proc: Process, runner: Any) -> None:
    child = proc.fork()
    commands(runner)

    child.end()

    assert commands(runner) == [["finish"]]


def test_a_list_of_any_length_is_two_round_trips(proc: Process, runner: Any) -> None:
    commands(runner)
    proc.list()
    assert commands(runner) == [["HGETALL"]]
    for _ in range(30):
        proc.create("x")
    commands(runner)

    proc.list()

    assert commands(runner) == [["HGETALL"], ["HGETALL"] * 30]


def test_opening_an_existing_process_is_one_round_trip_and_writes_nothing(store: Store, runner: Any) -> None:
    store.process("triage").fork()
    commands(runner)

    store.process("triage")
    store.process("triage.1")

    assert commands(runner) == [["HGET", "HMGET", "TIME"]] * 2


def test_a_new_process_is_four_round_trips(store: Store, runner: Any) -> None:
    store.process("triage")

    assert commands(runner) == [
        ["HGET", "HMGET", "TIME"],
        ["HGETALL", "ZADD", "ZCARD"],
        ["root"],
        ["ZADD", "ZRANGEBYSCORE"],
    ]


def test_a_keyed_create_is_one_round_trip_unless_it_is_repeated(proc: Process, runner: Any) -> None:
    commands(runner)

    for _ in range(2):
        proc.store.run(contents.create(proc.handle, "text", call_id="toolu_1"))

    assert commands(runner) == [["commit"], ["commit"], ["resolve"]]


def test_short_pieces_that_wait_together_are_one_round_trip(proc: Process, runner: Any) -> None:
    appender = proc.store.run(streams.open_stream(proc.handle, "stream"))
    for piece in ("one ", "", b"", "two"):
        appender.put(piece)
    commands(runner)

    proc.store.run(appender.store())

    assert commands(runner) == [["append"]]
    assert proc.read(appender.fd).text == "one two"


def test_a_tree_is_registered_in_the_list_of_trees_before_it_is_created(store: Store, runner: Any) -> None:
    store.process("triage")

    names = [name for trip in commands(runner) for name in trip]

    assert names.index("ZADD") < names.index("root")
