"""An inspector of a store with descriptors of all kinds, one for all tests of this folder.

`new_page(url)` opens a page and fails its test for whatever the console or the page reports.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page

import fdstore
from fdstore.local.redis_server import PrivateServer
from tests.browser.conftest import WAIT_MS, Served, watch
from tests.browser.descriptors.shown import BIG_LINES, HOSTILE, Inspected, NewPage, big_line


@pytest.fixture(scope="session")
def inspected() -> Iterator[Inspected]:
    """The inspector, and the process that has the descriptors."""
    with PrivateServer() as server:
        server.start()
        with fdstore.connect(server.url) as store:
            process = store.process("triage")
            process.create("".join(map(big_line, range(1, BIG_LINES + 1))), source="build.log")
            process.create(HOSTILE, source="<b onclick=alert(1)>source</b>")
            process.create(bytes(range(256)) * 400, source="blob.bin")
            process.create("x" * 2_000_000 + "NEEDLE" + "y" * 1_000_000, source="one line")
            served = Served(server.url)
            yield Inspected(served.url, store, process)
            served.close()


@pytest.fixture
def new_page(browser: Browser) -> Iterator[NewPage]:
    contexts: list[BrowserContext] = []
    problems: list[str] = []

    def new(url: str, **options: Any) -> Page:
        context = browser.new_context(viewport={"width": 1280, "height": 800}, **options)
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        watch(page, problems)
        page.goto(url)
        return page

    yield new
    for context in contexts:
        context.close()
    assert not problems, problems
