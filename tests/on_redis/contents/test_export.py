"""Exports write a content to a file: exactly, atomically, and as the mode demands."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import pytest

from fdstore.client import Process
from fdstore.errors import (
    FDStoreError,
    NotFound,
    PathRefused,
    PositionOutOfRange,
    StoreLostData,
)

UNUSUAL = "\ufeffBOM\r\nCR\r\0\u2028漢字 \N{GRINNING FACE}\n\nend"


# the table of all combinations: tests/unit/files/test_target.py
@pytest.mark.parametrize(
    ("mode", "create", "exist_ok", "there", "expected"),
    [
        ("write", True, True, False, "done"),
        ("write", False, True, True, "done"),
        ("append", True, True, True, "done"),
        ("write", True, False, True, "file_exists"),
        ("append", False, True, False, "file_not_found"),
    ],
)
def test_export_modes_behave_as_documented(
    proc: Process,
    tmp_path: Path,
    mode: Literal["write", "append"],
    create: bool,
    exist_ok: bool,
    there: bool,
    expected: str,
) -> None:
    proc.create("new\n")
    path = tmp_path / "out.txt"
    if there:
        path.write_text("old\n")

    if expected == "done":
        done = proc.export("fd:1", path, mode=mode, create=create, exist_ok=exist_ok)
        kept = "old\n" if there and mode == "append" else ""
        assert path.read_text() == kept + "new\n"
        assert (done.fd, done.file_path, done.mode) == ("fd:1", str(path), mode)
        assert (done.char_count, done.size_bytes) == (4, len(kept) + 4)
    else:
        with pytest.raises(FDStoreError) as caught:
            proc.export("fd:1", path, mode=mode, create=create, exist_ok=exist_ok)
        assert caught.value.type == expected
        assert path.exists() == there
        assert not there or path.read_text() == "old\n"
    assert {entry.name for entry in tmp_path.iterdir()} <= {"out.txt"}


@pytest.mark.parametrize(
    "text", ["", "x", UNUSUAL, "é\n" * 500_000], ids=["empty", "one", "unusual", "large"]
)
def test_the_file_is_exactly_the_text(proc: Process, tmp_path: Path, text: str) -> None:
    proc.create(text, page_size=3000)

    done = proc.export("fd:1", tmp_path / "out")

    assert (tmp_path / "out").read_bytes() == text.encode()
    assert (done.char_count, done.size_bytes) == (len(text), len(text.encode()))


@pytest.mark.parametrize("part", ["P2", "P1-2", "L3-5", "C2-9", "L1-99999", "C15"])
def test_a_selector_exports_only_its_part(proc: Process, tmp_path: Path, part: str) -> None:
    proc.create("".join(f"línea {n}\n" for n in range(40)), page_size=30)

    done = proc.export(f"fd:1#{part}", str(tmp_path / "out"))

    text = proc.read(f"fd:1#{part}").text
    assert (tmp_path / "out").read_bytes() == text.encode()
    assert (done.fd, done.char_count) == ("fd:1", len(text))


def test_a_failed_export_leaves_the_old_file_and_nothing_else(proc: Process, tmp_path: Path) -> None:
    proc.create("x")
    (tmp_path / "out").write_text("old")

    with pytest.raises(NotFound):
        proc.export("fd:2", tmp_path / "out")
    with pytest.raises(PositionOutOfRange):
        proc.export("fd:1#L2", tmp_path / "out")

    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "old"


def test_a_content_lost_during_export_leaves_the_old_file(
    proc: Process, tmp_path: Path, execute: Any
) -> None:
    proc.create("line\n" * 400_000)
    (tmp_path / "out").write_text("old")
    execute("HDEL", "fdstore:{triage}:triage:fd:1:pages", 450)

    with pytest.raises(StoreLostData):
        proc.export("fd:1", tmp_path / "out")

    assert [entry.name for entry in tmp_path.iterdir()] == ["out"]
    assert (tmp_path / "out").read_text() == "old"
    proc.close("fd:1")


def test_the_api_exports_to_any_path_but_not_over_special_files(proc: Process, tmp_path: Path) -> None:
    proc.create("x")
    (tmp_path / "there").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "there" / "file")
    (tmp_path / "there" / "file").write_text("old")

    proc.export("fd:1", tmp_path / "there" / ".." / "beside")
    proc.export("fd:1", tmp_path / "link")

    assert (tmp_path / "beside").read_text() == "x"
    assert (tmp_path / "there" / "file").read_text() == "x"
    assert (tmp_path / "link").is_symlink()
    for path in (tmp_path / "there", tmp_path / "absent" / "file", "nul\0byte"):
        with pytest.raises(FDStoreError) as caught:
            proc.export("fd:1", path)
        assert caught.value.type in ("permission_error", "file_not_found", "invalid_argument")
    with pytest.raises(PathRefused):
        proc.export("fd:1", "/dev/null")
