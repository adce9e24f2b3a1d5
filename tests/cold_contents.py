"""What tests do with cold contents: have everything that is due move, read every way, and compare both sides.

Contents move here as soon as they may: `cold_after` is nothing, `cold_min` too.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from fdstore.client import Process, Store
from fdstore.store.cold import unneeded
from fdstore.store.cold.moving import move_due
from fdstore.store.keys import TreeKeys, content_keys
from fdstore.store.objects.object_store import MARKER
from fdstore.store.trees import ceilings
from fdstore.wire.operation import Operation
from tests.slices import lines_of, pages_of


def use_cold(store: Store, url: str, after: str = "0s", least: str = "0") -> None:
    """Have contents move to a place."""
    for name, value in (("cold", url), ("cold_after", after), ("cold_min", least)):
        store.run(ceilings.put(store.prefix, name, value))


def stay_cold(store: Store) -> None:
    """Have no more contents move, and none come back for a while."""
    store.run(ceilings.put(store.prefix, "cold_after", "none"))


def forget_reads(store: Store, content: str = "t/1") -> None:
    """Have a cold content not come back, however often it was read before."""
    tree = TreeKeys(store.prefix, content.partition("/")[0])
    _run(store, ("DEL", content_keys(tree, content).reads))


def turn_cold(store: Store) -> int:
    """Have the sweeper move what is due, and return how many contents moved."""
    return move_due(store).contents


def tidy(store: Store) -> None:
    """Have the sweeper delete the objects that no content needs, as if hours had passed since then."""
    trees = store.run(unneeded.trees_with_objects(store.prefix))
    for tree in trees:
        listed = _run(store, ("ZRANGE", tree.unneeded, 0, -1))
        for where in listed:
            _run(store, ("ZADD", tree.unneeded, "XX", 0, where))
    move_due(store)


def _run(store: Store, command: tuple[Any, ...]) -> Any:
    def send() -> Operation[Any]:
        [reply] = yield [command]
        return reply

    return store.run(send())


def cold_contents_of(store: Store, tree: str) -> dict[str, str]:
    """Return the cold contents of a tree, each with the name of its object."""
    keys = TreeKeys(store.prefix, tree)
    found = {}
    for content in map(bytes.decode, _run(store, ("SMEMBERS", keys.contents))):
        tier, where = _run(store, ("HMGET", content_keys(keys, content).record, "tier", "where"))
        if tier == b"cold":
            found[content] = where.decode()
    return found


def is_cold(store: Store, tree: str, content: str) -> bool:
    """Return whether the record of a content (`t/1`) says that it is cold."""
    return content in cold_contents_of(store, tree)


def objects_in(place: Path) -> list[Path]:
    """Return the files of the objects in a directory."""
    files = (path for path in place.rglob("*") if path.is_symlink() or path.is_file())
    return sorted(path for path in files if path.name != MARKER)


def garbage(store: Store, place: Path) -> set[str]:
    """Return the names of the objects in a directory that are of no content."""
    needed = {where for tree in store.trees() for where in cold_contents_of(store, tree.id).values()}
    return {path.name for path in objects_in(place)} - needed


def listed_for_deletion(store: Store) -> set[str]:
    """Return the names of the objects that a later sweep deletes."""
    trees = store.run(unneeded.trees_with_objects(store.prefix))
    return {where.decode() for tree in trees for where in _run(store, ("ZRANGE", tree.unneeded, 0, -1))}


def _read_until_back(store: Store) -> None:
    proc = store.process("t")
    for _ in range(4):
        proc.read("fd:1", read_all=True)
    move_due(store)


def _close(store: Store) -> None:
    store.process("t").close("fd:2")
    move_due(store)


def _end(store: Store) -> None:
    store.process("t").end()
    move_due(store)


def _drop(store: Store) -> None:
    store.drop_tree("t", kill=True)
    move_due(store)


WORK: dict[str, Callable[[Store], object]] = {
    "out": turn_cold,
    "back": _read_until_back,
    "close": _close,
    "end": _end,
    "drop": _drop,
}
"""What a process does while it is killed, on the process `t`."""


@dataclass
class Known:
    """A text and its page size, and every way to read it."""

    text: str
    page_size: int = 4000

    def check(self, proc: Process, fd: Any, folder: Path) -> None:
        """Read all of a descriptor in each mode, search, export and extract; compare with the text."""
        for check in READERS.values():
            check(self, proc, fd, folder)


def _read_all(known: Known, proc: Process, fd: Any, folder: Path) -> None:
    assert proc.read(fd, read_all=True).text == known.text


def _pages(known: Known, proc: Process, fd: Any, folder: Path) -> None:
    pages = pages_of(known.text, known.page_size)
    for number in sorted({1, len(pages), (len(pages) + 1) // 2}):
        found = proc.read(fd, start=number)
        assert (found.text, found.pages) == (pages[number - 1], len(pages))


def _lines(known: Known, proc: Process, fd: Any, folder: Path) -> None:
    lines = lines_of(known.text)
    for first in sorted({1, len(lines) // 2 + 1, max(1, len(lines) - 3)}):
        if lines:
            found = proc.read(fd, mode="line", start=first, count=20)
            assert found.text == "".join(lines[first - 1 : first + 19])


def _characters(known: Known, proc: Process, fd: Any, folder: Path) -> None:
    for first in sorted({1, len(known.text) // 3 + 1, len(known.text)}):
        if known.text:
            found = proc.read(fd, mode="char", start=first, count=777)
            assert found.text == known.text[first - 1 : first + 776]


def _bytes(known: Known, proc: Process, fd: Any, folder: Path) -> None:
    data = known.text.encode()
    for first in (0, len(data) // 2, max(0, len(data) - 5)):
        assert proc.read_bytes(fd, first, 1000) == data[first : first + 1000]
    with proc.open_bytes(fd) as file:
        file.seek(len(data) // 3)
        assert file.read() == data[len(data) // 3 :]


def _search(known: Known, proc: Process, fd: Any, folder: Path) -> None:
    lines = [line.removesuffix("\n") for line in lines_of(known.text)]
    expected = [number for number, line in enumerate(lines, 1) if "7" in line]
    found = proc.search(fd, "7", max_matches=5)
    assert (found.matches, [hit.line for hit in found.hits]) == (len(expected), expected[:5])


def _export(known: Known, proc: Process, fd: Any, folder: Path) -> None:
    target = folder / f"{os.getpid()}-{threading.get_ident()}.txt"
    proc.export(fd, target)
    assert target.read_bytes() == known.text.encode()
    target.unlink()


def _extract(known: Known, proc: Process, fd: Any, folder: Path) -> None:
    lines = lines_of(known.text)
    if lines:
        made = proc.extract(fd, mode="line", start=len(lines) // 2 + 1, count=7)
        half = len(lines) // 2
        assert proc.read(made.fd, read_all=True).text == "".join(lines[half : half + 7])
        proc.close(made.fd)


def _follow(known: Known, proc: Process, fd: Any, folder: Path) -> None:
    assert "".join(proc.follow(fd)) == known.text


READERS: dict[str, Callable[[Known, Process, Any, Path], None]] = {
    "read all": _read_all,
    "pages": _pages,
    "lines": _lines,
    "characters": _characters,
    "bytes": _bytes,
    "search": _search,
    "export": _export,
    "extract": _extract,
    "follow": _follow,
}
"""Every way to read."""


def long_text(lines: int, word: str = "line") -> str:
    """Return a text of about `lines` * 30 characters, every tenth line of which is not ASCII."""
    return "".join(
        f"{word} {number} {'ä漢' if number % 10 == 0 else 'with some words'} {number * 7919 % 1000}\n"
        for number in range(lines)
    )
