"""The ASGI app of the inspector: its pages, their twins, the login and the static files."""

from __future__ import annotations

import mimetypes
from urllib.parse import parse_qsl

from starlette.applications import Starlette
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.routing import BaseRoute, Route
from starlette.types import ASGIApp

from fdstore.errors import FDStoreError
from fdstore.inspector.web import (
    compare,
    descriptor,
    diff,
    health,
    kill,
    process,
    questions,
    run_download,
    tree,
    trees,
    workers,
)
from fdstore.inspector.web.guard import Guard
from fdstore.inspector.web.inspector import Inspector
from fdstore.inspector.web.live import changes, seen, stream
from fdstore.inspector.web.login import LOGIN_PATH, Login, leave, own_path
from fdstore.inspector.web.page import PageRequest, SeeOther, WebPage, route
from fdstore.inspector.web.rendering import STATIC, render
from fdstore.inspector.web.responses import Problem, as_html, as_json, context, html, problem_of, problem_page

MODULES = (trees, tree, run_download, compare, process, questions, descriptor, diff, kill, workers, health)
"""The modules with pages (`PAGES`), and with other routes (`ROUTES`)."""

FOR_EVER = {"Cache-Control": "public, max-age=31536000, immutable"}


def make_app(inspector: Inspector) -> ASGIApp:
    """Return the app, behind its guard. Raises `InvalidArgument` for a token that could be guessed."""
    options = inspector.options
    login = None if options.token is None else Login(options.token)
    routes: list[BaseRoute] = []
    for module in MODULES:
        for page in module.PAGES:
            routes += _routes_of(page)
        routes += getattr(module, "ROUTES", [])
    routes += [
        Route("/static/{name}", _static),
        Route("/favicon.svg", _favicon),
        Route("/favicon.ico", lambda request: RedirectResponse("/favicon.svg", 301)),
        *([] if login is None else _login_routes(login)),
    ]
    app = Starlette(
        routes=routes,
        exception_handlers={
            HTTPException: _http_error,
            FDStoreError: _library_error,
            SeeOther: _see_other,
        },
    )
    app.router.redirect_slashes = False
    app.state.inspector = inspector
    return Guard(app, options.hosts, login)


def _routes_of(page: WebPage) -> list[BaseRoute]:
    async def show_html(request: PageRequest) -> Response:
        data = await page.data(request)
        await request.inspector.look_at_health()
        await request.inspector.look_at_questions()
        return as_html(request, page, data, seen(data))

    async def show_json(request: PageRequest) -> Response:
        return as_json(await page.data(request))

    async def show_live(request: PageRequest) -> Response:
        return stream(request.inspector, changes(page, request))

    # the twins first: `{id}` would match `triage.json`
    return [
        route(f"{page.base}.json", show_json),
        *([route(f"{page.base}.live", show_live)] if page.live_s else []),
        route(page.path, show_html),
    ]


async def _library_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, FDStoreError)
    return _problem_page(request, problem_of(error))


async def _see_other(request: Request, error: Exception) -> Response:
    assert isinstance(error, SeeOther)
    return RedirectResponse(error.url, 303)


async def _http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    titles = {404: "Not found", 405: "Not possible"}
    messages = {404: "This address has no page.", 405: "This page is read-only."}
    status = error.status_code
    message = messages.get(status, str(error.detail))
    return _problem_page(request, Problem(status, titles.get(status, "Problem"), "not_found", message))


def _problem_page(request: Request, problem: Problem) -> Response:
    as_data = request.url.path.endswith(".json")
    return problem_page(PageRequest(request), problem, as_data=as_data)


async def _static(request: Request) -> Response:
    name = request.path_params["name"]
    if name not in {each.name for each in STATIC.iterdir()}:
        return PlainTextResponse("Not found\n", 404)
    kind = "text/javascript" if name.endswith(".js") else mimetypes.guess_type(name)[0]
    return Response((STATIC / name).read_bytes(), headers=FOR_EVER, media_type=kind)


async def _favicon(request: Request) -> Response:
    return Response((STATIC / "favicon.svg").read_bytes(), headers=FOR_EVER, media_type="image/svg+xml")


def _login_routes(login: Login) -> list[BaseRoute]:
    async def form(request: PageRequest) -> Response:
        http, refused = request.http, False
        path = http.query_params.get("next", "/")
        if http.method == "POST":
            fields = dict(parse_qsl((await http.body()).decode("utf-8", "replace"), max_num_fields=20))
            path = fields.get("next", "")
            if login.is_token(fields.get("token", "").strip()):
                return login.enter(http, path)
            refused = True
        values = {**context(request, None, None), "next": own_path(path), "refused": refused}
        text = render(request.inspector.templates, "login.html", seen="", **values)
        return html(text, 401 if refused else 200)

    async def out(request: PageRequest) -> Response:
        return leave()

    return [route(LOGIN_PATH, form, ["GET", "POST"]), route("/logout", out, ["POST"])]
