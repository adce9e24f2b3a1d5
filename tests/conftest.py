"""Checks of the store for tests of several folders.

    StoreModel      a hypothesis state machine: any sequence of calls gives the results of plain strings
    check_keys      recomputes every counter of the store from the stored keys

Both need only a client and a function that sends one command, so they run on fakes and real servers.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, NotFound
from fdstore.records import Slice
from fdstore.store import contents
from tests import children

Execute = Callable[..., Any]

ENDED = {"exited", "failed", "cancelled"}
PIECES = [
    "\n",
    "\n\n\n",
    "a",
    "line\n",
    "longer than a page ",
    "漢字\n",
    "\r\n",
    "\N{GRINNING FACE}",
    "\0",
    "\u2028",
]
texts = st.lists(st.sampled_from(PIECES) | st.text(max_size=3), max_size=12).map("".join)
some_numbers = st.integers(1, 12) | st.just(2**53)

# No deadline per example: the machine may be busy, and the bench measures time.
settings.register_profile("fdstore", deadline=None)
settings.load_profile("fdstore")

# A shell that starts the tests in the background has them ignore Ctrl-C, and whatever they start too;
# with a handler here it is as usual for the commands that are interrupted in tests.
signal.signal(signal.SIGINT, signal.default_int_handler)

# Whatever the tests start prints as it would on a user's machine.
os.environ.pop("PYTHONUNBUFFERED", None)


@pytest.fixture(autouse=True)
def children_end() -> Iterator[None]:
    """End the processes that the test left running, and fail if there were any."""
    yield
    problems = children.end_remaining_children()
    assert not problems, "\n".join(problems)


def lines_of(text: str) -> list[str]:
    return re.findall(r"[^\n]*\n|[^\n]+", text)


def pages_of(text: str, size: int) -> list[str]:
    pages = []
    while len(text) > size:
        end = text[:size].rfind("\n") + 1 or size
        pages.append(text[:end])
        text = text[end:]
    return [*pages, text]


def units_of(text: str, size: int, mode: str) -> list[str]:
    return {"page": lambda: pages_of(text, size), "line": lambda: lines_of(text), "char": lambda: list(text)}[
        mode
    ]()


def children_of(pid: int) -> list[int]:
    """Return the children of a single-threaded process, oldest first; empty if it has ended."""
    try:
        return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]
    except FileNotFoundError:
        return []


def is_running(pid: int) -> bool:
    """Return whether the process exists and has not ended."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return False


# --- what the store counts


def _hash(execute: Execute, key: str) -> dict[str, str]:
    flat = execute("HGETALL", key)
    return {flat[i].decode(): flat[i + 1].decode() for i in range(0, len(flat), 2)}


def _members(replies: list[bytes]) -> set[str]:
    return {reply.decode() for reply in replies}


def check_keys(execute: Execute, prefix: str = "fdstore") -> None:
    """Check that every counter, holder and total of every tree matches the stored keys, without leftovers."""
    keys = _members(execute("KEYS", "*"))
    for tree in sorted(key for key in keys if re.fullmatch(re.escape(prefix) + r":\{[^}]*\}", key)):
        _check_tree(execute, tree, {key for key in keys if key.startswith(tree)}, f"{prefix}:trees")


