"""A person finds out why a run failed: from the first page to the error, by clicks and by keys."""

from __future__ import annotations

import re

from playwright.sync_api import Locator, Page, expect

from fdstore.agents.loop.conversation import Result
from fdstore.client import Process, Store
from fdstore.elements import render
from fdstore.store.processes import processes
from tests.browser.conftest import OpenPage
from tests.on_redis.inspector.journals import SHORT, answer, converse

CAUSE = "fd:9 does not exist; there are: fd:1"
MOST_CLICKS = 4


def detail(page: Page) -> Locator:
    return page.locator("#detail")


def current(page: Page) -> Locator:
    return page.locator("#rows a[aria-current]")


def test_a_failed_run_leads_to_its_cause_in_few_clicks(open_page: OpenPage, failed: Process) -> None:
    page = open_page("/", viewport={"width": 1280, "height": 800})
    clicks = 0

    def click(found: Locator) -> None:
        nonlocal clicks
        found.click()
        clicks += 1

    click(page.get_by_role("link", name="nightly", exact=True))
    click(page.locator("tr", has_text="failed").get_by_role("link", name=failed.id))

    expect(detail(page)).to_contain_text(CAUSE)
    expect(page.get_by_text(CAUSE).first).to_be_in_viewport()
    expect(detail(page)).to_contain_text("fd:9")
    expect(current(page)).to_contain_text("failed")
    assert clicks <= MOST_CLICKS


def test_a_run_that_failed_for_its_agent_leads_on_to_that(
    open_page: OpenPage, store: Store, failed: Process
) -> None:
    root = store.process("nightly")
    record = next(each for each in store.processes() if each.id == failed.id)
    ended = render.process_result(record)
    converse(
        root,
        answer("I hand it on.", ("t1", "spawn_agent", {"program_name": "reader", "query": "Why?"})),
        Result(call="t1", content=ended.text, facts=ended.facts, is_error=True),
    )
    store.run(processes.end(root.handle, "failed", exit_code=1, reason="its agent failed"))
    page = open_page("/")

    page.get_by_role("link", name="nightly", exact=True).click()
    page.locator("#process-nightly").get_by_role("link", name="nightly").click()
    expect(detail(page)).to_contain_text("nightly.1 failed with code 1, max_turns: too many answers")
    detail(page).get_by_role("link", name="nightly.1").click()

    expect(detail(page)).to_contain_text(CAUSE)
    expect(page.get_by_text(CAUSE).first).to_be_in_viewport()


def test_keys_go_from_step_to_step_and_from_error_to_error(open_page: OpenPage, failed: Process) -> None:
    page = open_page(f"/process/{failed.id}")
    expect(current(page)).to_have_attribute("data-step", "2-1")
    pages = page.evaluate("history.length")

    def press(key: str, step: str, text: str) -> None:
        page.keyboard.press(key)
        expect(current(page)).to_have_attribute("data-step", step)
        expect(current(page)).to_be_in_viewport()
        expect(detail(page)).to_contain_text(text)
        page.wait_for_url(re.compile(f"at={step}"))

    press("e", "5-8", "no summary 7")
    press("e", "5-31", "no summary 30")
    press("e", "46-0", "max_turns")
    press("E", "5-31", "no summary 30")
    press("E", "5-8", "no summary 7")
    press("E", "2-1", CAUSE)
    press("j", "2-2", "stored: 12 pages")
    press("k", "2-1", CAUSE)
    press("k", "2-0", "I look.")
    expect(page.locator("#json")).to_have_attribute("href", re.compile("at=2-0"))
    assert page.evaluate("history.length") == pages
    for _ in range(3):
        page.keyboard.press("j")
    expect(detail(page)).to_contain_text("I ask for help.")
    page.reload()
    expect(detail(page)).to_contain_text("I ask for help.")


def test_keys_are_those_of_a_field_that_has_the_focus(open_page: OpenPage, failed: Process) -> None:
    page = open_page(f"/process/{failed.id}")

    page.locator("#search").focus()
    page.keyboard.type("jekE")

    expect(page.locator("#search")).to_have_value("jekE")
    expect(current(page)).to_have_attribute("data-step", "2-1")
    assert "at=" not in page.url


def test_the_exact_text_and_the_errors_alone_are_a_click_away(open_page: OpenPage, failed: Process) -> None:
    page = open_page(f"/process/{failed.id}")
    assert "<fd_error" not in page.locator("main").inner_text()

    page.get_by_role("link", name="As sent to the model").click()
    expect(detail(page)).to_contain_text('<fd_error type="not_found" fd="fd:9">')
    page.get_by_role("link", name="In words").click()
    expect(detail(page)).not_to_contain_text("<fd_error")

    page.get_by_role("link", name="The 4 errors only").click()
    expect(page.locator("#rows a[data-step]")).to_have_count(4)
    expect(page.locator(".talk .e-answer")).to_have_count(0)
    page.keyboard.press("j")
    expect(detail(page)).to_contain_text("no summary 7")
    page.get_by_role("link", name="All steps").click()
    expect(page.locator("#rows a[data-step]")).to_have_count(47)
    expect(current(page)).to_have_attribute("data-step", "5-8")


def test_the_pane_works_without_javascript(open_page: OpenPage, failed: Process) -> None:
    page = open_page(f"/process/{failed.id}", java_script_enabled=False)

    page.locator("#rows a", has_text="bash").click()
    expect(detail(page)).to_contain_text("stored: 12 pages")
    page.get_by_role("link", name="Next error").click()
    expect(detail(page)).to_contain_text("no summary 7")
    page.get_by_role("link", name="Previous error").click()
    expect(detail(page)).to_contain_text(CAUSE)


def test_new_records_leave_the_chosen_step_as_it_is(open_page: OpenPage, store: Store) -> None:
    proc = store.process("triage")
    converse(proc, *SHORT)
    page = open_page("/process/triage")
    expect(current(page)).to_have_attribute("data-step", "7-0")
    converse(proc, answer("a second answer"))
    expect(current(page)).to_have_attribute("data-step", "8-0")
    expect(detail(page)).to_contain_text("a second answer")

    page.keyboard.press("E")
    expect(detail(page)).to_contain_text("no such host")
    converse(proc, answer("a third answer"))

    expect(page.locator("#row-9-0")).to_be_visible()
    expect(current(page)).to_have_attribute("data-step", "2-2")
    expect(detail(page)).to_contain_text("no such host")


def test_a_bar_of_the_timeline_leads_into_a_fold(open_page: OpenPage, failed: Process) -> None:
    page = open_page(f"/process/{failed.id}?from=5#e5-3")

    expect(page.locator("#e5-3")).to_be_in_viewport()
    expect(page.locator("#e5-3")).to_contain_text("part 2")
