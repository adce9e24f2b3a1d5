"""An agent whose Redis refuses for a while goes on, also one that a program runs itself."""

from __future__ import annotations

import threading
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import call, say
from fdstore.wire import retry
from tests.on_redis.running_agents import running, tool
from tests.refusals import CLIENT, WORK, refused
from tests.thorough import thorough

LASTS_S = 0.7

TURNS = [call("lines", count=3000), call("echo", words="b"), say("Done.")]


@pytest.mark.parametrize("turn", [0, 2])
@pytest.mark.parametrize("kind", ["NOREPLICAS", "OOM", *thorough("others", "BUSY", "READONLY", "MISCONF")])
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
