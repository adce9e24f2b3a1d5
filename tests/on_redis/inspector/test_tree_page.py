"""The page of a tree: its processes in order, its limits, its timeline."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import httpx2
import pytest
from click.testing import CliRunner

from fdstore import TreeLimits
from fdstore.cli import cli
from fdstore.client import Process, Store
from fdstore.inspector.web import journal_tracks
from fdstore.model.records import TOKEN_COUNTS, TokenUsage
from fdstore.store.keys import ProcessKeys
from fdstore.store.processes import journal, leases, processes
from fdstore.store.processes.asks import Ask, AskPart, AskSettings, start
from fdstore.wire.operation import Operation
from tests.on_redis.inspector.inspected import Get, Inspect, walk
from tests.on_redis.inspector.journals import SHORT, SPARED, answer, converse, ready_child
from tests.on_redis.inspector.run_page import Read, export
from tests.round_trips import Tally
from tests.thorough import thorough
from tests.unit.inspector.web import test_timeline_spans as timed


def test_a_tree_shows_processes_in_order_with_limits_and_a_timeline(get: Get, proc: Process) -> None:
    proc.create("x" * 100)
    for _ in range(10):
        proc.child()
    converse(proc, *SHORT)

    page, twin = get("/tree/triage", "/tree/triage.json")

    ids = [each["id"] for each in twin.json()["processes"]]
    assert ids == ["triage", *(f"triage.{number}" for number in range(1, 11))]
    limits = {each["name"]: each for each in twin.json()["limits"]}
    assert (limits["tree_bytes"]["used"], limits["tree_processes"]["used"]) == (100, 11)
    [row] = [row for row in twin.json()["timeline"]["rows"] if row["process"] == "triage"]
    assert [span["label"] for span in row["spans"]] == ["read_fd", "search_web"]
    assert page.text.count('class="life') == len(twin.json()["timeline"]["rows"])
    assert 'style="' not in page.text


def documents(redis_url: str, *command: str) -> list[dict[str, Any]]:
    """Return the documents that a verb prints with --json."""
    done = CliRunner().invoke(cli, [*command, "--url", redis_url, "--json"])
    assert done.exit_code == 0, done.output
    return [json.loads(line) for line in done.output.splitlines()]


@pytest.fixture(params=[250, *thorough("more pages", 1000)])
def large(store: Store, execute: Callable[..., Any], request: pytest.FixtureRequest) -> Process:
    """A tree of this many processes, more than a page shows, in all states, some with tokens and a price, and
    of forty questions."""
    limits = TreeLimits(tree_live=2000, tree_processes=2000)
    root = store.process("triage", limits=limits)
    root.create("x" * 5000)
    for number in range(1, request.param):
        child = store.run(processes.create_child(root.handle, None, state="open" if number % 3 else "ready"))
        if number % 5 == 0:
            usage = TokenUsage(input_tokens=number, output_tokens=7, cache_read_tokens=number // 2)
            store.run(journal.append(child, 0, ['{"kind":"note","text":"."}'], usage=usage))
            price = {"input": 3.0, "output": 15.0, "currency": "USD" if number % 2 else "EUR"}
            execute("HSET", child.keys.record, "price", json.dumps(price))
        if number % 7 == 0:
            store.run(processes.end(child, "failed" if number % 2 else "exited"))
    asked = [Ask(number, "Which?", [AskPart("fd:1")]) for number in range(40)]
    store.run(start(root.handle, "t1", asked, AskSettings(model="any", at_once=50)))
    return root


def processes_of(request: pytest.FixtureRequest) -> int:
    """Return how many processes `large` has below the root; the last is the lane of its questions."""
    count: int = request.node.callspec.params["large"]
    return count


@pytest.mark.thorough("a large store")
def test_the_sums_of_a_large_tree_are_those_of_ps_and_du(
    redis_url: str, get: Get, large: Process, request: pytest.FixtureRequest
) -> None:
    count = processes_of(request)
    first, last = get("/tree/triage.json", f"/tree/triage.json?from={count - 100}")
    listed = documents(redis_url, "ps", "triage")
    used = documents(redis_url, "du", "triage")[0]

    assert len(listed) == count + 1
    for page in (first.json(), last.json()):
        assert page["states"] == Counter(each["state"] for each in listed)
        assert page["tokens"] == {name: sum(each[name] for each in listed) for name in TOKEN_COUNTS}
        assert {each.split()[1] for each in page["cost"].split(" + ")} == {"USD", "EUR"}
        assert {name: page["tree"][name] for name in ("bytes", "processes", "live")} == {
            name: used[name] for name in ("bytes", "processes", "live")
        }
        assert (page["total"], page["summed"]) == (count + 1, count + 1)
    limits = {each["name"]: each["used"] for each in last.json()["limits"]}
    assert limits["tree_depth"] == 2


def test_only_a_process_that_has_lost_a_worker_says_which_attempt_it_is_at(
    get: Get, store: Store, proc: Process, execute: Any
) -> None:
    parked, lost = ready_child(proc), ready_child(proc)
    execute("HSET", parked.keys.record, "attempt", "3")
    execute("HSET", lost.keys.record, "attempt", "2", "losses", "1")

    tree, of_parked, of_lost = get("/tree/triage", f"/process/{parked.id}", f"/process/{lost.id}")

    for page in (tree.text, of_lost.text, export(store, "triage")):
        words = Read(page).words
        assert ("1 loss, attempt 2" in words, "attempt 3" in words.lower()) == (True, False)
    assert "Attempt" not in Read(of_parked.text).words


def test_the_bar_of_a_failed_process_is_red_and_has_its_reason(get: Get, store: Store, proc: Process) -> None:
    child = ready_child(proc)
    store.run(begun_earlier(child.keys))
    store.run(processes.end(child, "failed", exit_code=None, reason="<i>no</i> disk"))

    page, exported = get("/tree/triage").text, export(store, "triage", "disk")

    assert f'<g id="bars-{child.id}" class="is-failed">' in page
    assert f"<title>{child.id} failed: &lt;i&gt;no&lt;/i&gt; disk</title>" in page
    assert 'title="failed: &lt;i&gt;no&lt;/i&gt; disk"' in page
    assert "failed: &lt;i&gt;no&lt;/i&gt; [redacted]</title>" in exported


def test_a_part_of_the_timeline_has_a_url_and_links_lead_to_others(
    get: Get, store: Store, proc: Process
) -> None:
    child = ready_child(proc)
    store.run(begun_earlier(child.keys))
    store.run(processes.end(child, "failed", exit_code=None, reason="no disk"))

    whole, part, twin = get("/tree/triage", "/tree/triage?since=0.2&until=0.5", "/tree/triage.json?since=0.2")

    assert twin.json()["window"] == {"since": 0.2, "until": None}
    assert f'aria-label="Zoom to {child.id}"' in whole.text
    assert ">Whole<" not in whole.text
    words = Read(part.text).words
    assert "Timeline 300 ms of " in words
    assert "0.2 s" in words
    assert "0 s" not in re.findall(r"[0-9.]+ s", words.partition("Whole")[2].partition("answers")[0])
    assert "Zoom in Earlier Later Whole" in words
    assert "zooms" not in export(store, "triage").partition("<body")[2]
    for wrong in ("since=x", "since=-1", "until=1e9", "since=2&until=1", "since=nan"):
        assert get(f"/tree/triage?{wrong}").status_code == 400


def test_all_numbers_of_processes_agree_on_each_page_also_where_lanes_answer_asks(
    get: Get, store: Store, proc: Process
) -> None:
    proc.create("x")
    store.run(processes.end(ready_child(proc), "failed"))
    for call, count in (("t1", 60), ("t2", 3)):
        asked = [Ask(number, "Which?", [AskPart("fd:1")]) for number in range(count)]
        store.run(start(proc.handle, call, asked, AskSettings(model="any", at_once=50)))

    tree, page, twin = get("/tree/triage", "/tree/triage.json", "/index.json")
    one, listed, family = get("/process/triage", "/", "/process/triage.json")

    data, [summary] = page.json(), twin.json()["trees"]
    assert len(store.tree("triage").members) == 5
    assert data["total"] == len(data["processes"]) == sum(data["states"].values()) == 4
    assert data["states"] == summary["states"] == {"open": 1, "failed": 1, "ready": 2}
    assert (summary["processes"], summary["counted"], summary["asks"]) == (4, 4, 2)
    assert (data["asks"], data["live"]) == (2, 3)
    assert (len(data["timeline"]["rows"]), data["timeline"]["left_out"]) == (4, 0)
    assert "Processes 4 2 and 2 that answer asks, 3 not ended" in Read(tree.text).words
    assert 'title="2 and 2 that answer asks"' in listed.text
    assert family.json()["children"]["total"] == 3
    assert "Children 3" in Read(one.text).words
    limits = {each["name"]: each["used"] for each in data["limits"]}
    assert limits["tree_processes"] == data["total"] - data["asks"]
    exported = Read(export(store, "triage")).words
    assert "Processes 4 2 and 2 that answer asks" in exported


def test_all_processes_of_a_large_tree_are_on_its_pages_once(
    get: Get, large: Process, request: pytest.FixtureRequest
) -> None:
    found = [each["id"] for page in walk(get, "/tree/triage.json") for each in page["processes"]]

    assert found == ["triage", *(f"triage.{number}" for number in range(1, processes_of(request) + 1))]


def test_a_tree_with_more_processes_than_are_summed_says_so(
    get: Get, proc: Process, monkeypatch: Any
) -> None:
    monkeypatch.setattr("fdstore.inspector.web.whole_tree.MAX_SUMMED", 3)
    monkeypatch.setattr("fdstore.inspector.web.tree.ROWS", 2)
    for _ in range(4):
        proc.child()

    page, last = get("/tree/triage", "/tree/triage.json?from=4")

    assert "states and tokens of the first 3" in page.text
    assert [each["id"] for each in last.json()["processes"]] == ["triage.4"]
    assert (last.json()["total"], last.json()["summed"], last.json()["next"]) == (5, 3, None)


def calls_of(timeline: dict[str, Any], process: str = "triage") -> int:
    """Return how many calls the timeline shows of a process."""
    [row] = [row for row in timeline["rows"] if row["process"] == process]
    return sum(span["count"] for span in row["spans"] if span["kind"] == "call")


def test_the_timeline_has_every_call_of_a_long_journal_which_later_views_read_on(
    inspect: Inspect, proc: Process, monkeypatch: Any
) -> None:
    monkeypatch.setattr(journal_tracks, "MAX_WINDOW_BYTES", 10_000)
    monkeypatch.setattr(journal_tracks, "FIRST_RECORDS", 20)
    monkeypatch.setattr(journal_tracks, "AT_ONCE_BYTES", 5_000)
    for _ in range(41):
        converse(proc, *SHORT[:4], answer("word " * 200))

    async def visit(client: httpx2.AsyncClient) -> list[Any]:
        found = [(await client.get("/tree/triage")).text]
        for _ in range(20):
            found.append((await client.get("/tree/triage.json")).json()["timeline"])
        return found

    page, *timelines = inspect(visit)

    assert "records are not read yet" in page
    assert "records not read yet" in page
    unread = [each["unread"] for each in timelines]
    assert unread[0] > 0 == unread[-1]
    assert calls_of(timelines[-1]) == 82
    [row] = timelines[-1]["rows"]
    assert sum(span["count"] for span in row["spans"] if span["is_error"]) == 41


def test_a_tree_that_is_shown_again_costs_only_what_was_added(inspect: Inspect, proc: Process) -> None:
    converse(proc, *SHORT, *(answer("x" * 500) for _ in range(500)))
    tally = Tally()

    async def visit(client: httpx2.AsyncClient) -> int:
        await client.get("/tree/triage.json")
        before = tally.reply_bytes
        assert calls_of((await client.get("/tree/triage.json")).json()["timeline"]) == 2
        return tally.reply_bytes - before

    assert inspect(visit, tally=tally) < 5_000


def test_a_tree_that_has_the_name_of_a_removed_one_has_its_own_timeline(
    inspect: Inspect, proc: Process
) -> None:
    converse(proc, *SHORT, end="exited")

    async def visit(client: httpx2.AsyncClient) -> list[int]:
        before = calls_of((await client.get("/tree/triage.json")).json()["timeline"])
        proc.store.drop_tree("triage")
        proc.store.process("triage")
        return [before, calls_of((await client.get("/tree/triage.json")).json()["timeline"])]

    assert inspect(visit) == [2, 0]


def test_only_what_a_failed_parent_did_itself_is_red(
    get: Get, store: Store, proc: Process, execute: Callable[..., Any]
) -> None:
    child = ready_child(proc)
    records = [
        timed.answer(1001, "spawn", attempt=timed.attempt(1, 1000)),
        timed.answer(1009, "read_fd", attempt=timed.attempt(2, 1008, "wait")),
    ]
    execute("RPUSH", child.keys.journal, *records)
    store.run(processes.end(child, "failed", exit_code=None, reason="its child failed"))
    execute("HSET", child.keys.record, "started_at", "1000", "ended_at", "1010", "attempt", "2")

    page = get("/tree/triage").text

    [waited] = re.findall(r'class="span processes" x="([^"]+)" y="[0-9]+" width="([^"]+)"', page)
    assert re.findall(r'<rect class="rest" x="([^"]+)" y="[0-9]+" width="([^"]+)"', page) == [waited]


def test_of_a_wait_for_a_child_that_failed_only_the_end_is_red(
    get: Get, store: Store, proc: Process, execute: Callable[..., Any]
) -> None:
    """Regression: the bar of a parent's `spawn` was red for all the time that its child had taken."""
    parent = ready_child(proc)
    records = [
        timed.answer(1001, "spawn", "read_fd", attempt=timed.attempt(1, 1000)),
        timed.result(1008, "t0", 7, is_error=True),
        timed.result(1009, "t1", 1, is_error=True),
    ]
    execute("RPUSH", parent.keys.journal, *records)
    store.run(processes.end(parent, answer="It failed."))
    execute("HSET", parent.keys.record, "started_at", "1000", "ended_at", "1010", "attempt", "1")

    page = get("/tree/triage").text

    [(waited_at, waited)] = re.findall(r'class="span call" x="([^"]+)%" y="[0-9]+" width="([^"]+)%"', page)
    [end_at] = re.findall(r'class="span ended failed" x="([^"]+)%"', page)
    assert float(end_at) == pytest.approx(float(waited_at) + float(waited), abs=0.02)
    assert page.count('class="span call failed"') == 1


