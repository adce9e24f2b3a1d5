"""Each page in a browser: as it is, on a phone, without JavaScript, by keyboard, with hostile texts."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import expect

from fdstore.client import Process, Store
from tests.browser.conftest import PATHS, OpenPage
from tests.on_redis.web.journals import answer, converse, failed_child

HOSTILE = (
    '</textarea></title><script>window.hacked = 1; alert(1)</script><img src="x" onerror="alert(2)">'
    '<svg onload="alert(3)"><a href="javascript:alert(4)">x</a>\x1b[31m\u202e"\' {{ 7 * 7 }}'
)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_opens_without_complaints(open_page: OpenPage, triage: Process, scheme: str) -> None:
    page = open_page("/", color_scheme=scheme)
    for path in PATHS:
        page.goto(path)

        expect(page.locator("h1")).to_be_visible()
        assert page.locator("h1").count() == 1
        assert page.evaluate("document.querySelectorAll('[style], style, script:not([src])').length") == 0


def test_hostile_texts_never_run(open_page: OpenPage, triage: Process, store: Store) -> None:
    triage.create("x", source=HOSTILE[:200])
    triage.put("\u202ea<b>'\"&.txt", "y")
    calls = ("t9", HOSTILE, {HOSTILE: HOSTILE, "list": [HOSTILE], "fd": "fd:1"})
    converse(triage, answer(HOSTILE, calls))
    child = failed_child(triage, HOSTILE)

    page = open_page("/")
    for path in (*PATHS, "/process/triage/record/9", f"/process/{child.id}"):
        page.goto(path)

        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main svg [onload], main a[href^='javascript']").count() == 0
    page.goto("/process/triage")
    assert "window.hacked" in page.locator("main").inner_text()
    assert "\u202e" not in page.locator("main").inner_text()


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
