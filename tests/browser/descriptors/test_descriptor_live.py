"""A stream that is followed in a real browser, and the page without JavaScript."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import OpenPage
from tests.browser.descriptors.shown import Inspected
from tests.waiting import wait_until


def test_a_stream_is_followed_until_its_end(open_page: OpenPage, inspected: Inspected) -> None:
    writer = inspected.process.open_stream(source="live")
    writer.write("first\n")
    writer.flush()
    page = open_page(inspected.fd(writer.fd[3:]))
    expect(page.locator("#follow")).to_have_attribute("aria-pressed", "true")

    for number in range(2, 400):
        writer.write(f"line {number}\n")
    writer.flush()
    expect(page.locator("#L399")).to_be_in_viewport()
    expect(page.locator("[data-count=lines]").first).to_have_text("399")

    page.keyboard.press("g")
    expect(page.locator("#L1")).to_be_in_viewport()
    expect(page.locator("#follow")).to_have_attribute("aria-pressed", "false")
    writer.write("the last line\n")
    writer.flush()
    expect(page.locator("[data-count=lines]").first).to_have_text("400")
    expect(page.locator("#L1")).to_be_in_viewport()
    page.locator("#follow").click()
    expect(page.locator("#L400")).to_be_in_viewport()

    writer.end(exit_code=3)
    expect(page.locator("#told")).to_have_text("The stream has ended: sealed, exit code 3.")
    expect(page.locator(".fd-head .state")).to_have_text("sealed")


def test_a_fast_stream_keeps_the_window_at_its_end_and_the_document_small(
    open_page: OpenPage, inspected: Inspected
) -> None:
    writer = inspected.process.open_stream(source="fast")
    page = open_page(inspected.fd(writer.fd[3:]))
    expect(page.locator("#follow")).to_have_attribute("aria-pressed", "true")

    for number in range(1, 40_001):
        writer.write(f"line {number} of a fast stream\n")
    writer.flush()

    expect(page.locator("#L40000")).to_be_in_viewport()
    assert page.locator(".row").count() < 3000
    writer.end()


def test_a_follower_ends_when_its_page_is_closed(open_page: OpenPage, inspected: Inspected) -> None:
    def waiting() -> int:
        import redis

        with redis.Redis.from_url(inspected.store.url) as client:
            return int(client.info("clients")["blocked_clients"])

    wait_until(lambda: waiting() == 0, what="the end of other followers")
    writer = inspected.process.open_stream(source="left")
    page = open_page(inspected.fd(writer.fd[3:]))
    wait_until(lambda: waiting() == 1, what="the follower")

    page.close()

    wait_until(lambda: waiting() == 0, what="the end of the follower")
    writer.end()


def test_without_javascript_there_are_pages_jumps_and_searches(
    open_page: OpenPage, inspected: Inspected
) -> None:
    page = open_page(inspected.fd("1"), java_script_enabled=False)

    page.get_by_role("link", name="Next").click()
    expect(page.locator(".row").first).to_be_visible()
    assert "page=2" in page.url
    page.locator("#go").fill("p500")
    page.locator("#go").press("Enter")
    expect(page.locator(".pager.plain")).to_contain_text("page 500 of")
    page.locator("#search").fill("error")
    page.locator("#search").press("Enter")
    expect(page.locator(".hits li")).not_to_have_count(0)
    page.locator(".hits li a").first.click()
    expect(page.locator("#L50000 mark")).to_have_text("ERROR")
    page.locator("#wrap").click()
    expect(page.locator(".text")).not_to_have_class(re.compile("wrap"))
