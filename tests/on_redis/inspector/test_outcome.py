"""What came of a run stands first on its pages: the task, the answer in safe Markdown, failures by reason."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.inspector.reading.outcome import ANSWER_CHARS
from fdstore.store.processes import processes
from tests.on_redis.inspector.inspected import Get
from tests.on_redis.inspector.run_page import export

ANSWER = (
    "# Cause\n**A full disk**, on `db-3`:\n\n| day | errors |\n|---|---|\n| Monday | 12 |\n\n1. Clean it.\n"
)
HOSTILE = "<img src=x onerror=alert(1)> [here](javascript:alert(1)) ![x](http://a/b.png) <http://a.b>\n\n[x]: http://c\n"


@pytest.fixture
def run(proc: Process, execute: Callable[..., Any]) -> Callable[..., Process]:
    """Makes the process an agent with this answer that has exited, or failed for a reason."""

    def make(answer: str = "", reason: str = "", **end: Any) -> Process:
        execute("HSET", proc.handle.keys.record, "program", "triage", "task", "Why did it fail?")
        state, code = ("failed", None) if reason else ("exited", 0)
        proc.store.run(processes.end(proc.handle, state, exit_code=code, reason=reason, answer=answer, **end))
        return proc

    return make


def section(page: str) -> str:
    """Return the part of a page about the outcome."""
    return page.partition('<section class="outcome"')[2].partition("</section>")[0]


@pytest.mark.parametrize("path", ["/tree/triage", "/process/triage"])
def test_the_answer_is_shown_as_markdown_before_all_else(
    get: Get, run: Callable[..., Process], path: str
) -> None:
    run(ANSWER)

    page, _ = get(path, f"{path}.json")
    shown = section(page.text)

    assert "Why did it fail?" in shown
    for part in (
        "<h3>Cause</h3>",
        "<strong>A full disk</strong>",
        "<code>db-3</code>",
        "<td>12</td>",
        "<li>",
    ):
        assert part in shown
    assert page.text.index('class="outcome"') < page.text.index("<dl")


def test_an_answer_brings_no_html_no_links_and_no_pictures(
    get: Get, store: Store, run: Callable[..., Process]
) -> None:
    run(HOSTILE + "\x1b[31m\u202e")

    page = get("/tree/triage")

    for shown in (section(page.text), section(export(store, "triage"))):
        answer = shown.partition('class="answer"')[2].partition("</div>")[0]
        assert "<img" not in answer
        assert "<a " not in answer
        assert "&lt;img src=x" in answer
        assert "[here](javascript:alert(1))" in answer
        assert "\\u{1b}[31m\\u{202e}" in answer


def test_failures_are_counted_by_their_reasons_and_lead_to_the_first(
    get: Get, store: Store, proc: Process, run: Callable[..., Process]
) -> None:
    for _ in range(5):
        child = store.run(processes.create_child(proc.handle, None, state="ready"))
        store.run(processes.end(child, "failed", reason="ModelFailed: the model answered 500"))
    run(reason="poison")

    page = get("/tree/triage")
    shown = section(page.text)

    assert "<b>5×</b> ModelFailed: the model answered 500" in shown
    assert 'href="/process/triage.1"' in shown
    assert "poison: too many workers died while they ran it" in shown


def test_of_a_long_answer_the_beginning_is_shown_and_where_the_rest_is(
    get: Get, run: Callable[..., Process], proc: Process
) -> None:
    text = "word " * 5000
    fd = proc.create(text).fd
    run(answer_fd=fd, long_answer=text, release=False)

    page = get("/tree/triage")
    shown = section(page.text)

    assert f"The first {ANSWER_CHARS:,}" in shown
    assert 'href="/process/triage/fd/1"' in shown


def test_an_exported_answer_is_redacted_before_it_is_cut(store: Store, run: Callable[..., Process]) -> None:
    run("The key is sk-4f9a77be. " + "word " * 10)

    shown = section(export(store, "triage", "sk-[0-9a-f]+"))

    assert "sk-4f9a77be" not in shown
    assert "The key is [redacted]" in shown


def test_a_client_process_has_no_outcome(get: Get, proc: Process) -> None:
    page = get("/tree/triage")

    assert 'class="outcome"' not in page.text
