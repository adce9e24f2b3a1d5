"""`fdstore.files.target`: its arguments, which files it creates, and what it appends to."""

from __future__ import annotations

import errno
import fcntl
import os
import threading
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

from fdstore.errors import FDStoreError, InvalidArgument, TargetExists, TargetMissing, WriteFailed
from fdstore.files.target import Target
from tests.memory import assert_takes_less
from tests.unit.files.writing import Mode, both_modes, listing, put
from tests.waiting import PATIENCE_S, concurrently

# The table of create and exist_ok


@both_modes
@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("exist_ok", [True, False])
@pytest.mark.parametrize("present", [True, False], ids=["present", "absent"])
@pytest.mark.parametrize("rooted", [True, False], ids=["rooted", "anywhere"])
def test_the_table_of_create_and_exist_ok_holds(
    tmp_path: Path, mode: Mode, create: bool, exist_ok: bool, present: bool, rooted: bool
) -> None:
    table: dict[tuple[bool, bool], tuple[str, str]] = {
        # (create, exist_ok): (file absent, file present)
        (True, True): ("created", "overwritten or appended"),
        (True, False): ("created", "file_exists"),
        (False, True): ("file_not_found", "overwritten or appended"),
        (False, False): ("file_not_found", "file_exists"),
    }
    outcome = table[create, exist_ok][present]
    file = tmp_path / "out.txt"
    if present:
        file.write_bytes(b"old")
    before = listing(tmp_path)
    path, root = ("out.txt", tmp_path) if rooted else (str(file), None)
    target = Target(path, mode=mode, create=create, exist_ok=exist_ok, root=root)

    if outcome == "file_exists":
        with pytest.raises(TargetExists, match=r"out\.txt"), target:
            pass
        assert listing(tmp_path) == before
    elif outcome == "file_not_found":
        with pytest.raises(TargetMissing, match=r"out\.txt"), target:
            pass
        assert listing(tmp_path) == before
    else:
        with target:
            target.write(b"new")
            size_bytes = target.commit()
        text = b"oldnew" if present and mode == "append" else b"new"
        assert listing(tmp_path) == {"out.txt": text}
        assert size_bytes == len(text)


@both_modes
def test_a_file_created_during_the_call_is_not_replaced_if_it_must_not_exist(
    tmp_path: Path, mode: Mode
) -> None:
    file = tmp_path / "out.txt"

    with Target(file, mode=mode, exist_ok=False) as target:
        target.write(b"new")
        file.write_bytes(b"newcomer")
        with pytest.raises(TargetExists):
            target.commit()

    assert listing(tmp_path) == {"out.txt": b"newcomer"}


@both_modes
def test_a_file_created_after_the_last_check_is_not_replaced_either(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, mode: Mode
) -> None:
    file = tmp_path / "out.txt"

    def see_nothing_then_it_appears(*_: object, **__: object) -> None:
        file.write_bytes(b"newcomer")
        raise FileNotFoundError

    with Target(file, mode=mode, exist_ok=False) as target, monkeypatch.context() as racing:
        target.write(b"new")
        racing.setattr(os, "stat", see_nothing_then_it_appears)
        with pytest.raises(TargetExists):
            target.commit()

    assert listing(tmp_path) == {"out.txt": b"newcomer"}


@both_modes
def test_a_file_deleted_during_the_call_is_not_recreated_without_create(tmp_path: Path, mode: Mode) -> None:
    file = tmp_path / "out.txt"
    file.write_bytes(b"old")

    with Target(file, mode=mode, create=False) as target:
        target.write(b"new")
        file.unlink()
        with pytest.raises(TargetMissing):
            target.commit()

    assert listing(tmp_path) == {}


def test_exactly_one_of_sixteen_writers_creates_a_file_that_must_not_exist(tmp_path: Path) -> None:
    outcomes = together(16, lambda name: Target(tmp_path / "out.txt", exist_ok=False))

    assert sorted(outcomes.values()) == ["file_exists"] * 15 + ["written"]
    [winner] = [name for name, outcome in outcomes.items() if outcome == "written"]
    assert listing(tmp_path) == {"out.txt": winner.encode()}


