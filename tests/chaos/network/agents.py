"""Agents for failing networks: each writes a draft and hands parcels over until the test lets it end.

Every answer of the model has a number of its own. So a draft shows who wrote a line: an attempt that was
fenced got other answers than those in the journal.
"""

from __future__ import annotations

import itertools
import re
import threading
from typing import NamedTuple

from fdstore.agents.loop.conversation import Assistant, Result, decode_entry
from fdstore.client import Store
from fdstore.store.processes import journal
from fdstore.testing import Reply, Request, call, say, slow
from tests.chaos.network.checks import Attempt
from tests.chaos.network.operations import Outcome

SECTIONS = """
[tools]
enabled = ["write_fd"]
python = ["agent_tools:hand_over"]
[limits]
max_turns = 10000
max_losses = 10000
"""
DELIVERED = "delivered"
PACE_S = 0.1


class Script:
    """The model of all agents: a line of the draft and a parcel in turn, until `is_over` is set."""

    def __init__(self) -> None:
        self.is_over = threading.Event()
        self._numbers = itertools.count(1)

    def __call__(self, request: Request) -> Reply:
        if self.is_over.is_set():
            return say("done")
        label = f"{request.messages[0]['content']} answer {next(self._numbers)}"
        if request.turn_number % 2:
            return slow(call("hand_over", parcel=label), PACE_S)
        results = "".join(result.text for result in request.tool_results())
        if draft := re.search(r'fd="(fd:\d+)"', results):
            return slow(call("write_fd", fd=draft[1], data=f"{label}\n"), PACE_S)
        return slow(call("write_fd", data=f"{label}\n", eof=False), PACE_S)


class Work(NamedTuple):
    """The calls of an agent according to its journal, and the content of its draft."""

    lines: list[Attempt]
    parcels: list[Attempt]
    draft: list[str]


def read_work(store: Store, agent: str) -> Work:
    """Return what an ended agent did."""
    entries = [decode_entry(record) for record in store.run(journal.read(store.prefix, agent))]
    results = {entry.call: entry for entry in entries if isinstance(entry, Result)}
    work = Work([], [], [])
    for entry in entries:
        for block in entry.calls if isinstance(entry, Assistant) else ():
            outcome = _outcome(results.get(block["id"]))
            if block["name"] == "hand_over":
                work.parcels.append(Attempt(block["input"]["parcel"], outcome))
            else:
                work.lines.append(Attempt(block["input"]["data"].rstrip("\n"), outcome))
    process = store.process(agent)
    for descriptor in process.list():
        work.draft.extend(process.read(descriptor.fd, read_all=True).text.splitlines())
    return work


def _outcome(result: Result | None) -> Outcome:
    if result is None:
        return "unknown"
    if not result.is_error:
        return "acknowledged"
    return "unknown" if "unknown_outcome" in str(result.content) else "refused"
