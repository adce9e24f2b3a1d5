"""Nothing that is damaged on either side makes a cold content another text, or reaches a file of others.

Each read gives the text that was stored, or `store_lost_data` for this content alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, StoreLostData
from fdstore.store.cold.moving import move_due
from fdstore.store.doctor.audit import check_tree
from fdstore.store.keys import TreeKeys
from fdstore.store.objects.checksums import digest_of_page
from fdstore.text.index import GROUP_PAGES
from tests import cold_contents
from tests.cold_contents import READERS, Known, long_text

MINE, OTHER = Known(long_text(500), 1000), Known(long_text(500, "LINE"), 1000)
RECORD = "fdstore:{t}:t:fd:1"
SECRET = long_text(500, "deep")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "cold"


@pytest.fixture
def proc(store: Store, place: Path) -> Process:
    """A process with two cold contents of the same size and a hot one."""
    cold_contents.use_cold(store, f"file://{place}")
    made = store.process("t")
    made.create(MINE.text, page_size=MINE.page_size)
    made.create(OTHER.text, page_size=OTHER.page_size)
    assert len(MINE.text.encode()) == len(OTHER.text.encode())
    assert cold_contents.turn_cold(store) == 2
    cold_contents.use_cold(store, f"file://{place}", after="none")
    made.create("hot")
    return made


def object_of(place: Path, text: str) -> Path:
    [path] = [each for each in cold_contents.objects_in(place) if each.read_bytes() == text.encode()]
    return path


def outcomes(proc: Process, folder: Path) -> Iterator[tuple[str, str]]:
    """Read fd:1 in every way; yield the way, and `text` or the type of the error."""
    for name, read in READERS.items():
        try:
            read(MINE, proc, "fd:1", folder)
            yield name, "text"
        except FDStoreError as error:
            yield name, error.type


def lost_in_every_way(proc: Process, folder: Path) -> None:
    found = dict(outcomes(proc, folder))
    assert set(found.values()) <= {"store_lost_data"}, found
    OTHER.check(proc, "fd:2", folder)
    assert proc.read("fd:3").text == "hot"
    assert [d.fd for d in proc.list()] == ["fd:1", "fd:2", "fd:3"]


OBJECTS: dict[str, Callable[[Path, Path], object]] = {
    "deleted": lambda path, other: path.unlink(),
    "empty": lambda path, other: path.write_bytes(b""),
    "cut by a byte": lambda path, other: path.write_bytes(path.read_bytes()[:-1]),
    "another content": lambda path, other: path.write_bytes(other.read_bytes()),
    "moved on by a byte": lambda path, other: path.write_bytes(b"x" + path.read_bytes()[:-1]),
    "all blanks": lambda path, other: path.write_bytes(b" " * path.stat().st_size),
    "a directory": lambda path, other: (path.unlink(), path.mkdir()),
    "a link to another content": lambda path, other: (path.unlink(), path.symlink_to(other)),
    "a link to itself": lambda path, other: (path.unlink(), path.symlink_to(path)),
}


@pytest.mark.parametrize("what", OBJECTS)
def test_a_damaged_object_loses_its_content_alone(
    what: str, proc: Process, place: Path, tmp_path: Path
) -> None:
    OBJECTS[what](object_of(place, MINE.text), object_of(place, OTHER.text))
    found = dict(outcomes(proc, tmp_path))

    if what == "cut by a byte":
        assert found["pages"] == found["read all"] == "store_lost_data"
        assert set(found.values()) <= {"text", "store_lost_data"}
    else:
        unreadable = "store_unavailable" if what == "a link to itself" else "store_lost_data"
        assert set(found.values()) == {unreadable}, found
    OTHER.check(proc, "fd:2", tmp_path)


def test_one_changed_byte_loses_the_parts_that_have_it_and_no_others(
    proc: Process, place: Path, tmp_path: Path
) -> None:
    path = object_of(place, MINE.text)
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(bytes(data))

    pages = proc.stat("fd:1").pages
    lost = []
    for number in range(1, pages + 1):
        try:
            assert proc.read("fd:1", start=number).text in MINE.text
        except StoreLostData:
            lost.append(number)
    assert len(lost) == 1
    for way in ("read all", "search", "export", "follow"):
        with pytest.raises(StoreLostData):
            READERS[way](MINE, proc, "fd:1", tmp_path)


FIELDS: dict[str, dict[str, str | None]] = {
    "no tier": {"tier": None},
    "another tier": {"tier": "warm"},
    "no where": {"where": None},
    "an empty where": {"where": ""},
    "a path upwards": {"where": "../../../secret"},
    "a path upwards in a name that begins well": {"where": "t-1-0123456789abcdef/../../../secret"},
    "an absolute path": {"where": "/etc/passwd"},
    "another place": {"where": "file:///etc/passwd"},
    "an encoded path": {"where": "..%2f..%2f..%2fsecret"},
    "a NUL": {"where": "t-1-0123456789abcdef\0x"},
    "a line end": {"where": "t-1-0123456789abcdef\n"},
    "a long one": {"where": "t-1-" + "0" * 100_000},
    "another tree": {"where": "u-1-0123456789abcdef"},
    "no object": {"where": "t-1-0123456789abcdef"},
}


@pytest.mark.parametrize("what", FIELDS)
def test_a_damaged_record_names_no_object_but_its_own(
    what: str, proc: Process, store: Store, execute: Any, place: Path, tmp_path: Path
) -> None:
    kept = dict(zip(*[iter(execute("HGETALL", RECORD))] * 2, strict=True))
    (tmp_path / "secret").write_text(SECRET)
    for name, value in FIELDS[what].items():
        if value is None:
            execute("HDEL", RECORD, name)
        else:
            execute("HSET", RECORD, name, value.encode("utf-8", "surrogateescape"))

    lost_in_every_way(proc, tmp_path)

    execute("DEL", RECORD)
    execute("HSET", RECORD, *[part for pair in kept.items() for part in pair])


def test_a_record_that_names_the_object_of_another_content_is_lost(
    proc: Process, execute: Any, tmp_path: Path
) -> None:
    mine = execute("HGET", RECORD, "where")
    execute("HSET", RECORD, "where", execute("HGET", "fdstore:{t}:t:fd:2", "where"))

    lost_in_every_way(proc, tmp_path)

    execute("HSET", RECORD, "where", mine)


def test_the_objects_that_a_tree_lets_go_of_are_its_own(
    proc: Process, store: Store, execute: Any, place: Path, tmp_path: Path
) -> None:
    """A record that names something else deletes nothing but an object of its content."""
    kept = place / "kept"
    kept.write_text("of somebody else")
    other = store.process("u")
    other.create(MINE.text)
    cold_contents.use_cold(store, f"file://{place}")
    cold_contents.turn_cold(store)
    theirs = execute("HGET", "fdstore:{u}:u:fd:1", "where").decode()
    [path] = [each for each in cold_contents.objects_in(place) if each.name == theirs]
    relative = "/".join(path.relative_to(place).parts)

    for named in (f"../{'/'.join(path.parts[-2:])}", theirs, "../../kept", f"../../{relative}"):
        execute("HSET", RECORD, "tier", "cold", "where", named)
        proc.create("again")
        execute("HSET", f"fdstore:{{t}}:t:fd:{proc.list()[-1].fd[3:]}", "tier", "cold", "where", named)
        proc.close(proc.list()[-1].fd)
    proc.close("fd:1")
    proc.end()
    cold_contents.tidy(store)

    assert kept.read_text() == "of somebody else"
    assert other.read("fd:1", read_all=True).text == MINE.text


def test_a_link_in_the_directory_leads_no_deletion_to_a_file_of_others(
    store: Store, place: Path, tmp_path: Path
) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "t").mkdir()
    precious = outside / "t" / "precious"
    precious.write_text("of somebody else")
    cold_contents.use_cold(store, f"file://{place}")
    proc = store.process("t")
    proc.create(MINE.text, page_size=MINE.page_size)
    cold_contents.turn_cold(store)
    [path] = cold_contents.objects_in(place)
    path.unlink()
    path.parent.rmdir()
    path.parent.symlink_to(outside / "t")

    proc.close("fd:1")
    cold_contents.tidy(store)

    assert precious.read_text() == "of somebody else"


def test_a_page_that_somebody_made_with_the_same_crc_is_not_the_text(
    proc: Process, place: Path, tmp_path: Path
) -> None:
    """Who can write the bucket can write what no CRC finds."""
    path, data = object_of(place, MINE.text), MINE.text.encode()
    first = proc.read("fd:1").text.encode()
    changed = b"EVIL" + first[4:-5]
    forged = changed + forge(zlib.crc32(changed), zlib.crc32(first[:-1])) + first[-1:]
    assert zlib.crc32(forged) == zlib.crc32(first)
    assert len(forged) == len(first)
    path.write_bytes(forged + data[len(first) :])

    with pytest.raises(StoreLostData):
        proc.read("fd:1", mode="char", start=1, count=4)
    with pytest.raises(StoreLostData):
        proc.read_bytes("fd:1", 0, 4)


def forge(state: int, wanted: int) -> bytes:
    """Return the four bytes after which a CRC-32 that stands at `state` is `wanted`."""
    forward = []
    for n in range(256):
        value = n
        for _ in range(8):
            value = value >> 1 ^ (0xEDB88320 if value & 1 else 0)
        forward.append(value)
    by_top = {value >> 24: n for n, value in enumerate(forward)}
    register, indexes = wanted ^ 0xFFFFFFFF, []
    for _ in range(4):
        index = by_top[register >> 24]
        indexes.append(index)
        register = (register ^ forward[index]) << 8 & 0xFFFFFFFF
    register, found = state ^ 0xFFFFFFFF, bytearray()
    for index in reversed(indexes):
        found.append((register ^ index) & 0xFF)
        register = register >> 8 ^ forward[(register ^ found[-1]) & 0xFF]
    return bytes(found)


SUMS = "fdstore:{t}:t:fd:1:sums"


def test_a_page_that_is_not_utf_8_is_lost_whatever_its_checksum_says(
    proc: Process, place: Path, execute: Any, tmp_path: Path
) -> None:
    path, sums = object_of(place, MINE.text), execute("GET", SUMS)
    first = proc.read("fd:1").text.encode()
    changed = b"\xff" + first[1:]
    path.write_bytes(changed + MINE.text.encode()[len(first) :])
    execute("SETRANGE", SUMS, 0, digest_of_page(changed))

    for read in (
        lambda: proc.read("fd:1"),
        lambda: proc.read("fd:1", mode="char", start=1, count=4),
        lambda: proc.read("fd:1", read_all=True),
        lambda: proc.search("fd:1", "7"),
    ):
        with pytest.raises(StoreLostData, match="is not text"):
            read()
    execute("SET", SUMS, sums)


@pytest.mark.parametrize("entry", [b"\0", b"~", b"\xff"])
def test_damaged_checksums_are_lost_data(entry: bytes, proc: Process, execute: Any, tmp_path: Path) -> None:
    sums = execute("GET", SUMS)
    execute("SET", SUMS, entry * len(sums))

    lost_in_every_way(proc, tmp_path)

    execute("SET", SUMS, sums)


def test_a_page_that_is_not_text_in_redis_stays_there(store: Store, place: Path, execute: Any) -> None:
    """It can be looked at and mended there; its object would only be lost data."""
    cold_contents.use_cold(store, f"file://{place}")
    store.process("t").create("äß" + "x" * 999)
    pages = "fdstore:{t}:t:fd:1:pages"
    whole = execute("HGET", pages, 1)
    execute("HSET", pages, 1, whole.replace("ä".encode(), b"xx"))

    moved = move_due(store)

    assert moved.contents == 0
    assert "page 1 is not what its index says" in moved.problem
    execute("HSET", pages, 1, whole)
    assert cold_contents.turn_cold(store) == 1


LONG = Known("".join(f"line {number} größer\n" for number in range(3000)), 60)
"""A text of so many pages that its index has several fields."""

INDEX = "fdstore:{t}:t:fd:1:index"


@pytest.fixture
def long(store: Store, place: Path) -> Process:
    """A process with a long cold content, as one who knows nothing of it sees it."""
    cold_contents.use_cold(store, f"file://{place}")
    assert store.process("t").create(LONG.text, page_size=LONG.page_size).pages > 2 * GROUP_PAGES
    assert cold_contents.turn_cold(store) == 1
    cold_contents.stay_cold(store)
    return store.process("t")


FIELDS_OF_INDEX: dict[str, Callable[[bytes], bytes]] = {
    "cut": lambda field: field[: len(field) // 2],
    "without its sizes": lambda field: field.rpartition(b"\nb")[0],
    "without its pages": lambda field: field.partition(b"=")[0] + b"=\nb0",
    "of a page that goes on": lambda field: field.replace(b"\nb", b"\x80\nb"),
    "of pages longer than they can be": lambda field: field.replace(b"\nb", b"\x00\xff\x7f\nb"),
    "with no head": lambda field: b"=" + field.partition(b"=")[2],
    "empty": lambda field: b"",
}


@pytest.mark.parametrize("what", FIELDS_OF_INDEX)
def test_a_damaged_packed_index_gives_no_other_text(
    what: str, long: Process, execute: Any, tmp_path: Path, redis_url: str
) -> None:
    for name in (b"1", b"257"):
        kept = execute("HGET", INDEX, name)
        execute("HSET", INDEX, name, FIELDS_OF_INDEX[what](kept))

        found = {}
        for way, read in READERS.items():
            fresh = fdstore.connect(redis_url).process("t")
            try:
                read(LONG, fresh, "fd:1", tmp_path)
            except FDStoreError as error:
                found[way] = error.type
        assert found, "it is needed for some reads"
        assert set(found.values()) == {"store_lost_data"}, found
        damage = long.store.run(check_tree(TreeKeys("fdstore", "t")))
        assert damage, "doctor finds it"
        assert not any(each.harmless for each in damage)

        execute("HSET", INDEX, name, kept)
    assert long.store.run(check_tree(TreeKeys("fdstore", "t"))) == []
    LONG.check(fdstore.connect(redis_url).process("t"), "fd:1", tmp_path)


def test_an_index_is_read_in_either_form_on_either_side(
    store: Store, place: Path, execute: Any, tmp_path: Path, redis_url: str
) -> None:
    """A torn log may leave the one of before."""
    cold_contents.use_cold(store, f"file://{place}")
    store.process("t").create(LONG.text, page_size=LONG.page_size)
    of_hot = execute("HGETALL", INDEX)
    assert cold_contents.turn_cold(store) == 1
    cold_contents.stay_cold(store)
    of_cold = execute("HGETALL", INDEX)
    assert of_cold[::2] == of_hot[::2]
    assert sum(map(len, of_cold)) < 0.5 * sum(map(len, of_hot))

    execute("HSET", INDEX, *of_hot)
    LONG.check(fdstore.connect(redis_url).process("t"), "fd:1", tmp_path)
    assert store.run(check_tree(TreeKeys("fdstore", "t"))) == []

    assert not cold_contents.is_cold(store, "t", "t/1"), "so many reads bring it back"
    assert execute("HGETALL", INDEX) == of_hot

    execute("HSET", INDEX, *of_cold)
    LONG.check(fdstore.connect(redis_url).process("t"), "fd:1", tmp_path)
    assert store.run(check_tree(TreeKeys("fdstore", "t"))) == []
