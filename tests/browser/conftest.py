"""The inspector in a real browser: a Chromium of the system, driven by Playwright, which brings none.

`open_page(path)` opens a page of an inspector of the test's own store. At the end of a test its pages
must have logged no error and no warning, asked for nothing that failed, and run no script of a text.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, Page, expect, sync_playwright

from fdstore.agents.loop.conversation import Result, Start
from fdstore.client import Process, Store
from fdstore.elements import render
from fdstore.errors import NotFound
from fdstore.store.processes import processes
from tests.on_redis.inspector.inspected import Served
from tests.on_redis.inspector.journals import (
    SHORT,
    answer,
    ask_about_parts,
    converse,
    failed_child,
    pipe,
    spawns,
)
from tests.unit.rendering import descriptor, make_slice

OpenPage = Callable[..., Page]
Serve = Callable[..., Served]

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WAIT_MS = 15_000

MISSING = render.fd_error(NotFound("fd:9", ("fd:1",)), "fd:9")
STORED = render.fd_result(descriptor("fd:3"), make_slice("one\n" * 30), None, "Stored.", 700)

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


@pytest.fixture
def serve(redis_url: str) -> Iterator[Serve]:
    """Return a function that starts an inspector with options of `Options`."""
    with ExitStack() as running:
        yield lambda **options: running.enter_context(Served(redis_url, **options))


@pytest.fixture
def inspector(serve: Serve) -> str:
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
def open_page(browser: Browser, inspector: str, problems: list[str]) -> Iterator[OpenPage]:
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
    pipe(proc, f"grep -n {'x' * 300}", "sort", in_fd="fd:1", tee=(1,))
    failed_child(proc, "max_turns: " + "many answers " * 30, exit_code=1)
    converse(proc, *SHORT, answer("word " * 4000), answer("x" * 10_000))
    store.process("a" * 48)
    ask_about_parts(proc.child(share=["fd:1"]), 60)
    converse(store.process("again"), *SHORT[:3], answer("word " * 4000, ("t7", "put", {"text": "x" * 5000})))
    return proc


@pytest.fixture
def failed(store: Store) -> Process:
    """An agent that failed, below one that goes on: forty spawns, of which two failed, and a missing text."""
    root = store.process("nightly")
    for number in range(3):
        store.process(f"other-{number}")
    agent = root.child()
    converse(
        agent,
        Start(system="", content="What broke the build?"),
        answer(
            "I look.", ("t1", "read_fd", {"fd": "fd:9"}), ("t2", "bash", {"command": "make " + "x" * 300})
        ),
        Result(call="t1", content=MISSING.text, facts=MISSING.facts, is_error=True),
        Result(call="t2", content=STORED.text, facts=STORED.facts),
        *spawns(40, failed=(7, 30)),
    )
    store.run(processes.end(agent.handle, "failed", exit_code=1, reason="max_turns: too many answers"))
    return agent
