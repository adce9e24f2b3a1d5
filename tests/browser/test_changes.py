"""Changes while a page is shown: new records, an outage; and logging in."""

from __future__ import annotations

import re

from playwright.sync_api import Browser, expect

from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.clock import redis_now
from fdstore.store.views import worker_registry
from tests.browser.conftest import WAIT_MS, OpenPage, Serve, watch
from tests.on_redis.inspector.journals import SHORT, answer, converse

TOKEN = "a-token-of-24-characters"


def test_new_records_arrive_and_what_is_open_or_focused_stays(open_page: OpenPage, store: Store) -> None:
    proc = store.process("triage")
    converse(proc, SHORT[0], answer("word " * 1000))
    page = open_page("/process/triage")
    page.locator(".fold summary").last.click()
    page.locator("#search").fill("half a wo")

    converse(proc, answer("a second answer"))

    expect(page.locator(".talk").get_by_text("a second answer")).to_be_visible()
    expect(page.locator(".fold details .text").last).to_be_visible()
    expect(page.locator("#search")).to_have_value("half a wo")
    expect(page.locator("#search")).to_be_focused()


def test_ages_go_on_while_the_data_stay(open_page: OpenPage, store: Store) -> None:
    store.process("triage")
    page = open_page("/")
    age = page.locator("#tree-triage time[data-at]")
    expect(age).to_have_text(re.compile(r"^[1-9]\d* s ago$"))
    page.clock.install()
    page.reload()

    page.clock.fast_forward("05:30")
    expect(age).to_have_text("5 min ago")
    page.clock.fast_forward("26:00:00")
    expect(age).to_have_text("1 d ago")


def test_what_time_alone_changes_is_shown_without_new_data(open_page: OpenPage, store: Store) -> None:
    """Regression test: a worker that vanished was alive on its page until other data changed."""
    now_s = store.run(redis_now())
    store.run(worker_registry.register_worker(store.prefix, "build-1:2210", 5.0, now_s))
    page = open_page("/workers")

    expect(page.locator(".beat")).to_contain_text("alive")
    expect(page.locator(".beat")).to_contain_text("vanished")
    expect(page.locator("#counts")).to_contain_text("1 vanished")


def test_the_bar_with_the_focus_stays_the_one_stop_of_the_timeline(open_page: OpenPage, store: Store) -> None:
    proc = store.process("triage")
    converse(proc, *SHORT)
    page = open_page("/tree/triage")
    page.locator("svg.bars a[tabindex='0']").focus()
    page.keyboard.press("ArrowRight")
    focused = page.evaluate("document.activeElement.getAttribute('aria-label')")

    proc.child()

    expect(page.locator("#process-triage\\.1")).to_be_visible()
    stops = page.locator("svg.bars a[tabindex='0']")
    expect(stops).to_have_count(1)
    expect(stops).to_be_focused()
    expect(stops).to_have_attribute("aria-label", focused)


def test_an_outage_is_shown_and_ends_by_itself(
    open_page: OpenPage, store: Store, redis_server: PrivateServer, problems: list[str]
) -> None:
    store.process("triage")
    page, other = open_page("/"), open_page("/workers")
    expect(page.locator("#live")).to_have_text("live")

    redis_server.stop()
    expect(page.locator("#outage")).to_contain_text("Redis", timeout=4 * WAIT_MS)  # a call waits 10 s first
    other.goto("/health")
    expect(other.locator("h1")).to_have_text("Redis does not answer")
    redis_server.start()

    expect(page.locator("#outage")).to_be_hidden()
    expect(other.locator("h1")).to_have_text("Health")
    # a browser logs each page that it got with the status 503
    assert all("503" in each for each in problems)
    problems.clear()


def test_a_browser_logs_in_once_and_out(
    browser: Browser, serve: Serve, store: Store, problems: list[str]
) -> None:
    store.process("triage")
    page = browser.new_page(base_url=serve(token=TOKEN).url)
    watch(page, problems)

    page.goto("/tree/triage?from=0")
    page.get_by_label("Token").fill("not the token")
    page.keyboard.press("Enter")
    expect(page.get_by_role("alert")).to_have_text("This is not the token.")
    page.get_by_label("Token").fill(TOKEN)
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text("Tree triage")
    assert page.url.endswith("/tree/triage?from=0")
    assert page.evaluate("document.cookie") == ""
    expect(page.locator("#live")).to_have_text("live")
    page.get_by_role("button", name="Log out").click()
    page.goto("/")
    expect(page.get_by_label("Token")).to_be_visible()
    page.close()
    # the refused token
    assert [each for each in problems if "401" not in each] == []
