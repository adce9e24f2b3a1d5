"""Round trips of each step of an agent: what its model waits for between two answers.

The agents run in this process on a scripted model, so a request to the model marks where a step ends.
"""

from __future__ import annotations

from collections.abc import Iterator

import redis

from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.models.anthropic import AnthropicModel
from fdstore.agents.loop.program_loader import Bundle, LinkedProgram, Program
from fdstore.agents.runtime.run_process import run_process
from fdstore.bench import texts
from fdstore.bench.counting import CONNECT, CountingRunner, Trips, counting_store
from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.bench.stage import KB
from fdstore.client import Store
from fdstore.files.permissions import Permissions
from fdstore.testing import Reply, Request, ScriptedModel, call, say, turn
from fdstore.tools.functions.python_tool import tool

LONG = texts.of_kind(texts.LOGS, 100 * KB)


def short(words: str) -> str:
    """Return the words."""
    return words


def long(words: str) -> str:
    """Return many words."""
    return LONG


@tool(repeatable=False)
def once(words: str) -> str:
    """Return many words, once."""
    return LONG


FUNCTIONS = tuple(f"{__name__}:{each.__name__}" for each in (short, long, once))

SOLO = Program(
    name="solo",
    model="any",
    system="You are SOLO.",
    tools=("read_fd", "search_fd", "close_fd"),
    python=FUNCTIONS,
    deferred_tools=True,
)
CHILD = Program(name="child", model="any", system="You are CHILD.", tools=("read_fd",))
WATCHED = Program(
    name="watched", model="any", system="You are WATCHED.", tools=("read_fd", "write_fd"), python=FUNCTIONS
)
PARENT = Program(
    name="parent",
    model="any",
    system="You are PARENT.",
    tools=("read_fd", "spawn", "wait"),
    python=FUNCTIONS,
    linked={name: LinkedProgram(key=name) for name in ("child", "watched")},
)
TREES = (
    Bundle(root="solo", programs={"solo": SOLO}),
    Bundle(root="parent", programs={"parent": PARENT, "child": CHILD, "watched": WATCHED}),
)

TURN = "turn"
"""The cases that begin with this are counted from the answer of the model on."""

TURNS: dict[str, list[tuple[str, Reply]]] = {
    "SOLO": [
        ("turn: a short result", call("short", words="a")),
        ("turn: the first long result, after which tools are offered", call("long", words="a")),
        ("turn: a long result", call("long", words="a")),
        ("turn: a long result of a tool that runs once", call("once", words="a")),
        ("turn: read_fd", call("read_fd", fd="fd:1", start=2)),
        ("turn: search_fd", call("search_fd", fd="fd:1", pattern="no such line")),
        ("turn: close_fd", call("close_fd", fd="fd:1")),
        ("the last answer, to the end", say("Done.")),
    ],
    "PARENT": [
        ("", call("long", words="a")),
        (
            "turn: spawn, until it waits",
            call("spawn", program_name="child", query="Read.", additional_preload_fds=["fd:1"]),
        ),
        (
            "turn: spawn in the background",
            call("spawn", program_name="watched", query="Work.", background=True),
        ),
        ("turn: wait, until it waits", call("wait", target="parent.2", seconds=60)),
        ("", say("Done.")),
    ],
    "CHILD": [
        ("turn: the first read_fd of a child", call("read_fd", fd="fd:1", start=2)),
        ("the last answer of a child, to the end", say("It is a log.")),
    ],
    "WATCHED": [
        ("turn of a child in the background: a long result", turn(say("I look."), call("long", words="a"))),
        ("", say("Done.")),
    ],
}
"""The turns of each agent: their cases ("" is not counted) and the answers of the model."""

STARTS = {
    ("solo", 0): "from the claim to the first question",
    ("parent", 1): "from the claim after a child has ended to the next question",
    ("parent.1", 0): "from the claim of a child with a stored text to its first question",
    ("parent.2", 0): "from the claim of a child in the background to its first question",
}
"""The cases of attempts, by the process and the number of its attempts before."""


def agent_steps(url: str) -> Iterator[Trips]:
    """Count the round trips of each step of these agents, in a first run and in a second one."""
    first, again = _Run(), _Run()
    with redis.Redis.from_url(url) as plain:
        plain.script_flush()
    store, runner = counting_store(url)
    with store:
        for run in (first, again):
            run.everything(store, runner)
    for case, trips in first.counts.items():
        yield Trips(case, trips, again.counts[case])


class _Run:
    """One run of all agents. `counts` has the round trips of each step."""

    def __init__(self) -> None:
        self.counts: dict[str, list[str]] = {}
        self._step = ""
        self._runner: CountingRunner

    def everything(self, store: Store, runner: CountingRunner) -> None:
        self._runner = runner
        with ScriptedModel(self._reply) as model:
            client = AnthropicModel(api_key=model.api_key, base_url=model.base_url)
            try:
                for bundle in TREES:
                    self._run_tree(store, client, bundle)
            finally:
                client.close()

    def _run_tree(self, store: Store, client: AnthropicModel, bundle: Bundle) -> None:
        root = bundle.root
        self._begin("launch an agent")
        launch_root(store, bundle, "Go.", root)
        self._end()
        while ready := [each for each in store.tree(root).members if each.state == "ready"]:
            for member in ready:
                self._begin(STARTS.get((member.id, member.attempt), ""))
                run_process(
                    store,
                    member.id,
                    worker="here",
                    model=lambda _: client,
                    wake=lambda _: None,
                    permissions=Permissions(),
                )
                self._end()
        drop_with_numbers(store, root, kill=True)

    def _reply(self, request: Request) -> Reply:
        self._end()
        [name] = [name for name in TURNS if name in request.system]
        case, reply = TURNS[name][request.turn_number]
        self._begin(case)
        return reply

    def _begin(self, case: str) -> None:
        self._runner.taken()
        self._step = case

    def _end(self) -> None:
        trips = [each for each in self._runner.taken() if each != CONNECT]
        while self._step.startswith(TURN) and trips and "journal" not in trips[0]:
            del trips[0]  # while the model answered: the answer goes to a stream meanwhile
        if self._step:
            self.counts.setdefault(self._step, trips)
        self._step = ""
