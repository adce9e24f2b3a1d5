"""The page of a process: its conversation, what it holds, and the graph of a pipeline."""

from __future__ import annotations

import re
from typing import Any

import pytest

from fdstore.agents.loop.conversation import Result, Start
from fdstore.client import Process, Store
from fdstore.elements import render
from fdstore.elements.facts import in_block
from fdstore.errors import NotFound
from fdstore.store.processes import processes
from fdstore.store.views.process_window import SMALL_TABLE
from tests.on_redis.inspector.inspected import Get
from tests.on_redis.inspector.journals import (
    SHORT,
    SPARED,
    answer,
    ask_about_parts,
    converse,
    pipe,
    ready_child,
    spawns,
)
from tests.on_redis.inspector.run_page import Read
from tests.unit.rendering import descriptor, make_slice


def test_the_conversation_is_shown_with_its_calls_results_and_end(get: Get, proc: Process) -> None:
    proc.create("the log\n" * 9, source="build.log")
    converse(proc, *SHORT, end="exited")

    page, twin = get("/process/triage", "/process/triage.json")

    kinds = [entry["kind"] for entry in twin.json()["entries"]]
    assert kinds == [
        *("task", "system", "prompt", "answer", "call", "call", "result", "result", "note", "cleared"),
        *("answer", "end"),
    ]
    shown = Read(page.text).words
    for part in (
        "What broke the build?", "You are careful.", "I look.", "read_fd", "Result of read_fd",
        "Error of search_web", "no such host", "ref:plan was not stored.", "1 old result cleared",
        "A missing comma did.", "exited with code 0", "1.2k in", "30 out",
    ):  # fmt: skip
        assert part in shown, part
    assert '<a class="id" href="/process/triage/fd/1">fd:1#L1-9</a>' in page.text
    assert re.search(r"\d\d:\d\d:\d\d\.\d{3}", shown)


def test_a_long_answer_is_folded_and_whole_on_the_page_of_its_record(get: Get, proc: Process) -> None:
    text = "".join(f"line {number} of the answer\n" for number in range(3000))
    converse(proc, SHORT[0], answer(text))

    page, record = get("/process/triage", "/process/triage/record/2")

    assert "Show 12,000 of" in page.text
    assert 'href="/process/triage/record/2"' in page.text
    assert "line 2999 of the answer" not in page.text
    assert "line 2999 of the answer" in record.text


def test_the_asks_of_a_program_are_pages_of_their_own(get: Get, proc: Process) -> None:
    proc.create("a line\n" * 60)
    ask_about_parts(proc, 60)

    page = get("/process/triage")
    [link] = set(re.findall(r'<a href="(/process/triage/asks[^"]*)">asks 1 of 60, 1 failed</a>', page.text))
    first, later = get(link, f"{link}&from=50")

    assert Read(first.text).words.count("Which dates occur?") == 50
    assert "too_large: this ask has 900000 characters of text" in Read(first.text).words
    assert "fd:1#L50" in first.text
    assert "Later asks" in first.text
    assert Read(later.text).words.count("no answer yet") == 10


def test_a_long_conversation_is_read_by_its_links(get: Get, proc: Process) -> None:
    converse(proc, SHORT[0], *(answer(f"turn {number}") for number in range(1, 150)))

    last, first = get("/process/triage.json", "/process/triage.json?from=0")

    assert (last.json()["next"], last.json()["length"], last.json()["later"]) == (151, 151, None)
    earlier = get(f"/process/triage.json?from={last.json()['earlier']}").json()
    assert earlier["next"] == last.json()["start"]
    assert (first.json()["start"], first.json()["earlier"], first.json()["later"]) == (0, None, 60)


