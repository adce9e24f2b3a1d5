"""Agents that ask people while their workers are killed: what was approved runs once, what was denied never.

Each agent makes calls that want approval beside a question, turn after turn. Two people answer everything at
random moments: by what the call says, or by chance the other way round; the first answer counts. A kill may
have one effect: an approved call that ran on the worker is `unknown_outcome`, and is not run again.
"""

from __future__ import annotations

import json
import random
import re
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

from fdstore.agents.loop.conversation import Result, decode_entry
from fdstore.client import Store
from fdstore.errors import QuestionClosed
from fdstore.model.lifecycle import ENDED
from fdstore.model.people import PersonAnswer, Question
from fdstore.store.processes import journal
from fdstore.testing import Reply, Request, call, say, slow, turn
from tests.chaos.agents import launch, write_program
from tests.chaos.conftest import Faults
from tests.chaos.worker_pool import Worker, WorkerPool
from tests.waiting import LOOK_EVERY_S, PATIENCE_S, meanwhile, wait_until

AGENTS = 4
TURNS = 3
WORKERS = 3
LONGEST_PAUSE_S = 0.4
KILLS_OF_RUN = 8

SECTIONS = """
[tools]
enabled = ["ask_person"]
python = ["agent_tools:hand_over"]
[people]
ask = true
approve = ["hand_over"]
[limits]
max_losses = 1000
"""

WISHES = ("yes", "no", "changed")


def courier(request: Request) -> Reply:
    """Call with each wish and ask, in each turn."""
    number, [name] = request.turn_number, re.findall(r"run-[0-9]+", str(request.messages[0]))
    if number == TURNS:
        return say("All is done.")
    calls = [
        call("hand_over", parcel=f"{name}.{number} {wish}", id=f"toolu_{number}_{wish}") for wish in WISHES
    ]
    asks = call(
        "ask_person", question=f"{name}.{number} where?", choices=["here", "there"], id=f"toolu_{number}"
    )
    return slow(turn(*calls, asks), 0.1)


