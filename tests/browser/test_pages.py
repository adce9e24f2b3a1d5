"""Each page in a browser: as it is, on a phone, without JavaScript, by keyboard, with hostile texts."""

from __future__ import annotations

import re

import redis
from playwright.sync_api import expect

from fdstore.client import Process, Store
from fdstore.store.clock import redis_now
from fdstore.store.processes import processes
from tests.browser.conftest import OpenPage
from tests.on_redis.inspector.journals import ready_child
from tests.unit.inspector.web import test_timeline_spans as timed

AT_ITS_PLACE = """mark => {
  mark.scrollIntoView({block: "center"});
  const box = mark.getBoundingClientRect();
  return document.elementFromPoint(box.x + box.width / 2, box.y + box.height / 2).getAttribute("class");
}"""
"""The class of what is seen at the place of a mark."""


def test_pages_work_without_javascript(open_page: OpenPage, triage: Process) -> None:
    page = open_page("/", java_script_enabled=False)

    page.locator("#search").fill("tri")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("tbody tr")).to_have_count(1)
    page.get_by_role("link", name="triage", exact=True).click()
    expect(page).to_have_url(re.compile("/tree/triage$"))
    expect(page.locator("h1")).to_have_text("Tree triage")
    expect(page).to_have_title("Tree triage · fdstore")
    page.get_by_role("link", name="triage", exact=True).last.click()
    expect(page.locator("h1")).to_have_text("Process triage")
    expect(page).to_have_title("Process triage · fdstore")
    hidden = page.locator(".fold details .text").first
    expect(hidden).to_be_hidden()
    page.locator(".fold summary").first.click()
    expect(hidden).to_be_visible()


def test_the_keyboard_reaches_the_search_and_skips_the_frame(open_page: OpenPage, triage: Process) -> None:
    page = open_page("/tree/triage")

    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    expect(page.locator(".skip")).to_be_in_viewport()
    page.keyboard.press("Enter")
    assert page.evaluate("document.activeElement.id") == "main"
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("tri/age")
    expect(page.locator("#search")).to_have_value("tri/age")
    page.keyboard.press("Enter")
    page.wait_for_url("**/?q=tri%2Fage")
    expect(page.get_by_text("No tree matches")).to_be_visible()


def test_the_timeline_is_one_tab_stop_and_the_arrow_keys_go_from_bar_to_bar(
    open_page: OpenPage, triage: Process
) -> None:
    page = open_page("/tree/triage")

    def focused() -> str:
        return str(page.evaluate("document.activeElement.getAttribute('aria-label')"))

    def press(key: str) -> str:
        page.keyboard.press(key)
        return focused()

    assert page.locator("svg.bars a[tabindex='0']").count() == 1
    assert page.locator("svg.bars a").count() > 3
    page.locator("svg.bars a[tabindex='0']").focus()
    first = focused()
    second, below, above = map(press, ("ArrowRight", "ArrowDown", "ArrowUp"))

    assert len({first, second, below}) == 3
    assert all(each.startswith("triage: ") for each in (first, second, above))
    assert below.startswith("triage.")
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.closest('svg')") is None
    page.keyboard.press("Enter")
    expect(page.locator(".as-table table")).to_be_visible()
    expect(page.locator(".as-table tbody tr").first).to_contain_text("triage")


def test_a_row_of_the_timeline_has_no_tab_stop_of_its_own_and_the_arrow_keys_reach_its_name(
    open_page: OpenPage, triage: Process
) -> None:
    page = open_page("/tree/triage")
    stops = page.locator(".chart a:not([tabindex='-1'])")
    assert page.locator(".chart .names a").count() > 1
    assert stops.count() == 1

    stops.focus()
    page.keyboard.press("Home")
    expect(page.locator(".chart .names a").first).to_be_focused()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".chart .names a").nth(1)).to_be_focused()
    assert stops.count() == 1


def test_the_bar_of_a_failed_process_has_the_colour_and_the_mark_of_failure(
    open_page: OpenPage, triage: Process
) -> None:
    page = open_page("/tree/triage")

    def fill(state: str) -> str:
        bar = page.locator(f"svg.bars .life.is-{state}").first
        return str(bar.evaluate("each => getComputedStyle(each).fill"))

    red, green, blue = map(int, re.findall(r"\d+", fill("failed"))[:3])
    assert red > green
    assert red > blue
    assert fill("open") != fill("failed")
    failed = page.locator(".chart .names li").filter(has=page.get_by_role("img", name="failed"))
    expect(failed).to_have_count(page.locator("svg.bars .life.is-failed").count())


def test_a_process_is_zoomed_to_by_key_and_the_whole_is_a_click_away(
    open_page: OpenPage, triage: Process
) -> None:
    page = open_page("/tree/triage")

    page.locator("svg.bars a[tabindex='0']").focus()
    page.keyboard.press("z")
    page.wait_for_url("**/tree/triage?since=*&until=*")
    page.get_by_role("link", name="Whole").click()

    page.wait_for_url("**/tree/triage?#timeline")
    expect(page.get_by_role("navigation", name="Parts of the timeline")).not_to_contain_text("Whole")


def test_the_marks_of_a_lost_worker_and_of_a_wait_that_ended_badly_are_drawn(
    open_page: OpenPage, store: Store, redis_url: str
) -> None:
    """Regression: browsers draw nothing of a bar whose width is 0."""
    parent = ready_child(store.process("lost"))
    now_s = store.run(redis_now())
    records = [
        timed.answer(now_s - 9, "spawn", attempt=timed.attempt(1, now_s - 10)),
        timed.answer(now_s - 5, "spawn", attempt=timed.attempt(2, now_s - 7, "loss", 1)),
        timed.result(now_s - 2, "t0", 3, is_error=True),
    ]
    store.run(processes.end(parent, answer="It failed."))
    with redis.Redis.from_url(redis_url) as client:
        client.rpush(parent.keys.journal, *records)
        client.hset(parent.keys.record, mapping={"started_at": now_s - 10, "attempt": 2})

    page = open_page("/tree/lost")

    for mark in ("loss", "ended"):
        assert mark in page.locator(f"svg.bars .{mark}").evaluate(AT_ITS_PLACE)
