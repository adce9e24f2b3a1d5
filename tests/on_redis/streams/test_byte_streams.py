"""Streams of bytes: their first piece makes them so; readers and followers see the bytes as they are."""

from __future__ import annotations

import threading
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fdstore
from fdstore.client import Process, Store
from fdstore.errors import (
    Fenced,
    InvalidArgument,
    NotText,
    PositionOutOfRange,
    StoreUnavailable,
    StreamBroken,
)
from fdstore.store.doctor.audit import check_tree
from fdstore.store.keys import TreeKeys
from fdstore.store.streams import streams
from fdstore.store.streams.completion import until_complete
from fdstore.store.streams.following import follow_bytes
from fdstore.text.selection import FIRST_PAGE
from tests.on_redis.followers import RepeatingStore, key_of
from tests.properties import examples
from tests.waiting import PATIENCE_S, wait_until

PNG = b"\x89PNG\r\n\x1a\n" + bytes(range(256)) * 3

pieces_of_bytes = st.lists(st.binary(max_size=9) | st.just(b"x" * 30), max_size=20)


def stored(execute: Any, key: str) -> tuple[dict[bytes, bytes], int, list[bytes]]:
    """Return the pages of a content of bytes, the size of its index, and its totals."""
    flat = execute("HGETALL", f"{key}:pages")
    names = ("kind", "bytes", "lines", "pages", "page_size")
    totals = execute("HMGET", key, *names)
    return dict(zip(flat[::2], flat[1::2], strict=True)), execute("HLEN", f"{key}:index"), totals


def damage(store: Store, proc: Process) -> list[str]:
    return [each.said for each in store.run(check_tree(TreeKeys(store.prefix, proc.id)))]


@settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(pieces=pieces_of_bytes, size=st.integers(1, 12) | st.none(), data=st.data())
def test_any_split_into_pieces_stores_what_create_stores(
    store: Store, proc: Process, execute: Any, pieces: list[bytes], size: int | None, data: st.DataObject
) -> None:
    out = proc.open_stream(page_size=size)
    written = b""
    for piece in pieces:
        out.write(piece)
        written += piece
        if data.draw(st.booleans(), "flush"):
            out.flush()
            assert proc.read_bytes(out.fd) == written
    out.end()

    d = proc.stat(out.fd)
    assert proc.read_bytes(out.fd) == written
    offset = data.draw(st.integers(0, len(written)), "offset")
    assert b"".join(proc.follow_bytes(out.fd, offset)) == written[offset:]
    if written:
        whole = proc.create(written, page_size=size)
        assert stored(execute, key_of(proc, out.fd)) == stored(execute, key_of(proc, whole.fd))
        assert (d.kind, d.media_type, d.chars, d.lines) == ("bytes", whole.media_type, 0, 0)
        proc.close(whole.fd)
    assert damage(store, proc) == []
    proc.close(out.fd)


def test_a_follower_sees_bytes_as_they_arrive_and_then_the_end(store: Store, proc: Process) -> None:
    found: list[bytes] = []
    ended: list[str] = []
    out = proc.open_stream(page_size=50)

    def read() -> None:
        with fdstore.connect(store.url) as other:
            try:
                found.extend(other.process(proc.id).follow_bytes(out.fd))
            except StreamBroken as error:
                ended.append(error.reason)

    reader = threading.Thread(target=read, daemon=True)
    reader.start()
    for start in range(0, len(PNG), 101):
        out.write(PNG[start : start + 101])
        out.flush()
        wait_until(lambda end=start + 101: b"".join(found) == PNG[:end])
    out.fail("disk full")
    reader.join(PATIENCE_S)

    assert ended == ["disk full"]
    d = proc.stat(out.fd)
    assert (d.state, d.kind, d.media_type, d.bytes, d.chars) == ("broken", "bytes", "image/png", len(PNG), 0)


