"""Concurrency: 200 agents on one worker, with a model that takes two seconds per answer.

An agent mostly waits, so the ideal time is that of the model alone: the turns of one agent, times the number
of agents per worker slot. The limit in practice is the CPU, since a worker's threads share one interpreter.
CPU time is measured too, and the memory of an agent while it runs, while it waits for a child, and
afterwards.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator

from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.program_loader import Bundle, LinkedProgram, Program
from fdstore.bench import texts
from fdstore.bench.measuring import BenchRow, at_least, at_most, format_duration, row, wait_until
from fdstore.bench.process_tree import memory_bytes, processor_s
from fdstore.bench.real_workers import record_of, run_worker, wait_for_end, wake
from fdstore.bench.stage import KB, MB, BenchStage
from fdstore.client import Process
from fdstore.testing import Reply, Request, ScriptedModel, call, say, slow

AGENTS = 200
PLACES = 200
TURNS = 2
FEW_PLACES = 8
WAITING = 100
PATIENCE_S = 120.0

READER = Program(name="reader", model="any", system="You are a reader.", tools=("read_fd",))
CHILD = Program(name="child", model="any", system="You are a child.")
PARENT = Program(
    name="parent",
    model="any",
    system="You are a parent.",
    tools=("spawn",),
    linked={"child": LinkedProgram(key="child")},
)
READERS = Bundle(root="reader", programs={"reader": READER})
PARENTS = Bundle(root="parent", programs={"parent": PARENT, "child": CHILD})


def rows(stage: BenchStage) -> Iterator[BenchRow]:
    yield from running(stage, *((50, 1.0) if stage.quick else (AGENTS, 2.0)))
    yield from waiting_agents(stage, WAITING)


def running(stage: BenchStage, agents: int, answer_s: float) -> Iterator[BenchRow]:
    """Run all agents concurrently; each reads a page between two answers."""
    pause_s = 0.0

    def reply(request: Request) -> Reply:
        first = request.turn_number == 0
        return slow(call("read_fd", fd="fd:1", start=2) if first else say("It was read."), pause_s)

    with ScriptedModel(reply) as model, run_worker(stage, model, PLACES) as pid:
        query = texts.of_kind(texts.LOGS, 10 * KB)  # long enough to be stored
        # warm up: the first agents make the worker import its modules
        finish(stage, begin(stage, READERS, query, FEW_PLACES))
        pause_s = answer_s
        memory, spent_s = memory_bytes(pid), processor_s(pid)
        start = time.monotonic()
        roots = begin(stage, READERS, query, agents)
        model.wait_for(TURNS * FEW_PLACES + agents, PATIENCE_S)
        grown = memory_bytes(pid) - memory
        beside = [beside_texts(stage, roots[0])]
        finish(stage, roots)
        passed = time.monotonic() - start
        spent_s = processor_s(pid) - spent_s
        beside.append(beside_texts(stage, roots[0]))
    ideal = TURNS * answer_s * -(-agents // PLACES)
    case = f"{agents} agents at once, {TURNS} answers of {answer_s:g} s"
    yield row(
        f"{case}: of the ideal",
        at_least(80, "%"),
        100 * ideal / passed,
        *map(format_duration, (passed, ideal)),
    )
    yield row("agent: the worker's processor", at_most(15, "ms"), 1000 * spent_s / agents)
    yield row("agent that runs: the worker's memory", at_most(0.5, "MB"), grown / agents / MB)
    yield row("agent that runs: Redis, beside texts and journal", at_most(8000, "B"), beside[0])
    yield row("agent that ended: Redis, beside texts and journal", at_most(8000, "B"), beside[1])


def waiting_agents(stage: BenchStage, agents: int) -> Iterator[BenchRow]:
    """Measure parents whose children hold all slots, or wait for one. No parent starts before all are queued,
    so that no child is queued before a parent."""
    begin_now, go_on = threading.Event(), threading.Event()
    begin_now.set()
    go_on.set()

    def reply(request: Request) -> Reply:
        if CHILD.system in request.system:
            go_on.wait(PATIENCE_S)
        elif request.turn_number == 0:
            begin_now.wait(PATIENCE_S)
            return call("spawn", program_name="child", query="Read.")
        return say("It was read.")

    with ScriptedModel(reply) as model, run_worker(stage, model, FEW_PLACES) as pid:
        finish(stage, begin(stage, PARENTS, "Have it read.", 2 * FEW_PLACES))
        memory = memory_bytes(pid)
        begin_now.clear()
        go_on.clear()
        roots = begin(stage, PARENTS, "Have it read.", agents)
        begin_now.set()
        wait_until(
            lambda: {record_of(stage, root.id).state for root in roots} == {"waiting"},
            "the expected state of all agents",
            PATIENCE_S,
        )
        grown = memory_bytes(pid) - memory
        beside = beside_texts(stage, roots[-1])
        go_on.set()
        finish(stage, roots)
    yield row("agent that waits: the worker's memory", at_most(0.05, "MB"), grown / agents / MB)
    yield row(
        "agent that waits, and its child: Redis, beside texts and journal", at_most(16_000, "B"), beside
    )


def begin(stage: BenchStage, bundle: Bundle, query: str, count: int) -> list[Process]:
    """Launch `count` agents and wake the worker for them."""
    roots = [launch_root(stage.store, bundle, query) for _ in range(count)]
    wake(stage, *(root.id for root in roots))
    return roots


def finish(stage: BenchStage, roots: list[Process]) -> None:
    """Wait until all have ended, and check that they succeeded."""
    for root in roots:
        record = wait_for_end(stage, root.id, PATIENCE_S)
        assert (record.state, record.exit_code, record.losses) == ("exited", 0, 0), record


def beside_texts(stage: BenchStage, root: Process) -> int:
    """Return the bytes of a tree's keys without TTL in Redis, excluding stored texts and conversations."""
    keys = list(stage.plain.scan_iter(f"{stage.store.prefix}:{{{root.id}}}*", count=10_000))
    own = [key for key in keys if not key.endswith((b":journal", b":pages")) and stage.plain.ttl(key) == -1]
    return sum(stage.plain.memory_usage(key, samples=0) or 0 for key in own)
