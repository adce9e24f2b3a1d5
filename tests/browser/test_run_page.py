"""An exported run in a browser that has no network: a file that is opened."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, Request, expect

from fdstore.client import Process, Store
from tests.browser.conftest import OpenPage, watch
from tests.browser.descriptors.shown import HOSTILE
from tests.browser.test_accessibility import check, looks
from tests.on_redis.inspector.run_page import export


@pytest.fixture
def file(triage: Process, store: Store, tmp_path: Path) -> Path:
    """The page of a run with hostile texts, some of them redacted."""
    triage.create(HOSTILE * 20, source="<script>alert(1)</script>")
    path = tmp_path / "triage.html"
    path.write_text(export(store, "triage", "many answers"), "utf-8")
    return path


@pytest.fixture
def open_file(browser: Browser, problems: list[str]) -> Iterator[OpenPage]:
    """Return a function that opens a file without a network; all that it asks for is a problem."""
    pages: list[Page] = []

    def asked(request: Request) -> None:
        if not request.url.startswith("file:") or len(request.url) > 500:
            problems.append(f"asked for {request.url[:200]}")

    def show(path: Path, fragment: str = "", **options: Any) -> Page:
        page = browser.new_page(offline=True, **options)
        pages.append(page)
        watch(page, problems)
        page.on("request", asked)
        page.goto(f"{path.as_uri()}{fragment}")
        return page

    yield show
    for page in pages:
        page.close()
    assert not problems, problems


@looks
def test_the_file_opens_breaks_no_rule_and_does_not_scroll_sideways(
    open_file: OpenPage, file: Path, look: dict[str, Any]
) -> None:
    page = open_file(file, **look)

    expect(page.get_by_role("heading", level=1)).to_have_text("Run triage")
    expect(page.locator("#redacted")).to_contain_text("places were redacted")
    for summary in page.locator("details > summary").all():
        if summary.is_visible():
            summary.click()
    assert check(page) == []
    assert page.evaluate("document.documentElement.scrollWidth <= document.documentElement.clientWidth")


def test_links_lead_to_processes_records_and_descriptors_of_the_same_file(
    open_file: OpenPage, file: Path
) -> None:
    page = open_file(file)

    page.locator("table.processes").get_by_role("link", name="triage.3", exact=True).click()
    expect(page.locator("[id='p-triage.3'] h2")).to_be_in_viewport()
    page.go_back()
    page.locator("#p-triage").get_by_role("link", name="fd:1#L1-9").click()
    expect(page.locator("#d-triage-1")).to_be_in_viewport()
    expect(page.locator("#d-triage-1")).to_contain_text("a log")

    assert page.url == f"{file.as_uri()}#d-triage-1"
