"""A Redis with default settings whose log was truncated: histories, cuts, and what readers may see then.

Redis logs the writes of a script as `MULTI ... EXEC`. If the log ends inside one, a server with
`aof-load-truncated yes` (the default) drops the incomplete command and keeps the others. Later writes are
appended after them, and at the second start the remaining part is executed with those:

    first life     MULTI HSET HSET | HSET EXEC        torn at |
    second life    MULTI HSET HSET   MULTI HSET EXEC  the partial script is not in memory
    third life     all of it is executed

So the partial script is invisible in the second life, and takes effect in the third.
"""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, NotFound, StoreLostData, StreamBroken
from fdstore.local.redis_server import PrivateServer
from fdstore.model.records import Descriptor, TreeRecord
from fdstore.store.keys import ProcessKeys, TreeKeys
from fdstore.store.processes import process_records
from tests.slices import lines_of, pages_of

STOCK = {"appendonly": "yes", "appendfsync": "always", "aof-load-truncated": "yes"}
TYPED = (StoreLostData, StreamBroken, NotFound)
"""The errors that a reader may get for what is not whole."""

WRONG = (AssertionError, FDStoreError, LookupError, TypeError, ValueError)
"""The errors that a reader may not get: another one, metadata that contradicts the text, no sense at all."""

Texts = dict[str, dict[str, str]]
"""Process -> descriptor -> its text."""


class Log:
    """The append-only file in a directory."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def path(self) -> Path:
        """The file that Redis appends to now: Redis 7 has a folder, 6.2 a single file."""
        parts = sorted(self.directory.glob("appendonlydir/*.incr.aof"))
        return parts[-1] if parts else self.directory / "appendonly.aof"

    @property
    def size(self) -> int:
        return self.path.stat().st_size

    def replace_by(self, other: Log) -> None:
        for path in self.directory.glob("appendonly*"):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        self.directory.mkdir(exist_ok=True)
        for path in other.directory.glob("appendonly*"):
            copy = shutil.copytree if path.is_dir() else shutil.copy
            copy(path, self.directory / path.name)


class TornLogServer:
    """A server that is reset for each cut to a log that ends there."""

    def __init__(self, server: PrivateServer, saved: Path) -> None:
        self.server = server
        self.log = Log(server.directory)
        self.saved = Log(saved)

    def begin(self) -> None:
        """Start the server without data."""
        self.server.kill()
        self.log.replace_by(Log(Path("/nowhere")))
        self.server.start()

    def save(self) -> None:
        """Save the current log for all cuts."""
        self.saved.replace_by(self.log)

    def put_back(self, size: int) -> None:
        """Start the server on the saved log, truncated to `size` bytes."""
        self.server.kill()
        self.log.replace_by(self.saved)
        with self.log.path.open("r+b") as log:
            log.truncate(size)
        self.server.start()

    def restart(self) -> None:
        self.server.kill()
        self.server.start()


def commands_in(data: bytes) -> Iterator[tuple[int, int, list[bytes]]]:
    """Yield the start, end and words of each command in a piece of a log."""
    at = 0
    while at < len(data):
        start, words = at, []
        count, _, _ = data[at + 1 :].partition(b"\r\n")
        at += len(count) + 3
        for _ in range(int(count)):
            length, _, _ = data[at + 1 :].partition(b"\r\n")
            at += len(length) + 3
            words.append(data[at : at + int(length)])
            at += int(length) + 2
        yield start, at, words


def command_midpoints(log: Log, start: int) -> list[int]:
    """Return the middle of each command that was written since `start`."""
    data = log.path.read_bytes()[start:]
    return [start + (first + last) // 2 for first, last, _ in commands_in(data)]


def bytes_of(log: Log, start: int) -> list[int]:
    """Return every offset written since `start`; of long, uniform commands only a hundred."""
    data = log.path.read_bytes()[start:]
    return [
        start + at
        for first, last, _ in commands_in(data)
        for at in range(first + 1, last + 1, max(1, (last - first) // 100))
    ]


def texts_of(store: Store, tree: str) -> Texts:
    """Return every text of every process of a tree; all must be complete."""
    found: Texts = {}
    for member in store.tree(tree).members:
        process = store.process(member.id)
        found[member.id] = {d.fd: text_of(process, d) for d in process.list()}
    return found


def text_of(process: Process, d: Descriptor) -> str:
    """Return a text; bytes as the characters of the same numbers after the word."""
    if d.kind == "bytes":
        return "bytes " + process.read_bytes(d.fd).decode("latin-1")
    return process.read(d.fd, read_all=True).text


def facts_of(store: Store, tree: str) -> dict[str, tuple[Any, ...]]:
    """Return record and journal, without times, of every process of a tree."""
    record: TreeRecord = store.tree(tree)
    return {member.id: fact_of(store, member.id) for member in record.members}


def fact_of(store: Store, process: str) -> tuple[Any, ...]:
    found = store.run(process_records.record(store.prefix, process))
    keys = ProcessKeys(TreeKeys(store.prefix, process.partition(".")[0]), process)
    [journal] = store.run(read_reply(("LRANGE", keys.journal, 0, -1)))
    said = found.state, found.program, found.parent, found.kind, found.outputs, found.exit_code, found.attempt
    journal = [re.sub(rb',"at_ms":\d+}$', b"}", record) for record in journal]
    # fields that launching sets may exist on an open process already; launching replaces them
    return *said, () if found.state == "open" else tuple(journal)


def read_reply(command: tuple[Any, ...]) -> Any:
    return (yield [command])


def read(store: Store, process: str, fd: str) -> str:
    """Return the text of a descriptor after checking that every way to read it and the metadata agree. Raises
    the errors of a reader."""
    warm = store.process(process)
    if (d := warm.stat(fd)).kind == "bytes":
        data = warm.read_bytes(fd)
        assert (d.bytes, d.chars, d.lines, d.pages) == (len(data), 0, 0, -(-len(data) // d.page_size)), d
        assert store.process(process).read_bytes(fd, 5, 30) == data[5:35]
        return text_of(warm, d)
    whole = warm.read(fd, read_all=True)
    d = warm.stat(fd)
    text, size = whole.text, d.page_size
    pages, lines = pages_of(text, size), lines_of(text)
    assert (d.chars, d.bytes, d.lines, d.pages) == (len(text), len(text.encode()), len(lines), len(pages)), d
    numbers = sorted({1, 2, len(pages) // 2, len(pages) - 1, len(pages)} & set(range(1, len(pages) + 1)))
    for number in numbers:
        cold = store.process(process)
        for reader in (cold, cold, warm):
            found = reader.read(fd, start=number)
            begin = len("".join(pages[: number - 1]))
            assert found.text == pages[number - 1], (fd, number)
            assert found.chars == (f"{begin + 1}-{begin + len(found.text)}" if found.text else "0-0")
    for number in sorted({1, len(lines) // 2, len(lines)} & set(range(1, len(lines) + 1))):
        assert store.process(process).read(fd, mode="line", start=number).text == lines[number - 1]
    if text:
        assert store.process(process).read(fd, mode="char", start=len(text)).text == text[-1]
        assert store.process(process).read(fd, start=1, mode="page", count=len(pages)).text == text
        assert store.process(process).search(fd, "$", max_matches=1).lines_searched == len(lines)
    piece = store.process(process).read(fd, mode="page", start=len(pages))
    assert piece.text == pages[-1]
    if d.state != "open":
        assert "".join(store.process(process).follow(fd)) == text or d.state == "broken"
    assert next(each for each in store.process(process).list() if each.fd == fd).chars == len(text)
    return text
