"""Read compressed files: forwards, in bounded memory, and counted.

A compressed file can unpack to a million times its size. So the decompressors are asked for a chunk at a
time, and `Meter` counts their output and raises an error if it is far larger than the file. Each file is
read to its end once before anything is stored. A file that cannot be unpacked raises `Damaged`, which callers
turn into a message.
"""

from __future__ import annotations

import bz2
import lzma
import zlib
from collections.abc import Callable, Iterator
from importlib import import_module
from typing import Any, BinaryIO, NamedTuple, Protocol

from fdstore.errors import TooLarge
from fdstore.files.source import next_block
from fdstore.text.media_types import type_of_file
from fdstore.text.quantities import format_bound

CHUNK_BYTES = 65_536
"""How much is unpacked at a time."""

KEPT_BYTES = 1024
"""The bytes before the position that can be read again at no cost: `tarfile` goes back by one."""

LZMA_MEMORY = 256 << 20
"""The most memory that unpacking xz may take; `xz -9` needs a quarter of it."""

RATIO_FROM_BYTES = 1 << 20
"""What unpacks to less than this may have any ratio."""


class Damaged(Exception):
    """A packed file cannot be unpacked; the text says why."""


class UnpackLimits(NamedTuple):
    """What packed files may unpack to: members and bytes of all of them together, and how many times its own
    size each of them. `hint` says how to raise the limit of this name, a field."""

    members: int = 10_000
    bytes: int = 2 << 30
    ratio: int = 200
    hint: str = "unpack it yourself, and store what is needed of it"

    def advice(self, name: str) -> str:
        """Return what to do about the limit `name`."""
        return self.hint.format(name=name)


class Meter:
    """Counts what the packed files of one command unpack to. Raises `TooLarge` for a bomb."""

    def __init__(self, limits: UnpackLimits) -> None:
        self.limits = limits
        self.members = self.bytes = 0

    def of(self, shown: str, packed_bytes: int) -> FileMeter:
        """Return the meter of one packed file, of this name and size."""
        return FileMeter(self, shown, packed_bytes)


class FileMeter:
    """Counts what one packed file unpacks to."""

    def __init__(self, whole: Meter, shown: str, packed_bytes: int) -> None:
        self.shown = shown
        self.limits = whole.limits
        self._whole = whole
        self._packed_bytes = packed_bytes
        self._bytes = 0

    def add(self, count: int) -> None:
        """Count unpacked bytes."""
        self._bytes += count
        self._whole.bytes += count
        self._check(self._bytes, self._whole.bytes)

    def announce(self, count: int) -> None:
        """Check bytes that a directory promises, without counting them."""
        self._check(self._bytes + count, self._whole.bytes + count)

    def _check(self, own: int, together: int) -> None:
        limits, what = self.limits, f"{self.shown}, unpacked so far,"
        if together > limits.bytes:
            advice = f"{format_bound(limits.bytes)} for all packed files; {limits.advice('bytes')}"
            raise TooLarge(what, together, limits.bytes, advice, "bytes")
        allowed = limits.ratio * self._packed_bytes
        if own > max(RATIO_FROM_BYTES, allowed):
            advice = f"{limits.ratio} times its own size; {limits.advice('ratio')}"
            raise TooLarge(what, own, max(RATIO_FROM_BYTES, allowed), advice, "bytes")

    def add_member(self) -> None:
        """Count a member."""
        self._whole.members += 1
        if self._whole.members > self.limits.members:
            raise TooLarge(
                self.shown, self._whole.members, self.limits.members, self.limits.advice("members"), "members"
            )


