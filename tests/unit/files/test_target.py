"""`fdstore.files.target` writes a file completely or not at all, and only in permitted places."""

from __future__ import annotations

import errno
import fcntl
import os
import resource
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path

import pytest

from fdstore.errors import (
    FDStoreError,
    InvalidArgument,
    TargetExists,
    TargetMissing,
    WriteFailed,
)
from fdstore.files.target import Target
from tests.unit.files.writing import Mode, both_modes, listing, put


def run_python(script: str, directory: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=directory, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


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
    outcomes: dict[str, str] = {}

    def write(name: str) -> None:
        try:
            with target_for(name) as target:
                target.write(name.encode())
                all_open.wait(timeout=30)
                target.commit()
                outcomes[name] = "written"
        except FDStoreError as error:
            outcomes[name] = error.type

    threads = [threading.Thread(target=write, args=(f"writer-{n:02}",)) for n in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return outcomes


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
    with file.open("wb") as sparse:
        sparse.truncate(64 * 1024 * 1024)

    tracemalloc.start()
    try:
        size_bytes = put(file, b"end", mode="append")
        _, peak_bytes = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert size_bytes == file.stat().st_size == 64 * 1024 * 1024 + 3
    assert peak_bytes < 4 * 1024 * 1024
    with file.open("rb") as written:
        written.seek(-5, os.SEEK_END)
        assert written.read() == b"\0\0end"


# Nothing or all


@both_modes
@pytest.mark.parametrize("error", [None, ValueError, KeyboardInterrupt])
def test_without_a_commit_nothing_changes(
    tmp_path: Path, mode: Mode, error: type[BaseException] | None
) -> None:
    (tmp_path / "out.txt").write_bytes(b"old")

    def leave_early() -> None:
        with Target(tmp_path / "out.txt", mode=mode) as target:
            target.write(b"new")
            if error is not None:
                raise error

    if error is None:
        leave_early()
    else:
        with pytest.raises(error):
            leave_early()

    assert listing(tmp_path) == {"out.txt": b"old"}


def test_the_file_does_not_appear_before_the_commit(tmp_path: Path) -> None:
    file = tmp_path / "out.txt"

    with Target(file) as target:
        target.write(b"new")
        assert not file.exists()
        [temporary] = listing(tmp_path)
        assert temporary.startswith(".fdstore-")
        assert temporary.endswith(".tmp")
        target.commit()
        assert listing(tmp_path) == {"out.txt": b"new"}


@both_modes
@pytest.mark.parametrize("present", [True, False], ids=["present", "absent"])
def test_a_write_cut_short_by_the_system_keeps_the_old_file(
    tmp_path: Path, mode: Mode, present: bool
) -> None:
    if present:
        (tmp_path / "out.txt").write_bytes(b"old")
    before = listing(tmp_path)

    # A limit on the size of files cuts a write in the middle, as a full disk does.
    said = run_python(
        "import resource, signal\n"
        "from fdstore.errors import WriteFailed\n"
        "from fdstore.files.target import Target\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, {resource.RLIM_INFINITY}))\n"
        f"with Target('out.txt', mode={mode!r}) as target:\n"
        "    try:\n"
        "        target.write(b'x' * 150_000)\n"
        "    except WriteFailed as error:\n"
        "        print(error)\n"
        "    try:\n"
        "        target.commit()\n"
        "    except ValueError as error:\n"
        "        print(error)\n",
        tmp_path,
    )

    failed, refused = said.splitlines()
    assert failed == "writing 'out.txt' failed and changed nothing: file too large"
    assert "not open" in refused
    assert listing(tmp_path) == before


def test_an_append_whose_copy_is_cut_short_keeps_the_old_file(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_bytes(b"o" * 150_000)

    said = run_python(
        "import resource, signal\n"
        "from fdstore.errors import WriteFailed\n"
        "from fdstore.files.target import Target\n"
        "signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        f"resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, {resource.RLIM_INFINITY}))\n"
        "try:\n"
        "    Target('out.txt', mode='append').__enter__()\n"
        "except WriteFailed as error:\n"
        "    print(error)\n",
        tmp_path,
    )

    assert "file too large" in said
    assert listing(tmp_path) == {"out.txt": b"o" * 150_000}


@pytest.mark.parametrize("call", ["read", "write", "fsync", "rename"])
@pytest.mark.parametrize("error", [OSError(errno.EIO, "Input/output error"), KeyboardInterrupt()], ids=repr)
def test_a_failure_at_any_step_keeps_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, error: BaseException
) -> None:
    (tmp_path / "out.txt").write_bytes(b"old")

    def fail(*_: object, **__: object) -> None:
        raise error

    with monkeypatch.context() as broken:
        broken.setattr(os, call, fail)
        with pytest.raises(WriteFailed if isinstance(error, OSError) else KeyboardInterrupt) as caught:
            put(tmp_path / "out.txt", mode="append")

    assert listing(tmp_path) == {"out.txt": b"old"}
    if isinstance(error, OSError):
        assert str(caught.value).endswith("failed and changed nothing: input/output error")
        assert caught.value.__cause__ is error


