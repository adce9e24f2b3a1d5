"""A content as a binary file, asynchronous; `_sync.byte_file` is the blocking one."""

from __future__ import annotations

import io
import operator
from collections.abc import Awaitable, Callable
from types import TracebackType
from typing import Any

from fdstore.client.byte_file import READ_AHEAD, position_after_seek
from fdstore.store.contents.byte_reading import ByteSource
from fdstore.store.process_handle import ProcessHandle

Run = Callable[[Any], Awaitable[Any]]


class ByteFile:
    """A read-only binary file over a content; made by `Process.open_bytes`."""

    def __init__(self, run: Run, source: ByteSource) -> None:
        self._run = run
        self._source = source
        self._position = 0
        self._ahead = b""
        self._ahead_at = 0
        self.closed = False

    async def read(self, size: int = -1) -> bytes:
        """Return the next `size` bytes, fewer at the end; all that follow for -1 or None."""
        self._check_open()
        if size is None or size < 0:
            found: bytes = await self._run(self._source.read(self._position, None))
        else:
            found = await self._buffered(size)
        self._position += len(found)
        return found

    async def _buffered(self, size: int) -> bytes:
        skipped = self._position - self._ahead_at
        known = self._ahead[skipped : skipped + size] if skipped >= 0 else b""
        if len(known) < size:
            start = self._position + len(known)
            more: bytes = await self._run(self._source.read(start, max(size - len(known), READ_AHEAD)))
            self._ahead, self._ahead_at = known + more, self._position
        return self._ahead[self._position - self._ahead_at :][:size]

    async def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        """Move to a position in bytes from the start, from the current position (`whence=1`) or from the end
        (`whence=2`), and return it. Positions past the end are allowed."""
        self._check_open()
        offset = operator.index(offset)
        size = await self._run(self._source.size()) if whence == io.SEEK_END else 0
        self._position = position_after_seek(self._position, size, offset, whence)
        return self._position

    def tell(self) -> int:
        """Return the position in bytes from the start."""
        self._check_open()
        return self._position

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def writable(self) -> bool:
        return False

    async def close(self) -> None:
        """Close the file. Reading it then raises `ValueError`, as of any file."""
        self.closed, self._ahead = True, b""

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file.")

    async def __aenter__(self) -> ByteFile:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()


async def open_byte_file(run: Run, handle: ProcessHandle, fd: str) -> ByteFile:
    """Open the content of a descriptor. Raises `NotFound`."""
    source = ByteSource(handle, fd)
    await run(source.size())
    return ByteFile(run, source)