def together(count: int, target_for: Callable[[str], Target]) -> dict[str, str]:
    """Let `count` threads write their names, all opened before any commits; return the outcome of each."""
    all_open = threading.Barrier(count)

    def write(name: str) -> str:
        try:
            with target_for(name) as target:
                target.write(name.encode())
                all_open.wait(PATIENCE_S)
                target.commit()
                return "written"
        except FDStoreError as error:
            return error.type

    names = [f"writer-{n:02}" for n in range(count)]
    return dict(zip(names, concurrently(*(partial(write, name) for name in names)), strict=True))


# Appending


@both_modes
def test_appending_to_a_missing_file_equals_writing_it(tmp_path: Path, mode: Mode) -> None:
    assert put(tmp_path / "out.txt", "grün\r\n\0".encode(), mode=mode) == 8

    assert (tmp_path / "out.txt").read_bytes() == "grün\r\n\0".encode()


@pytest.mark.parametrize("change", ["rewritten", "grown", "replaced"])
def test_an_append_does_not_replace_a_file_that_changed_meanwhile(tmp_path: Path, change: str) -> None:
    file = tmp_path / "out.txt"
    file.write_bytes(b"old")

    with Target(file, mode="append") as target:
        target.write(b"new")
        if change == "replaced":
            (tmp_path / "other").write_bytes(b"old")
            (tmp_path / "other").rename(file)
        else:
            file.write_bytes({"rewritten": b"somebody's", "grown": b"old and more"}[change])
        changed = file.read_bytes()
        with pytest.raises(WriteFailed, match="the file was changed meanwhile"):
            target.commit()

    assert listing(tmp_path) == {"out.txt": changed}


def test_an_append_does_not_replace_a_file_created_after_it_began(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"

    with Target(file, mode="append") as target:
        target.write(b"new")
        file.write_bytes(b"newcomer")
        with pytest.raises(WriteFailed, match="the file was changed meanwhile"):
            target.commit()

    assert listing(tmp_path) == {"out.txt": b"newcomer"}


def test_concurrent_appends_never_lose_an_acknowledged_append(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"old;")

    outcomes = together(16, lambda name: Target(tmp_path / "log", mode="append"))

    assert sorted(outcomes.values()) == ["write_error"] * 15 + ["written"]
    [winner] = [name for name, outcome in outcomes.items() if outcome == "written"]
    assert listing(tmp_path) == {"log": b"old;" + winner.encode()}


def test_an_append_yields_to_another_that_is_committing(tmp_path: Path) -> None:
    (tmp_path / "log").write_bytes(b"old")

    # An appender holds this lock from its last look at the file until it has replaced it.
    with (tmp_path / "log").open("rb") as other, Target(tmp_path / "log", mode="append") as target:
        fcntl.flock(other, fcntl.LOCK_EX)
        with pytest.raises(WriteFailed, match="the file was changed meanwhile"):
            target.commit()

    assert listing(tmp_path) == {"log": b"old"}


def test_an_append_to_a_big_file_takes_little_memory(tmp_path: Path) -> None:
    file = tmp_path / "big"

    def append(_: int) -> None:
        with file.open("wb") as sparse:
            sparse.truncate(64 * 1024 * 1024)
        assert put(file, b"end", mode="append") == file.stat().st_size == 64 * 1024 * 1024 + 3

    assert_takes_less(4 * 1024 * 1024, append)
    with file.open("rb") as written:
        written.seek(-5, os.SEEK_END)
        assert written.read() == b"\0\0end"


# Without hard links


def test_exclusive_creation_works_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_hard_links(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_hard_links)

    outcomes = together(8, lambda name: Target(tmp_path / "out.txt", exist_ok=False))

    assert sorted(outcomes.values()) == ["file_exists"] * 7 + ["written"]
    [winner] = [name for name, outcome in outcomes.items() if outcome == "written"]
    assert listing(tmp_path) == {"out.txt": winner.encode()}


# Arguments


any_target: Callable[..., Target] = Target


@pytest.mark.parametrize("path", [b"out.txt", 3, None, ["out.txt"]])
def test_a_path_that_is_not_text_is_an_invalid_argument(path: object) -> None:
    with pytest.raises(InvalidArgument, match="file_path: must be a path as text"):
        any_target(path)


def test_an_unknown_mode_is_an_invalid_argument() -> None:
    with pytest.raises(InvalidArgument, match='mode: must be "write" or "append"'):
        any_target("out.txt", mode="w")


def test_a_target_keeps_the_original_path() -> None:
    assert Target(Path("a") / "b.txt").path == "a/b.txt"
    assert Target("./a//b.txt").path == "./a//b.txt"
