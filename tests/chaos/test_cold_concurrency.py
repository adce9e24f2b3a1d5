"""Readers of every kind, writers and two sweepers at once: no reader ever gets another text."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import fdstore
from fdstore.client import Store
from fdstore.errors import NotFound
from fdstore.integrations.fsspec import FdstoreFileSystem
from fdstore.local.redis_server import PrivateServer
from tests import cold_contents
from tests.chaos.conftest import Faults
from tests.cold_contents import READERS, Known, long_text
from tests.waiting import concurrently

ROUNDS = 25
TEXTS = [Known(long_text(150 * n, f"text{n}"), [40, 4000, 1000][n % 3]) for n in range(1, 7)]


def read_all_ways(store: Store, name: str, rng: random.Random, folder: Path) -> None:
    """Read the shared texts in random ways."""
    proc = store.process(name)
    for _ in range(ROUNDS):
        number = rng.randrange(len(TEXTS))
        READERS[rng.choice(sorted(READERS))](TEXTS[number], proc, f"fd:{number + 1}", folder)


def fork_and_end(store: Store, rng: random.Random, folder: Path) -> None:
    """Fork, read in the fork, and end it."""
    proc = store.process("t")
    for _ in range(ROUNDS // 5):
        twin = proc.fork()
        number = rng.randrange(len(TEXTS))
        assert twin.read(f"fd:{number + 1}", read_all=True).text == TEXTS[number].text
        twin.end()


def replace_name(store: Store, rng: random.Random, folder: Path) -> None:
    """Put a name again and again; what it names is one of the texts, whole."""
    proc = store.process("t.1")
    for _ in range(ROUNDS):
        known = rng.choice(TEXTS)
        proc.put("plan", known.text)
        assert proc.read("name:plan", read_all=True).text == known.text


def read_name(store: Store, rng: random.Random, folder: Path) -> None:
    """Read a name that is replaced meanwhile: one of the texts, whole, never an error."""
    proc, possible = store.process("t.1"), {known.text for known in TEXTS}
    for _ in range(ROUNDS):
        assert proc.read("name:plan", read_all=True).text in possible


def let_go(store: Store, rng: random.Random, folder: Path) -> None:
    """Make contents whose last holder leaves while they move."""
    proc = store.process("t.2")
    for _ in range(ROUNDS):
        known = rng.choice(TEXTS)
        made = proc.create(known.text, page_size=known.page_size)
        if rng.random() < 0.5:
            assert proc.read(made.fd, read_all=True).text == known.text
        proc.close(made.fd)
        with pytest.raises(NotFound):
            proc.read(made.fd)


def sweep(store: Store, rng: random.Random, folder: Path) -> None:
    for _ in range(ROUNDS // 2):
        cold_contents.turn_cold(store)
        cold_contents.tidy(store)


def read_files(url: str, rng: random.Random) -> None:
    """Read as files of fsspec."""
    filesystem = FdstoreFileSystem(url=url, skip_instance_cache=True)
    try:
        for _ in range(ROUNDS // 2):
            number = rng.randrange(len(TEXTS))
            data = TEXTS[number].text.encode()
            with filesystem.open(f"t/fd:{number + 1}", "rb") as file:
                start = rng.randrange(len(data))
                file.seek(start)
                assert file.read(500) == data[start : start + 500]
    finally:
        filesystem.close()


@pytest.mark.thorough("many reads and moves, for a moment that is seldom hit")
def test_readers_writers_and_two_sweepers_at_once(
    server: PrivateServer, store: Store, faults: Faults, tmp_path: Path, seed: int
) -> None:
    place = tmp_path / "cold"
    cold_contents.use_cold(store, f"file://{place}")
    proc = store.process("t")
    for known in TEXTS:
        proc.create(known.text, page_size=known.page_size)
    first = proc.child()
    proc.child()
    first.put("plan", TEXTS[0].text)

    def work(of: Callable[..., None], number: int, *arguments: Any) -> Callable[[], None]:
        def run() -> None:
            with fdstore.connect(server.url) as own:
                of(own, *arguments, random.Random(f"{seed} {number}"), tmp_path)

        return run

    concurrently(
        *(work(read_all_ways, number, "t") for number in range(2)),
        work(fork_and_end, 2),
        work(replace_name, 3),
        work(read_name, 4),
        work(let_go, 5),
        work(sweep, 6),
        work(sweep, 7),
        lambda: read_files(server.url, random.Random(seed)),
    )

    faults.note("move under readers", len(cold_contents.objects_in(place)))
    cold_contents.turn_cold(store)
    cold_contents.tidy(store)
    assert not cold_contents.garbage(store, place)
    for number, known in enumerate(TEXTS, 1):
        known.check(proc, f"fd:{number}", tmp_path)
