"""The page of two runs side by side."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.agents.loop.conversation import Result
from fdstore.client import Store
from fdstore.inspector.web import compare
from tests.on_redis.inspector.inspected import Get, walk
from tests.on_redis.inspector.journals import SHORT, answer, converse, failed_child
from tests.on_redis.inspector.run_page import Read


@pytest.fixture
def two_runs(store: Store) -> None:
    """Two runs that begin alike; the second one fails in a child, and goes on in its root."""
    monday, tuesday = store.process("monday"), store.process("tuesday")
    monday.create("x" * 100)
    for run in (monday, tuesday):
        run.child()
    converse(monday, *SHORT)
    converse(
        tuesday,
        *SHORT[:3],
        Result(call="t2", content="a hit"),
        answer("I store it.", ("t5", "put", {"x": "a hit"})),
    )
    failed_child(tuesday, "<b>")


def test_two_runs_are_compared_by_facts_processes_and_steps(get: Get, two_runs: None) -> None:
    page, twin = get("/compare?a=monday&b=tuesday", "/compare.json?a=monday&b=tuesday")

    found = twin.json()["compared"]
    facts = {each["name"]: each["difference"] for each in found["facts"]}
    assert (facts["Processes"], facts["Failed processes"], facts["Stored"]) == (
        "1 more",
        "1 more",
        "100 B less",
    )
    assert facts["State"] == ""
    paths = {each["path"]: [said["text"] for said in each["differences"]] for each in found["processes"]}
    assert (paths[""], paths[".2"]) == ([], ["only in tuesday"])
    said = [[pair["difference"] for pair in block["pairs"]] for block in found["steps"]]
    assert said == [["", ""], ["it did not fail", "other words", "only in tuesday"]]
    assert page.status_code == 200
    assert "2 equal steps" in page.text
    words = Read(page.text).words
    assert "worse: 1 more" in words
    assert "better: it did not fail" in words
    assert 'class="differs is-worse"' in page.text
    assert 'class="differs is-better"' in page.text
    assert '<b class="differs">100 B less</b>' in page.text
    assert 'href="/process/tuesday.2"' in page.text
    assert 'href="?a=tuesday&amp;b=monday"' in page.text


def test_the_page_of_a_tree_offers_the_comparison_with_the_trees_used_last(get: Get, two_runs: None) -> None:
    page, twin = get("/tree/monday", "/tree/monday.json")

    assert twin.json()["others"] == ["monday", "tuesday"]
    assert '<option value="tuesday">' in page.text
    assert '<option value="monday">' not in page.text
    assert 'action="/compare"' in page.text


def test_without_two_names_there_is_a_form(get: Get, two_runs: None) -> None:
    empty, half = get("/compare", "/compare?a=monday")

    assert (empty.status_code, half.status_code) == (200, 200)
    assert "Compare two runs" in empty.text
    assert 'name="a" value="monday"' in half.text


def test_large_runs_are_compared_in_part(get: Get, store: Store, monkeypatch: Any) -> None:
    monkeypatch.setattr(compare, "ROWS", 2)
    monkeypatch.setattr(compare, "MAX_STEPS", 3)
    for name in ("monday", "tuesday"):
        run = store.process(name)
        for _ in range(4):
            run.child()
        converse(run, *SHORT[:1], *(answer(f"{number}") for number in range(9)))

    pages = list(walk(get, "/compare.json?a=monday&b=tuesday"))

    found = [each["path"] for page in pages for each in page["processes"]]
    assert found == ["", ".1", ".2", ".3", ".4"]
    assert all(page["is_cut"] for page in pages)
    assert [len(block["pairs"]) for block in pages[0]["steps"]] == [3]
