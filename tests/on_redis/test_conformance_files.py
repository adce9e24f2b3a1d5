"""`fd_to_file`: all combinations of its arguments, and paths that try to escape the export root."""

from __future__ import annotations

import os
import socket
from pathlib import Path
from typing import Any

import pytest

from fdstore import Toolset
from fdstore.client import Process
from fdstore.errors import InvalidArgument
from tests.elements import Element, only


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


MATRIX = [
    # mode, create, exist_ok, result for an absent file, result for an existing one
    ("write", True, True, "new", "new"),
    ("append", True, True, "new", "oldnew"),
    ("write", True, False, "new", "file_exists"),
    ("append", True, False, "new", "file_exists"),
    ("write", False, True, "file_not_found", "new"),
    ("append", False, True, "file_not_found", "oldnew"),
    ("write", False, False, "file_not_found", "file_exists"),
    ("append", False, False, "file_not_found", "file_exists"),
]


@pytest.mark.parametrize("present", [False, True], ids=["absent", "present"])
@pytest.mark.parametrize(("mode", "create", "exist_ok", "absent_comes_to", "present_comes_to"), MATRIX)
def test_each_combination_of_mode_create_and_exist_ok(
    tools: Toolset,
    root: Path,
    mode: str,
    create: bool,
    exist_ok: bool,
    absent_comes_to: str,
    present_comes_to: str,
    present: bool,
) -> None:
    file = root / "out"
    if present:
        file.write_text("old")
    expected = present_comes_to if present else absent_comes_to

    shown = write(tools, "out", mode=mode, create=create, exist_ok=exist_ok)

    if expected.startswith("file_"):
        assert (shown.name, shown["type"]) == ("fd_error", expected)
        assert file.exists() == present
        assert not present or file.read_text() == "old"
    else:
        assert (shown.name, shown["success"]) == ("fd_file_result", "true")
        assert (shown["char_count"], shown["size_bytes"]) == ("3", str(len(expected)))
        assert file.read_text() == expected
    assert [path.name for path in root.iterdir()] == (["out"] if file.exists() else [])


HOSTILE = [
    "../outside/secret",
    "a/../../outside/secret",
    "sub/../../outside/secret",
    "./../outside/secret",
    "..",
    ".",
    "",
    "/",
    "/tmp/fdstore-escape",
    "//tmp/fdstore-escape",
    "~/fdstore-escape",
    "~root/fdstore-escape",
    "link",
    "link/",
    "linked_dir/secret",
    "loop",
    "loop/x",
    "sub",
    "sub/",
    "fifo",
    "fifo/x",
    "secret\0.txt",
    "no/such/directory",
    "file/x",
    "x" * 256,
    "\ud800",
    "\udcff",
    "dev_null",
    "socket",
    ".env",
    "./.env",
    ".git/config",
    "sub/.ssh/key",
    "...",
]


@pytest.mark.parametrize("mode", ["write", "append"])
@pytest.mark.parametrize("path", HOSTILE, ids=ascii)
def test_no_path_escapes_the_root_or_replaces_a_special_file(
    tools: Toolset, root: Path, path: str, mode: str
) -> None:
    outside = root.parent / "outside"
    (root / "link").symlink_to(outside / "secret")
    (root / "linked_dir").symlink_to(outside)
    (root / "loop").symlink_to("loop")
    (root / "dev_null").symlink_to("/dev/null")
    (root / "sub").mkdir()
    (root / "file").write_text("old")
    (root / ".git").mkdir()
    (root / ".git" / "config").write_text("old")
    os.mkfifo(root / "fifo")
    with socket.socket(socket.AF_UNIX) as listening, pytest.MonkeyPatch.context() as patch:
        patch.chdir(root)
        listening.bind("socket")
    before = sorted(root.iterdir())

    shown = write(tools, path, mode=mode)

    assert (shown.name, shown["type"] in {"permission_error", "file_not_found"}) == ("fd_error", True)
    assert sorted(root.iterdir()) == before
    for kept in (outside / "secret", root / "file", root / ".git" / "config"):
        assert kept.read_text() == "old"
    assert list(outside.iterdir()) == [outside / "secret"]
    assert not Path("/tmp/fdstore-escape").exists()


@pytest.mark.parametrize(
    "path",
    ["out", "./out", "sub//out", "sub/./out", "a b", "日本語", "-rf", "a...", "out\n", "$(id)", "a\\b", "*"],
)
def test_any_other_name_below_the_root_may_be_written(tools: Toolset, root: Path, path: str) -> None:
    (root / "sub").mkdir()

    assert write(tools, path)["success"] == "true"

    assert (root / path).read_text() == "new"


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


def test_a_root_that_cannot_be_created_is_an_error(proc: Process, root: Path) -> None:
    proc.create("new")
    tools = Toolset(proc, enabled=["fd_to_file"], export_root=root / "no" / "such")

    assert "cannot be used" in write(tools, "out").message
    assert not (root / "no").exists()


def test_a_part_and_a_passage_can_be_saved(proc: Process, tools: Toolset, root: Path) -> None:
    proc.create("one\ntwo\nthree\n")
    tools.take_references('<ref id="plan">dig</ref>')

    tools.call("fd_to_file", {"fd": "fd:2#L2-3", "file_path": "part"})
    tools.call("fd_to_file", {"fd": "ref:plan#C1-2", "file_path": "passage"})

    assert (root / "part").read_text() == "two\nthree\n"
    assert (root / "passage").read_text() == "di"


def test_a_failed_write_leaves_the_old_file(tools: Toolset, root: Path) -> None:
    (root / "out").write_text("old")

    shown = only(tools.call("fd_to_file", {"fd": "fd:9", "file_path": "out"}).content)

    assert shown["type"] == "not_found"
    assert (root / "out").read_text() == "old"
    assert [path.name for path in root.iterdir()] == ["out"]
