"""The link to a line: marked in the text, copied with a button or a key, and opened elsewhere."""

from __future__ import annotations

import re

from playwright.sync_api import Page, expect

from tests.browser.conftest import OpenPage
from tests.browser.descriptors.shown import Inspected

CLIPBOARD = ["clipboard-read", "clipboard-write"]


def copied(page: Page) -> str:
    return str(page.evaluate("navigator.clipboard.readText()"))


def test_the_link_to_a_marked_line_is_copied_and_opens_there(
    open_page: OpenPage, inspected: Inspected
) -> None:
    page = open_page(inspected.fd("1"), permissions=CLIPBOARD)

    page.locator("#L7 a.no").click()
    page.get_by_role("button", name="Copy link").click()

    expect(page.locator("#told")).to_have_text("The link to line 7 is copied")
    assert copied(page) == inspected.fd("1?lines=7")
    page.locator("#L9 a.no").click(modifiers=["Shift"])
    page.locator("#reader .text").focus()
    page.keyboard.press("y")
    expect(page.locator("#told")).to_have_text("The link to lines 7-9 is copied")
    again = open_page(copied(page))
    expect(again.locator(".row.on")).to_have_count(3)


def test_without_a_mark_the_link_is_to_the_first_line_that_is_seen(
    open_page: OpenPage, inspected: Inspected
) -> None:
    page = open_page(inspected.fd("1?page=90"), permissions=CLIPBOARD)
    expect(page.locator(".row a.no").nth(3)).to_be_visible()

    page.get_by_role("button", name="Copy link").click()

    expect(page.locator("#told")).to_have_text(re.compile(r"The link to line \d+ is copied"))
    line = re.search(r"lines=(\d+)#L\1$", copied(page))
    assert line
    again = open_page(copied(page))
    expect(again.locator(f"#L{line[1]}")).to_be_in_viewport()


def test_without_a_clipboard_the_page_copies_a_field_or_says_the_link(
    open_page: OpenPage, inspected: Inspected
) -> None:
    page = open_page(inspected.fd("3?offset=64"))
    page.evaluate("Object.defineProperty(navigator, 'clipboard', { value: undefined })")

    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#told")).to_have_text("The link to offset 64 is copied")
    page.evaluate("document.execCommand = () => false")
    page.get_by_role("button", name="Copy link").click()

    expect(page.locator("#told")).to_have_text(f"The link to offset 64: {inspected.fd('3?offset=64')}")
    assert page.locator("textarea").count() == 0
