"""A run of `fdstore ask` has its question as its task on every page, and its asks on the timeline."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from fdstore.agents.loop.questions import launch_question, question_bundle
from fdstore.cli import cli
from fdstore.client import Process, Store
from fdstore.inspector.web import ask_tracks
from fdstore.inspector.web.ask_tracks import AskTracks
from fdstore.store.processes import asks, processes
from fdstore.store.processes.asks import Answered, Ask, AskAnswer, AskPart, AskSettings
from fdstore.store.views.shown_processes import shown_tree
from tests.on_redis.child_agents import claim
from tests.on_redis.inspector.inspected import Get
from tests.on_redis.inspector.run_page import Read, export
from tests.round_trips import count_round_trips

QUESTION = "Which <b>errors</b> began?\nName the first."
SHOWN = "Which <b>errors</b> began?"


@pytest.fixture
def manuals(store: Store) -> Process:
    """A process with a text, the agent of a question about it, and three asks of that: two are answered, of
    which one failed."""
    manuals = store.process("manuals")
    manuals.put("build.log", "a\nb\n")
    agent = launch_question(store, manuals, question_bundle("any"), QUESTION)
    running = claim(store, agent.id)
    asked = [Ask(number, f"question {number}", [AskPart("name:build.log")]) for number in (2, 60, 70)]
    [lane] = store.run(asks.start(running, "t1", asked, AskSettings(model="any", at_once=50)))
    handle = claim(store, lane)
    store.run(asks.take_next(handle, running, "t1", width=25, running=[], answered=[]))
    answers = [
        Answered(number=2, answer=AskAnswer(text="Yes.", seconds=2.0, lane=lane)),
        Answered(number=60, answer=AskAnswer(error="model_failed: no", seconds=1.0, lane=lane)),
    ]
    store.run(asks.take_next(handle, running, "t1", width=25, running=[70], answered=answers))
    return manuals


def test_the_question_is_the_task_of_the_run_on_every_page(get: Get, store: Store, manuals: Process) -> None:
    listed, tree, process, agent = get("/", "/tree/manuals", "/process/manuals", "/process/manuals.1")
    twin = get("/index.json").json()["trees"][0]

    assert twin["task"] == SHOWN
    for page in (listed.text, tree.text, process.text, agent.text, export(store, "manuals")):
        assert SHOWN in Read(page).words
        assert "<b>errors" not in page
    assert f"Task {SHOWN}" in Read(tree.text).words


def test_the_answer_to_the_last_question_is_the_outcome(get: Get, store: Store, manuals: Process) -> None:
    store.run(processes.end(store.process("manuals.1").handle, answer="The **first** did."))
    more = launch_question(store, manuals, question_bundle("any"), "And who saw it?")
    store.run(processes.end(more.handle, answer="Ann did."))

    pages = [page.text for page in get("/tree/manuals", "/process/manuals")]
    log = CliRunner().invoke(cli, ["--url", store.url, "log", "manuals"]).output

    for page in (*pages, export(store, "manuals")):
        outcome = page.partition('<section class="outcome"')[2].partition("</section>")[0]
        assert "Task And who saw it? Ann did." in Read(f"<p>{outcome}").words
    assert "Ann did." in log
    assert "<strong>first</strong>" in get("/process/manuals.1").text


def test_asks_are_bars_of_the_timeline_that_lead_to_their_answers(
    get: Get, store: Store, manuals: Process
) -> None:
    page, twin = get("/tree/manuals", "/tree/manuals.json")

    [row] = [each for each in twin.json()["timeline"]["rows"] if each["call"] == "t1"]
    bars = [(each["label"], each["is_error"], each["until"] is None) for each in row["spans"]]
    assert sorted(bars) == [
        ("ask 2", False, False),
        ("ask 60", True, False),
        ("asks 2 of 3, 1 failed", False, True),
    ]
    took = {each["label"]: each["until"] - each["at"] for each in row["spans"] if each["until"]}
    assert took == pytest.approx({"ask 2": 2.0, "ask 60": 1.0}, abs=0.01)
    links = [each for each in Read(page.text).links if "&ask=" in each]
    assert "/process/manuals.1/asks?call=t1&ask=60#e0-60" in links
    assert 'id="e0-60"' in get(links[0].replace("ask=2", "ask=60").partition("#")[0]).text
    exported = Read(export(store, "manuals"))
    lane = re.compile(r"#e-manuals\.1\.1-0-(2|60)")
    assert {each for each in exported.links if lane.fullmatch(each)} <= {f"#{each}" for each in exported.ids}
    assert len({each for each in exported.links if lane.fullmatch(each)}) == 2


def test_an_ask_far_behind_is_on_the_page_that_its_bar_leads_to(
    get: Get, store: Store, proc: Process
) -> None:
    asked = [Ask(number, "Which?") for number in range(120)]
    store.run(asks.start(proc.handle, "t1", asked, AskSettings(model="any")))

    page = get("/process/triage/asks?call=t1&ask=60").text

    assert 'id="e0-60"' in page
    assert "51–100 of 120" in page


def test_answers_are_read_once_and_a_bounded_number_at_a_time(
    store: Store, manuals: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ask_tracks, "ANSWERS_AT_ONCE", 1)
    members = store.run(shown_tree("fdstore", "manuals")).members
    tracks = AskTracks()
    [lane] = [each for each in members if each.kind == "asks"]

    seen = []
    for _ in range(3):
        found, trips = count_round_trips(store, tracks.read("fdstore", members))
        seen.append((found[lane.id].unread, len(found[lane.id].known), trips))

    assert seen == [(1, 1, 2), (0, 2, 2), (0, 2, 0)]
