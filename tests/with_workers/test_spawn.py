"""Agents that spawn agents on real worker processes: what is passed on, what runs concurrently, and what
happens when workers stop, die or never receive the message."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest
import redis

import fdstore
import fdstore.aio
from fdstore.agent.answer_stream import RETRY_MARKER
from fdstore.agent.conversation import Result, decode_entry
from fdstore.agent.launch import launch_root
from fdstore.agent.program_loader import load
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from fdstore.runtime.queue import Dispatcher
from fdstore.store import journal, process_records, waiting
from fdstore.testing import Request, ScriptedModel, call, held, say, slow, turn
from tests.waiting import wait_until
from tests.with_workers.conftest import StartAgentWorker, agent_workers
from tests.worker_process import WorkerProcess

NEVER = slow(say("Too late."), 600)
"""An answer for which a worker waits until it is killed."""

Replies = Callable[[Request], Any]
TOOLS = '''
def lines(count: int) -> str:
    """That many lines."""
    return "".join(f"line {number}\\n" for number in range(1, count + 1))


def own_process() -> str:
    """The id of the operating-system process that runs this."""
    import os
    return f"process {os.getpid()}"
'''


class AgentHarness:
    """A store, a scripted model and program files, for agents that run on workers."""

    def __init__(self, server: PrivateServer, folder: Path) -> None:
        self.url = server.url
        self.folder = folder
        self.store: Store = fdstore.connect(server.url)
        self.redis = redis.Redis.from_url(server.url, decode_responses=True)
        self.model = ScriptedModel(
            lambda request: self._parts[request.system.split()[2].rstrip(".")](request)
        )
        self._wakes = Dispatcher(server.url)
        self._parts: dict[str, Replies] = {}
        self._seen = 0
        (folder / "agent_tools.py").write_text(TOOLS)

    def close(self) -> None:
        self._wakes.close()
        self.redis.close()
        self.store.close()
        self.model.close()

    def set_script(self, parts: Mapping[str, Replies | list[Any]]) -> None:
        """Set the replies for each agent by the NAME in its system prompt `You are NAME.`."""
        self._seen = len(self.model.requests)
        self._parts = {
            name: part if callable(part) else lambda request, part=part: part[request.turn_number]
            for name, part in parts.items()
        }

    @property
    def requests(self) -> tuple[Request, ...]:
        """The requests to the model since the script was set."""
        return self.model.requests[self._seen :]

    def program(self, name: str, *, tools: str = "", links: str = "", more: str = "") -> Path:
        """A program file; `tools` and `links` are names with blanks between."""
        path = self.folder / f"{name}.toml"
        linked = "\n".join(f'{link} = "{link}.toml"' for link in links.split())
        path.write_text(
            f'[model]\nname = "any"\n[prompt]\nsystem = "You are {name.upper()}."\n'
            f'[tools]\nenabled = {tools.split()}\npython = ["agent_tools:lines", "agent_tools:own_process"]\n'
            f"[linked_programs]\n{linked}\n{more}"
        )
        return path

    def launch(self, query: str = "Go.", program: str = "root") -> str:
        """Launch a root for the workers to run."""
        root = launch_root(self.store, load(self.folder / f"{program}.toml"), query).id
        self._wakes.wake(root)
        return root

    def wait(self, process: str, seconds: float = 40) -> None:
        assert self.store.run(waiting.wait_until_ended("fdstore", [process], seconds)), (
            f"{process} did not end"
        )

    def run(self, query: str = "Go.", program: str = "root") -> str:
        root = self.launch(query, program)
        self.wait(root)
        return root

    def results(self, process: str) -> list[Result]:
        records = self.store.run(journal.read("fdstore", process))
        return [entry for entry in map(decode_entry, records) if isinstance(entry, Result)]

    def record(self, process: str) -> fdstore.ProcessRecord:
        return self.store.run(process_records.record("fdstore", process))

    def answer(self, process: str) -> str:
        return self.store.run(process_records.answer_of("fdstore", process)).text

    def expire_lease(self, process: str) -> None:
        """Expire the lease, as if worker and sweeper had been dead for long."""
        tree = process.partition(".")[0]
        self.redis.hset(f"fdstore:{{{tree}}}:{process}", "lease_until", "0")
        self.redis.zadd(f"fdstore:{{{tree}}}:leases", {process: 0})
        self.redis.delete("fdstore:sweeper")


@contextmanager
def open_harness(server: PrivateServer, folder: Path) -> Iterator[AgentHarness]:
    harness = AgentHarness(server, folder)
    try:
        yield harness
    finally:
        harness.close()


@pytest.fixture
def harness(agents_server: PrivateServer, tmp_path: Path) -> Iterator[AgentHarness]:
    """A harness for one test, without a worker."""
    with open_harness(agents_server, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def shared_harness(tmp_path_factory: pytest.TempPathFactory) -> Iterator[AgentHarness]:
    """A harness with one worker that many tests share."""
    folder = tmp_path_factory.mktemp("crew")
    with PrivateServer() as server, agent_workers(folder) as start, open_harness(server, folder) as made:
        start(made.url, made.model, concurrency=4)
        yield made


# what travels


def test_a_child_reads_the_texts_of_its_parent_under_their_ids(shared_harness: AgentHarness) -> None:
    shared_harness.program("root", tools="read_fd spawn", links="reader")
    shared_harness.program("reader", tools="read_fd")
    share = call("spawn", program_name="reader", query="Read page 2.", additional_preload_fds=["fd:1"])
    shared_harness.set_script(
        {
            "ROOT": [call("lines", count=3000), share, say("Done.")],
            "READER": [call("read_fd", fd="fd:1", start=2), say("Read.")],
        }
    )

    root = shared_harness.run()

    expected = shared_harness.store.process(root).read("fd:1", start=2)
    [read] = shared_harness.results(f"{root}.1")
    assert read.content.startswith('<fd_content fd="fd:1" page="2"')
    assert f"\n{expected.text}\n" in read.content
    assert "\nRead.\n" in shared_harness.results(root)[1].content
    # by reference: the tree holds the text once
    assert (shared_harness.store.tree(root).fds, shared_harness.store.tree(root).bytes) == (
        1,
        expected.total_chars,
    )


def test_a_large_answer_is_returned_by_reference_and_outlives_the_child(shared_harness: AgentHarness) -> None:
    shared_harness.program("root", tools="read_fd spawn", links="writer")
    shared_harness.program("writer", tools="read_fd")
    answer = "".join(f"verse {number}\n" for number in range(2000))
    shared_harness.set_script(
        {
            "ROOT": [
                call("spawn", program_name="writer", query="Write."),
                call("read_fd", fd="fd:1", start=2),
                say("Done."),
            ],
            "WRITER": [say(answer)],
        }
    )

    root = shared_harness.run()

    spawned, read = shared_harness.results(root)
    assert (
        f'<process_result process="{root}.1" program="writer" state="exited" exit_code="0">'
        in spawned.content
    )
    assert '<fd_result fd="fd:1"' in spawned.content
    assert 'page="2"' in read.content
    held = shared_harness.store.process(root)
    assert held.read("fd:1", read_all=True).text == answer
    assert held.stat("fd:1").producer == f"{root}.1"
    assert shared_harness.store.process(f"{root}.1").list() == []
    assert shared_harness.store.tree(root).fds == 1


def test_files_named_by_a_program_and_by_a_call_are_preloaded(shared_harness: AgentHarness) -> None:
    (shared_harness.folder / "rules.txt").write_text("Be kind.\n")
    (shared_harness.folder / "facts.txt").write_text("Water is wet.\n")
    shared_harness.program("root", tools="spawn", links="reader", more='[preload]\nroot = "."')
    shared_harness.program("reader", more='[preload]\nfiles = ["rules.txt"]')
    share = call("spawn", program_name="reader", query="Read.", additional_preload_files=["facts.txt"])
    shared_harness.set_script({"ROOT": [share, say("Done.")], "READER": [say("Read.")]})

    shared_harness.run()

    [asked] = [request for request in shared_harness.requests if "READER" in request.system]
    assert asked.system.index("Be kind.") < asked.system.index("Water is wet.")


# what runs when


def test_two_spawns_of_one_turn_run_at_the_same_time(shared_harness: AgentHarness) -> None:
    shared_harness.program("root", tools="spawn", links="reader")
    shared_harness.program("reader")
    both = threading.Barrier(2, timeout=20)

    def reader(request: Request) -> Any:
        both.wait()  # passes only when two children ask the model at once
        return say(f"Read {request.last_text()}.")

    first, second = (call("spawn", program_name="reader", query=query) for query in ("one", "two"))
    shared_harness.set_script({"ROOT": [turn(first, second), say("Done.")], "READER": reader})

    root = shared_harness.run()

    shown = [result.text for result in shared_harness.requests[-1].tool_results()]
    assert ["\nRead one.\n" in shown[0], "\nRead two.\n" in shown[1]] == [True, True]
    assert shared_harness.record(root).exit_code == 0


def test_children_nested_to_any_depth_run_on_one_worker_slot(
    harness: AgentHarness, start_agent_worker: StartAgentWorker
) -> None:
    harness.program("link", tools="spawn", links="link")

    def link(request: Request) -> Any:
        left = int(str(request.messages[0]["content"]))
        if left and request.turn_number == 0:
            return call("spawn", program_name="link", query=str(left - 1))
        return say(f"{left} " + "".join(result.text.split("\n")[1] for result in request.tool_results()))

    harness.set_script({"LINK": link})
    start_agent_worker(harness.url, harness.model, concurrency=1)

    root = harness.run("6", "link")

    assert harness.answer(root) == "6 5 4 3 2 1 0 "
    assert [member.exit_code for member in harness.store.tree(root).members] == [0] * 7
    assert harness.record(root + ".1" * 6).state == "exited"


def test_agents_run_in_processes_of_their_own(
    harness: AgentHarness, start_agent_worker: StartAgentWorker
) -> None:
    harness.program("root", tools="spawn", links="reader")
    harness.program("reader")
    both = threading.Barrier(2, timeout=20)

    def reader(request: Request) -> Any:
        both.wait()
        return call("own_process") if request.turn_number == 0 else say("Read.")

    spawn = call("spawn", program_name="reader", query="Read.")
    harness.set_script({"ROOT": [turn(spawn, spawn), say("Done.")], "READER": reader})
    worker = start_agent_worker(harness.url, harness.model, concurrency=2, pool="prefork")

    root = harness.run()

    assert {member.worker for member in harness.store.tree(root).members} == {worker.name}
    [[first], [second]] = (harness.results(f"{root}.{number}") for number in (1, 2))
    assert first.content.startswith("process ")
    assert first.content != second.content
    worker.terminate()
    assert worker.process.wait(20) == 0


def test_the_queue_may_be_in_another_redis(
    harness: AgentHarness, start_agent_worker: StartAgentWorker
) -> None:
    harness.program("root", tools="spawn", links="reader")
    harness.program("reader")
    harness.set_script(
        {
            "ROOT": [call("spawn", program_name="reader", query="Read."), say("Done.")],
            "READER": [say("Read.")],
        }
    )

    # another sweeper holds the lock and does nothing, so every process was woken through the broker
    harness.redis.set("fdstore:sweeper", "another", ex=60)

    with PrivateServer() as broker, closing(Dispatcher(harness.url, broker.url)) as wakes:
        start_agent_worker(harness.url, harness.model, 1, "threads", "--broker-url", broker.url)
        root = launch_root(harness.store, load(harness.folder / "root.toml"), "Go.").id
        wakes.wake(root)
        harness.wait(root)

    assert harness.redis.get("fdstore:sweeper") == "another"
    assert harness.redis.keys("fdq:*") == []


# what goes wrong


@pytest.mark.parametrize(
    ("limit", "asked", "failing"),
    [("tree_depth = 1", 1, [0]), ("tree_processes = 2", 2, [1]), ("tree_live = 2", 2, [1])],
)
def test_a_limit_of_the_tree_is_an_error_that_the_agent_reads(
    shared_harness: AgentHarness, limit: str, asked: int, failing: list[int]
) -> None:
    shared_harness.program("root", tools="spawn", links="reader", more=f"[limits]\n{limit}")
    shared_harness.program("reader")
    spawn = call("spawn", program_name="reader", query="Read.")
    shared_harness.set_script(
        {"ROOT": [turn(*[spawn] * asked), say("Done.")], "READER": [slow(say("Read."), 0.2)]}
    )

    root = shared_harness.run()

    shown = shared_harness.requests[-1].tool_results()
    name, number = limit.split(" = ")
    assert [index for index, result in enumerate(shown) if result.is_error] == failing
    for index in failing:
        assert '<fd_error type="spawn_limit">' in shown[index].text
        assert f"the limit {name} of this tree is {number}" in shown[index].text
    assert shared_harness.record(root).exit_code == 0


# workers that stop, die, or never receive the message


def answer_second_request() -> Replies:
    """The first request is never answered; later ones are."""
    tries = itertools.count()
    return lambda _: NEVER if next(tries) == 0 else say("Read.")


def holder(harness: AgentHarness, process: str, workers: list[WorkerProcess]) -> WorkerProcess:
    name = harness.record(process).worker
    [found] = [worker for worker in workers if worker.name == name]
    return found


def test_the_child_of_a_killed_worker_is_run_again_by_another(
    harness: AgentHarness, start_agent_worker: StartAgentWorker
) -> None:
    harness.program("root", tools="spawn", links="reader")
    harness.program("reader")
    spawn = call("spawn", program_name="reader", query="Read.")
    harness.set_script({"ROOT": [spawn, say("Done.")], "READER": answer_second_request()})
    workers = [start_agent_worker(harness.url, harness.model) for _ in range(2)]
    root = harness.launch()
    harness.model.wait_for(2)

    holder(harness, f"{root}.1", workers).kill()
    killed_at = time.monotonic()
    harness.model.wait_for(3)
    taken_over_s = time.monotonic() - killed_at
    harness.wait(root)

    assert taken_over_s < 15
    child = harness.record(f"{root}.1")
    assert (child.state, child.losses) == ("exited", 1)
    # the second attempt runs alone, and once past the point of the loss it may go on among others
    assert child.attempt in (2, 3)
    assert harness.store.tree(root).processes == 2
    [result] = harness.results(root)
    assert "\nRead.\n" in result.content
    assert harness.record(root).exit_code == 0


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_a_worker_that_receives_sigterm_hands_its_agent_over(
    harness: AgentHarness, start_agent_worker: StartAgentWorker, pool: str
) -> None:
    harness.program("root")
    harness.set_script({"ROOT": [slow(call("lines", count=3), 1), say("Done.")]})
    first = start_agent_worker(harness.url, harness.model, pool=pool)
    root = harness.launch()
    harness.model.wait_for(1)

    first.terminate()
    second = start_agent_worker(harness.url, harness.model)
    harness.wait(root)

    assert first.process.wait(20) == 0
    record = harness.record(root)
    assert (record.exit_code, record.attempt, record.losses) == (0, 2, 0)
    assert record.worker == second.name
    assert len(harness.requests) == 2


# custom agent loops, which wait for their children themselves


def spawner(harness: AgentHarness) -> fdstore.Toolset:
    proc = harness.store.process("own-loop")
    proc.create("one\ntwo\n")
    return fdstore.Toolset(
        proc, enabled=["spawn", "read_fd"], programs={"reader": harness.folder / "reader.toml"}
    )


def spawned(harness: AgentHarness) -> str:
    """Return the message that a custom loop without a worker puts into the queue when it spawns."""
    wait_until(lambda: harness.redis.llen("fdq:fdstore:queue") == 1)
    return harness.redis.lindex("fdq:fdstore:queue", 0)


SPAWN = {"program_name": "reader", "query": "Read.", "additional_preload_fds": ["fd:1"]}


def test_a_message_carries_the_process_id_and_a_lost_one_is_sent_again(
    harness: AgentHarness, start_agent_worker: StartAgentWorker
) -> None:
    harness.program("reader", tools="read_fd")
    harness.set_script({"READER": [say("Read.")]})
    tools = spawner(harness)

    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(tools.call, "spawn", SPAWN, "toolu_1")
        message = spawned(harness)
        harness.redis.delete("fdq:fdstore:queue")
        start_agent_worker(harness.url, harness.model)

        assert "\nRead.\n" in result.result(20).content

    arguments, keywords, _ = json.loads(json.loads(message)["body"])
    assert (arguments, keywords) == (["own-loop.1"], {})
    assert len(message) < 1000


def test_a_custom_agent_loop_spawns_once_for_a_call(shared_harness: AgentHarness) -> None:
    shared_harness.program("reader", tools="read_fd")
    shared_harness.set_script({"READER": [call("read_fd", fd="fd:1"), say("Read.")]})
    tools = spawner(shared_harness)

    first = tools.call("spawn", SPAWN, call_id="toolu_1")
    again = tools.call("spawn", SPAWN, call_id="toolu_1")

    assert (first.is_error, first) == (False, again)
    assert "\nRead.\n" in first.content
    assert "\none\ntwo\n" in shared_harness.requests[-1].tool_results()[0].text
    assert shared_harness.store.tree("own-loop").processes == 2


def test_an_event_loop_is_not_blocked_while_children_run(shared_harness: AgentHarness) -> None:
    shared_harness.program("reader")
    both = threading.Barrier(2, timeout=20)

    def reader(request: Request) -> Any:
        both.wait()
        return say(request.last_text())

    shared_harness.set_script({"READER": reader})

    async def main() -> list[str]:
        async with await fdstore.aio.connect(shared_harness.url) as store:
            proc = await store.process("event-loop")
            programs = {"reader": shared_harness.folder / "reader.toml"}
            tools = fdstore.aio.Toolset(proc, enabled=["spawn"], programs=programs)
            calls = [
                tools.call("spawn", {"program_name": "reader", "query": query}, call_id=query)
                for query in ("one", "two")
            ]
            return [result.content for result in await asyncio.gather(*calls)]

    one, two = asyncio.run(main())

    assert ("\none\n" in one, "\ntwo\n" in two) == (True, True)


# children in the background, whose text is read while they write it


def background(harness: AgentHarness, **more: Any) -> fdstore.Toolset:
    """A custom loop that spawns `speaker` in the background; its text is fd:1."""
    harness.program("speaker")
    proc = harness.store.process("own-loop")
    tools = fdstore.Toolset(
        proc,
        enabled=["spawn", "read_fd", "wait", "pipe"],
        programs={"speaker": harness.folder / "speaker.toml"},
        commands=["tr"],
    )
    result = tools.call(
        "spawn", {"program_name": "speaker", "query": "Speak.", "background": True}, "toolu_1"
    )
    assert result.content == (
        '<process_result process="own-loop.1" program="speaker" state="ready" fd="fd:1"/>'
    )
    return tools


def test_the_text_of_a_background_child_is_followed_live_and_ends_with_the_child(
    harness: AgentHarness, start_agent_worker: StartAgentWorker
) -> None:
    release = threading.Event()
    harness.set_script(
        {"SPEAKER": [turn(say("I look."), call("lines", count=3)), held(say("abcdef"), 4, release)]}
    )
    tools = background(harness)
    start_agent_worker(harness.url, harness.model)
    proc = harness.store.process("own-loop")
    heard: list[str] = []

    with ThreadPoolExecutor(1) as threads:
        following = threads.submit(lambda: heard.extend(proc.follow("fd:1")))
        wait_until(lambda: "".join(heard) == "I look.\n\nab")
        read = tools.call("read_fd", {"fd": "fd:1"}).content
        release.set()
        following.result(20)

    assert 'state="open" eof="false">\nI look.\n\nab\n' in read
    assert "".join(heard) == "I look.\n\nabcdef"
    assert proc.stat("fd:1").exit_code == 0
    waited = tools.call("wait", {"target": "fd:1"}).content
    assert waited.endswith('state="exited" exit_code="0" fd="fd:1">\nabcdef\n</process_result>')


def test_the_text_of_a_child_continues_on_another_worker_after_a_kill(
    harness: AgentHarness, start_agent_worker: StartAgentWorker
) -> None:
    answers = iter([held(say("abcdef"), 4, threading.Event()), say("Whole.")])
    harness.set_script({"SPEAKER": lambda _: next(answers)})
    background(harness)
    first = start_agent_worker(harness.url, harness.model)
    proc = harness.store.process("own-loop")
    wait_until(lambda: proc.read("fd:1", read_all=True).text == "ab")

    first.kill()
    harness.expire_lease("own-loop.1")
    start_agent_worker(harness.url, harness.model)

    assert "".join(proc.follow("fd:1")) == f"ab{RETRY_MARKER}Whole."
    assert proc.stat("fd:1").state == "sealed"


def test_a_pipeline_reads_what_an_agent_is_still_writing(
    harness: AgentHarness, start_agent_worker: StartAgentWorker
) -> None:
    release = threading.Event()
    harness.set_script({"SPEAKER": [held(say("abcdef"), 4, release)]})
    tools = background(harness)
    start_agent_worker(harness.url, harness.model, 2, "threads", "--unsandboxed-commands")
    piped = tools.call("pipe", {"commands": ["tr a-f A-F"], "in_fd": "fd:1"}, "toolu_2").content
    assert 'fd="fd:2"' in piped
    proc = harness.store.process("own-loop")
    wait_until(lambda: harness.record("own-loop.2").state == "running")

    release.set()

    assert "".join(proc.follow("fd:2")) == "ABCDEF"
