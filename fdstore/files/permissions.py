"""Preserve the owner, group and mode of a replaced file."""

from __future__ import annotations

import os
import stat
from contextlib import suppress


def keep_permissions(file: int, old: os.stat_result) -> None:
    """Copy the owner, group and mode of `old` to `file`, as far as the system permits.

    setuid and setgid are dropped, as the kernel does when a file is written to.
    """
    mode = stat.S_IMODE(old.st_mode) & 0o777
    new = os.fstat(file)
    if (new.st_uid, new.st_gid) != (old.st_uid, old.st_gid):
        with suppress(OSError):
            os.fchown(file, -1, old.st_gid)
        with suppress(OSError):
            os.fchown(file, old.st_uid, -1)
        new = os.fstat(file)
    if new.st_gid != old.st_gid:
        # The old group's permissions must not pass to another group: it gets those of others.
        mode = mode & 0o707 | (mode & 0o007) << 3
    if stat.S_IMODE(new.st_mode) != mode:
        os.fchmod(file, mode)
