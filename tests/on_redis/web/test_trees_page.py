"""The page of all trees, and its twin in JSON."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

import fdstore
from fdstore.client import Store
from fdstore.records import ModelPrice
from fdstore.settings import DEMO_PREFIX
from fdstore.store.processes import processes
from fdstore.text.quantities import format_costs
from fdstore.tools.process_task import SpawnTask, encode_task, title_of
from tests.on_redis.web.inspected import get


@pytest.fixture
def trees(store: Store) -> list[str]:
    """Three trees: one with an open and a failed process, an idle one, and one that has ended."""
    build = store.process("build-1")
    build.create("x" * 5000)
    store.run(processes.end(build.child().handle, "failed", exit_code=1))
    store.process("notes").create("äöü")
    store.run(processes.end(store.process("ended").handle))
    return ["build-1", "ended", "notes"]


def names(page: Any) -> list[str]:
    return [each["tree"] for each in page.json()["trees"]]


def test_trees_are_found_by_name_state_and_program(redis_url: str, trees: list[str]) -> None:
    found = get(
        redis_url,
        *("/index.json?sort=name", "/index.json?q=BUILD", "/index.json?q=*s", "/index.json?state=failed"),
        *("/index.json?state=exited", "/index.json?program=none", "/index.json?sort=bytes"),
    )

    assert [names(page) for page in found] == [
        trees, ["build-1"], ["notes"], ["build-1"], ["ended"], [], ["build-1", "notes", "ended"],
    ]  # fmt: skip


def test_trees_are_in_the_order_of_a_heading(redis_url: str, trees: list[str]) -> None:
    """`ended` is the least urgent, since its root has exited; the failed one is a child."""
    found = get(
        redis_url,
        *(
            "/index.json?sort=name&order=desc",
            "/index.json?sort=bytes&order=asc",
            "/index.json?sort=processes",
        ),
        *(
            "/index.json?sort=state",
            "/index.json?sort=state&order=desc",
            "/index.json?sort=created&order=asc",
        ),
        *("/index.json?sort=used", "/index.json?sort=used&order=asc", "/?sort=bytes"),
    )

    *sorted_by, used, longest_ago, page = found
    assert [names(each) for each in sorted_by] == [
        trees[::-1], ["ended", "notes", "build-1"], ["build-1", "ended", "notes"],
        ["build-1", "notes", "ended"], ["ended", "build-1", "notes"], ["build-1", "notes", "ended"],
    ]  # fmt: skip
    assert names(used) == names(longest_ago)[::-1]
    assert page.text.count("aria-sort") == 1
    assert 'aria-sort="descending"><a href="?sort=bytes&amp;order=asc"' in page.text


def test_trees_are_found_by_when_they_were_used(redis_url: str, trees: list[str], execute: Any) -> None:
    used_at = float(execute("HGET", "fdstore:{notes}", "used_at"))
    execute("HSET", "fdstore:{notes}", "used_at", f"{used_at - 5000:.6f}")

    found = get(redis_url, "/index.json?within=1h", "/index.json?within=1d&sort=name", "/?within=1h")

    assert [sorted(names(page)) for page in found[:2]] == [["build-1", "ended"], trees]
    assert "/tree/notes" not in found[2].text


def test_a_tree_has_its_task_its_end_its_time_and_its_costs(
    redis_url: str, store: Store, execute: Any
) -> None:
    root = store.process("triage")
    task = SpawnTask(query="Find the <b>first</b> error.\nThen stop.")
    store.run(processes.launch(root.handle, encode_task(task), title_of(task)))
    store.run(processes.end(root.handle, "failed", exit_code=1, reason="the model <i>refused</i>"))
    price = msgspec.json.encode(ModelPrice(input=3, output=15, currency="USD"))
    execute("HSET", "fdstore:{triage}:triage", "price", price, "input_tokens", 70_000, "output_tokens", 2000)

    page, twin = get(redis_url, "/", "/index.json")

    [tree] = twin.json()["trees"]
    record = store.tree("triage").members[0]
    assert (tree["task"], tree["reason"]) == ("Find the <b>first</b> error.", "the model <i>refused</i>")
    assert (tree["costs"], format_costs([record])) == ({"USD": 0.24}, "0.24 USD")
    assert (tree["started_at"], tree["ended_at"]) == (record.started_at, record.ended_at)
    for text in (
        "Find the &lt;b&gt;first&lt;/b&gt; error.",
        "the model &lt;i&gt;refused&lt;/i&gt;",
        "0.24 USD",
    ):
        assert text in page.text
    assert "Then stop" not in page.text


def test_damaged_facts_of_a_process_do_not_hide_its_tree(redis_url: str, store: Store, execute: Any) -> None:
    store.process("triage")
    execute(
        "HSET",
        "fdstore:{triage}:triage",
        "price",
        "{",
        "started_at",
        "soon",
        "ended_at",
        "inf",
        "input_tokens",
        "-1",
    )

    page, twin = get(redis_url, "/", "/index.json?sort=took")

    [tree] = twin.json()["trees"]
    assert (tree["started_at"], tree["ended_at"], tree["costs"], tree["tokens"]) == (None, None, {}, 0)
    assert page.status_code == 200


def test_the_page_shows_the_data_of_its_twin(redis_url: str, trees: list[str]) -> None:
    page, twin = get(redis_url, "/?q=build", "/index.json?q=build")

    [tree] = twin.json()["trees"]
    assert (tree["states"], tree["bytes"]) == ({"open": 1, "failed": 1}, 5000)
    assert 'href="/tree/build-1"' in page.text
    assert "5.0 kB" in page.text
    assert 'href="/index.json?q=build"' in page.text


def test_more_trees_than_fit_on_a_page_are_reached_by_its_links(
    redis_url: str, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("fdstore.web.trees.ROWS", 2)
    monkeypatch.setattr("fdstore.web.trees.AT_ONCE", 2)
    for number in range(5):
        store.process(f"tree-{number}")

    found, path = [], "/index.json?sort=name"
    while path:
        page = get(redis_url, path).json()
        found.append([each["tree"] for each in page["trees"]])
        path = "" if page["next"] is None else f"/index.json?sort=name&from={page['next']}"

    assert found == [["tree-0", "tree-1"], ["tree-2", "tree-3"], ["tree-4"]]


WRONG = ("state=nice", "sort=x", "order=up", "within=2h", "from=-1", "from=1e3", "q=" + "x" * 2000)


@pytest.mark.parametrize("query", WRONG)
def test_a_mistake_in_the_url_is_explained(redis_url: str, query: str) -> None:
    page, twin = get(redis_url, f"/?{query}", f"/index.json?{query}")

    assert (page.status_code, twin.status_code) == (400, 400)
    assert twin.json()["error"]["type"] == "invalid_argument"
    assert page.text.startswith("<!doctype html>")


def test_a_damaged_tree_is_named_and_the_others_are_shown(
    redis_url: str, trees: list[str], execute: Any
) -> None:
    used_at = execute("HGET", "fdstore:{notes}", "used_at")
    execute("HSET", "fdstore:{notes}", "used_at", "<b>soon</b>")

    page, twin = get(redis_url, "/", "/index.json")
    execute("HSET", "fdstore:{notes}", "used_at", used_at)

    assert sorted(names(twin)) == ["build-1", "ended"]
    assert "notes" in twin.json()["unreadable"][0]["what"]
    assert "<b>soon" not in page.text
    assert "&lt;b&gt;soon" in page.text


def test_an_empty_store_says_how_to_begin(redis_url: str) -> None:
    page = get(redis_url, "/").text

    assert "Nothing is stored yet" in page
    assert "fdstore demo --prefix fdstore\n" in page
    assert "fdstore ui --prefix" not in page


def test_an_empty_store_says_which_other_prefix_has_trees(redis_url: str) -> None:
    with fdstore.connect(redis_url, prefix=DEMO_PREFIX) as demo:
        demo.process("triage")
        demo.process("counter")

        page, twin = get(redis_url, "/", "/index.json")
        for tree in demo.trees():
            demo.drop_tree(tree.id)

    assert twin.json()["elsewhere"] == {DEMO_PREFIX: 2}
    assert f"fdstore ui --prefix {DEMO_PREFIX}" in page.text


def test_hostile_programs_are_shown_as_text(redis_url: str, store: Store, execute: Any) -> None:
    store.process("triage")
    execute("HSET", "fdstore:{triage}:triage", "program", '"><script>alert(1)</script>\x1b[31m\u202e')

    page = get(redis_url, "/").text

    assert "<script>alert" not in page
    assert "&#34;&gt;&lt;script&gt;alert(1)" in page
    assert "\x1b" not in page
    assert "\u202e" not in page
