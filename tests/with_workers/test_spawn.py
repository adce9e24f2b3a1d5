"""Agents that spawn agents, on real worker processes: what travels, what runs at once, and what happens
when workers stop, die or never hear of it."""

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
from fdstore.store import journal, process_records
from fdstore.testing import Request, ScriptedModel, call, fail, held, say, slow, turn
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


class Stage:
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

    def act(self, parts: Mapping[str, Replies | list[Any]]) -> None:
        """From now on the agent with the system prompt `You are NAME.` says this."""
        self._seen = len(self.model.requests)
        self._parts = {
            name: part if callable(part) else lambda request, part=part: part[request.turn_number]
            for name, part in parts.items()
        }

    @property
    def requests(self) -> tuple[Request, ...]:
        """What the model was asked since the script began."""
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
        """A root that the workers run."""
        root = launch_root(self.store, load(self.folder / f"{program}.toml"), query).id
        self._wakes.wake(root)
        return root

    def wait(self, process: str, seconds: float = 40) -> None:
        assert self.store.run(process_records.wait_until_ended("fdstore", [process], seconds)), (
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

    def lease_runs_out(self, process: str) -> None:
        """As if the worker had been dead for long, the sweeper too."""
        tree = process.partition(".")[0]
        self.redis.hset(f"fdstore:{{{tree}}}:{process}", "lease_until", "0")
        self.redis.zadd(f"fdstore:{{{tree}}}:leases", {process: 0})
        self.redis.delete("fdstore:sweeper")


@contextmanager
def staged(server: PrivateServer, folder: Path) -> Iterator[Stage]:
    stage = Stage(server, folder)
    try:
        yield stage
    finally:
        stage.close()


@pytest.fixture
def stage(agents_server: PrivateServer, tmp_path: Path) -> Iterator[Stage]:
    """A stage of this test alone, without a worker."""
    with staged(agents_server, tmp_path) as made:
        yield made


@pytest.fixture(scope="module")
def crew(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    """A stage with one worker that many tests share."""
    folder = tmp_path_factory.mktemp("crew")
    with PrivateServer() as server, agent_workers(folder) as start, staged(server, folder) as made:
        start(made.url, made.model, concurrency=4)
        yield made


# what travels


def test_a_child_reads_the_texts_of_its_parent_under_their_ids(crew: Stage) -> None:
    crew.program("root", tools="read_fd spawn", links="reader")
    crew.program("reader", tools="read_fd")
    share = call("spawn", program_name="reader", query="Read page 2.", additional_preload_fds=["fd:1"])
    crew.act(
        {
            "ROOT": [call("lines", count=3000), share, say("Done.")],
            "READER": [call("read_fd", fd="fd:1", start=2), say("Read.")],
        }
    )

    root = crew.run()

    expected = crew.store.process(root).read("fd:1", start=2)
    [read] = crew.results(f"{root}.1")
    assert read.content.startswith('<fd_content fd="fd:1" page="2"')
    assert f"\n{expected.text}\n" in read.content
    assert "\nRead.\n" in crew.results(root)[1].content
    # by reference: the tree holds the text once
    assert (crew.store.tree(root).fds, crew.store.tree(root).bytes) == (1, expected.total_chars)


def test_a_large_answer_comes_back_by_reference_and_outlives_the_child(crew: Stage) -> None:
    crew.program("root", tools="read_fd spawn", links="writer")
    crew.program("writer", tools="read_fd")
    answer = "".join(f"verse {number}\n" for number in range(2000))
    crew.act(
        {
            "ROOT": [
                call("spawn", program_name="writer", query="Write."),
                call("read_fd", fd="fd:1", start=2),
                say("Done."),
            ],
            "WRITER": [say(answer)],
        }
    )

    root = crew.run()

    spawned, read = crew.results(root)
    assert (
        f'<process_result process="{root}.1" program="writer" state="exited" exit_code="0">'
        in spawned.content
    )
    assert '<fd_result fd="fd:1"' in spawned.content
    assert 'page="2"' in read.content
    held = crew.store.process(root)
    assert held.read("fd:1", read_all=True).text == answer
    assert held.stat("fd:1").producer == f"{root}.1"
    assert crew.store.process(f"{root}.1").list() == []
    assert crew.store.tree(root).fds == 1


def test_a_child_is_given_the_part_that_a_selector_names_and_nothing_else(crew: Stage) -> None:
    crew.program("root", tools="read_fd spawn", links="reader")
    crew.program("reader", tools="read_fd list_fds")
    share = call("spawn", program_name="reader", query="Read.", additional_preload_fds=["fd:1#L5-6"])
    crew.act(
        {
            "ROOT": [call("lines", count=3000), share, say("Done.")],
            "READER": [
                turn(call("list_fds"), call("read_fd", fd="fd:1"), call("read_fd", fd="fd:2")),
                say("Read."),
            ],
        }
    )

    root = crew.run()

    listed, whole, part = (result.content for result in crew.results(f"{root}.1"))
    assert listed.startswith('<fd_list count="1" total="1">\nfd:2 ')
    assert 'type="not_found"' in whole
    assert "\nline 5\nline 6\n" in part
    [asked] = [r for r in crew.requests if "READER" in r.system and r.turn_number == 0]
    assert "\nline 5\nline 6\n" in asked.system
    assert "line 7" not in asked.system


def test_files_named_by_a_program_and_by_a_call_are_preloaded(crew: Stage) -> None:
    (crew.folder / "rules.txt").write_text("Be kind.\n")
    (crew.folder / "facts.txt").write_text("Water is wet.\n")
    crew.program("root", tools="spawn", links="reader", more='[preload]\nroot = "."')
    crew.program("reader", more='[preload]\nfiles = ["rules.txt"]')
    share = call("spawn", program_name="reader", query="Read.", additional_preload_files=["facts.txt"])
    crew.act({"ROOT": [share, say("Done.")], "READER": [say("Read.")]})

    crew.run()

    [asked] = [request for request in crew.requests if "READER" in request.system]
    assert asked.system.index("Be kind.") < asked.system.index("Water is wet.")


# what runs when


def test_two_spawns_of_one_turn_run_at_the_same_time(crew: Stage) -> None:
    crew.program("root", tools="spawn", links="reader")
    crew.program("reader")
    both = threading.Barrier(2, timeout=20)

    def reader(request: Request) -> Any:
        both.wait()  # passes only when two children ask the model at once
        return say(f"Read {request.last_text()}.")

    first, second = (call("spawn", program_name="reader", query=query) for query in ("one", "two"))
    crew.act({"ROOT": [turn(first, second), say("Done.")], "READER": reader})

    root = crew.run()

    shown = [result.text for result in crew.requests[-1].tool_results()]
    assert ["\nRead one.\n" in shown[0], "\nRead two.\n" in shown[1]] == [True, True]
    assert crew.record(root).exit_code == 0


def test_any_depth_runs_on_one_place(stage: Stage, start_agent_worker: StartAgentWorker) -> None:
    stage.program("link", tools="spawn", links="link")

    def link(request: Request) -> Any:
        left = int(str(request.messages[0]["content"]))
        if left and request.turn_number == 0:
            return call("spawn", program_name="link", query=str(left - 1))
        return say(f"{left} " + "".join(result.text.split("\n")[1] for result in request.tool_results()))

    stage.act({"LINK": link})
    start_agent_worker(stage.url, stage.model, concurrency=1)

    root = stage.run("6", "link")

    assert stage.answer(root) == "6 5 4 3 2 1 0 "
    assert [member.exit_code for member in stage.store.tree(root).members] == [0] * 7
    assert stage.record(root + ".1" * 6).state == "exited"


def test_agents_run_in_processes_of_their_own(stage: Stage, start_agent_worker: StartAgentWorker) -> None:
    stage.program("root", tools="spawn", links="reader")
    stage.program("reader")
    both = threading.Barrier(2, timeout=20)

    def reader(request: Request) -> Any:
        both.wait()
        return call("own_process") if request.turn_number == 0 else say("Read.")

    spawn = call("spawn", program_name="reader", query="Read.")
    stage.act({"ROOT": [turn(spawn, spawn), say("Done.")], "READER": reader})
    worker = start_agent_worker(stage.url, stage.model, concurrency=2, pool="prefork")

    root = stage.run()

    assert {member.worker for member in stage.store.tree(root).members} == {worker.name}
    [[first], [second]] = (stage.results(f"{root}.{number}") for number in (1, 2))
    assert first.content.startswith("process ")
    assert first.content != second.content
    worker.terminate()
    assert worker.process.wait(20) == 0


def test_the_queue_may_be_in_another_redis(stage: Stage, start_agent_worker: StartAgentWorker) -> None:
    stage.program("root", tools="spawn", links="reader")
    stage.program("reader")
    stage.act(
        {
            "ROOT": [call("spawn", program_name="reader", query="Read."), say("Done.")],
            "READER": [say("Read.")],
        }
    )

    # somebody else sweeps, and finds nothing: all that is run was woken through the broker
    stage.redis.set("fdstore:sweeper", "another", ex=60)

    with PrivateServer() as broker, closing(Dispatcher(stage.url, broker.url)) as wakes:
        start_agent_worker(stage.url, stage.model, 1, "threads", "--broker-url", broker.url)
        root = launch_root(stage.store, load(stage.folder / "root.toml"), "Go.").id
        wakes.wake(root)
        stage.wait(root)

    assert stage.redis.get("fdstore:sweeper") == "another"
    assert stage.redis.keys("fdq:*") == []


# what goes wrong


@pytest.mark.parametrize(
    ("limit", "asked", "failing"),
    [("tree_depth = 1", 1, [0]), ("tree_processes = 2", 2, [1]), ("tree_live = 2", 2, [1])],
)
def test_a_limit_of_the_tree_is_an_error_that_the_agent_reads(
    crew: Stage, limit: str, asked: int, failing: list[int]
) -> None:
    crew.program("root", tools="spawn", links="reader", more=f"[limits]\n{limit}")
    crew.program("reader")
    spawn = call("spawn", program_name="reader", query="Read.")
    crew.act({"ROOT": [turn(*[spawn] * asked), say("Done.")], "READER": [slow(say("Read."), 0.2)]})

    root = crew.run()

    shown = crew.requests[-1].tool_results()
    name, number = limit.split(" = ")
    assert [index for index, result in enumerate(shown) if result.is_error] == failing
    for index in failing:
        assert '<fd_error type="spawn_limit">' in shown[index].text
        assert f"the limit {name} of this tree is {number}" in shown[index].text
    assert crew.record(root).exit_code == 0


def test_an_unknown_program_is_answered_with_those_that_there_are(crew: Stage) -> None:
    crew.program("root", tools="spawn", links="reader")
    crew.program("reader")
    crew.act({"ROOT": [call("spawn", program_name="raeder", query="Read."), say("Done.")]})

    root = crew.run()

    [result] = crew.results(root)
    assert result.is_error
    assert '<fd_error type="unknown_program">' in result.content
    assert "reader" in result.content
    assert crew.store.tree(root).processes == 1


def test_a_child_that_fails_is_a_result_with_its_reason(crew: Stage) -> None:
    crew.program("root", tools="spawn", links="reader")
    crew.program("reader")
    spawn = call("spawn", program_name="reader", query="Read.")
    crew.act({"ROOT": [spawn, say("Done.")], "READER": [fail(400, message="messages: too long")]})

    root = crew.run()

    [result] = crew.results(root)
    assert result.is_error
    assert f'process="{root}.1" program="reader" state="failed"' in result.content
    assert 'reason="the model answered 400 invalid_request_error: messages: too long"' in result.content
    assert (crew.record(f"{root}.1").state, crew.record(root).exit_code) == ("failed", 0)


# workers that stop, die, or never hear of it


def reads_at_second_try() -> Replies:
    """The first request is never answered; later ones are."""
    tries = itertools.count()
    return lambda _: NEVER if next(tries) == 0 else say("Read.")


def holder(stage: Stage, process: str, workers: list[WorkerProcess]) -> WorkerProcess:
    name = stage.record(process).worker
    [found] = [worker for worker in workers if worker.name == name]
    return found


def test_the_child_of_a_killed_worker_is_run_again_by_another(
    stage: Stage, start_agent_worker: StartAgentWorker
) -> None:
    stage.program("root", tools="spawn", links="reader")
    stage.program("reader")
    spawn = call("spawn", program_name="reader", query="Read.")
    stage.act({"ROOT": [spawn, say("Done.")], "READER": reads_at_second_try()})
    workers = [start_agent_worker(stage.url, stage.model) for _ in range(2)]
    root = stage.launch()
    stage.model.wait_for(2)

    holder(stage, f"{root}.1", workers).kill()
    killed_at = time.monotonic()
    stage.model.wait_for(3)
    taken_over_s = time.monotonic() - killed_at
    stage.wait(root)

    assert taken_over_s < 15
    child = stage.record(f"{root}.1")
    assert (child.state, child.losses) == ("exited", 1)
    # the second attempt runs alone, and once past the point of the loss it may go on among others
    assert child.attempt in (2, 3)
    assert stage.store.tree(root).processes == 2
    [result] = stage.results(root)
    assert "\nRead.\n" in result.content
    assert stage.record(root).exit_code == 0


def test_a_child_that_kills_its_workers_fails_at_the_third(
    stage: Stage, start_agent_worker: StartAgentWorker
) -> None:
    stage.program("root", tools="spawn", links="reader")
    stage.program("reader")
    spawn = call("spawn", program_name="reader", query="Read.")
    stage.act({"ROOT": [spawn, say("Done.")], "READER": lambda _: NEVER})
    root = stage.launch()

    for kill in range(1, 4):
        worker = start_agent_worker(stage.url, stage.model)
        stage.model.wait_for(1 + kill)
        worker.kill()
        stage.lease_runs_out(f"{root}.1")
    start_agent_worker(stage.url, stage.model)
    stage.wait(root)

    child = stage.record(f"{root}.1")
    assert (child.state, child.reason, child.losses, child.attempt) == ("failed", "poison", 3, 3)
    [result] = stage.results(root)
    assert result.is_error
    assert 'state="failed" reason="poison"' in result.content
    assert stage.record(root).exit_code == 0


def test_a_program_says_how_many_losses_are_too_many(
    stage: Stage, start_agent_worker: StartAgentWorker
) -> None:
    stage.program("root", more="[limits]\nmax_losses = 1")
    stage.act({"ROOT": lambda _: NEVER})
    root = stage.launch()

    worker = start_agent_worker(stage.url, stage.model)
    stage.model.wait_for(1)
    worker.kill()
    stage.lease_runs_out(root)
    start_agent_worker(stage.url, stage.model)
    stage.wait(root)

    assert (stage.record(root).state, stage.record(root).reason) == ("failed", "poison")


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_a_worker_that_is_told_to_stop_hands_its_agent_on(
    stage: Stage, start_agent_worker: StartAgentWorker, pool: str
) -> None:
    stage.program("root")
    stage.act({"ROOT": [slow(call("lines", count=3), 1), say("Done.")]})
    first = start_agent_worker(stage.url, stage.model, pool=pool)
    root = stage.launch()
    stage.model.wait_for(1)

    first.terminate()
    second = start_agent_worker(stage.url, stage.model)
    stage.wait(root)

    assert first.process.wait(20) == 0
    record = stage.record(root)
    assert (record.exit_code, record.attempt, record.losses) == (0, 2, 0)
    assert record.worker == second.name
    assert len(stage.requests) == 2


# loops of somebody else, which wait for their children themselves


def spawner(stage: Stage) -> fdstore.Toolset:
    proc = stage.store.process("own-loop")
    proc.create("one\ntwo\n")
    return fdstore.Toolset(
        proc, enabled=["spawn", "read_fd"], programs={"reader": stage.folder / "reader.toml"}
    )


def spawned(stage: Stage) -> str:
    """What a spawn of a loop without a worker has put into the queue."""
    wait_until(lambda: stage.redis.llen("fdq:fdstore:queue") == 1)
    return stage.redis.lindex("fdq:fdstore:queue", 0)


SPAWN = {"program_name": "reader", "query": "Read.", "additional_preload_fds": ["fd:1"]}


def test_a_message_carries_the_id_and_a_lost_one_is_sent_again(
    stage: Stage, start_agent_worker: StartAgentWorker
) -> None:
    stage.program("reader", tools="read_fd")
    stage.act({"READER": [say("Read.")]})
    tools = spawner(stage)

    with ThreadPoolExecutor(1) as threads:
        result = threads.submit(tools.call, "spawn", SPAWN, "toolu_1")
        message = spawned(stage)
        stage.redis.delete("fdq:fdstore:queue")
        start_agent_worker(stage.url, stage.model)

        assert "\nRead.\n" in result.result(20).content

    arguments, keywords, _ = json.loads(json.loads(message)["body"])
    assert (arguments, keywords) == (["own-loop.1"], {})
    assert len(message) < 1000


def test_a_loop_of_ones_own_spawns_once_for_a_call(crew: Stage) -> None:
    crew.program("reader", tools="read_fd")
    crew.act({"READER": [call("read_fd", fd="fd:1"), say("Read.")]})
    tools = spawner(crew)

    first = tools.call("spawn", SPAWN, call_id="toolu_1")
    again = tools.call("spawn", SPAWN, call_id="toolu_1")

    assert (first.is_error, first) == (False, again)
    assert "\nRead.\n" in first.content
    assert "\none\ntwo\n" in crew.requests[-1].tool_results()[0].text
    assert crew.store.tree("own-loop").processes == 2


def test_an_event_loop_goes_on_while_children_run(crew: Stage) -> None:
    crew.program("reader")
    both = threading.Barrier(2, timeout=20)

    def reader(request: Request) -> Any:
        both.wait()
        return say(request.last_text())

    crew.act({"READER": reader})

    async def main() -> list[str]:
        async with await fdstore.aio.connect(crew.url) as store:
            proc = await store.process("event-loop")
            programs = {"reader": crew.folder / "reader.toml"}
            tools = fdstore.aio.Toolset(proc, enabled=["spawn"], programs=programs)
            calls = [
                tools.call("spawn", {"program_name": "reader", "query": query}, call_id=query)
                for query in ("one", "two")
            ]
            return [result.content for result in await asyncio.gather(*calls)]

    one, two = asyncio.run(main())

    assert ("\none\n" in one, "\ntwo\n" in two) == (True, True)


# children in the background, whose text is read while they write it


def background(stage: Stage, **more: Any) -> fdstore.Toolset:
    """A loop of its own that spawns `speaker` in the background; its text is fd:1."""
    stage.program("speaker")
    proc = stage.store.process("own-loop")
    tools = fdstore.Toolset(
        proc,
        enabled=["spawn", "read_fd", "wait", "pipe"],
        programs={"speaker": stage.folder / "speaker.toml"},
        commands=["tr"],
    )
    result = tools.call(
        "spawn", {"program_name": "speaker", "query": "Speak.", "background": True}, "toolu_1"
    )
    assert result.content == (
        '<process_result process="own-loop.1" program="speaker" state="ready" fd="fd:1"/>'
    )
    return tools


def test_the_text_of_a_child_is_followed_while_it_works_and_ends_with_it(
    stage: Stage, start_agent_worker: StartAgentWorker
) -> None:
    release = threading.Event()
    stage.act({"SPEAKER": [turn(say("I look."), call("lines", count=3)), held(say("abcdef"), 4, release)]})
    tools = background(stage)
    start_agent_worker(stage.url, stage.model)
    proc = stage.store.process("own-loop")
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


def test_a_killed_worker_leaves_a_text_that_goes_on_with_the_next(
    stage: Stage, start_agent_worker: StartAgentWorker
) -> None:
    answers = iter([held(say("abcdef"), 4, threading.Event()), say("Whole.")])
    stage.act({"SPEAKER": lambda _: next(answers)})
    background(stage)
    first = start_agent_worker(stage.url, stage.model)
    proc = stage.store.process("own-loop")
    wait_until(lambda: proc.read("fd:1", read_all=True).text == "ab")

    first.kill()
    stage.lease_runs_out("own-loop.1")
    start_agent_worker(stage.url, stage.model)

    assert "".join(proc.follow("fd:1")) == f"ab{RETRY_MARKER}Whole."
    assert proc.stat("fd:1").state == "sealed"


def test_a_pipeline_reads_what_an_agent_is_still_writing(
    stage: Stage, start_agent_worker: StartAgentWorker
) -> None:
    release = threading.Event()
    stage.act({"SPEAKER": [held(say("abcdef"), 4, release)]})
    tools = background(stage)
    start_agent_worker(stage.url, stage.model, 2, "threads", "--unsandboxed-commands")
    piped = tools.call("pipe", {"commands": ["tr a-f A-F"], "in_fd": "fd:1"}, "toolu_2").content
    assert 'fd="fd:2"' in piped
    proc = stage.store.process("own-loop")
    wait_until(lambda: stage.record("own-loop.2").state == "running")

    release.set()

    assert "".join(proc.follow("fd:2")) == "ABCDEF"
