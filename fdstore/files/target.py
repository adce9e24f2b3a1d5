"""Write a file atomically, in bounded memory, and never outside a root.

The text is written to a temporary file next to the target. `commit` makes it durable and renames it; until
then, and after any failure, the old file is untouched:

    open the directory -> check -> temporary file -> write... -> fsync -> check again -> rename

Every step uses the handle of that directory and one bare name (see `paths`), never the path again: replacing
a directory by a link during the write redirects nothing.

A killed process can leave one hidden `.fdstore-*.tmp` file behind and nothing else. With its `mark` a later
process can find out whether the file was put in place, and remove the temporary one. A mark comes from Redis,
where others may write: only a name of this form is accepted, and only the file that the mark identifies is
removed.
Access control lists and extended attributes of a replaced file are not preserved.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
import secrets
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Literal, TypeAlias

import msgspec

from fdstore.errors import InvalidArgument, PathRefused, TargetExists, TargetMissing, WriteFailed, quoted
from fdstore.files.paths import Root, locate, require_regular
from fdstore.model.flags import check_flag

BLOCK_BYTES = 1024 * 1024
"""Block size, in bytes, for copying the old file of an append."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: if the file has become a FIFO since the check, do not wait for its writer.
_OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR}
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}

_TEMPORARY = re.compile(r"\.fdstore-[0-9a-f]{24}\.tmp", re.ASCII)
"""The whole name of a temporary file."""

Version: TypeAlias = tuple[int, int, int, int]
"""Device, inode, size and mtime in ns: they differ if a file was replaced or written to."""


class TargetIdentity(msgspec.Struct, frozen=True):
    """Identity of a target, before and after it is put in place: a rename keeps the inode. `stood` is the
    version of the file that it replaces (which an append copied); None if there was none. Raises `ValueError`
    for a name that no temporary file has."""

    temporary: str
    device: int
    inode: int
    size_bytes: int
    stood: Version | None

    def __post_init__(self) -> None:
        if not _TEMPORARY.fullmatch(self.temporary):
            raise ValueError("the name is not of a temporary file")


