"""A person answers questions of agents in a browser: a choice, and a call with other arguments."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect

from fdstore.client import Process, Store
from tests.browser.conftest import OpenPage, Serve, watch
from tests.browser.test_accessibility import check, looks
from tests.on_redis.inspector.questions import agent_of, ask
from tests.waiting import wait_until

CALL = {"fd": "fd:1", "file_path": "plan.txt"}


@pytest.fixture
def asking(store: Store) -> Process:
    """A tree with two agents: one asks which colour, the other whether it may overwrite a file."""
    proc = store.process("triage")
    proc.create("one\nthree\n" * 20, source="plan.md " + "very-long-word" * 9)
    first = agent_of(proc, ("t1", "ask_person", {"question": "Which colour?"}))
    words = "Which colour?\n" + "unbroken" * 40 + "\n<b>really</b>"
    ask(proc, first, text=words, choices=("red", "blue " * 60), fd="fd:1")
    second = agent_of(proc, ("t1", "fd_to_file", CALL))
    ask(proc, second, tool="fd_to_file", arguments=CALL)
    return proc


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "plan.txt").write_text("one\ntwo\n" * 20)
    return tmp_path


@pytest.fixture
def show(browser: Browser, serve: Serve, root: Path, problems: list[str]) -> Iterator[Callable[..., Page]]:
    """`show(path, **look)` opens a page of an inspector that may answer and sees the files of workers."""
    url = serve(may_answer=True, may_kill=True, export_root=str(root)).url
    pages: list[Page] = []

    def opened(path: str, **look: Any) -> Page:
        page = browser.new_page(base_url=url, **look)
        watch(page, problems)
        page.goto(path)
        pages.append(page)
        return page

    yield opened
    for page in pages:
        page.close()
    assert not problems, problems


def test_a_choice_is_found_and_answered_by_keyboard_and_the_count_follows(
    show: Callable[..., Page], asking: Process
) -> None:
    page = show("/")
    counter = page.locator("#questions .asked")
    expect(counter).to_have_text("2 open")

    page.get_by_role("link", name="Questions").click()
    card = page.locator("#question-triage\\.1-1")
    expect(card).to_contain_text("<b>really</b>")
    card.get_by_label("Your name").fill("Ann")
    page.keyboard.press("Enter")  # answers nothing
    expect(page).to_have_url(re.compile("/questions$"))
    assert len(asking.store.questions()) == 2
    card.get_by_role("button", name="red").focus()
    page.keyboard.press("Enter")

    expect(page.get_by_role("heading", name="Answered by Ann")).to_be_visible()
    expect(counter).to_have_text("1 open")
    page.get_by_role("link", name="1 more question of this tree").click()
    expect(page.get_by_label("Your name")).to_have_value("Ann")


def test_a_call_is_judged_by_what_it_overwrites_and_runs_with_changed_arguments(
    show: Callable[..., Page], asking: Process, problems: list[str]
) -> None:
    page = show("/tree/triage")
    card = page.locator("#question-triage\\.2-1")
    expect(card.locator("table.diff tr.removed").first).to_contain_text("two")
    expect(card.locator("table.diff tr.added").first).to_contain_text("three")

    card.get_by_role("link", name="in the conversation").click()
    expect(page.locator("#pane [aria-current]")).to_contain_text("fd_to_file")
    card = page.locator("#question-triage\\.2-1")
    card.get_by_text("Change the arguments first").click()
    editor = card.get_by_label("Arguments, as JSON")
    editor.fill(editor.input_value().replace('"plan.txt"', '"plan.txt", "mode": "ad"'))
    card.get_by_label("Your name").fill("Ann")
    card.get_by_role("button", name="Yes, run it").click()

    expect(page.get_by_role("alert")).to_contain_text("mode")
    problems.clear()  # the status of that page
    editor = page.get_by_label("Arguments, as JSON")
    expect(editor).to_be_visible()
    editor.fill(editor.input_value().replace('"ad"', '"append"'))
    page.get_by_role("button", name="Yes, run it").click()

    expect(page.get_by_role("heading", name="Approved by Ann")).to_be_visible()
    expect(page.locator("#given pre")).to_contain_text('"mode": "append"')
    page.reload()
    expect(page.locator(".answering")).to_have_count(0)


def test_what_is_typed_stays_when_somebody_else_answers(show: Callable[..., Page], asking: Process) -> None:
    page = show("/questions")
    card = page.locator("#question-triage\\.1-1")
    answer = card.get_by_label("Another answer")
    expect(page.locator("#live")).to_be_visible()
    answer.fill("a long thought")

    asking.store.answer("triage.1", "green", by="bob")

    expect(card.get_by_text("takes no answer any more")).to_be_visible()
    expect(answer).to_have_value("a long thought")
    expect(card.get_by_role("button", name="Answer", exact=True)).to_be_disabled()
    expect(page.locator("#questions .asked")).to_have_text("1 open")
    asking.store.answer("triage.2", approve=False, by="bob")
    expect(page.locator("#question-triage\\.2-1")).to_have_count(0)
    expect(answer).to_have_value("a long thought")


def test_a_question_appears_while_the_page_is_open_and_can_be_answered_without_javascript(
    show: Callable[..., Page], asking: Process
) -> None:
    page = show("/questions")
    expect(page.locator("#live")).to_be_visible()
    ask(asking, agent_of(asking, ("t1", "x", {})), text="And now?")
    expect(page.get_by_text("And now?")).to_be_visible()

    plain = show("/process/triage.3/questions/1", java_script_enabled=False)
    plain.get_by_label("Answer", exact=True).fill("later")
    plain.get_by_label("Your name").fill("Ann")
    plain.get_by_role("button", name="Answer", exact=True).click()

    expect(plain.get_by_role("heading", name="Answered by Ann")).to_be_visible()
    wait_until(lambda: len(asking.store.questions()) == 2)


@looks
def test_no_page_with_questions_breaks_a_rule_or_is_wider_than_the_screen(
    show: Callable[..., Page],
    open_page: OpenPage,
    asking: Process,
    problems: list[str],
    look: dict[str, Any],
) -> None:
    found: list[str] = []
    paths = ("/questions", "/tree/triage", "/process/triage.1", "/process/triage.2/questions/1")
    pages = [*(show(path, **look) for path in paths), open_page("/questions", **look)]
    asking.store.answer("triage.1", choice=1, by="bob")
    pages.append(show("/process/triage.1/questions/1", **look))
    pages.append(refused := show("/process/triage.2/questions/1", **look))
    refused.get_by_text("Change the arguments first").click()
    refused.get_by_label("Arguments, as JSON").fill("{")
    refused.get_by_label("Your name").fill("Ann")
    refused.get_by_role("button", name="Yes, run it").click()
    expect(refused.get_by_role("alert")).to_be_visible()
    problems.clear()  # the status of that page

    for page in pages:
        for summary in page.locator("details:not([open]) > summary").all():
            if summary.is_visible():
                summary.click()
        found += check(page)
        width = page.evaluate("document.documentElement.scrollWidth")
        assert width <= look["viewport"]["width"], page.url

    assert not found, "\n".join(found)
