"""Workers that die while running pipelines: each pipeline ends complete or broken, and agents can start over.

A pipeline is never run twice, so an agent whose pipeline was lost sees the loss and starts another one. The
output of the lost one stays readable: a prefix of the right text, without EOF.
"""

from __future__ import annotations

import random
import re
import threading
from pathlib import Path

import pytest

from fdstore.client import Process, Store
from fdstore.errors import StreamBroken
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import ProcessRecord
from fdstore.store.processes import pipelines
from fdstore.testing import Reply, Request, call, say, slow
from tests.chaos.agent_tree import digest
from tests.chaos.agents import answer_of, launch, write_program
from tests.chaos.history import Takeovers
from tests.chaos.worker_pool import WorkerPool
from tests.waiting import PATIENCE_S, wait_until

PLUMBERS = 3
KILLS = 3
LONGEST_PAUSE_S = 1.0
PACE_S = 0.15

LINES = [f"line {number} of the input\n" for number in range(2000)]
PIECES = ["".join(LINES[at : at + 400]) for at in range(0, len(LINES), 400)]
INPUT = "".join(PIECES)
OUTPUT = "".join(f"{number:6}\t{line}" for number, line in enumerate(LINES, 1))
"""The output of `cat -n` for it."""

SECTIONS = """
[tools]
enabled = ["read_fd", "write_fd", "pipe", "wait"]
[commands]
allow = ["cat"]
[limits]
max_losses = 1000
max_turns = 1000
"""


def retry_until_complete(request: Request) -> Reply:
    """Feed a pipeline piece by piece, wait for it, and answer with its output. Start over if the pipeline
    was lost."""
    results = request.tool_results()
    begun = [number for number, result in enumerate(results) if ' in_fd="' in result.text]
    if not begun:
        return _pipe()
    made, since = results[begun[-1]].text, results[begun[-1] + 1 :]
    fed = len(since)
    if any(result.is_error for result in since):
        return _pipe()
    if fed < len(PIECES):
        last = fed == len(PIECES) - 1
        return slow(call("write_fd", data=PIECES[fed], fd=_fact(made, "in_fd"), eof=last), PACE_S)
    if fed == len(PIECES):
        return call("wait", target=_fact(made, "process"))
    if 'state="exited"' not in since[len(PIECES)].text:
        return _pipe()
    if fed == len(PIECES) + 1:
        return call("read_fd", fd=_fact(made, "fd"), read_all=True)
    text = since[-1].text
    return say(digest(text[text.index(">\n") + 2 : text.rindex("\n</")]))


def _pipe() -> Reply:
    return slow(call("pipe", commands=["cat", "cat -n"], in_fd="new", tee=[1]), PACE_S)


def _fact(element: str, name: str) -> str:
    found = re.search(rf' {name}="([^"]+)"', element)
    assert found, element[:500]
    return found[1]


class Followers:
    """Threads that follow every output of these processes as soon as it exists."""

    def __init__(self, store: Store, roots: list[str]) -> None:
        self._store = store
        self._roots = roots
        self._threads: dict[tuple[str, str], threading.Thread] = {}
        self.read: dict[tuple[str, str], tuple[str, str]] = {}
        """Process and descriptor, with the text that was read and how it ended."""

    def look(self) -> None:
        """Start to follow new outputs."""
        for root in self._roots:
            for listed in self._store.process(root).list():
                if (root, listed.fd) not in self._threads:
                    thread = threading.Thread(target=self._follow, args=(root, listed.fd), daemon=True)
                    self._threads[root, listed.fd] = thread
                    thread.start()

    def _follow(self, root: str, fd: str) -> None:
        text = ""
        try:
            for piece in self._store.process(root).follow(fd):
                text += piece
        except StreamBroken as error:
            self.read[root, fd] = text, error.reason
        else:
            self.read[root, fd] = text, "eof"

    def end(self) -> None:
        self.look()
        for thread in self._threads.values():
            thread.join(PATIENCE_S)


@pytest.mark.thorough("one moment of it is tested with workers")
def test_a_pipeline_whose_worker_is_killed_is_complete_or_broken_and_never_run_twice(
    seed: int, store: Store, worker_pool: WorkerPool, tmp_path: Path
) -> None:
    rng = random.Random(seed)
    program = write_program(tmp_path, "plumber", SECTIONS)
    with worker_pool.scripted(retry_until_complete):
        worker_pool.start_ready(KILLS + 1, 4)
        roots = [launch(store, program, "pipe it").id for _ in range(PLUMBERS)]
        followers = Followers(store, roots)

        def all_ended() -> bool:
            followers.look()
            return all(store.tree(root).live == 0 for root in roots)

        takeovers = Takeovers(store)
        with takeovers.record():
            for _ in range(KILLS):
                threading.Event().wait(rng.uniform(0, LONGEST_PAUSE_S))
                all_ended()
                takeovers.expect(worker_pool.kill_one(store, roots, rng))
            wait_until(all_ended, PATIENCE_S, "the end of all agents")
        followers.end()

    outcomes = {"whole": 0, "broken": 0}
    for root in roots:
        ended = answer_of(store, root)
        assert (ended.record.state, ended.text) == ("exited", digest(OUTPUT)), worker_pool.logs()
        made = [member for member in store.tree(root).members if member.id != root]
        for pipeline in made:
            outcomes[check_end(store, store.process(root), pipeline)] += 1
        for listed in store.process(root).list():
            text, end = followers.read[root, listed.fd]
            assert text == store.process(root).read(listed.fd, read_all=True).text
            assert end == ("eof" if listed.state == "sealed" else listed.reason)
    print(f"{outcomes}, {takeovers}")


def check_end(store: Store, owner: Process, pipeline: ProcessRecord) -> str:
    """Return whether a pipeline is `whole` or `broken`; fail if it is neither or inconsistent."""
    assert pipeline.state in ENDED, pipeline
    assert pipeline.attempt <= 1
    fds = store.run(pipelines.fds_of(store.prefix, pipeline.id))
    assert fds
    found = {fd: owner.stat(fd) for fd in (fds.fd, fds.stderr_fd, *fds.tee_fds)}
    right = {fds.fd: OUTPUT, fds.stderr_fd: "", fds.tee_fds[0]: INPUT}
    texts = {fd: owner.read(fd, read_all=True).text for fd in found}
    if pipeline.state == "exited":
        assert texts == right
        assert {d.state for d in found.values()} == {"sealed"}
        return "whole"
    assert (pipeline.state, pipeline.reason) == ("failed", "worker_lost")
    assert {(d.state, d.reason) for d in found.values()} <= {("broken", "writer_lost"), ("sealed", None)}
    for fd, text in texts.items():
        assert right[fd].startswith(text)
        assert found[fd].state == "broken" or text == right[fd]
    return "broken"
