"""Contents of bytes, and byte windows of text: exact, at the promised cost, and never taken for text."""

from __future__ import annotations

import errno
import io
import os
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import fdstore.aio
from fdstore.client import Process, Store
from fdstore.errors import (
    Conflict,
    DamagedRecord,
    InvalidArgument,
    NotFound,
    NotText,
    StoreLostData,
)
from fdstore.model.records import TreeLimits
from fdstore.store.contents import byte_reading, reading
from fdstore.store.doctor import audit
from fdstore.store.keys import TreeKeys
from fdstore.text.selection import Part
from tests.on_redis.contents.test_page_cost import calls, stats
from tests.properties import examples
from tests.round_trips import count_round_trips, count_waits
from tests.thorough import thorough
from tests.waiting import stretched

ANY = settings(
    max_examples=examples(60), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
texts = st.text(st.sampled_from("aä漢\N{GRINNING FACE}\n"), max_size=80)
windows = st.tuples(st.integers(0, 400), st.none() | st.integers(0, 400))
MB = 1_000_000


def cut_out(whole: bytes, offset: int, length: int | None) -> bytes:
    return whole[offset:] if length is None else whole[offset : offset + length]


@ANY
@given(
    content=texts | st.binary(max_size=300),
    page_size=st.integers(1, 9),
    window=windows,
    is_known=st.booleans(),
)
def test_a_window_of_bytes_equals_the_slice(
    store: Store,
    proc: Process,
    content: str | bytes,
    page_size: int,
    window: tuple[int, int | None],
    is_known: bool,
) -> None:
    made = proc.create(content, page_size=page_size)
    reader = proc if is_known else store.process("triage")
    whole = content.encode() if isinstance(content, str) else content

    assert reader.read_bytes(made.fd, *window) == cut_out(whole, *window)
    assert (made.kind, made.bytes) == ("text" if isinstance(content, str) else "bytes", len(whole))
    if made.kind == "bytes":
        assert (made.chars, made.lines, made.pages) == (0, 0, max(1, -(-len(whole) // page_size)))
    assert proc.stat(made.fd) == made
    proc.close(made.fd)


@ANY
@given(pieces=st.lists(texts, max_size=5), window=windows)
def test_a_window_of_a_growing_text_equals_the_slice(
    proc: Process, pieces: list[str], window: tuple[int, int | None]
) -> None:
    with proc.open_stream(page_size=4) as out:
        whole = ""
        for piece in pieces:
            out.write(piece)
            out.flush()
            whole += piece
            assert proc.read_bytes(out.fd, *window) == cut_out(whole.encode(), *window)
    proc.close(out.fd)


@pytest.mark.timeout(stretched(100))
@pytest.mark.parametrize(
    "line",
    [
        b"x" * 100_000 + b"\n",
        *thorough(
            "other lengths of lines",
            b"a line of a log\n",
            b'{"k": "' + b"y" * 3000 + b'"}\n',
            "漢字\n".encode() * 500,
        ),
    ],
    ids=["long lines", "short lines", "lines near a page", "cjk"],
)
def test_a_text_of_20_mb_is_read_into_memory_in_two_waits(store: Store, line: bytes) -> None:
    whole = line * (20 * MB // len(line))
    made = store.process("big").ingest(io.BytesIO(whole), "x")

    def afresh() -> Any:
        return store.process("big").handle

    (_, found), waits = count_waits(store, byte_reading.read_bytes(afresh(), made.fd))
    assert (found == whole, waits) == (True, 2)
    (_, found), waits = count_waits(store, byte_reading.read_bytes(afresh(), made.fd, MB, 10 * MB))
    assert (found == whole[MB : 11 * MB], waits) == (True, 2)
    found, waits = count_waits(store, reading.read(afresh(), made.fd, None))
    assert (found.text == whole.decode(), waits) == (True, 2)
    found, waits = count_waits(store, reading.read(afresh(), made.fd, Part("char", 100, 5 * MB)))
    assert (found.text == whole.decode()[99 : 5 * MB + 99], waits) == (True, 2)


@pytest.mark.timeout(stretched(100))
@pytest.mark.parametrize("kind", ["ascii", "cjk", "bytes"])
@pytest.mark.parametrize("size", [MB, 50 * MB], ids=["1 MB", "50 MB"])
def test_a_window_costs_two_round_trips_and_its_bytes_whatever_the_size(
    store: Store, execute: Any, kind: str, size: int
) -> None:
    proc = store.process("big", limits=TreeLimits(tree_bytes=2 * size))
    line = {
        "ascii": b"a line of a log that is about as long as such lines are\n",
        "cjk": "漢字かな交じり文\n".encode(),
        "bytes": os.urandom(56),
    }[kind]
    made = proc.ingest(
        io.BytesIO(line * (size // len(line))), "x", errors="bytes" if kind == "bytes" else "strict"
    )
    afresh, middle = store.process("big"), made.bytes // 2
    before = stats(execute)

    (_, found), rounds = count_round_trips(
        store, byte_reading.read_bytes(afresh.handle, made.fd, middle, 10_000)
    )

    after = stats(execute)
    assert (len(found), rounds) == (10_000, 2)
    assert cut_out(line * 400, middle % len(line), 10_000) == found
    two_pages = 2 * (65_536 if kind == "bytes" else 12_000)
    assert after.sent - before.sent < 10_000 + two_pages + 16_000  # the replies to INFO included
    assert sum(after.commands.values()) - sum(before.commands.values()) < 700
    if kind == "bytes":  # the metadata is known by now
        assert count_round_trips(store, byte_reading.read_bytes(afresh.handle, made.fd, 5, 5))[1] == 1
    index = execute("MEMORY", "USAGE", f"fdstore:{{big}}:big:{made.fd}:index") or 0
    assert index <= 0.005 * made.bytes
    proc.close(made.fd)


@pytest.mark.parametrize(
    "read",
    [
        lambda proc, fd: proc.read(fd),
        lambda proc, fd: proc.read(fd, start=2),
        lambda proc, fd: proc.read(f"{fd}#L1"),
        lambda proc, fd: proc.read(fd, mode="char", start=3),
        lambda proc, fd: proc.read(fd, read_all=True),
        lambda proc, fd: proc.search(fd, "x"),
        lambda proc, fd: proc.extract(fd),
        lambda proc, fd: proc.extract(f"{fd}#P1"),
        lambda proc, fd: list(proc.follow(fd)),
        lambda proc, fd: proc.export(f"{fd}#P1", "part"),
    ],
)
@pytest.mark.parametrize("is_known", [True, False])
def test_bytes_are_not_read_as_text(
    store: Store, proc: Process, read: Callable[[Process, str], object], is_known: bool
) -> None:
    made = proc.create(b"\x89PNG\r\n\x1a\n" + bytes(100), page_size=10)

    with pytest.raises(NotText, match=r"image/png \(108 bytes\), not text"):
        read(proc if is_known else store.process("triage"), made.fd)


@pytest.mark.parametrize("call", [(-1, 1), (0, -1), (1.5, 1), ("0", 1), (True, 1), (0, "1"), (2**53 + 1, 1)])
def test_bad_windows_are_typed_errors(proc: Process, call: Any) -> None:
    proc.create(b"abc")

    with pytest.raises(InvalidArgument, match=r"offset|length"):
        proc.read_bytes("fd:1", *call)
    with pytest.raises(NotFound):
        proc.read_bytes("fd:2")


def test_any_file_is_stored_exactly(proc: Process, tmp_path: Path) -> None:
    path = tmp_path / "photo.png"
    data = b"\x89PNG\r\n\x1a\n" + os.urandom(3 * MB)
    path.write_bytes(data)

    made = proc.ingest(path, errors="bytes")

    assert (made.kind, made.media_type) == ("bytes", "image/png")
    assert (made.bytes, made.page_size) == (len(data), 65_536)
    assert proc.read_bytes(made.fd) == data
    assert proc.export(made.fd, tmp_path / "copy").kind == "bytes"
    assert (tmp_path / "copy").read_bytes() == data
    assert proc.put("pictures/a", data, media_type="Image/X-Own").media_type == "image/x-own"
    assert proc.child(["name:pictures/a"]).read_bytes("name:pictures/a", 1, 3) == b"PNG"
    with pytest.raises(InvalidArgument, match="media_type"):
        proc.create(data, media_type="png")


def test_a_file_object_reads_seeks_and_fetches_ahead(store: Store, proc: Process, execute: Any) -> None:
    whole = os.urandom(MB)
    proc.put("data", whole)
    before = calls(execute)

    with proc.open_bytes("name:data") as file:
        assert b"".join(iter(lambda: file.read(1000), b"")) == whole
        assert (file.seek(-10, io.SEEK_END), file.read()) == (MB - 10, whole[-10:])
        assert (file.seek(5), file.read(3), file.tell()) == (5, whole[5:8], 8)
        assert (file.seek(2 * MB), file.read(1)) == (2 * MB, b"")
        with pytest.raises(InvalidArgument):
            file.seek(-1)
        proc.put("data", b"another")
        file.seek(500_000)
        with pytest.raises(Conflict):
            file.read()
    assert calls(execute) - before < 200


def test_libraries_of_files_find_no_end_of_an_archive_in_a_short_content(proc: Process) -> None:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("a.txt", "one")

    for data, is_zip in ((b"", False), (b"PK", False), (packed.getvalue(), True)):
        with proc.open_bytes(proc.create(data + b"").fd) as file:
            assert zipfile.is_zipfile(file) is is_zip
            with pytest.raises(OSError, match="before the start") as refused:
                file.seek(-len(data) - 1, io.SEEK_END)
            assert refused.value.errno == errno.EINVAL
            assert type(refused.value)(*refused.value.args).args == refused.value.args


def test_a_file_object_is_awaited_too(awaited: Any, proc: Process) -> None:
    whole = os.urandom(MB)
    proc.put("data", whole)

    async def read(mine: fdstore.aio.Process) -> None:
        async with await mine.open_bytes("name:data") as file:
            pieces = []
            while piece := await file.read(70_001):
                pieces.append(piece)
            assert b"".join(pieces) == whole
            assert await file.seek(-3, 2) == MB - 3
            assert (await file.read(), file.tell()) == (whole[-3:], MB)
            await file.seek(10)
            assert [await file.read(5), await file.read(0), await file.read()] == [
                whole[10:15],
                b"",
                whole[15:],
            ]
            await mine.put("data", b"another")
            await file.seek(500_000)
            with pytest.raises(Conflict):
                await file.read()
        with pytest.raises(ValueError, match="closed"):
            await file.read()

    awaited(read)


def test_damaged_bytes_are_named(store: Store, proc: Process, execute: Any) -> None:
    made = proc.create(bytes(100), page_size=10)
    tree = TreeKeys("fdstore", "triage")
    assert store.run(audit.check_tree(tree)) == []

    execute("HSET", f"fdstore:{{triage}}:triage:{made.fd}:pages", 3, b"short")

    found = store.run(audit.check_tree(tree))
    assert next(each.said for each in found) == "page 3 has 5 bytes, not 10"
    execute("HSET", f"fdstore:{{triage}}:triage:{made.fd}:pages", 3, bytes(10))


def test_impossible_totals_do_not_block_redis(store: Store, proc: Process, execute: Any) -> None:
    proc.create("small")
    execute("HSET", "fdstore:{triage}:triage:fd:1", "pages", 10**12, "bytes", 10**13)

    with pytest.raises((StoreLostData, DamagedRecord)):
        store.process("triage").read_bytes("fd:1", 10**12, 5)
    assert execute("PING") == b"PONG"
    execute("HSET", "fdstore:{triage}:triage:fd:1", "pages", 1, "bytes", 5)


def test_a_page_of_bytes_that_is_cut_off_is_an_error(
    store: Store, proc: Process, execute: Any, tmp_path: Path
) -> None:
    proc.create(bytes(100), page_size=10)
    execute("HSET", "fdstore:{triage}:triage:fd:1:pages", 3, b"short")

    for read in (lambda p: p.read_bytes("fd:1"), lambda p: p.export("fd:1", tmp_path / "copy")):
        with pytest.raises(DamagedRecord):
            read(store.process("triage"))
    execute("HSET", "fdstore:{triage}:triage:fd:1:pages", 3, bytes(10))