class Decompressor(Protocol):
    """The interface of `bz2.BZ2Decompressor` and its like."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int = -1) -> bytes: ...


class Inflating:
    """zlib with the interface of the other decompressors."""

    def __init__(self, wbits: int) -> None:
        self._zlib = zlib.decompressobj(wbits)
        self.needs_input = True

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int = -1) -> bytes:
        unpacked = self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)
        self.needs_input = not self._zlib.unconsumed_tail and len(unpacked) < max_length
        return unpacked


def _zstd() -> Callable[[], Decompressor] | None:
    for module in ("compression.zstd", "backports.zstd"):
        try:
            found: Any = import_module(module)
        except ImportError:
            continue
        begin: Callable[[], Decompressor] = found.ZstdDecompressor
        return begin
    return None


class Format(NamedTuple):
    """A format of compressed files: the suffix of their names, and how to begin; None where this interpreter
    cannot unpack it."""

    suffix: str
    begin: Callable[[], Decompressor] | None


FORMATS: dict[str, Format] = {
    "application/gzip": Format(".gz", lambda: Inflating(31)),
    "application/x-bzip2": Format(".bz2", bz2.BZ2Decompressor),
    "application/x-xz": Format(".xz", lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=LZMA_MEMORY)),
    "application/zstd": Format(".zst", _zstd()),
}
"""Media type -> format of files that hold one compressed file."""

FAILURES = (zlib.error, lzma.LZMAError, EOFError, OSError, ValueError, OverflowError)
"""What decompressors raise for damaged data; that of zstd is a subclass of Exception alone."""


class Unpacked:
    """What a compressed file holds, as a file that is read forwards. `seek` back beyond `KEPT_BYTES` begins
    again at the beginning.

    meter  counts what is unpacked for the first time
    last   only one compressed stream is there, as in an archive; else others may follow, as `gzip` and `cat`
           make them, and `left_over` is the number of bytes at the end that are none
    """

    def __init__(
        self,
        packed: BinaryIO,
        begin: Callable[[], Decompressor],
        meter: FileMeter | None = None,
        *,
        last: bool = False,
    ) -> None:
        self.left_over = 0
        self._packed, self._begin, self._meter, self._last = packed, begin, meter, last
        self._start = packed.tell()
        self._counted = 0
        self._restart()

    def _restart(self) -> None:
        self._packed.seek(self._start)
        self._machine: Decompressor = self._begin()
        self._given = b""
        self._ended = False
        self._window, self._window_end, self._position = b"", 0, 0

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes, fewer only at the end."""
        parts: list[bytes] = []
        while size > 0:
            waiting = self._window_end - self._position
            if not waiting and not self._more():
                break
            waiting = self._window_end - self._position
            begin = len(self._window) - waiting
            part = self._window[begin : begin + size]
            self._position += len(part)
            size -= len(part)
            parts.append(part)
        return b"".join(parts)

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a position, counted from the beginning; at most to the end."""
        if whence != 0 or position < 0:
            raise Damaged("it leads to a position that it does not have")
        if position < self._window_end - len(self._window):
            self._restart()
        self._position = min(position, self._window_end)
        while self._position < position and self._more():
            self._position = min(position, self._window_end)
        return self._position

    def tell(self) -> int:
        """Return the position."""
        return self._position

    def _more(self) -> bool:
        """Unpack some more. Return whether there was any."""
        try:
            piece = self._next()
        except (Damaged, TooLarge):
            raise
        except FAILURES as error:
            raise Damaged(str(error)) from error
        except Exception as error:
            if type(error).__name__ != "ZstdError":
                raise
            raise Damaged(str(error)) from error
        self._window = self._window[-KEPT_BYTES:] + piece
        self._window_end += len(piece)
        if self._meter is not None and self._window_end > self._counted:
            self._meter.add(self._window_end - self._counted)
            self._counted = self._window_end
        return bool(piece)

    def _next(self) -> bytes:
        while not self._ended:
            data, self._given = self._given, b""
            if not data and self._machine.needs_input:
                data = next_block(self._packed, CHUNK_BYTES)
                if not data:
                    raise Damaged("it ends too soon")
            piece = self._machine.decompress(data, CHUNK_BYTES)
            if self._machine.eof:
                self._begin_next(self._machine.unused_data)
            if piece:
                return piece
        return b""

    def _begin_next(self, rest: bytes) -> None:
        """Go on with the compressed stream that follows, if one does."""
        self._ended = True
        if self._last:
            self.left_over = len(rest)
            return
        while not (rest := rest.lstrip(b"\0")):  # padding
            rest = next_block(self._packed, CHUNK_BYTES)
            if not rest:
                return
        while len(rest) < 16 and (block := next_block(self._packed, CHUNK_BYTES)):
            rest += block
        found = FORMATS.get(type_of_file(rest) or "")
        if found is not None and found.begin is self._begin:
            self._machine, self._given, self._ended = self._begin(), rest, False
            return
        self.left_over = len(rest)
        while block := next_block(self._packed, CHUNK_BYTES):
            self.left_over += len(block)


class PartOfFile:
    """A part of a seekable file, as a file that is read forwards: `size` bytes from `start` on."""

    def __init__(self, file: BinaryIO, start: int, size: int) -> None:
        self._file, self._start, self._size = file, start, size
        self._position = 0

    def read(self, size: int) -> bytes:
        """Read up to `size` bytes."""
        self._file.seek(self._start + self._position)
        block = next_block(self._file, max(0, min(size, self._size - self._position)))
        self._position += len(block)
        return block

    def seek(self, position: int, whence: int = 0) -> int:
        """Go to a position, counted from the beginning."""
        self._position = position
        return position

    def tell(self) -> int:
        """Return the position."""
        return self._position


def blocks_of(file: Any) -> Iterator[bytes]:
    """Yield what is left of a file, in pieces."""
    while block := file.read(CHUNK_BYTES):
        yield block
