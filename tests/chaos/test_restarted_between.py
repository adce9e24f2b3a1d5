"""Everything that runs is restarted between a question to a person and its answer: the result is the same."""

from __future__ import annotations

import re
from pathlib import Path

from fdstore.agents.loop.conversation import Result, decode_entry
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.store.processes import journal
from fdstore.testing import Reply, Request, call, say, turn
from tests.chaos.agents import answer_of, launch, record_of, write_program
from tests.chaos.conftest import Faults
from tests.chaos.worker_pool import WorkerPool
from tests.waiting import PATIENCE_S, wait_until

SECTIONS = """
[tools]
enabled = ["ask_person"]
python = ["agent_tools:hand_over"]
[people]
ask = true
approve = ["hand_over"]
"""


def asker(request: Request) -> Reply:
    """Ask where, and whether two parcels may go."""
    if request.turn_number:
        return say(" / ".join(each.text for each in request.tool_results()))
    parcels = [call("hand_over", parcel=name, id=f"toolu_{name}") for name in ("first", "second")]
    return turn(call("ask_person", question="Where to?", id="toolu_ask"), *parcels)


def answer(store: Store, name: str, number: int) -> None:
    """Answer one question: the place, a yes with another parcel, a no."""
    match number:
        case 1:
            store.answer(name, "Home.", question=1, by="ann")
        case 2:
            store.answer(name, question=2, approve=True, arguments={"parcel": f"{name} third"}, by="ann")
        case 3:
            store.answer(name, question=3, approve=False, reason="Too heavy.", by="bob")


def ended(store: Store, name: str) -> tuple[object, ...]:
    """Return how an agent ended, without times and its name."""
    record = record_of(store, name)
    entries = map(decode_entry, store.run(journal.read(store.prefix, name)))
    results = [
        (each.call, each.is_error, [(said.who, said.approved, said.changed) for said in each.facts.people])
        for each in entries
        if isinstance(each, Result)
    ]
    said = re.sub(' when="[^"]+"', "", answer_of(store, name).text.replace(name, ""))
    return record.state, record.reason, record.exit_code, record.losses, sorted(results), said


def test_worker_redis_and_machine_are_restarted_between_question_and_answer_with_the_same_result(
    store: Store, server: PrivateServer, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    program = write_program(tmp_path, "asker", SECTIONS)

    def waits_for(name: str, count: int) -> None:
        def found() -> bool:
            is_parked = record_of(store, name).state == "waiting"
            return is_parked and len(store.questions(name)) == count

        wait_until(found, PATIENCE_S, f"{count} questions of {name}")

    def restart() -> None:
        """Restart the machine: all workers and Redis die; Redis reads its log, the workers are new."""
        worker_pool.kill_all()
        server.kill()
        server.restart()
        worker_pool.start_ready(1)
        faults.note("machine restarted")

    with worker_pool.scripted(asker):
        worker_pool.start_ready(1)
        for name in ("calm", "restarted"):
            launch(store, program, "go", name)
            for number in (1, 2, 3):
                waits_for(name, 4 - number)
                if name == "restarted":
                    before = store.questions(name)
                    restart()
                    assert store.questions(name) == before
                answer(store, name, number)
            wait_until(lambda name=name: store.tree(name).live == 0, PATIENCE_S, f"the end of {name}")

    delivered = (tmp_path / "delivered").read_text().splitlines()
    assert delivered == ["calm third", "restarted third"]
    assert ended(store, "restarted") == ended(store, "calm")
    assert ended(store, "calm")[:4] == ("exited", None, 0, 0)
