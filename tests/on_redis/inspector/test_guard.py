"""Requests that the inspector refuses: from foreign names and pages, from callers without the token."""

from __future__ import annotations

from html import escape

import httpx2
import pytest

from fdstore.client import Process
from fdstore.inspector.web.app import MODULES
from tests.on_redis.inspector.inspected import ORIGIN, Get, Inspect

TOKEN = "a-token-of-24-characters"


@pytest.mark.parametrize(
    ("status", "host"),
    [
        *((403, host) for host in ("evil.example", "evil.example:8000", "", "127.0.0.1.evil.example")),
        *((200, host) for host in ("localhost", "LOCALHOST:99", "[::1]:8000", "fd.example.org")),
    ],
)
def test_only_requests_for_an_allowed_host_are_served(get: Get, status: int, host: str) -> None:
    names = ("localhost", "[::1]", "fd.example.org", "127.0.0.1")

    assert get("/", headers={"Host": host}, hosts=names).status_code == status


def log_in(inspect: Inspect, data: dict[str, str], origin: str | None = ORIGIN) -> httpx2.Response:
    """Return the response to a form of the login."""
    headers = {} if origin is None else {"Origin": origin}
    found: httpx2.Response = inspect(
        lambda client: client.post("/login", data=data, headers=headers), token=TOKEN
    )
    return found


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", "http://127.0.0.1:9999", "http://["])
def test_a_change_from_another_page_is_refused(inspect: Inspect, origin: str | None) -> None:
    assert log_in(inspect, {"token": TOKEN}, origin).status_code == 403


@pytest.mark.parametrize("path", ["/", "/index.json", "/no/such/page", "/tree/none", "/static/app.css"])
def test_every_response_has_the_headers_that_confine_a_page(get: Get, path: str) -> None:
    headers = get(path).headers

    assert "default-src 'self'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "same-origin"
    assert "frame-ancestors 'none'" in headers["Content-Security-Policy"]


def test_without_the_token_a_browser_is_led_to_the_login_and_a_program_is_refused(
    get: Get, proc: Process
) -> None:
    page, data, live, style, wrong = get(
        "/?q=tri", "/index.json", "/index.live", "/static/app.css", "/%2e%2e/static/", token=TOKEN
    )

    assert page.status_code == 303
    assert page.headers["location"] == "/login?next=%2F%3Fq%3Dtri"
    assert [data.status_code, live.status_code, style.status_code, wrong.status_code] == [401, 401, 200, 303]
    assert "triage" not in page.text + data.text


def test_a_program_sends_the_token_in_a_header(get: Get) -> None:
    right, wrong = {"Authorization": f"Bearer {TOKEN}"}, {"Authorization": f"Bearer {TOKEN}x"}

    assert get("/index.json", headers=right, token=TOKEN).status_code == 200
    assert get("/index.json", headers=wrong, token=TOKEN).status_code == 401


def test_the_login_page_sets_a_cookie_that_is_not_the_token(inspect: Inspect) -> None:
    async def visit(client: httpx2.AsyncClient) -> list[httpx2.Response]:
        headers = {"Origin": ORIGIN}
        wrong = await client.post("/login", data={"token": "x" * 24}, headers=headers)
        right = await client.post("/login", data={"token": TOKEN, "next": "/?q=tri"}, headers=headers)
        return [
            wrong,
            right,
            await client.get("/"),
            await client.post("/logout", headers=headers),
            await client.get("/"),
        ]

    wrong, right, inside, out, outside = inspect(visit, token=TOKEN)

    assert (wrong.status_code, "set-cookie" in wrong.headers) == (401, False)
    assert (right.status_code, right.headers["location"]) == (303, "/?q=tri")
    cookie = right.headers["set-cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=strict" in cookie
    assert TOKEN not in cookie
    assert [inside.status_code, out.status_code, outside.status_code] == [200, 303, 303]


@pytest.mark.parametrize(
    "path", ["//evil.example", "https://evil.example", "/\\evil.example", "/\r\nSet-Cookie: a=b"]
)
def test_the_login_leads_to_no_other_server(inspect: Inspect, path: str) -> None:
    assert log_in(inspect, {"token": TOKEN, "next": path}).headers["location"] == "/"


def test_a_body_that_is_too_long_is_refused(inspect: Inspect) -> None:
    assert log_in(inspect, {"token": "x" * 100_000}).status_code == 413


@pytest.mark.parametrize("query", ["{}", "{0}={1}", "q={x.y}", "a=}&b={", "%7B0%7D"])
def test_braces_in_a_query_are_text(get: Get, proc: Process, query: str) -> None:
    proc.create("text\n")
    pages = [page.path for module in MODULES for page in module.PAGES]
    paths = [
        path.replace(":int", "").format(id="triage", name="triage", fd=1, number=1, position=1)
        for path in pages
    ]

    answers = get(*(f"{path}?{query}" for path in [*paths, "/no/such/page"]))

    assert all(answer.status_code < 500 for answer in answers)
    [workers] = [answer for path, answer in zip(paths, answers, strict=False) if path == "/workers"]
    assert workers.status_code == 200
    assert f"/workers.json?{escape(query)}" in workers.text
