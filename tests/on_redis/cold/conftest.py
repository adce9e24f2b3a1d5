"""Fixtures of the tests of cold contents, whose objects are files."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.store.cold.moving import Moved, move_due
from fdstore.store.trees import ceilings
from tests.cold_contents import objects_in

pytest.importorskip("obstore")


@pytest.fixture
def place(tmp_path: Path) -> Path:
    """The directory of the objects."""
    return tmp_path / "objects"


@pytest.fixture
def cold_store(store: Store, place: Path) -> Store:
    """A store whose contents of any size move out at the first turn of the mover."""
    for name, value in (("cold", f"file://{place}"), ("cold_after", "0s"), ("cold_min", "0")):
        store.run(ceilings.put(store.prefix, name, value))
    return store


@pytest.fixture
def proc(cold_store: Store) -> Process:
    """The root process of a new tree."""
    return cold_store.process("triage")


@pytest.fixture
def move_out(cold_store: Store) -> Callable[[], Moved]:
    """A function that moves all sealed contents out."""

    def turn() -> Moved:
        moved = move_due(cold_store)
        assert moved.problem == ""
        return moved

    return turn


@pytest.fixture
def objects(place: Path) -> Callable[[], list[Path]]:
    """A function that returns the files of all objects."""

    return partial(objects_in, place)


Fields = Callable[..., dict[str, str]]


@pytest.fixture
def fields(execute: Callable[..., Any]) -> Fields:
    """A function that returns the record of a content of `triage`."""

    def read(number: int = 1) -> dict[str, str]:
        flat = [each.decode() for each in execute("HGETALL", f"fdstore:{{triage}}:triage:fd:{number}")]
        return dict(zip(flat[::2], flat[1::2], strict=True))

    return read
