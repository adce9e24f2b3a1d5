"""A content as a binary file, blocking; `_async.byte_file` is the asynchronous one."""

from __future__ import annotations

import io
from collections.abc import Callable
from typing import Any

from fdstore.client.byte_file import READ_AHEAD, position_after_seek
from fdstore.store.contents.byte_reading import ByteSource
from fdstore.store.process_handle import ProcessHandle

Run = Callable[[Any], Any]

ByteFile = io.BufferedReader
"""A read-only binary file over a content; made by `Process.open_bytes`."""


class _RawContent(io.RawIOBase):
    def __init__(self, run: Run, source: ByteSource) -> None:
        super().__init__()
        self._run = run
        self._source = source
        self._position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        view = memoryview(buffer).cast("B")
        found: bytes = self._run(self._source.read(self._position, len(view)))
        view[: len(found)] = found
        self._position += len(found)
        return len(found)

    def readall(self) -> bytes:
        found: bytes = self._run(self._source.read(self._position, None))
        self._position += len(found)
        return found

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        size = self._run(self._source.size()) if whence == io.SEEK_END else 0
        self._position = position_after_seek(self._position, size, offset, whence)
        return self._position

    def tell(self) -> int:
        return self._position


def open_byte_file(run: Run, handle: ProcessHandle, fd: str) -> ByteFile:
    """Open the content of a descriptor. Raises `NotFound`."""
    source = ByteSource(handle, fd)
    run(source.size())
    return io.BufferedReader(_RawContent(run, source), READ_AHEAD)
