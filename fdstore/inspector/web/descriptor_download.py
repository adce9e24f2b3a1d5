"""Send a content to a browser as a file: streamed in constant memory, by ranges, and harmless.

What a content says of itself is not trusted. Text is sent as text/plain, everything else as bytes, with
`nosniff` and a sandbox; only pictures and PDFs, known by their first bytes, are sent as what they are.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from fdstore.inspector.web.byte_ranges import ByteRange, Unsatisfiable, disposition, file_name, parse_range
from fdstore.inspector.web.descriptor_data import Reader
from fdstore.store.contents.byte_reading import ByteSource
from fdstore.store.views.descriptor_facts import content_of
from fdstore.text.media_types import BYTES_TYPE, PDF_TYPE, SIGNATURE_BYTES, type_of_bytes

PIECE_BYTES = 512_000
"""Bytes read and sent at a time."""

SAFE = {
    "Content-Security-Policy": "sandbox; default-src 'none'; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Accept-Ranges": "bytes",
}

EXTENSIONS = {
    "image/png": ".png",
    "image/jpeg": ".jpg",
    "image/gif": ".gif",
    "image/webp": ".webp",
    PDF_TYPE: ".pdf",
}


async def send_file(request: Request, reader: Reader, *, as_picture: bool) -> Response:
    """Return the whole content, or the range that is asked for: as a file to be saved, a stream up to its
    present end; or as a picture or a PDF to be shown, and 415 for anything else, whatever its media type
    says."""
    descriptor, version = await reader.store.run(content_of(reader.handle, reader.fd))
    is_text, size = descriptor.kind == "text", descriptor.bytes
    kind = "text/plain; charset=utf-8" if is_text else BYTES_TYPE
    extension = ".txt" if is_text else EXTENSIONS.get(descriptor.media_type, ".bin")
    if as_picture:
        source = ByteSource(reader.handle, reader.fd)
        found = type_of_bytes(b"" if is_text else await reader.store.run(source.read(0, SIGNATURE_BYTES)))
        if found not in EXTENSIONS:
            return PlainTextResponse("This is no picture that is shown here; download it.\n", 415)
        kind, extension = found, EXTENSIONS[found]
    name = file_name(reader.handle.id, reader.fd, descriptor.source, extension)
    tag = f'"{version}-{size}"'
    headers = {
        **SAFE,
        "Content-Type": kind,
        "Content-Disposition": disposition("inline" if as_picture else "attachment", name),
        "ETag": tag,
    }
    if request.headers.get("if-none-match") == tag:
        return Response(status_code=304, headers=headers)
    wanted = request.headers.get("range") if request.headers.get("if-range", tag) == tag else None
    try:
        part = parse_range(wanted, size)
    except Unsatisfiable:
        return PlainTextResponse(
            "No byte of it is in this range.\n", 416, {**SAFE, "Content-Range": f"bytes */{size}"}
        )
    sent = part or ByteRange(0, size - 1)
    headers["Content-Length"] = str(sent.last - sent.first + 1)
    if part:
        headers["Content-Range"] = f"bytes {part.first}-{part.last}/{size}"
    status = 206 if part else 200
    if request.method == "HEAD":
        return Response(status_code=status, headers=headers)
    pieces = _pieces(reader, sent)
    first = await anext(pieces, b"")  # what cannot be read is an error, not a body that breaks off
    return StreamingResponse(_after(first, pieces), status, headers)


async def _after(first: bytes, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    yield first
    async for each in pieces:
        yield each


async def _pieces(reader: Reader, sent: ByteRange) -> AsyncIterator[bytes]:
    source, at = ByteSource(reader.handle, reader.fd), sent.first
    while at <= sent.last:
        piece = await reader.store.run(source.read(at, min(PIECE_BYTES, sent.last - at + 1)))
        if not piece:
            return
        at += len(piece)
        yield piece
