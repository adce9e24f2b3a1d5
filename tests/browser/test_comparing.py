"""Two texts, and two runs, side by side: from the page of one to the comparison, and from there to a line."""

from __future__ import annotations

import pytest
from playwright.sync_api import expect

from fdstore.client import Process
from tests.browser.conftest import OpenPage
from tests.browser.descriptors.shown import HOSTILE


@pytest.fixture
def texts(triage: Process) -> Process:
    triage.create("a log\n" * 500 + f"{'long ' * 200}{HOSTILE}\n" + "a log\n" * 500)
    return triage


def test_a_text_is_compared_with_another_one_and_a_line_is_opened(
    open_page: OpenPage, texts: Process
) -> None:
    page = open_page("/process/triage/fd/1")

    form = page.get_by_role("form", name="Compare with")
    form.get_by_label("Another text of triage").fill(texts.list()[-1].fd)
    form.get_by_role("button", name="Compare").click()

    expect(page.locator("#differs")).to_contain_text("added")
    added = page.locator("table.diff tr.added").first
    expect(added.locator(".sign")).to_contain_text("added")
    line = added.locator("a.no").inner_text()
    added.locator("a.no").click()
    expect(page.locator(f"#L{line}")).to_be_in_viewport()
    expect(page.locator(".row.on")).to_have_count(1)
