"""The export limit of agents is checked before a byte is written and counts each call once."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fdstore import Toolset, TreeLimits
from fdstore.client import Process, Store
from fdstore.store.trees import ceilings
from tests.elements import Element, only

LIMIT = 10_000


@pytest.fixture
def small(store: Store) -> Process:
    """A process of a tree that may export 10 kB: fd:1 has 4 kB, fd:2 has 12 kB."""
    proc = store.process("small", limits=TreeLimits(tree_export_bytes=LIMIT))
    proc.create("line\n" * 800)
    proc.create("line\n" * 2400)
    return proc


def save(
    proc: Process, root: Path, fd: str, path: str = "out.txt", call: str | None = None, **more: Any
) -> Element:
    tools = Toolset(proc, enabled=["fd_to_file"], export_root=root)
    return only(tools.call("fd_to_file", {"fd": fd, "file_path": path, **more}, call).content)


def exported(store: Store) -> int:
    return store.tree("small").export_bytes


def test_exports_count_up_to_the_limit_of_the_tree(store: Store, small: Process, tmp_path: Path) -> None:
    assert save(small, tmp_path, "fd:1", "a.txt").name == "fd_file_result"
    assert save(small.child(["fd:1"]), tmp_path, "fd:1", "b.txt").name == "fd_file_result"
    refused = save(small, tmp_path, "fd:1", "c.txt")

    assert refused["type"] == "quota_exceeded"
    assert "tree_export_bytes of this tree is 10000" in refused.message
    assert exported(store) == 8000
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.txt", "b.txt"]


def test_a_text_over_the_export_limit_is_refused_before_its_file_is_opened(
    store: Store, small: Process, tmp_path: Path
) -> None:
    shown = save(small, tmp_path, "fd:2", "no/such/folder/out.txt")

    assert shown["type"] == "quota_exceeded"
    assert exported(store) == 0
    assert list(tmp_path.iterdir()) == []


def test_an_exported_part_counts_its_size_and_stops_at_the_limit(
    store: Store, small: Process, tmp_path: Path
) -> None:
    assert save(small, tmp_path, "fd:2#L1-100", "a.txt").name == "fd_file_result"
    assert exported(store) == 500

    refused = save(small, tmp_path, "fd:2#L1-2300", "b.txt")

    assert refused["type"] == "quota_exceeded"
    assert exported(store) == 500
    assert [path.name for path in tmp_path.iterdir()] == ["a.txt"]


@pytest.mark.parametrize("options", [{}, {"mode": "append"}, {"exist_ok": False}])
@pytest.mark.parametrize("fd", ["fd:1", "fd:1#L1-400"])
def test_an_export_call_counts_once_wherever_the_attempt_was_interrupted(
    store: Store, tmp_path: Path, dropped_after: Any, options: dict[str, Any], fd: str
) -> None:
    proc = store.process("small")
    proc.create("line\n" * 800)
    steps, lost = 0, True
    while lost:
        steps += 1
        (tmp_path / "out.txt").unlink(missing_ok=True)
        toolbox = Toolset(proc, enabled=["fd_to_file"], export_root=tmp_path)._toolbox
        arguments = {"fd": fd, "file_path": "out.txt", **options}

        lost = store.run(dropped_after(toolbox.start("fd_to_file", arguments, f"toolu_{steps}"), steps))
        store.run(toolbox.start("fd_to_file", arguments, f"toolu_{steps}"))

        assert exported(store) == steps * (4000 if fd == "fd:1" else 2000)
    assert steps > 6


@pytest.mark.parametrize("call", [None, "toolu_1"])
def test_a_failed_export_does_not_count(
    store: Store, small: Process, tmp_path: Path, call: str | None
) -> None:
    (tmp_path / "there.txt").write_text("old")

    refused = save(small, tmp_path, "fd:1", "there.txt", call, exist_ok=False)

    assert refused["type"] == "file_exists"
    assert exported(store) == 0


def test_an_export_without_a_call_id_leaves_no_record(
    store: Store, small: Process, tmp_path: Path, execute: Any
) -> None:
    save(small, tmp_path, "fd:1")

    assert exported(store) == 4000
    assert execute("HLEN", "fdstore:{small}:small:calls") == 0


def test_exports_through_the_api_are_not_counted(store: Store, small: Process, tmp_path: Path) -> None:
    small.export("fd:2", tmp_path / "out.txt")

    assert exported(store) == 0


def test_the_operator_lowers_the_exports_of_a_tree_and_of_all_in_a_day(
    store: Store, small: Process, tmp_path: Path
) -> None:
    store.run(ceilings.put("fdstore", "tree_export_bytes", "5kB"))
    assert save(small, tmp_path, "fd:1").name == "fd_file_result"
    assert "is 5000" in save(small, tmp_path, "fd:1").message
    store.run(ceilings.put("fdstore", "tree_export_bytes", None))

    store.run(ceilings.put("fdstore", "export_bytes_per_day", "9000"))
    other = store.process("other")
    other.create("x" * 5000)
    assert save(other, tmp_path, "fd:1", "b.txt", "toolu_1").name == "fd_file_result"
    assert save(other, tmp_path, "fd:1", "b.txt", "toolu_1").name == "fd_file_result"
    assert save(small, tmp_path, "fd:1", "c.txt").name == "fd_file_result"
    refused = save(small, tmp_path, "fd:1#C1-100", "d.txt")

    assert "ceiling export_bytes_per_day of this store is 9000" in refused.message
    assert exported(store) == 8000
    assert not (tmp_path / "d.txt").exists()


def test_a_new_day_begins_with_no_exports(store: Store, small: Process, tmp_path: Path, execute: Any) -> None:
    store.run(ceilings.put("fdstore", "export_bytes_per_day", "4kB"))
    save(small, tmp_path, "fd:1")
    execute("HSET", "fdstore:exports", "day", "20000")

    assert save(small, tmp_path, "fd:1").name == "fd_file_result"
    assert save(small, tmp_path, "fd:1")["type"] == "quota_exceeded"
