"""An agent that spawns children: it waits without a worker, and starts each child once."""

from __future__ import annotations

from pathlib import Path

from fdstore.testing import call, say, turn
from tests.dialects import every_dialect
from tests.on_redis.running_agents import READER, SMALL, AgentsOf

pytestmark = every_dialect


def test_an_agent_that_waits_for_a_child_frees_its_worker_slot(agents_of: AgentsOf) -> None:
    script = {
        "SOLO": [call("spawn", program_name="reader", query="Read it."), say("Done.")],
        "READER": [say("Read.")],
    }

    agents = agents_of(script)
    agents.launch(tools=("spawn",), others=[READER])

    assert agents.attempt("solo") == "waiting"
    assert (agents.record().state, agents.record().waiting_for) == ("waiting", ("solo.1",))
    assert agents.attempt("solo") == "not ready"
    assert agents.attempt("solo.1") == "ended"
    assert agents.record().state == "ready"
    assert agents.attempt("solo") == "ended"

    assert agents.woken == ["solo.1", "solo"]
    [result] = agents.results()
    assert '<process_result process="solo.1" program="reader" state="exited" exit_code="0">' in result.content
    assert "\nRead.\n" in result.content


def test_a_child_is_not_started_again_after_its_shared_text_was_closed(
    agents_of: AgentsOf, tmp_path: Path
) -> None:
    (tmp_path / "notes.txt").write_text("one\ntwo\n")
    spawn = call(
        "spawn",
        program_name="reader",
        query="Read it.",
        additional_preload_fds=["fd:1#L2"],
        additional_preload_files=["notes.txt"],
    )
    script = {"SOLO": [turn(spawn, call("close_fd", fd="fd:1")), say("Done.")], "READER": [say("Read.")]}

    agents = agents_of(script)
    agents.launch(
        "word\n" * 40,
        tools=("spawn", "close_fd"),
        file_descriptor=SMALL,
        preload_root=str(tmp_path),
        others=[READER],
    )
    agents.attempt("solo")
    (tmp_path / "notes.txt").unlink()
    agents.run_all("solo")

    spawned, closed = sorted(agents.results(), key=lambda result: result.call)
    assert "\nRead.\n" in spawned.content
    assert (spawned.is_error, closed.is_error) == (False, False)
