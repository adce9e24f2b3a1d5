"""`fdstore top`: the snapshot in bounded requests, printed once, and on the screen (headless)."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from click.testing import CliRunner
from textual.pilot import Pilot
from textual.widgets import DataTable, RichLog, Static
from textual.widgets._footer import FooterKey

import fdstore
from fdstore.cli import cli
from fdstore.cli.session import CliSession
from fdstore.cli.top_rows import ORDERS, rows_of
from fdstore.cli.tui import app as top_app
from fdstore.cli.tui.app import TopApp
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.model.lifecycle import ENDED, PROCESS_MOVES
from fdstore.setup import optional_packages
from fdstore.store.keys import process_keys
from fdstore.store.processes import asks, leases, process_records, processes
from fdstore.store.processes.asks import Ask, AskPart, AskSettings
from fdstore.store.views.live import live
from fdstore.testing import call, say
from tests.on_redis.running_agents import READER, running, tool
from tests.round_trips import count_round_trips

HOSTILE = "[bold red]x[/] \x1b[31m"


def fill(store: Store) -> None:
    """Two live trees with an agent that runs and a stream, and one that has ended."""
    triage = store.process("triage")
    brief = '{"kind":"brief","query":"Look at it."}'
    child = store.run(processes.create_child(triage.handle, [], state="ready", brief=brief))
    store.run(leases.claim(child.keys, "builder:1"))
    store.process("other").create("y", source=HOSTILE)
    ended = store.process("ended")
    ended.end()


def test_every_count_of_processes_leaves_out_those_that_ask_for_another(store: Store, redis_url: str) -> None:
    proc = store.process("triage")
    proc.create("a text")
    asked = [Ask(0, "Which dates?", [AskPart("fd:1")])]
    assert store.run(asks.start(proc.handle, "call", asked, AskSettings(model="any")))

    counted = {
        words: CliRunner().invoke(cli, [*words.split(), "--url", redis_url], terminal_width=120).output
        for words in ("top --once", "status", "limits show triage")
    }

    assert "1 tree, 1 process (1 open)" in counted["top --once"]
    assert re.search(r"1 tree, 1 process \(1 not ended\)|1 process\b", counted["status"])
    assert re.search(r"tree_processes +1,000 +1\b", counted["limits show triage"])
    assert store.tree("triage").processes == 1


def screen(
    store: Store,
    use: Callable[[TopApp, Pilot[None]], Awaitable[None]],
    size: tuple[int, int] = (100, 30),
    **options: Any,
) -> None:
    """Use the screen, headless, on a store that may only be read."""
    chosen = {"ended": False, "order": "tree", "words": "", "every_s": 0.5, **options}

    async def run() -> None:
        with fdstore.connect(store.url, looking=True) as looking:
            app = TopApp(looking, CliSession(url=store.url), **chosen)
            async with app.run_test(size=size) as pilot:
                await shows(pilot, lambda: app.snapshot is not None)
                await use(app, pilot)

    asyncio.run(run())


async def shows(pilot: Pilot[None], happened: Callable[[], object]) -> None:
    for _ in range(600):
        if happened():
            return
        await pilot.pause(0.05)
    raise AssertionError("the screen did not show it within 30 s")


def ids(app: TopApp) -> list[str]:
    table = app.query_one("#rows", DataTable)
    return [str(key.value) for key in table.rows]


def head(app: TopApp) -> str:
    return str(app.query_one("#head", Static).content)


def test_a_snapshot_takes_four_round_trips_whatever_is_stored(store: Store) -> None:
    assert count_round_trips(store, live("fdstore"))[1] <= 4
    fill(store)
    with store.process("triage").open_stream(source="make") as stream:
        stream.write("line\n")
        stream.flush()
        for number in range(30):
            store.process(f"more{number}")
        found, trips = count_round_trips(store, live("fdstore"))

        with fdstore.connect(store.url, looking=True) as looking:
            assert looking.run(live("fdstore")).streams == found.streams

    assert trips == 4
    assert {"triage", "triage.1", "other", "more0"} <= {each.id for each in found.processes}
    assert "ended" not in {each.id for each in (*found.trees, *found.processes)}
    assert [(each.process, each.fd, each.chars) for each in found.streams] == [("triage", "fd:1", 5)]
    assert [(each.name, each.runs) for each in found.workers] == [("builder:1", ("triage.1",))]


def test_what_cannot_be_read_is_named_and_the_rest_is_shown(store: Store, execute: Any) -> None:
    fill(store)
    execute("HSET", "fdstore:{other}", "created_at", "soon")
    execute("HSET", "fdstore:{triage}:triage.1", "state", "odd")

    found = store.run(live("fdstore"))

    assert [each.id for each in found.processes] == ["triage"]
    assert ["other" in each.what or "triage.1" in each.what for each in found.unreadable] == [True, True]
    execute("HSET", "fdstore:{other}", "created_at", "1700000000")
    execute("HSET", "fdstore:{triage}:triage.1", "state", "running")


def test_rows_are_sorted_and_filtered_and_trees_keep_children_below_parents(store: Store) -> None:
    fill(store)
    found = store.run(live("fdstore", ended=True))

    assert [row.key for row in rows_of("processes", found)] == ["ended", "other", "triage", "triage.1"]
    for order in ORDERS:
        assert len(rows_of("processes", found, order=order)) == 4
    assert rows_of("processes", found, order="age")[0].key == "ended"
    assert [row.key for row in rows_of("processes", found, words="BUILDER running")] == ["triage.1"]
    assert [row.key for row in rows_of("trees", found, words="triage")] == ["triage"]


def test_the_order_by_state_begins_with_what_people_should_look_at(store: Store) -> None:
    root = store.process("triage")
    for state in PROCESS_MOVES:
        if state not in ("open", "running", "waiting"):
            child = store.run(processes.create_child(root.handle, None, state="ready"))
            if state in ENDED:
                store.run(processes.end(child, state))
    snapshot = store.run(live("fdstore", ended=True))
    ready = next(each for each in snapshot.processes if each.state == "ready")
    stuck = msgspec.structs.replace(ready, id="triage.99", trouble="no live worker accepts it")
    more = [
        msgspec.structs.replace(ready, id=f"triage.{state}", state=state) for state in ("running", "waiting")
    ]
    snapshot = msgspec.structs.replace(snapshot, processes=[*snapshot.processes, *more, stuck])

    rows = rows_of("processes", snapshot, order="state")

    states = ["failed", "ready", "ready", "running", "waiting", "open", "cancelled", "exited"]
    assert [row.cells[1] for row in rows] == states
    assert rows[1].key == "triage.99"


def test_once_prints_tables_or_one_document_without_textual(
    store: Store, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(store)
    monkeypatch.setattr(optional_packages, "find_spec", lambda name: None)
    monkeypatch.delitem(optional_packages.sys.modules, "textual")

    def top(*args: str) -> Any:
        return CliRunner().invoke(cli, ["top", *args], env={"FDSTORE_URL": redis_url})

    shown = top("--once").output
    document = msgspec.json.decode(top("--once", "--json").output)
    refused = top()

    assert shown.startswith("2 trees of 3, 3 processes (2 open, 1 running), 0 streams, 1 worker\n")
    assert "└─ triage.1  running" in shown
    assert sorted(each["id"] for each in document["trees"]) == ["other", "triage"]
    assert refused.exit_code == 1
    assert "pip install '.[tui]'" in refused.stderr


@pytest.mark.thorough("more keys of one screen")
def test_the_screen_sorts_filters_and_shows_ended_processes(store: Store) -> None:
    fill(store)

    async def use(app: TopApp, pilot: Pilot[None]) -> None:
        await shows(pilot, lambda: ids(app) == ["other", "triage", "triage.1"])
        assert "2 trees of 3, 3 processes (2 open, 1 running)" in head(app)
        await pilot.press("e")
        await shows(pilot, lambda: "ended" in ids(app))
        await pilot.press("s")
        assert app.order == "state"
        await pilot.press("slash", *"builder", "enter")
        await shows(pilot, lambda: ids(app) == ["triage.1"])
        await pilot.press("escape", "4")
        await shows(pilot, lambda: ids(app) == ["builder:1"])

    screen(store, use)


def test_enter_looks_into_a_process_its_descriptors_and_their_text(store: Store, tmp_path: Path) -> None:
    async def use(app: TopApp, pilot: Pilot[None]) -> None:
        await shows(pilot, lambda: ids(app) == ["solo", "solo.1"])
        await pilot.press("enter")
        await shows(pilot, lambda: app.screen.query(RichLog) and app.screen.query_one(RichLog).lines)
        log = "\n".join(line.text for line in app.screen.query_one(RichLog).lines)
        assert "fd:1, stored: 13 pages" in log
        assert "[bold red]x[/] \\u{1b}[31m" in log
        await pilot.press("d")
        await shows(pilot, lambda: app.screen.query(DataTable) and app.screen.query_one(DataTable).row_count)
        await pilot.press("enter")
        await shows(pilot, lambda: "page 1 of 13" in str(app.screen.query_one("#title", Static).content))
        await pilot.press("G")
        await shows(pilot, lambda: "line 5000" in str(app.screen.query_one("#text", Static).content))
        await pilot.press("escape", "escape", "escape")
        assert len(app.screen_stack) == 1

    spawn = call("spawn", program_name="reader", query="Read.")
    script = [call("lines", count=5000), spawn, say("Read."), say(HOSTILE)]
    with running(store, script, tmp_path) as agents:
        agents.launch(tools=("read_fd", "spawn"), python=(tool("lines"),), others=[READER])
        agents.run_all("solo")
        screen(store, use, ended=True)


@pytest.mark.thorough("another size of one screen")
def test_a_small_screen_shows_age_tokens_detail_and_all_of_its_keys(store: Store) -> None:
    reason = " ".join(f"word{number}" for number in range(1, 36))
    root = store.process("n" * 48)
    handle = root.handle
    for _ in range(6):
        handle = store.run(processes.create_child(handle, [], state="ready"))
    store.run(processes.end(handle, "failed", exit_code=None, reason=reason))

    async def use(app: TopApp, pilot: Pilot[None]) -> None:
        await shows(pilot, lambda: len(ids(app)) == 7)
        table = app.query_one("#rows", DataTable)
        columns = {str(each.label): each.get_render_width(table) for each in table.columns.values()}
        assert {"PROCESS", "STATE", "AGE", "TOKENS", "DETAIL"} <= set(columns)
        assert sum(columns.values()) <= 80
        await pilot.press(*["down"] * 6)
        whole = app.query_one("#whole", Static)
        await shows(pilot, lambda: f"detail: {reason}" in str(whole.content))
        assert handle.keys.process in str(whole.content)
        keys = list(app.query(FooterKey))
        assert {each.description for each in keys} >= {
            "View",
            "Sort",
            "Filter",
            "Ended",
            "Kill",
            "Quit",
            "Help",
        }
        assert max(each.region.right for each in keys) <= 80
        await pilot.press("question_mark")
        await shows(pilot, lambda: app.screen.query("#keys"))
        said = str(app.screen.query_one("#keys", Static).content)
        assert all(name in said for name in ("Sort as trees", "Clear the filter", "Refresh", "Trees", "Open"))
        await pilot.press("escape")
        assert len(app.screen_stack) == 1

    screen(store, use, size=(80, 24), ended=True)


def test_a_refresh_that_ends_after_the_screen_shows_nothing(store: Store) -> None:
    """Regression test: it looked for its table on a screen that was gone."""
    fill(store)

    async def run() -> None:
        with fdstore.connect(store.url, looking=True) as looking:
            app = TopApp(looking, CliSession(url=store.url), ended=False, order="tree", words="", every_s=60)
            async with app.run_test() as pilot:
                await shows(pilot, lambda: app.snapshot is not None)
            before = app.snapshot
            await app.action_refresh_now()
            assert app.snapshot is not before

    asyncio.run(run())


def test_kill_asks_and_cancels_the_process_with_its_descendants(store: Store) -> None:
    fill(store)

    async def use(app: TopApp, pilot: Pilot[None]) -> None:
        await shows(pilot, lambda: "triage" in ids(app))
        await pilot.press("down")
        for answer, state in (("n", "running"), ("y", "cancelled")):
            await pilot.press("k")
            await shows(pilot, lambda: len(app.screen_stack) == 2)
            asked = str(app.screen.query("Label").first(Static).content)
            assert asked == "Cancel triage and its 1 live descendant?"
            await pilot.press(answer)
            await shows(pilot, lambda state=state: state_of("triage.1") == state)

    def state_of(process: str) -> str:
        return store.run(process_records.record("fdstore", process)).state

    screen(store, use)


def test_a_stream_is_followed_as_it_grows(store: Store) -> None:
    with store.process("triage").open_stream(source="make") as stream:
        stream.write("first\n")
        stream.flush()

        async def use(app: TopApp, pilot: Pilot[None]) -> None:
            await pilot.press("3")
            await shows(pilot, lambda: ids(app) == ["triage/1"])
            await pilot.press("enter")
            text = lambda: str(app.screen.query_one("#text", Static).content)  # noqa: E731
            await shows(pilot, lambda: app.screen.query("#text") and "first" in text())
            stream.write("second\n")
            stream.flush()
            await shows(pilot, lambda: "second" in text())

        screen(store, use)


def test_a_store_that_is_away_is_said_and_shown_again_when_it_is_back(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(top_app, "SILENT_S", 0.1)
    with PrivateServer() as server, fdstore.connect(server.url) as store:
        store.process("triage")

        async def use(app: TopApp, pilot: Pilot[None]) -> None:
            await shows(pilot, lambda: ids(app) == ["triage"])
            server.kill()
            await shows(pilot, lambda: "Redis does not answer" in head(app))
            assert ids(app) == ["triage"]
            server.start()
            store.process("later")
            await shows(pilot, lambda: "1 tree" in head(app) or "2 trees" in head(app))

        screen(store, use)
        assert store.run(process_records.record("fdstore", process_keys("fdstore", "later").process))
