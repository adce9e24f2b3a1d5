"""Long pieces of a stream are sent beside the script that accepts them, in one transaction."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import Fenced, NotFound, QuotaExceeded, StoreUnavailable, StreamClosed
from fdstore.model.records import TreeLimits
from fdstore.store.processes import leases, processes
from fdstore.store.streams import streams
from fdstore.store.streams.streams import StreamAppender
from fdstore.wire.packing import pack
from fdstore.wire.scripts import as_one_script
from tests.on_redis.child_agents import claim
from tests.on_redis.followers import Reader, RepeatingStore, key_of, stored
from tests.servers import values_of
from tests.stored_keys import lasting_keys
from tests.waiting import meanwhile, wait_until

LONG = "".join(f"line {number} 漢字\n" for number in range(4000))
"""More than goes as arguments of the script."""

OTHER = LONG.replace("line", "LINE")


def kept(execute: Any) -> dict[bytes | str, Any]:
    """Return the values of all keys that do not expire."""
    return values_of(execute, lasting_keys(execute))


def stream_of(store: Store, proc: Process, text: str = "so far\n") -> StreamAppender:
    appender = store.run(streams.open_stream(proc.handle, "stream"))
    appender.put(text)
    store.run(appender.store())
    return appender


def test_long_pieces_produce_the_same_content_as_create(proc: Process, execute: Any) -> None:
    with proc.open_stream() as out:
        for text in (LONG, "a little", OTHER, LONG):
            out.write(text)
            out.flush()

    whole = proc.create(LONG + "a little" + OTHER + LONG)
    assert stored(execute, key_of(proc, out.fd)) == stored(execute, key_of(proc, whole.fd))


def test_a_long_piece_is_one_round_trip_and_does_not_pass_through_the_script(
    store: Store, proc: Process
) -> None:
    appender = stream_of(store, proc)
    appender.put(LONG)
    storing = appender.store()

    sizes = {command[0]: len(pack([command])) for command in next(storing)}
    with pytest.raises(StopIteration):
        storing.send([b"OK"] * 6 + [[b"OK", [b"ok"], 1, 1, 0]])

    assert sizes["HSET"] > len(LONG.encode())
    assert sizes["EVALSHA"] < 2000


def test_concurrent_readers_see_only_complete_pieces(store: Store, proc: Process) -> None:
    out = proc.open_stream()
    follower = Reader(proc, out.fd)
    seen: set[str] = set()

    with meanwhile(lambda: seen.add(proc.read(out.fd, read_all=True).text)):
        for _ in range(30):
            out.write(LONG)
            out.flush()
    out.end()

    assert follower.done() == LONG * 30
    assert {len(text) % len(LONG) for text in seen} == {0}
    assert seen <= {LONG * count for count in range(31)}


# --- what is refused


def by_another_writer(store: Store, proc: Process) -> tuple[StreamAppender, type[Exception]]:
    appender = stream_of(store, proc)
    return store.run(streams.resume(proc.handle, appender.fd)), Fenced


def by_a_later_attempt(store: Store, _: Process) -> tuple[StreamAppender, type[Exception]]:
    root = store.process("agent")
    store.run(processes.launch(root.handle, "{}"))
    old = Process(store, claim(store, "agent"))
    appender = stream_of(store, old)
    store.run(leases.return_to_queue(old.handle))
    claim(store, "agent")
    return appender, Fenced


def by_a_writer_that_continued(store: Store, _: Process) -> tuple[StreamAppender, type[Exception]]:
    root = store.process("agent")
    fd = store.run(streams.open_stream(root.handle, "draft", lease_s=None)).fd
    old, new = (store.run(streams.resume(root.handle, fd)) for _ in range(2))
    store.run(new.store_once(OTHER, None))
    return old, Fenced


def by_the_end_of_the_process(store: Store, proc: Process) -> tuple[StreamAppender, type[Exception]]:
    child = proc.child()
    appender = stream_of(store, child)
    child.end()
    return appender, Fenced


def by_the_end_of_the_stream(store: Store, proc: Process) -> tuple[StreamAppender, type[Exception]]:
    appender = stream_of(store, proc)
    store.run(appender.seal(0))
    return appender, StreamClosed


def by_a_closed_descriptor(store: Store, proc: Process) -> tuple[StreamAppender, type[Exception]]:
    appender = stream_of(store, proc)
    proc.close(appender.fd)
    return appender, StreamClosed


@pytest.mark.parametrize(
    "refused",
    [
        by_another_writer,
        by_a_later_attempt,
        by_a_writer_that_continued,
        by_the_end_of_the_process,
        by_the_end_of_the_stream,
        by_a_closed_descriptor,
    ],
)
def test_a_refused_piece_changes_no_key(
    refused: Callable[..., tuple[StreamAppender, type[Exception]]], store: Store, proc: Process, execute: Any
) -> None:
    appender, error = refused(store, proc)
    before = kept(execute)

    appender.put(LONG)
    with pytest.raises(error):
        store.run(appender.store())

    assert kept(execute) == before
    for part in ("pages", "lent"):
        wait_until(lambda part=part: set(execute("KEYS", f"*:{part}")) <= set(before))


def test_a_server_without_the_script_stores_no_text(store: Store, proc: Process, execute: Any) -> None:
    appender = stream_of(store, proc)
    before = kept(execute)
    appender.put(LONG)
    execute("SCRIPT", "FLUSH")

    replies = [execute(*command) for command in next(appender.store())]

    assert "NoScriptError" in [type(reply).__name__ for reply in replies[-1]]
    assert kept(execute) == before
    assert not execute("EXISTS", f"{key_of(proc, appender.fd)}:lent")


def test_the_script_is_sent_again_to_a_server_that_forgot_it(
    store: Store, proc: Process, execute: Any
) -> None:
    with proc.open_stream() as out:
        out.write(LONG)
        out.flush()
        execute("SCRIPT", "FLUSH")

        out.write(OTHER)
        out.flush()

    assert proc.read(out.fd, read_all=True).text == LONG + OTHER


def test_a_piece_over_the_tree_limit_breaks_the_stream_and_is_not_stored(store: Store) -> None:
    proc = store.process("small", limits=TreeLimits(tree_bytes=100))
    appender = stream_of(store, proc)

    appender.put(LONG)
    with pytest.raises(QuotaExceeded, match="tree_bytes"):
        store.run(appender.store())

    found = proc.read(appender.fd, read_all=True)
    assert (found.text, found.state, found.reason) == ("so far\n", "broken", "quota_exceeded")


# --- what is sent again


def test_a_long_piece_sent_twice_is_stored_once(store: Store, proc: Process) -> None:
    twice = RepeatingStore(store, times=2)
    appender = twice.run(streams.open_stream(proc.handle, "stream"))
    for text in (LONG, "a little", OTHER):
        appender.put(text)
        twice.run(appender.store())
    twice.run(appender.seal(0))

    assert proc.read(appender.fd, read_all=True).text == LONG + "a little" + OTHER


def test_a_long_text_of_a_repeated_call_is_stored_once(store: Store, proc: Process) -> None:
    fd = store.run(streams.open_stream(proc.handle, "draft", lease_s=None)).fd
    for _ in range(2):
        store.run(store.run(streams.resume(proc.handle, fd)).store_once(LONG, "toolu_1"))

    assert proc.read(fd, read_all=True).text == LONG


@pytest.mark.parametrize("piece", [LONG, b"\xff\0" * 100_000])
def test_a_long_piece_can_be_stored_by_the_script_alone(
    store: Store, proc: Process, execute: Any, piece: str | bytes
) -> None:
    appender = stream_of(store, proc, "")
    appender.put(piece)
    batch = next(appender.store())

    for _ in range(2):
        assert execute(*as_one_script(batch[1:-1])) == [b"ok"]

    whole = proc.create(piece)
    found, expected = (stored(execute, key_of(proc, fd)) for fd in (appender.fd, whole.fd))
    if isinstance(piece, bytes):
        found[b"chars"] = expected[b"chars"]  # of a stream of bytes, it counts bytes
    assert found == expected


def test_a_writer_without_a_reply_sends_the_piece_again(store: Store, proc: Process) -> None:
    repeating = RepeatingStore(store)
    appender = store.run(streams.open_stream(proc.handle, "stream"))
    appender.put(LONG)
    repeating.failing = 1
    with pytest.raises(StoreUnavailable):
        repeating.run(appender.store())

    appender.put(OTHER)
    store.run(appender.store())

    assert proc.read(appender.fd, read_all=True).text == LONG + OTHER


def test_a_removed_tree_stores_nothing(store: Store, proc: Process, execute: Any) -> None:
    appender = stream_of(store, proc)
    execute("FLUSHALL")

    appender.put(LONG)
    with pytest.raises(NotFound):
        store.run(appender.store())

    wait_until(lambda: execute("KEYS", "*") == [])
