"""The directory of the embedded server and of the worker that `fdstore up` starts. It belongs to one user:
the files that another one, such as root by `sudo`, leaves in it would lock its owner out."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

from fdstore.errors import StartFailed

ADVICE = "run this as that user, or name a directory of yours in FDSTORE_DATA_DIR"


def other_owner(directory: Path) -> str | None:
    """Return the user to whom a directory belongs, if that is another one; None also if it does not exist."""
    try:
        owner = directory.stat().st_uid
    except OSError:
        return None  # opening it tells what is wrong
    return None if owner == os.geteuid() else user_name(owner)


def check_owner(directory: Path) -> None:
    """Raise `StartFailed` if a directory belongs to another user."""
    if owner := other_owner(directory):
        raise StartFailed(str(directory), f"it belongs to {owner}: {ADVICE}")


def make_private(directory: Path) -> None:
    """Create the directory if it is missing, for its owner alone. Raises `StartFailed` if it belongs to
    another user, `OSError`."""
    directory.mkdir(mode=0o700, parents=True, exist_ok=True)
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
