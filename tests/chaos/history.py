"""Observations during faults, and the checks of them afterwards.

The observer reads every descriptor as soon as it is listed: a listed descriptor can be read completely, and
a descriptor of a process that keeps its table still exists at the end, unchanged.
"""

from __future__ import annotations

import statistics
import time
from contextlib import AbstractContextManager, suppress

from fdstore.agents.loop.conversation import Assistant, Result, decode_entry
from fdstore.agents.runtime.periodic import run_periodically
from fdstore.client import Process, Store
from fdstore.errors import FDStoreError, NotFound
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord
from fdstore.store.processes import journal
from tests.chaos.agent_tree import PROCESSES, TURNS, digest, expected_answer
from tests.chaos.agents import answer_of, record_of

LOOK_EVERY_S = 0.05


class Takeovers:
    """Times from the kill of a worker until another one continued or ended its processes."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._lost: dict[str, tuple[int, float]] = {}
        self.durations_s: list[float] = []

    def record(self) -> AbstractContextManager[None]:
        """Record takeovers while the block runs."""
        return run_periodically(LOOK_EVERY_S, self._look, "takeovers")

    def __str__(self) -> str:
        if not self.durations_s:
            return "no takeovers"
        median_s, worst_s = statistics.median(self.durations_s), max(self.durations_s)
        return f"{len(self.durations_s)} takeovers: median {median_s:.2f} s, worst {worst_s:.2f} s"

    def expect(self, lost: list[ProcessRecord]) -> None:
        """Register processes of a worker that was killed just now."""
        for record in lost:
            self._lost[record.id] = record.attempt, time.monotonic()

    def _look(self) -> bool:
        for process, (attempt, killed_at) in list(self._lost.items()):
            found = record_of(self._store, process)
            if found.losses and (found.attempt > attempt or found.state == "failed"):
                self.durations_s.append(time.monotonic() - killed_at)
            if found.attempt > attempt or found.state in ENDED:
                del self._lost[process]  # if `losses` is 0, it had ended or was released just before the kill
        return True


class Observer:
    """A reader of every descriptor in the tree of `root`."""

    def __init__(self, store: Store, root: str) -> None:
        self._store = store
        self._root = root
        self.seen: dict[tuple[str, str], str] = {}
        """Process and descriptor, with the digest of the text that was read."""
        self.problems: list[str] = []

    def watch(self) -> AbstractContextManager[None]:
        """Observe the tree while the block runs."""
        return run_periodically(LOOK_EVERY_S, self._look, "observer")

    def _look(self) -> bool:
        with suppress(FDStoreError):  # the store is unavailable at the moment
            for member in self._store.tree(self._root).members:
                self.look(self._store.process(member.id))
        return True

    def look(self, process: Process) -> None:
        """Read every descriptor that the process lists."""
        for listed in process.list():
            try:
                text = process.read(listed.fd, read_all=True).text
            except NotFound:
                if any(each.fd == listed.fd for each in process.list()):
                    self.problems.append(f"{process.id} lists {listed.fd}, which cannot be read")
                continue  # it was closed meanwhile
            if len(text) != listed.chars:
                self.problems.append(f"{process.id} {listed.fd} has {len(text)} of {listed.chars} characters")
            before = self.seen.setdefault((process.id, listed.fd), digest(text))
            if before != digest(text):
                self.problems.append(f"{process.id} {listed.fd} changed")

    def check_nothing_lost(self, *keepers: str) -> None:
        """Check that these processes still hold every descriptor they were observed with, unchanged."""
        for keeper in keepers:
            process = self._store.process(keeper)
            self.look(process)
            held = {listed.fd for listed in process.list()}
            lost = {fd for owner, fd in self.seen if owner == keeper} - held
            assert not lost, f"{keeper} lost {lost}"
        assert not self.problems, self.problems


def check_tree(store: Store, root: Process) -> tuple[ProcessRecord, ...]:
    """Check that a tree of agents (`agent_tree`) has all its processes and the answer of an undisturbed one,
    and that every process exited normally, queried its model as often as its program does, and has one result
    for each call. Return the records."""
    members = store.tree(root.id).members
    assert len(members) == PROCESSES, members
    assert answer_of(store, root.id).text == expected_answer()
    for member in members:
        assert (member.state, member.exit_code) == ("exited", 0), member
        entries = [decode_entry(record) for record in store.run(journal.read(store.prefix, member.id))]
        answers = [entry for entry in entries if isinstance(entry, Assistant)]
        results = [entry.call for entry in entries if isinstance(entry, Result)]
        assert len(answers) == turns_of(member)
        assert sorted(results) == sorted(block["id"] for answer in answers for block in answer.calls)
    return members


def turns_of(member: ProcessRecord) -> int:
    """Return how often an undisturbed process queries its model."""
    return TURNS[(member.program or "").rpartition("/")[2].removesuffix(".toml")]
