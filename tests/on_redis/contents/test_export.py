"""Exports write a content to a file: exactly, atomically, and as the mode demands."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Process
from fdstore.errors import (
    FDStoreError,
    NotFound,
    PathRefused,
    PositionOutOfRange,
    StoreLostData,
)


# mode, create and exist_ok: tests/unit/files/test_target.py and acceptance/test_store_verbs.py
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