def test_the_processes_stand_before_the_curve_of_tokens(get: Get, store: Store, proc: Process) -> None:
    converse(proc, *SPARED, end="exited")

    for page in (get("/tree/triage").text, export(store, "triage")):
        main = page.partition("<main")[2]
        assert main.index('id="processes"') < main.index('id="saved"')


def begun_earlier(keys: ProcessKeys) -> Operation[None]:
    """Let a process have waited for a second: what is shorter than a few ms is no wait."""
    yield [("HINCRBYFLOAT", keys.record, "started_at", "-1")]


def test_the_queue_is_hatched_a_failed_call_red_and_a_running_one_in_progress(
    get: Get, store: Store, proc: Process
) -> None:
    child, waiting = ready_child(proc), ready_child(proc)
    store.run(begun_earlier(child.keys))
    attempt = store.run(leases.claim(child.keys, "build-1:22", 600))
    assert attempt is not None
    converse(proc, *SHORT)

    page, twin = get("/tree/triage", "/tree/triage.json")

    rows = {row["process"]: row["spans"] for row in twin.json()["timeline"]["rows"]}
    assert [(span["kind"], span["until"]) for span in rows[waiting.id]] == [("queue", None)]
    [queued, answered] = rows[child.id]
    assert (queued["kind"], answered["kind"], answered["until"]) == ("queue", "answer", None)
    assert queued["until"] == answered["at"]
    assert page.text.count('class="span queue"') == 1
    assert page.text.count('class="span queue now"') == 1
    assert page.text.count('fill="url(#hatch)"') == 2
    assert page.text.count('class="span call failed"') == 1
    assert f'aria-label="{child.id}: answer, in progress' in page.text
    assert '<td class="whole">waits for a worker</td>' in page.text
