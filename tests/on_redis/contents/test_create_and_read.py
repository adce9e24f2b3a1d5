"""Stored text is read back exactly: by page, by line, by character and whole."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, NotFound, PageOutOfRange, PositionOutOfRange, TooLarge
from fdstore.store.contents import contents
from tests.on_redis.texts import LOG, TEXTS
from tests.thorough import thorough

HUGE = pytest.param(10**5000, id="5001 digits")


# --- creating


def test_a_descriptor_describes_the_stored_text(proc: Process) -> None:
    d = proc.create("one\ntwo", source="tool_result", page_size=4)

    assert (d.fd, d.state, d.source, d.producer) == ("fd:1", "sealed", "tool_result", "triage")
    assert (d.chars, d.bytes, d.lines, d.pages, d.page_size) == (7, 7, 2, 2, 4)
    assert (d.origin, d.exit_code, d.reason) == (None, None, None)
    assert proc.stat("fd:1") == d


def test_the_list_is_in_number_order(proc: Process) -> None:
    for n in range(12):
        proc.create(str(n))
    proc.close("fd:5")

    assert [d.fd for d in proc.list()] == [f"fd:{n}" for n in range(1, 13) if n != 5]


@pytest.mark.parametrize("value", [None, 5, ["text"]])
def test_only_text_and_bytes_are_created(proc: Process, value: Any) -> None:
    with pytest.raises(InvalidArgument, match="str or bytes is needed"):
        proc.create(value)


@pytest.mark.parametrize("page_size", [0, -1, True, 1.0, "5", 2**53 + 1, HUGE, math.nan])
def test_an_invalid_page_size_is_refused(proc: Process, page_size: Any) -> None:
    with pytest.raises(InvalidArgument, match="page_size"):
        proc.create("x", page_size=page_size)


@pytest.mark.parametrize("source", ["", "x" * 201, 3, "\ud800"])
def test_a_source_is_a_short_text(proc: Process, source: Any) -> None:
    with pytest.raises(InvalidArgument):
        proc.create("x", source=source)


def test_redis_holds_readable_pages(proc: Process, execute: Any) -> None:
    proc.create("one\ntwo\nthree", page_size=5)

    assert execute("HGET", "fdstore:{triage}:triage:fd:1:pages", 2) == b"two\n"
    assert execute("HGETALL", "fdstore:{triage}:triage:fds") == [b"fd:1", b"triage/1"]
    assert execute("HGET", "fdstore:{triage}:triage:fd:1", "lines") == b"3"
    assert execute("HGET", "fdstore:{triage}:triage:fd:1", "index") == b"0 0;1,4 1,4 0,5~"


def test_a_small_text_takes_two_keys_until_it_is_shared(proc: Process, execute: Any) -> None:
    proc.create("one\ntwo\nthree")
    record = "fdstore:{triage}:triage:fd:1"
    assert set(execute("KEYS", f"{record}*")) == _keys(record, "", ":pages")
    assert execute("OBJECT", "ENCODING", record) in (b"listpack", b"ziplist")

    child = proc.child(share=["fd:1"])
    assert set(execute("SMEMBERS", f"{record}:holders")) == {b"triage", b"triage.1"}

    proc.close("fd:1")
    assert child.read("fd:1#L2").text == "two\n"
    child.close("fd:1")
    assert execute("KEYS", f"{record}*") == []


def test_a_small_text_is_one_command_and_is_staged_nowhere(proc: Process) -> None:
    proc.create("reads the ceilings as well, once a minute")

    texts = ("", "x" * 4000, "x" * 9000)
    assert [len(next(contents.create(proc.handle, text))) for text in texts] == [1, 1, 5]


def _keys(record: str, *parts: str) -> set[bytes]:
    return {f"{record}{part}".encode() for part in parts}


def test_an_empty_content_has_one_empty_page(proc: Process, execute: Any) -> None:
    d = proc.create("")

    assert (d.pages, d.lines, d.chars) == (1, 0, 0)
    assert execute("HGETALL", "fdstore:{triage}:triage:fd:1:pages") == [b"1", b""]


# --- reading


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("page_size", [3, *thorough("longer pages", 100, 4000)])
@pytest.mark.parametrize("mode", ["page", "line", "char"])
def test_reading_any_part_equals_slicing_the_text(
    proc: Process, store: Store, name: str, page_size: int, mode: Any, assert_slice: Any
) -> None:
    text = TEXTS[name] if page_size > 3 else TEXTS[name][:3000]
    d = proc.create(text, page_size=page_size)
    total = {"page": d.pages, "line": d.lines, "char": d.chars}[mode]
    starts = {1, 2, 3, total // 3, total // 2, total - 1, total, 255, 256, 257, 258}

    for start in sorted(start for start in starts if 1 <= start <= max(total, 1)):
        for count in (1, 2, 300, 2**53):
            assert_slice(
                proc.read(d.fd, mode=mode, start=start, count=count), text, page_size, mode, start, count
            )
        # as read by a client without a cache
        afresh = store.process("triage").read(d.fd, mode=mode, start=start, count=2)
        assert_slice(afresh, text, page_size, mode, start, 2)


def test_a_page_is_the_same_whatever_says_that_it_is_one(proc: Process) -> None:
    proc.create("one\ntwo\nthree", page_size=5)

    pages = [
        [
            proc.read("fd:1", start=2, **given)
            for given in ({}, {"mode": "page"}, {"mode": "page", "count": 1})
        ]
        for _ in range(2)  # the first reads learn the index
    ]

    assert len({page for each in pages for page in each}) == 1
    assert pages[0][0].text == "two\n"


@pytest.mark.parametrize("count", [True, 1.0, "1", 0, HUGE])
def test_a_count_is_checked_of_a_known_page_too(proc: Process, count: Any) -> None:
    proc.create("one")
    proc.read("fd:1")

    with pytest.raises(InvalidArgument, match="count"):
        proc.read("fd:1", mode="page", count=count)


def test_a_selector_reads_the_same_part_as_separate_arguments(proc: Process) -> None:
    proc.create(LOG, page_size=500)

    assert proc.read("fd:1#P2-4") == proc.read("fd:1", start=2, count=3)
    assert proc.read("fd:1#L120-180") == proc.read(1, mode="line", start=120, count=61)
    assert proc.read("fd-1#C100-299") == proc.read("1", mode="char", start=100, count=200)
    assert proc.read("fd:1#P2").page == 2


@pytest.mark.parametrize("warm", [True, False])
def test_a_start_past_the_end_is_an_error_with_the_valid_range(
    proc: Process, store: Store, warm: bool
) -> None:
    proc.create("a\nb\nc\n", page_size=2)
    reader = proc if warm else store.process("triage")

    with pytest.raises(PageOutOfRange, match="pages 1-3"):
        reader.read("fd:1", start=4)
    with pytest.raises(PageOutOfRange, match="pages 1-3"):
        reader.read("fd:1", start=4, count=2)
    with pytest.raises(PositionOutOfRange, match="lines 1-3"):
        reader.read("fd:1#L4")
    with pytest.raises(PositionOutOfRange, match="characters 1-6"):
        reader.read("fd:1", mode="char", start=2**53)


# all values of arguments, ids and selectors: tests/unit/text/test_selection.py


def test_an_unknown_descriptor_error_names_the_existing_ones(proc: Process) -> None:
    with pytest.raises(NotFound, match="fd:1 does not exist; nothing exists"):
        proc.read("fd:1")
    for _ in range(11):
        proc.create("x")

    for use in (proc.read, proc.stat, proc.close, proc.extract):
        with pytest.raises(NotFound, match=r"fd:12 does not exist; there are: fd:1, fd:2, .*fd:10, fd:11"):
            use("fd:12")


@pytest.mark.parametrize("id_", ["fd:1}{x", True])
def test_hostile_ids_are_refused_by_every_call(proc: Process, tmp_path: Path, id_: Any) -> None:
    proc.create("x")

    for use in (proc.read, proc.stat, proc.close, proc.extract, lambda fd: proc.export(fd, tmp_path / "f")):
        with pytest.raises(InvalidArgument) as caught:
            use(id_)
        assert len(str(caught.value)) < 300
    assert len(proc.list()) == 1


def test_a_part_longer_than_the_callers_limit_is_refused(proc: Process) -> None:
    proc.create(LOG, page_size=500)

    assert len(proc.read("fd:1", read_all=True, max_chars=len(LOG)).text) == len(LOG)
    with pytest.raises(TooLarge, match=f"limit of {len(LOG) - 1}"):
        proc.read("fd:1", read_all=True, max_chars=len(LOG) - 1)
    with pytest.raises(TooLarge):
        proc.read("fd:1", mode="line", count=3000, max_chars=1000)
    with pytest.raises(TooLarge):
        proc.read("fd:1", max_chars=10)
    assert len(proc.read("fd:1", mode="char", count=1000, max_chars=1000).text) == 1000


# --- clients that share a process


def test_a_descriptor_closed_by_another_client_is_not_found_and_the_error_names_the_others(
    proc: Process, store: Store
) -> None:
    proc.create(LOG)
    proc.create("other")
    proc.read("fd:1", mode="line", start=2000)

    store.process("triage").close("fd:1")

    for how in ({}, {"mode": "line"}, {"mode": "char", "start": 5}, {"read_all": True}, {"count": 2}):
        with pytest.raises(NotFound, match=r"there are: fd:2$"):
            proc.read("fd:1", **how)
    with pytest.raises(NotFound, match=r"there are: fd:2$"):
        proc.extract("fd:1")


@pytest.mark.parametrize("limit", ["1", -1, True, 1.5, float("nan")])
def test_an_invalid_limit_of_characters_is_refused(proc: Process, limit: Any) -> None:
    proc.create("some text")
    for _ in range(2):  # the page is known the second time
        with pytest.raises(InvalidArgument, match="max_chars: a whole number of characters"):
            proc.read("fd:1", max_chars=limit)
        proc.read("fd:1")


def test_every_look_at_a_process_of_a_dropped_tree_says_that_it_is_gone(proc: Process, store: Store) -> None:
    proc.create("some text")
    store.drop_tree("triage")

    for look in (
        proc.list,
        lambda: proc.list(prefix=""),
        lambda: proc.find("plan"),
        lambda: proc.put("plan", "x"),
    ):
        with pytest.raises(NotFound, match="process triage"):
            look()


def test_a_process_without_contents_has_an_empty_list(proc: Process) -> None:
    assert proc.list() == []
