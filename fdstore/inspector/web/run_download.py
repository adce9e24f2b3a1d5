"""The download of a run as one HTML page, streamed while it is made."""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.responses import PlainTextResponse, Response, StreamingResponse

from fdstore.inspector.web.byte_ranges import disposition
from fdstore.inspector.web.inspector import MAX_EXPORTS, Inspector
from fdstore.inspector.web.page import PageRequest, WebPage, route
from fdstore.inspector.web.rendering import encode
from fdstore.inspector.web.run_export import CSP, RunExport


async def download(request: PageRequest) -> Response:
    """Return the page of a run as a file. A failure after its beginning ends the connection, so that a part
    of it is not taken for the whole."""
    inspector, name = request.inspector, request.argument("name")
    if inspector.exports >= MAX_EXPORTS:
        return PlainTextResponse("Too many runs are exported at once; try again soon.\n", 503)
    run = RunExport(request.prefix, name)
    steps = run.prepare()
    await inspector.within(10.0, lambda: request.store.run(next(steps)))
    headers = {
        "Content-Security-Policy": f"sandbox; {CSP}",
        "Content-Disposition": disposition("attachment", f"{name}.html"),
    }
    if request.http.method == "HEAD":
        return Response(headers=headers, media_type="text/html")

    async def pieces() -> AsyncIterator[bytes]:
        for step in steps:
            await request.store.run(step)
        yield encode(run.head())
        for piece in run.body():
            yield encode(await request.store.run(piece))

    return StreamingResponse(_counted(inspector, pieces()), headers=headers, media_type="text/html")


async def _counted(inspector: Inspector, pieces: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    inspector.exports += 1
    try:
        async for each in pieces:
            yield each
    finally:
        inspector.exports -= 1


PAGES: list[WebPage] = []
ROUTES = [route("/tree/{name}/export.html", download)]
