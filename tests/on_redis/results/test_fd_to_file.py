"""`fd_to_file`: the export root of a toolset, and parts as files."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from fdstore import Toolset
from fdstore.client import Process
from fdstore.errors import InvalidArgument
from tests.elements import Element, only
from tests.on_redis.conftest import Execute


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """The export root, next to a directory with a secret file."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "secret").write_text("old")
    (tmp_path / "root").mkdir()
    return tmp_path / "root"


@pytest.fixture
def tools(proc: Process, root: Path) -> Toolset:
    proc.create("new")
    return Toolset(proc, enabled=["read_fd", "fd_to_file"], export_root=root)


def write(tools: Toolset, path: str, **choices: Any) -> Element:
    return only(tools.call("fd_to_file", {"fd": "fd:1", "file_path": path, **choices}).content)


# all refused paths: tests/unit/files/test_paths.py; mode, create and exist_ok: test_target.py beside it
@pytest.mark.parametrize("path", ["../outside/secret", "link", "fifo", ".env"])
def test_no_path_escapes_the_root_or_replaces_a_special_file(tools: Toolset, root: Path, path: str) -> None:
    (root / "link").symlink_to(root.parent / "outside" / "secret")
    os.mkfifo(root / "fifo")

    shown = write(tools, path)

    assert (shown.name, shown["type"]) == ("fd_error", "permission_error")
    assert sorted(entry.name for entry in root.iterdir()) == ["fifo", "link"]
    assert (root.parent / "outside" / "secret").read_text() == "old"


def test_the_root_may_be_a_symbolic_link(proc: Process, root: Path) -> None:
    proc.create("new")
    (root.parent / "alias").symlink_to(root)
    tools = Toolset(proc, enabled=["fd_to_file"], export_root=root.parent / "alias")

    assert write(tools, "out")["success"] == "true"

    assert (root / "out").read_text() == "new"


def test_a_relative_root_is_resolved_against_the_initial_working_directory(
    proc: Process, root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.create("new")
    monkeypatch.chdir(root)
    tools = Toolset(proc, enabled=["fd_to_file"], export_root=".")
    monkeypatch.chdir("/")

    assert write(tools, "out")["success"] == "true"

    assert (root / "out").read_text() == "new"


def test_enabling_fd_to_file_requires_an_export_root(proc: Process) -> None:
    with pytest.raises(InvalidArgument, match=r"export_root: fd_to_file is enabled, so name the directory"):
        Toolset(proc, enabled=["read_fd", "fd_to_file"])


def test_a_missing_root_is_created_by_the_first_write(proc: Process, root: Path) -> None:
    proc.create("new")
    tools = Toolset(proc, enabled=["fd_to_file"], export_root=root / "new")
    assert not (root / "new").exists()

    assert write(tools, ".hidden")["type"] == "permission_error"
    assert not (root / "new").exists()
    assert write(tools, "out")["success"] == "true"

    assert (root / "new" / "out").read_text() == "new"


def test_a_part_and_a_passage_can_be_saved(proc: Process, tools: Toolset, root: Path) -> None:
    proc.create("one\ntwo\nthree\n")
    tools.take_references('<ref id="plan">dig</ref>')

    tools.call("fd_to_file", {"fd": "fd:2#L2-3", "file_path": "part"})
    tools.call("fd_to_file", {"fd": "ref:plan#C1-2", "file_path": "passage"})

    assert (root / "part").read_text() == "two\nthree\n"
    assert (root / "passage").read_text() == "di"


PLAN = {
    "mark": {"temporary": "../outside/secret", "device": 1, "inode": 2, "size_bytes": 3, "stood": None},
    "done": {"fd": "fd:1", "file_path": "out", "mode": "write", "char_count": 3, "size_bytes": 3},
}


@pytest.mark.parametrize("temporary", ["../outside/secret", "mine", ".", "", ".fdstore-x.tmp", "a" * 10**5])
def test_a_stored_plan_removes_no_file_of_the_user(
    tools: Toolset, root: Path, execute: Execute, temporary: str
) -> None:
    (root / "mine").write_text("mine")
    (root / "out").write_text("old")
    plan = {**PLAN, "mark": {**PLAN["mark"], "temporary": temporary}}
    execute("HSET", "fdstore:{triage}:triage:calls", "call/plan", json.dumps(plan))

    shown = only(tools.call("fd_to_file", {"fd": "fd:1", "file_path": "out"}, call_id="call").content)

    assert (shown.name, shown["type"]) == ("fd_error", "store_lost_data")
    assert "the plan of call" in shown.message
    assert (root.parent / "outside" / "secret").read_text() == "old"
    assert (root / "mine").read_text() == "mine"
    assert (root / "out").read_text() == "old"
