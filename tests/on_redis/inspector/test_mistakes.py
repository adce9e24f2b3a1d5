"""URLs that name nothing, or what is not possible: a page and its twin explain them with the same status."""

from __future__ import annotations

import re

import pytest

from fdstore.client import Process
from tests.on_redis.inspector.inspected import Get
from tests.on_redis.inspector.journals import SHORT, converse

FD = "/process/triage/fd/"
DIFF = "/process/triage/diff?a=fd:1&b="


@pytest.fixture
def triage(proc: Process) -> Process:
    """A process with a text of 20 lines, bytes, and a conversation of 8 records."""
    proc.create("a line of the log\n" * 20)
    proc.create(b"\x00\x01")
    converse(proc, *SHORT)
    return proc


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        *((f"/?{query}", 400, "invalid_argument") for query in ("state=nice", "sort=x", "order=up")),
        *((f"/?{query}", 400, "invalid_argument") for query in ("within=2h", "from=-1", "from=1e3")),
        (f"/?q={'x' * 2000}", 400, "invalid_argument: q"),
        ("/tree/none", 404, "not_found"),
        ("/tree/%3Cscript%3Ealert(1)", 400, "invalid_argument"),
        ("/process/none", 404, "not_found"),
        ("/process/triage.9", 404, "not_found"),
        ("/process/%3Cscript%3Ealert(1)", 400, "invalid_argument"),
        ("/process/triage/record/8", 404, "not_found"),
        ("/process/triage/record/9223372036854775807", 400, "invalid_argument"),
        ("/process/triage?from=99999999999999999999", 400, "invalid_argument"),
        ("/process/triage?at=99-0", 404, "not_found"),
        ("/process/triage?at=0-7", 404, "not_found"),
        ("/process/triage?at=0-0&from=2", 404, "not_found"),
        ("/process/triage?at=x", 400, "is not a step"),
        ("/process/triage?raw=2", 400, "invalid_argument: raw"),
        ("/process/triage?errors=0", 400, "invalid_argument: errors"),
        ("/process/triage/asks?call=turn9", 404, "not_found"),
        (f"{FD}1?page=999", 400, "there is no page 999"),
        (f"{FD}1?lines=5000", 400, "5000"),
        (f"{FD}1?lines=x", 400, "is not a position"),
        (f"{FD}1?offset=5", 400, "view=hex"),
        (f"{FD}9", 404, "fd:9"),
        (f"{FD}x", 400, "names no descriptor"),
        (f"{FD}name?key=none", 404, "none"),
        (f"{FD}name", 400, "a name is needed"),
        (f"{FD}1?key=plan.md", 400, "has no key"),
        (f"{DIFF}fd:99", 404, "not_found"),
        (f"{DIFF}fd:2", 400, "not_text"),
        (f"{DIFF}x y", 400, "invalid_argument"),
        (f"{DIFF}fd:1%23L900", 400, "invalid_range"),
        ("/process/absent/diff?a=fd:1&b=fd:2", 404, "not_found"),
        ("/compare?a=triage&b=absent", 404, "tree absent"),
        ("/compare?a=triage&b=<script>alert(1)", 400, "invalid_argument"),
    ],
)
def test_a_mistake_in_a_url_is_explained(
    get: Get, triage: Process, path: str, status: int, words: str
) -> None:
    page, twin = get(path, re.sub(r"(?<!^/)(\?|$)", r".json\1", path.replace("/?", "/index?"), count=1))

    assert (page.status_code, twin.status_code) == (status, status)
    error = twin.json()["error"]
    assert words in f"{error['type']}: {error['message']}"
    assert page.text.startswith("<!doctype html>")
    assert "<script>alert" not in page.text


@pytest.mark.parametrize("path", ["window.json?page=1&mark=nowhere", "search.json?q=(a&re=1", "search.json"])
def test_a_mistake_in_a_request_of_a_script_is_explained(get: Get, triage: Process, path: str) -> None:
    found = get(f"{FD}1/{path}")

    assert (found.status_code, found.json()["error"]["type"]) == (400, "invalid_argument")
