"""Permissions of written files: replacing a file grants or removes no permission."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from tests.unit.files.writing import Mode, both_modes, listing, put, run_python


def without_privileges(script: str, directory: Path) -> str:
    """Run `script` in `directory` as an unprivileged user, even if the tests run as root.

    The path to `directory` may be closed to that user, so the script must use relative paths.
    """
    preamble = (
        "import encodings.unicode_escape  # of error texts; later the interpreter's files may be closed\n"
        "import os\n"
        "from fdstore.errors import FDStoreError\n"
        "from fdstore.files.target import Target\n"
        "os.umask(0o022)\n"
        "if os.getuid() == 0:\n"
        "    os.setgroups([]); os.setgid(65534); os.setuid(65534)\n"
        "def put(path, **how):\n"
        "    try:\n"
        "        with Target(path, **how) as target:\n"
        "            target.write(b'new')\n"
        "            print(target.commit())\n"
        "    except FDStoreError as error:\n"
        "        print(error.type, error)\n"
    )
    return run_python(preamble + script, directory)


@both_modes
@pytest.mark.parametrize("permissions", [0o600, 0o640, 0o755, 0o666])
def test_a_replaced_file_keeps_its_permissions_and_owner(
    tmp_path: Path, mode: Mode, permissions: int
) -> None:
    file = tmp_path / "out.txt"
    file.write_bytes(b"old")
    if os.getuid() == 0:
        os.chown(file, 1234, 4321)
    file.chmod(permissions)
    before = file.stat()

    put(file, mode=mode)

    after = file.stat()
    assert stat.S_IMODE(after.st_mode) == permissions
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


def test_a_private_file_is_replaced_by_one_that_was_never_readable_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "out.txt").touch(mode=0o600)
    open_file = os.open
    modes_at_birth: list[int] = []

    def open_and_note(path: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        opened = open_file(path, flags, mode, dir_fd=dir_fd)
        if flags & os.O_CREAT:
            modes_at_birth.append(stat.S_IMODE(os.fstat(opened).st_mode))
        return opened

    with monkeypatch.context() as noting:
        noting.setattr(os, "open", open_and_note)
        put(tmp_path / "out.txt")

    assert modes_at_birth == [0o600]
    assert stat.S_IMODE((tmp_path / "out.txt").stat().st_mode) == 0o600


def test_a_setuid_bit_is_dropped_when_the_content_changes(tmp_path: Path) -> None:
    (tmp_path / "tool").touch()
    (tmp_path / "tool").chmod(0o6755)

    put(tmp_path / "tool")

    assert stat.S_IMODE((tmp_path / "tool").stat().st_mode) == 0o755


def test_the_mode_of_a_new_file_follows_the_umask(tmp_path: Path) -> None:
    said = run_python(
        "import os\n"
        "from fdstore.files.target import Target\n"
        "os.umask(0o027)\n"
        "with Target('out.txt') as target:\n"
        "    target.commit()\n"
        "print(oct(os.stat('out.txt').st_mode & 0o7777))\n",
        tmp_path,
    )

    assert said == "0o640\n"


def test_group_permissions_do_not_pass_to_another_group(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "out.txt").write_bytes(b"old")
    (tmp_path / "out.txt").chmod(0o662)

    said = without_privileges("put('out.txt')\nprint(oct(os.stat('out.txt').st_mode & 0o777))\n", tmp_path)

    # Root's file was replaced by one of nobody's group; an own file keeps group and mode.
    assert said == ("3\n0o622\n" if os.getuid() == 0 else "3\n0o662\n")


@both_modes
def test_a_write_protected_file_is_not_replaced(tmp_path: Path, mode: Mode) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "out.txt").write_bytes(b"old")
    (tmp_path / "out.txt").chmod(0o444)

    said = without_privileges(f"put('out.txt', mode={mode!r})\n", tmp_path)

    assert said == "permission_error the path 'out.txt' cannot be used: it is write-protected\n"
    assert listing(tmp_path) == {"out.txt": b"old"}


@pytest.mark.parametrize("how", ["", ", root='.'"], ids=["anywhere", "rooted"])
def test_a_directory_without_write_permission_is_refused(tmp_path: Path, how: str) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub").chmod(0o555)

    said = without_privileges(f"put('sub/out.txt'{how})\n", tmp_path)

    assert said == "permission_error the path 'sub/out.txt' cannot be used: permission denied\n"
    assert listing(tmp_path) == {"sub": None}


def test_an_unreadable_file_cannot_be_appended_to(tmp_path: Path) -> None:
    tmp_path.chmod(0o777)
    (tmp_path / "out.txt").write_bytes(b"old")
    (tmp_path / "out.txt").chmod(0o222)

    said = without_privileges("put('out.txt', mode='append')\n", tmp_path)
    (tmp_path / "out.txt").chmod(0o644)

    assert said == "permission_error the path 'out.txt' cannot be used: permission denied\n"
    assert listing(tmp_path) == {"out.txt": b"old"}


def test_a_directory_with_only_search_permission_can_be_traversed(tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "hidden" / "open").mkdir(parents=True)
    (tmp_path / "hidden" / "open").chmod(0o777)
    (tmp_path / "hidden").chmod(0o311)

    said = without_privileges("put('hidden/open/out.txt', root='.')\n", tmp_path)
    (tmp_path / "hidden").chmod(0o755)

    assert said == "3\n"
    assert (tmp_path / "hidden" / "open" / "out.txt").read_bytes() == b"new"
