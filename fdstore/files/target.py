"""Writing a file: whole or not at all, in bounded memory, and never outside a root.

The text goes into a temporary file next to the target. `commit` makes it durable and puts it in
place in one step; until then, and after any failure, what was there before is untouched:

    open the directory -> look -> temporary file -> write... -> fsync -> look again -> rename

Every step works on the handle of that directory and one bare name (see `paths`), never on the path
again: a directory swapped for a link while the write goes on leads nowhere else.

A process that is killed outright can leave one hidden `.fdstore-*.tmp` file behind, nothing else. Who
kept its `mark` finds out what became of it, and removes that file.
Access lists and extended attributes of a replaced file are not carried over.
"""

from __future__ import annotations

import errno
import fcntl
import os
import secrets
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from typing import Literal, TypeAlias

import msgspec

from fdstore.errors import InvalidArgument, PathRefused, TargetExists, TargetMissing, WriteFailed, quoted
from fdstore.files.paths import Root, locate, require_regular
from fdstore.files.permissions import keep_permissions

BLOCK = 1024 * 1024
"""How many bytes of an old file are in memory at once while it is copied for an append."""

_NEW_FILE = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
# O_NONBLOCK: should the file have become a FIFO since it was looked at, do not wait for its writer.
_OLD_FILE = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC

_REFUSED = {errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG, errno.ELOOP, errno.ENOTDIR}
_NO_HARD_LINKS = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}


Version: TypeAlias = tuple[int, int, int, int]
"""What differs when a file was replaced or written to: device, inode, size, time of the last write."""


class Mark(msgspec.Struct, frozen=True):
    """What tells a target from all others, before it is in place and after: a rename keeps the inode.
    `stood` is the file that was there when it was begun, which an append copied; None if there was none."""

    temporary: str
    device: int
    inode: int
    size_bytes: int
    stood: Version | None


