"""Texts of models, tools and users are shown as text on every page, whatever they are."""

from __future__ import annotations

import pytest

from fdstore.client import Process
from tests.on_redis.inspector.inspected import Get
from tests.on_redis.inspector.run_page import Read


@pytest.mark.parametrize(
    "path",
    [
        *("/", "/?q=alert", "/tree/triage", "/process/triage", "/process/triage?raw=1", "/process/triage.1"),
        *("/process/triage/record/2", "/process/triage/record/3", "/process/triage/fd/1?q=alert"),
        *("/process/triage/fd/name?key=notes/<script>.md&q=<script>", "/compare?a=triage&b=triage"),
        "/process/triage/diff?a=fd:1&b=name:notes/<script>.md",
    ],
)
def test_no_text_becomes_markup(get: Get, hostile: Process, path: str) -> None:
    html = get(path).text

    page = Read(html)
    assert "alert(1)" in page.text
    assert not {"img", "iframe", "object"} & set(page.tags)
    assert page.tags.count("script") == html.count('<script src="/static/')
    assert not [name for _, name, _ in page.attributes if name.startswith("on") or name == "style"]
    assert not [
        value for _, name, value in page.attributes if name in ("href", "src") and "javascript:" in value
    ]
    shown = page.text + "".join(
        value for _, name, value in page.attributes if name in ("title", "aria-label")
    )
    assert not {"\x1b", "\u202e"} & set(shown)