def test_an_error_after_the_rename_is_not_reported_as_a_failed_write(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flush = os.fsync

    def flush_files_only(fd: int) -> None:
        if os.path.isdir(fd):
            raise OSError(errno.EINVAL, "Invalid argument")
        flush(fd)

    monkeypatch.setattr(os, "fsync", flush_files_only)

    assert put(tmp_path / "out.txt") == 3
    assert listing(tmp_path) == {"out.txt": b"new"}


def test_an_open_reader_keeps_reading_the_old_text(tmp_path: Path) -> None:
    (tmp_path / "out.txt").write_bytes(b"old")

    with (tmp_path / "out.txt").open("rb") as reader:
        put(tmp_path / "out.txt")
        assert reader.read() == b"old"


def test_a_hard_link_to_the_old_file_keeps_the_old_text(tmp_path: Path) -> None:
    (tmp_path / "other").write_bytes(b"old")
    os.link(tmp_path / "other", tmp_path / "out.txt")

    put("out.txt", root=tmp_path)

    assert listing(tmp_path) == {"other": b"old", "out.txt": b"new"}


def test_exclusive_creation_works_without_hard_links(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_hard_links(*_: object, **__: object) -> None:
        raise PermissionError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_hard_links)

    outcomes = together(8, lambda name: Target(tmp_path / "out.txt", exist_ok=False))

    assert sorted(outcomes.values()) == ["file_exists"] * 7 + ["written"]
    [winner] = [name for name, outcome in outcomes.items() if outcome == "written"]
    assert listing(tmp_path) == {"out.txt": winner.encode()}


@pytest.mark.parametrize("mode", ["write", "append"])
@pytest.mark.parametrize("old", [None, "old\n"])
def test_a_mark_distinguishes_a_committed_target_from_one_that_never_will_be(
    tmp_path: Path, mode: Mode, old: str | None
) -> None:
    path = tmp_path / "out.txt"
    if old is not None:
        path.write_text(old)
    with Target(path, mode=mode) as first:
        first.write(b"new\n")
        placed = first.mark()
        first.commit()
    with Target(path, mode=mode) as late:
        late.write(b"never\n")
        asking = Target(path, mode=mode)

        assert asking.was_committed(placed) is True
        assert asking.was_committed(late.mark()) is False

        assert os.listdir(tmp_path) == ["out.txt"]
        with pytest.raises(WriteFailed):
            late.commit()
    assert path.read_text() == (old or "" if mode == "append" else "") + "new\n"


def test_a_mark_finds_its_target_after_others_wrote_into_it(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with Target(path, mode="append") as target:
        target.write(b"new\n")
        mark = target.mark()
        target.commit()
    with path.open("a") as other:
        other.write("more\n")

    assert Target(path).was_committed(mark) is True


def test_a_mark_is_inconclusive_when_others_replaced_the_file(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old\n")
    with Target(path, mode="append") as target:
        target.write(b"new\n")
        mark = target.mark()
        target.commit()
    with Target(path, mode="append") as other:
        other.write(b"more\n")
        other.commit()

    assert Target(path).was_committed(mark) is None


def test_a_target_that_aborted_cleanly_left_the_file_unchanged(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    path.write_text("old\n")
    with Target(path, mode="append") as target:
        target.write(b"new\n")
        mark = target.mark()

    assert Target(path).was_committed(mark) is False


def test_a_target_is_closed_by_its_commit(tmp_path: Path) -> None:
    with Target(tmp_path / "out.txt") as target:
        target.write(b"new")
        target.commit()

        with pytest.raises(ValueError, match="not open"):
            target.write(b"more")
        with pytest.raises(ValueError, match="not open"):
            target.commit()

    assert listing(tmp_path) == {"out.txt": b"new"}


def test_no_os_file_descriptor_leaks_in_any_case(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "old").write_bytes(b"old")
    (tmp_path / "link").symlink_to("old")
    open_before = len(os.listdir("/dev/fd"))

    put("new", root=tmp_path)
    put("old", mode="append", root=tmp_path)
    for path in ("sub", "link", "link/x", "sub/none/x", "../x"):
        with pytest.raises(FDStoreError):
            put(path, root=tmp_path)
    with pytest.raises(TargetExists):
        put("old", exist_ok=False, root=tmp_path)

    assert len(os.listdir("/dev/fd")) == open_before


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