class Target:
    """A file being written; it appears under its name at `commit`.

        with Target("report.txt", exist_ok=False) as target:
            for block in blocks:
                target.write(block)
            size_bytes = target.commit()

    mode: "write" replaces the content, "append" keeps it and adds to it.
    create, exist_ok: whether the file may be absent, or present (`TargetMissing`, `TargetExists`); checked at
        the start and again at `commit`.
    root: the path must be relative and stay below this directory (whose own path may contain links); no link
        is followed on the way or replaced at the end, and no component may be hidden (`PathRefused`).
        Without a root any path is accepted, and the target of a link is replaced, not the link.

    Directories are never created, except a root with `make`. A replaced file keeps its mode, and its owner
    and group where the system permits; a new one gets 0666 minus the umask.
    """

    path: str
    """The path as the caller gave it."""

    _directory: int
    _name: str
    _temporary: str
    _file: int
    _old: int | None
    """In append mode, the file that was copied: kept open for `commit` to lock."""
    _before: os.stat_result | None
    """The existing file at the start; in append mode, when it was copied."""
    _is_durable: bool

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        mode: Literal["write", "append"] = "write",
        create: bool = True,
        exist_ok: bool = True,
        root: str | os.PathLike[str] | Root | None = None,
    ) -> None:
        name: object = os.fspath(path) if isinstance(path, os.PathLike) else path
        if not isinstance(name, str):
            raise InvalidArgument("file_path", f"must be a path as text, not {type(name).__name__}")
        if mode not in ("write", "append"):
            raise InvalidArgument("mode", 'must be "write" or "append"')
        self.path = name
        self._append = mode == "append"
        self._create, self._exist_ok = check_flag("create", create), check_flag("exist_ok", exist_ok)
        self._root = root if root is None or isinstance(root, Root) else os.fspath(root)
        self._old = None
        self._resources: ExitStack | None = None

    def __enter__(self) -> Target:
        """Check the path and the existing file, and open the temporary file.

        Raises `PathRefused`, `TargetExists`, `TargetMissing`, `WriteFailed`.
        """
        if self._resources is not None:
            raise ValueError("this target is open already")
        with _translate_os_errors(self.path), ExitStack() as resources:
            self._directory, self._name = locate(self.path, self._root)
            resources.callback(_close, self._directory)
            present = self._check_present()

            # Registered before the file is created: an interrupt in between must not leave it behind.
            self._temporary = f".fdstore-{secrets.token_hex(12)}.tmp"
            resources.callback(self._unlink_temporary)
            # The replacement of a private file must be private from its first byte.
            permissions = 0o666 if present is None else 0o600
            self._file = os.open(self._temporary, _NEW_FILE, permissions, dir_fd=self._directory)
            resources.callback(_close, self._file)

            self._old, self._before, self._is_durable = None, present, False
            if present is not None:
                _keep_permissions(self._file, present)
                if self._append:
                    self._old = os.open(self._name, _OLD_FILE, dir_fd=self._directory)
                    resources.callback(_close, self._old)
                    self._before = os.fstat(self._old)
                    require_regular(self.path, self._before)
                    while block := os.read(self._old, BLOCK_BYTES):
                        _write_all(self._file, block)
            self._resources = resources.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._release()

    def write(self, data: bytes) -> None:
        """Append `data`. A `WriteFailed` closes the target, so a partial text cannot be committed."""
        self._require_open()
        self._is_durable = False
        try:
            with _translate_os_errors(self.path):
                _write_all(self._file, data)
        except BaseException:
            self._release()
            raise

    def mark(self) -> TargetIdentity:
        """Make the text durable and return the target's identity. A caller stores it before `commit`; if it
        dies there, the next one passes it to `became`. The slow fsync is done here, so that little time
        passes between mark and commit. Raises `WriteFailed`."""
        self._require_open()
        with _translate_os_errors(self.path):
            self._flush()
            found = os.fstat(self._file)
        stood = None if self._before is None else _version(self._before)
        return TargetIdentity(self._temporary, found.st_dev, found.st_ino, found.st_size, stood)

    def was_committed(self, earlier: TargetIdentity) -> bool | None:
        """Return whether an earlier target of this path was put in place: True, or False if it was not and
        never will be. None: unknown, since others changed the file. Removes its temporary file."""
        with _translate_os_errors(self.path), ExitStack() as resources:
            directory, name = locate(self.path, self._root)
            resources.callback(_close, directory)
            # first, so that a live writer which has not committed yet cannot do so later
            stopped = _unlink_identified(earlier, directory)
            try:
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                return False if stopped or earlier.stood is None else None
        if (found.st_dev, found.st_ino) == (earlier.device, earlier.inode):
            return True
        return False if stopped or _version(found) == earlier.stood else None

    def commit(self) -> int:
        """Put the file in place, close the target, and return the size of the whole file in bytes.

        Raises `TargetExists` or `TargetMissing` if the file appeared or vanished since the start,
        `WriteFailed` if it changed during an append or the system refuses; the old file is then unchanged.
        """
        self._require_open()
        try:
            with _translate_os_errors(self.path):
                self._flush()
                size_bytes = os.fstat(self._file).st_size
                self._put_in_place()
                # The file is in place. If the directory cannot be flushed, a power cut may restore the old
                # file; but reporting "changed nothing" would be wrong.
                with suppress(OSError):
                    self._flush_directory()
                return size_bytes
        finally:
            self._release()

    def _check_present(self) -> os.stat_result | None:
        """Return the stat of the existing file or None. Raises if `create`, `exist_ok` or its type forbid
        it."""
        try:
            found = os.stat(self._name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            if not self._create:
                raise TargetMissing(self.path) from None
            return None
        require_regular(self.path, found)
        if not self._exist_ok:
            raise TargetExists(self.path)
        # A rename needs write permission on the directory only: without this check it would replace
        # write-protected files.
        if not os.access(self._name, os.W_OK, dir_fd=self._directory):
            raise PathRefused(self.path, "it is write-protected")
        return found

    def _put_in_place(self) -> None:
        if self._old is not None:
            self._lock(self._old)
        present = self._check_present()
        if self._old is not None:
            # The temporary file starts with a copy of the old text: replacing a newer one would lose data.
            if present is None or self._before is None or _version(present) != _version(self._before):
                raise self._changed()
            self._rename()
        elif self._append or not self._exist_ok:
            try:
                self._link()
            except FileExistsError as error:
                raise (self._changed() if self._exist_ok else TargetExists(self.path)) from error
        else:
            self._rename()

    def _lock(self, old: int) -> None:
        """Keep two appenders on one machine from passing the check together, where one would undo the other.

        The holder of the lock is about to replace this file, so waiting would be pointless.
        """
        try:
            fcntl.flock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise self._changed() from error
        except OSError:
            return  # a file system without locks: rely on the check alone

    def _rename(self) -> None:
        os.rename(self._temporary, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def _link(self) -> None:
        """Put the file in place, or raise FileExistsError if one exists: a rename would replace it."""
        try:
            os.link(
                self._temporary,
                self._name,
                src_dir_fd=self._directory,
                dst_dir_fd=self._directory,
                follow_symlinks=False,
            )
        except OSError as error:
            if error.errno not in _NO_HARD_LINKS:
                raise
            # A file system without hard links: reserve the name with an empty file, created with O_EXCL.
            os.close(os.open(self._name, _NEW_FILE, 0o600, dir_fd=self._directory))
            try:
                self._rename()
            except BaseException:
                os.unlink(self._name, dir_fd=self._directory)
                raise

    def _flush(self) -> None:
        if not self._is_durable:
            os.fsync(self._file)
            self._is_durable = True

    def _flush_directory(self) -> None:
        readable = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=self._directory)
        try:
            os.fsync(readable)
        finally:
            os.close(readable)

    def _changed(self) -> WriteFailed:
        return WriteFailed(quoted(self.path), "the file was changed meanwhile; append again")

    def _require_open(self) -> None:
        if self._resources is None:
            raise ValueError("this target is not open: it is used in a `with` block, up to its commit")

    def _release(self) -> None:
        resources, self._resources = self._resources, None
        if resources is not None:
            resources.close()

    def _unlink_temporary(self) -> None:
        # After a rename it does not exist; and a failure here must not mask an earlier one.
        with suppress(OSError):
            os.unlink(self._temporary, dir_fd=self._directory)


def _keep_permissions(file: int, old: os.stat_result) -> None:
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


def _unlink_identified(earlier: TargetIdentity, directory: int) -> bool:
    """Remove the temporary file of a target. Return False if it does not exist, or is another file."""
    try:
        found = os.stat(earlier.temporary, dir_fd=directory, follow_symlinks=False)
        if not stat.S_ISREG(found.st_mode) or (found.st_dev, found.st_ino) != (earlier.device, earlier.inode):
            return False
        os.unlink(earlier.temporary, dir_fd=directory)
    except FileNotFoundError:
        return False
    return True


def _version(found: os.stat_result) -> Version:
    return found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns


def _write_all(file: int, data: bytes) -> None:
    rest = memoryview(data)
    while rest:
        rest = rest[os.write(file, rest) :]


def _close(fd: int) -> None:
    # The data was either fsynced or is discarded, so an error of close says nothing new.
    with suppress(OSError):
        os.close(fd)


@contextmanager
def _translate_os_errors(path: str) -> Iterator[None]:
    """Translate an `OSError` to `PathRefused` or `WriteFailed`."""
    try:
        yield
    except OSError as error:
        problem = error.strerror or type(error).__name__
        if error.errno in _REFUSED:
            raise PathRefused(path, problem.lower()) from error
        raise WriteFailed(quoted(path), problem.lower()) from error
