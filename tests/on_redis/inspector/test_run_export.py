"""A run as one page: everything of it, nothing from elsewhere, and nothing that is to be redacted."""

from __future__ import annotations

import re
from typing import Any

import httpx2
import pytest

from fdstore import Toolset
from fdstore.agents.loop.conversation import Assistant, Result, Start
from fdstore.client import Process, Store
from fdstore.inspector.web.rendering import MAX_CHARS
from fdstore.inspector.web.run_export import CSP
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import TokenUsage
from fdstore.store.processes import journal, processes
from tests.on_redis.inspector.inspected import Get, Inspect
from tests.on_redis.inspector.journals import SHORT, answer, converse, failed_child, ready_child
from tests.on_redis.inspector.run_page import Read, export, pieces

SECRET = "sk-4f9a77be"


def test_the_page_needs_nothing_else_and_its_links_lead_within_it(store: Store, hostile: Process) -> None:
    page = Read(export(store, "triage"))

    assert page.links
    assert {link for link in page.links if link.removeprefix("#") not in page.ids} == set()
    assert len(page.ids) == len(set(page.ids))
    assert not {"script", "link", "img", "iframe", "object", "form", "base"} & set(page.tags)
    assert not [each for each in page.attributes if each[1] in ("style", "src", "action", "srcset")]
    assert not [each for each in page.attributes if each[1].startswith("on")]
    assert ("meta", "content", CSP) in page.attributes
    assert not re.search(r"url\((?!#)|@import", export(store, "triage"))


def test_the_page_has_the_head_each_process_and_what_it_holds(store: Store, hostile: Process) -> None:
    page = Read(export(store, "triage"))

    ids = ("p-triage", "p-triage.1", "p-triage.2", "p-triage.2.1", "d-triage-1", "d-triage-3", "e-triage-5")
    assert set(ids) <= set(page.ids)
    for text in (
        "Run triage",
        "What broke the build?",
        "1 failed",
        "exit code 3",
        "3 contents",
        "no such host",
    ):
        assert text in page.text
    assert "name:notes/<script>.md" in page.text
    assert "40 bytes" in page.text
    assert "Ask 59" in page.text
    assert "#d-triage-1" in page.links
    assert page.text.count("\\u{1b}[31m") > 10


def test_a_conversation_of_any_length_is_whole(store: Store, proc: Process) -> None:
    long = "word " * 5000
    converse(proc, *SHORT[:1], *(answer(f"answer number {number}.") for number in range(250)), answer(long))

    made = pieces(store, "triage")
    page = Read("".join(made))

    assert all(f"answer number {number}." in page.text for number in range(250))
    assert (
        len(made) == 7
    )  # the head; of the process its begin, three parts of its conversation, its end; the foot
    shown = f"Show {MAX_CHARS:,} of {len(long):,} characters"
    assert shown in page.text
    assert long not in page.text


@pytest.mark.thorough("a large run")
def test_pieces_stay_small_however_large_a_run_is(store: Store, proc: Process) -> None:
    for number in range(60):
        child = proc.child()
        converse(child, *SHORT[:1], *(answer(f"{number}: " + "x" * 5000) for _ in range(20)))

    made = pieces(store, "triage")

    assert sum(map(len, made)) > 6_000_000
    assert max(map(len, made)) < 400_000


def test_a_run_that_has_ended_says_how_long_it_took_and_what_it_cost(store: Store, execute: Any) -> None:
    root = store.process("build")
    usage = TokenUsage(input_tokens=70_000, output_tokens=10)
    child = ready_child(root)
    store.run(journal.append(child, 1, ['{"kind":"note","text":"."}'], usage=usage))
    execute("HSET", child.keys.record, "price", '{"input":3.0,"output":15.0,"currency":"USD"}')
    store.run(processes.end(child, "exited"))
    root.end()

    page = Read(export(store, "build"))

    assert store.tree("build").members[0].state in ENDED
    assert "0.21 USD" in page.text
    assert "70k in, 10 out" in page.text
    assert "ended 20" in page.text


def test_what_patterns_match_is_nowhere_in_the_page(store: Store, proc: Process, execute: Any) -> None:
    proc.create(f"a\nkey {SECRET}\n" * 400, source=f"curl -H {SECRET}")
    proc.put(f"notes/{SECRET}.md", "x")
    converse(
        proc,
        Start(system=f"Use {SECRET}.", content=f"Task with {SECRET}"),
        answer(f"I use {SECRET}.", ("t1", f"tool_{SECRET}", {"key": SECRET, "deep": {SECRET: [SECRET]}})),
        Result(call="t1", content=f'{{"key": "\\u0073{SECRET[1:]}"}}'),
        answer("x" * (MAX_CHARS - 5) + SECRET),
    )
    failed = failed_child(proc, f"401 for {SECRET}")
    execute("HSET", failed.keys.record, "program", f"deploy-{SECRET}")

    html = export(store, "triage", "sk-[0-9a-f]{8}", "(?i)TASK WITH")

    assert SECRET in export(store, "triage")
    assert "sk-" not in html
    assert "4f9a77" not in html
    assert "u0073" not in html
    assert "Task with" not in html
    notice = re.search(r'id="redacted">(\d+) places were redacted', html)
    assert notice
    assert int(notice[1]) > 20


