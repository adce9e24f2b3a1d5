"""Processes with conversations, written as an agent would."""

from __future__ import annotations

import shlex
from typing import Any

from fdstore.agents.loop.conversation import Assistant, Cleared, Entry, Note, Result, Start, encode_entry
from fdstore.client import Process
from fdstore.elements.facts import ResultFacts
from fdstore.elements.kinds import FdContent, FdResult, ProcessResult
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.processes import asks, journal, pipelines, processes
from fdstore.store.processes.asks import Ask, AskPart, AskSettings
from fdstore.store.processes.pipelines import PipeFds
from fdstore.tools.process_task import PipeTask, SpawnTask, encode_task


def answer(text: str, *calls: tuple[str, str, Any], **more: Any) -> Assistant:
    """An answer with tool calls: id, name and arguments of each."""
    blocks: list[dict[str, Any]] = [{"type": "text", "text": text}] if text else []
    blocks += [{"type": "tool_use", "id": id_, "name": name, "input": given} for id_, name, given in calls]
    stop = "tool_use" if calls else "end_turn"
    return Assistant(content=blocks, stop_reason=stop, input_tokens=1200, output_tokens=30, **more)


def converse(proc: Process, *entries: Entry, end: str = "") -> None:
    """Write the task and these records to the journal of a process, and end it if a state is given."""
    records = [encode_entry(SpawnTask(query="What broke the build?")), *map(encode_entry, entries)]
    length = proc.store.run(journal.length(proc.handle))
    proc.store.run(journal.append(proc.handle, length, records if not length else records[1:]))
    if end:
        proc.store.run(processes.end(proc.handle, end))  # type: ignore[arg-type]


SHORT = (
    Start(system="You are careful.", content="What broke the build?"),
    answer("I look.", ("t1", "read_fd", {"fd": "fd:1#L1-9", "count": 2}), ("t2", "search_web", {"q": "E42"})),
    Result(
        call="t1",
        content='<fd_content fd="fd:1" page="1">the log</fd_content>',
        facts=ResultFacts(shown=(FdContent(fd="fd:1", page=1),)),
    ),
    Result(call="t2", content="no such host", is_error=True),
    Note(text="ref:plan was not stored."),
    Cleared(lines={"turn1:t1": "[cleared: read_fd fd:1]"}),
    answer("A missing comma did."),
)


SPARED = (
    Start(system="", content="Which service became slower?"),
    answer(
        "I read its log.", ("t1", "service_log", {"service": "billing"}), ("t2", "spawn", {"query": "Why?"})
    ),
    Result(
        call="t1",
        content="<fd_result/>" + "the beginning " * 30,
        facts=ResultFacts(
            stored=(FdResult(fd="fd:1", pages=30, total_chars=90_000, tokens=30_000, shown_chars=400),)
        ),
    ),
    Result(
        call="t2",
        content="Its model was away.",
        is_error=True,
        facts=ResultFacts(processes=(ProcessResult(process="triage.1", state="failed"),)),
    ),
    answer("It waits for a disk."),
)
"""A conversation that a descriptor keeps short, and that has a child."""


def spawns(count: int, failed: tuple[int, ...] = ()) -> list[Entry]:
    """An answer that calls `count` agents, and their results, the last one first."""
    calls = [
        (f"s{n}", "spawn_agent", {"program_name": "summarizer", "query": f"part {n}"}) for n in range(count)
    ]
    results = [
        Result(call=f"s{n}", content=f"{'no ' if n in failed else ''}summary {n}", is_error=n in failed)
        for n in reversed(range(count))
    ]
    return [answer("I ask for help.", *calls), *results]


def ready_child(proc: Process, task: str = "Which?") -> ProcessHandle:
    """Create a child that waits for a worker."""
    brief = encode_task(SpawnTask(query=task))
    return proc.store.run(processes.create_child(proc.handle, None, state="ready", brief=brief))


def failed_child(proc: Process, reason: str, exit_code: int | None = None) -> ProcessHandle:
    child = ready_child(proc)
    proc.store.run(processes.end(child, "failed", exit_code=exit_code, reason=reason))
    return child


def pipe(proc: Process, *commands: str, in_fd: str, tee: tuple[int, ...] = ()) -> PipeFds:
    """Start a pipeline, which no worker runs."""
    task = PipeTask(commands=[*map(shlex.split, commands)], page_size=4000, tee=[*tee])
    start = pipelines.start(proc.handle, encode_task(task), title=" | ".join(commands), in_fd=in_fd, tees=tee)
    return proc.store.run(start)


def ask_about_parts(proc: Process, count: int) -> None:
    """Write a call of `run_python` to the journal, and `count` asks of it, of which the first has failed."""
    code = "answers = await asyncio.gather(*[ask('Which?', part) for part in parts])"
    converse(proc, Start(system="", content="Which?"), answer("", ("t1", "run_python", {"code": code})))
    asked = [Ask(number, "Which dates occur?", [AskPart(f"fd:1#L{number + 1}")]) for number in range(count)]
    asked[0] = Ask(0, "Which dates occur?", ["too long " * 100_000])
    proc.store.run(asks.start(proc.handle, "t1", asked, AskSettings(model="any", system="")))
