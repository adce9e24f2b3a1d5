"""Read bytes of a content by their offset: of bytes as they are, of text its UTF-8.

The pages of bytes are all of one size, so a position needs no index. Of text, one script finds the pages that
hold a window; so both cost two round trips, whatever the size of the content.
"""

from __future__ import annotations

from fdstore.errors import Conflict, InvalidArgument, quoted
from fdstore.store.content_info import ContentInfo
from fdstore.store.contents.locating import AHEAD_IN_MEMORY, fetch
from fdstore.store.contents.resolving import reads_content, resolve, retry_if_gone
from fdstore.store.process_handle import ProcessHandle
from fdstore.text.numbers import MAX_INTEGER
from fdstore.wire.operation import Operation


def read_bytes(
    handle: ProcessHandle, fd: str, offset: int = 0, length: int | None = None
) -> Operation[tuple[ContentInfo, bytes]]:
    """Return a content and up to `length` of its bytes (None: all) from `offset`, counted from 0;
    none past its end, as of a file. Two round trips; one for bytes that are known. Of more than about
    30 MB, one more for each further 30 MB. Raises `NotFound`, `InvalidArgument`."""
    first = check_count("offset", offset)
    last = MAX_INTEGER if length is None else first + check_count("length", length) - 1
    return retry_if_gone(handle, fd, lambda: _read(handle, fd, first, last))


def check_count(name: str, value: object) -> int:
    """Return a valid number of bytes. Raises `InvalidArgument`."""
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= MAX_INTEGER:
        what = value if isinstance(value, int) else quoted(value)
        raise InvalidArgument(name, f"a whole number of bytes, 0 or more, is needed, not {what}")
    return value


@reads_content
def _read(handle: ProcessHandle, fd: str, first: int, last: int) -> Operation[tuple[ContentInfo, bytes]]:
    info, located = handle.known(fd), None
    if info is None or info.descriptor.kind != "bytes":
        info, located = yield from resolve(handle, fd, unit="bytes", first=first, last=max(first, last))
    d = info.descriptor
    last = min(last, d.bytes - 1)
    if last < first:
        return info, b""
    if d.kind == "bytes":
        page, last_page = first // d.page_size + 1, last // d.page_size + 1
        before = (page - 1) * d.page_size
    else:
        page, before, last_page = map(int, (located or b"").split())
    pages: list[bytes] = []

    def take(run: list[bytes]) -> Operation[None]:
        pages.extend(run)
        return
        yield  # makes this a generator

    yield from fetch(info, range(page, last_page + 1), take, AHEAD_IN_MEMORY)
    skipped = first - before
    data = b"".join(pages)[skipped : skipped + last - first + 1]
    if len(data) != last - first + 1:
        raise ValueError(f"its pages have fewer than its {d.bytes} bytes")
    return info, data


class ByteSource:
    """The bytes of one content: what a name meant at the first read, even if it means another one later."""

    def __init__(self, handle: ProcessHandle, fd: str) -> None:
        self._handle = handle
        self._fd = fd
        self._content = ""

    def read(self, offset: int, length: int | None) -> Operation[bytes]:
        """As `read_bytes`. Raises `Conflict` if the name means another content by now."""
        info, found = yield from read_bytes(self._handle, self._fd, offset, length)
        self._pin(info)
        return found

    def size(self) -> Operation[int]:
        """Return the current size in bytes."""
        info, _ = yield from read_bytes(self._handle, self._fd, 0, 0)
        self._pin(info)
        return info.descriptor.bytes

    def _pin(self, info: ContentInfo) -> None:
        self._content = self._content or info.content
        if info.content != self._content:
            raise Conflict(self._fd, "other")
