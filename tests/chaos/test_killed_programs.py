"""Programs of agents while anything that runs them is killed: same result, and everything in it is done once.

Killed are workers that run the program, workers that ask its questions, the process of its interpreter, and
Redis. Each run is one agent, whose program prints, creates texts, calls a function that must not be repeated,
and asks forty questions in two rounds. Its questions, texts and parcels carry the number of the run and that
of the call, so that each can be counted.

A kill may have these effects and no others:

    a question that was in flight is sent again
    `hand_over` whose worker was killed raises unknown_outcome in the code, and is not run again
    a call whose interpreter was killed three times is an error; the model then makes another call
"""

from __future__ import annotations

import os
import random
import re
import signal
import statistics
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Literal, NamedTuple, get_args

import msgspec
import pytest
import redis

from fdstore.agents.loop.conversation import Result, decode_entry
from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import load
from fdstore.agents.runtime.waker import waker
from fdstore.cli.tables import draw, uncut
from fdstore.client import Process, Store
from fdstore.local.redis_server import PrivateServer
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord
from fdstore.store.keys import process_keys
from fdstore.store.processes import journal
from fdstore.testing import Reply, Request, call, say, slow
from tests.chaos.agents import answer_of, has_ended, record_of, write_program
from tests.chaos.conftest import Faults
from tests.chaos.worker_pool import Worker, WorkerPool
from tests.conftest import children_of, interpreters_of
from tests.dialects import every_dialect
from tests.waiting import LOOK_EVERY_S, PATIENCE_S, wait_until

Kind = Literal["program", "asks", "interpreter", "redis"]

WORKERS = 3
PARTS = 40
LINES_OF_PART = 25
TEXT = "".join(f"line {number} of the text\n" for number in range(1, PARTS * LINES_OF_PART + 1))
ANSWER_S = 0.1, 0.4
LONGEST_PAUSE_S = 0.8
KILLS_OF_RUN = 5
KILLED_INTERPRETER = "The interpreter ended unexpectedly."

AGENT = """
[tools]
enabled = ["run_python"]
python = ["agent_tools:hand_over"]
[python.ask]
system = "You are ASKED."
at_once = 10
[limits]
max_losses = 1000
max_turns = 1000
"""

PROGRAM = """
import asyncio, random, time

tag = "TAG"
log = fd(1)
luck, began = random.random(), time.time()
told = f"note {tag}: {luck} {began}"
print("begin", log.total_lines, len(log.search(r"^line \\d*7 ")))
note = create(told)

async def deliver(parcel):
    try:
        return await hand_over(parcel=f"{tag} {parcel}")
    except ValueError as error:
        return str(error).partition(":")[0] + f" {tag} {parcel}"

def work():
    total = 0
    for number in range(700_000):
        total += number % 7
    return total

print(await deliver("first"))
parts = log.split(lines=25)
async def count(number):
    return int(await ask(f"{tag} question {number}: how many lines?", parts[number]))

print("counted", sum(await asyncio.gather(*[count(number) for number in range(20)])), work())
second = create(f"second {tag}: {random.random()}")
print("counted", sum(await asyncio.gather(*[count(number) for number in range(20, 40)])), work())
print(await deliver("second"))
print("same", note.text() == told, random.random() != luck, time.time() >= began, len(second.text()) > 12)
"end"
"""


def expected_lines(tag: str) -> list[str]:
    """Return what the program prints without kills."""
    half, worked = PARTS * LINES_OF_PART // 2, sum(number % 7 for number in range(700_000))
    return [
        f"begin {PARTS * LINES_OF_PART} {PARTS * LINES_OF_PART // 10}",
        f"{tag} first is delivered",
        f"counted {half} {worked}",
        f"counted {half} {worked}",
        f"{tag} second is delivered",
        "same True True True True",
        "'end'",
    ]


class StoredAsks(msgspec.Struct, frozen=True):
    """The questions of one process: those that have an answer, and those that each lane has taken."""

    answered: frozenset[str]
    taken: dict[str, frozenset[str]]

    def in_flight(self, lanes: Iterable[str]) -> frozenset[str]:
        """Return the questions without an answer that these lanes have taken."""
        taken = [self.taken.get(lane, frozenset()) for lane in lanes]
        return frozenset[str]().union(*taken) - self.answered


