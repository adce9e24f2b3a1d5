# Generated from fdstore/client/_async/byte_access.py by `make generate`: change that one.
"""The part of `Process` that reads bytes."""

from __future__ import annotations

from collections.abc import Iterator

from fdstore.client._sync.byte_file import ByteFile, open_byte_file
from fdstore.client._sync.process_base import ProcessBase
from fdstore.store.contents import byte_reading
from fdstore.store.streams.following import Follower, follow_bytes
from fdstore.text.selection import FdLike, fd_id


class ProcessBytes(ProcessBase):
    """Bytes: of contents that are bytes as they are, of text its UTF-8."""

    def read_bytes(self, fd: FdLike, offset: int = 0, length: int | None = None) -> bytes:
        r"""Return up to `length` bytes (None: all that follow) from `offset`, counted from 0; past the end
        b"", as of a file. At most two round trips for up to about 30 MB, whatever the size of the content,
        and little more than these bytes.

        Raises `NotFound`, `InvalidArgument`.

        >>> d = proc.create(b"\x89PNG...")
        >>> d.kind, d.media_type, proc.read_bytes(d.fd, 1, 3)
        ('bytes', 'application/octet-stream', b'PNG')
        """
        _, found = self._run(byte_reading.read_bytes(self.handle, fd_id(fd), offset, length))
        return found

    def follow_bytes(self, fd: FdLike, offset: int = 0) -> Iterator[bytes]:
        r"""Iterate over the bytes of a content from `offset`, counted from 0, and over what is appended until
        its end: of a stream of bytes as they are, of text its UTF-8. The pieces are as large as they come.

        Raises `StreamBroken` after the last stored byte of a broken stream, `PositionOutOfRange` for an
        offset beyond the end, `InvalidArgument`, `NotFound`.

        >>> with proc.open_stream() as out:
        ...     out.write(b"\x89PNG...")
        >>> for piece in proc.follow_bytes(out.fd, 1):
        ...     print(piece)
        b'PNG...'
        """
        first = byte_reading.check_count("offset", offset)
        return self._byte_pieces(follow_bytes(self.handle, fd_id(fd), first))

    def _byte_pieces(self, follower: Follower[bytes]) -> Iterator[bytes]:
        while not follower.ended:
            if piece := self._run(follower.more()):
                yield piece

    def open_bytes(self, fd: FdLike) -> ByteFile:
        r"""Open a content as a read-only binary file: `read`, `seek`, `tell`. It reads ahead, so that small
        reads cost few round trips. It never mixes two contents of a name.

        Raises `NotFound`; reading raises `Conflict` once the name means another content.

        >>> d = proc.ingest("build.log")
        >>> with proc.open_bytes(d.fd) as file:
        ...     position = file.seek(-23, 2)
        ...     file.read()
        b'line 5000 of the build\n'
        """
        return open_byte_file(self._run, self.handle, fd_id(fd))
