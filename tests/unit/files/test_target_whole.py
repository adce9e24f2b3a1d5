"""`fdstore.files.target` writes a file completely or not at all."""

from __future__ import annotations

import errno
import os
import resource
from pathlib import Path

import msgspec
import pytest

from fdstore.errors import FDStoreError, TargetExists, WriteFailed
from fdstore.files.target import Target, TargetIdentity
from tests.unit.files.writing import Mode, both_modes, listing, put, run_python


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


@both_modes
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


def test_a_mark_removes_only_the_file_that_it_identifies(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with Target(path) as other, Target(path) as own:
        of_other, of_own = other.mark(), own.mark()
        forged = msgspec.structs.replace(of_own, temporary=of_other.temporary)

        assert Target(path).was_committed(forged) is False

        assert of_other.temporary in os.listdir(tmp_path)
        other.commit()
    assert path.exists()


def test_a_mark_does_not_remove_a_link_under_the_name_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "out.txt"
    with Target(path) as target:
        mark = target.mark()
    (tmp_path / "victim").touch()
    (tmp_path / mark.temporary).symlink_to("victim")
    found = (tmp_path / mark.temporary).stat()
    mark = msgspec.structs.replace(mark, device=found.st_dev, inode=found.st_ino)

    assert Target(path).was_committed(mark) is False

    assert sorted(os.listdir(tmp_path)) == sorted([mark.temporary, "victim"])


@pytest.mark.parametrize(
    "name",
    [
        *("", ".", "..", "victim", "../victim", ".fdstore-.tmp", ".fdstore-" + "0" * 23 + ".tmp"),
        *("./.fdstore-" + "0" * 24 + ".tmp", ".fdstore-" + "0" * 24 + ".tmp\n"),
        *(".fdstore-" + "A" * 24 + ".tmp", ".fdstore-" + "\N{FULLWIDTH DIGIT ONE}" * 24 + ".tmp"),
    ],
)
def test_a_mark_names_only_a_temporary_file(name: str) -> None:
    with pytest.raises(ValueError, match="temporary file"):
        TargetIdentity(name, 1, 2, 3, None)
