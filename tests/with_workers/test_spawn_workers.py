"""The workers of spawned agents: one slot, processes, another queue, and workers that die, and messages
that are lost."""

from __future__ import annotations

import itertools
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import load
from fdstore.agents.runtime.queue import Dispatcher
from fdstore.local.redis_server import PrivateServer
from fdstore.testing import Request, call, say, slow, turn
from tests.dialects import every_dialect
from tests.waiting import PATIENCE_S, stretched, wait_until
from tests.with_workers.agent_harness import SPAWN, AgentHarness, Replies, spawner
from tests.worker_process import WorkerProcess

NEVER = slow(say("Too late."), 600)
"""An answer for which a worker waits until it is killed."""


# what runs when


@every_dialect
def test_children_nested_to_any_depth_run_on_one_worker_slot(harness: AgentHarness) -> None:
    harness.program("link", tools="spawn", links="link")

    def link(request: Request) -> Any:
        left = int(str(request.messages[0]["content"]))
        if left and request.turn_number == 0:
            return call("spawn", program_name="link", query=str(left - 1))
        return say(f"{left} " + "".join(result.text.split("\n")[1] for result in request.tool_results()))

    harness.set_script({"LINK": link})
    harness.start_worker(concurrency=1)

    root = harness.run("6", "link")

    assert harness.answer(root) == "6 5 4 3 2 1 0 "
    assert [member.exit_code for member in harness.store.tree(root).members] == [0] * 7
    assert harness.record(root + ".1" * 6).state == "exited"


def test_agents_run_in_processes_of_their_own(harness: AgentHarness) -> None:
    harness.program("root", tools="spawn", links="reader")
    harness.program("reader")
    both = threading.Barrier(2, timeout=PATIENCE_S)

    def reader(request: Request) -> Any:
        both.wait()
        return call("own_process") if request.turn_number == 0 else say("Read.")

    spawn = call("spawn", program_name="reader", query="Read.")
    harness.set_script({"ROOT": [turn(spawn, spawn), say("Done.")], "READER": reader})
    worker = harness.start_worker(concurrency=2, pool="prefork")

    root = harness.run()

    assert {member.worker for member in harness.store.tree(root).members} == {worker.name}
    [[first], [second]] = (harness.results(f"{root}.{number}") for number in (1, 2))
    assert first.content.startswith("process ")
    assert first.content != second.content
    worker.terminate()
    assert worker.process.wait(PATIENCE_S) == 0


def test_the_queue_may_be_in_another_redis(harness: AgentHarness) -> None:
    harness.program("root", tools="spawn", links="reader")
    harness.program("reader")
    harness.set_script(
        {
            "ROOT": [call("spawn", program_name="reader", query="Read."), say("Done.")],
            "READER": [say("Read.")],
        }
    )

    # another sweeper holds the lock and does nothing, so every process was woken through the broker
    harness.redis.set("fdstore:sweeper", "another", ex=600)

    with PrivateServer() as broker, closing(Dispatcher(harness.url, broker.url)) as wakes:
        harness.start_worker(1, "threads", "--broker-url", broker.url)
        root = launch_root(harness.store, load(harness.folder / "root.toml"), "Go.").id
        wakes.wake(root)
        harness.wait(root)

    assert harness.redis.get("fdstore:sweeper") == "another"
    assert harness.redis.keys("fdq:*") == []


# workers that die, or never receive the message


def answer_second_request() -> Replies:
    """The first request is never answered; later ones are."""
    tries = itertools.count()
    return lambda _: NEVER if next(tries) == 0 else say("Read.")


def holder(harness: AgentHarness, process: str, workers: list[WorkerProcess]) -> WorkerProcess:
    name = harness.record(process).worker
    [found] = [worker for worker in workers if worker.name == name]
    return found


def test_the_child_of_a_killed_worker_is_run_again_by_another(harness: AgentHarness) -> None:
    harness.program("root", tools="spawn", links="reader")
    harness.program("reader")
    spawn = call("spawn", program_name="reader", query="Read.")
    harness.set_script({"ROOT": [spawn, say("Done.")], "READER": answer_second_request()})
    workers = [harness.start_worker() for _ in range(2)]
    root = harness.launch()
    harness.model.wait_for(2, PATIENCE_S)

    holder(harness, f"{root}.1", workers).kill()
    killed_at = time.monotonic()
    harness.model.wait_for(3, PATIENCE_S)
    taken_over_s = time.monotonic() - killed_at
    harness.wait(root)

    assert taken_over_s < stretched(15)
    child = harness.record(f"{root}.1")
    assert (child.state, child.losses) == ("exited", 1)
    # the second attempt runs alone, and once past the point of the loss it may go on among others
    assert child.attempt in (2, 3)
    assert harness.store.tree(root).processes == 2
    [result] = harness.results(root)
    assert "\nRead.\n" in result.content
    assert harness.record(root).exit_code == 0


# custom agent loops, which wait for their children themselves


def test_a_lost_message_is_sent_again(harness: AgentHarness) -> None:
    harness.program("reader", tools="read_fd")
    harness.set_script({"READER": [say("Read.")]})
    tools = spawner(harness)

    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(tools.call, "spawn", SPAWN, "toolu_1")
        wait_until(lambda: harness.redis.llen("fdq:fdstore:queue") == 1)
        harness.redis.delete("fdq:fdstore:queue")
        harness.start_worker()

        assert "\nRead.\n" in result.result(PATIENCE_S).content
