"""Open files to store (a path or an open binary file), and decode other encodings than UTF-8."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

from fdstore.errors import InvalidArgument, NotEncoded, PathRefused, TargetMissing
from fdstore.files.paths import Root, locate, require_regular
from fdstore.text.encodings import HEAD_BYTES, make_decoder
from fdstore.text.paging import DecodeErrors, encode


@contextmanager
def open_source(file: str | os.PathLike[str] | BinaryIO) -> Iterator[BinaryIO]:
    """Open a path for reading bytes, and close it afterwards; yield an open file as it is.

    Raises `TargetMissing`, `PathRefused` (a directory, or not allowed), `InvalidArgument`.
    """
    if not isinstance(file, (str, os.PathLike)):
        if not hasattr(file, "read"):
            raise InvalidArgument("file", f"a path or a binary file is needed, not {type(file).__name__}")
        yield file
        return
    with _open(os.fspath(file)) as binary:
        if stat.S_ISDIR(os.fstat(binary.fileno()).st_mode):
            raise PathRefused(os.fspath(file), "it is a directory")
        yield binary


def _open(path: str) -> BinaryIO:
    try:
        return open(path, "rb")
    except FileNotFoundError as error:
        raise TargetMissing(path, "give the path of a file that is there") from error
    except (OSError, ValueError) as error:
        problem = getattr(error, "strerror", None) or str(error)
        raise PathRefused(path, problem.lower()) from error


def open_below(path: str, root: str | Root | None) -> int:
    """Open a regular file for reading and return its handle. With a root the path must stay below it, follow
    no link and have no hidden component. Never blocks: a FIFO, a device or a socket is refused.

    Raises `TargetMissing`, `PathRefused`.
    """
    try:
        directory, name = locate(path, root)
        try:
            # checked first to word the refusal and to open no device; O_NONBLOCK in case it becomes a FIFO
            require_regular(path, os.stat(name, dir_fd=directory, follow_symlinks=False))
            flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (os.O_NOFOLLOW if root else 0)
            handle = os.open(name, flags, dir_fd=directory)
        finally:
            os.close(directory)
    except FileNotFoundError as error:
        raise TargetMissing(path, "give the path of a file that is there") from error
    except OSError as error:
        raise PathRefused(path, (error.strerror or str(error)).lower()) from error
    try:
        require_regular(path, os.fstat(handle))
    except BaseException:
        os.close(handle)
        raise
    return handle


def next_block(file: BinaryIO, size: int) -> bytes:
    """Read up to `size` bytes; b"" at the end of the file.

    Raises `PathRefused` if reading fails, `InvalidArgument` if the file does not return bytes.
    """
    try:
        block = file.read(size)
    except OSError as error:
        raise PathRefused(
            source_name(file), f"reading it failed: {error.strerror or error}".lower()
        ) from error
    if not isinstance(block, bytes):
        raise InvalidArgument("file", 'a file opened in binary mode ("rb") is needed')
    return block


class ReadAhead:
    """A binary file whose first bytes are read ahead: `head` has up to `size` bytes; `ended` tells whether it
    is all of the file. The end is read once: after Ctrl-D, a terminal would give more."""

    def __init__(self, file: BinaryIO, size: int) -> None:
        self.name = getattr(file, "name", None)
        self.ended = False
        self._file = file
        self.head = b""
        while len(self.head) < size and not self.ended:
            self.head += self._next(size - len(self.head))
        self._unread = self.head

    def read(self, size: int) -> bytes:
        """Read the next bytes, the first time all of `head`; b"" at the end."""
        block, self._unread = self._unread, b""
        return block or self._next(size)

    def _next(self, size: int) -> bytes:
        block = b"" if self.ended else next_block(self._file, size)
        self.ended = not block
        return block


class TextFile:
    """A text file in any encoding, read as UTF-8. `head` holds the first bytes of the file itself.

    Without an encoding its bytes are passed on unchanged; with one, `read` raises `NotEncoded` for invalid
    bytes unless `errors` is "backslashreplace". `unread` are first bytes of the file that were read before.
    """

    def __init__(
        self,
        file: BinaryIO,
        encoding: str | None = None,
        errors: DecodeErrors = "strict",
        *,
        unread: bytes = b"",
    ) -> None:
        self.name = source_name(file)
        self.head = b""
        self._file = file
        self._unread = unread
        self._encoding = encoding
        self._decoder = None if encoding is None else make_decoder(encoding, errors)
        self._bytes_read = 0

    def read(self, size: int) -> bytes:
        """Read the next bytes; b"" at the end. With an encoding, `size` counts bytes of the file."""
        return self._next(lambda: next_block(self._file, size))

    def read_now(self, size: int) -> bytes:
        """Read as soon as any bytes are available, directly from the file descriptor: nothing may have been
        read through a buffer before."""
        return self._next(lambda: os.read(self._file.fileno(), size))

    def _next(self, read: Callable[[], bytes]) -> bytes:
        while True:
            block, self._unread = self._unread or read(), b""
            if len(self.head) < HEAD_BYTES:
                self.head += block[: HEAD_BYTES - len(self.head)]
            data = block if self._decoder is None else self._decoded(block)
            if data or not block:
                return data

    def _decoded(self, block: bytes) -> bytes:
        assert self._decoder is not None
        assert self._encoding is not None
        kept = len(self._decoder.getstate()[0])
        try:
            text = self._decoder.decode(block, final=not block)
        except UnicodeDecodeError as error:
            position = self._bytes_read - kept + error.start + 1
            raise NotEncoded(self._encoding, position, error.reason) from error
        except UnicodeError as error:
            raise NotEncoded(self._encoding, self._bytes_read - kept + 1, str(error)) from error
        self._bytes_read += len(block)
        return encode(text)


def source_name(file: str | os.PathLike[str] | BinaryIO) -> str:
    """Return the source of a descriptor stored from a file: the file's bare name.

    >>> source_name("/var/log/syslog")
    'syslog'
    """
    path = file if isinstance(file, (str, os.PathLike)) else getattr(file, "name", None)
    name = Path(path).name if isinstance(path, (str, os.PathLike)) else ""
    # a file name may contain bytes that are not UTF-8
    return name.encode("utf-8", "backslashreplace").decode("utf-8")[:200] or "file"
