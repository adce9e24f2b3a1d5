"""The round trips of operations, one for each yield, counted on a fake Redis."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest

from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, InvalidArgument, NotFound, PageOutOfRange, QuotaExceeded
from fdstore.model.records import TreeLimits
from fdstore.store.contents import contents, descriptors, reading
from fdstore.store.contents.locating import fetch
from fdstore.store.contents.resolving import content_info
from fdstore.store.processes import leases, processes
from fdstore.store.streams import streams
from fdstore.text.selection import Part
from fdstore.wire.operation import Operation, Receive, Send
from fdstore.wire.scripts import name_of, script

LOG = "".join(f"line {n}\n" for n in range(1, 5001))


STAGED = ["MULTI", "HSET", "EXPIRE", "EXEC"]


def commands(runner: Any) -> list[list[str]]:
    """The round trips since the last call, as the names of their commands."""
    trips = [[name_of(command) for command in batch] for batch in runner.trips]
    runner.trips.clear()
    runner.sent.clear()
    return trips


# --- reading


def test_a_page_of_a_cached_descriptor_is_one_round_trip_that_also_validates_the_cache(
    proc: Process, runner: Any
) -> None:
    proc.create(LOG, page_size=100)
    proc.read("fd:1", start=2)
    commands(runner)

    proc.read("fd:1", start=3)

    assert commands(runner) == [["HGET", "HGET"]]


def test_the_first_page_of_a_cached_descriptor_is_one_round_trip(proc: Process, runner: Any) -> None:
    proc.create(LOG, page_size=100)
    commands(runner)

    proc.read("fd:1", start=300)

    assert commands(runner) == [["HGET", "HGET", "HGET"]]


def test_a_page_of_an_uncached_descriptor_is_one_round_trip(store: Store, proc: Process, runner: Any) -> None:
    proc.create(LOG, page_size=100)
    afresh = store.process("triage")
    commands(runner)

    assert afresh.read("fd:1", start=300).page == 300

    assert commands(runner) == [["resolve", "HMGET", "HGET", "HGETALL"]]


def test_a_page_of_a_shared_descriptor_is_one_round_trip(store: Store, proc: Process, runner: Any) -> None:
    proc.create(LOG, page_size=100)
    child = proc.child(share=["fd:1"])
    commands(runner)

    assert child.read("fd:1", start=300).text == proc.read("fd:1", start=300).text

    assert len(commands(runner)) == 2


def test_a_named_passage_is_one_round_trip_every_time(proc: Process, runner: Any) -> None:
    proc.store.run(contents.create(proc.handle, LOG, "answer", name="ref:plan"))
    commands(runner)

    for _ in range(2):
        proc.read("ref:plan")

    assert commands(runner) == [["resolve"], ["resolve"]]


@pytest.mark.parametrize(("mode", "start"), [("line", 2500), ("char", 20_000)])
def test_a_range_costs_two_round_trips_and_then_one(
    store: Store, proc: Process, runner: Any, mode: Any, start: int
) -> None:
    proc.create(LOG, page_size=100)
    afresh = store.process("triage")
    commands(runner)

    afresh.read("fd:1", mode=mode, start=start)
    first = commands(runner)
    afresh.read("fd:1", mode=mode, start=start + 1)

    assert first == [["resolve"], ["HMGET", "HGET"]]
    assert commands(runner) == [["HMGET", "HGET"]]


def test_a_short_text_is_read_completely_in_one_request(proc: Process, runner: Any) -> None:
    proc.create(LOG)
    commands(runner)

    proc.read("fd:1", read_all=True)

    assert commands(runner) == [["HMGET", "HGET"]]


def most_in_flight(operation: Operation[Any], page: bytes, created: bytes) -> tuple[int, int]:
    """Serve the requests of a long read. Return how many there were, and the most at the same time."""
    sent, ahead, most = 0, 0, 0
    request: Any = next(operation)
    pages: list[Any] = []
    while not isinstance(request, Finished):
        reply: Any = None
        if isinstance(request, Send):
            sent, ahead = sent + 1, ahead + 1
            pages.append(request.batch)
        else:
            assert isinstance(request, Receive)
            ahead -= 1
            command, _ = pages.pop(0)
            reply = [[page for _ in command[2:]], created]
        most = max(most, ahead)
        request = resumed(operation, reply)
    assert ahead == 0
    return sent, most


def test_a_long_read_has_three_requests_in_flight_and_into_memory_all(proc: Process, runner: Any) -> None:
    page = b"x" * 3999 + b"\n"
    made = proc.create(page.decode() * 1500)
    info = runner.run(content_info(proc.handle, made.fd))
    created = f"{made.created_at:.6f}".encode()
    taken: list[bytes] = []

    def take(run: list[bytes]) -> Operation[None]:
        taken.extend(run)
        return
        yield  # makes this a generator

    assert most_in_flight(fetch(info, range(1, 1501), take), page, created) == (24, 3)
    assert taken == [page] * 1500
    assert most_in_flight(reading.read(proc.handle, made.fd, None), page, created) == (24, 24)


def test_invalid_arguments_are_refused_without_a_round_trip(proc: Process, runner: Any) -> None:
    proc.create(LOG)
    commands(runner)

    with pytest.raises(InvalidArgument):
        proc.read("fd:1", start=0)
    with pytest.raises(InvalidArgument):
        proc.read("fd:1}{", start=1)
    with pytest.raises(PageOutOfRange):
        proc.read("fd:1", start=10**6)
    with pytest.raises(InvalidArgument):
        proc.create("\ud800")

    assert commands(runner) == []


# --- scripted replies


def test_a_repeated_create_has_the_same_operation_id(proc: Process) -> None:
    operation = contents.create(proc.handle, "text", "text")
    batch = next(operation)

    with pytest.raises(StopIteration) as done:
        operation.send([None, None, None, None, [b"ok", b"fd:7", b"triage/7", b"12.5"]])

    assert isinstance(batch, list)
    assert batch[-1][:2] == ("EVALSHA", script("commit").sha)
    made = done.value.value
    assert (made.fd, made.created_at, made.chars) == ("fd:7", 12.5, 4)


@pytest.mark.parametrize(
    ("reply", "error"),
    [
        ([b"gone"], "not_found"),
        ([b"fenced", b"it has ended (exited)"], "fenced"),
        ([b"quota_exceeded", b"tree_fds", 5], "quota_exceeded"),
        ([b"lost"], "store_unavailable"),
    ],
)
def test_error_replies_of_scripts_become_typed_errors(proc: Process, reply: list[Any], error: str) -> None:
    operation = contents.create(proc.handle, "text", "text")
    next(operation)

    def answer_and_clear() -> None:
        [clearing] = operation.send([None, None, None, None, None, None, reply])
        assert name_of(clearing) == "UNLINK"
        operation.send([2])

    with pytest.raises(FDStoreError) as caught:
        answer_and_clear()

    assert caught.value.type == error


def test_a_text_over_the_limit_stops_being_sent_midway(store: Store, runner: Any) -> None:
    proc = store.process("small", limits=TreeLimits(tree_bytes=1_000_000))
    commands(runner)

    with pytest.raises(QuotaExceeded):
        proc.create(LOG * 1000)

    assert len(runner.sent) <= 3


def test_a_known_content_that_another_client_closed_is_looked_up_once_more(
    store: Store, proc: Process, runner: Any
) -> None:
    proc.create(LOG)
    proc.read("fd:1")
    store.process("triage").close("fd:1")
    commands(runner)

    with pytest.raises(NotFound):
        proc.store.run(reading.read(proc.handle, "fd:1", Part("page", 1, 1)))

    # the last request checks whether the number was ever assigned: it was, so no data is lost
    assert commands(runner) == [["HGET", "HGET"], ["resolve", "HMGET", "HGET", "HGETALL"], ["HGET"]]


class Finished(NamedTuple):
    """The return value of a finished operation."""

    result: Any


def resumed(operation: Any, reply: Any) -> Any:
    """The operation's next request, or its result."""
    try:
        return operation.send(reply)
    except StopIteration as done:
        return Finished(done.value)


