"""Windows of pages, which scripts scroll through, and searches in steps."""

from __future__ import annotations

import random
import re
from typing import Any

import pytest

from fdstore.client import Process
from fdstore.inspector.web import descriptor_data
from fdstore.model.records import Mode
from fdstore.store.contents import page_windows, search_steps
from fdstore.store.contents.page_windows import PageText, PageWindow, Side, read_window
from fdstore.store.contents.search_steps import search_step
from fdstore.text.selection import Part
from tests.on_redis.inspector.inspected import Get

FD = "/process/triage/fd/"


def some_text(seed: int, count: int = 300) -> str:
    chosen = random.Random(seed)
    words = ("", "a", "ERROR x", "häß \U0001f600", "y" * 90, "\u202e", "z" * 700)
    return "".join(chosen.choice(words) + chosen.choice(("\n", "\n", "\n", "")) for _ in range(count))


def window(proc: Process, mode: Mode, number: int, side: Side = "after") -> PageWindow:
    return proc.store.run(read_window(proc.handle, "fd:1", Part(mode, number, 1), side))


def check_place(page: PageText, text: str) -> None:
    start = page.first_char - 1
    assert text[start : start + len(page.text)] == page.text
    assert page.first_line == text.count("\n", 0, start) + 1
    assert page.continued == (bool(page.text) and start > 0 and text[start - 1] != "\n")


@pytest.mark.parametrize("size", [7, 100, 4000])
def test_windows_after_and_before_are_the_whole_text_with_exact_places(proc: Process, size: int) -> None:
    text = some_text(size)
    pages = proc.create(text, page_size=size).pages

    found, number = {}, 1
    while number <= pages:
        shown = window(proc, "page", number).pages
        assert shown[0].page == number
        found |= {page.page: page for page in shown}
        number = shown[-1].page + 1
    back, number = {}, pages
    while number >= 1:
        shown = window(proc, "page", number, "before").pages
        back |= {page.page: page for page in shown}
        number = shown[0].page - 1

    assert "".join(found[n].text for n in range(1, pages + 1)) == text
    assert back == found
    for page in found.values():
        check_place(page, text)


def test_every_line_and_character_is_located(proc: Process) -> None:
    text = some_text(1)
    proc.create(text, page_size=50)

    for line in (1, 2, 17, 100, text.count("\n")):
        shown = window(proc, "line", line, "around")
        assert shown.line == line
        assert text.count("\n", 0, shown.char - 1) == line - 1
        assert shown.char == 1 or text[shown.char - 2] == "\n"
        assert shown.page in [page.page for page in shown.pages]
    for char in (1, 51, 777, len(text)):
        shown = window(proc, "char", char)
        assert (shown.char, shown.line) == (char, text.count("\n", 0, char - 1) + 1)


@pytest.mark.parametrize("text", ["x" * 300_000, "a\n" * 150_000])
def test_of_a_huge_page_the_part_around_the_position_is_shown(proc: Process, text: str) -> None:
    proc.create(text, page_size=1_000_000)

    for char in (1, 150_001, 300_000):
        [page] = window(proc, "char", char).pages
        check_place(page, text)
        assert page.first_char <= char <= page.first_char + len(page.text)
        assert len(page.text) <= page_windows.SHOWN_CHARS
        assert page.text.count("\n") <= page_windows.SHOWN_LINES
        assert page.left_before + len(page.text) + page.left_after == 300_000


def test_an_open_stream_has_windows(proc: Process) -> None:
    writer = proc.open_stream(page_size=100)
    text = some_text(3, 60)
    writer.write(text)
    writer.flush()

    shown = window(proc, "page", proc.stat(writer.fd).pages, "before").pages

    assert text.endswith("".join(page.text for page in shown))
    for page in shown:
        check_place(page, text)
    writer.end()


@pytest.mark.thorough("many searches")
def test_steps_find_what_one_search_finds(proc: Process, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_steps, "STEP_BYTES", 3000)
    text = some_text(5, 2000)
    proc.create(text, page_size=300)
    whole = proc.search("fd:1", "ERROR|ß", max_matches=10_000)

    for limit in (1, 3, 50):
        hits: list[Any] = []
        start, steps = 1, 0
        while start:
            step = proc.store.run(search_step(proc.handle, "fd:1", "ERROR|ß", start, max_matches=limit))
            hits, steps = [*hits, *step.hits], steps + 1
            assert step.next_char is None or step.next_char > start
            start = step.next_char or 0
        assert [(hit.line, hit.chars) for hit in hits] == [(hit.line, hit.chars) for hit in whole.hits]
        assert steps >= len(text) // 6000


