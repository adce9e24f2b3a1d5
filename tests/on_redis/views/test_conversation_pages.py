"""Pages of the conversation of a process, as the log and the inspector read them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from fdstore.client import Process, Store
from fdstore.errors import NotFound
from fdstore.inspector.reading.conversation import conversation
from fdstore.store.processes import journal
from fdstore.testing import call, say
from tests.on_redis.running_agents import READER, running
from tests.round_trips import count_round_trips


def fill(store: Store, proc: Process, count: int, size: int = 10) -> None:
    records = [json.dumps({"kind": "note", "text": f"{number} {'x' * size}"}) for number in range(count)]
    store.run(journal.append(proc.handle, 0, records))


def test_a_journal_of_10000_records_is_read_page_by_page_in_bounded_round_trips(
    store: Store, proc: Process
) -> None:
    fill(store, proc, 10_000)

    for start, first in ((0, 0), (5000, 5000), (-100, 9900)):
        page, trips = count_round_trips(store, conversation("fdstore", "triage", start, 100))
        assert [each.position for each in page.entries] == list(range(first, first + 100))
        assert (page.next, page.length, page.is_last) == (first + 100, 10_000, start == -100)
        assert trips <= 5
    _, trips = count_round_trips(store, conversation("fdstore", "triage", 10_000))
    assert trips == 1


def test_huge_records_make_a_page_shorter_but_never_empty(store: Store, proc: Process) -> None:
    fill(store, proc, 60, size=100_000)

    start, pages = 0, 0
    while start < 60:
        page = store.run(conversation("fdstore", "triage", start, 60))
        assert page.next > start
        assert sum(len(each.text) for each in page.entries) <= 2000 * len(page.entries)
        start, pages = page.next, pages + 1
    assert pages > 1


looks: list[Callable[[], None]] = []


def look(words: str) -> str:
    """Look at the own process, while it runs this."""
    for each in looks:
        each()
    return words


def test_the_call_that_runs_is_pending_also_on_a_page_after_it(store: Store, tmp_path: Path) -> None:
    found = []
    looks[:] = [lambda: found.extend(store.run(conversation("fdstore", "solo", start)) for start in (0, 3))]
    with running(store, [call("look", words="a"), say("Done.")], tmp_path) as agents:
        agents.launch(python=(f"{__name__}:look",))
        assert str(store.run(conversation("fdstore", "solo")).pending) == "waits for a worker"
        agents.attempt("solo")

    whole, after = found
    assert [each.tool for each in whole.entries if each.pending] == ["look"]
    assert (after.entries, str(whole.pending), str(after.pending)) == ((), "look runs", "look runs")
    assert after.pending.since == whole.entries[-1].at


def test_a_call_that_waited_in_another_attempt_has_its_duration(store: Store, tmp_path: Path) -> None:
    script = [call("spawn", program_name="reader", query="Read."), say("Read."), say("Done.")]
    with running(store, script, tmp_path) as agents:
        agents.launch(tools=("spawn",), others=[READER])
        agents.run_all("solo")
        [result] = [e for e in store.run(conversation("fdstore", "solo", 3, 1)).entries if e.kind == "result"]
        whole = store.run(conversation("fdstore", "solo")).entries

    answered = next(entry.at for entry in whole if entry.kind == "answer")
    assert result.duration_s == pytest.approx(result.at - answered, abs=0.1)


def test_an_unknown_process_is_not_found(store: Store, proc: Process) -> None:
    with pytest.raises(NotFound, match="triage"):
        store.run(conversation("fdstore", "nowhere"))