# --- being run


def test_a_claim_returns_everything_needed_to_run_in_one_round_trip(
    store: Store, proc: Process, runner: Any
) -> None:
    child = store.run(processes.create_child(proc.handle, [], state="ready", brief='{"kind": "brief"}'))
    commands(runner)

    claimed = store.run(leases.claim(child.keys, "worker"))

    assert commands(runner) == [["claim", "LRANGE"]]
    assert claimed.journal == [b'{"kind": "brief"}']
    assert (claimed.attempt, claimed.parent, claimed.limits) == (1, "triage", proc.handle.limits)


# --- what does not grow with the table


def test_a_page_of_the_list_reads_only_its_own_descriptors(proc: Process, runner: Any) -> None:
    for n in range(9):
        proc.create(str(n))
    commands(runner)

    held, total = proc.store.run(descriptors.list_page(proc.handle, 3, 2))

    assert commands(runner) == [["HGETALL"], ["HGETALL", "HGETALL"]]
    assert ([d.fd for d in held], total) == (["fd:3", "fd:4"], 9)


@pytest.mark.thorough("thousands of descriptors")
def test_an_end_is_one_round_trip_and_one_more_for_each_large_piece(proc: Process, runner: Any) -> None:
    small, large = proc.child(), proc.child()
    for n in range(processes.RELEASE_PIECE + 1):
        large.create(str(n))
    commands(runner)

    small.end()
    assert commands(runner) == [["finish"]]

    large.end()
    assert commands(runner) == [["finish"]] * 2


def test_the_ceilings_are_read_beside_a_write_once_a_minute_and_never_for_a_read(
    store: Store, proc: Process, runner: Any
) -> None:
    commands(runner)
    proc.create("of a tree that was just made, when its ceilings were read")
    [made] = commands(runner)
    proc.handle.ceilings_due_at = 0.0

    proc.read("fd:1")
    reads = commands(runner)
    proc.create("a minute later")
    proc.create("and soon after that")

    assert len(reads) == 1
    assert commands(runner) == [["HGETALL", "HMGET", *made], made]


# --- writing


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