def read_asks(client: redis.Redis, process: str) -> StoredAsks:
    """Read the questions of a process in one command. Their texts tell them apart."""
    fields: dict[bytes, bytes] = client.hgetall(process_keys("fdstore", process).asks)
    questions: dict[str, str] = {}
    call_of: dict[str, str] = {}
    for name, value in fields.items():
        kind, _, rest = name.decode().partition("/")
        if kind == "ask":
            questions[rest] = msgspec.json.decode(value)["question"]
        elif kind == "lanes":
            call_of |= dict.fromkeys(value.decode().split(), rest) if rest else {}
    answered, taken = set(), {}
    for name, value in fields.items():
        kind, _, rest = name.decode().partition("/")
        if kind == "answer":
            answered.add(questions[rest])
        elif kind == "taken":
            numbers = value.decode().split()
            taken[rest] = frozenset(questions[f"{call_of[rest]}/{number}"] for number in numbers)
    return StoredAsks(frozenset(answered), taken)


class Model:
    """Runs the program, again if its interpreter was killed, and answers its questions: with the number of
    lines, after a moment."""

    def __init__(self, rng: random.Random, url: str) -> None:
        self._rng = rng
        self._client = redis.Redis.from_url(url)
        self._lock = threading.Lock()
        self.run = ""
        self.sent: Counter[str] = Counter()
        self.moments: list[float] = []
        self.sent_though_answered: list[str] = []
        self.repeated_calls = 0

    def agent(self, request: Request) -> Reply:
        """Answer the agent."""
        self.moments.append(time.monotonic())
        results = request.tool_results()
        if results and KILLED_INTERPRETER not in results[-1].text:
            return say(results[-1].text)
        self.repeated_calls += len(results) > 0
        return call("run_python", code=PROGRAM.replace("TAG", tag_of(self.run, len(results) + 1)))

    def asked(self, request: Request) -> Reply:
        """Answer a question."""
        content = request.messages[0]["content"]
        if isinstance(content, str):  # other APIs than that of messages have the two in one text
            text, _, question = content.rpartition("\n\n")
        else:
            text, question = (str(block["text"]) for block in content)
        is_answered = question in self.stored().answered
        with self._lock:
            self.moments.append(time.monotonic())
            self.sent[question] += 1
            if is_answered:
                self.sent_though_answered.append(question)
            seconds = self._rng.uniform(*ANSWER_S)
        return slow(say(str(text.count("\n") - 1)), seconds)

    def stored(self) -> StoredAsks:
        """Read the questions of the run: none while Redis is away, as no answer is stored then."""
        with suppress(redis.ConnectionError):
            return read_asks(self._client, self.run)
        return StoredAsks(frozenset(), {})


def tag_of(run: str, number: int) -> str:
    return f"{run}.{number}"


class Kill(NamedTuple):
    """One kill: the questions that were in flight, and the processes that were lost, with their attempts."""

    kind: Kind
    at: float
    in_flight: frozenset[str]
    lost: tuple[ProcessRecord, ...]


