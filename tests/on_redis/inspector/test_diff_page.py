"""The page of what differs between two texts."""

from __future__ import annotations

from typing import Any

import pytest

from fdstore.client import Process
from fdstore.inspector.web import diff
from fdstore.store.views.process_window import descriptor_names
from tests.on_redis.inspector.inspected import Get
from tests.on_redis.inspector.run_page import Read
from tests.round_trips import Tally

DIFF = "/process/triage/diff"
OLD = "".join(f"line {number}\n" for number in range(1, 60))
NEW = OLD.replace("line 7\n", "line <b>seven</b>\x1b[31m\n").replace("line 30\n", "").replace("59\n", "59")


@pytest.fixture
def texts(proc: Process) -> Process:
    proc.create(OLD, page_size=100)
    proc.create(NEW)
    proc.put("notes/plan.md", NEW)
    return proc


def test_the_page_shows_the_diff_and_leads_from_each_line_to_its_text(get: Get, texts: Process) -> None:
    page, twin = get(f"{DIFF}?a=fd:1&b=fd:2", f"{DIFF}.json?a=fd:1&b=fd:2")

    found = twin.json()["diff"]
    assert found["comparison"] == {"a": "fd:1", "b": "fd:2", "removed": 3, "added": 2}
    changed = [
        (row["kind"], row["old"], row["new"]) for row in found["rows"] if row["kind"] in ("removed", "added")
    ]
    assert changed == [
        ("removed", 7, None),
        ("added", None, 7),
        ("removed", 30, None),
        ("removed", 59, None),
        ("added", None, 58),
    ]
    assert not found["is_cut"]
    read = Read(page.text)
    links = set(read.links)
    assert {"/process/triage/fd/1?lines=7#L7", "/process/triage/fd/2?lines=58#L58"} <= links
    assert "<b>seven</b>" in read.text
    assert "3 lines removed" in read.text
    assert read.text.count("added") >= 2
    assert "does not end with a line break" in read.text
    assert "ESC[31m" in read.text
    assert "line <del>7</del></td>" in page.text
    assert "line <ins>&lt;b&gt;seven&lt;/b&gt;" in page.text


def test_parts_and_names_are_compared_with_the_numbers_of_the_whole(get: Get, texts: Process) -> None:
    path = "/process/triage/diff.json?a=fd:1%23L20-40&b=name:notes/plan.md%23L20-39&context=0"
    page, twin = get(path.replace(".json", ""), path)

    found = twin.json()["diff"]
    assert [(row["kind"], row["old"]) for row in found["rows"]] == [("hunk", None), ("removed", 30)]
    assert found["b"]["asked"] == "name:notes/plan.md#L20-39"
    assert "/process/triage/fd/name?key=notes%2Fplan.md" in Read(page.text).links


def test_equal_texts_have_no_rows(get: Get, texts: Process) -> None:
    page = get(f"{DIFF}?a=fd:1&b=1")

    assert "The texts are equal" in page.text
    assert 'class="diff"' not in page.text


def test_a_large_diff_is_shown_in_part_and_counted_whole(get: Get, proc: Process, monkeypatch: Any) -> None:
    monkeypatch.setattr(diff, "MAX_ROWS", 10)
    proc.create("".join(f"a{number}\n" for number in range(300)))
    proc.create("".join(f"b{number}\n" for number in range(300)))

    page, twin = get(f"{DIFF}?a=fd:1&b=fd:2", f"{DIFF}.json?a=fd:1&b=fd:2")

    found = twin.json()["diff"]
    assert (found["comparison"]["removed"], found["comparison"]["added"]) == (300, 300)
    assert (len(found["rows"]), found["is_cut"]) == (11, True)
    assert "More lines differ than are shown" in page.text


def test_texts_that_are_too_large_to_compare_are_refused(get: Get, texts: Process, monkeypatch: Any) -> None:
    monkeypatch.setattr(diff, "MAX_BYTES", 100)

    large = get(f"{DIFF}.json?a=fd:1&b=fd:2")

    assert (large.status_code, large.json()["error"]["type"]) == (400, "too_large")
    assert "fdstore diff" in large.json()["error"]["message"]


def test_the_page_of_a_text_offers_the_other_descriptors(get: Get, texts: Process) -> None:
    data = texts.create(b"\x00\x01")
    page, twin, of_bytes, form = get(
        "/process/triage/fd/1",
        "/process/triage/fd/1.json",
        f"/process/triage/fd/{data.fd.removeprefix('fd:')}",
        "/process/triage/diff?a=fd:1",
    )

    assert twin.json()["others"] == ["fd:2", "fd:4", "name:notes/plan.md"]
    assert '<option value="name:notes/plan.md">' in page.text
    assert 'action="/process/triage/diff"' in page.text
    assert "Compare with" not in of_bytes.text
    assert "Compare two texts" in form.text


def test_of_a_large_table_the_last_numbers_are_offered(
    redis_url: str, proc: Process, monkeypatch: Any
) -> None:
    monkeypatch.setattr("fdstore.store.views.process_window.SMALL_TABLE", 3)
    monkeypatch.setattr("fdstore.store.views.process_window.WINDOW", 4)
    for number in range(8):
        proc.create(f"{number}")
    proc.close("fd:6")

    assert proc.store.run(descriptor_names(proc.handle.keys)) == ("fd:5", "fd:7", "fd:8")


def test_a_page_of_a_diff_costs_as_much_as_the_texts(get: Get, texts: Process) -> None:
    tally = Tally()

    get("/process/triage/diff.json?a=fd:1&b=fd:2", tally=tally)

    assert tally.reply_bytes < 20_000
