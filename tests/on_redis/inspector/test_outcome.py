"""What came of a run stands first on its pages: the task, the answer in safe Markdown, failures by reason."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import Any

import pytest
from click.testing import CliRunner

from fdstore.agents.loop.bundle import Bundle, Program
from fdstore.agents.loop.conversation import Result, Start
from fdstore.agents.loop.launch import launch_root
from fdstore.cli import cli
from fdstore.client import Process, Store
from fdstore.inspector.reading.outcome import ANSWER_CHARS
from fdstore.model import ends
from fdstore.model.records import TreeLimits
from fdstore.store.keys import process_keys
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import journal, pipelines, processes
from fdstore.store.streams import streams
from fdstore.text.layout import show_controls
from fdstore.tools.process_task import SpawnTask, encode_task, title_of
from tests.on_redis.inspector.inspected import Get
from tests.on_redis.inspector.journals import answer, converse, failed_child, pipe
from tests.on_redis.inspector.run_page import Read, export

ANSWER = (
    "# Cause\n**A full disk**, on `db-3`:\n\n| day | errors |\n|---|---|\n| Monday | 12 |\n\n1. Clean it.\n"
)
HOSTILE = "<img src=x onerror=alert(1)> [here](javascript:alert(1)) ![x](http://a/b.png) <http://a.b>\n\n[x]: http://c\n"


@pytest.fixture
def run(proc: Process, execute: Callable[..., Any]) -> Callable[..., Process]:
    """Makes the process an agent with this answer that has exited, or failed for a reason."""

    def make(answer: str = "", reason: str = "", asked: str = "Why did it fail?", **end: Any) -> Process:
        task = SpawnTask(query=asked)
        execute("HSET", proc.handle.keys.record, "program", "triage", "task", title_of(task))
        if not execute("EXISTS", proc.handle.keys.journal):
            proc.store.run(journal.append(proc.handle, 0, [encode_task(task)]))
        state, code = (end.pop("state", "failed"), None) if reason else ("exited", 0)
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


def test_nothing_is_said_of_the_cost_before_a_model_has_answered(
    get: Get, store: Store, run: Callable[..., Process], execute: Callable[..., Any]
) -> None:
    """Regression: a run that was refused at once, or waited for a worker, had the cost 0.00 USD."""
    root = run(reason="the model answered 401").handle.keys.record
    execute("HSET", root, "price", '{"input": 3, "output": 15, "currency": "USD"}')

    pages = [each.text for each in get("/", "/tree/triage", "/process/triage")]
    pages += [export(store, "triage"), CliRunner().invoke(cli, ["--url", store.url, "log", "triage"]).output]
    execute("HSET", root, "output_tokens", 1000)
    spent = get("/tree/triage")

    for page in pages:
        assert "401" in page
        assert "USD" not in page
    assert "cost 0.0150 USD" in section(spent.text)


def calls(*results: tuple[str, bool]) -> list[Any]:
    """A conversation whose calls have these results: a text, and whether it is an error."""
    made = answer("I look.", *((f"t{n}", "search_web", {"q": str(n)}) for n in range(len(results))))
    said = [Result(call=f"t{n}", content=text, is_error=bad) for n, (text, bad) in enumerate(results)]
    return [Start(system="", content="Why?"), made, *said, answer("I could not find out.")]


def test_a_run_whose_every_call_failed_says_so_with_the_reasons(
    get: Get, store: Store, proc: Process, run: Callable[..., Process]
) -> None:
    bad = ("no such host <b>\nat line 3", True)
    converse(proc, *calls(bad, bad, ("time is over", True)))
    run("I could not find out.")

    page, twin, of_process = get("/tree/triage", "/tree/triage.json", "/process/triage")
    shown = [section(each) for each in (page.text, of_process.text, export(store, "triage"))]
    log = CliRunner().invoke(cli, ["--url", store.url, "log", "triage"])

    for each in shown:
        assert "exited; each of its 3 tool calls failed" in each
        assert "Its answer, beside what failed:" in each
        assert "do not rely on the answer; make search_web work; run it again: <code>fdstore run" in each
        assert "<b>2×</b> search_web: no such host &lt;b&gt;</span>" in each
        assert "search_web: time is over</span>" in each
    assert twin.json()["outcome"]["failed_calls"]["count"] == 3
    assert [line.split(None, 1) for line in log.output.splitlines()[2:5]] == [
        ["exited", "each of its 3 tool calls failed"],
        ["failed", "2 x search_web: no such host <b>"],
        ["failed", "search_web: time is over"],
    ]


@pytest.mark.parametrize(
    ("reason", "remedy"),
    [
        (ends.MAX_TURNS.text(8), "raise max_turns in [limits] of triage.toml; run it again"),
        (ends.WALL_SECONDS.text(60.0), "raise wall_seconds in [limits] of triage.toml; run it again"),
        (ends.TOKEN_BUDGET.text(60), "raise token_budget in [limits] of triage.toml; run it again"),
        (ends.TREE_TOKEN_BUDGET.text(60, 61), "raise tree_token_budget in [limits] of triage.toml"),
        (ends.TREE_MODEL_CALLS.text(60, 61), "`fdstore limits show triage` shows what it used"),
        (ends.TREE_TOKENS_PER_DAY.text("tokens"), "wait for the next day (UTC)"),
        (ends.NO_ANSWER.text(1, 60.0), "answer sooner (`fdstore questions triage -f`)"),
        ("poison", "find out what killed its workers: `fdstore log triage`"),
        ("the model answered 500", "run it again: `fdstore run triage.toml -p 'Why did it fail?'`"),
        (
            "the model answered 401 authentication_error: no; check ANTHROPIC_API_KEY",
            "check ANTHROPIC_API_KEY; run it again",
        ),
        (
            f"the model answered 400: prompt is too long; {ends.LESS_TO_READ}",
            f"{ends.LESS_TO_READ}; run it again",
        ),
        ("the model answered 500: look; check nothing", "remove the cause; run it again"),
        (f"500; no answer for 9 s {ends.GAVE_UP}", "raise give_up_seconds in [model] of triage.toml"),
    ],
)
def test_a_failed_run_has_what_can_be_done_about_it(
    get: Get, store: Store, run: Callable[..., Process], reason: str, remedy: str
) -> None:
    run(reason=reason)

    page = Read(get("/tree/triage").text)
    log = CliRunner().invoke(cli, ["--url", store.url, "log", "triage"])

    for each in (" ".join(page.text.split()), " ".join(log.output.split())):
        assert remedy.replace("`", "") in each.replace("`", "")
        assert "fdstore run triage.toml -p 'Why did it fail?'" in each


def test_the_command_to_run_again_works_with_a_task_of_any_length(
    get: Get, store: Store, run: Callable[..., Process]
) -> None:
    """Regression: a task of more than 80 characters was `"..."` in it, of one of two lines the first was."""
    asked = " ".join(["Compare Bob's orders with those of yesterday."] * 6)
    run(reason="the model answered 500", asked=asked)

    shown = Read(section(get("/tree/triage").text)).text
    exported = Read(section(export(store, "triage", "Bob.s orders"))).text

    _, *words = shlex.split(shown.partition("run it again: ")[2])
    assert words == ["run", "triage.toml", "-p", asked]
    assert "[redacted]" in exported
    assert "orders" not in exported


@pytest.mark.parametrize(
    "asked", ["Why?\nSay when, too.", "Is `ls` in it?", "word " * 61, "Why\u202e?", "two  blanks"]
)
def test_a_task_that_a_command_cannot_have_is_said_to_be_in_the_log(
    get: Get, store: Store, run: Callable[..., Process], asked: str
) -> None:
    run(reason="the model answered 500", asked=asked)

    shown = Read(section(get("/tree/triage").text)).text
    log = CliRunner().invoke(cli, ["--url", store.url, "log", "triage", "--full"])

    assert "run it again: fdstore run triage.toml -f FILE" in shown
    assert "fdstore log triage --full has all of it" in shown
    assert show_controls(asked.split("\n")[-1].strip(), keep="") in log.output


def test_the_call_that_a_failed_run_did_not_end_is_named(
    get: Get, store: Store, proc: Process, run: Callable[..., Process]
) -> None:
    asked = answer("", ("t1", "look_up", {"order": 1}), ("t2", "render_invoice", {"order": "no. <48113>"}))
    converse(proc, Start(system="", content="Why?"), asked, Result(call="t1", content="It is there."))
    run(reason="poison")

    shown = [Read(section(each)).text for each in (get("/tree/triage").text, export(store, "triage"))]
    log = CliRunner().invoke(cli, ["--url", store.url, "log", "triage"])
    redacted = section(export(store, "triage", "no. <48113>"))

    for each in shown:
        assert 'This call did not end: render_invoice(order="no. <48113>")' in each
    assert 'render_invoice(order="no. <48113>")' in log.output
    assert "render_invoice(order=" in redacted
    assert "48113" not in redacted


def test_a_run_that_somebody_killed_is_to_be_run_again_only_if_it_is_needed(
    get: Get, run: Callable[..., Process]
) -> None:
    run(reason="killed", state="cancelled")

    shown = Read(section(get("/tree/triage").text)).text

    assert "To do: if it is still needed, run it again: fdstore run triage.toml -p" in shown


def test_a_failed_question_can_be_asked_again_over_its_texts(
    get: Get, store: Store, proc: Process, execute: Callable[..., Any]
) -> None:
    asked = store.run(processes.create_child(proc.handle, None, state="ready"))
    execute("HSET", proc.handle.keys.record, "task", "Why?")
    execute("HSET", asked.keys.record, "program", "ask", "task", "Why?")
    store.run(processes.end(asked, "failed", reason=ends.MAX_TURNS.text(8)))

    page = Read(get("/tree/triage").text)

    assert 'To do: ask on over the same texts: fdstore ask --continue triage "..."' in page.text


def test_a_run_with_a_call_that_did_not_fail_or_without_calls_has_exited(
    get: Get, proc: Process, run: Callable[..., Process]
) -> None:
    converse(proc, *calls(("no such host", True), ("found", False)))
    run("I could not find out.")

    page = get("/tree/triage")

    assert "tool call" not in section(page.text)


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


@pytest.mark.parametrize(
    ("is_client", "to_do"),
    [
        (
            False,
            "if the answer lacks what triage.1 was to do, check ANTHROPIC_API_KEY; run it again: fdstore run",
        ),
        (True, "check ANTHROPIC_API_KEY; then its client can start triage.1 again"),
    ],
)
def test_a_failed_child_of_a_run_that_did_not_fail_says_what_to_do(
    get: Get, proc: Process, run: Callable[..., Process], is_client: bool, to_do: str
) -> None:
    failed_child(proc, "the model answered 401: no such key; check ANTHROPIC_API_KEY")
    if not is_client:
        run("Two of three are done.")

    shown = " ".join(Read(section(get("/tree/triage").text)).text.split())

    assert "no such key" in shown
    assert f"To do: {to_do}" in shown


@pytest.mark.parametrize(
    ("is_client", "to_do"),
    [(False, "remove the cause; then run triage again"), (True, "then its client can start it again")],
)
def test_the_page_of_a_failed_child_says_what_to_do(
    get: Get, proc: Process, run: Callable[..., Process], execute: Any, is_client: bool, to_do: str
) -> None:
    child = failed_child(proc, "no such day")
    execute("HSET", child.keys.record, "program", "reader")
    if not is_client:
        run("Two of three are done.")

    page = Read(section(get(f"/process/{child.id}").text)).text

    assert to_do in " ".join(page.split())


def test_the_page_of_an_agent_names_what_failed_below_it(
    get: Get, proc: Process, run: Callable[..., Process]
) -> None:
    failed_child(proc, "no such day")
    run("Two of three are done.")

    page = Read(section(get("/process/triage").text)).text

    assert "no such day in triage.1" in " ".join(page.split())


def test_a_pipeline_says_on_its_page_which_stage_ended_with_which_code_and_why(
    get: Get, store: Store, proc: Process, run: Callable[..., Process]
) -> None:
    started = pipe(proc, "cut -f 2", "grep -E '['", "sort", in_fd=proc.create("a\n").fd)
    bad = ProcessHandle(process_keys(store.prefix, started.process), TreeLimits())
    written = streams.appender_for_output(bad, started.stderr_fd, 4000)
    written.put("grep: Unmatched [ <b>\n")
    store.run(written.store())
    store.run(pipelines.store_exit_codes(bad, (141, 2, 0)))
    store.run(processes.end(bad, exit_code=2))
    run("No line came out.", release=False)

    page, of_agent = get(f"/process/{bad.id}", "/process/triage")
    log = CliRunner().invoke(cli, ["--url", store.url, "log", "triage"]).output
    shown, above = (" ".join(Read(section(each.text)).text.split()) for each in (page, of_agent))

    assert "It gave no answer" not in shown
    assert "Its answer, beside what failed: No line came out." in above
    assert "ended with exit code 2: cut -f 2 | grep -E '[' | sort" in above
    for text in (shown, above, log):
        assert "grep: Unmatched [ <b>" in text
    assert "Stage 2 of 3 ended with exit code 2: grep -E '['" in shown
    assert "To do: correct the command, which triage started; then run triage again" in shown


def test_a_pipeline_that_ended_with_another_code_than_0_is_named(
    get: Get, store: Store, proc: Process, run: Callable[..., Process]
) -> None:
    fd = proc.create("a\n").fd
    fine, bad = (
        ProcessHandle(process_keys(store.prefix, pipe(proc, command, in_fd=fd).process), TreeLimits())
        for command in ("sort", "grep -E '[' key=secret-1")
    )
    store.run(processes.end(fine, exit_code=0))
    store.run(processes.end(bad, exit_code=2))
    run("No line came out.")

    shown = " ".join(Read(section(get("/tree/triage").text)).text.split())
    log = CliRunner().invoke(cli, ["--url", store.url, "log", "triage"]).output
    exported = section(export(store, "triage", "secret-[0-9]"))

    for text in (shown, " ".join(log.split())):
        assert f"{bad.id} " in text
        assert "code 2: grep -E '['" in text
        assert f"if the answer lacks the output of {bad.id}, read its standard error; run it again" in text
        assert fine.id not in text
    assert "grep -E" in exported
    assert "secret-1" not in exported


def test_an_exported_answer_is_redacted_before_it_is_cut(store: Store, run: Callable[..., Process]) -> None:
    run("The key is sk-4f9a77be. " + "word " * 10)

    shown = section(export(store, "triage", "sk-[0-9a-f]+"))

    assert "sk-4f9a77be" not in shown
    assert "The key is [redacted]" in shown


def test_a_client_process_has_no_outcome(get: Get, proc: Process) -> None:
    page = get("/tree/triage")

    assert 'class="outcome"' not in page.text


@pytest.mark.parametrize("path", ["/tree/night", "/process/night"])
def test_a_run_that_no_worker_takes_says_why_and_what_to_do(get: Get, store: Store, path: str) -> None:
    program = Program(name="solo", model="any")
    launch_root(store, Bundle(root="solo", programs={"solo": program}), "Count the errors.", "night")

    shown = " ".join(Read(section(get(path).text)).text.split())

    assert "Count the errors." in shown
    assert "worker" in shown
    assert "fdstore up" in shown or "fdstore worker" in shown
