"""An agent that crashes at any request is continued by the next attempt and ends in the same state."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import pytest

from fdstore.agents.loop.conversation import Cleared, Note, Offered, Result, Undeferred, decode_entry
from fdstore.client import Store
from fdstore.model.lifecycle import ENDED
from fdstore.model.records import TreeLimits
from fdstore.results.config import FDConfig
from fdstore.testing import Request, Turn, Usage, call, say, turn
from fdstore.tools.clearing import ClearingConfig
from tests.dialects import every_dialect
from tests.on_redis.running_agents import READER, SMALL, Agents, AgentsOf, Crashed, CrashingStore, ran, tool
from tests.thorough import thorough

Execute = Callable[..., Any]

ESTIMATE = re.compile(rb"(?<=tokens=\\\")~[0-9]+|(?<=\"tokens\":)[0-9]+")
"""An estimate of tokens in a journal: of a text that an earlier attempt stored, it is made from the ends."""


SPAWN = call(
    "spawn",
    {
        "program_name": "reader",
        "query": "Read it.",
        "additional_preload_fds": ["fd:3#L3-5", "ref:plan"],
        "additional_preload_files": ["notes.txt"],
    },
    id="toolu_spawn",
)


def long_script(request: Request) -> Turn:
    """Answer as a deterministic script that uses every kind of tool."""
    if "READER" in request.system:
        if request.turn_number == 0:
            return call("read_fd", fd="ref:plan", id="toolu_read")
        return say("It says much. " * 20)
    match request.turn_number:
        case 0:
            return turn(call("lines", count=40, id="toolu_lines"), call("echo", words="b", id="toolu_echo"))
        case 1:
            plan = say('<ref id="plan">Read, then write.</ref><ref id="gone">x</ref>')
            return turn(plan, SPAWN, call("close_fd", fd="ref:gone", id="toolu_close"))
        case 2:
            write = call("fd_to_file", fd="ref:plan", file_path="plan.txt", id="toolu_file")
            part = call("read_fd", fd="fd:3#L7", extract_to_new_fd=True, id="toolu_part")
            return turn(write, part, call("breaks", words="no disk", id="toolu_breaks"))
    return say("All is done.")


CALL_OF = {"lines 40": "toolu_lines", "b": "toolu_echo", "no disk": "toolu_breaks"}


def launch_long_script(agents: Agents) -> None:
    (agents.folder / "notes.txt").write_text("one\ntwo\n")
    agents.launch(
        "word " * 40,
        tools=("read_fd", "fd_to_file", "close_fd", "spawn"),
        python=(tool("lines"), tool("echo"), tool("breaks")),
        file_descriptor=SMALL,
        preload=(str(agents.folder / "notes.txt"),),
        preload_root=str(agents.folder),
        others=[READER],
    )


REFERENCES = ("tool_reference",)
CALLS_OF_RECORDS = {
    "lines 1200": "toolu_whole",
    "lines 1500": "toolu_stored",
    "lines 950": "toolu_whole_too",
    "lines 1400": "toolu_late",
}


def script_of_records(request: Request) -> Turn:
    """Answer so that the journal gets each kind of record beside answers and results: the tools that were
    held back, results that are shown whole or in part and cleared later, and refused passages."""
    last = request.tool_results()[-1] if request.tool_results() else None
    much = Usage(input_tokens=9000)
    match request.turn_number:
        case 0:
            return turn(
                call("lines", count=1200, id="toolu_whole"), call("blocks", count=3, id="toolu_blocks")
            )
        case 1:
            return call("lines", count=1500, id="toolu_stored")
        case 2:
            assert last is not None
            assert last.text.startswith('<fd_result fd="fd:2"')
            return call("read_fd", fd="fd:2", start=2, id="toolu_read")
        case 3:
            refused = say(f'<ref id="plan">A plan.</ref><ref id="long">{"word " * 8000}</ref>')
            return turn(refused, call("read_fd", fd="ref:plan", id="toolu_plan"), usage=much)
        case 4:
            return turn(
                call("lines", count=950, id="toolu_whole_too"),
                call("lines", count=1400, id="toolu_late"),
                usage=much,
            )
        case 5:
            return turn(say('<ref id="long">Shorter.</ref> <ref id="more">'), stop_reason="pause_turn")
    return say(f"{'word ' * 8000}</ref>All is done.")


def launch_script_of_records(agents: Agents, way: Mapping[str, Any]) -> None:
    agents.launch(
        "A task.",
        tools=("read_fd", "search_fd"),
        python=(tool("lines"), tool("blocks")),
        clearing=ClearingConfig(clear_at_tokens=2000, keep_turns=1),
        file_descriptor=FDConfig(whole_chars=11_000),
        tree_limits=TreeLimits(tree_bytes=60_000),
        **way,
    )


def final_state(agents: Agents) -> dict[str, Any]:
    """Return the final state of an agent, without times and attempt counts."""
    tree = agents.store.tree("solo")
    plan = agents.folder / "plan.txt"
    return {
        "states": [(m.id, m.state, m.exit_code, m.reason) for m in tree.members],
        "answer": agents.answer(),
        "journals": [
            [decode_entry(ESTIMATE.sub(b"0", record)) for record in agents.journal(member.id)]
            for member in tree.members
        ],
        "held": [(d.fd, d.chars, d.source, d.producer) for d in agents.store.process("solo").list()],
        "counts": (tree.fds, tree.bytes, tree.live),
        "file": plan.read_text() if plan.exists() else None,
    }


def run_until_crash(agents: Agents, crashing: CrashingStore) -> bool:
    """Run the tree on a store that crashes; return whether it crashed before the tree ended."""
    try:
        while ready := [m.id for m in agents.store.tree("solo").members if m.state == "ready"]:
            agents.attempt(ready[0], crashing)
    except Crashed:
        return True
    return False


def check_every_crash(
    agents: Agents,
    launch: Callable[[Agents], None],
    calls: dict[str, str],
    expected: dict[str, Any],
    execute: Execute,
    redis_url: str,
    first: int,
) -> int:
    """Crash the agent before every third of its requests, continue it, and compare its final state. A call in
    the journal is not run again. Return the number of the last."""
    for requests in itertools.count(first, 3):
        execute("FLUSHALL")
        ran.clear()
        launch(agents)
        with CrashingStore(redis_url, requests) as crashing:
            crashed = run_until_crash(agents, crashing)
        finished = {result.call for result in agents.results()}
        before = len(ran)
        for member in agents.store.tree("solo").members:
            if member.state not in ENDED:
                agents.lose(member.id)
        agents.run_all("solo")

        assert final_state(agents) == expected, f"after a crash before request {requests}"
        assert finished.isdisjoint(calls[words] for words in ran[before:])
        if not crashed:
            return requests
    raise AssertionError("it never ended")


@pytest.mark.thorough("a crash at every request")
@every_dialect
@pytest.mark.parametrize("first", [0, *thorough("the requests between", 1, 2)])
def test_an_agent_that_crashes_at_any_request_ends_with_the_same_state(
    agents_of: AgentsOf, execute: Execute, redis_url: str, first: int
) -> None:
    agents = agents_of(long_script)
    launch_long_script(agents)
    agents.run_all("solo")
    expected = final_state(agents)
    assert expected["states"] == [("solo", "exited", 0, None), ("solo.1", "exited", 0, None)]

    last = check_every_crash(agents, launch_long_script, CALL_OF, expected, execute, redis_url, first)
    assert last > 60


@pytest.mark.thorough("more kinds of records in the same crashes")
@pytest.mark.parametrize("first", [0, 1, 2])
@pytest.mark.parametrize(
    ("dialect", "way", "refuses"),
    [
        ("anthropic", {"prompt_cache": False}, ()),
        ("anthropic", {"deferred_tools": True}, ()),
        ("anthropic", {"deferred_tools": True}, REFERENCES),
        ("openai", {"prompt_cache": False}, ()),
        ("openai-responses", {"prompt_cache": False}, ()),
    ],
    indirect=["dialect"],
    ids=["left out", "deferred", "refused", "left out of chat", "left out of responses"],
)
def test_every_kind_of_record_is_written_once_wherever_the_agent_crashes(
    agents_of: AgentsOf,
    execute: Execute,
    redis_url: str,
    way: Mapping[str, Any],
    refuses: tuple[str, ...],
    first: int,
) -> None:
    agents = agents_of(script_of_records, refuses=refuses)
    launch = partial(launch_script_of_records, way=way)
    launch(agents)
    agents.run_all("solo")
    expected = final_state(agents)
    [entries] = expected["journals"]
    kinds = Counter(type(entry) for entry in entries)
    whole = {each.call for each in entries if isinstance(each, Result) and "\nline 900\n" in each.content}
    assert expected["states"] == [("solo", "exited", 0, None)]
    assert (kinds[Offered], kinds[Cleared], kinds[Note]) == (1, 4, 2)
    assert kinds[Undeferred] == len(refuses)
    assert {"toolu_whole", "toolu_whole_too"} <= whole
    assert "toolu_late" not in whole

    calls = CALLS_OF_RECORDS
    last = check_every_crash(agents, launch, calls, expected, execute, redis_url, first)
    assert last > 40


@every_dialect
def test_a_passage_comes_from_the_answer_in_the_journal(
    agents_of: AgentsOf, store: Store, execute: Execute, redis_url: str
) -> None:
    """A repeated model call returns another answer; only the journaled answer counts."""
    answer_count = itertools.count()

    def script(_: Request) -> Turn:
        return say(f'<ref id="plan">plan {next(answer_count)}</ref>')

    agents = agents_of(script)
    for requests in itertools.count():
        execute("FLUSHALL")
        agents.launch(tools=("read_fd",))
        with CrashingStore(redis_url, requests) as crashing:
            crashed = run_until_crash(agents, crashing)
        if crashed and agents.record().state not in ENDED:
            agents.lose("solo")
            agents.run_all("solo")

        plan = store.process("solo").read("ref:plan").text
        assert agents.answer() == f'<ref id="plan">{plan}</ref>'
        assert [d.fd for d in store.process("solo").list()] == ["ref:plan"]
        if not crashed:
            break
