"""The owner, group and mode of a file that replaces another."""

from __future__ import annotations

import os
import stat
from contextlib import suppress


def keep_permissions(file: int, old: os.stat_result) -> None:
    """Give `file` the owner, group and mode of `old`, as far as the system allows.

    setuid and setgid are dropped, as the kernel drops them when a file is written to.
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
        # The rights of the old group are not those of another one: it gets what everybody has.
        mode = mode & 0o707 | (mode & 0o007) << 3
    if stat.S_IMODE(new.st_mode) != mode:
        os.fchmod(file, mode)
