"""Threads share the caches of a client, which stay bounded."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import pytest

from fdstore.client import Process
from fdstore.store import content_info, process_handle
from fdstore.text.index import GROUP_PAGES
from tests.waiting import concurrently

GROUPS = 6
LINES = GROUPS * GROUP_PAGES
THREADS = 8

Execute = Callable[..., Any]


@pytest.fixture
def small_caches(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Reduce the caches of index groups, contents and names, and switch threads often."""
    monkeypatch.setattr(content_info, "MAX_GROUPS", 4)
    monkeypatch.setattr(process_handle, "MAX_INFOS", 2)
    monkeypatch.setattr(process_handle, "MAX_MET", 2)
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


def run_in_threads(work: Callable[[int], None]) -> None:
    """Run the work in all threads concurrently; raise its first exception."""
    concurrently(*(partial(work, thread) for thread in range(THREADS)))


def test_threads_read_more_index_groups_of_a_content_than_the_cache_holds(small_caches: None, proc: Process):
    proc.create("".join(f"{number:04}\n" for number in range(1, LINES + 1)), page_size=5)

    def read(thread: int) -> None:
        for step in range(60):
            number = (thread * 97 + step * GROUP_PAGES) % LINES + 1
            assert proc.read("fd:1", start=number).text == f"{number:04}\n"
            far = LINES - number + 1
            assert proc.read("fd:1", mode="line", start=far).text == f"{far:04}\n"

    run_in_threads(read)


def test_threads_read_more_contents_than_the_cache_holds(small_caches: None, proc: Process):
    for number in range(1, 13):
        proc.create(f"text {number}")

    def read(thread: int) -> None:
        for step in range(60):
            number = (thread + step) % 12 + 1
            assert proc.read(f"fd:{number}", read_all=True).text == f"text {number}"

    run_in_threads(read)


def test_threads_learn_the_index_of_one_content(small_caches: None, proc: Process, execute: Execute):
    proc.create("".join(f"{number:04}\n" for number in range(1, LINES + 1)), page_size=5)
    proc.read("fd:1")
    [info] = [info for _, info in proc.handle._infos.items()]
    flat = execute("HGETALL", info.keys.index)
    fields = [(int(flat[i]), flat[i + 1]) for i in range(0, len(flat), 2)]

    def learn(_: int) -> None:
        for first, value in fields * 300:
            assert info.learn(first, value).first == first
            info.group_at("newlines", LINES)

    run_in_threads(learn)

    assert len(info.groups) == 4


def test_threads_resolve_contents_concurrently(small_caches: None, proc: Process):
    def meet(thread: int) -> None:
        for number in range(thread, 20_000, THREADS):
            proc.handle.meet(f"fd:{number}", f"triage/{number}", b"1.0")

    run_in_threads(meet)

    assert proc.handle.highest == 19_999
    assert len(proc.handle._met) == 2
