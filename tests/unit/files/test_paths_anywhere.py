"""Paths without a root: links are followed, special files refused."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from fdstore.errors import PathRefused, TargetMissing
from tests.unit.files.writing import Mode, both_modes, listing, put
from tests.waiting import PATIENCE_S


def test_path_objects_and_relative_paths_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    put(Path("one"))
    put("two")
    put("../" + tmp_path.name + "/three")
    put("~")

    assert listing(tmp_path) == dict.fromkeys(["one", "three", "two", "~"], b"new")


def test_a_person_may_name_a_file_whose_name_is_not_utf_8(root: Path) -> None:
    put(root / "caf\udce9.txt")

    assert b"caf\xe9.txt" in os.listdir(os.fsencode(root))


@pytest.mark.parametrize("link", ["sub/link", "sub/link-to-link"])
@both_modes
def test_writing_to_a_link_replaces_its_target_and_keeps_the_link(root: Path, mode: Mode, link: str) -> None:
    (root / "file").write_bytes(b"old")
    (root / "sub" / "link").symlink_to("../file")
    (root / "sub" / "link-to-link").symlink_to("link")

    put(root / link, mode=mode)

    assert (root / link).is_symlink()
    assert (root / "file").read_bytes() == (b"oldnew" if mode == "append" else b"new")


def test_writing_to_a_dangling_link_creates_its_target(root: Path) -> None:
    (root / "link").symlink_to("sub/new")

    put(root / "link")

    assert (root / "link").is_symlink()
    assert (root / "sub" / "new").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("path", "problem"),
    [
        ("", "it is empty"),
        ("sub", "it is a directory"),
        ("sub/", "names a directory"),
        ("new/", "names a directory"),
        ("link-to-sub", "it is a directory"),
        ("link-to-itself", "symbolic links"),
        ("fifo", "it is a FIFO"),
        ("link-to-fifo", "it is a FIFO"),
        ("file/out.txt", "not a directory"),
        ("out\0.txt", "NUL"),
        ("out\ud800.txt", "no file name can have"),
        ("x" * 256, "longer than 255 bytes"),
        ("sub/" * 2000 + "out.txt", "file name too long"),
        ("/dev/null", "it is a device"),
    ],
)
def test_a_path_that_is_not_a_regular_file_is_refused(
    root: Path, path: str, problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "file").write_bytes(b"old")
    (root / "link-to-sub").symlink_to("sub")
    (root / "link-to-itself").symlink_to("link-to-itself")
    (root / "link-to-fifo").symlink_to("fifo")
    os.mkfifo(root / "fifo")
    monkeypatch.chdir(root)
    before = listing(root)

    with pytest.raises(PathRefused, match=problem):
        put(path)

    assert listing(root) == before


def test_the_standard_output_is_refused_when_it_is_a_pipe() -> None:
    script = (
        "from fdstore.errors import PathRefused\n"
        "from fdstore.files.target import Target\n"
        "try:\n"
        "    Target('/dev/stdout').__enter__()\n"
        "except PathRefused as error:\n"
        "    print(error.problem)\n"
    )

    said = subprocess.run(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, timeout=PATIENCE_S, check=True
    )

    assert said.stdout == "it is a FIFO, not a regular file\n"


@pytest.mark.parametrize("link", [False, True], ids=["path", "link"])
def test_a_missing_directory_is_not_created_without_a_root_either(tmp_path: Path, link: bool) -> None:
    path = tmp_path / "none" / "out.txt"
    if link:
        path = tmp_path / "link"
        path.symlink_to("none/out.txt")

    with pytest.raises(TargetMissing, match="its directory does not exist") as caught:
        put(path)

    assert caught.value.path == str(path)
    assert not (tmp_path / "none").exists()