def test_a_process_of_a_client_program_shows_what_it_holds(get: Get, proc: Process) -> None:
    proc.create("one\ntwo\n", source="notes <i>")
    proc.put("a/b?.txt", "two")
    proc.create(b"\x00\x01\x02", source="blob.bin")
    child = proc.child()

    page = get(f"/process/{proc.id}").text

    table = Read(page.partition("<tbody>")[2].partition("</tbody>")[0]).words
    assert "fd:1 notes <i> sealed 8 B 2 text/plain" in table
    assert "fd:3 blob.bin sealed 3 B – application/octet-stream" in table
    assert 'href="/process/triage/fd/1"' in page
    assert 'href="/process/triage/fd/name?key=a%2Fb%3F.txt"' in page
    assert f'href="/process/{child.id}"' in page
    assert page.count('id="held"') == 1
    assert "Conversation" not in Read(page).words


def test_an_ended_process_of_a_client_program_has_no_conversation(get: Get, proc: Process) -> None:
    child = proc.child()
    child.create("one", source="notes")
    child.end()

    page = get(f"/process/{child.id}").text

    assert "It released them when it ended." in page
    assert 'id="pane"' not in page
    assert "Conversation" not in Read(page).words


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_child_that_failed_is_not_said_to_have_released_what_it_held(
    get: Get, proc: Process, state: str
) -> None:
    silent, spoken = proc.child(), proc.child()
    converse(spoken, *SHORT)
    for child in (silent, spoken):
        proc.store.run(processes.end(child.handle, state, exit_code=None, release=False))  # type: ignore[arg-type]

    pages = [get(f"/process/{child.id}").text for child in (silent, spoken)]

    assert not any("released" in page for page in pages)
    assert all("It holds none." in page for page in pages)


def test_a_child_that_exited_with_0_released_what_it_held(get: Get, proc: Process) -> None:
    child = proc.child()
    converse(child, *SHORT, end="exited")

    assert "It released them when it ended." in get(f"/process/{child.id}").text


def test_a_large_table_is_shown_by_windows_of_numbers(get: Get, proc: Process) -> None:
    for number in range(SMALL_TABLE + 1):
        proc.create(str(number))

    found = get("/process/triage.json").json()["descriptors"]
    before = get(f"/process/triage.json?fds_before={found['earlier']}").json()["descriptors"]

    assert (found["total"], found["is_whole"]) == (SMALL_TABLE + 1, False)
    assert found["descriptors"][-1]["fd"] == f"fd:{SMALL_TABLE + 1}"
    assert before["descriptors"][-1]["fd"] == f"fd:{found['earlier'] - 1}"


def test_a_pipeline_is_a_graph_of_its_commands(get: Get, proc: Process) -> None:
    proc.create("b\na\n")
    made = pipe(proc, "grep -n '<b>'", "sort", in_fd="fd:1", tee=(1,))
    after = pipe(proc, "cat", in_fd=made.fd)

    paths = f"/process/{made.process}", f"/process/{made.process}.json", f"/process/{after.process}.json"
    page, twin, following = get(*paths)

    graph = twin.json()["pipeline"]
    assert [stage["command"] for stage in graph["stages"]] == ["grep -n '<b>'", "sort"]
    assert (graph["holder"], graph["input"]["fd"], graph["output"]["fd"]) == ("triage", "fd:1", made.fd)
    assert (graph["stderr"]["fd"], graph["stages"][0]["tee"]["fd"]) == (made.stderr_fd, made.tee_fds[0])
    assert following.json()["pipeline"]["input"]["writer"] == made.process
    assert "grep -n &#39;&lt;b&gt;&#39;" in page.text


def test_times_that_cannot_be_shown_harm_no_page(get: Get, proc: Process, execute: Any) -> None:
    converse(proc, SHORT[0])
    record = (
        b'{"kind":"note","text":"late","at_ms":0,"took_ms":253402300799999,"outage_ms":253402300799999,'
        b'"retries":[{"number":1,"after_ms":253402300799999,"pause_ms":0,"reason":"x"}]}'
    )
    execute("RPUSH", "fdstore:{triage}:triage:journal", record)

    for path in ("/process/triage", "/process/triage/record/2", "/tree/triage"):
        assert get(path).status_code == 200


def conversation_in(page: str) -> str:
    """Return the part of a process page below its pane."""
    return page.partition('aria-labelledby="conversation"')[2]


