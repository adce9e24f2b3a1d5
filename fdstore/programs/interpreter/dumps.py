"""A session as bytes: a header of ours, then the interpreter's own dump.

    "fdpy1"  length of the header, 4 bytes  header, msgpack  dump, compressed up to 16 MiB

Of a snapshot, the dump of a suspended call, the header has what the interpreter does not know: our numbers of
its pending calls, what was printed, the processor time used, the code for tracebacks. A dump is of one
version of the interpreter, and no other reads it.

A dump comes from Redis, where others may write: numbers are within their bounds, and no more is unpacked than
`join` compresses.
"""

from __future__ import annotations

import lzma
import zlib
from typing import Any

import msgspec

from fdstore.programs.interpreter.events import DamagedState, UnreadableState
from fdstore.text.numbers import MAX_INTEGER

_MAGIC = b"fdpy1"

COMPRESSED_BYTES = 16 << 20
"""Up to this size a dump is compressed: two thirds of a small one are the prelude's compiled code."""

PACKED_BYTES = 1 << 20
"""Up to this size by LZMA, which takes some ten milliseconds and makes a program with a thousand questions
under way two thirds as large as zlib does."""

PACKED_MEMORY_BYTES = 16 << 20
"""The most memory that LZMA takes to unpack a dump; those of `join` need 2 MiB."""

_XZ = b"\xfd7zXZ\x00"
"""The beginning of what LZMA has compressed."""


class Header(msgspec.Struct, omit_defaults=True, kw_only=True):
    """The facts of a dump beside the interpreter's bytes.

    interpreter  its version
    prelude      the version of the prelude
    functions    the user's functions
    feeds        pieces of code fed so far; `own_feeds` are the numbers of those that are ours
    entropy      how often `os.urandom` was called
    code         a snapshot's program; None between calls. What follows is of this call.
    has_repr     the program's value will be the repr of its last expression
    seed         of `os.urandom`
    number       of the next call
    pending      the interpreter's ids of calls answered later, and our numbers of them
    blocked      the number of the call for which the whole program waits
    """

    interpreter: str
    prelude: str
    functions: list[str]
    feeds: int
    own_feeds: list[int]
    entropy: int = 0
    compressed: bool = False
    code: str | None = None
    has_repr: bool = False
    seed: int = 0
    number: int = 0
    pending: dict[int, int] = {}
    blocked: int | None = None
    printed: str = ""
    used_s: float = 0.0

    def __post_init__(self) -> None:
        numbers = [*self.pending.values(), *([] if self.blocked is None else [self.blocked])]
        if not all(0 <= each <= MAX_INTEGER for each in (self.feeds, self.entropy, self.number)):
            raise ValueError("a count is out of bounds")
        if not all(0 <= number < self.number for number in numbers):
            raise ValueError("it waits for a call that was not made")
        if not 0 <= self.used_s <= MAX_INTEGER:
            raise ValueError("its processor time is not one")


_encoder, _decoder = msgspec.msgpack.Encoder(), msgspec.msgpack.Decoder(Header)


def join(header: Header, payload: bytes) -> bytes:
    """Return the dump of a session."""
    if len(payload) <= COMPRESSED_BYTES:
        payload, header.compressed = _compressed(payload), True
    head = _encoder.encode(header)
    return b"".join([_MAGIC, len(head).to_bytes(4, "big"), head, payload])


def split(dump: bytes, *, interpreter: str, snapshot: bool) -> tuple[Header, bytes]:
    """Return the header and the interpreter's bytes. Raises `UnreadableState`, `DamagedState`."""
    if not dump.startswith(_MAGIC):
        raise DamagedState("these bytes are not a session")
    start = len(_MAGIC) + 4
    end = start + int.from_bytes(dump[len(_MAGIC) : start], "big")
    try:
        header = _decoder.decode(dump[start:end])
        payload = _decompressed(memoryview(dump)[end:]) if header.compressed else dump[end:]
    except (msgspec.MsgspecError, RecursionError, zlib.error, lzma.LZMAError) as error:
        raise DamagedState(f"the session is damaged: {error}") from error
    if header.interpreter != interpreter:
        raise UnreadableState(
            f"the session is of version {header.interpreter} of the interpreter, and this is {interpreter}"
        )
    if (header.code is not None) != snapshot:
        raise DamagedState("a snapshot was expected" if snapshot else "this is the snapshot of a call")
    return header, payload


def _compressed(data: bytes) -> bytes:
    return lzma.compress(data, preset=1) if len(data) <= PACKED_BYTES else zlib.compress(data, 1)


def _decompressed(data: memoryview) -> bytes:
    """Unpack a dump into a bounded buffer. Raises `DamagedState` for anything but one whole dump."""
    unpacking: Any = zlib.decompressobj()
    most = COMPRESSED_BYTES
    if data[: len(_XZ)] == _XZ:
        unpacking, most = lzma.LZMADecompressor(lzma.FORMAT_XZ, PACKED_MEMORY_BYTES), PACKED_BYTES
    payload: bytes = unpacking.decompress(data, most)
    # a whole dump that fills the buffer may end with the next step, which returns nothing more
    rest = getattr(unpacking, "unconsumed_tail", b"")
    if not unpacking.eof and unpacking.decompress(rest, 1):
        raise DamagedState(f"the session is damaged: it has more than {most} bytes")
    if not unpacking.eof or unpacking.unused_data:
        raise DamagedState("the session is damaged: it is not one whole dump")
    return payload
