"""Writers of streams that are interrupted: by an exception at any line, a signal handler, an end, a fork."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any

import pytest

import fdstore.aio
from fdstore.aio import Process as AsyncProcess
from fdstore.client import Process
from fdstore.errors import FDStoreError, InvalidArgument, StreamClosed, WrongEventLoop
from tests.children import Child
from tests.waiting import PATIENCE_S

WRITERS = tuple(
    f"/fdstore/{name}.py"
    for name in ("client/_sync/writer", "client/write_buffer", "store/streams/streams", "text/growth")
)
PIECES: dict[str, list[Any]] = {
    "text": ["".join(f"line {number}\n" for number in range(2000)), "ö", "x" * 9000],
    "bytes": [b"\0" * 70_000, b"one", bytes(range(256)) * 300],
}


@contextmanager
def interrupted_at(number: int) -> Iterator[list[int]]:
    """Raise KeyboardInterrupt at this line of a writer, counted from the begin of the block. Yields how many
    lines are left."""
    left = [number]

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        if not frame.f_code.co_filename.endswith(WRITERS):
            return None
        left[0] -= event == "line"
        if event == "line" and left[0] == 0:
            raise KeyboardInterrupt
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        yield left
    finally:
        sys.settrace(before)


def followed(proc: Process, fd: str, kind: str) -> Any:
    """Return what followers of a stream get until it ends or breaks."""
    pieces: list[Any] = []
    with suppress(FDStoreError):
        pieces += proc.follow_bytes(fd) if kind == "bytes" else proc.follow(fd)
    return type(PIECES[kind][0])().join(pieces)


@pytest.mark.parametrize("kind", PIECES)
def test_an_interrupt_at_any_line_of_a_flush_loses_and_doubles_nothing(proc: Process, kind: str) -> None:
    whole = type(PIECES[kind][0])().join(PIECES[kind])
    line, is_reached = 0, True
    while is_reached:
        line += 2
        out = proc.open_stream()
        for piece in PIECES[kind]:
            out.write(piece)
        with suppress(KeyboardInterrupt), interrupted_at(line) as left:
            out.flush()
        is_reached = left[0] <= 0
        out.end()
        assert followed(proc, out.fd, kind) == whole
        proc.close(out.fd)
    assert line > 20


@pytest.mark.parametrize("kind", PIECES)
def test_an_interrupt_at_any_line_of_a_block_leaves_the_text_up_to_there(proc: Process, kind: str) -> None:
    whole = type(PIECES[kind][0])().join(PIECES[kind])
    line, is_reached = 0, True
    while is_reached:
        line += 3
        out = proc.open_stream()
        with suppress(KeyboardInterrupt), interrupted_at(line) as left, out:
            for piece in PIECES[kind]:
                out.write(piece)
        is_reached = left[0] <= 0
        out.fail("the end was interrupted too")  # does nothing after an end
        found = followed(proc, out.fd, kind)
        proc.close(out.fd)
        assert whole.startswith(found)
        assert is_reached or found == whole
    assert line > 50


def test_what_tasks_write_while_a_stream_ends_is_stored_or_refused(awaited: Callable[..., Any]) -> None:
    async def work(proc: AsyncProcess) -> tuple[str, str]:
        out = await proc.open_stream()
        taken = ["first\n"]
        await out.write(taken[0])
        ending = asyncio.create_task(out.end())
        refused = None
        while refused is None:
            await asyncio.sleep(0)
            try:
                await out.write("late\n")
                taken.append("late\n")
            except StreamClosed as error:
                refused = error
        await ending
        return "".join(taken), (await proc.read(out.fd)).text

    taken, found = awaited(work)

    assert found == taken


def test_what_threads_write_while_a_stream_ends_is_stored_or_refused(proc: Process) -> None:
    for _ in range(20):
        out = proc.open_stream()
        out.write("first\n")
        taken, begun = ["first\n"], threading.Event()

        def write(taken: list[str] = taken, begun: threading.Event = begun, out: Any = out) -> None:
            with suppress(StreamClosed):
                for number in range(100_000):
                    out.write(f"{number}\n")
                    taken.append(f"{number}\n")
                    begun.set()

        writing = threading.Thread(target=write)
        writing.start()
        assert begun.wait(PATIENCE_S)
        out.end()
        writing.join(PATIENCE_S)
        assert followed(proc, out.fd, "text") == "".join(taken)


HANDLER = """
import signal, sys, fdstore
proc = fdstore.connect(sys.argv[1]).process("triage")
out = proc.open_stream()

