"""A visitor finds a run that someone talked of, sees what it was spared, and passes the run on."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from playwright.sync_api import expect

from fdstore.client import Process, Store
from fdstore.store.processes import processes
from fdstore.tools.process_task import SpawnTask, encode_task, title_of
from tests.browser.conftest import OpenPage
from tests.on_redis.inspector.journals import SPARED, converse

TASK = SpawnTask(query="Which service became slower, and why?\nLook at all logs.")


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


def test_what_a_run_was_spared_is_seen_on_its_page_and_passed_on(
    open_page: OpenPage, survey: Process, tmp_path: Path
) -> None:
    page = open_page("/?q=slower")
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
