"""The page of all trees, and its twin in JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import fdstore
from fdstore.client import Store
from fdstore.model.records import ModelPrice
from fdstore.setup.settings import DEMO_PREFIX
from fdstore.store.processes import processes
from fdstore.text.quantities import format_costs
from fdstore.tools.process_task import SpawnTask, encode_task, title_of
from tests.on_redis.inspector.inspected import Get, walk
from tests.on_redis.inspector.journals import failed_child
from tests.on_redis.inspector.run_page import Read


@pytest.fixture
def trees(store: Store) -> list[str]:
    """Three trees: one with an open and a failed process, an idle one, and one that has ended."""
    build = store.process("build-1")
    build.create("x" * 5000)
    failed_child(build, "", exit_code=1)
    store.process("notes").create("äöü")
    store.run(processes.end(store.process("ended").handle))
    return ["build-1", "ended", "notes"]


def names(page: Any) -> list[str]:
    return [each["tree"] for each in page.json()["trees"]]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("sort=name", "build-1 ended notes"),
        ("sort=name&order=desc", "notes ended build-1"),
        ("q=BUILD", "build-1"),
        ("q=*s", "notes"),
        ("state=failed", "build-1"),
        ("state=exited", "ended"),
        ("program=none", ""),
        ("sort=bytes", "build-1 notes ended"),
        ("sort=bytes&order=asc", "ended notes build-1"),
        ("sort=processes", "build-1 ended notes"),
        ("sort=state", "build-1 notes ended"),
        ("sort=state&order=desc", "ended build-1 notes"),
        ("sort=created&order=asc", "build-1 notes ended"),
    ],
)
def test_trees_are_found_and_sorted(get: Get, trees: list[str], query: str, found: str) -> None:
    """`ended` is the least urgent, since its root has exited; the failed one is a child."""
    assert names(get(f"/index.json?{query}")) == found.split()


def test_a_heading_says_how_the_trees_are_sorted(get: Get, trees: list[str]) -> None:
    used, longest_ago, first, page, turned = get(
        "/index.json", "/index.json?sort=used&order=asc", "/", "/?sort=bytes", "/?sort=bytes&order=asc"
    )

    assert names(used) == names(longest_ago)[::-1]
    assert 'href="?sort=bytes&amp;order=desc"' in first.text
    assert 'aria-sort="ascending"' in turned.text
    assert page.text.count("aria-sort") == 1
    assert 'aria-sort="descending"><a href="?sort=bytes&amp;order=asc"' in page.text


def test_trees_are_found_by_when_they_were_used(get: Get, trees: list[str], execute: Any) -> None:
    used_at = float(execute("HGET", "fdstore:{notes}", "used_at"))
    execute("HSET", "fdstore:{notes}", "used_at", f"{used_at - 5000:.6f}")

    found = get("/index.json?within=1h", "/index.json?within=1d&sort=name", "/?within=1h")

    assert [sorted(names(page)) for page in found[:2]] == [["build-1", "ended"], trees]
    assert "/tree/notes" not in found[2].text


def test_a_tree_has_its_task_its_end_its_time_and_its_costs(get: Get, store: Store, execute: Any) -> None:
    root = store.process("triage")
    task = SpawnTask(query="Find the <b>first</b> error.\nThen stop.")
    store.run(processes.launch(root.handle, encode_task(task), title_of(task)))
    store.run(processes.end(root.handle, "failed", exit_code=1, reason="the model <i>refused</i>"))
    price = msgspec.json.encode(ModelPrice(input=3, output=15, currency="USD"))
    execute("HSET", "fdstore:{triage}:triage", "price", price, "input_tokens", 70_000, "output_tokens", 2000)

    page, twin = get("/", "/index.json")

    [tree] = twin.json()["trees"]
    record = store.tree("triage").members[0]
    assert (tree["task"], tree["reason"]) == ("Find the <b>first</b> error.", "the model <i>refused</i>")
    assert (tree["costs"], format_costs([record])) == ({"USD": 0.24}, "0.24 USD")
    assert (tree["started_at"], tree["ended_at"]) == (record.started_at, record.ended_at)
    shown = Read(page.text).text
    assert all(text in shown for text in (tree["task"], tree["reason"], "0.24 USD"))
    assert "Then stop" not in shown


def test_reasons_in_lists_are_whole_in_the_page_and_in_their_titles(
    get: Get, store: Store, execute: Any
) -> None:
    reason = "max_turns: " + "many answers " * 40 + "at <last>"
    execute("HSET", store.process("triage").handle.keys.record, "program", "triage")
    failed_child(store.process("triage"), reason)
    root = store.process("nightly")
    store.run(processes.end(root.handle, "failed", exit_code=None, reason=reason))

    for page in get("/", "/tree/triage", "/tree/triage/export.html"):
        [*titles] = [
            text for _, name, text in Read(page.text).attributes if name == "title" and "many" in text
        ]
        assert reason in titles
        assert reason in Read(page.text).words
        assert '<span class="clamp lost"' in page.text


def test_damaged_facts_of_a_process_do_not_hide_its_tree(get: Get, store: Store, execute: Any) -> None:
    store.process("triage")
    damaged = {"price": "{", "started_at": "soon", "ended_at": "inf", "input_tokens": "-1"}
    for name, value in damaged.items():
        execute("HSET", "fdstore:{triage}:triage", name, value)

    page, twin = get("/", "/index.json?sort=took")

    [tree] = twin.json()["trees"]
    assert (tree["started_at"], tree["ended_at"], tree["costs"], tree["tokens"]) == (None, None, {}, 0)
    assert page.status_code == 200


def test_more_trees_than_fit_on_a_page_are_reached_by_its_links(
    get: Get, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fdstore.inspector.web.trees.ROWS", 2)
    monkeypatch.setattr("fdstore.inspector.web.trees.AT_ONCE", 2)
    for number in range(5):
        store.process(f"tree-{number}")

    found = [[each["tree"] for each in page["trees"]] for page in walk(get, "/index.json?sort=name")]

    assert found == [["tree-0", "tree-1"], ["tree-2", "tree-3"], ["tree-4"]]


def test_a_damaged_tree_is_named_and_the_others_are_shown(get: Get, trees: list[str], execute: Any) -> None:
    used_at = execute("HGET", "fdstore:{notes}", "used_at")
    execute("HSET", "fdstore:{notes}", "used_at", "<b>soon</b>")

    page, twin = get("/", "/index.json")
    execute("HSET", "fdstore:{notes}", "used_at", used_at)

    assert sorted(names(twin)) == ["build-1", "ended"]
    assert "notes" in twin.json()["unreadable"][0]["what"]
    assert "<b>soon" not in page.text
    assert "&lt;b&gt;soon" in page.text


def test_an_empty_store_says_how_to_begin(get: Get) -> None:
    page = get("/").text

    assert "Nothing is stored yet" in page
    assert "fdstore demo --prefix fdstore\n" in page
    assert "fdstore ui --prefix" not in page


def test_an_empty_store_says_which_other_prefix_has_trees(redis_url: str, get: Get) -> None:
    with fdstore.connect(redis_url, prefix=DEMO_PREFIX) as demo:
        demo.process("triage")
        demo.process("counter")

        page, twin = get("/", "/index.json")
        for tree in demo.trees():
            demo.drop_tree(tree.id)

    assert twin.json()["elsewhere"] == {DEMO_PREFIX: 2}
    assert f"fdstore ui --prefix {DEMO_PREFIX}" in page.text
