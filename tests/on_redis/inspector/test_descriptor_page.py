"""The page of a descriptor, and its twin: the part at a position, and what is known of the content."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from fdstore.agents.loop.conversation import Result, Start
from fdstore.client import Process, Store
from fdstore.elements.facts import ResultFacts
from fdstore.elements.kinds import FdContent, FdResult
from fdstore.store.cold.moving import move_due
from fdstore.store.trees import ceilings
from tests.cold_contents import objects_in
from tests.on_redis.inspector.inspected import Get
from tests.on_redis.inspector.journals import answer, converse, pipe

LINES = "".join(f"line {number} of the log\n" for number in range(1, 1001))
FD = "/process/triage/fd/"


@pytest.fixture
def log(proc: Process) -> Process:
    proc.create(LINES, source="build.log")
    return proc


def rows(text: str) -> list[str]:
    """The shown lines of a page, as a person sees them."""
    shown = re.findall(r'<div class="row.*?<span class="tx">(.*?)</span></div>', text, re.DOTALL)
    return [re.sub("<[^>]+>", "", row) for row in shown]


def test_a_page_shows_one_stored_page_and_links_to_its_neighbours(get: Get, log: Process) -> None:
    pages = log.stat("fd:1").pages
    first, inner, last = get(f"{FD}1", f"{FD}1?page={pages - 1}", f"{FD}1?go=end")

    stored = [log.read("fd:1", start=n).text.splitlines() for n in (1, pages - 1, pages)]
    assert [rows(page.text) for page in (first, inner, last)] == stored
    assert 'rel="prev"' not in first.text
    assert f'href="{FD}1?page={pages - 2}" rel="prev"' in inner.text
    assert f'href="{FD}1?page={pages}" rel="next"' in inner.text
    assert 'rel="next"' not in last.text


def test_the_twin_has_the_text_with_places(get: Get, log: Process) -> None:
    twin = get(f"{FD}1.json?lines=500-502").json()

    [page] = twin["text"]["pages"]
    stored = log.read("fd:1", start=page["page"])
    assert page["text"] == stored.text
    assert (page["first_line"], page["first_char"]) == tuple(
        int(part.split("-")[0]) for part in (stored.lines, stored.chars)
    )
    assert twin["text"]["line"] == 500
    assert LINES[twin["text"]["char"] - 1 :].startswith("line 500 ")
    assert twin["descriptor"]["lines"] == 1000
    assert twin["position"] == {"unit": "line", "first": 500, "last": 502}


def test_asked_lines_and_characters_are_marked(get: Get, log: Process) -> None:
    at = LINES.index("500 of") + 1
    lines, chars = get(f"{FD}1?lines=500-501", f"{FD}1?chars={at}-{at + 2}")

    assert re.findall(r'class="row on"[^>]*id="L(\d+)"', lines.text) == ["500", "501"]
    assert re.findall(r'<mark class="mark">(.*?)</mark>', chars.text) == ["500"]


def test_names_with_slashes_and_endings_of_twins_have_pages(get: Get, proc: Process) -> None:
    for name in ("notes/plan.md", "a.json", "b/x.live"):
        proc.put(name, f"this is {name}\n")

    for name in ("notes/plan.md", "a.json", "b/x.live"):
        page, twin = get(f"{FD}name?key={name}", f"{FD}name.json?key={name}")
        assert rows(page.text) == [f"this is {name}"]
        assert twin.json()["fd"] == f"name:{name}"
        assert f"name/download?key={name.replace('/', '%2F')}" in page.text


def test_bytes_are_a_hex_dump(get: Get, proc: Process) -> None:
    proc.create(bytes(range(256)) * 400)

    page, later, twin = get(f"{FD}1", f"{FD}1?offset=20000", f"{FD}1.json?offset=20000")

    assert "00 01 02 03 04 05 06 07  08 09 0a 0b 0c 0d 0e 0f" in page.text
    assert re.findall(r'class="row on" id="O(\d+)"', later.text) == ["20000"]
    shown = twin.json()["bytes"]
    assert bytes.fromhex(shown["hex"]) == proc.read_bytes("fd:1", shown["offset"], len(shown["hex"]) // 2)


def test_text_has_a_hex_dump_too(get: Get, proc: Process) -> None:
    proc.create("häh?\n" * 10_000)

    twin = get(f"{FD}1.json?view=hex&offset=5001").json()

    shown = twin["bytes"]
    assert shown["offset"] == 4096
    assert bytes.fromhex(shown["hex"]) == ("häh?\n" * 10_000).encode()[4096 : 4096 + 4 * 4096]


def test_an_empty_content_says_so(get: Get, proc: Process) -> None:
    proc.create("")

    assert "This content is empty" in get(f"{FD}1").text


def test_who_made_and_who_holds_a_content_is_linked(get: Get, store: Store, log: Process) -> None:
    part = log.extract("fd:1", mode="line", start=10, count=2)
    child = log.child(share=[part.fd])

    page, twin = get(f"/process/{child.id}/fd/2", f"/process/{child.id}/fd/2.json")

    data = twin.json()
    assert data["producer"]["id"] == "triage"
    assert [(each["process"], each["fd"]) for each in data["holders"]] == [
        ("triage", "fd:2"),
        ("triage.1", "fd:2"),
    ]
    origin = data["descriptor"]["origin"]
    assert f'href="{FD}1?chars={origin["chars"]}"' in page.text
    assert "Shared with" in page.text


def test_the_work_of_a_request_does_not_grow_with_the_content(get: Get, proc: Process, execute: Any) -> None:
    proc.create("a line of thirty characters...\n" * 300)
    proc.create("a line of thirty characters...\n" * 130_000)  # 4 MB
    proc.create("one line" * 130_000)
    for _ in range(3):
        proc.child(share=["fd:1", "fd:2", "fd:3"])

    def cost(path: str) -> tuple[int, int]:
        before = execute("INFO", "stats")
        assert get(path).status_code == 200
        counts = [
            [int(found) for found in re.findall(rb"(?:commands_processed|output_bytes):(\d+)", info)]
            for info in (before, execute("INFO", "stats"))
        ]
        return counts[1][0] - counts[0][0], counts[1][1] - counts[0][1]

    small = cost(f"{FD}1")
    for path in (
        *(f"{FD}2", f"{FD}2?lines=80000", f"{FD}2.json?chars=3000000", f"{FD}2?go=end", f"{FD}3?page=200"),
        *(f"{FD}2?view=hex&offset=3000000", f"{FD}2/window.json?lines=99999&side=around"),
        f"{FD}3/window.json?page=260&side=before",
    ):
        commands, size = cost(path)
        assert commands <= small[0] + 75, path  # the bisection of the index counts its reads
        assert size <= 150_000, path


def shown(**part: Any) -> ResultFacts:
    return ResultFacts(shown=(FdContent(fd="fd:1", **part),))


def test_what_its_agent_has_read_and_the_call_that_made_it_are_known(get: Get, log: Process) -> None:
    made = log.create("".join(f"row {n}\n" for n in range(2000)))
    at = LINES.index("line 500 ") + 1
    converse(
        log,
        Start(system="", content="Look."),
        answer("", ("t1", "search_web", {}), ("t2", "read_fd", {"fd": 1}), ("t3", "read_fd", {"fd": 1})),
        Result(call="t1", content="...", facts=ResultFacts(stored=(FdResult(fd=made.fd),))),
        Result(call="t2", content="...", facts=shown(page=2, pages=6)),
        Result(call="t3", content="...", facts=shown(pages=6, chars=f"{at}-{at}")),
    )

    page, twin, mine, later = get(
        f"{FD}1?reading=1", f"{FD}1/reading.json", f"{FD}2/reading.json", f"{FD}1.json"
    )

    third = int(get(f"{FD}1.json?lines=500").json()["text"]["page"])
    read = twin.json()
    assert read["pages"] == [[2, third]] if third == 3 else [[2, 2], [third, third]]
    assert (read["count"], read["total"]) == (2, log.stat("fd:1").pages)
    assert f"2 of {read['total']} pages" in page.text
    assert mine.json()["made_by"] == {"tool": "search_web", "position": 3}
    assert later.json()["reading"] is None


def test_the_streams_of_a_pipeline_lead_to_each_other(get: Get, log: Process) -> None:
    started = pipe(log, "sort", "uniq", in_fd="fd:1")
    output, errors = log.store.processes()[-1].outputs

    page, twin = get(f"{FD}{output[3:]}", f"{FD}{errors[3:]}.json")

    assert f'the output of <a class="id" href="/process/{started.process}"' in page.text
    assert f'href="{FD}{errors[3:]}">{errors}</a>' in page.text
    assert twin.json()["role"] == "stderr"
    assert twin.json()["siblings"] == [{"role": "output", "process": "triage", "fd": output}]


def test_json_is_indented_on_demand_with_a_link_back(get: Get, proc: Process) -> None:
    proc.create('{"a":["<b>",{"n":1}]}')

    stored, pretty, twin = get(f"{FD}1", f"{FD}1?view=pretty", f"{FD}1.json?view=pretty")

    assert f'href="{FD}1?view=pretty"' in stored.text
    assert rows(stored.text) == ["{&#34;a&#34;:[&#34;&lt;b&gt;&#34;,{&#34;n&#34;:1}]}"]
    assert "  &#34;a&#34;: [\n    &#34;&lt;b&gt;&#34;,\n    {\n" in pretty.text
    assert f'<a href="{FD}1">The text as stored</a>' in pretty.text
    assert twin.json()["readable"]["text"].startswith('{\n  "a": [')


def test_markdown_is_rendered_on_demand_a_part_at_a_time(get: Get, proc: Process) -> None:
    proc.put("plan.md", "# Plan\n\n- **one** <b>two</b>\n" + "A line of it.\n" * 3000)

    stored, rendered = get(f"{FD}name?key=plan.md", f"{FD}name?key=plan.md&view=rendered")
    on = int(re.findall(r"view=rendered&amp;chars=(\d+)", rendered.text)[0])
    [last] = [get(f"{FD}name?key=plan.md&view=rendered&chars={at}") for at in (on,)]

    assert "view=rendered" in stored.text
    assert "<h3>Plan</h3>" in rendered.text
    assert "<strong>one</strong> &lt;b&gt;two&lt;/b&gt;" in rendered.text
    assert "the others are not shown" in rendered.text
    assert "The text as stored" in rendered.text
    assert "A line of it." in last.text
    assert "<h3>" not in last.text


def test_what_is_no_json_and_large_json_say_what_is_not_shown(get: Get, proc: Process) -> None:
    proc.create("no JSON\n" * 20)
    proc.create("[" + ",".join(f'{{"id":{n}}}' for n in range(20_000)) + "]")

    none, large, bytes_of = get(f"{FD}1?view=pretty", f"{FD}2?view=pretty", f"{FD}2?view=hex")

    assert "cannot be laid out" in none.text
    assert re.search("characters 1 to 100.000 of [^;]*; the others are not shown", large.text)
    assert "cannot be laid out" not in bytes_of.text


def test_the_page_of_a_cold_content_says_where_it_is(
    get: Get, log: Process, store: Store, tmp_path: Path
) -> None:
    for name, value in (("cold", f"file://{tmp_path}/o"), ("cold_after", "0s"), ("cold_min", "0")):
        store.run(ceilings.put(store.prefix, name, value))
    before = get(f"{FD}1").text
    assert move_due(store).contents == 1

    page = get(f"{FD}1").text

    [file] = objects_in(tmp_path / "o")
    assert rows(page) == rows(before)
    assert "Cold" not in before
    assert f"fdstore/triage/{file.name}" in page
    file.unlink()
    assert "is missing" in get(f"{FD}1").text
