"""The inspector in a real browser: a Chromium of the system, driven by Playwright, which brings none.

`open_page(path)` opens a page of an inspector of the test's own store. At the end of a test its pages
must have logged no error and no warning, asked for nothing that failed, and run no script of a text.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

import fdstore
import fdstore.aio
from fdstore.client import Process, Store
from fdstore.client._async.store import connect_unsafe
from fdstore.http_server import HttpServer, listen, origin_of
from fdstore.store.processes import pipelines, processes
from fdstore.tools.process_task import PipeTask, encode_task
from fdstore.web.app import make_app
from fdstore.web.inspector import Inspector, Options
from tests.on_redis.web.journals import SHORT, answer, ask_about_parts, converse

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 15_000

PATHS = (
    "/",
    "/?q=tri&state=open&sort=bytes&order=asc&within=1d",
    "/tree/triage",
    "/process/triage",
    "/process/triage.1",
    "/process/triage.2",
    "/process/triage/record/1",
    "/process/triage/diff",
    "/process/triage/diff?a=fd:1%23L1-9&b=fd:1",
    "/process/triage.3",
    "/process/triage.3/asks?call=t1",
    "/compare",
    "/compare?a=triage&b=again",
    "/workers",
    "/health",
)
"""Every page of the tree `triage`, besides those of descriptors."""


def find_browser() -> str:
    """Return the path of a Chromium of the system."""
    path = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    assert path, "these tests need a Chromium of the system: apt-get install --no-install-recommends chromium"
    return path


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A Chromium whose temporary files are not the tests': it may leave some when it ends."""
    expect.set_options(timeout=WAIT_MS)
    own = {**os.environ, "TMPDIR": str(tmp_path_factory.mktemp("browser"))}
    with sync_playwright() as playwright:
        running = playwright.chromium.launch(executable_path=find_browser(), env=own)
        yield running
        running.close()


class Served:
    """An inspector that runs in a thread until `close`; `url` has no path."""

    def __init__(self, redis_url: str, **options: Any) -> None:
        self.url = ""
        self._ready = threading.Event()
        self._stop: Callable[[], None] = lambda: None
        self._thread = threading.Thread(
            target=lambda: asyncio.run(self._serve(redis_url, Options(**options)))
        )
        self._thread.start()
        assert self._ready.wait(30), "the inspector did not start"

    async def _serve(self, redis_url: str, options: Options) -> None:
        async with await fdstore.aio.connect(redis_url, looking=True) as store:
            inspector = Inspector(store, options, lambda: connect_unsafe(redis_url, None, looking=False))
            with listen("127.0.0.1", 0) as listening:
                server = HttpServer(make_app(inspector), inspector.stopping)
                loop = asyncio.get_running_loop()
                self._stop = lambda: loop.call_soon_threadsafe(setattr, server, "should_exit", True)
                self.url = origin_of(listening)
                self._ready.set()
                await server.serve(sockets=[listening])

    def close(self) -> None:
        self._stop()
        self._thread.join(30)
        assert not self._thread.is_alive()


@pytest.fixture
def serve(redis_url: str) -> Iterator[Callable[..., Served]]:
    """Return a function that starts an inspector with options of `Options`."""
    running: list[Served] = []

    def start(**options: Any) -> Served:
        running.append(Served(redis_url, **options))
        return running[-1]

    yield start
    for each in running:
        each.close()


@pytest.fixture
def inspector(serve: Callable[..., Served]) -> str:
    """The URL of an inspector that only reads."""
    return serve().url


@pytest.fixture
def problems() -> list[str]:
    """Return the complaints of the pages of this test. A test that provokes some clears them."""
    return []


def watch(page: Page, problems: list[str]) -> None:
    """Collect what a page complains of."""
    page.on("console", lambda said: said.type in ("error", "warning") and problems.append(said.text))
    page.on("pageerror", lambda error: problems.append(str(error)))
    page.on("dialog", lambda dialog: (problems.append(f"a dialog: {dialog.message}"), dialog.dismiss()))


@pytest.fixture
def open_page(browser: Browser, inspector: str, problems: list[str]) -> Iterator[Callable[..., Page]]:
    """Return a function that opens a path, with options of a browser context such as `color_scheme`."""
    contexts: list[BrowserContext] = []

    def show(path: str, **options: Any) -> Page:
        context = browser.new_context(base_url=inspector, **options)
        context.set_default_timeout(WAIT_MS)
        contexts.append(context)
        page = context.new_page()
        watch(page, problems)
        page.goto(path)
        return page

    yield show
    for context in contexts:
        context.close()
    assert not problems, problems


@pytest.fixture
def triage(store: Store) -> Process:
    """A tree with a conversation, a pipeline, a failed child and long names."""
    proc = store.process("triage")
    proc.create("a log\n" * 1000, source="grep -rn " + "very-long-word" * 13)
    task = PipeTask(commands=[["grep", "-n", "x" * 300], ["sort"]], page_size=4000, tee=[1])
    store.run(pipelines.start(proc.handle, encode_task(task), title="grep | sort", in_fd="fd:1", tees=(1,)))
    failed = store.run(processes.create_child(proc.handle, None, state="ready"))
    store.run(processes.end(failed, "failed", exit_code=1, reason="max_turns: " + "many answers " * 30))
    converse(proc, *SHORT, answer("word " * 4000), answer("x" * 10_000))
    store.process("a" * 48)
    ask_about_parts(proc.child(share=["fd:1"]), 60)
    converse(store.process("again"), *SHORT[:3], answer("word " * 4000, ("t7", "put", {"text": "x" * 5000})))
    return proc