def test_text_is_followed_by_its_bytes_across_pages(store: Store, proc: Process) -> None:
    text = "漢字 and\nno end of a line " * 40
    out = proc.open_stream(page_size=7)
    out.write(text[:300])
    out.flush()
    follower = follow_bytes(proc.handle, out.fd, 10)
    found = store.run(follower.more())
    out.write(text[300:])
    out.end()

    while not follower.ended:
        found += store.run(follower.more())

    assert found == text.encode()[10:]


def test_no_way_to_read_text_reads_a_stream_of_bytes(proc: Process) -> None:
    out = proc.open_stream(page_size=2)
    followed = proc.follow(out.fd)
    out.write(b"\x00\xff" * 300)
    out.flush()

    for sealed in (False, True):
        for read in (
            lambda: proc.read(out.fd, mode="page", start=2, wait=60),
            lambda: proc.read(out.fd, mode="line", start=1),
            lambda: proc.read(out.fd, mode="char", start=3),
            lambda: proc.search(out.fd, "x"),
            lambda: next(iter(proc.follow(out.fd))),
            lambda: next(followed),
        ):
            with pytest.raises((NotText, StopIteration) if sealed else NotText):
                read()
        assert proc.read_bytes(out.fd, 99, 4) == b"\xff\x00\xff\x00"
        out.end()


def test_to_wait_for_the_bytes_of_a_stream_is_to_wait_for_its_end(store: Store, proc: Process) -> None:
    out = proc.open_stream()
    out.write(PNG)
    out.flush()
    waiting = until_complete(proc.handle, out.fd, FIRST_PAGE, 60)
    waiter = threading.Thread(target=store.run, args=(waiting,), daemon=True)

    waiter.start()
    out.write(PNG)
    out.flush()
    assert waiter.is_alive()
    out.end()
    waiter.join(PATIENCE_S)

    assert not waiter.is_alive()


def test_a_piece_of_bytes_sent_again_is_stored_once(store: Store, proc: Process) -> None:
    repeating = RepeatingStore(store, 3)
    appender = repeating.run(streams.open_stream(proc.handle, "stream", 10))
    written = b""

    for piece in (b"ab\xff", PNG, b"\x00" * 9000, b"the end"):
        repeating.failing = 1
        written += piece
        appender.put(piece)
        with pytest.raises(StoreUnavailable):
            repeating.run(appender.store())
        repeating.run(appender.store())

    repeating.run(appender.seal(0))
    assert proc.read_bytes("fd:1") == written
    assert damage(store, proc) == []


def test_the_process_itself_may_go_on_writing_its_bytes_and_no_other_writer(
    store: Store, proc: Process
) -> None:
    fd = store.run(streams.open_stream(proc.handle, "stream", lease_s=None)).fd
    first, second = (store.run(streams.resume(proc.handle, fd)) for _ in range(2))
    first.put(PNG)
    store.run(first.store())

    second.put("text of another writer")
    with pytest.raises(Fenced, match=f"has {len(PNG)} "):
        store.run(second.store())
    third = store.run(streams.resume(proc.handle, fd))
    with pytest.raises(NotText, match=f"image/png .{len(PNG)} bytes"):
        third.put("text")
    third.put(b"more")
    store.run(third.store())

    assert proc.read_bytes(fd) == PNG + b"more"
    assert proc.stat(fd).media_type == "image/png"


def test_an_offset_past_the_end_of_an_ended_content_is_refused_and_one_at_its_end_is_empty(
    proc: Process,
) -> None:
    for fd in (proc.create("漢").fd, proc.create(b"\xff\xff\xff").fd):
        assert list(proc.follow_bytes(fd, 3)) == []
        with pytest.raises(PositionOutOfRange, match="bytes 1-3; there is no byte 5"):
            next(proc.follow_bytes(fd, 4))
        with pytest.raises(InvalidArgument, match="offset"):
            proc.follow_bytes(fd, -1)
