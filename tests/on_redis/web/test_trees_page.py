"""The page of all trees, and its twin in JSON."""

from __future__ import annotations

from typing import Any

import pytest

import fdstore
from fdstore.client import Store
from fdstore.settings import DEMO_PREFIX
from fdstore.store.processes import processes
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


@pytest.mark.parametrize("query", ["state=nice", "sort=x", "from=-1", "from=1e3", "q=" + "x" * 2000])
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
