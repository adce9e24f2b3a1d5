"""A content moves out, is read there in every way, and comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import redis

import fdstore
import fdstore.aio
from fdstore.bench import texts
from fdstore.client import Process, Store
from fdstore.store.cold.moving import Moved, load_content
from fdstore.store.contents.returning import _note_read
from fdstore.store.keys import TreeKeys
from fdstore.text.index import GROUP_PAGES
from fdstore.wire.slots import units_of
from tests.cold_contents import READERS, Known, long_text
from tests.thorough import thorough

MoveOut = Callable[[], Moved]

TEXTS = {
    "ascii": "".join(f"line {number} of the build\n" for number in range(1, 3001)),
    "mixed": "".join(f"Zeile {number}: größer → {'é' * (number % 50)}\n" for number in range(1, 3001)),
    "one long line": "wörter " * 5000,
    "astral": "😀 a\n" * 4000,
    "empty": "",
    "short": "two\nlines",
}


@pytest.mark.parametrize("kind", TEXTS)
@pytest.mark.parametrize("page_size", [4000, *thorough("other pages", 100, 7777)])
def test_every_read_of_a_cold_text_is_that_of_the_hot_one(
    proc: Process, move_out: MoveOut, fields: Callable[..., Any], kind: str, page_size: int
) -> None:
    text = TEXTS[kind]
    d = proc.create(text, page_size=page_size)

    def reads() -> list[Any]:
        found: list[Any] = [proc.read("fd:1", read_all=True), proc.read("fd:1", start=d.pages)]
        if text:
            found += [proc.read("fd:1", start=(d.pages + 1) // 2)]
            found += [proc.read("fd:1", mode="line", start=max(1, d.lines // 2), count=20)]
            found += [proc.read("fd:1", mode="char", start=max(1, d.chars // 3), count=500)]
            found += [proc.search("fd:1", "9|o", context=1)]
        found += [
            proc.read_bytes("fd:1"),
            proc.read_bytes("fd:1", d.bytes // 2, 999),
            "".join(proc.follow("fd:1")),
        ]
        return found

    before = reads()
    assert move_out().contents == 1
    assert fields()["tier"] == "cold"

    fresh = proc.store.process("triage")
    assert reads() == before
    assert fresh.read("fd:1", start=1) == proc.read("fd:1", start=1)
    with fresh.open_bytes("fd:1") as file:
        assert file.read() == text.encode()


def test_the_object_of_a_cold_text_is_the_text_itself(
    proc: Process,
    move_out: MoveOut,
    objects: Callable[[], list[Path]],
    execute: Any,
    fields: Callable[..., Any],
) -> None:
    proc.create(TEXTS["mixed"])

    move_out()

    [file] = objects()
    assert file.read_text("utf-8") == TEXTS["mixed"]
    assert file.name == fields()["where"]
    assert file.parts[-3:-1] == ("fdstore", "triage")
    assert execute("EXISTS", "fdstore:{triage}:triage:fd:1:pages") == 0


def test_cold_bytes_are_read_by_their_offset(proc: Process, move_out: MoveOut) -> None:
    data = bytes(range(256)) * 1000
    proc.create(data, page_size=1000)
    proc.create(data * 2)

    assert move_out().contents == 2

    assert proc.read_bytes("fd:1", 12_345, 10) == data[12_345:12_355]
    assert proc.read_bytes("fd:1") == data
    assert proc.read_bytes("fd:2", 255_990) == data[-10:] + data


def test_a_content_that_is_read_three_times_in_a_minute_comes_back(
    proc: Process, move_out: MoveOut, fields: Callable[..., Any], execute: Any
) -> None:
    d = proc.create(TEXTS["ascii"])
    move_out()

    for number in (1, 2, 3):
        proc.read("fd:1", start=number)

    assert "tier" not in fields()
    assert execute("HLEN", "fdstore:{triage}:triage:fd:1:pages") == d.pages
    assert proc.read("fd:1", read_all=True).text == TEXTS["ascii"]
    assert proc.store.tree("triage").cold_fds == 0


def test_a_sealed_stream_moves_out_like_a_content(proc: Process, move_out: MoveOut) -> None:
    with proc.open_stream() as writer:
        writer.write(TEXTS["mixed"])
    open_stream = proc.open_stream()
    open_stream.write("not yet")

    assert move_out().contents == 1

    fresh = proc.store.process("triage")
    assert fresh.read("fd:1", read_all=True).text == TEXTS["mixed"]
    assert fresh.stat("fd:1").state == "sealed"
    open_stream.end()


@pytest.mark.parametrize("pages", [1, 9, 16, 17, 255, 256, 257, 600])
@pytest.mark.parametrize("how", ["stored", "streamed"])
def test_what_comes_back_is_stored_as_it_was(
    proc: Process, move_out: MoveOut, execute: Any, redis_url: str, pages: int, how: str
) -> None:
    """The index of at most 256 pages goes with the checksums, and comes back from there."""
    text = "".join(f"line {number:4} ü\n" for number in range(pages * 5))
    if how == "stored":
        proc.create(text, page_size=60)
    else:
        with proc.open_stream(page_size=60) as writer:
            writer.write(text)
    assert proc.stat("fd:1").pages == pages
    record = "fdstore:{triage}:triage:fd:1"
    keys = [record, f"{record}:pages", f"{record}:index"]

    def stored() -> list[dict[bytes, bytes]]:
        flat = [execute("HGETALL", key) for key in keys]
        return [dict(zip(each[::2], each[1::2], strict=True)) for each in flat]

    before = stored()
    before[0].pop(b"tail", None)
    move_out()
    assert execute("EXISTS", keys[2]) == (pages > 256)
    fresh = fdstore.connect(redis_url).process("triage")
    assert (
        fresh.read("fd:1", mode="line", start=pages * 4, count=1).text == text.splitlines(True)[pages * 4 - 1]
    )
    assert fresh.read("fd:1", mode="char", start=len(text) - 3, count=3).text == text[-4:-1]

    for _ in range(3):
        fresh.read("fd:1", start=pages)

    assert stored() == before


@pytest.mark.parametrize("lines", [20, 2000, 40_000])
@pytest.mark.parametrize("how", READERS)
def test_a_client_that_knows_nothing_of_a_cold_text_reads_it(
    proc: Process, move_out: MoveOut, redis_url: str, tmp_path: Path, how: str, lines: int
) -> None:
    known = Known(long_text(lines))
    proc.create(known.text)
    move_out()

    READERS[how](known, fdstore.connect(redis_url).process("triage"), "fd:1", tmp_path)


@pytest.mark.parametrize("kind", [texts.LOGS, texts.CJK, texts.MIXED, "bytes"])
@pytest.mark.parametrize("size", [128 * 1024, 256 * 1024, 512 * 1024, 1_000_000, 1_040_000])
def test_a_cold_content_takes_six_thousandths_of_its_size(
    proc: Process, move_out: MoveOut, execute: Any, kind: str, size: int
) -> None:
    """From `cold_min` on, by MEMORY USAGE of all its keys."""
    d = proc.create(bytes(size) if kind == "bytes" else texts.of_kind(kind, size))
    move_out()

    keys = execute("KEYS", "fdstore:{triage}:triage:fd:1*")
    assert sum(execute("MEMORY", "USAGE", key, "SAMPLES", 0) for key in keys) <= 0.006 * d.bytes


@pytest.mark.parametrize("line", [5, 80, 1000, 9000, 2_000_000])
def test_a_long_cold_text_takes_five_thousandths_whatever_its_lines(
    proc: Process, move_out: MoveOut, execute: Any, line: int
) -> None:
    d = proc.create((("x" * (line - 1) + "\n") * (1_500_000 // line + 1))[:1_500_000])
    assert d.pages > GROUP_PAGES
    move_out()

    keys = execute("KEYS", "fdstore:{triage}:triage:fd:1*")
    assert sum(execute("MEMORY", "USAGE", key, "SAMPLES", 0) for key in keys) <= 0.005 * d.bytes


def test_large_pages_in_two_fields_come_back_in_two(proc: Process, move_out: MoveOut, execute: Any) -> None:
    data = bytes(range(256)) * 1024
    proc.create(data)
    assert execute("HLEN", "fdstore:{triage}:triage:fd:1:pages") == 8
    move_out()

    for _ in range(3):
        proc.read_bytes("fd:1", 5, 5)

    assert execute("HLEN", "fdstore:{triage}:triage:fd:1:pages") == 8
    assert proc.read_bytes("fd:1") == data


def test_a_content_that_came_back_moves_out_again(
    proc: Process, move_out: MoveOut, cold_store: Store, objects: Callable[[], list[Path]]
) -> None:
    proc.create(TEXTS["ascii"])
    move_out()
    for _ in range(3):
        proc.read("fd:1")

    assert move_out().contents == 1

    assert len(objects()) == 2  # the first one is kept for some minutes
    assert cold_store.process("triage").read("fd:1", start=2).lines == proc.read("fd:1", start=2).lines


async def read_awaiting(url: str) -> str:
    async with await fdstore.aio.connect(url) as store:
        proc = await store.process("triage")
        return (await proc.read("fd:1", start=2)).text


def test_an_awaiting_client_reads_cold_pages(proc: Process, move_out: MoveOut, redis_url: str) -> None:

    proc.create(TEXTS["ascii"])
    page = proc.read("fd:1", start=2).text
    move_out()

    assert asyncio.run(read_awaiting(redis_url)) == page


def test_the_counter_of_reads_expires_even_if_the_content_goes_while_one_is_counted(
    proc: Process, move_out: MoveOut, redis_url: str
) -> None:
    proc.create(TEXTS["ascii"])
    move_out()
    info, _ = proc.store.run(load_content(TreeKeys("fdstore", "triage"), "triage/1"))
    counting = next(_note_read(info))

    with redis.Redis.from_url(redis_url, single_connection_client=True) as plain:
        for unit in units_of(counting.batch):
            plain.unlink(info.keys.reads)  # as the step does that lets the content go
            for command in unit.commands:
                plain.execute_command(*command)

        assert plain.ttl(info.keys.reads) > 0
        plain.unlink(info.keys.reads)
