"""The strip of the first page, where people look when something is wrong: it becomes red by itself, with what
to do, for each sickness that stops work. The workers are real."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis
from playwright.sync_api import Locator, expect

from fdstore.client import Store
from fdstore.store.clock import redis_now
from fdstore.store.views import worker_registry
from tests.browser.conftest import OpenPage
from tests.on_redis.inspector.journals import ready_child
from tests.worker_process import WorkerProcess, running_worker

SEEN_MS = 60_000
"""A heartbeat counts for ten seconds, and this machine may be busy."""


@pytest.fixture
def worker(redis_url: str, tmp_path: Path) -> Iterator[WorkerProcess]:
    with running_worker(tmp_path, "--url", redis_url, "-c", "2", fresh=False) as running:
        yield running


@pytest.fixture
def strip(open_page: OpenPage, store: Store) -> Locator:
    """The strip of the first page, which stays open, of a store with a tree."""
    store.process("triage")
    return open_page("/").locator("#strip")


def shows_problem(strip: Locator, words: str) -> None:
    expect(strip).to_have_class(re.compile("bad"), timeout=SEEN_MS)
    expect(strip.locator("li.bad").filter(has_text=words)).to_be_visible(timeout=SEEN_MS)
    colour = strip.evaluate("each => getComputedStyle(each).backgroundColor")
    red, green, blue = map(int, re.findall(r"\d+", colour)[:3])
    assert red > green
    assert red > blue


def test_a_worker_that_vanished(worker: WorkerProcess, strip: Locator) -> None:
    expect(strip).not_to_have_class(re.compile("bad"))

    worker.kill()

    shows_problem(strip, f"{worker.name} not seen since")


def test_a_full_redis(worker: WorkerProcess, strip: Locator, redis_url: str) -> None:
    expect(strip).not_to_have_class(re.compile("bad"))

    with redis.Redis.from_url(redis_url) as client:
        client.config_set("maxmemory", 1)
        try:
            shows_problem(strip, "so writes fail")
            expect(strip).to_contain_text("raise maxmemory")
        finally:
            client.config_set("maxmemory", 0)


LINES = "each => each.clientHeight / parseFloat(getComputedStyle(each).lineHeight)"


def is_whole(part: Locator) -> bool:
    """Return whether no line of a part of the strip is below the end of the strip."""
    lowest, end = part.bounding_box(), part.page.locator("#strip").bounding_box()
    assert lowest is not None
    assert end is not None
    return lowest["y"] + lowest["height"] <= end["y"] + end["height"]


def test_on_a_phone_the_worst_finding_is_whole_with_its_remedy(open_page: OpenPage, store: Store) -> None:
    """Regression: the one line was cut before it said what was wrong, and what to do."""
    ready_child(store.process("triage"))

    page = open_page("/", viewport={"width": 390, "height": 900})

    told = page.locator("#strip .told")
    expect(told).to_contain_text("none is alive, and 1 process waits for one")
    assert is_whole(told.locator("li").first)
    assert is_whole(told.locator("li code").last)
    assert round(told.evaluate(LINES)) <= 3
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    page.locator("#strip ul a").first.click()
    expect(page.locator("h1")).to_have_text("Workers")


def test_on_a_phone_a_link_leads_to_the_other_findings(
    worker: WorkerProcess, open_page: OpenPage, store: Store
) -> None:
    store.process("triage")
    ready_child(store.process("triage"))
    worker.kill()
    page = open_page("/", viewport={"width": 390, "height": 900})
    expect(page.locator("#strip li.bad")).to_have_count(2, timeout=SEEN_MS)

    tap = page.locator("#strip .tap")
    right = tap.bounding_box()
    assert right is not None
    assert right["x"] + right["width"] <= 390
    expect(tap).to_have_text("and 1 more")
    tap.click()
    expect(page.locator("h1")).to_have_text("Health")
    expect(page.locator("main")).to_contain_text("fdstore worker")


def test_on_a_phone_a_long_finding_is_cut_and_shows_that(open_page: OpenPage, store: Store) -> None:
    store.process("triage")
    now_s = store.run(redis_now())
    for number in range(3):
        worker = f"worker-{number}:2210-5e20a7-with-a-long-name"
        store.run(worker_registry.register_worker(store.prefix, worker, 8, now_s - 60, "none"))

    page = open_page("/", viewport={"width": 390, "height": 900})

    told = page.locator("#strip .told")
    expect(told).to_contain_text("not seen since")
    assert round(told.evaluate(LINES)) == 4
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