def _check_tree(execute: Execute, tree: str, keys: set[str], trees: str) -> None:
    counted = _hash(execute, tree)
    processes = _members(execute("ZRANGE", f"{tree}:processes", 0, -1))
    records = {process: _hash(execute, f"{tree}:{process}") for process in processes}
    tables = {process: _hash(execute, f"{tree}:{process}:fds") for process in processes}
    born = {key.removeprefix(f"{tree}:") for key in keys if re.fullmatch(r".*:fd:\d+", key)}
    stored = {key.replace(":fd:", "/") for key in born}

    assert execute("ZSCORE", trees, tree.partition("{")[2].rstrip("}")) is not None
    assert _members(execute("SMEMBERS", f"{tree}:contents")) == stored
    assert {content for table in tables.values() for content in table.values()} == stored
    assert int(counted["processes"]) == len(processes)
    assert int(counted["live"]) == sum(record["state"] not in ENDED for record in records.values())
    assert int(counted["fds"]) == len(stored)
    states = {
        content: execute("HGET", f"{tree}:{content.replace('/', ':fd:')}", "state") for content in stored
    }
    for process in processes:
        names = {fd.removeprefix("name:") for fd in tables[process] if fd.startswith("name:")}
        assert _members(execute("ZRANGE", f"{tree}:{process}:names", 0, -1)) == names
        numbers = _members(execute("SMEMBERS", f"{tree}:{process}:writes"))
        written = {f"{process}/{number}" for number in numbers}
        assert written == {
            c for c, state in states.items() if state == b"open" and c.startswith(f"{process}/")
        }
    size = 0
    for content in stored:
        record = f"{tree}:{content.replace('/', ':fd:')}"
        holders = {process for process, table in tables.items() if content in table.values()}
        assert _members(execute("SMEMBERS", f"{record}:holders")) == holders
        size += _check_content(execute, record)
    assert int(counted["bytes"]) == size
    parts = {
        f"{tree}:{name}{part}" for name in born for part in ("", ":pages", ":index", ":holders", ":events")
    }
    assert {key for key in keys if re.search(r":fd:\d+", key)} <= parts


def _check_content(execute: Execute, record: str) -> int:
    said = _hash(execute, record)
    for key in (record, f"{record}:pages", f"{record}:index", f"{record}:holders"):
        assert execute("PTTL", key) in (-1, -2)
    if said.get("kind") == "bytes":
        return _check_bytes(execute, record, said)
    pages = _hash(execute, f"{record}:pages")
    ordered = [pages[str(number)] for number in range(1, len(pages) + 1)]
    text = "".join(ordered)
    assert ordered == pages_of(text, int(said["page_size"]))
    assert int(said["chars"]) == len(text)
    assert int(said["bytes"]) == len(text.encode())
    assert int(said["lines"]) == len(lines_of(text))
    assert int(said["pages"]) == len(pages)
    assert execute("HLEN", f"{record}:index") == (len(pages) - 1) // 256 + 1
    return len(text.encode())


