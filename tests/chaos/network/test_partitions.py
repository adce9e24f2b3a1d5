"""Partitions, half-open links, delays and losses between Redis, workers and clients: what was acknowledged is
there once, and everything ends soon after the network heals."""

from __future__ import annotations

import os
import random
import threading
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from fdstore.agents.runtime.periodic import run_periodically
from fdstore.client import Store
from fdstore.errors import NotFound
from fdstore.model.lifecycle import ENDED
from fdstore.store.processes import leases, process_records
from fdstore.testing import ScriptedModel
from tests.chaos.agents import write_program
from tests.chaos.conftest import Faults
from tests.chaos.network import checks
from tests.chaos.network.agents import DELIVERED, SECTIONS, Script, read_work
from tests.chaos.network.checks import Attempt, Sighting, Tally
from tests.chaos.network.conftest import CLIENTS, WORKERS
from tests.chaos.network.machine import PROJECT
from tests.chaos.network.network import Network
from tests.chaos.network.operations import Operation, Outcome, by_subject, read_history
from tests.chaos.network.schedule import Fault, plan_faults
from tests.chaos.network.switch import PASS
from tests.chaos.worker_pool import WorkerPool
from tests.children import Child
from tests.waiting import PATIENCE_S, stretched, wait_until

MACHINE_WORKER = Path(__file__).parent / "machine_worker.py"
LOOK_EVERY_S = 0.05
ROOT = "clients"


class Weather(NamedTuple):
    """The seconds of faults, the factor by which leases and time-outs are shortened, and the leases after the
    healing within which everything ends: in short ones, forks and a busy machine weigh more."""

    seconds: float
    faster: float
    ends_within_leases: float


