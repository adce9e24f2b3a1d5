"""The page of a descriptor: text or bytes of any size, opened at once at any position.

    GET /process/triage/fd/3              the page; `.json`: its twin
        .../window.json                   the pages around a position, for scrolling
        .../search.json                   one step of a search
        .../reading.json                  what the process's agent has read
        .../follow.live                   the end of a stream, as events
        .../download                      the content as a file; ranges
        .../picture                       a picture or a PDF

`descriptor_query` describes the query, `descriptor_data` loads, `static/descriptor*.js` scroll. Without
JavaScript the page shows one stored page with links to the others, and forms to jump and to search.
"""

from __future__ import annotations

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from fdstore.errors import InvalidArgument
from fdstore.store.contents.page_windows import Side
from fdstore.store.views.descriptor_facts import content_of
from fdstore.web.descriptor_data import Reader
from fdstore.web.descriptor_download import download, picture
from fdstore.web.descriptor_drawn import draw_part, draw_step, rest_of_page
from fdstore.web.descriptor_follow import follow
from fdstore.web.descriptor_page import DescriptorPage, Look
from fdstore.web.descriptor_query import MAX_HITS, parse_go, parse_query
from fdstore.web.descriptor_url import fd_of
from fdstore.web.live import stream
from fdstore.web.page import Page, View
from fdstore.web.responses import as_json

PATH = "/process/{id}/fd/{fd}"
SIDES: dict[str, Side] = {"after": "after", "before": "before", "around": "around"}


async def load(view: View) -> DescriptorPage:
    """Load the page of a request."""
    return await (await _reader(view)).page(parse_query(view.request.query_params))


def _view(request: Request) -> View:
    return View(request, request.app.state.inspector)


async def _reader(view: View) -> Reader:
    fd = fd_of(view.argument("fd"), view.query("key"))
    return await Reader.open(view.store, view.argument("id"), fd)


async def _window(request: Request) -> Response:
    view = _view(request)

    async def read() -> object:
        query, reader = parse_query(request.query_params), await _reader(view)
        now, _ = await reader.store.run(content_of(reader.handle, reader.fd))
        position, is_hex = query.position, query.hex or now.kind == "bytes"
        if query.go:
            position = parse_go(query.go, now, is_hex=is_hex)
        side = SIDES[view.choice("side", (*SIDES,), "after")]
        shown = await reader.part(position, is_hex=is_hex, side=side)
        if query.more:
            shown = rest_of_page(shown)
        look = Look.of(reader.process, reader.fd, query, shown.descriptor)
        return draw_part(view.inspector.templates, look, shown)

    return as_json(await view.inspector.within(5.0, read))


async def _search(request: Request) -> Response:
    view = _view(request)

    async def step() -> object:
        query, limit = parse_query(request.query_params), view.number("limit", MAX_HITS, 1, MAX_HITS)
        if query.search is None:
            raise InvalidArgument("q", "a text to search for is needed")
        reader = await _reader(view)
        now, _ = await reader.store.run(content_of(reader.handle, reader.fd))
        look = Look.of(reader.process, reader.fd, query, now)
        return draw_step(view.inspector.templates, look, await reader.step(query.search, limit))

    return as_json(await view.inspector.within(10.0, step))


async def _reading(request: Request) -> Response:
    view = _view(request)

    async def read() -> object:
        reader = await _reader(view)
        now, _ = await reader.store.run(content_of(reader.handle, reader.fd))
        return await reader.reading(now)

    return as_json(await view.inspector.within(10.0, read))


async def _follow(request: Request) -> Response:
    view = _view(request)
    reader = await view.inspector.within(5.0, lambda: _reader(view))
    return stream(view.inspector, follow(view.inspector, reader, parse_query(request.query_params)))


async def _download(request: Request) -> Response:
    view = _view(request)
    return await _send(view, as_picture=False)


async def _picture(request: Request) -> Response:
    view = _view(request)
    return await _send(view, as_picture=True)


async def _send(view: View, *, as_picture: bool) -> Response:
    async def begin() -> Response:
        return await (picture if as_picture else download)(view.request, await _reader(view))

    found: Response = await view.inspector.within(10.0, begin)
    return found


PAGES = [Page(PATH, "descriptor.html", load)]
ROUTES = [
    Route(f"{PATH}/window.json", _window),
    Route(f"{PATH}/search.json", _search),
    Route(f"{PATH}/reading.json", _reading),
    Route(f"{PATH}/follow.live", _follow),
    Route(f"{PATH}/download", _download),
    Route(f"{PATH}/picture", _picture),
]
