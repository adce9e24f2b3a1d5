"""Agents that wait for a person, as a worker would leave them."""

from __future__ import annotations

from typing import Any

from fdstore.agents.loop.conversation import Start
from fdstore.client import Process
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import processes, questions, waiting
from fdstore.store.processes.questions import StoredQuestion
from tests.on_redis.child_agents import claim
from tests.on_redis.inspector.journals import answer, converse

DAY_S = 86_400.0


def agent_of(proc: Process, *calls: tuple[str, str, Any]) -> ProcessHandle:
    """Return a running child agent whose last answer makes these calls; it holds fd:1 of its parent."""
    child = proc.store.run(processes.create_child(proc.handle, ["fd:1"], state="ready"))
    running = claim(proc.store, child.id)
    converse(Process(proc.store, running), Start(system="", content="Deploy it."), answer("I ask.", *calls))
    return running


def ask(proc: Process, running: ProcessHandle, call: str = "t1", **question: Any) -> int:
    """Ask a question of an agent, park it, and return the number of the question."""
    arguments = question.pop("arguments", None)
    if arguments is not None:
        question |= {"kind": "approval", "arguments": questions.write_arguments(arguments)}
    stored = StoredQuestion(**{"kind": "question", "timeout_s": DAY_S, "call": call, **question})
    number = proc.store.run(questions.ask(running, call, stored)).number
    proc.store.run(waiting.park(running, [], None, [number]))
    return number