class People:
    """Two people, who answer each question that they see, in random order. `taken` are the answers that
    counted, by process and number."""

    def __init__(self, store: Store, rng: random.Random) -> None:
        self._store = store
        self._rngs = {who: random.Random(rng.random()) for who in ("ann", "bob")}
        self._lock = threading.Lock()
        self.taken: dict[tuple[str, int], PersonAnswer] = {}
        self.asked: dict[tuple[str, int], Question] = {}
        self.second = 0

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Answer while the block runs."""
        with ExitStack() as both:
            for who in self._rngs:
                both.enter_context(meanwhile(lambda who=who: self._answer_one(who)))
            yield

    def _answer_one(self, who: str) -> None:
        rng = self._rngs[who]
        threading.Event().wait(rng.uniform(0, 2 * LOOK_EVERY_S))
        found = self._store.questions()
        if not found:
            return
        question = rng.choice(found)
        id_ = question.process, question.number
        try:
            given = self._decide(question, who, rng)
        except QuestionClosed:
            with self._lock:
                self.second += 1
            return
        with self._lock:
            assert id_ not in self.taken, "a question was answered twice"
            self.taken[id_], self.asked[id_] = given, question

    def _decide(self, question: Question, who: str, rng: random.Random) -> PersonAnswer:
        process, number = question.process, question.number
        if question.kind == "question":
            return self._store.answer(process, question=number, choice=rng.randint(1, 2), by=who)
        parcel = str(question.arguments["parcel"])
        wish = parcel.partition(" ")[2]
        if rng.random() < 0.2:
            wish = rng.choice(WISHES)
        if wish == "no":
            return self._store.answer(process, question=number, approve=False, reason=f"{who}: no", by=who)
        changed = {"parcel": f"{parcel} by {who}"} if wish == "changed" else None
        return self._store.answer(process, question=number, approve=True, arguments=changed, by=who)


def kill_busy(store: Store, pool: WorkerPool, trees: list[str], rng: random.Random) -> bool:
    """Kill a worker that runs one of these agents, some moment later, and start another one. Return False if
    all agents have ended."""
    busy: list[Worker] = []

    def found() -> bool:
        members = [member for tree in trees for member in store.tree(tree).members]
        names = {member.worker for member in members if member.state == "running"}
        busy[:] = [worker for worker in pool.alive if worker.name in names]
        return bool(busy) or all(member.state in ENDED for member in members)

    wait_until(found, PATIENCE_S, "a worker that runs an agent")
    if not busy:
        return False
    threading.Event().wait(rng.uniform(0, LONGEST_PAUSE_S))
    rng.choice(busy).kill()
    pool.start_worker()
    return True


def check_agent(store: Store, name: str, people: People, delivered: Counter[str]) -> Counter[str]:
    """Check what an agent has run and was told against the answers that counted. Return how many calls were
    approved, changed, denied, and of an unknown outcome."""
    counts = Counter[str]()
    [record] = store.tree(name).members
    assert (record.state, record.exit_code) == ("exited", 0), record
    entries = [decode_entry(entry) for entry in store.run(journal.read(store.prefix, name))]
    results = {entry.call: entry for entry in entries if isinstance(entry, Result)}
    assert sum(isinstance(entry, Result) for entry in entries) == len(results) == TURNS * (len(WISHES) + 1)
    numbers = sorted(number for process, number in people.taken if process == name)
    assert numbers == list(range(1, len(results) + 1)), "a call asked twice, or an answer was lost"

    for (process, number), answer in people.taken.items():
        if process != name:
            continue
        question = people.asked[process, number]
        shown = results[question.call.partition(":")[2]]
        assert [(each.who, each.question) for each in shown.facts.people] == [(answer.by, number)]
        if question.kind == "question":
            assert f">\n{answer.text}\n<" in str(shown.content)
            continue
        before = str(question.arguments["parcel"])
        ran = str((answer.arguments or question.arguments)["parcel"])
        if not answer.approved:
            assert delivered[before] == 0, "a denied call ran"
            assert shown.is_error
            assert f"The call was not run: {answer.by}: no" in str(shown.content)
            counts["denied"] += 1
            continue
        assert ran == before or delivered[before] == 0, "a changed call ran as it was"
        is_unknown = 'type="unknown_outcome"' in str(shown.content)
        assert delivered[ran] == 1 or (is_unknown and not delivered[ran]), (ran, delivered[ran])
        assert is_unknown or str(shown.content).endswith(f"{ran} is delivered")
        counts["unknown"] += is_unknown
        counts["changed" if answer.is_changed else "approved"] += 1
    return counts


@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "kills",
    [
        pytest.param(4, id="4-kills", marks=pytest.mark.thorough("every request is a crash point elsewhere")),
        pytest.param(50, id="50-kills", marks=pytest.mark.long),
    ],
)
def test_an_approved_call_runs_once_and_a_denied_one_never_whichever_workers_are_killed(
    seed: int, kills: int, store: Store, worker_pool: WorkerPool, tmp_path: Path, faults: Faults
) -> None:
    rng = random.Random(seed)
    program = write_program(tmp_path, "courier", SECTIONS)
    book = tmp_path / "delivered"
    book.touch()
    people = People(store, rng)
    counts = Counter[str]()
    names: list[str] = []
    with worker_pool.scripted(courier):
        worker_pool.start_ready(WORKERS)
        while faults.kinds["worker killed"] < kills:
            now = [f"run-{len(names) + number}" for number in range(AGENTS)]
            names += now
            with people.answering():
                for name in now:
                    launch(store, program, name, name)
                for _ in range(min(KILLS_OF_RUN, kills - faults.kinds["worker killed"])):
                    if not kill_busy(store, worker_pool, now, rng):
                        break
                    faults.note("worker killed")
                wait_until(
                    lambda now=now: not any(store.tree(name).live for name in now), PATIENCE_S, "the ends"
                )
            delivered = Counter(book.read_text().splitlines())
            for name in now:
                counts += check_agent(store, name, people, delivered)
    losses = sum(record.losses for name in names for record in store.tree(name).members)

    print(
        f"{len(names)} agents, {len(people.taken)} answers, {people.second} came second; {losses} losses; "
        + ", ".join(f"{count} {what}" for what, count in sorted(counts.items()))
    )
    ran = {
        str((answer.arguments or people.asked[id_].arguments).get("parcel"))
        for id_, answer in people.taken.items()
    }
    assert set(delivered) <= ran, json.dumps(sorted(set(delivered) - ran))
    assert losses, "no agent was lost"