KEY = "sk-ZZ" + "".join(f"{number:02d}Q" for number in range(30, 44))
"""A key of 47 characters."""


def pieces_of_key(page: str) -> set[str]:
    return {KEY[at : at + 4] for at in range(len(KEY) - 3) if KEY[at : at + 4] in page}


@pytest.mark.parametrize("cut", [1, 4, 7, 20, 36, 43])
def test_no_piece_of_a_key_is_left_where_a_page_a_search_or_an_extraction_cut_it(
    store: Store, proc: Process, cut: int
) -> None:
    before = "x" * (600 - cut - 2)
    text = f"{before}, {KEY} {'y' * 3000} the end"
    fd = proc.create(text, page_size=600).fd
    part = proc.extract(fd, mode="char", start=600 - cut + 6, count=2000).fd
    tools = Toolset(proc, enabled=["read_fd", "search_fd", "write_fd"])
    asked = [
        ("read_fd", {"fd": fd, "start": 1}),
        ("read_fd", {"fd": fd, "start": 2}),
        ("read_fd", {"fd": f"{fd}#C{600 - cut + 5}-640"}),
        ("read_fd", {"fd": part}),
        ("search_fd", {"fd": fd, "pattern": "x, .{5}"}),
        ("search_fd", {"fd": fd, "pattern": "the end"}),
        ("write_fd", {"data": KEY[cut:] + " is the rest"}),
    ]
    calls = [
        {"type": "tool_use", "id": f"c{number}", "name": name, "input": given}
        for number, (name, given) in enumerate(asked)
    ]
    results = [
        Result(call=call["id"], content=tools.call(call["name"], call["input"]).content) for call in calls
    ]
    converse(proc, *SHORT[:1], Assistant(content=calls, stop_reason="tool_use"), *results)
    assert pieces_of_key("".join(str(each.content) for each in results))

    page = export(store, "triage", "sk-[A-Za-z0-9_-]+")

    assert pieces_of_key(page) == set()
    assert "is the rest" in page
    assert "the end" in page


def test_the_name_of_a_run_can_be_redacted(store: Store, hostile: Process) -> None:
    html = export(store, "triage", "triage", "</?script>")

    page = Read(html)
    assert "triage" not in html
    assert "Run [redacted]" in page.text
    assert "alert(1)" in page.text
    assert {link for link in page.links if link.removeprefix("#") not in page.ids} == set()
    assert len(page.ids) == len(set(page.ids))


def test_a_page_without_patterns_says_nothing_of_them(store: Store, proc: Process) -> None:
    assert "redacted" not in Read(export(store, "triage")).text
    assert "0 places were redacted" in Read(export(store, "triage", "never")).text


def test_a_damaged_journal_is_named_and_the_rest_is_there(store: Store, proc: Process, execute: Any) -> None:
    converse(proc, *SHORT)
    child = proc.child()
    execute("SET", child.handle.keys.journal, "not a list")

    page = Read(export(store, "triage"))

    execute("DEL", child.handle.keys.journal)
    assert "This conversation cannot be read" in page.text
    assert "A missing comma did." in page.text


def test_the_inspector_streams_the_same_page_as_a_file(get: Get, store: Store, hostile: Process) -> None:
    found, missing, page = get("/tree/triage/export.html", "/tree/absent/export.html", "/tree/triage")

    assert found.status_code == 200
    assert found.headers["content-disposition"].startswith('attachment; filename="triage.html"')
    assert found.headers["content-type"].startswith("text/html")
    assert found.headers["content-security-policy"].startswith("sandbox; default-src 'none'")
    assert "content-length" not in found.headers
    now = re.compile(r"Exported \S+|exported \S+|\d+ ms|[\d.]+ s\b|[\d.]+%")
    shown, own = (
        now.sub("", html).partition('id="processes"') for html in (found.text, export(store, "triage"))
    )
    assert shown[1:] == own[1:]
    assert missing.status_code == 404
    assert 'href="/tree/triage/export.html" download' in page.text


def test_only_some_runs_are_exported_at_once(inspect: Inspect, proc: Process, monkeypatch: Any) -> None:
    async def visit(client: httpx2.AsyncClient) -> list[int]:
        monkeypatch.setattr("fdstore.inspector.web.run_download.MAX_EXPORTS", 0)
        return [(await client.get("/tree/triage/export.html")).status_code]

    assert inspect(visit) == [503]
