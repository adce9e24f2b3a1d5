"""Round trips of each operation of the client, of tools, and of each step of an agent.

Each is counted twice: "first" with a client that has just connected to a server that has just started, and so
knows no script, and "again" with the same client. What is stored before was stored by another client.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator
from io import BytesIO
from pathlib import Path
from typing import Any

import redis

from fdstore.bench.agent_trips import LONG, agent_steps, long, once, short
from fdstore.bench.counting import Trips, counting_store
from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.bench.measuring import BenchRow, at_most, row
from fdstore.bench.stage import BenchStage
from fdstore.client import Process, StreamWriter
from fdstore.store.processes import waiting
from fdstore.store.streams import streams
from fdstore.toolset._sync import Toolset

MOST = 4
"""The most round trips of an operation, or of a turn of an agent, beside those with a bar of their own."""

LARGER = {
    "create, 3 MB": 6,
    "launch an agent": 5,
    "from the claim after a child has ended to the next question": 5,
    "from the claim of a child in the background to its first question": 4,
}
"""The bars of the others."""

Work = Callable[[Process], object]
Prepare = Callable[[Process, int], Work]
"""Prepare the `number`-th run of an operation with another client, and return the operation."""


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    for found in measure(stage.url):
        bar = at_most(LARGER.get(found.case, MOST), "trips")
        yield row(f"{found.case}: first", bar, len(found.first))
        yield row(f"{found.case}: again", bar, len(found.again))


def measure(url: str) -> Iterator[Trips]:
    """Count the round trips of all operations on the server at `url`, which nothing else uses."""
    yield from connecting(url)
    with redis.Redis.from_url(url) as plain:
        for case, prepare in CASES.items():
            yield counted(url, plain, case, prepare)
    yield from agent_steps(url)


def connecting(url: str) -> Iterator[Trips]:
    """Count what a program waits for before its first operation."""
    counts: dict[str, list[list[str]]] = {"connect": [], "open a new process": [], "open a process": []}
    for number in range(2):
        if not number:
            with redis.Redis.from_url(url) as plain:
                plain.script_flush()  # as if the server had just started
        store, runner = counting_store(url)
        with store:
            counts["connect"].append(runner.taken())
            store.process(f"new{number}")
            counts["open a new process"].append(runner.taken())
            store.process(f"new{number}")
            counts["open a process"].append(runner.taken())
            store.drop_tree(f"new{number}")
    for case, (first, again) in counts.items():
        yield Trips(case, first, again)


def counted(url: str, plain: redis.Redis, case: str, prepare: Prepare) -> Trips:
    """Count the first and the second run of an operation."""
    counts = []
    with counting_store(url)[0] as other:
        maker = other.process("trips")
        works = [prepare(maker, number) for number in range(2)]
        plain.script_flush()
        store, runner = counting_store(url)
        with store:
            proc = store.process("trips")
            runner.taken()
            for work in works:
                ready = work(proc)
                if callable(ready):  # it needed something of this client
                    runner.taken()
                    ready = ready()
                counts.append(runner.taken())
                if isinstance(ready, StreamWriter):
                    ready.end()
                    runner.taken()
        maker.end()
        drop_with_numbers(other, "trips", kill=True)
    return Trips(case, *counts)


# --- what is counted


def on_text(work: Callable[[Process, str], object]) -> Prepare:
    """Return the preparation of work on one descriptor, which a second run knows."""
    made: list[str] = []

    def prepare(maker: Process, number: int) -> Work:
        if not number:
            made[:] = [maker.create(LONG).fd]
        return lambda proc: work(proc, made[0])

    return prepare


def on_name(work: Callable[[Process, str], object]) -> Prepare:
    def prepare(maker: Process, number: int) -> Work:
        maker.put(f"name{number}", LONG)
        return lambda proc: work(proc, f"name{number}")

    return prepare


def alone(work: Callable[[Process], object]) -> Prepare:
    """Return the preparation of work that needs nothing."""
    return lambda maker, number: work


def with_tools(call: Callable[[Toolset, int], object], **options: Any) -> Prepare:
    """Return the preparation of a call of a `Toolset`; there are fd:1 and fd:2."""

    def prepare(maker: Process, number: int) -> Work:
        maker.create(LONG)

        def work(proc: Process) -> object:
            tools = Toolset(proc, python=[short, long, once], **options)
            return lambda: call(tools, number)

        return work

    return prepare


def _export(proc: Process, fd: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        proc.export(fd, Path(folder) / "out.txt")


def _on_stream(work: Callable[[StreamWriter], object]) -> Prepare:
    def prepare(maker: Process, number: int) -> Work:
        def begin(proc: Process) -> object:
            out = proc.open_stream()
            return lambda: work(out)

        return begin

    return prepare


def _write(out: StreamWriter, text: str) -> StreamWriter:
    out.write(text)
    out.flush()
    return out


def _follow(proc: Process, fd: str) -> None:
    next(iter(proc.follow(fd)))


def _wait_for_child(maker: Process, number: int) -> Work:
    child = maker.child()
    child.end()
    return lambda proc: proc.store.run(waiting.wait_until_ended(proc.store.prefix, [child.id], 1.0))


def _close(maker: Process, number: int) -> Work:
    fd = maker.create(LONG).fd
    return lambda proc: proc.close(fd)


def _end(maker: Process, number: int) -> Work:
    child = maker.child().id

    def work(proc: Process) -> object:
        own = proc.store.process(child)
        return own.end

    return work


CASES: dict[str, Prepare] = {
    "create, 2 KB": alone(lambda proc: proc.create(LONG[:2000])),
    "create, 100 KB": alone(lambda proc: proc.create(LONG)),
    "create, 3 MB": alone(lambda proc: proc.create(LONG * 30)),
    "create, 100 KB of bytes": alone(lambda proc: proc.create(LONG.encode())),
    "ingest, 100 KB": alone(lambda proc: proc.ingest(BytesIO(LONG.encode()), "file")),
    "put, 2 KB": on_name(lambda proc, name: proc.put(name, LONG[:2000])),
    "read a page": on_text(lambda proc, fd: proc.read(fd, start=2)),
    "read lines": on_text(lambda proc, fd: proc.read(f"{fd}#L100-120")),
    "read characters": on_text(lambda proc, fd: proc.read(f"{fd}#C9000-9100")),
    "read all, 100 KB": on_text(lambda proc, fd: proc.read(fd, read_all=True)),
    "read a page through a name": on_name(lambda proc, name: proc.read(f"name:{name}", start=2)),
    "read_bytes, 1 KB": on_text(lambda proc, fd: proc.read_bytes(fd, 9000, 1000)),
    "search, 100 KB": on_text(lambda proc, fd: proc.search(fd, "no such line")),
    "extract a page": on_text(lambda proc, fd: proc.extract(fd, start=2)),
    "export, 100 KB": on_text(_export),
    "stat": on_text(lambda proc, fd: proc.stat(fd)),
    "find": on_name(lambda proc, name: proc.find(name)),
    "list": on_text(lambda proc, fd: proc.list()),
    "list names": on_name(lambda proc, name: proc.list(prefix="")),
    "rename": on_name(lambda proc, name: proc.rename(name, f"new {name}")),
    "close": _close,
    "child": on_text(lambda proc, fd: proc.child(share=[fd])),
    "fork": on_text(lambda proc, fd: proc.fork()),
    "end a process": _end,
    "wait for a process that has ended": _wait_for_child,
    "open a stream": alone(lambda proc: proc.store.run(streams.open_stream(proc.handle, "stream"))),
    "write to a stream and flush, 100 bytes": _on_stream(lambda out: _write(out, LONG[:100])),
    "write to a stream and flush, 50 KB": _on_stream(lambda out: _write(out, LONG[:50_000])),
    "end a stream": _on_stream(lambda out: out.end()),
    "follow, to the first text": on_text(_follow),
    "call of read_fd": with_tools(lambda tools, n: tools.call("read_fd", {"fd": 1, "start": 2}, f"c{n}")),
    "call with a short result": with_tools(lambda tools, n: tools.call("short", {"words": "a"})),
    "call with a short result and an id": with_tools(
        lambda tools, n: tools.call("short", {"words": "a"}, f"c{n}")
    ),
    "call with a long result": with_tools(lambda tools, n: tools.call("long", {"words": "a"})),
    "call with a long result and an id": with_tools(
        lambda tools, n: tools.call("long", {"words": "a"}, f"c{n}")
    ),
    "call with a long result and an id, metered": with_tools(
        lambda tools, n: tools.call("long", {"words": "a"}, f"c{n}"), meter="a session"
    ),
    "call of a tool that runs once, with a long result and an id": with_tools(
        lambda tools, n: tools.call("once", {"words": "a"}, f"c{n}")
    ),
    "call of close_fd with an id": with_tools(
        lambda tools, n: tools.call("close_fd", {"fd": n + 1}, f"c{n}"), enabled=["close_fd"]
    ),
    "call of write_fd with an id": with_tools(
        lambda tools, n: tools.call("write_fd", {"data": "a note"}, f"c{n}"), enabled=["write_fd"]
    ),
    "wrap a long output with an id": with_tools(lambda tools, n: tools.wrap(LONG, "grep", f"c{n}")),
    "offload a long output with an id": with_tools(lambda tools, n: tools.offload(LONG, "grep", f"c{n}")),
}
"""Each operation."""
