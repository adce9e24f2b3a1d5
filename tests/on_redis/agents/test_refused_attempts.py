"""An agent whose Redis refuses for a while goes on, also one that a program runs itself."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.processes import asks
from fdstore.store.processes.asks import Ask, AskSettings
from fdstore.testing import Request, call, say
from fdstore.testing.replies import Reply
from fdstore.wire import retry
from tests.on_redis.running_agents import running, tool
from tests.refusals import CLIENT, WORK, refused
from tests.thorough import thorough

LASTS_S = 0.7

TURNS = [call("lines", count=3000), call("echo", words="b"), say("Done.")]


@pytest.mark.parametrize("turn", [0, 2])
@pytest.mark.parametrize("kind", ["NOREPLICAS", *thorough("others", "OOM", "BUSY", "READONLY", "MISCONF")])
def test_an_agent_run_here_goes_on_after_a_refusal(
    kind: str, turn: int, own_redis: PrivateServer, own_store: Store, tmp_path: Path
) -> None:
    assert kind in (*CLIENT, *WORK)
    with ExitStack() as refusal:

        def script(request: Any) -> Any:
            if request.turn_number == turn:
                refusal.enter_context(refused(own_redis, kind))
                lifting.start()
            return TURNS[request.turn_number]

        lifting = threading.Timer(LASTS_S, refusal.close)
        with running(own_store, script, tmp_path) as agents:
            agents.launch(tools=("read_fd",), python=(tool("lines"), tool("echo")))

            assert agents.attempt("solo", wait_here=True) == "ended"
            lifting.join()

            record = agents.record()
            assert (record.state, record.attempt, record.losses) == ("exited", 1, 0)
            assert agents.answer() == "Done."


def test_the_end_of_an_agent_is_written_however_long_the_refusal_takes(
    own_redis: PrivateServer, own_store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    refusal = ExitStack()

    class Ending(Store):
        """A store whose Redis refuses from the end of the process on, for several deadlines of calls."""

        def run(self, operation: Any) -> Any:
            if operation.__name__ == "end" and lifting.ident is None:
                monkeypatch.setattr(retry, "DEADLINE_S", 0.1)
                refusal.enter_context(refused(own_redis, "NOREPLICAS"))
                lifting.start()
            return super().run(operation)

    lifting = threading.Timer(LASTS_S, refusal.close)
    ending = Ending(own_store._runner, "fdstore", own_redis.url)
    with running(own_store, lambda request: say("Done."), tmp_path) as agents:
        agents.launch(tools=("read_fd",))

        assert agents.attempt("solo", ending, wait_here=True) == "ended"
        lifting.join()

        assert (agents.record().state, agents.answer()) == ("exited", "Done.")


LATE_KINDS = ["NOREPLICAS", *thorough("others", "READONLY", "OOM", "MISCONF", "BUSY")]
Script = Callable[[Request], Reply]


class Refusal:
    """A Redis that refuses from a request to the model on, for several deadlines of calls."""

    def __init__(self, server: PrivateServer, kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
        self._server, self._kind, self._monkeypatch = server, kind, monkeypatch
        self._refused, self._first = ExitStack(), threading.Lock()
        self.lifting = threading.Timer(LASTS_S, self.lift)

    def begin(self) -> None:
        self._monkeypatch.setattr(retry, "DEADLINE_S", 0.1)
        self._refused.enter_context(refused(self._server, self._kind))

    def lift(self) -> None:
        self._refused.close()

    def around(self, script: Script, turn: int = 0) -> Script:
        def answer(request: Request) -> Reply:
            if request.turn_number == turn and self._first.acquire(blocking=False):
                self.begin()
                self.lifting.start()
            return script(request)

        return answer


@pytest.fixture
def refusal(request: Any, own_redis: PrivateServer, monkeypatch: pytest.MonkeyPatch) -> Iterator[Refusal]:
    refusal = Refusal(own_redis, getattr(request, "param", "NOREPLICAS"), monkeypatch)
    yield refusal
    if refusal.lifting.ident is not None:
        refusal.lifting.join()
    refusal.lift()


@pytest.mark.parametrize("turn", [0, 1, 2])
@pytest.mark.parametrize("refusal", LATE_KINDS, indirect=True)
def test_an_answer_of_the_model_is_kept_however_long_the_refusal_takes(
    refusal: Refusal, own_store: Store, tmp_path: Path, turn: int
) -> None:
    script = refusal.around(lambda request: TURNS[request.turn_number], turn)
    with running(own_store, script, tmp_path) as agents:
        agents.launch(tools=("read_fd",), python=(tool("lines"), tool("echo")))

        assert agents.attempt("solo") == "ended"
        refusal.lifting.join()

        record = agents.record()
        assert (record.state, record.attempt, record.losses) == ("exited", 1, 0)
        assert len(agents.model.requests) == len(TURNS)


@pytest.mark.parametrize("refusal", LATE_KINDS, indirect=True)
def test_the_answers_to_asks_are_kept_however_long_the_refusal_takes(
    refusal: Refusal, own_store: Store, tmp_path: Path
) -> None:
    with running(own_store, refusal.around(lambda request: say("Yes.")), tmp_path) as agents:
        proc = own_store.process("triage")
        settings = AskSettings(model="any", max_tokens=100, system="Answer.")
        asked = [Ask(number, f"question {number}") for number in range(3)]
        [lane] = own_store.run(asks.start(proc.handle, "call", asked, settings))

        assert agents.attempt(lane) == "ended"
        refusal.lifting.join()

        found = own_store.run(asks.answers(proc.handle, "call", range(3)))
        assert [found[number].text for number in range(3)] == ["Yes."] * 3
        assert len(agents.model.requests) == 3


@pytest.mark.parametrize(
    ("refusal", "ended", "state"),
    [("NOREPLICAS", "lost", "running"), ("OOM", "given back", "ready")],
    indirect=["refusal"],
)
def test_a_worker_that_stops_during_a_refusal_waits_for_it_no_longer(
    refusal: Refusal, ended: str, state: str, own_store: Store, tmp_path: Path
) -> None:
    # a full Redis takes the return of an agent; else its lease ends, and another worker continues it
    stopping = threading.Event()

    def script(request: Request) -> Reply:
        refusal.begin()
        threading.Timer(LASTS_S, stopping.set).start()
        return say("Done.")

    with running(own_store, script, tmp_path) as agents:
        agents.launch(tools=("read_fd",))
        try:
            assert agents.attempt("solo", stopping=stopping) == ended
        finally:
            refusal.lift()

        record = agents.record()
        assert (record.state, record.losses) == (state, 0)
