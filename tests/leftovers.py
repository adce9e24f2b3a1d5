"""Leftovers of a piece of work in the process of the tests: descriptors and child processes."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from fdstore_workers.pipeline.process_tree import ProcessSnapshot


@contextlib.contextmanager
def nothing_left() -> Iterator[None]:
    """Fail if what ran in the block has left a descriptor open or a process running.

    Only what is new counts: what earlier tests left, such as an interpreter, ends when its own thread or the
    collector gets there, which may be within the block.
    """
    open_before, running_before = _open_descriptors(), _processes_below()
    yield
    assert not _processes_below() - running_before
    assert not _open_descriptors() - open_before


def _open_descriptors() -> set[tuple[str, str]]:
    """Return the number of each open descriptor and what it refers to, such as ("7", "pipe:[1234]"): a number
    that was closed may have been given to another."""
    found = set()
    for number in os.listdir("/proc/self/fd"):
        with contextlib.suppress(FileNotFoundError):  # the listing's own, or closed meanwhile
            found.add((number, os.readlink(f"/proc/self/fd/{number}")))
    return found


def _processes_below() -> set[int]:
    return {each.pid for each in ProcessSnapshot().below(os.getpid())}
