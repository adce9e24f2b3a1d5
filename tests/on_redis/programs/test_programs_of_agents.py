"""Agents whose programs ask models, spawn agents and call functions: on workers, suspended and repeated."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.client import Store
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import TreeLimits
from fdstore.testing import Reply, Request, call, say
from tests.on_redis.running_agents import READER, Agents, Crashed, CrashingStore, ran, running, tool
from tests.waiting import wait_until

TOOLS = ("run_python", "read_fd")
TEXT = "".join(f"line {number}\n" for number in range(1, 4001))

COUNT = """
parts = log.split(chars=9000)
answers = await asyncio.gather(*[ask("How many lines?", part) for part in parts])
print(len(answers), sum(int(a) for a in answers))
"""


class Model:
    """Runs the codes in turn, then ends with the last result. Asks are answered with a count of lines."""

    def __init__(self, *codes: str) -> None:
        self.codes = codes
        self.asked: Counter[str] = Counter()

    def __call__(self, request: Request) -> Reply:
        if "SOLO" not in request.system:
            return self.answer(request)
        if request.turn_number < len(self.codes):
            code = self.codes[request.turn_number]
            return call("run_python", code=code, id=f"toolu_{request.turn_number}")
        return say(request.tool_results()[-1].text)

    def answer(self, request: Request) -> Reply:
        if "READER" in request.system:
            return say("It was read.")
        *texts, _ = [block["text"] for block in request.messages[-1]["content"]]
        self.asked[texts[0].partition(":\n")[0]] += 1
        return say(str(texts[0].count("\n") - 1))


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def agents(store: Store, model: Model, tmp_path: Path) -> Iterator[Agents]:
    with running(store, model, tmp_path) as agents:
        yield agents


def launch(agents: Agents, **fields: object) -> None:
    root = agents.launch(tools=TOOLS, **fields)
    root.create(TEXT, source="log")


def answer_of(agents: Agents) -> str:
    agents.run_all("solo")
    record = agents.record()
    assert (record.state, record.exit_code) == ("exited", 0), record
    return agents.answer()


def test_asks_are_answered_by_lanes_while_the_program_holds_no_slot(agents: Agents, model: Model) -> None:
    model.codes = ("import asyncio\nlog = fd(1)", COUNT)
    launch(agents)

    assert agents.attempt("solo") == "waiting"
    lanes = [member for member in agents.store.tree("solo").members if member.kind == "asks"]
    assert len(lanes) == 1

    assert "5 4000" in answer_of(agents)
    assert set(model.asked.values()) == {1}
    assert len(model.asked) == 5


def test_each_ask_counts_for_the_tree_and_lanes_do_not(agents: Agents, model: Model) -> None:
    model.codes = ("import asyncio\nlog = fd(1)", COUNT)
    launch(agents, tree_limits=TreeLimits(tree_processes=1, tree_depth=1, tree_live=1))

    answer_of(agents)

    tree = agents.store.tree("solo")
    assert tree.model_calls == 5 + 3
    assert tree.processes == 1


def test_a_failed_ask_raises_in_the_code(agents: Agents, model: Model) -> None:
    model.codes = (
        "try:\n    await ask('?', 'x' * 300_000)\nexcept ValueError as error:\n    print(str(error)[:9])",
    )
    launch(agents)
    assert "too_large" in answer_of(agents)


def test_exceptions_of_gathered_asks_are_returned(agents: Agents, model: Model) -> None:
    model.codes = (
        "import asyncio\n"
        "found = await asyncio.gather(ask('?', 'x\\n'), ask('?', 'y' * 300_000), return_exceptions=True)\n"
        "print(found[0], type(found[1]).__name__)",
    )
    launch(agents)
    assert "1 ValueError" in answer_of(agents)


def test_an_agent_is_spawned_with_a_part_of_a_text(agents: Agents, model: Model) -> None:
    model.codes = (
        "r = await spawn('reader', 'Read it.', fd('fd:1#L3-4'))\nprint(r.answer, r.state, r.exit_code)",
    )
    launch(agents, others=[READER])
    assert "It was read. exited 0" in answer_of(agents)


def test_functions_run_once_and_can_be_gathered(agents: Agents, model: Model) -> None:
    model.codes = (
        "import asyncio\nprint(await asyncio.gather(echo(words='a'), echo(words='b')))\n"
        "x = await ask('?', 'x\\n')\nprint(x)",
    )
    launch(agents, python=(tool("echo"),))
    assert "['you said a', 'you said b']" in answer_of(agents)
    assert ran == ["a", "b"]


def test_code_that_ends_before_its_asks_cancels_them(agents: Agents, model: Model) -> None:
    model.codes = (
        "import asyncio\n"
        "async def fails():\n    await ask('?', 'x\\n')\n    raise KeyError('x')\n"
        "await asyncio.gather(fails(), spawn('reader', 'Read it.'))",
    )
    launch(agents, others=[READER])
    assert "KeyError" in answer_of(agents)
    assert all(member.state in ENDED for member in agents.store.tree("solo").members)


def test_an_attempt_that_was_lost_leaves_what_it_began_to_the_next(agents: Agents, model: Model) -> None:
    model.codes = (
        "import asyncio\nasync def forever():\n    while True: pass\n"
        "await asyncio.gather(spawn('reader', 'Read it.'), forever())",
    )
    launch(agents, others=[READER])
    with ThreadPoolExecutor(1) as thread:
        lost = thread.submit(agents.attempt, "solo")
        wait_until(lambda: len(agents.store.tree("solo").members) > 1, what="the child")
        agents.lose("solo")
        assert lost.result() == "lost"
    assert agents.record("solo.1").state == "ready"


def test_a_copy_that_may_start_no_agents_starts_none_by_code(store: Store, tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        results = [result.text for result in request.tool_results()]
        if not results:
            return call("fork", prompts=["Spawn one."], id="t1")
        if len(results) == 1 and "Spawn one." in results[0] and "SOLO" in request.system:
            return call("run_python", code="await spawn('reader', 'Read it.')", id="t2")
        return say(results[-1])

    with running(store, script, tmp_path) as agents:
        agents.launch(tools=(*TOOLS, "fork", "spawn"), others=[READER])
        agents.run_all("solo")
        assert "a copy cannot" in agents.answer("solo.1"), agents.answer("solo.1")
        assert len(store.tree("solo").members) == 2


def test_a_fork_has_a_copy_of_the_session(store: Store, tmp_path: Path) -> None:
    def script(request: Request) -> Reply:
        results = [result.text for result in request.tool_results()]
        if not results:
            return call("run_python", code="n = 20", id="t1")
        if len(results) == 1:
            return call("fork", prompts=["Count."], id="t2")
        if "copy" in results[-1] and len(results) == 2 and "Count." in str(request.messages[-1]):
            return call("run_python", code="n = n + 1\nprint('n is', n)", id="t3")
        if len(results) == 2:
            return call("run_python", code="print('still', n)", id="t4")
        return say(results[-1])

    with running(store, script, tmp_path) as agents:
        agents.launch(tools=(*TOOLS, "fork"))
        assert "still 20" in answer_of(agents)
        [copy] = [member.id for member in store.tree("solo").members if member.id != "solo"]
        assert "n is 21" in agents.answer(copy)


PROGRAM = """
import asyncio, random, time
log = fd(1)
seen = [round(random.random(), 9), time.time()]
note = create(str(seen))
print("made", note.fd, await echo(words="w"))
answers = await asyncio.gather(*[ask("How many lines?", part) for part in log.split(chars=20_000)])
print(answers)
r = await spawn("reader", "Read it.", log)
second = create(r.answer + str(random.random()))
print("second", second.fd, note.text() == str(seen) or [note.text(), seen])
"""


@pytest.mark.thorough("a fault at every request")
@pytest.mark.parametrize("first", [3, 4, 5, 6, 7, 8])
def test_a_program_whose_attempts_crash_at_any_request_does_everything_once(
    redis_url: str, store: Store, tmp_path: Path, first: int
) -> None:
    """Each run has one crash, six requests later than the run before."""
    shown: set[str] = set()
    for requests in itertools.count(first, 6):
        model = Model(PROGRAM)
        with running(store, model, tmp_path) as agents:
            launch(agents, others=[READER], python=(tool("echo"),))
            crashed = crash_once(redis_url, agents, requests)
            answer = answer_of(agents)
            made = re.search(r"made fd:2 you said w\n(\[.*\])\nsecond fd:3 True", answer)
            assert made, answer
            shown.add(made[1])
            assert ran.count("w") == 1 or crashed
            assert max(model.asked.values()) == 1 or crashed
            assert [d.fd for d in store.process("solo").list()][:3] == ["fd:1", "fd:2", "fd:3"]
        drop_with_numbers(store, "solo")
        if not crashed:
            break
    assert requests > 50
    assert len(shown) == 1


def crash_once(redis_url: str, agents: Agents, requests: int) -> bool:
    """Run the ready processes with a client that crashes before its n-th request; return whether it did."""
    with CrashingStore(redis_url, requests) as crashing:
        while ready := [m.id for m in agents.store.tree("solo").members if m.state == "ready"]:
            try:
                agents.attempt(ready[0], crashing)
            except Crashed:
                agents.lose(ready[0])
                return True
    return False
