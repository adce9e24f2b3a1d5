"""Pages in two fields read, and cost, as pages in one."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from fdstore.client import Process, Store
from fdstore.store.doctor.audit import check_tree
from fdstore.store.keys import TreeKeys
from tests.on_redis.contents.test_page_cost import stats
from tests.properties import examples
from tests.slices import check_slice, pages_of
from tests.stored_keys import whole_pages

PAGES = "fdstore:{triage}:triage:fd:1:pages"
MIXED = "".join(
    "".join(random.Random(number).choices("ab \u00e9\u6f22\u5b57\U0001f600", k=30)) + f" {number}\n"
    for number in range(3000)
)
"""About 100 000 characters in several scripts: pages of 4000 characters have 8000 to 10 000 bytes."""


@pytest.fixture
def proc(store: Store) -> Process:
    proc = store.process("triage")
    proc.create(MIXED)
    return proc


def test_large_pages_are_in_two_fields_each_of_them_text(proc: Process, execute: Any) -> None:
    fields = execute("HKEYS", PAGES)

    rests = [field for field in fields if field.endswith(b"+")]
    assert len(fields) - len(rests) == proc.stat("fd:1").pages == len(pages_of(MIXED, 4000))
    assert len(rests) > 10
    assert all(execute("HGET", PAGES, rest).decode() for rest in rests)
    shown = execute("HGET", PAGES, rests[0][:-1]).decode()
    assert shown.endswith("\n[this page goes on in the field with a + after its number]")
    taken = execute("MEMORY", "USAGE", PAGES, "SAMPLES", 0)
    assert taken < 1.07 * len(MIXED.encode())
    stored = whole_pages(execute, PAGES.removesuffix(":pages"))
    assert [stored[number + 1].decode() for number in range(len(stored))] == pages_of(MIXED, 4000)


def test_every_part_is_a_slice_of_the_text(store: Store, proc: Process) -> None:
    child = proc.child(share=["fd:1"])
    raw, counts = MIXED.encode(), {"page": len(pages_of(MIXED, 4000)), "line": 3000, "char": len(MIXED)}

    @given(data=st.data())
    @settings(max_examples=examples(40), deadline=None)
    def check(data: st.DataObject) -> None:
        # one that knows the content, one that must resolve it, one that has it of another
        reader = data.draw(st.sampled_from([proc, store.process("triage"), child]))
        mode: Any = data.draw(st.sampled_from(sorted(counts)))
        start = data.draw(st.integers(1, counts[mode]))
        count = data.draw(st.integers(1, counts[mode] // 20 + 2))
        offset, length = data.draw(st.tuples(st.integers(0, len(raw)), st.integers(0, 30_000)))

        found = reader.read("fd:1", mode=mode, start=start, count=count)

        check_slice(found, MIXED, 4000, mode, start, count)
        assert reader.read_bytes("fd:1", offset, length) == raw[offset : offset + length]

    check()


def test_the_whole_is_read_searched_exported_and_extracted(proc: Process, tmp_path: Path) -> None:
    proc.export("fd:1", tmp_path / "out.txt")
    made = proc.extract("fd:1", mode="char", start=3, count=50_000)

    assert (tmp_path / "out.txt").read_bytes() == MIXED.encode()
    assert proc.read("fd:1", read_all=True).text == MIXED
    assert proc.search("fd:1", r" 29\d\d$").matches == 100
    assert proc.read(made.fd, read_all=True).text == MIXED[2:50_002]
    assert "".join(proc.follow("fd:1")) == MIXED


def test_a_page_in_two_fields_is_one_round_trip_and_two_commands(proc: Process, execute: Any) -> None:
    proc.read("fd:1", start=2)
    before = stats(execute).commands

    proc.read("fd:1", start=3)

    after = stats(execute).commands
    assert (after["hmget"] - before.get("hmget", 0), after["hget"] - before["hget"]) == (1, 1)


def test_bytes_of_the_default_page_size_take_hardly_more_than_themselves(store: Store, execute: Any) -> None:
    proc = store.process("triage")
    data = random.Random(1).randbytes(1_000_000)

    made = proc.create(data)

    assert execute("MEMORY", "USAGE", PAGES, "SAMPLES", 0) < 1.005 * len(data)
    assert execute("HSTRLEN", PAGES, "1") < made.page_size
    assert proc.read_bytes("fd:1") == data


def test_a_page_without_its_rest_is_reported_by_the_check_of_contents(
    proc: Process, store: Store, execute: Any
) -> None:
    number = len(execute("HKEYS", PAGES)) - proc.stat("fd:1").pages
    execute("HDEL", PAGES, "2+")

    [found, *_] = store.run(check_tree(TreeKeys("fdstore", "triage")))

    assert found.key == "fdstore:{triage}:triage:fd:1"
    assert "pages, and its totals say" in found.said
    execute("HSET", PAGES, "2+", "?")
    execute("HSET", "fdstore:{triage}:triage:fd:1", "split", number)
    proc.close("fd:1")
