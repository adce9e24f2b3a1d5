"""Follow a stream live: its totals and its last pages, as server-sent events, until it ends.

A follower waits in Redis for the next change, and then sends the end of the stream, at most every `REST_S`
seconds: a stream of any speed costs the browser a few pages a second, never all of its text.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator

from fdstore.errors import FDStoreError, StoreUnavailable
from fdstore.records import Descriptor
from fdstore.store.streams.completion import wait_for_change
from fdstore.web.descriptor_data import Reader, ShownPart
from fdstore.web.descriptor_drawn import draw_part
from fdstore.web.descriptor_page import Look
from fdstore.web.descriptor_query import PageQuery, Position
from fdstore.web.inspector import Inspector
from fdstore.web.live import event, pause, unless_stopping

REST_S = 0.1
"""The least time between two events of a follower."""

TRY_AGAIN_S = 1.0
"""The time between two attempts while Redis is away."""

WAIT_S = 5.0
"""How long one wait in Redis lasts; then a comment is sent, so that a browser that left is noticed."""


async def follow(inspector: Inspector, reader: Reader, query: PageQuery) -> AsyncIterator[bytes]:
    """Yield `part` events with the end of the stream, shown as `query` says, whenever it has changed,
    `outage` while Redis is away; after its end `end`, for another error `gone`."""
    seen: Descriptor | None = None
    yield b"retry: 1000\n\n"
    while not inspector.stopping.is_set():
        try:
            change = reader.store.run(wait_for_change(reader.handle, reader.fd, seen, WAIT_S))
            found = await unless_stopping(inspector, change)
            if found is None:
                return
            if found == seen:
                yield b": still here\n\n"
                continue
            began = time.monotonic()
            part = await _end_of(reader, found)
            look = Look.of(reader.process, reader.fd, query, part.descriptor)
            drawn = draw_part(inspector.templates, look, part)
        except StoreUnavailable as error:
            yield event("outage", str(error))
            seen = None
            await pause(inspector, TRY_AGAIN_S)
            continue
        except FDStoreError as error:
            yield event("gone", str(error))
            return
        seen = found
        yield event("part", drawn)
        if found.state != "open":
            yield event("end", found)
            return
        await pause(inspector, max(0.0, REST_S - (time.monotonic() - began)))


async def _end_of(reader: Reader, descriptor: Descriptor) -> ShownPart:
    """Return the last pages of a content."""
    if descriptor.kind == "bytes":
        return await reader.part(
            Position("offset", max(0, descriptor.bytes - 1), descriptor.bytes), is_hex=True, side="before"
        )
    return await reader.part(Position("page", descriptor.pages, descriptor.pages), side="before")
