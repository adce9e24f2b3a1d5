"""The reports of `run` and `attach` during delays: a model that refuses or thinks, a slow tool, a lost
worker, an outage of Redis."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

import fdstore
from fdstore.cli import watch
from fdstore.cli.happenings import Happening
from fdstore.cli.watch import TreeWatcher
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.keys import process_keys
from fdstore.store.processes import leases
from fdstore.testing import Request, call, fail, say
from tests.on_redis.running_agents import StopAfterClaim, running, tool
from tests.waiting import PATIENCE_S, wait_until


class Lines:
    """The reported lines, and an event that is set when an expected text appears."""

    def __init__(self, awaited: str) -> None:
        self.told: list[str] = []
        self._awaited = awaited
        self.came = threading.Event()

    def __call__(self, event: Happening) -> None:
        self.told.append(str(event))
        if self._awaited in event.what:
            self.came.set()

    @property
    def text(self) -> str:
        return "\n".join(self.told)


def test_each_model_retry_is_reported_with_its_reason_and_pause(store: Store, tmp_path: Path) -> None:
    lines = Lines("try 2: ")

    def script(request: Request) -> object:
        if len(agents.model.requests) <= 2:
            return fail(529, message="all are busy", retry_after=0.6)
        assert lines.came.wait(PATIENCE_S), lines.text
        return say("Done.")

    with running(store, script, tmp_path) as agents:
        agents.launch()
        with TreeWatcher(store, "solo", lines).kept():
            agents.attempt("solo")
        ended = agents.record()

    reason = "the model answered 529 overloaded_error: all are busy; asking again in 0.6 s"
    assert f"try 1: {reason}" in lines.text
    assert f"try 2: {reason}" in lines.text
    assert (ended.state, ended.trouble) == ("exited", None)


def test_a_model_that_does_not_answer_in_time_ends_the_agent_with_a_reason(
    store: Store, tmp_path: Path
) -> None:
    with running(store, [fail(529)] * 9, tmp_path) as agents:
        agents.launch(give_up_seconds=0.1)
        agents.attempt("solo")

        assert agents.record().state == "failed"
        assert "529 overloaded_error" in (agents.record().reason or "")
        limit = "tries: 1; the next one would be after 0.1 s ([model] give_up_seconds)"
        assert limit in (agents.record().reason or "")


def test_the_reason_for_the_wait_of_a_quiet_agent_is_reported(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "LONG_S", 0.2)
    lines = Lines("the model has been asked for")

    def script(request: Request) -> object:
        assert lines.came.wait(PATIENCE_S), lines.text
        return say("Done.")

    with running(store, script, tmp_path) as agents:
        agents.launch()
        with TreeWatcher(store, "solo", lines).kept():
            agents.attempt("solo")

    assert lines.came.is_set()


def test_a_lost_worker_and_its_successor_are_reported(store: Store, tmp_path: Path) -> None:
    lines = Lines("")
    with running(store, [], tmp_path) as agents:
        agents.launch()
        keys = process_keys("fdstore", "solo")
        watching = TreeWatcher(store, "solo", lines)

        store.run(leases.claim(keys, "first:1"))
        watching.look()
        agents.lose("solo")
        watching.look()
        store.run(leases.claim(keys, "second:2"))
        watching.look()

    assert "was lost by first:1 (loss 1)" in lines.text
    assert "continues as attempt 2, on second:2" in lines.text


def test_delays_that_are_over_are_reported_once_to_a_watcher_that_comes_later(
    store: Store, tmp_path: Path
) -> None:
    script = [call("echo", words="a"), fail(529, message="all are busy", retry_after=0.01), say("Done.")]
    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        agents.attempt("solo", stopping=StopAfterClaim(agents, "solo"))
        agents.run_all("solo")
        lines = Lines("")
        watching = TreeWatcher(store, "solo", lines)
        watching.look()
        watching.look()

    assert lines.text.count("continues as attempt 2, on here: its worker returned it") == 1
    assert lines.text.count("try 1: the model answered 529 overloaded_error: all are busy; asked again") == 1
    assert lines.text.count("gets a result of 10 B from echo") == 1


def test_a_failed_try_that_is_seen_together_with_the_answer_before_it_is_reported_once(
    store: Store, tmp_path: Path
) -> None:
    lines = Lines("")

    def script(request: Request) -> object:
        match len(agents.model.requests):
            case 1:
                return call("echo", words="a")
            case 2:
                return fail(529, message="all are busy", retry_after=0.01)
        watching.look()
        return say("Done.")

    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        watching = TreeWatcher(store, "solo", lines)
        watching.look()
        agents.run_all("solo")
        watching.look()

    assert [line.partition("try 1: ")[2] for line in lines.told if "try 1: " in line] == [
        "the model answered 529 overloaded_error: all are busy; asking again in 0.0 s"
    ]


def test_a_watcher_that_comes_later_reports_the_times_of_what_happened(store: Store, tmp_path: Path) -> None:
    script = [call("echo", words="first line\nsecond line"), say("Done.")]
    with running(store, script, tmp_path) as agents:
        agents.launch(python=(tool("echo"),))
        agents.attempt("solo")
        ended = agents.record()
        seen: list[list[Happening]] = []
        for _ in range(2):
            events: list[Happening] = []
            TreeWatcher(store, "solo", events.append).look()
            seen.append(events)

    first, second = seen
    assert first == second
    assert [each.passed_s for each in first] == sorted(each.passed_s for each in first)
    [end] = [each for each in first if each.what == "exited with code 0"]
    assert end.passed_s == (ended.ended_at or 0.0) - (ended.started_at or 0.0)
    assert end.tone == "good"
    assert any(each.what.endswith(" from echo: you said first line") for each in first)


def test_an_outage_of_redis_is_reported_while_it_lasts_and_when_it_ends(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watch, "SILENT_S", 0.3)
    lines = Lines("does not answer")
    with PrivateServer() as server, fdstore.connect(server.url) as store:
        store.process("triage")
        with TreeWatcher(store, "triage", lines).kept():
            wait_until(lambda: bool(lines.told))
            server.kill()
            wait_until(lines.came.is_set)
            server.start()
            wait_until(lambda: "answers again, after" in lines.text)
            store.process("triage")
