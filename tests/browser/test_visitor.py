"""A visitor finds a run that someone talked of, sees what it was spared, and passes a line and the run on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from fdstore.client import Process, Store
from fdstore.store.processes import processes
from fdstore.tools.process_task import SpawnTask, encode_task, title_of
from tests.browser.conftest import OpenPage
from tests.on_redis.web.journals import SPARED, converse

TASK = SpawnTask(query="Which service became slower, and why?\nLook at all logs.")
CLIPBOARD = ["clipboard-read", "clipboard-write"]


@pytest.fixture
def survey(store: Store) -> Process:
    """A run among others, which has ended."""
    for number in range(5):
        store.process(f"other-{number}")
    root = store.process("survey")
    root.create("a line of a log\n" * 5000, source="service_log: billing")
    store.run(processes.launch(root.handle, encode_task(TASK), title_of(TASK)))
    converse(root, *SPARED)
    store.run(
        processes.end(root.handle, "exited", exit_code=0, answer="Billing waits for a disk.", release=False)
    )
    return root


@pytest.mark.parametrize("words", ["slower service", "billing disk", "service_log"])
def test_a_run_is_found_by_the_words_of_its_task_its_answer_and_its_sources(
    open_page: OpenPage, survey: Process, words: str
) -> None:
    page = open_page("/workers")

    page.keyboard.press("/")
    page.keyboard.type(words)
    page.keyboard.press("Enter")

    rows = page.locator("table.trees tbody tr")
    expect(rows).to_have_count(1)
    expect(rows).to_contain_text("Which service became slower, and why?")
    expect(rows.locator(".found a").first).to_have_text(re.compile(r"^(task|answer|source) of survey"))


def test_what_a_run_was_spared_is_seen_on_its_page_and_passed_on(
    open_page: OpenPage, survey: Process, tmp_path: Path
) -> None:
    page = open_page("/?q=slower", permissions=CLIPBOARD)
    page.locator("#tree-survey th a").first.click()

    expect(page.locator("#saved-tile dd")).to_contain_text(re.compile(r"~\d+\.?\d*k tokens"))
    expect(page.locator("section.saved svg title")).to_contain_text(
        "In 2 turns the model was sent 2.4k tokens"
    )
    with page.expect_download() as download:
        page.get_by_role("link", name="Export this run").click()
    text = Path(download.value.path()).read_text("utf-8")
    assert "Which service became slower, and why?" in text
    assert "In 2 turns the model was sent 2.4k tokens" in text

    page.locator("a.id[href='/process/survey']").first.click()
    page.locator("[id='held-fd%3A1'] a").click()
    page.locator("#L7 a.no").click()
    page.get_by_role("button", name="Copy link").click()
    expect(page.locator("#told")).to_have_text("The link to line 7 is copied")
    assert page.evaluate("navigator.clipboard.readText()").endswith("/process/survey/fd/1?lines=7")