def test_results_are_below_their_calls(get: Get, proc: Process) -> None:
    converse(proc, Start(system="", content="Summarize."), *spawns(3))

    page = conversation_in(get("/process/triage").text)

    ids = re.findall(r'id="((?:step-|e)\d+-\d+)"', page)
    assert ids[2:] == [
        *("e2-0", "step-2-1", "e2-1", "e5-0", "step-2-2", "e2-2", "e4-0", "step-2-3", "e2-3", "e3-0"),
    ]


def test_equal_parallel_calls_are_folded_and_failed_ones_are_first(get: Get, proc: Process) -> None:
    converse(proc, Start(system="", content="Summarize."), *spawns(40, failed=(7,)))

    page = conversation_in(get("/process/triage").text)

    shown = Read(page).words
    assert re.search(r"40 × spawn_agent summarizer 1 failed 39 done", shown)
    assert "39 without an error" in shown
    assert page.count("<details open>") == 1
    assert page.index('id="e2-8"') < page.index('id="others-2-1"') < page.index('id="e2-1"')
    assert {f'id="e{n}-0"' in page for n in range(2, 43)} == {True}


def test_a_result_whose_call_is_on_another_page_leads_to_it(get: Get, proc: Process) -> None:
    converse(proc, Start(system="", content="Summarize."), *spawns(80))

    first, later = get("/process/triage?from=0", "/process/triage?from=10")
    below = conversation_in(later.text)
    link = re.findall(r'href="(/process/triage\?from=2#e2-\d+)">earlier records', below)[0]

    assert link.endswith("#e2-73")
    assert below.count("Its call is in") == 60
    pane = Read(later.text.partition('id="detail"')[2].partition("</section>")[0]).words
    assert "Input program_name summarizer query part" in pane, "its arguments are shown beside it"
    assert 'id="step-10-0"' in below
    later_url = 'Its result is in <a href="/process/triage?from=60">later records</a>'
    assert conversation_in(first.text).count(later_url) == 23


def test_elements_are_shown_in_words_unless_asked(get: Get, proc: Process) -> None:
    missing = render.fd_error(NotFound("fd:9", ("fd:1",)), "fd:9")
    stored = render.fd_result(
        descriptor("fd:3", source="<b>.log"), make_slice("one\ntwo\n"), None, "Stored.", 7
    )
    converse(
        proc,
        Start(system="", content=f"Read this.\n{render.fd_content(make_slice('the plan')).text}"),
        answer("", ("t1", "read_fd", {"fd": "fd:9"}), ("t2", "bash", {})),
        Result(call="t1", content=missing.text, facts=missing.facts, is_error=True),
        Result(call="t2", content=f"see\n{stored.text}", facts=in_block(stored.facts, 1)),
    )

    words, raw, record = get("/process/triage", "/process/triage?raw=1", "/process/triage/record/3?raw=1")

    shown = Read(words.text).words
    assert "not_found, fd:9 fd:9 does not exist; there are: fd:1" in shown
    assert "fd:3 , stored: 12 pages, 48,000 characters name <b>.log" in shown
    assert '<a class="id" href="/process/triage/fd/3">fd:3</a>' in words.text
    assert "Prompt Read this. fd:1 , page 2 of 3, lines 41-80 lines in all 100 the plan" in shown
    assert "<fd_error" not in shown
    assert "<fd_content" not in shown
    assert "<message>" not in shown
    for page in (raw, record):
        assert '<fd_error type="not_found" fd="fd:9"> <message>' in Read(page.text).words


def test_the_pane_shows_the_first_error_of_a_failed_process_and_else_the_last_step(
    get: Get, store: Store, proc: Process
) -> None:
    converse(proc, *SHORT)
    assert get("/process/triage.json").json()["at"] == "7-0"
    assert get("/process/triage.json?at=3-0").json()["at"] == "2-1", "the result of a call is in its step"

    store.run(processes.end(proc.handle, "failed", exit_code=1, reason="out of turns"))

    page, twin = get("/process/triage", "/process/triage.json")
    assert (twin.json()["at"], twin.json()["errors"]) == ("2-2", 2)
    detail = Read(page.text.partition('id="detail"')[2].partition("</section>")[0]).words
    assert "search_web failed" in detail
    assert "Input q E42 Error no such host" in detail
    rows = re.findall(
        r'<a href="([^"]*)"( aria-current="true")? data-step="([^"]*)"( data-error)?', page.text
    )
    assert [(key, bool(here), bool(error)) for _, here, key, error in rows if here or error] == [
        ("2-2", True, True),
        ("8-0", False, True),
    ]
    assert rows[0][0] == "?at=0-0#pane"