def on_term(*_):
    out.{ends}
    sys.exit(3)

signal.signal(signal.SIGTERM, on_term)
print(out.fd, flush=True)
while True:
    out.write("a line\\n" * 100)
    out.flush()
"""


@pytest.mark.parametrize("ends", ["fail('terminated')", "end()"])
def test_a_signal_handler_ends_a_stream_that_is_being_written(
    redis_url: str, proc: Process, ends: str
) -> None:
    for _ in range(5):
        command = [sys.executable, "-c", HANDLER.format(ends=ends), redis_url]
        with Child(command, stdout=subprocess.PIPE, text=True) as child:
            assert child.stdout is not None
            fd = child.stdout.readline().strip()
            followed_some = next(iter(proc.follow(fd)))
            os.kill(child.pid, signal.SIGTERM)
            assert child.wait(60) == 3
        d = proc.stat(fd)
        assert d.state == ("sealed" if ends == "end()" else "broken")
        assert set(followed(proc, fd, "text").split("\n")) == {"a line", ""}
        assert followed_some


FORKED = """
import os, sys, fdstore
proc = fdstore.connect(sys.argv[1]).process("triage")
out = proc.open_stream()
out.write("parent\\n")
out.flush()
if (child := os.fork()) == 0:
    said = 0
    for work in (lambda: out.write("child\\n"), out.flush, out.end, lambda: out.fail("child")):
        try:
            work()
        except fdstore.errors.Fenced:
            said += 1
    os._exit(said)
_, status = os.waitpid(child, 0)
out.write("more\\n")
out.end()
print(os.waitstatus_to_exitcode(status), proc.read(out.fd).text.split())
"""


def test_a_fork_does_not_write_the_stream_of_its_parent(redis_url: str) -> None:
    for _ in range(3):
        with Child([sys.executable, "-c", FORKED, redis_url], stdout=subprocess.PIPE, text=True) as child:
            printed, _ = child.communicate(timeout=PATIENCE_S)
        assert printed == "4 ['parent', 'more']\n"


@pytest.mark.parametrize("end", [lambda out: out.end(), lambda out: out.fail("why"), lambda out: out.flush()])
def test_an_end_in_another_event_loop_says_so(
    redis_url: str, end: Callable[[Any], Any], recwarn: pytest.WarningsRecorder
) -> None:
    async def begin() -> Any:
        store = await fdstore.aio.connect(redis_url)
        return store, await (await store.process("triage")).open_stream()

    async def in_another(out: Any) -> None:
        for _ in range(2):
            with pytest.raises(WrongEventLoop):
                await end(out)

    loop = asyncio.new_event_loop()
    store, out = loop.run_until_complete(begin())
    asyncio.run(in_another(out))
    loop.run_until_complete(out.write("text\n"))
    loop.run_until_complete(out.end())
    loop.run_until_complete(store.close())
    loop.close()

    with fdstore.connect(redis_url) as blocking:
        assert blocking.process("triage").read(out.fd).text == "text\n"


@pytest.mark.parametrize("chain", ["\ud800", None, [], 1])
def test_exit_codes_of_a_chain_are_a_text(proc: Process, chain: Any) -> None:
    with proc.open_stream() as out, pytest.raises(InvalidArgument):
        out.end(chain=chain)

    assert proc.stat(out.fd).state == "sealed"
