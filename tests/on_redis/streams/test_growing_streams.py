"""Reading a stream while it grows: pages, ranges, and reads that wait."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.errors import InvalidArgument, PageOutOfRange, PositionOutOfRange
from fdstore.store.streams import completion
from fdstore.wire.operation import Operation
from tests.waiting import stretched


def test_an_open_stream_can_be_read_at_any_moment_without_eof(proc: Process) -> None:
    with proc.open_stream(source="build", page_size=8) as out:
        out.write("one\ntwo\nth")
        out.flush()

        d = proc.stat(out.fd)
        first, last, everything = proc.read(1), proc.read(1, start=2), proc.read(1, read_all=True)
        line = proc.read(1, mode="line", start=3)

        assert (d.state, d.source, d.lines, d.exit_code) == ("open", "build", 3, None)
        assert (first.text, first.eof, first.state, first.truncated) == ("one\ntwo\n", False, "open", False)
        assert (last.text, last.eof, last.truncated) == ("th", False, True)
        assert (everything.text, everything.page, everything.eof) == ("one\ntwo\nth", "all", False)
        assert (line.text, line.lines, line.chars, line.eof) == ("th", "3-3", "9-10", False)
        assert proc.read(1, mode="char", start=4, count=100).text == "\ntwo\nth"

        out.write("ree\n")
        out.flush()

        assert proc.read(1, start=2).text == "three\n"


def test_a_range_is_correct_while_the_last_page_is_being_split(proc: Process, store: Store) -> None:
    out = proc.open_stream(page_size=8)
    out.write("one\ntwo\nthr\nx")
    out.flush()
    reading = completion.read_whole(proc.handle, out.fd, None, None, 0.0)
    taken = False

    def interfere() -> Operation[Any]:
        nonlocal taken
        reply = None
        while True:
            try:
                request = reading.send(reply)
            except StopIteration as done:
                return done.value
            reply = yield request
            if not taken:
                taken = True
                # the page "thr\nx" becomes "thr\n", and another one begins with x
                out.write("yz and more\n")
                out.flush()

    found = store.run(interfere())

    assert found.text == "one\ntwo\nthr\nx"
    assert (found.total_chars, found.pages) == (13, 2)
    out.end()


@pytest.mark.parametrize(("mode", "count"), [("page", 3), ("line", 3), ("char", 12)])
def test_ranges_extracts_exports_and_searches_see_a_snapshot(
    proc: Process, tmp_path: Any, mode: Any, count: int
) -> None:
    with proc.open_stream(page_size=4) as out:
        out.write("one\ntwo\nth")
        out.flush()

        assert proc.read(out.fd, mode=mode, count=count).text == "one\ntwo\nth"
        assert proc.read(proc.extract(out.fd).fd, read_all=True).text == "one\ntwo\nth"
        assert [hit.line for hit in proc.search(out.fd, "t").hits] == [2, 3]
        proc.export(out.fd, tmp_path / "out")
        assert (tmp_path / "out").read_text() == "one\ntwo\nth"


def test_a_waiting_read_returns_the_page_once_it_is_complete(proc: Process) -> None:
    out = proc.open_stream(page_size=8)
    out.write("one\n")
    out.flush()
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(proc.read(out.fd, wait=20.0)))
    waiting.start()

    out.write("two\nthree\n")
    out.flush()
    waiting.join()

    assert (found[0].text, found[0].eof, found[0].state) == ("one\ntwo\n", False, "open")
    out.end()


def test_a_waiting_read_returns_the_last_page_when_the_stream_ends(proc: Process) -> None:
    out = proc.open_stream()
    found: list[Any] = []
    waiting = threading.Thread(target=lambda: found.append(proc.read(out.fd, wait=20.0)))
    waiting.start()

    out.write("one\n")
    out.end(2)
    waiting.join()

    assert (found[0].text, found[0].eof, found[0].exit_code) == ("one\n", True, 2)


@pytest.mark.parametrize(
    ("part", "text"),
    [
        ({"start": 1}, "one\n"),
        ({"mode": "line", "start": 1}, "one\n"),
        ({"mode": "line", "start": 2, "count": 2}, "two\nthr"),
        ({"mode": "char", "start": 2, "count": 100}, "ne\ntwo\nthr"),
        ({"read_all": True}, "one\ntwo\nthr"),
    ],
)
def test_a_waiting_read_returns_the_available_text_at_its_timeout(
    proc: Process, part: Any, text: str
) -> None:
    with proc.open_stream(page_size=4) as out:
        out.write("one\ntwo\nthr")
        out.flush()

        found = proc.read(out.fd, **part, wait=0.05)

        assert (found.text, found.eof) == (text, False)


@pytest.mark.parametrize(
    "part", [{"start": 2}, {"mode": "line", "start": 1, "count": 2}, {"mode": "char", "count": 11}]
)
def test_a_read_of_a_complete_page_does_not_wait(proc: Process, part: Any) -> None:
    with proc.open_stream(page_size=4) as out:
        out.write("one\ntwo\nthr")
        out.flush()
        start = time.monotonic()

        proc.read(out.fd, **part, wait=30)

        assert time.monotonic() - start < stretched(5)


def test_waiting_too_long_for_a_page_raises_the_error_for_a_missing_page(proc: Process) -> None:
    with proc.open_stream() as out:
        with pytest.raises(PageOutOfRange):
            proc.read(out.fd, start=2, wait=0.05)
        with pytest.raises(PositionOutOfRange):
            proc.read(out.fd, mode="line", start=2, wait=0.05)


@pytest.mark.parametrize("wait", [-1, True, float("nan"), float("inf"), 2**60, "1", None])
def test_an_invalid_wait_is_refused(proc: Process, wait: Any) -> None:
    proc.create("x")

    with pytest.raises(InvalidArgument, match="wait"):
        proc.read("fd:1", wait=wait)