def test_errors_only_chooses_the_first_error_of_a_process_that_did_not_fail(get: Get, proc: Process) -> None:
    converse(proc, *SHORT)

    whole, errors = get("/process/triage.json", "/process/triage.json?errors=1")
    page = get("/process/triage?errors=1").text

    [first] = [each for each in errors.json()["entries"] if each.get("is_error")]
    call = next(each for each in errors.json()["entries"] if each.get("call") == first["call"])
    assert whole.json()["at"] != errors.json()["at"] == f"{call['position']}-{call['part']}"
    assert page.count('aria-current="true"') == 1
    assert "no such host" in page.split('id="output"')[1].split("</div>")[0]


def test_errors_only_leaves_out_all_other_steps(get: Get, proc: Process) -> None:
    converse(proc, Start(system="", content="Summarize."), *spawns(40, failed=(3, 9)))

    page = get("/process/triage?errors=1").text

    assert re.findall(r'data-step="([^"]*)"', page) == ["2-4", "2-10"]
    assert 'id="e2-4"' in page
    assert 'id="e2-0"' not in page
    assert 'href="?at=2-10&amp;errors=1' in page or 'href="?errors=1&amp;at=2-10' in page
    none = get("/process/triage?errors=1&from=0&at=0-0").text
    assert re.findall(r'data-step="([^"]*)"', none) == ["2-4", "2-10"]


def test_a_step_before_the_last_records_is_shown_among_its_own(get: Get, proc: Process) -> None:
    converse(proc, SHORT[0], *(answer(f"turn {number}") for number in range(1, 150)))

    page, twin = get("/process/triage?at=40-0", "/process/triage.json?at=40-0")

    assert (twin.json()["start"], twin.json()["next"], twin.json()["at"]) == (10, 70, "40-0")
    assert "?at=41-0&amp;from=10#pane" in page.text, "its neighbours are of the same records"


def test_a_step_names_the_processes_that_it_started(get: Get, proc: Process) -> None:
    converse(proc, *SPARED)

    page = get("/process/triage").text

    rows = page[page.index('id="rows"') : page.index('id="detail"')]
    assert re.search(
        r'<a class="child" href="/process/triage\.1">.*triage\.1</span><span class="state is-failed">', rows
    )


def test_the_curve_says_how_much_less_was_sent_and_has_numbers_at_its_ends(get: Get, proc: Process) -> None:
    converse(proc, *SPARED)

    page, twin = get("/tree/triage", "/tree/triage.json")

    curve = twin.json()["saved"]["curve"]
    times = curve["without"] / curve["sent"]
    assert re.search(f"<b>{times:.{0 if times >= 10 else 1}f} times less</b> sent than", page.text)
    assert len(re.findall(r'<text x="[\d.]+%" y="[\d.]+%" dy="-?\d+"', page.text)) == 2
    assert curve["beyond_at"] is None
    assert 'class="beyond"' not in page.text


def test_the_head_says_what_the_process_does_now(get: Get, proc: Process) -> None:
    waiting = ready_child(proc)

    head = get(f"/process/{waiting.id}").text.partition('<nav class="jump"')[0]

    assert 'id="doing"' in head
    assert "waits for a worker" in head
    proc.end()
    assert 'id="doing"' not in get("/process/triage").text


def test_poison_is_told_in_words(get: Get, proc: Process, store: Store) -> None:
    store.run(processes.end(proc.handle, "failed", exit_code=None, reason="poison", release=False))

    for page in get("/", "/tree/triage", "/process/triage"):
        assert "poison: too many workers died while they ran it" in page.text
