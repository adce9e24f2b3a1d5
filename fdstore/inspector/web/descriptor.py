"""The page of a descriptor: text or bytes of any size, opened at once at any position.

    GET /process/triage/fd/3              the page; `.json`: its twin
        .../window.json                   the pages around a position, for scrolling
        .../search.json                   one step of a search
        .../count.json                    how many lines match in all
        .../reading.json                  what the process's agent has read
        .../follow.live                   the end of a stream, as events
        .../download                      the content as a file; ranges
        .../picture                       a picture or a PDF

`descriptor_query` describes the query, `descriptor_data` loads, `static/descriptor*.js` scroll. Without
JavaScript the page shows one stored page with links to the others, and forms to jump and to search.

The page and its scripts show the same rows, which `templates/descriptor_rows.html` writes: what is escaped
and what is made visible is decided there, once.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any

import msgspec
from jinja2 import Environment
from starlette.responses import Response
from starlette.routing import Route

from fdstore.errors import FDStoreError, InvalidArgument, StoreUnavailable
from fdstore.inspector.web import descriptor_data
from fdstore.inspector.web.descriptor_data import ContentPart, Reader
from fdstore.inspector.web.descriptor_download import send_file
from fdstore.inspector.web.descriptor_page import DescriptorPage, Look, TextPart
from fdstore.inspector.web.descriptor_query import MAX_HITS, PageQuery, Position, parse_go, parse_query
from fdstore.inspector.web.inspector import Inspector
from fdstore.inspector.web.links import fd_of
from fdstore.inspector.web.live import event, pause, stream, unless_stopping
from fdstore.inspector.web.page import PageRequest, WebPage, route
from fdstore.inspector.web.responses import as_json
from fdstore.model.records import Descriptor
from fdstore.store.contents.page_windows import PageText, Side
from fdstore.store.contents.search_steps import SearchStep
from fdstore.store.streams.completion import wait_for_change

PATH = "/process/{id}/fd/{fd}"

REST_S = 0.1
"""The least time between two events of a follower."""

TRY_AGAIN_S = 1.0
"""The time between two attempts while Redis is away."""

WAIT_S = 5.0
"""The time of one wait in Redis; then a comment is sent, so that a browser that left is noticed."""

SIDES: dict[str, Side] = {"after": "after", "before": "before", "around": "around"}


async def load(request: PageRequest) -> DescriptorPage:
    """Load the page of a request."""
    query, turn = parse_query(request.http.query_params), request.inspector.reading_whole
    return await (await _reader(request)).page(query, turn)


async def _reader(request: PageRequest) -> Reader:
    fd = fd_of(request.argument("fd"), request.query("key"))
    return await Reader.open(request.store, request.argument("id"), fd)


async def _window(request: PageRequest) -> Response:
    query, reader = parse_query(request.http.query_params), await _reader(request)
    now = await reader.descriptor()
    is_hex = query.hex or now.kind == "bytes"
    position = parse_go(query.go, now, is_hex=is_hex) if query.go else query.position
    side = SIDES[request.choice("side", (*SIDES,), "after")]
    shown = await reader.part(position, is_hex=is_hex, side=side)
    if query.more:
        shown = rest_of_page(shown)
    look = reader.look(query, shown.descriptor)
    return as_json(draw_part(request.inspector.templates, look, shown))


async def _search(request: PageRequest) -> Response:
    query, limit = parse_query(request.http.query_params), request.number("limit", MAX_HITS, 1, MAX_HITS)
    if query.search is None:
        raise InvalidArgument("q", "a text to search for is needed")
    reader = await _reader(request)
    look = reader.look(query, await reader.descriptor())
    return as_json(draw_step(request.inspector.templates, look, await reader.step(query.search, limit)))


async def _count(request: PageRequest) -> Response:
    query = parse_query(request.http.query_params)
    if query.search is None:
        raise InvalidArgument("q", "a text to search for is needed")
    turn = request.inspector.reading_whole
    return as_json(await (await _reader(request)).count(query.search, turn, descriptor_data.COUNT_S))


async def _reading(request: PageRequest) -> Response:
    reader = await _reader(request)
    return as_json(await reader.reading(await reader.descriptor()))


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
            drawn = draw_part(inspector.templates, reader.look(query, part.descriptor), part)
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


async def _end_of(reader: Reader, descriptor: Descriptor) -> ContentPart:
    """Return the last pages of a content."""
    if descriptor.kind == "bytes":
        return await reader.part(
            Position("offset", max(0, descriptor.bytes - 1), descriptor.bytes), is_hex=True, side="before"
        )
    return await reader.part(Position("page", descriptor.pages, descriptor.pages), side="before")


async def _follow(request: PageRequest) -> Response:
    events = follow(request.inspector, await _reader(request), parse_query(request.http.query_params))
    return stream(request.inspector, events)


async def _download(request: PageRequest) -> Response:
    return await send_file(request.http, await _reader(request), as_picture=False)


async def _picture(request: PageRequest) -> Response:
    return await send_file(request.http, await _reader(request), as_picture=True)


def draw_part(templates: Environment, look: Look, shown: ContentPart) -> dict[str, Any]:
    """Return a part for a script: its `items`, each a `page` of a text, or a block of bytes, and its rows as
    `html`; `page` and `line`, or `at` (an offset), are where it was asked for."""
    rows = _macros(templates)
    found: dict[str, Any] = {"descriptor": shown.descriptor, "position": shown.position}
    found |= {"page": None, "line": None, "at": None}
    if shown.bytes is not None:
        items = [(block.page, rows.bytes(look, block)) for block in shown.bytes.blocks]
        found["at"] = shown.bytes.at
    else:
        text = shown.text or TextPart(page=1, line=1, char=1, pages=())
        items = [(page.page, rows.text(look, page)) for page in text.pages]
        found |= {"page": text.page, "line": text.line}
    return found | {"items": [{"page": page, "html": str(html)} for page, html in items]}


def draw_step(templates: Environment, look: Look, step: SearchStep) -> dict[str, Any]:
    """Return a step of a search for a script, as in `SearchStep`: its hits have their items of the list as
    `html`."""
    rows = _macros(templates)
    hits = [
        {"line": hit.line, "chars": hit.chars, "line_start": hit.line_start, "html": str(rows.hit(look, hit))}
        for hit in step.hits
    ]
    return msgspec.structs.asdict(step) | {"hits": hits}


def rest_of_page(shown: ContentPart) -> ContentPart:
    """Return what follows the position on its page: more of a page that is larger than a window."""
    text = shown.text
    if text is None:
        return shown
    rest = [_cut(page, text) for page in text.pages if page.page == text.page]
    return msgspec.structs.replace(shown, text=msgspec.structs.replace(text, pages=tuple(rest)))


def _cut(page: PageText, at: TextPart) -> PageText:
    skipped = page.text[: max(0, at.char - page.first_char)]
    if not skipped:
        return msgspec.structs.replace(page, left_before=0)
    return msgspec.structs.replace(
        page,
        text=page.text[len(skipped) :],
        first_char=at.char,
        first_line=at.line,
        continued=not skipped.endswith("\n"),
        left_before=0,
    )


def _macros(templates: Environment) -> Any:
    return templates.get_template("descriptor_rows.html").module


def _route(part: str, seconds: float, respond: Callable[[PageRequest], Awaitable[Response]]) -> Route:
    """Return the route of a part of the page, whose response is given up after `seconds`."""
    return route(
        f"{PATH}/{part}", lambda request: request.inspector.within(seconds, lambda: respond(request))
    )


PAGES = [WebPage(PATH, "descriptor.html", load)]
ROUTES = [
    _route("window.json", 5.0, _window),
    _route("search.json", 10.0, _search),
    _route("count.json", 12.0, _count),
    _route("reading.json", 10.0, _reading),
    _route("follow.live", 5.0, _follow),
    _route("download", 10.0, _download),
    _route("picture", 10.0, _picture),
]
