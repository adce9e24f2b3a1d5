"""Every page by the rules of axe-core, in light and dark, on a phone and on a wide screen."""

from __future__ import annotations

from typing import Any

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from fdstore.client import Process, Store
from fdstore.store.clock import redis_now
from fdstore.store.views import worker_registry
from fdstore.store.views.worker_registry import WorkerLoad
from tests.browser.conftest import PATHS, OpenPage, Serve, watch
from tests.browser.descriptors.shown import HOSTILE
from tests.on_redis.inspector.journals import SPARED, converse
from tests.on_redis.inspector.test_descriptor_download import png

TOKEN = "a-token-of-24-characters"
RULES = {"rules": {"target-size": {"enabled": True}}, "resultTypes": ["violations"]}

looks = pytest.mark.parametrize(
    "look",
    [
        {"color_scheme": scheme, "viewport": {"width": width, "height": 900}}
        for scheme in ("light", "dark")
        for width in (390, 1440)
    ],
    ids=["light-phone", "light-wide", "dark-phone", "dark-wide"],
)


def check(page: Page) -> list[str]:
    """Return what axe-core finds wrong in a page: the page, the rule, and the elements."""
    found = Axe().run(page, options=RULES).response["violations"]
    return [
        f"{page.url}: {each['id']}: {node['html'][:200]} {' '.join(node['failureSummary'].split())[:300]}"
        for each in found
        for node in each["nodes"]
    ]


@looks
def test_no_page_breaks_a_rule_or_is_wider_than_the_screen(
    browser: Browser,
    serve: Serve,
    triage: Process,
    failed: Process,
    store: Store,
    problems: list[str],
    look: dict[str, Any],
) -> None:
    pane = ("", "?at=2-2", "?at=2-0", "?at=46-0&raw=1", "?errors=1", "?at=5-8", "?from=0&at=0-0")
    paths = [*PATHS, "/?q=nowhere", *more_pages(triage, store)]
    paths += [f"/process/{failed.id}{query}" for query in pane]
    page = browser.new_page(base_url=serve(may_kill=True).url, reduced_motion="reduce", **look)
    watch(page, problems)

    found: list[str] = []
    for path in paths:
        page.goto(path)
        expect(page.locator("h1")).to_be_visible()
        for summary in page.locator("details:not([open]) > summary").all():
            if summary.is_visible():
                summary.click()
        found += check(page)
        assert page.evaluate("document.documentElement.scrollWidth") <= look["viewport"]["width"], path
    page.close()

    assert not found, "\n".join(found)
    assert problems == []


def more_pages(triage: Process, store: Store) -> list[str]:
    """Store descriptors of all kinds and workers; return the paths of pages beside `PATHS`."""
    triage.put("notes/größe.md", HOSTILE * 40)
    picture = triage.create(png(), media_type="image/png")
    data = triage.create(bytes(range(256)) * 40, source="blob.bin")
    empty = triage.create("")
    spared = triage.child()
    converse(spared, *SPARED)
    notes = store.process("notes")
    notes.create("one\n" * 30, source="grep -rn " + "very-long-word" * 13)
    notes.put("plan/" + "x" * 90, "two")
    notes.put("plan.md", "# Plan\n\n- **one**\n\n|a|b|\n|-|-|\n|1|2|\n")
    rows = notes.create('[{"id": 1, "name": "x"}]')
    levels = ("INFO", "DEBUG", "\x1b[33mWARN\x1b[0m", "\x1b[1;31mERROR\x1b[0m", "\x1b[97;41mFATAL\x1b[0m")
    lines = [f"12:00:00 {level} \x1b[2;36mstep\x1b[0m \x1b[2K\n" for level in levels * 2]
    log = notes.create("".join(lines))
    now_s = store.run(redis_now())
    load = WorkerLoad(slots=2, busy=2, lost=1, runs=("triage.2",))
    store.run(worker_registry.register_worker(store.prefix, "build-1:2210", 60.0, now_s, load=load))
    store.run(worker_registry.register_worker(store.prefix, "build-2:4120", 10.0, now_s - 100, load=load))
    fds = "/process/triage/fd"
    return [
        f"{fds}/1",
        f"{fds}/1?lines=120-130&q=log&context=2",
        f"{fds}/1?view=hex",
        f"{fds}/name?key=notes/größe.md",
        "/process/triage/diff?a=fd:1&b=name:notes/größe.md",
        *(f"{fds}/{each.fd.removeprefix('fd:')}" for each in (picture, data, empty)),
        "/process/triage.2/kill",
        f"/process/{spared.id}",
        "/process/notes",
        f"/process/notes/fd/{rows.fd.removeprefix('fd:')}?view=pretty",
        f"/process/notes/fd/{log.fd.removeprefix('fd:')}?lines=2-4",
        "/process/notes/fd/name?key=plan.md&view=rendered",
        "/?q=blob",
    ]


@looks
def test_no_page_without_content_breaks_a_rule(
    browser: Browser, serve: Serve, redis_url: str, look: dict[str, Any]
) -> None:
    inspector = serve()
    page = browser.new_page(base_url=inspector.url, **look)

    found: list[str] = []
    for path in ("/", "/?q=none", "/workers", "/health", "/tree/none", "/process/none"):
        page.goto(path)
        found += check(page)
    page.close()
    page = browser.new_page(base_url=serve(token=TOKEN).url, **look)
    page.goto("/")
    found += check(page)
    page.get_by_label("Token").fill("not the token")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_be_visible()
    found += check(page)
    page.close()

    assert not found, "\n".join(found)


def test_tab_goes_past_the_numbers_of_lines(open_page: OpenPage, triage: Process) -> None:
    page = open_page("/process/triage/fd/1")
    expect(page.locator(".row a.no").nth(20)).to_be_visible()

    page.locator("#reader .text").focus()
    page.keyboard.press("Tab")

    expect(page.locator("aside.about a").first).to_be_focused()
