"""An object that is cut, changed, replaced or away is a typed error, never another text."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore.client import Process
from fdstore.errors import ObjectStoreUnavailable, StoreLostData
from fdstore.store.cold.moving import Moved, Mover, due_contents, move_due
from fdstore.store.doctor.audit import check_tree
from fdstore.store.keys import TreeKeys
from fdstore.store.objects import object_store
from fdstore.store.objects.checksums import bytes_of_a_page
from fdstore.store.objects.settings import ColdSettings
from fdstore.text.packed_index import pack_page
from fdstore.text.paging import pages_of

MoveOut = Callable[[], Moved]
Objects = Callable[[], list[Path]]
TEXT = "".join(f"line {number} with ümlauts\n" for number in range(5000))

DAMAGES: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda data: data[: len(data) // 2],
    "cut by a byte": lambda data: data[:-1],
    "empty": lambda data: b"",
    "one letter": lambda data: data.replace(b"line 4900", b"lime 4900"),
    "zeros": lambda data: bytes(len(data)),
    "swapped lines": lambda data: b"\n".join(sorted(data.split(b"\n"))),
    "shifted": lambda data: b" " + data[:-1],
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_object_is_lost_data(
    proc: Process, move_out: MoveOut, objects: Objects, damage: str
) -> None:
    d = proc.create(TEXT)
    move_out()
    [file] = objects()
    file.write_bytes(DAMAGES[damage](file.read_bytes()))

    for read in (
        lambda: proc.read("fd:1", start=d.pages - 1, count=2),
        lambda: proc.read("fd:1", read_all=True),
        lambda: proc.read_bytes("fd:1"),
        lambda: proc.search("fd:1", "x"),
    ):
        with pytest.raises(StoreLostData, match=file.name) as caught:
            read()
        assert caught.value.type == "store_lost_data"
    found = proc.store.run(check_tree(TreeKeys("fdstore", "triage")))
    assert any(file.name in each.said for each in found)


def test_a_missing_object_is_lost_data(proc: Process, move_out: MoveOut, objects: Objects) -> None:
    proc.create(TEXT)
    proc.create("a hot text")
    move_out()
    for each in objects():
        each.unlink()
    hot = proc.create("a new text")

    with pytest.raises(StoreLostData, match="is missing"):
        proc.read("fd:1", start=1)
    assert proc.read(hot.fd).text == "a new text"


def test_doctor_finds_a_cold_tree_well(proc: Process, move_out: MoveOut) -> None:
    proc.create(TEXT)
    proc.create(bytes(range(256)) * 999)
    move_out()

    assert proc.store.run(check_tree(TreeKeys("fdstore", "triage"))) == []


HOSTILE = ["", "../../../etc/passwd", "triage-2-0123456789abcdef", "s3://other/x", "triage-1-xyz", "\0"]


@pytest.mark.parametrize("where", HOSTILE)
def test_a_record_names_no_object_but_its_own(
    proc: Process, move_out: MoveOut, execute: Any, where: str
) -> None:
    proc.create(TEXT)
    move_out()
    key = "fdstore:{triage}:triage:fd:1"
    before = execute("HGET", key, "where")
    execute("HSET", key, "where", where)

    with pytest.raises(StoreLostData, match="does not say which object"):
        proc.read("fd:1", start=2)

    execute("HSET", key, "where", before, "tier", "warm")
    with pytest.raises(StoreLostData, match="does not say which object"):
        proc.read("fd:1", start=2)
    execute("HSET", key, "tier", "cold")


def test_lost_checksums_are_lost_data(proc: Process, move_out: MoveOut, execute: Any, redis_url: str) -> None:
    proc.create(TEXT)
    move_out()
    key = "fdstore:{triage}:triage:fd:1:sums"
    sums = execute("GET", key)
    for left in (0, 1, len(sums) // 2, len(sums) - 1):
        execute("SET", key, sums[:left])
        fresh = fdstore.connect(redis_url).process("triage")

        for read in (
            partial(fresh.read, "fd:1", start=2),
            partial(fresh.read, "fd:1", mode="line", start=7, count=2),
            partial(fresh.read, "fd:1", mode="char", start=7, count=2),
            partial(fresh.read_bytes, "fd:1", 7, 2),
            partial(fresh.search, "fd:1", "x"),
        ):
            with pytest.raises(StoreLostData, match="checksums of its object"):
                read()
    execute("SET", key, sums)
    assert fresh.read("fd:1", read_all=True).text == TEXT


def test_an_index_that_was_changed_beside_the_checksums_is_found(
    proc: Process, move_out: MoveOut, execute: Any, redis_url: str
) -> None:
    """The totals of the text prove the sum of its lines, and `doctor` the lines of each page."""
    d = proc.create(TEXT)
    move_out()
    key = "fdstore:{triage}:triage:fd:1:sums"
    sums = execute("GET", key)
    pages = [page.encode() for page in pages_of(TEXT, d.page_size)]
    one_less, one_more = pages[0].replace(b"\n", b" ", 1), pages[1].replace(b" ", b"\n", 1)

    def change(first: bytes, second: bytes) -> None:
        said = [pack_page(data, len(data.decode()), d.page_size) for data in (first, second, *pages[2:])]
        execute("SET", key, sums[: d.pages * bytes_of_a_page(d)] + b"".join(said))

    change(pages[0], pages[1])
    assert execute("GET", key) == sums

    change(one_less, pages[1])
    with pytest.raises(StoreLostData, match="index with the checksums"):
        fdstore.connect(redis_url).process("triage").read("fd:1", mode="line", start=300)
    [found] = proc.store.run(check_tree(TreeKeys("fdstore", "triage")))
    assert "index with the checksums" in found.said

    change(one_less, one_more)
    [found] = proc.store.run(check_tree(TreeKeys("fdstore", "triage")))
    assert "its index does not match its pages" in found.said

    execute("SET", key, sums)
    assert proc.store.run(check_tree(TreeKeys("fdstore", "triage"))) == []


def test_a_text_with_other_totals_than_its_record_says_stays_in_redis(
    proc: Process, move_out: MoveOut, execute: Any
) -> None:
    d = proc.create(TEXT)
    execute("HSET", "fdstore:{triage}:triage:fd:1", "lines", d.lines + 1)

    moved = move_due(proc.store)

    assert moved.contents == 0
    assert "it has other pages than its record says" in moved.problem
    execute("HSET", "fdstore:{triage}:triage:fd:1", "lines", d.lines)
    assert move_out().contents == 1


def test_a_key_of_the_index_that_a_torn_log_left_only_takes_memory(
    proc: Process, move_out: MoveOut, execute: Any
) -> None:
    proc.create(TEXT)
    index = "fdstore:{triage}:triage:fd:1:index"
    kept = execute("HGET", index, 1)
    move_out()
    execute("HSET", index, 1, kept)

    [found] = proc.store.run(check_tree(TreeKeys("fdstore", "triage")))

    assert found.harmless
    assert index in found.said
    assert index in found.advice
    assert proc.read("fd:1", mode="line", start=300).text == "line 299 with ümlauts\n"
    execute("UNLINK", index)


def test_a_place_that_is_away_concerns_cold_contents_alone(
    proc: Process, move_out: MoveOut, place: Path
) -> None:
    proc.create(TEXT)
    move_out()
    proc.create("hot")
    aside = place.rename(place.with_name("aside"))
    place.write_text("not a directory")

    with pytest.raises((ObjectStoreUnavailable, StoreLostData), match=str(place)):
        proc.read("fd:1", start=1)
    assert proc.read("fd:2").text == "hot"
    assert str(place) in move_due(proc.store).problem
    assert proc.read("fd:2").text == "hot"

    place.unlink()
    aside.rename(place)
    assert proc.read("fd:1", start=1).text == TEXT[: len(proc.read("fd:1", start=1).text)]


def test_an_object_store_that_returns_another_text_gets_no_content(
    proc: Process, objects: Objects, fields: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.create(TEXT)
    real = object_store.put

    def altered(url: str, path: str, data: bytes) -> None:
        real(url, path, data.replace(b"line 7 ", b"lime 7 "))

    with monkeypatch.context() as patched:
        patched.setattr(object_store, "put", altered)
        assert "returned another text" in move_due(proc.store).problem

    assert "tier" not in fields()
    assert proc.read("fd:1", read_all=True).text == TEXT
    assert move_due(proc.store).deleted == 1
    assert len(objects()) == 1


def test_a_content_that_is_dropped_during_its_upload_leaves_no_object(
    proc: Process, objects: Objects, move_out: MoveOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.create(TEXT)
    real = object_store.digest_of

    def closing(url: str, path: str) -> Any:
        proc.close("fd:1")
        return real(url, path)

    with monkeypatch.context() as patched:
        patched.setattr(object_store, "digest_of", closing)
        assert move_due(proc.store).contents == 0

    move_out()
    assert objects() == []


def test_two_movers_move_a_content_once(
    proc: Process, objects: Objects, move_out: MoveOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.create(TEXT)
    real, others = object_store.digest_of, []

    def beside(url: str, path: str) -> Any:
        if not others:
            others.append(None)
            others.append(move_due(proc.store).contents)
        return real(url, path)

    with monkeypatch.context() as patched:
        patched.setattr(object_store, "digest_of", beside)
        assert move_due(proc.store).contents == 0

    assert others == [None, 1]
    move_out()
    assert len(objects()) == 1
    assert proc.read("fd:1", read_all=True).text == TEXT


def test_only_what_was_not_read_for_long_moves(proc: Process) -> None:
    proc.create(TEXT)
    tree = TreeKeys("fdstore", "triage")

    def due(after_s: float | None, ago_s: float | None = None) -> int:
        settings = ColdSettings(url="file:///x", after_s=after_s, min_bytes=10)
        return len(proc.store.run(due_contents(tree, settings, lambda *_: ago_s)))

    assert due(0) == 1
    assert due(3600) == 0
    assert due(None) == 0
    assert due(3600, ago_s=1.0) == 1  # its last mover read it, and nobody since
    assert due(3600, ago_s=100.0) == 0


@pytest.mark.thorough("many megabytes")
def test_a_large_content_moves_in_parts_and_comes_back_with_the_sweep(
    proc: Process, move_out: MoveOut, objects: Objects, fields: Any
) -> None:
    text = "".join(f"{number} größer\n" for number in range(1_300_000))
    assert len(text.encode()) > 20_000_000
    proc.create(text)

    assert move_out().contents == 1
    assert objects()[0].stat().st_size == len(text.encode())
    assert proc.read("fd:1", mode="line", start=1_000_001, count=2).text == "1000000 größer\n1000001 größer\n"
    assert proc.read("fd:1", read_all=True).text == text
    proc.read("fd:1", start=3)
    assert "tier" in fields()

    assert Mover(proc.store).turn().back == 1
    fresh = proc.store.process("triage")
    assert fresh.read("fd:1", read_all=True).text == text


FORKED = """
import os, sys, fdstore
store = fdstore.connect(sys.argv[1])
proc = store.process("triage")
before = proc.read("fd:1", start=2).text
child = os.fork()
if child == 0:
    os._exit(0 if proc.read("fd:1", start=2).text == before else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def test_a_forked_process_reads_cold_contents(proc: Process, move_out: MoveOut, redis_url: str) -> None:
    proc.create(TEXT)
    move_out()

    done = subprocess.run([sys.executable, "-c", FORKED, redis_url], env={**os.environ}, check=False)

    assert done.returncode == 0


def test_a_store_that_is_only_looked_at_reads_cold_contents(
    proc: Process, move_out: MoveOut, redis_url: str, fields: Any
) -> None:
    proc.create(TEXT)
    move_out()

    with fdstore.connect(redis_url, looking=True) as looking:
        for _ in range(4):
            assert looking.process("triage").read("fd:1", read_all=True).text == TEXT
    assert fields()["tier"] == "cold"


def test_an_object_that_somebody_deletes_during_its_upload_moves_later(
    proc: Process, objects: Objects, move_out: MoveOut, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.create(TEXT)
    real = object_store._sync

    def deleting(url: str, path: str) -> None:
        for each in objects():
            each.unlink()
        real(url, path)

    with monkeypatch.context() as patched:
        patched.setattr(object_store, "_sync", deleting)
        moved = move_due(proc.store)

    assert (moved.contents, "No such file" in moved.problem) == (0, True)
    assert proc.read("fd:1", read_all=True).text == TEXT
    assert move_out().contents == 1


LONG = "".join(f"line {number} größer\n" for number in range(3000))
LONG_ASCII = LONG.replace("ö", "o").replace("ß", "s")
"""Texts whose index has several fields, with pages of 60 characters."""


def changed_by(pattern: bytes, by: int, times: int = 0) -> Callable[[bytes], bytes]:
    """Return what adds to the numbers that the second group of a pattern finds in a field."""

    def change(field: bytes) -> bytes:
        def other(found: re.Match[bytes]) -> bytes:
            return b"%b%d" % (found[1], int(found[2]) + by)

        return re.sub(pattern, other, field, count=times)

    return change


WRONG_INDEX: dict[str, Callable[[bytes], bytes]] = {
    "rows begin later": changed_by(rb"(\n\d+ )(\d+)", 1),
    "rows have more lines before them": changed_by(rb"(\n)(\d+)(?= )", 1),
    "the group begins later": changed_by(rb"^(\d+ )(\d+)", 1),
    "rows have other sizes": changed_by(rb"( )(\d+)(?![^\n]*[;\n])", 1),
    "a page has a line less": changed_by(rb"(;)(\d+)", -1, 1),
    "cut": lambda field: field[: len(field) // 2],
    "empty": lambda field: b"",
}


@pytest.mark.parametrize("text", [LONG, LONG_ASCII], ids=["mixed", "ascii"])
@pytest.mark.parametrize("first", [1, 257])
@pytest.mark.parametrize("what", WRONG_INDEX)
def test_a_text_whose_index_is_not_that_of_its_pages_stays_in_redis_and_stops_no_other(
    proc: Process, move_out: MoveOut, execute: Any, fields: Any, text: str, first: int, what: str
) -> None:
    """In an object nothing but the index says where a page is."""
    proc.create(text, page_size=60)
    proc.create(TEXT)
    index = "fdstore:{triage}:triage:fd:1:index"
    kept = execute("HGET", index, first)
    changed = WRONG_INDEX[what](kept)
    assert changed != kept
    execute("HSET", index, first, changed)

    moved = move_due(proc.store)

    assert moved.contents == 1
    assert "fd:1" in moved.problem
    assert "tier" not in fields()
    found = proc.store.run(check_tree(TreeKeys("fdstore", "triage")))
    assert any(index in each.key for each in found)
    execute("HSET", index, first, kept)
    assert move_out().contents == 1
    assert proc.read("fd:1", read_all=True).text == text


@pytest.mark.parametrize("page_size", ["7", "0", "-1", "", "x", "9" * 30])
@pytest.mark.parametrize("text", [TEXT, LONG], ids=["short", "long"])
def test_a_damaged_record_stops_the_move_of_no_other(
    proc: Process, execute: Any, page_size: str, text: str
) -> None:
    proc.create(text, page_size=60 if text == LONG else None)
    proc.create("healthy\n" * 1000)
    record = "fdstore:{triage}:triage:fd:1"
    kept = execute("HGET", record, "page_size")
    execute("HSET", record, "page_size", page_size)

    moved = move_due(proc.store)

    assert execute("HGET", "fdstore:{triage}:triage:fd:2", "tier") == b"cold"
    assert "fd:1" in moved.problem or moved.contents == 2
    execute("HSET", record, "page_size", kept)


@pytest.mark.parametrize("what", ["index", "page_size", "short index"])
def test_one_that_cannot_come_back_stops_no_other(
    proc: Process, move_out: MoveOut, execute: Any, fields: Any, what: str
) -> None:
    proc.create(LONG, page_size=60)
    proc.create(TEXT)
    assert move_out().contents == 2
    key, field, value = {
        "index": ("fdstore:{triage}:triage:fd:1:index", "257", "="),
        "page_size": ("fdstore:{triage}:triage:fd:1", "page_size", "7"),
        "short index": ("fdstore:{triage}:triage:fd:1", "index", "0 0;1,2"),
    }[what]
    kept = execute("HGET", key, field)
    execute("HSET", key, field, value)
    for content in ("triage/1", "triage/2"):
        execute("SADD", "fdstore:{triage}:cold:wanted", content)

    moved = Mover(proc.store).turn()

    assert moved.back == 1
    assert "fd:1" in moved.problem
    assert "tier" in fields()
    assert execute("KEYS", "*staging*") == []
    found = proc.store.run(check_tree(TreeKeys("fdstore", "triage")))
    assert found
    assert not any("only a backup" in each.advice for each in found)
    execute(*(("HDEL", key, field) if kept is None else ("HSET", key, field, kept)))
    assert proc.store.process("triage").read("fd:1", read_all=True).text == LONG