def _check_bytes(execute: Execute, record: str, said: dict[str, str]) -> int:
    size, count = int(said["page_size"]), int(said["pages"])
    pages = [execute("HGET", f"{record}:pages", number) for number in range(1, count + 1)]
    assert execute("HLEN", f"{record}:pages") == count == max(1, -(-int(said["bytes"]) // size))
    assert all(len(page) == size for page in pages[:-1])
    assert (said["chars"], said["lines"]) == ("0", "0")
    assert len(b"".join(pages)) == int(said["bytes"])
    assert execute("EXISTS", f"{record}:index") == 0
    return int(said["bytes"])


# --- what the store answers


def check_slice(found: Slice, text: str, size: int, mode: str, start: int, count: int) -> None:
    """Check that `found` is the slice of `text` that the contract specifies."""
    units = units_of(text, size, mode)
    piece = "".join(units[start - 1 : start - 1 + count])
    begin = len("".join(units[: start - 1]))
    end = begin + len(piece)
    first_line = text[:begin].count("\n") + 1

    assert found.text == piece
    assert (found.mode, found.start) == (mode, start)
    assert found.count == len(units[start - 1 : start - 1 + count])
    assert found.pages == len(pages_of(text, size))
    assert (found.total_lines, found.total_chars) == (len(lines_of(text)), len(text))
    assert found.chars == (f"{begin + 1}-{end}" if piece else "0-0")
    assert found.lines == (f"{first_line}-{first_line + len(lines_of(piece)) - 1}" if piece else "0-0")
    assert found.continued == (bool(piece) and begin > 0 and text[begin - 1] != "\n")
    assert found.truncated == (bool(piece) and end < len(text) and not piece.endswith("\n"))
    assert (found.state, found.eof) == ("sealed", end == len(text))
    assert found.page == (start if mode == "page" and found.count == 1 else None)


class StoreModel(RuleBasedStateMachine):
    """Calls in any order on the processes of one tree, compared with a model of dicts and strings.

    A subclass sets the store, the function that sends a command, and the directory for files.
    """

    store: Store
    execute: Execute
    folder: Path

    def __init__(self) -> None:
        super().__init__()
        self.execute("FLUSHALL")
        self.clients: dict[str, list[Process]] = {"t": [self.store.process("t")]}
        self.tables: dict[str, dict[str, tuple[str, int]]] = {"t": {}}
        self.next_fd = {"t": 1}
        self.children = {"t": 0}

    # what the rules choose from

    def draw_process(self, data: st.DataObject) -> Process:
        return self.draw_client(data, data.draw(st.sampled_from(sorted(self.clients)), "process"))

    def draw_client(self, data: st.DataObject, process: str) -> Process:
        clients = self.clients[process]
        return clients[data.draw(st.integers(0, len(clients) - 1), "client")]

    def draw_descriptor(self, data: st.DataObject) -> tuple[Process, str, str, int]:
        owners = sorted(process for process in self.clients if self.tables[process])
        process = data.draw(st.sampled_from(owners), "process")
        fd = data.draw(st.sampled_from(sorted(self.tables[process])), "fd")
        return self.draw_client(data, process), fd, *self.tables[process][fd]

    def draw_part(self, data: st.DataObject, text: str, size: int) -> tuple[Any, int, int]:
        mode = data.draw(st.sampled_from(["page", "line", "char"]), "mode")
        start = data.draw(st.integers(1, max(1, len(units_of(text, size, mode)))), "start")
        return mode, start, data.draw(some_numbers, "count")

    def has_descriptors(self) -> bool:
        return any(self.tables[process] for process in self.clients)

    # making

    @rule(data=st.data(), text=texts, size=st.integers(1, 9) | st.just(4000))
    def create(self, data: st.DataObject, text: str, size: int) -> None:
        proc = self.draw_process(data)

        made = proc.create(text, page_size=size)

        assert made.fd == f"fd:{self.next_fd[proc.id]}"
        assert (made.chars, made.lines) == (len(text), len(lines_of(text)))
        self.tables[proc.id][made.fd] = (text, size)
        self.next_fd[proc.id] += 1

    @rule(data=st.data(), text=texts, name=st.sampled_from(["ref:a", "ref:b"]))
    def create_with_passage(self, data: st.DataObject, text: str, name: str) -> None:
        proc = self.draw_process(data)

        made = self.store.run(contents.create(proc.handle, text, "text", 7, name=name))

        assert made.fd == name
        self.tables[proc.id][name] = (text, 7)
        self.next_fd[proc.id] += 1

    @precondition(has_descriptors)
    @rule(data=st.data())
    def extract(self, data: st.DataObject) -> None:
        proc, fd, text, size = self.draw_descriptor(data)
        mode, start, count = self.draw_part(data, text, size)

        made = proc.extract(fd, mode=mode, start=start, count=count)

        assert made.fd == f"fd:{self.next_fd[proc.id]}"
        piece = "".join(units_of(text, size, mode)[start - 1 : start - 1 + count])
        self.tables[proc.id][made.fd] = (piece, size)
        self.next_fd[proc.id] += 1

    # reading

    @precondition(has_descriptors)
    @rule(data=st.data())
    def read(self, data: st.DataObject) -> None:
        proc, fd, text, size = self.draw_descriptor(data)
        mode, start, count = self.draw_part(data, text, size)

        found = proc.read(fd, mode=mode, start=start, count=count)

        check_slice(found, text, size, mode, start, count)

    @precondition(has_descriptors)
    @rule(data=st.data())
    def read_all(self, data: st.DataObject) -> None:
        proc, fd, text, _ = self.draw_descriptor(data)

        found = proc.read(fd, read_all=True)

        assert (found.text, found.page, found.eof) == (text, "all", True)

    @precondition(has_descriptors)
    @rule(data=st.data())
    def export(self, data: st.DataObject) -> None:
        proc, fd, text, _ = self.draw_descriptor(data)

        done = proc.export(fd, self.folder / "out.txt")

        assert (self.folder / "out.txt").read_bytes() == text.encode()
        assert (done.char_count, done.size_bytes) == (len(text), len(text.encode()))

    @precondition(has_descriptors)
    @rule(data=st.data(), wanted=st.sampled_from(["a", "line", "漢", "page ", "\r", "zz"]))
    def search(self, data: st.DataObject, wanted: str) -> None:
        proc, fd, text, _ = self.draw_descriptor(data)
        lines = [line.removesuffix("\n") for line in lines_of(text)]
        expected = [(number, line) for number, line in enumerate(lines, 1) if wanted in line]

        found = proc.search(fd, wanted, max_matches=3)

        assert (found.matches, found.lines_searched) == (len(expected), len(lines))
        assert [(hit.line, hit.text) for hit in found.hits] == expected[:3]
        for hit in found.hits:
            first, last = map(int, hit.chars.split("-"))
            assert text[first - 1 : last] == wanted

    @rule(data=st.data(), beyond=st.integers(1, 3))
    def read_out_of_range(self, data: st.DataObject, beyond: int) -> None:
        proc = self.draw_process(data)

        with pytest.raises(NotFound) as caught:
            proc.read(self.next_fd[proc.id] + beyond)

        assert set(caught.value.known) == set(self.tables[proc.id])

    # sharing

    @precondition(lambda self: len(self.tables) < 8)
    @rule(data=st.data())
    def child(self, data: st.DataObject) -> None:
        proc = self.draw_process(data)
        table = self.tables[proc.id]
        share = data.draw(st.lists(st.sampled_from(sorted(table)), unique=True)) if table else []

        self.born(proc.id, proc.child(share), {fd: table[fd] for fd in share})

    @precondition(lambda self: len(self.tables) < 8)
    @rule(data=st.data())
    def fork(self, data: st.DataObject) -> None:
        proc = self.draw_process(data)

        self.born(proc.id, proc.fork(), dict(self.tables[proc.id]))

    def born(self, parent: str, child: Process, table: dict[str, tuple[str, int]]) -> None:
        self.children[parent] += 1
        assert child.id == f"{parent}.{self.children[parent]}"
        self.clients[child.id] = [child]
        self.tables[child.id] = table
        self.next_fd[child.id] = self.next_fd[parent]
        self.children[child.id] = 0

    @rule(data=st.data())
    def reopen(self, data: st.DataObject) -> None:
        proc = self.draw_process(data)

        self.clients[proc.id].append(self.store.process(proc.id))

    # dropping

    @precondition(has_descriptors)
    @rule(data=st.data())
    def close(self, data: st.DataObject) -> None:
        proc, fd, _, _ = self.draw_descriptor(data)

        proc.close(fd)

        del self.tables[proc.id][fd]

    @precondition(lambda self: len(self.clients) > 1)
    @rule(data=st.data())
    def end(self, data: st.DataObject) -> None:
        proc = self.draw_process(data)

        proc.end()
        proc.end()

        with pytest.raises(FDStoreError, match="has ended"):
            proc.create("too late")
        del self.clients[proc.id]
        self.tables[proc.id] = {}

    # what holds after every step

    @invariant()
    def counters_match_stored_keys(self) -> None:
        check_keys(self.execute)

    @invariant()
    def tables_match_the_model(self) -> None:
        for process, clients in self.clients.items():
            found = {d.fd: (d.chars, d.page_size) for d in clients[0].list()}
            assert found == {fd: (len(text), size) for fd, (text, size) in self.tables[process].items()}


@pytest.fixture
def assert_counted() -> Callable[..., None]:
    """`assert_counted(execute)` fails unless every counter matches the stored keys."""
    return check_keys


@pytest.fixture
def store_model() -> type[StoreModel]:
    return StoreModel


@pytest.fixture
def assert_slice() -> Callable[..., None]:
    """`assert_slice(found, text, page_size, mode, start, count)`."""
    return check_slice
