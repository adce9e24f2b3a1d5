"""Server-sent events: a page that is shown is sent again when its data have changed.

Redis has no wake-up for most of what pages show, so the data are loaded again and compared. The time
between is at least twenty times the time that loading takes: a large page costs Redis and this server no
more than a small one.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import suppress
from typing import Any, TypeVar

import msgspec
from starlette.responses import PlainTextResponse, Response, StreamingResponse

from fdstore.errors import FDStoreError, StoreUnavailable
from fdstore.inspector.web.inspector import MAX_LIVE, Inspector
from fdstore.inspector.web.page import PageRequest, WebPage
from fdstore.inspector.web.rendering import encode, render
from fdstore.inspector.web.responses import context, strip

T = TypeVar("T")

REST = 20
"""The time between two loads, in times of a load."""

AGAIN_S = 5.0
"""A page whose data stay is made again that often: a lease expires and a bar grows by the clock alone."""

BEAT_S = 15.0
"""A comment is sent that often, so that a browser that left is noticed."""


def seen(data: Any) -> str:
    """Return a digest of what a page shows, except the time `now_s`, which is its own."""
    if hasattr(data, "now_s"):
        data = msgspec.structs.replace(data, now_s=0.0)
    return hashlib.sha256(msgspec.json.encode(data)).hexdigest()[:16]


_AGES = re.compile(r' data-now="[^"]*"|data-(?:at|from)="[^"]*">[^<]*')
"""Texts that the browser keeps current by itself."""


def drawn(html: str) -> bytes:
    """Return a digest of the content of a page without the ages in it."""
    return hashlib.sha256(encode(_AGES.sub("", html.partition("<main")[2]))).digest()


def event(name: str, data: object) -> bytes:
    """Return one event; its data are JSON on one line."""
    return b"event: " + name.encode() + b"\ndata: " + msgspec.json.encode(data) + b"\n\n"


def stream(inspector: Inspector, events: AsyncIterator[bytes]) -> Response:
    """Return the response that sends events until the browser leaves, or the server stops. Refuses if
    too many are sent already."""
    if inspector.live >= MAX_LIVE:
        return PlainTextResponse("Too many pages are shown live.\n", 503)

    async def counted() -> AsyncIterator[bytes]:
        inspector.live += 1
        try:
            async for each in events:
                yield each
        finally:
            inspector.live -= 1

    return StreamingResponse(counted(), media_type="text/event-stream", headers={"X-Accel-Buffering": "no"})


async def changes(page: WebPage, request: PageRequest) -> AsyncIterator[bytes]:
    """Yield the page whenever its data differ from what the browser shows (`seen`), and when time alone has
    changed its look; the strip of the store's health whenever that differs (`strip`), the count of open
    questions whenever that does (`asked`), and `outage` when Redis is away."""
    inspector, shown, strip_shown = request.inspector, request.query("seen"), request.query("strip")
    asked_shown = request.number("asked", inspector.questions)
    is_away, beat_at = False, time.monotonic() + BEAT_S
    look, again_at = None, 0.0
    yield b"retry: 1000\n\n"
    while not inspector.stopping.is_set():
        began = time.monotonic()
        try:
            data = await page.data(request)
        except StoreUnavailable as error:
            if not is_away:
                yield event("outage", str(error))
            is_away = True
        except FDStoreError as error:
            yield event("gone", str(error))
            return
        else:
            now_seen = seen(data)
            if is_away or now_seen != shown or time.monotonic() > again_at:
                html = render(
                    inspector.templates, page.template, seen=now_seen, **context(request, page, data)
                )
                look_now = drawn(html)
                if is_away or now_seen != shown or look not in (None, look_now):
                    yield event("page", {"seen": now_seen, "html": html})
                    beat_at = time.monotonic() + BEAT_S
                is_away, shown, look = False, now_seen, look_now
                again_at = time.monotonic() + AGAIN_S
            await inspector.look_at_health()
            await inspector.look_at_questions()
            health = strip(inspector)
            if strip_shown and health["health_seen"] != strip_shown:
                yield event("strip", render(inspector.templates, "strip.html", **health))
            strip_shown = health["health_seen"] or strip_shown
            if inspector.questions != asked_shown:
                asked_shown = inspector.questions
                yield event("asked", asked_shown)
        if time.monotonic() > beat_at:
            beat_at = time.monotonic() + BEAT_S
            yield b": still here\n\n"
        took_s = time.monotonic() - began
        await pause(inspector, max(page.live_s or 1.0, 0.0 if is_away else REST * took_s))


async def pause(inspector: Inspector, seconds: float) -> None:
    """Wait for some time, or until the server stops."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await inspector.stopping.wait()


async def unless_stopping(inspector: Inspector, call: Awaitable[T]) -> T | None:
    """Return the result of a long call. None if the server stops before; then the call is cancelled."""
    running = asyncio.ensure_future(call)
    stopping = asyncio.ensure_future(inspector.stopping.wait())
    try:
        await asyncio.wait({running, stopping}, return_when=asyncio.FIRST_COMPLETED)
        return running.result() if running.done() else None
    finally:
        running.cancel()
        stopping.cancel()
        await asyncio.gather(running, stopping, return_exceptions=True)
