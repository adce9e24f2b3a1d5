"""Text that is kept out of a context and read back is counted, by day, session and tool."""

from __future__ import annotations

from typing import Any

import pytest

import fdstore
from fdstore import Toolset
from fdstore.client import Process, Store
from fdstore.store.processes import savings
from fdstore.store.processes.savings import Saved
from fdstore.text.tokens import estimate_tokens

LONG = "a line of a long log\n" * 1000


def counted(store: Store, process: str | None = None) -> list[Saved]:
    found = store.run(savings.read_savings(store.prefix, process))
    assert found.unreadable == []
    return found.rows


def test_an_output_that_is_stored_counts_less_what_the_model_sees(store: Store, proc: Process) -> None:
    tools = Toolset(proc, meter="monday")

    shown = tools.offload(LONG, source="Bash").content
    tools.offload("short", source="Bash")

    [row] = counted(store)
    assert (row.process, row.session, row.tool, row.kept) == ("triage", "monday", "Bash", 1)
    assert row.kept_chars == len(LONG) - len(shown)
    assert row.kept_tokens == estimate_tokens(LONG) - estimate_tokens(str(shown))
    assert row.day.startswith("20")
    assert row.read == 0


def test_what_our_tools_show_counts_as_read_back(store: Store, proc: Process) -> None:
    tools = Toolset(proc, enabled=["read_fd", "search_fd"], meter="monday")
    proc.create(LONG)

    page = tools.call("read_fd", {"fd": "fd:1"}).text
    tools.call("read_fd", {"fd": "fd:1", "start": 2})
    tools.call("read_fd", {"fd": "fd:99"})

    [row] = counted(store, "triage")
    assert (row.tool, row.read, row.kept) == ("read_fd", 2, 0)
    assert row.read_chars == pytest.approx(2 * len(page), rel=0.01)


def test_a_repeated_call_is_counted_once(store: Store, proc: Process) -> None:
    tools = Toolset(proc, meter="s", python=[log])

    for _ in range(2):
        tools.offload(LONG, source="Bash", call_id="toolu_1")
        tools.wrap(LONG, source="grep", call_id="toolu_2")
        tools.call("log", {}, call_id="toolu_3")

    assert {(row.tool, row.kept) for row in counted(store)} == {("Bash", 1), ("grep", 1), ("log", 1)}


def log() -> str:
    """Return a log."""
    return LONG


def test_the_awaited_toolset_counts_the_same(store: Store, awaited: Any) -> None:
    async def use(proc: fdstore.aio.Process) -> None:
        tools = fdstore.aio.Toolset(proc, meter="s")
        await tools.offload([{"type": "text", "text": LONG}, {"type": "text", "text": "x"}], source="mcp")
        await tools.call("list_fds", {})

    awaited(use)

    assert {(row.tool, row.kept, row.read) for row in counted(store)} == {("mcp", 1, 0), ("list_fds", 0, 1)}


def test_without_a_meter_nothing_is_counted(store: Store, proc: Process, execute: Any) -> None:
    tools = Toolset(proc)

    tools.offload(LONG)
    tools.call("read_fd", {"fd": "fd:1"})

    assert counted(store) == []
    assert execute("EXISTS", "fdstore:{triage}:triage:saved") == 0


def test_the_count_goes_with_its_tree(store: Store, proc: Process, execute: Any) -> None:
    Toolset(proc, meter="s").offload(LONG)

    store.drop_tree("triage", kill=True)

    assert execute("KEYS", "*saved*") == []


def test_many_days_sessions_and_tools_are_added_together(store: Store, proc: Process, execute: Any) -> None:
    key = "fdstore:{triage}:triage:saved"
    fields = [(f"{day}\ts{n}\tBash", "1 2 3 4 5 6") for day in range(1, 11) for n in range(100)]
    execute("HSET", key, *[word for pair in fields for word in pair])

    Toolset(proc, meter="s").offload(LONG, source="Bash")

    old, new = sorted(counted(store), key=lambda row: row.day, reverse=True)
    assert (old.day, old.session, old.tool) == ("earlier", "", "Bash")
    assert (old.kept, old.read_tokens, new.kept) == (1000, 6000, 1)


def test_the_hash_stays_small_whatever_tools_are_called(store: Store, proc: Process, execute: Any) -> None:
    day = int(execute("TIME")[0]) // 86_400
    key = "fdstore:{triage}:triage:saved"
    fields = [(f"{day}\ts\ttool{n}", "1 0 0 0 0 0") for n in range(1000)]
    execute("HSET", key, *[word for pair in fields for word in pair], "what\n", "is this")

    Toolset(proc, meter="s").offload(LONG, source="one more")

    rows = counted(store)
    assert len(rows) <= 2
    assert sum(row.kept for row in rows) == 1001


def test_a_store_that_fails_to_count_fails_no_call(store: Store, proc: Process, fill_redis: Any) -> None:
    tools = Toolset(proc, meter="s")
    proc.create(LONG)
    fill_redis()

    result = tools.call("read_fd", {"fd": "fd:1"})

    assert not result.is_error


def test_a_damaged_count_is_named_and_hides_no_other(store: Store, proc: Process, execute: Any) -> None:
    Toolset(store.process("other"), meter="s").offload(LONG)
    Toolset(proc, meter="s").offload(LONG)
    execute("HSET", "fdstore:{triage}:triage:saved", "20000\ts\tBash", "many")

    found = store.run(savings.read_savings(store.prefix))

    assert [row.process for row in found.rows] == ["other"]
    assert [each.what for each in found.unreadable] == ["the savings of process triage"]
