"""Responses: pages as HTML and JSON, and errors in both forms."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any, NamedTuple
from urllib.parse import quote, unquote, urlencode

import msgspec
from starlette.responses import Response

from fdstore.errors import FDStoreError, ObjectStoreUnavailable, StoreUnavailable
from fdstore.inspector.web.inspector import Inspector
from fdstore.inspector.web.page import PageRequest, WebPage
from fdstore.inspector.web.rendering import encode, render
from fdstore.model.people import MAX_NAME_CHARS
from fdstore.store.views.health_rule import level_of, people_finding

OF_STREAMS = ("seen", "strip", "asked")
"""Arguments by which a browser says what it shows when it asks for live updates: links have none of them."""

NAME_COOKIE = "fdstore_name"
"""The cookie with the name of who answers questions in this browser."""

TRY_AGAIN_S = 2
"""After this time, browsers load the page of an outage again."""


class Problem(msgspec.Struct, frozen=True):
    """An error, as a page shows it."""

    status: int
    title: str
    type: str
    message: str
    now_s: float = 0.0


def problem_of(error: FDStoreError) -> Problem:
    """Return the problem that a page shows for an error of the library."""
    status = error.http
    titles = {
        404: "Not found",
        403: "Not permitted",
        409: "Not now",
        500: "This cannot be read",
        503: "Redis does not answer",
    }
    title = titles.get(status, "This cannot be shown")
    if isinstance(error, ObjectStoreUnavailable):
        title = "The object store does not answer"
    elif status == 503 and not isinstance(error, StoreUnavailable):
        title = "Too much at once"
    return Problem(status, title, error.type, str(error))


def context(request: PageRequest, page: WebPage | None, data: Any) -> dict[str, Any]:
    """Return what a template can use: its data as `page`, and the frame around it."""
    http, options = request.http, request.inspector.options
    path, query = http.url.path, http.url.query
    shown = {name: value for name, value in http.query_params.items() if name not in OF_STREAMS}
    base = "/index" if path == "/" else path
    # what is shown goes into an attribute: quoted, so that it is the same URL
    quoted_base = quote(base, safe="/:@!$&'()*+,;=~")
    tail = f"?{query}" if query else ""
    return {
        "page": data,
        **strip(request.inspector if page else None),
        "path": path,
        "link": lambda **changes: changed_query(shown, changes),
        "json_url": f"{quoted_base}.json{tail}" if page else None,
        "live_url": f"{quoted_base}.live{tail}" if page and page.live_s else None,
        "where": request.store.where,
        "prefix": request.prefix,
        "may_kill": options.may_kill,
        "may_answer": options.may_answer,
        "has_export_root": options.export_root is not None,
        "name": name_in(http.cookies.get(NAME_COOKIE, "")),
        "questions": request.inspector.questions,
        "has_token": options.token is not None,
    }


def name_in(cookie: str) -> str:
    """Return the name that this browser gave with its last answer; "" without one."""
    name = unquote(cookie)[:MAX_NAME_CHARS]
    return name if name.isprintable() else ""


class FindingPlace(NamedTuple):
    """The page that shows what a finding of the strip tells; `says` replaces its advice by a link there."""

    url: str
    says: str = ""


PLACES = {
    "workers": FindingPlace("/workers"),
    "vanished workers": FindingPlace("/workers"),
    "lost calls": FindingPlace("/workers"),
    "queue": FindingPlace("/workers"),
    "sweep": FindingPlace("/workers"),
    "failures": FindingPlace("/?state=failed&within=1h", "see the reasons"),
    "people": FindingPlace("/questions"),
    "losses": FindingPlace("/?state=lost&within=1h", "see which runs"),
}
"""By the subject of a finding; that of any other is the page of the store's health."""


def strip(inspector: Inspector | None) -> dict[str, Any]:
    """Return what the strip of a page shows: the problems and notes about the store and its workers, and who
    waits for people, or else all figures. Without findings there is no strip."""
    if inspector is None or inspector.health is None:
        return {"health": None, "health_level": "", "health_seen": "", "place_of": None}
    findings = [*inspector.health, *people_finding(inspector.asking)]
    urgent = [each for each in findings if each.note or not each.ok]
    seen = hashlib.sha256(msgspec.json.encode(findings)).hexdigest()[:16]
    return {
        "health": urgent or findings,
        "health_level": level_of(findings),
        "health_seen": seen,
        "place_of": lambda finding: PLACES.get(finding.subject, FindingPlace("/health")),
    }


def changed_query(query: Mapping[str, str], changes: Mapping[str, object]) -> str:
    """Return the query of a link to the same page with other arguments; None removes one.

    >>> changed_query({"q": "a b", "from": "100"}, {"from": None, "sort": "name"})
    '?q=a+b&sort=name'
    """
    changed = {name: value for name, value in {**query, **changes}.items() if value not in (None, "")}
    return "?" + urlencode(changed)


def as_html(request: PageRequest, page: WebPage, data: Any, seen: str) -> Response:
    """Return a page."""
    return html(render(request.inspector.templates, page.template, seen=seen, **context(request, page, data)))


def as_json(data: Any, status: int = 200) -> Response:
    """Return data as JSON for people and programs."""
    text = msgspec.json.format(msgspec.json.encode(data), indent=2)
    return Response(text + b"\n", status, media_type="application/json")


def html(text: str, status: int = 200, headers: dict[str, str] | None = None) -> Response:
    return Response(encode(text), status, headers, media_type="text/html")


def problem_page(request: PageRequest, problem: Problem, *, as_data: bool = False) -> Response:
    """Return the page of a problem; that of an outage loads itself again."""
    if as_data:
        return as_json({"error": {"type": problem.type, "message": problem.message}}, problem.status)
    headers = {"Refresh": str(TRY_AGAIN_S)} if problem.type == "store_unavailable" else None
    text = render(request.inspector.templates, "problem.html", seen="", **context(request, None, problem))
    return html(text, problem.status, headers)