class Target:
    """One file being written; nothing of it shows under its name before `commit`.

        with Target("report.txt", exist_ok=False) as target:
            for block in blocks:
                target.write(block)
            size_bytes = target.commit()

    mode: "write" replaces the content, "append" keeps it and adds to it.
    create, exist_ok: what to do about a file that is not there, or is (`TargetMissing`, `TargetExists`);
        both hold at `commit` too, whatever others did to the file meanwhile.
    root: the path must be a relative one that stays below this directory (which may itself be reached
        through a link); no link is followed on the way or replaced at the end, and no name in it is
        hidden (`PathRefused`).
        Without a root any path will do, and of a link it is the file it leads to that is replaced.

    Directories are never made, but a root that says so. A replaced file keeps its mode, and its owner and
    group where the system allows that; a new one gets what the umask leaves of 0666.
    """

    path: str
    """The path as the caller gave it."""

    _directory: int
    _name: str
    _temporary: str
    _file: int
    _old: int | None
    """In append mode, the file whose text was copied: kept open for `commit` to lock."""
    _stood: os.stat_result | None
    """The file that was there at the start; in append mode as it was copied."""
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
        given: object = os.fspath(path) if isinstance(path, os.PathLike) else path
        if not isinstance(given, str):
            raise InvalidArgument("file_path", f"must be a path as text, not {type(given).__name__}")
        if mode not in ("write", "append"):
            raise InvalidArgument("mode", 'must be "write" or "append"')
        self.path = given
        self._append = mode == "append"
        self._create, self._exist_ok = create, exist_ok
        self._root = root if root is None or isinstance(root, Root) else os.fspath(root)
        self._old = None
        self._held: ExitStack | None = None

    def __enter__(self) -> Target:
        """Check the path and what stands there, and open the temporary file.

        Raises `PathRefused`, `TargetExists`, `TargetMissing`, `WriteFailed`.
        """
        if self._held is not None:
            raise ValueError("this target is open already")
        with _os_errors_of(self.path), ExitStack() as held:
            self._directory, self._name = locate(self.path, self._root)
            held.callback(_close, self._directory)
            present = self._look()

            # Entered before the file is made: an interrupt between the two must not leave it behind.
            self._temporary = f".fdstore-{secrets.token_hex(12)}.tmp"
            held.callback(self._unlink_temporary)
            # What is to replace a private file is private from its first byte.
            permissions = 0o666 if present is None else 0o600
            self._file = os.open(self._temporary, _NEW_FILE, permissions, dir_fd=self._directory)
            held.callback(_close, self._file)

            self._old, self._stood, self._is_durable = None, present, False
            if present is not None:
                keep_permissions(self._file, present)
                if self._append:
                    self._old = os.open(self._name, _OLD_FILE, dir_fd=self._directory)
                    held.callback(_close, self._old)
                    self._stood = os.fstat(self._old)
                    require_regular(self.path, self._stood)
                    while block := os.read(self._old, BLOCK):
                        _write_all(self._file, block)
            self._held = held.pop_all()
        return self

    def __exit__(self, *error: object) -> None:
        self._release()

    def write(self, data: bytes) -> None:
        """Add `data`. After a `WriteFailed` the target is closed: half a text cannot be committed."""
        self._require_open()
        self._is_durable = False
        try:
            with _os_errors_of(self.path):
                _write_all(self._file, data)
        except BaseException:
            self._release()
            raise

    def mark(self) -> Mark:
        """Make what was written durable and return what this target will be known by: to be kept before the
        commit by a caller that wants to ask, should it be lost there, what became of it. Flushing may take
        long; between mark and commit nothing does. Raises `WriteFailed`."""
        self._require_open()
        with _os_errors_of(self.path):
            self._flush()
            found = os.fstat(self._file)
        stood = None if self._stood is None else _version(self._stood)
        return Mark(self._temporary, found.st_dev, found.st_ino, found.st_size, stood)

    def became(self, earlier: Mark) -> bool | None:
        """What became of an earlier target of this path, by its mark: True, it was put in place. False, it
        was not and never will be. None: there is no telling, since others changed the file."""
        with _os_errors_of(self.path), ExitStack() as held:
            directory, name = locate(self.path, self._root)
            held.callback(_close, directory)
            # first, so that a writer that lives, and has not come to it yet, cannot put it in place later
            stopped = _unlinked(earlier.temporary, directory)
            try:
                found = os.stat(name, dir_fd=directory, follow_symlinks=False)
            except FileNotFoundError:
                return False if stopped or earlier.stood is None else None
        if (found.st_dev, found.st_ino) == (earlier.device, earlier.inode):
            return True
        return False if stopped or _version(found) == earlier.stood else None

    def commit(self) -> int:
        """Put the file in place and return its size in bytes, all of it; afterwards the target is closed.

        Raises `TargetExists` or `TargetMissing` when the file came or went since the start, `WriteFailed`
        when it changed under an append or the system refuses; then it is left as it is.
        """
        self._require_open()
        try:
            with _os_errors_of(self.path):
                self._flush()
                size_bytes = os.fstat(self._file).st_size
                self._put_in_place()
                # The text is in place and whole. If the directory cannot be flushed, a power cut may bring
                # the old file back, whole as well; to report "changed nothing" here would be wrong.
                with suppress(OSError):
                    self._flush_directory()
                return size_bytes
        finally:
            self._release()

    def _look(self) -> os.stat_result | None:
        """What stands at the name now, if the caller's `create` and `exist_ok` allow it."""
        try:
            found = os.stat(self._name, dir_fd=self._directory, follow_symlinks=False)
        except FileNotFoundError:
            if not self._create:
                raise TargetMissing(self.path) from None
            return None
        require_regular(self.path, found)
        if not self._exist_ok:
            raise TargetExists(self.path)
        # A rename needs only the directory's permission: without this a file that its owner
        # protected against writing would be replaced.
        if not os.access(self._name, os.W_OK, dir_fd=self._directory):
            raise PathRefused(self.path, "it is write-protected")
        return found

    def _put_in_place(self) -> None:
        if self._old is not None:
            self._lock(self._old)
        present = self._look()
        if self._old is not None:
            # The temporary file holds the old text as it was: putting it over a newer one would lose that.
            if present is None or self._stood is None or _version(present) != _version(self._stood):
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
        """Keep two appenders on one machine from passing the look together, where one would undo the other.

        Whoever holds the lock is about to replace this very file, so there is nothing to wait for.
        """
        try:
            fcntl.flock(old, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            raise self._changed() from error
        except OSError:
            return  # a file system without locks: the look alone has to do

    def _rename(self) -> None:
        os.rename(self._temporary, self._name, src_dir_fd=self._directory, dst_dir_fd=self._directory)

    def _link(self) -> None:
        """Put the file where none is, or raise FileExistsError: a rename would replace a newcomer."""
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
            # A file system without hard links: an empty file claims the name, as exclusively.
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
        return WriteFailed(quoted(self.path), "somebody else changed the file meanwhile; append again")

    def _require_open(self) -> None:
        if self._held is None:
            raise ValueError("this target is not open: it is used in a `with` block, up to its commit")

    def _release(self) -> None:
        held, self._held = self._held, None
        if held is not None:
            held.close()

    def _unlink_temporary(self) -> None:
        # After a rename there is none; and no failure here may hide the one that led here.
        with suppress(OSError):
            os.unlink(self._temporary, dir_fd=self._directory)


def _unlinked(name: str, directory: int) -> bool:
    """Whether there was such a file to remove."""
    try:
        os.unlink(name, dir_fd=directory)
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
    # What was written is safe by fsync or is thrown away: there is nothing left that closing could tell.
    with suppress(OSError):
        os.close(fd)


@contextmanager
def _os_errors_of(path: str) -> Iterator[None]:
    """Translate what the system says: a path that may not be used, or a write that did not happen."""
    try:
        yield
    except OSError as error:
        problem = error.strerror or type(error).__name__
        if error.errno in _REFUSED:
            raise PathRefused(path, problem.lower()) from error
        raise WriteFailed(quoted(path), problem.lower()) from error