class Sightings:
    """The records of all agents, as seen past the network while the test runs."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.agents: list[Sighting] = []
        self.broken: dict[str, int] = {}
        """The characters of each stream when it was first seen broken."""

    def look(self) -> bool:
        for tree in self._store.trees():
            for member in tree.members:
                if member.id != ROOT:
                    self.agents.append(Sighting(member.id, member.attempt, member.worker, member.state))
        try:
            for stream in self._store.process(ROOT).list():
                if stream.state == "broken":
                    self.broken.setdefault(stream.fd, stream.chars)
        except NotFound:
            pass  # the clients have not begun
        return True


def inject(network: Network, faults: Faults, planned: list[Fault]) -> None:
    """Let these faults happen, then heal the network."""
    began_s = time.monotonic()
    steps = [(fault.begins_s, number, True) for number, fault in enumerate(planned)]
    steps += [(fault.ends_s, number, False) for number, fault in enumerate(planned)]
    for at_s, number, begins in sorted(steps):
        threading.Event().wait(max(0.0, began_s + at_s - time.monotonic()))
        fault = planned[number]
        for direction, rule in fault.rules:
            network.set_rule([direction], rule if begins else PASS)
        if begins:
            faults.note(fault.kind.name)
    network.heal()


def seconds_until_ended(store: Store, clients: Child[str]) -> dict[str, float]:
    """Wait for the ends of all agents and of the clients' calls; return how long after now they were.
    Prints what the last agents went through."""
    began_s = time.monotonic()
    took_s: dict[str, float] = {}
    waits: dict[str, list[str]] = {}

    def look() -> bool:
        now_s = time.monotonic() - began_s
        if clients.poll() is not None:
            took_s.setdefault("clients", now_s)
        members = [member for tree in store.trees() for member in tree.members if member.id != ROOT]
        left = [member for member in members if member.state not in ENDED and member.state != "open"]
        for member in left:
            seen = f"{member.state} attempt {member.attempt} on {member.worker or '-'}"
            if not (known := waits.setdefault(member.id, [])) or not known[-1].endswith(seen):
                known.append(f"{now_s:.1f} s {seen}")
        if not left:
            took_s.setdefault("agents", now_s)
        else:
            took_s.pop("agents", None)  # a launch was under way
        return len(took_s) == 2 and "clients" in took_s

    wait_until(look, PATIENCE_S, "the end of all agents and calls")
    for agent, seen in sorted(waits.items(), key=lambda item: float(item[1][-1].split()[0]))[-3:]:
        print(f"{agent} after the network healed: {', '.join(seen)}")
    return took_s


def judge(store: Store, folder: Path, sightings: Sightings) -> list[Tally]:
    """Return what the checkers find."""
    operations = read_history(folder.glob("*.history"))
    process = store.process(ROOT)
    names, streams = Tally("names"), Tally("streams")
    readers, drafts = Tally("readers"), Tally("drafts")
    parcels: list[Attempt] = []

    named = [operation for operation in operations if operation.kind in ("read", "put")]
    for key, calls in by_subject(named, lambda operation: operation.subject).items():
        found = process.find(key)
        names += checks.check_name(calls, found.source if found else "")

    written = [operation for operation in operations if operation.kind in ("append", "late", "end")]
    seen = [operation for operation in operations if operation.kind == "seen"]
    for fd, calls in by_subject(written, lambda operation: operation.subject).items():
        final = process.read(fd, read_all=True).text
        streams += checks.check_once("streams", pieces(calls), final.splitlines())
        if sightings.broken.get(fd, len(final)) != len(final):
            streams.note(f"{fd} was broken after {sightings.broken[fd]} characters and has {len(final)} now")
        readers += checks.check_readers(
            final, {each.expected: (each.value, True) for each in seen if each.subject == fd}
        )

    launches = [operation for operation in operations if operation.kind == "launch"]
    agents = Tally("agents")
    for launch in launches:
        agents.outcomes[launch.outcome] += 1
        try:
            record = store.run(process_records.record(store.prefix, launch.subject))
        except NotFound:
            if launch.outcome == "acknowledged":
                agents.note_lost(launch.subject)
            continue
        if record.state == "open" and launch.outcome != "acknowledged":
            continue  # it was made and never launched
        if (record.state, record.exit_code) != ("exited", 0):
            agents.note(f"{launch.subject} is {record.state} ({record.reason})")
        work = read_work(store, launch.subject)
        drafts += checks.check_once("drafts", work.lines, work.draft)
        parcels += work.parcels

    delivered = (folder / DELIVERED).read_text().splitlines()
    exports = [operation for operation in operations if operation.kind == "export"]
    saved = checks.check_exports(exports)
    left = {path.name for path in (folder / "exports").iterdir()} - {each.subject for each in exports}
    if left:
        saved.note(f"exports left {sorted(left)}")
    return [
        names,
        streams,
        readers,
        drafts,
        checks.check_once("tools", parcels, delivered, ordered=False),
        agents,
        checks.check_claims(sightings.agents, ENDED),
        saved,
        checks.check_errors(operations, documented_types()),
    ]


def pieces(calls: list[Operation]) -> list[Attempt]:
    """Return the pieces of one stream with their outcomes. Text that could not be stored goes with the next
    call, so a later acknowledged one acknowledges it too; after the end of a stream none is accepted."""
    found: list[Attempt] = []
    outcome: Outcome = "unknown"
    for call in sorted(calls, key=lambda call: call.began_s, reverse=True):
        if call.kind != "late" and call.outcome == "acknowledged":
            outcome = "acknowledged"
        if call.kind != "end":
            found.append(Attempt(call.value, "refused" if call.kind == "late" else outcome))
    return found[::-1]


def documented_types() -> set[str]:
    """Return the types of errors in the reference."""
    lines = (PROJECT / "docs/reference/errors.md").read_text().splitlines()
    return {line.split("`")[1] for line in lines if line.startswith("| `")}


@pytest.mark.timeout(4 * PATIENCE_S)
@pytest.mark.parametrize(
    "weather",
    [
        pytest.param(
            Weather(seconds=18, faster=5, ends_within_leases=2),
            id="short",
            marks=pytest.mark.thorough("each kind of fault has tests of its own"),
        ),
        pytest.param(
            Weather(seconds=120, faster=1, ends_within_leases=1), id="real-times", marks=pytest.mark.long
        ),
    ],
)
def test_nothing_acknowledged_is_lost_and_nothing_happens_twice_on_a_network_that_parts(
    seed: int,
    weather: Weather,
    network: Network,
    url: str,
    store: Store,
    worker_pool: WorkerPool,
    tmp_path: Path,
    faults: Faults,
) -> None:
    faster = min(weather.faster, float(os.environ["CHAOS_FASTER"]))
    lease_s = leases.LEASE_S / faster
    planned = plan_faults(random.Random(seed), [*WORKERS, CLIENTS], weather.seconds, lease_s)
    print(f"seed {seed}, leases of {lease_s:g} s", *planned, sep="\n")
    script = Script()
    sightings = Sightings(store)
    write_program(tmp_path, "agent", SECTIONS)
    with ScriptedModel(script) as model:
        for name in WORKERS:
            worker_pool.environment = {
                **worker_pool.environment,
                **model.environ,
                "ANTHROPIC_BASE_URL": f"http://{network.offer(name, int(model.base_url.rpartition(':')[2]))}",
                "CHAOS_FASTER": f"{faster:g}",
                "FDSTORE_TEST_MACHINE": str(network.machines[name].pid),
            }
            worker_pool.start_worker(4, url=url, program=MACHINE_WORKER)
        for worker in worker_pool.alive:
            worker.wait_until_ready()
        clients = network.machines[CLIENTS].start_module(
            *("tests.chaos.network.workload", url, str(tmp_path), str(seed)),
            environ=worker_pool.environment,
            deadline_s=weather.seconds + PATIENCE_S,
        )
        with clients:
            assert clients.stdin is not None
            with run_periodically(LOOK_EVERY_S, sightings.look, "sightings"):
                # the weather is to meet agents at work, however long their workers take to begin
                wait_until((tmp_path / DELIVERED).exists, what="the first parcel")
                inject(network, faults, planned)
                script.is_over.set()
                clients.stdin.close()
                took_s = seconds_until_ended(store, clients)
            assert clients.returncode == 0

    tallies = judge(store, tmp_path, sightings)
    print(checks.table(tallies))
    print("after the network healed:", ", ".join(f"{what} ended in {s:.1f} s" for what, s in took_s.items()))
    print("frames:", dict(network.switch.frames))
    last = max(read_history(tmp_path.glob("*.history")), key=lambda operation: operation.ended_s)
    print(f"the last call: {last.kind} of {last.subject}, {last.ended_s - last.began_s:.1f} s")
    assert [problem for tally in tallies for problem in tally.problems] == []
    assert max(took_s.values()) <= stretched(lease_s * weather.ends_within_leases), took_s
