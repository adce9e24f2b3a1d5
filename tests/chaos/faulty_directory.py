"""A directory of cold contents that is full, read-only, or changed by somebody else.

    full(), read_only()               for the block, no write succeeds
    objects(), leftovers()            the files of objects, and those of unfinished uploads
    truncate, overwrite, lead_to      what somebody does to one of them

Root may write into any directory and has no quota, so its directory is a small file system of its own, where
the machine allows to mount one (`own_disk`). Where it does not, a full disk is a limit on the size of files
of this process, and a read-only directory one without the permission to write, which root does not heed.
"""

from __future__ import annotations

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tests.cold_contents import objects_in

DISK = "64m"
PARTIAL = "#"
"""In the names of files that an upload has not finished."""


def _run(*command: str | Path) -> bool:
    return subprocess.run(list(map(str, command)), capture_output=True, check=False).returncode == 0


class FaultyDirectory:
    """The directory `path`, whose disk is its own if `is_mounted`."""

    def __init__(self, path: Path, is_mounted: bool) -> None:
        self.path, self.is_mounted = path, is_mounted
        self.url = f"file://{path}"

    def objects(self) -> list[Path]:
        """Return the files, without those of unfinished uploads, in order of their names."""
        return [each for each in objects_in(self.path) if PARTIAL not in each.name]

    def leftovers(self) -> list[Path]:
        """Return the files of unfinished uploads."""
        return [each for each in self.path.rglob("*") if each.is_file() and PARTIAL in each.name]

    @contextmanager
    def full(self) -> Iterator[None]:
        """Have the disk full during the block."""
        if not self.is_mounted:
            usual = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (4096, usual[1]))
            try:
                yield
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, usual)
            return
        ballast = self.path / f"{PARTIAL}ballast"
        free = os.statvfs(self.path)
        with ballast.open("wb") as file:
            os.posix_fallocate(file.fileno(), 0, free.f_bavail * free.f_frsize)
        try:
            yield
        finally:
            ballast.unlink()

    @contextmanager
    def read_only(self) -> Iterator[None]:
        """Have nothing be written in the directory during the block."""
        if self.is_mounted:
            assert _run("mount", "-o", "remount,ro", self.path)
        else:
            assert os.getuid() != 0, "root writes where it may not, and may not mount here"
            self.path.chmod(0o555)
        try:
            yield
        finally:
            if self.is_mounted:
                assert _run("mount", "-o", "remount,rw", self.path)
            else:
                self.path.chmod(0o755)

    def truncate(self, path: Path, size: int) -> None:
        """Cut an object."""
        os.truncate(path, size)

    def overwrite(self, path: Path, data: bytes) -> None:
        """Replace an object by another one of the same name, as an editor or a restored backup does."""
        new = path.with_name(f"{PARTIAL}new")
        new.write_bytes(data)
        new.replace(path)

    def lead_to(self, path: Path, target: Path) -> None:
        """Replace an object by a symbolic link."""
        path.unlink()
        path.symlink_to(target)


@contextmanager
def own_disk(path: Path) -> Iterator[FaultyDirectory]:
    """Make a directory, on a disk of its own where that is possible."""
    path.mkdir()
    is_mounted = os.getuid() == 0 and _run("mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", path)
    try:
        yield FaultyDirectory(path, is_mounted)
    finally:
        if is_mounted:
            assert _run("umount", "-l", path)
