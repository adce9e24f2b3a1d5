"""Pages of a known descriptor are read directly, with the same slices and errors as by an operation, also
after a lost connection and in forked processes."""

from __future__ import annotations

import multiprocessing
import socket
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, InvalidArgument, NotFound, PageOutOfRange, TooLarge
from fdstore.model.records import TreeLimits
from fdstore.wire.operation import Operation
from tests.slices import pages_of, texts
from tests.waiting import PATIENCE_S, wait_until

TEXT = "".join(f"line {number} of a log that somebody keeps\n" for number in range(2000))
PAGES = pages_of(TEXT, 4000)


class Watched(Store):
    """A store that counts its operations."""

    operations = 0

    def run(self, operation: Operation[Any]) -> Any:
        self.operations += 1
        return super().run(operation)


@pytest.fixture
def watched(store: Store) -> Watched:
    return Watched(store._runner, store.prefix, store.url)


@pytest.fixture
def proc(watched: Watched) -> Process:
    proc = watched.process("reader")
    proc.create(TEXT)
    proc.read("fd:1", start=3)
    watched.operations = 0
    return proc


def test_reading_a_page_of_a_known_descriptor_runs_no_operation(proc: Process, watched: Watched) -> None:
    found = proc.read("fd:1", start=3)

    assert watched.operations == 0
    assert found == proc.read("fd:1#P3") == watched.process("reader").read("fd:1", start=3)
    assert watched.operations == 3
    assert proc.read("fd:1").text == PAGES[0]
    assert watched.operations == 3


@given(text=texts, page_size=st.integers(1, 9))
@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_a_direct_page_read_returns_the_same_slice_as_the_first_read(
    proc: Process, text: str, page_size: int
) -> None:
    made = proc.create(text, page_size=page_size)
    pages = range(1, made.pages + 1)
    first = [proc.read(made.fd, start=page) for page in pages]

    assert [proc.read(made.fd, start=page) for page in pages] == first
    assert "".join(page.text for page in first) == text
    proc.close(made.fd)


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"start": 0}, InvalidArgument),
        ({"start": True}, InvalidArgument),
        ({"start": 3, "count": 0}, InvalidArgument),
        ({"start": 3, "mode": ""}, InvalidArgument),
        ({"start": 3, "wait": None}, InvalidArgument),
        ({"start": 3, "wait": False}, InvalidArgument),
        ({"start": 10_000}, PageOutOfRange),
        ({"start": 3, "max_chars": 3000}, TooLarge),
    ],
)
def test_invalid_arguments_are_refused_for_known_descriptors_too(
    proc: Process, arguments: dict[str, Any], error: type[FDStoreError]
) -> None:
    with pytest.raises(error):
        proc.read("fd:1", **arguments)


def test_a_direct_page_read_detects_a_descriptor_closed_by_another_client(
    proc: Process, store: Store
) -> None:
    other = store.process("reader")
    other.create("what is left")
    other.close("fd:1")

    with pytest.raises(NotFound, match="fd:2"):
        proc.read("fd:1", start=3)


def test_a_pages_key_of_another_type_is_a_typed_error(proc: Process, execute: Any) -> None:
    pages = "fdstore:{reader}:reader:fd:1:pages"
    execute("RENAME", pages, "kept")
    execute("SET", pages, "no hash")

    with pytest.raises(FDStoreError, match="wrong kind"):
        proc.read("fd:1", start=3)

    execute("RENAME", "kept", pages)
    assert proc.read("fd:1", start=3).page == 3


def test_a_direct_page_read_reconnects(proc: Process, watched: Watched, execute: Any) -> None:
    execute("CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes")

    assert proc.read("fd:1", start=3).text == PAGES[2]
    watched.operations = 0
    assert proc.read("fd:1", start=4).text == PAGES[3]
    assert watched.operations == 0


def test_direct_page_reads_record_the_use_of_the_tree(watched: Watched, execute: Any) -> None:
    proc = watched.process("brief", limits=TreeLimits(retention_days=10 / 86_400))
    proc.create(TEXT)
    proc.read("fd:1", start=3)
    before = execute("HGET", "fdstore:{brief}", "used_at")

    def use_is_recorded() -> bool:
        proc.read("fd:1", start=3)
        return bool(execute("HGET", "fdstore:{brief}", "used_at") != before)

    wait_until(use_is_recorded)


def test_a_fork_leaves_the_connections_to_its_parent(proc: Process) -> None:
    forked = multiprocessing.get_context("fork")
    mine, theirs = socket.socketpair()

    def read_along() -> None:
        if all(proc.read("fd:1", start=n % 15 + 1).text == PAGES[n % 15] for n in range(200)):
            theirs.sendall(b"all")

    child = forked.Process(target=read_along)
    child.start()
    try:
        for n in range(200):
            assert proc.read("fd:1", start=n % 15 + 1).text == PAGES[n % 15]
        mine.settimeout(PATIENCE_S)
        assert mine.recv(3) == b"all"
    finally:
        child.join(PATIENCE_S)
        mine.close()
        theirs.close()
    assert child.exitcode == 0


def test_an_ended_process_reads_none_of_its_contents_though_others_hold_them(proc: Process) -> None:
    text = proc.create(TEXT)
    binary = proc.create(b"\0" * 10_000)
    child = proc.child([text.fd, binary.fd])
    looks = (
        lambda: proc.read(text.fd),
        lambda: proc.read(text.fd, mode="line"),
        lambda: proc.read_bytes(binary.fd),
    )
    for look in looks:
        look()

    proc.end()

    for look in looks:
        with pytest.raises(NotFound):
            look()
    assert child.read(text.fd).text