class Killer:
    """Kills what runs one program, and replaces it."""

    def __init__(self, server: PrivateServer, store: Store, pool: WorkerPool, model: Model) -> None:
        self._server = server
        self._store = store
        self._pool = pool
        self._model = model
        self.kills: list[Kill] = []

    def kill_one(self, kind: Kind, rng: random.Random) -> bool:
        """Kill one of this kind at a random moment; False if the agent ends before there is one."""
        until = time.monotonic() + rng.uniform(0, LONGEST_PAUSE_S)
        while True:
            members = self._store.tree(self._model.run).members
            if next(member for member in members if member.id == self._model.run).state in ENDED:
                return False
            if time.monotonic() >= until and self._kill(kind, members, rng):
                return True
            threading.Event().wait(LOOK_EVERY_S / 2)

    def _kill(self, kind: Kind, members: tuple[ProcessRecord, ...], rng: random.Random) -> bool:
        running = [member for member in members if member.state == "running"]
        if kind == "redis":
            taken = self._model.stored()
            self._server.kill()
            self._note(kind, taken.in_flight(taken.taken), ())
            self._server.restart()
            return True
        is_lane = kind == "asks"
        wanted = {member.worker for member in running if (member.kind == "asks") == is_lane}
        found = [worker for worker in self._pool.alive if worker.name in wanted]
        if not found:
            return False
        worker = rng.choice(found)
        if kind == "interpreter":
            return self._kill_interpreter(worker)
        at = time.monotonic()
        worker.kill()
        self._pool.start_worker()
        lost = tuple(
            member
            for member in self._store.tree(self._model.run).members
            if member.state == "running" and member.worker == worker.name
        )
        if not lost:
            return False  # all had ended, or were stored, just before
        self._note(kind, self._model.stored().in_flight(member.id for member in lost), lost, at)
        return True

    def _kill_interpreter(self, worker: Worker) -> bool:
        # a process that was lost before runs alone, in another child of the supervisor
        interpreters = [pid for child in children_of(worker.pid) for pid in interpreters_of(child)]
        if not interpreters:
            return False
        try:
            os.kill(interpreters[-1], signal.SIGKILL)
        except ProcessLookupError:
            return False  # it had just ended by itself
        self._note("interpreter", frozenset(), ())
        return True

    def _note(
        self,
        kind: Kind,
        in_flight: frozenset[str],
        lost: tuple[ProcessRecord, ...],
        at: float | None = None,
    ) -> None:
        self.kills.append(Kill(kind, time.monotonic() if at is None else at, in_flight, lost))


class Takeovers:
    """For each kill, the time until another attempt runs what it lost, or the model gets the next request."""

    def __init__(self, store: Store, model: Model) -> None:
        self._store = store
        self._model = model
        self.durations_s: defaultdict[Kind, list[float]] = defaultdict(list)

    def wait(self, kill: Kill) -> None:
        """Wait for that of the last kill."""

        def is_over() -> bool:
            if not kill.lost:
                return any(moment > kill.at for moment in self._model.moments[-20:]) or self._ended()
            records = (record_of(self._store, lost.id) for lost in kill.lost)
            return all(
                record.attempt > lost.attempt or record.state in ENDED
                for record, lost in zip(records, kill.lost, strict=True)
            )

        wait_until(is_over, PATIENCE_S, f"what follows the kill of {kill.kind}")
        self.durations_s[kill.kind].append(time.monotonic() - kill.at)

    def _ended(self) -> bool:
        return has_ended(self._store, self._model.run)


def check_run(store: Store, folder: Path, model: Model, kills: list[Kill]) -> None:
    """Check one run that has ended: its result, its questions, texts and deliveries."""
    root = store.process(model.run)
    record = record_of(store, root.id)
    assert (record.state, record.reason, record.exit_code) == ("exited", None, 0)
    records = store.run(journal.read(store.prefix, root.id))
    results = [entry for entry in map(decode_entry, records) if isinstance(entry, Result)]
    killed = sum(kill.kind == "interpreter" for kill in kills)
    assert len(results) <= killed + 1, results
    tags = [tag_of(root.id, number) for number in range(1, len(results) + 1)]
    deliveries = Counter(
        line for line in (folder / "delivered").read_text().splitlines() if line.startswith(f"{root.id}.")
    )
    assert set(deliveries.values()) == {1}

    shown = answer_of(store, root.id).text
    body = shown[shown.index(">\n") + 2 : shown.rindex("\n</python_result>")].splitlines()
    unknown = [line for line in body if line.startswith("unknown_outcome ")]
    told = [re.sub("^unknown_outcome (.*)$", r"\1 is delivered", line) for line in body]
    assert told == expected_lines(tags[-1]), shown
    assert len(unknown) <= sum(kill.kind != "interpreter" for kill in kills)
    for parcel in ("first", "second"):
        line = f"{tags[-1]} {parcel}"
        assert deliveries[line] == 1 or f"unknown_outcome {line}" in unknown

    texts = Counter(text.partition(":")[0] for text in texts_of(root))
    for tag in tags:
        most = {f"note {tag}": 1, f"second {tag}": 1}
        assert {name: texts[name] for name in most} == most or (tag != tags[-1] and max(texts.values()) == 1)
    assert set(texts) <= {f"{name} {tag}" for name in ("note", "second") for tag in tags}

    assert model.sent_though_answered == []
    allowed = Counter(question for kill in kills for question in kill.in_flight)
    lapsed = lapsed_leases(store, root.id, kills)
    for tag in tags:
        for number in range(PARTS):
            question = f"{tag} question {number}: how many lines?"
            assert model.sent[question] <= 1 + allowed[question] + lapsed, (question, model.sent[question])
            assert model.sent[question] or tag != tags[-1]