def test_a_line_longer_than_a_step_is_searched_in_pieces(
    proc: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(search_steps, "STEP_BYTES", 2000)
    text = "".join(f"{number:06}x" for number in range(3000))
    proc.create(text, page_size=100)

    start, found = 1, set()
    while start:
        step = proc.store.run(search_step(proc.handle, "fd:1", "00(0500|1234|2999)x", start))
        found |= {hit.chars for hit in step.hits}
        start = step.next_char or 0

    assert found == {f"{7 * number + 1}-{7 * number + 7}" for number in (500, 1234, 2999)}


def test_a_search_is_in_the_page_and_in_its_twin_and_goes_on_by_a_link(get: Get, proc: Process) -> None:
    proc.create(
        "".join(f"line {number}: {'ERROR' if number % 7 == 0 else 'ok'}\n" for number in range(1, 1001))
    )

    page, twin, step = get(
        f"{FD}1?q=error", f"{FD}1.json?q=error", f"{FD}1/search.json?q=error&limit=10&context=1"
    )

    search = twin.json()["search"]
    assert [hit["line"] for hit in search["hits"]] == list(range(7, 7 * 50 + 1, 7))
    assert f'href="{FD}1?q=error&amp;from={search["next_char"]}"' in page.text
    assert page.text.count('<a class="hit"') == 50
    hits = step.json()["hits"]
    assert [hit["line"] for hit in hits] == list(range(7, 71, 7))
    assert re.findall(r'<span class="no">(\d+)</span>', hits[0]["html"]) == ["6", "7", "8"]
    first = hits[0]["html"].replace("?q=error&amp;context=1&amp;", "?q=error&amp;")
    assert re.sub(r'<span class="near">.*?</span></span>', "", first) in page.text


def test_a_bad_pattern_is_explained_beside_the_text(get: Get, proc: Process) -> None:
    proc.create("(a\n")

    page, literal = get(f"{FD}1?q=(a&re=1", f"{FD}1.json?q=(a")

    assert page.status_code == 200
    assert "pattern" in page.text
    assert [hit["line"] for hit in literal.json()["search"]["hits"]] == [1]


def test_rows_that_are_loaded_later_are_those_of_the_page_with_what_is_marked(
    get: Get, proc: Process
) -> None:
    proc.create("".join(f"<b>line</b> \x1b[2K\x1b[1m{number}\x1b[0m\n" for number in range(1, 401)))

    page, later, plain = get(
        f"{FD}1?lines=3-5", f"{FD}1/window.json?page=1&mark=l3-5", f"{FD}1/window.json?page=1&mark=none"
    )

    first = later.json()["items"][0]
    assert first["html"] in page.text
    assert first["html"].count('class="row on"') == 3
    assert "<b>" not in first["html"]
    assert '<i class="ansi">ESC[2K</i><span class="sgr bold">3</span></span>' in first["html"]
    assert plain.json()["items"][0]["html"].count('class="row on"') == 0


@pytest.mark.parametrize(("text", "number"), [("x" * 300_000, "↳"), ("a\n" * 150_000, None)])
def test_the_rest_of_a_large_page_begins_where_what_is_shown_ends(
    get: Get, proc: Process, text: str, number: str | None
) -> None:
    proc.create(text, page_size=1_000_000)
    shown = get(f"{FD}1/window.json?page=1").json()["items"][0]["html"]
    at = int(re.findall(r'data-char="(\d+)"', shown)[0])

    rest = get(f"{FD}1/window.json?chars={at}&more=1&mark=none").json()["items"][0]["html"]

    assert "Show more" in rest
    name, row = re.findall(r">([^<]+)</(?:a|span)><span class=\"tx\">([^<]*)</span>", rest)[0]
    assert name == (number or str(1 + text.count("\n", 0, at - 1)))
    assert text.startswith(row, at - 1)


def test_all_lines_that_match_are_counted_on_demand(get: Get, proc: Process) -> None:
    proc.create("".join(f"line {number} {'ERROR ' * 2 if number % 7 else 'ok'}\n" for number in range(7000)))

    page, counted, twin, exact, some = get(
        *(f"{FD}1?q=error", f"{FD}1?q=error&count=1", f"{FD}1.json?q=error&count=1"),
        *(f"{FD}1/count.json?q=error&case=1", f"{FD}1/count.json?q=1..5+ERROR&re=1"),
    )

    assert f'<noscript><a href="{FD}1?q=error&amp;count=1">Count all</a></noscript>' in page.text
    assert re.search("50 lines so far .* · 6.000 in all", counted.text)
    assert twin.json()["search"]["counted"] == {"lines": 6000, "problem": ""}
    assert exact.json() == {"lines": 0, "problem": ""}
    assert some.json()["lines"] == proc.search("fd:1", "1..5 ERROR").matches > 0


def test_what_takes_too_long_or_too_much_memory_to_count_is_said(
    get: Get, proc: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    proc.create("a long line without an end " * 100_000)

    with monkeypatch.context() as patch:
        patch.setattr(descriptor_data, "COUNT_S", 0.0)
        late = get(f"{FD}1/count.json?q=line")
    monkeypatch.setattr(descriptor_data, "MAX_LONG_LINES_BYTES", 2_000_000)
    long = get(f"{FD}1/count.json?q=line")
    bad = get(f"{FD}1/count.json?q=(&re=1")

    assert late.json() == {"lines": None, "problem": "not counted: that takes longer than 0 s"}
    assert long.json() == {"lines": None, "problem": "not counted: its lines are too long"}
    assert bad.status_code == 400
