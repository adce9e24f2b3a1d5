"""The search field of the pages: trees by name, runs by words, and what an id or a URL names."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.client import Process, Store
from fdstore.store.processes import processes
from tests.on_redis.inspector.inspected import Get
from tests.on_redis.inspector.journals import ready_child
from tests.on_redis.inspector.run_page import Read
from tests.round_trips import Tally


@pytest.fixture
def build(store: Store) -> Process:
    """A tree with a failed child and a named text, beside another tree."""
    store.process("notes").create("a\nb\nc\n", source="refunds.csv")
    build = store.process("build")
    build.put("plan & <b>.md", "text", source="Editor")
    child = ready_child(build, "Count the refunds")
    store.run(processes.end(child, "failed", exit_code=None, reason="<script>alert(1)</script> overflow"))
    return build


def test_trees_found_by_words_say_where_and_link_there(get: Get, build: Process) -> None:
    page, twin = get("/?q=refunds&sort=name", "/index.json?q=refunds&sort=name")

    data = twin.json()
    assert [each["tree"] for each in data["trees"]] == ["build", "notes"]
    assert data["named"] == 2
    assert [(each["process"], each["found_in"]) for each in data["words"]["build"]] == [("build.1", "task")]
    assert '<a href="/process/build.1">task of build.1</a>' in page.text
    assert '<a href="/process/notes/fd/1">source of notes fd:1</a>' in page.text
    assert get("/index.json?q=refunds&state=failed").json()["words"].keys() == {"build"}


def test_each_place_is_on_a_row_of_its_own_with_the_words_around_it_marked(
    get: Get, build: Process, store: Store
) -> None:
    done = ready_child(build, "Look")
    store.run(processes.end(done, answer="<i>Twelve</i> refunds were paid"))

    html = get("/?q=refunds&sort=name").text  # build before notes
    page = Read(html)

    assert page.words.count("task of build.1 Count the refunds") == 1
    assert "Count the <mark>refunds</mark>" in html
    assert "&lt;i&gt;Twelve&lt;/i&gt; <mark>refunds</mark> were paid" in html
    assert "<mark>refunds</mark>.csv" in html
    hits = html.split('<ul class="hits">')[1].split("</ul>")[0]
    assert hits.count("<li>") == 2


def test_parts_of_names_and_patterns_find_trees_and_no_words(get: Get, build: Process) -> None:
    for query in ("otes", "n*"):
        page = get(f"/index.json?q={query}").json()
        assert ([each["tree"] for each in page["trees"]], page["words"]) == (["notes"], {})


def test_a_name_of_a_text_is_shown_and_linked_harmlessly(get: Get, build: Process) -> None:
    page = get("/?q=editor").text
    failed = get("/?q=alert+overflow").text

    assert "source of build name:plan &amp; &lt;b&gt;.md" in page
    assert 'href="/process/build/fd/name?key=plan+%26+%3Cb%3E.md"' in page
    assert "error of build.1" in failed
    assert "<script>alert" not in failed


@pytest.mark.parametrize(
    ("query", "url"),
    [
        ("build.1", "/process/build.1"),
        ("fdstore://build.1", "/process/build.1"),
        ("build", "/tree/build"),
        ("fdstore://notes/fd:1", "/process/notes/fd/1"),
        ("fdstore://notes/fd:1?lines=2-3", "/process/notes/fd/1?lines=2-3"),
        ("fdstore://notes/fd:1?page=1", "/process/notes/fd/1?page=1"),
    ],
)
def test_an_id_or_a_url_leads_to_its_page(get: Get, build: Process, query: str, url: str) -> None:
    page, twin, there = get(
        "/?q=" + query.replace("?", "%3F"), f"/index.json?q={query.replace('?', '%3F')}", url
    )

    assert (page.status_code, page.headers["location"]) == (303, url)
    assert twin.status_code == there.status_code == 200


def test_the_url_of_a_value_of_json_leads_to_the_value(get: Get, build: Process) -> None:
    build.put("found.json", '{"a": 1,\n "b": [20,\n 300]}')
    url = "fdstore://build/name:found.json%3Fjson="

    there, whole, missing = get(f"/?q={url}/b/1", f"/?q={url}", f"/?q={url}/b/7")

    page = "/process/build/fd/name?key=found.json&chars="
    assert (there.status_code, there.headers["location"]) == (303, f"{page}22-24")
    assert whole.headers["location"] == f"{page}1-26"
    assert missing.status_code == 404
    assert "/b" in missing.text


def test_the_name_of_a_tree_hides_no_other_tree(get: Get, build: Process, store: Store) -> None:
    store.process("build-2")

    page = get("/?q=build")

    assert page.status_code == 200
    assert 'href="/tree/build"' in page.text
    assert 'href="/tree/build-2"' in page.text


@pytest.mark.parametrize(
    "query",
    ["build.9", "fdstore://build/fd:99", "fdstore://x y", "fdstore://", "%00%ff", "%ED%A0%80", "%3Ci%3E"],
)
def test_what_names_nothing_is_searched(get: Get, build: Process, query: str) -> None:
    page = get(f"/?q={query}")

    assert page.status_code == 200
    assert "No tree matches" in page.text
    assert "<i>" not in page.text


def test_every_page_has_the_search(get: Get, build: Process) -> None:
    for page in get("/tree/build", "/process/build", "/workers", "/health"):
        assert 'role="search" action="/"' in page.text


def test_damaged_words_are_named_and_hide_nothing(get: Get, build: Process, execute: Any) -> None:
    execute("SET", "fdstore:{notes}:search:words", "x")

    page = get("/index.json?q=refunds").json()

    assert [each["tree"] for each in page["trees"]] == ["build"]
    assert "notes" in str(page["unreadable"])
    execute("DEL", "fdstore:{notes}:search:words")


def test_a_search_costs_a_round_trip_for_fifty_trees_and_one_for_what_it_finds(
    get: Get, build: Process
) -> None:
    costs = []
    for query, shown in (("*", 2), ("no-such-words", 0), ("csv", 1)):
        tally = Tally()
        assert len(get(f"/index.json?q={query}", tally=tally).json()["trees"]) == shown
        costs.append(tally.round_trips)

    by_name, in_vain, found = costs
    # of the names of the trees and their words; the rows of the page are two, the text around a word is one
    assert (in_vain, found) == (by_name - 2 + 2, by_name + 4)
