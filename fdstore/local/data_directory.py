"""The directory of the embedded server and of the worker that `fdstore up` starts. It belongs to one user:
the files that another one, such as root by `sudo`, leaves in it would lock its owner out. Nor may another
user own or write to a directory above it, as ssh demands of its keys: whoever can rename it can put another
in its place."""

from __future__ import annotations

import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from fdstore.errors import StartFailed

ADVICE = "run this as that user, or name a directory of yours in FDSTORE_DATA_DIR"
OPEN_ADVICE = "take this permission away with chmod, or name a directory of yours in FDSTORE_DATA_DIR"


def problem_of(directory: Path, user: int | None = None) -> tuple[str, str] | None:
    """Return why a directory may not hold the data of `user` (default: this one), and what to do: it, or one
    above it, belongs to another user or can be written by others. None if it may; also if it cannot be
    examined, since opening it tells what is wrong."""
    owner = os.geteuid() if user is None else user
    for path in _with_parents(directory):
        try:
            found = path.stat()
        except OSError:
            continue  # it is yet to be made
        is_itself = path == directory
        if found.st_uid != owner and (is_itself or not _is_of_system(found.st_uid)):
            whose = f"belongs to {user_name(found.st_uid)}"
            return (f"it {whose}" if is_itself else f"{path} {whose}"), ADVICE
        if not is_itself and _is_writable_by_others(found):  # its own permissions are narrowed
            return f"other users can write to {path}", OPEN_ADVICE
    return None


def _with_parents(directory: Path) -> Iterator[Path]:
    """Yield a directory and those above it, by its name and by that without symbolic links."""
    yield directory
    yield from Path(os.path.abspath(directory)).parents
    yield from Path(os.path.realpath(directory)).parents


def _is_of_system(uid: int) -> bool:
    """Return whether a user is root; in a user namespace without root, the one that the kernel shows."""
    if uid == 0:
        return True
    with suppress(OSError, ValueError):
        lines = Path("/proc/self/uid_map").read_text().splitlines()
        mapped = [[int(number) for number in line.split()] for line in lines]
        shown = int(Path("/proc/sys/kernel/overflowuid").read_text())
        return uid == shown and not any(begin <= uid < begin + count for begin, _, count in mapped)
    return False


def _is_writable_by_others(found: os.stat_result) -> bool:
    """Return whether users other than the owner can replace what is in a directory. A group of one's own, as
    most distributions make, is nobody else."""
    if found.st_mode & stat.S_ISVTX:
        return False
    by_group = found.st_mode & stat.S_IWGRP and found.st_gid not in (0, os.getegid())
    return bool(found.st_mode & stat.S_IWOTH or by_group)


def check_owner(directory: Path) -> None:
    """Raise `StartFailed` if a directory may not hold this user's data, see `problem_of`."""
    if found := problem_of(directory):
        raise StartFailed(str(directory), ": ".join(found))


def make_private(directory: Path) -> None:
    """Create the directory if it is missing, for its owner alone. Raises `StartFailed` if it, or one above
    it, belongs to another user or can be written by others, `OSError`."""
    check_owner(directory)
    for path in reversed(directory.parents):  # else those above it would be open to a wide umask
        if not path.exists():
            path.mkdir(mode=0o700, exist_ok=True)
    directory.mkdir(mode=0o700, exist_ok=True)
    check_owner(directory)
    if directory.stat().st_mode & 0o077:
        directory.chmod(0o700)  # it existed with wider permissions: stored texts are private


def user_name(uid: int) -> str:
    """Return the name of a user, or the number of one without a name.

    >>> user_name(0)
    'root'
    """
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"user {uid}"