def lapsed_leases(store: Store, run: str, kills: list[Kill]) -> int:
    """Return how many lanes were lost without a kill, as where a machine is too busy to renew leases. Their
    questions are sent again too."""
    losses = sum(member.losses for member in store.tree(run).members if member.kind == "asks")
    killed = sum(record.kind == "asks" for kill in kills for record in kill.lost)
    return max(losses - killed, 0)


def texts_of(root: Process) -> list[str]:
    """Return the texts that the programs made."""
    return [root.read(listed.fd, read_all=True).text for listed in root.list() if listed.fd != "fd:1"]


def kill_table(kills: list[Kill], sent: Counter[str], takeovers: Takeovers) -> str:
    """Return a row for each kind of kill: how many, how many questions it had in flight, how many were sent
    again because of it, and how long it took until the work went on."""
    last = {question: kill.kind for kill in kills for question in kill.in_flight}
    again = Counter[str]()
    for question, count in sent.items():
        again[last.get(question, "other")] += count - 1
    rows = []
    for kind in get_args(Kind):
        times = takeovers.durations_s[kind]
        rows.append(
            [
                kind,
                str(sum(kill.kind == kind for kill in kills)),
                str(sum(len(kill.in_flight) for kill in kills if kill.kind == kind)),
                str(again[kind]),
                f"{statistics.median(times):.2f}" if times else "-",
                f"{max(times):.2f}" if times else "-",
            ]
        )
    header = ["KILLED", "TIMES", "ASKS IN FLIGHT", "SENT AGAIN", "MEDIAN S", "WORST S"]
    return str(draw(uncut(header, header[1:]), rows))


@every_dialect
@pytest.mark.timeout(1800)
@pytest.mark.parametrize(
    "count",
    [
        pytest.param(4, id="4-kills", marks=pytest.mark.thorough("each kind of kill is tested alone")),
        pytest.param(50, id="50-kills", marks=pytest.mark.long),
    ],
)
def test_a_program_gives_the_same_result_and_does_everything_once_whatever_is_killed(
    seed: int,
    count: int,
    server: PrivateServer,
    store: Store,
    worker_pool: WorkerPool,
    tmp_path: Path,
    faults: Faults,
) -> None:
    rng = random.Random(seed)
    program = load(write_program(tmp_path, "programmer", AGENT))
    model = Model(random.Random(rng.random()), server.url)
    takeovers = Takeovers(store, model)
    kills: list[Kill] = []
    kinds = list(get_args(Kind))
    rng.shuffle(kinds)
    runs = lapsed = 0
    with worker_pool.scripted({"You are PROGRAMMER": model.agent, "You are ASKED": model.asked}):
        worker_pool.start_ready(WORKERS)
        while len(kills) < count:
            runs += 1
            root = launch_root(store, program, "Count the lines.", f"run-{runs}")
            root.create(TEXT)
            model.run = root.id
            waker(store.url, store.prefix)(root.id)
            killer = Killer(server, store, worker_pool, model)
            most = min(rng.randint(1, KILLS_OF_RUN), count - len(kills))
            while len(killer.kills) < most and killer.kill_one(kinds[len(kills + killer.kills) % 4], rng):
                faults.note(f"{killer.kills[-1].kind} killed")
                takeovers.wait(killer.kills[-1])
            wait_until(lambda root=root: store.tree(root.id).live == 0, PATIENCE_S, f"the end of {root.id}")
            check_run(store, tmp_path, model, killer.kills)
            lapsed += lapsed_leases(store, root.id, killer.kills)
            kills += killer.kills

    print(f"{runs} runs, {lapsed} leases lapsed without a kill, {model.repeated_calls} calls made again")
    print(kill_table(kills, model.sent, takeovers))
