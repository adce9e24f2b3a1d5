"""Contents as resources: listed with their sizes, read whole or in part, exactly as they are stored.

A text is read up to the limit of `read_fd`, since hosts put what they read into the conversation; a longer
one is `too_large`, with the ways to read a part. Bytes are blobs. Clients may keep a content that has ended,
since it never changes, but none that is open, and none by a name, which can mean another content tomorrow.
"""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import TYPE_CHECKING

import mcp_types as types

from fdstore.errors import InvalidArgument, PageOutOfRange, StoreUnavailable, TooLarge, quoted
from fdstore.hosts.mcp.access import Access
from fdstore.hosts.mcp.protocol_errors import NotPermitted
from fdstore.hosts.mcp.toolsets import Toolsets
from fdstore.model.records import Descriptor
from fdstore.store.addresses import TEMPLATE, Address, parse_uri, uri_of
from fdstore.store.contents import descriptors
from fdstore.text.numbers import MAX_INTEGER
from fdstore.text.selection import JsonValue

if TYPE_CHECKING:
    from fdstore.client._async.process import Process

PAGE_OF_LIST = 100
"""Resources in one answer to `resources/list`."""

MAX_BLOB_BYTES = 4 << 20
"""The largest content of bytes that is read at once."""

FINAL_FRESH_MS = 3_600_000
"""The time for which clients may keep a content that cannot change."""


async def list_resources(toolsets: Toolsets, access: Access, cursor: str | None) -> types.ListResourcesResult:
    """Return the contents of the caller's process from a cursor on: the number of the last one listed, so
    that no content is missed when others are closed meanwhile. While the store is away, or not connected yet,
    the list is empty. Raises `InvalidArgument`, `NotPermitted`."""
    if "read" not in access.permissions:
        raise NotPermitted("resources/list", "read")
    after = _parse_cursor(cursor)
    resources: list[types.Resource] = []
    last = None
    if (tools := await toolsets.toolset_soon(access)) is not None:
        process, handle = tools.process, tools.process.handle
        with suppress(StoreUnavailable):
            found = await process.store.run(descriptors.listing(handle, count=PAGE_OF_LIST, after=after))
            resources, last = [_described(process.id, each) for each in found.descriptors], found.last
    return types.ListResourcesResult(
        resources=resources,
        next_cursor=None if last is None else str(last),
        ttl_ms=0,
        cache_scope="private",
    )


def _parse_cursor(cursor: str | None) -> int:
    if cursor is None:
        return 0
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 16):
        raise InvalidArgument("cursor", f"{quoted(cursor)} is not a cursor of this list")
    return int(cursor)


def _described(process: str, d: Descriptor) -> types.Resource:
    size = f"{d.bytes} bytes" if d.kind == "bytes" else f"lines: {d.lines}, pages: {d.pages}"
    return types.Resource(
        uri=uri_of(process, d.fd),
        name=d.fd,
        title=d.source,
        description=size if d.state == "sealed" else f"{size}, {d.state}",
        mime_type=d.media_type,
        size=d.bytes,
    )


def list_templates() -> types.ListResourceTemplatesResult:
    """Return the form of all URIs."""
    described = "A stored text or a part of it: page=2 or page=2-4, lines=10-20, chars=1-99, json=/a/0; one."
    template = types.ResourceTemplate(
        uri_template=TEMPLATE, name="content", title="Stored content", description=described
    )
    return types.ListResourceTemplatesResult(resource_templates=[template])


async def read_resource(toolsets: Toolsets, access: Access, uri: str) -> types.ReadResourceResult:
    """Return a content, or the part that the URI names. Raises `InvalidArgument` for an invalid URI,
    `NotPermitted`, `NotFound`, `TooLarge`, and as `Process.read`."""
    address = parse_uri(uri)
    if "read" not in access.permissions:
        raise NotPermitted("resources/read", "read")
    process = await toolsets.process(access, address.process)
    d = await process.stat(address.fd)
    most = toolsets.options.config.max_read_chars
    contents = await (
        _blob(process, address, d, uri) if d.kind == "bytes" else _text(process, address, d, uri, most)
    )
    is_final = d.state != "open" and address.fd.startswith("fd:")
    return types.ReadResourceResult(
        contents=[contents], ttl_ms=FINAL_FRESH_MS if is_final else 0, cache_scope="private"
    )


async def _text(
    process: Process, address: Address, d: Descriptor, uri: str, most: int
) -> types.TextResourceContents:
    try:
        if (part := address.part) is None:
            found = await process.read(address.fd, read_all=True, max_chars=most)
        elif isinstance(part, JsonValue):
            found = await process.read(f"{address.fd}#J{part.pointer}", max_chars=most)
        else:
            found = await process.read(
                address.fd, mode=part.mode, start=part.start, count=part.count, max_chars=most
            )
    except TooLarge as error:
        advice = "read a part: ?page=1, ?lines=1-200 or ?chars=1-4000"
        raise TooLarge(address.fd, error.size, error.limit, advice) from error
    meta = {"fdstore/state": d.state, "fdstore/lines": found.lines, "fdstore/totalLines": found.total_lines}
    return types.TextResourceContents(uri=uri, mime_type=d.media_type, text=found.text, _meta=meta)


async def _blob(process: Process, address: Address, d: Descriptor, uri: str) -> types.BlobResourceContents:
    part = address.part
    if isinstance(part, JsonValue) or (part is not None and part.mode != "page"):
        raise InvalidArgument("uri", f"{address.fd} is bytes ({d.media_type}), which have pages alone")
    offset, length = 0, d.bytes
    if part is not None:
        if part.start > max(d.pages, 1):
            raise PageOutOfRange(address.fd, part.start, d.pages)
        offset, length = (part.start - 1) * d.page_size, min(part.count * d.page_size, MAX_INTEGER)
        length = min(length, d.bytes - offset)
    if length > MAX_BLOB_BYTES:
        raise InvalidArgument(
            "uri", f"{address.fd} has {length} bytes, more than {MAX_BLOB_BYTES} at once; read ?page=1-60"
        )
    data = await process.read_bytes(address.fd, offset, max(length, 0))
    blob = base64.b64encode(data).decode("ascii")
    return types.BlobResourceContents(uri=uri, mime_type=d.media_type, blob=blob)
