"""Run one task in one column: the real agent loop against a scripted model.

The agent runs in this process, as in `fdstore run`, on a private Redis; child agents run one after the other.
Its tools on descriptors are deferred, as those of agents of Anthropic's own API are. What is counted is the
conversation of the root.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from contextlib import closing
from typing import Any

import msgspec

from fdstore.agents.loop.launch import launch_root
from fdstore.agents.loop.models.anthropic import AnthropicModel
from fdstore.agents.loop.program_loader import Bundle, LinkedProgram, Program
from fdstore.agents.runtime.run_process import run_process
from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.bench.stage import stage
from fdstore.client import Process, Store
from fdstore.files.permissions import Permissions
from fdstore.results.config import FDConfig
from fdstore.testing import Request, ScriptedModel, Usage, say
from fdstore.testing.replies import Turn
from fdstore.testing.requests import blocks_of, text_of
from tests.bench.tasks import coding, counting, documents, host_tools, logs, many, tables, texts
from tests.bench.tasks.hosts import COLUMNS, WINDOW_TOKENS, Column, Host
from tests.bench.tasks.plans import Hand, Plan
from tests.bench.tasks.results import Result, Verdict, judge
from tests.bench.tasks.task import Task

SYSTEM = "You are the assistant of a team of engineers. Answer from what your tools show, and quote exactly."
REPORTER = "You study a region and report on it."
READERS = ("read_fd", "search_fd")
TASKS: dict[str, Task] = {
    task.name: task for task in (*logs.TASKS, *documents.TASKS, *tables.TASKS, *many.TASKS, *coding.TASKS)
}


class Player:
    """A model that plays a plan: the requests that it got, and the answer of the plan."""

    def __init__(self, plan: Plan) -> None:
        self._steps = plan
        self.answer = ""
        self.requests: list[tuple[counting.Part, ...]] = []

    def reply(self, request: Request) -> Turn:
        """Return the next message of the model."""
        self.requests.append(counting.parts_of(request))
        try:
            return self._steps.send(results_of(request)) if len(self.requests) > 1 else next(self._steps)
        except StopIteration as end:
            self.answer = end.value
            return say(self.answer or "I cannot tell.")


class Conversation(Player):
    """The model of one run of a task, which lets the running build print before each answer."""

    def __init__(self, task: Task, hand: Hand, session: host_tools.Session) -> None:
        super().__init__(task.plan(hand))
        self._hand = hand
        self._parts = iter(task.parts() if task.parts else ())
        self._session = session
        self.stream: Any = None

    def reply(self, request: Request) -> Turn:
        if not self.requests:
            self._hand.question = request.last_text()
        self._print()
        reply = super().reply(request)
        return with_usage(reply, counting.total(self.requests[-1]), 100)

    def _print(self) -> None:
        part = next(self._parts, None)
        if part is None:
            return
        if self.stream is None:
            self._session.unread += part
        else:
            self.stream.write(part)
            self.stream.flush()


def with_usage(reply: Turn, sent: int, answered: int) -> Turn:
    return msgspec.structs.replace(reply, usage=Usage(input_tokens=sent, output_tokens=answered))


def results_of(request: Request) -> list[str]:
    """Return the results of the last calls. That of one that loads tools, in these tasks the last, follows
    the results."""
    blocks = blocks_of(request.messages[-1]["content"])
    results = [block["content"] for block in blocks if block.get("type") == "tool_result"]
    following = [text_of([block]) for block in blocks if block.get("type") != "tool_result"]
    return [
        following[0]
        if any(inner.get("type") == "tool_reference" for inner in blocks_of(content))
        else text_of(content)
        for content in results
    ]


def _report(request: Request) -> Turn:
    return say(texts.report(request.last_text()))


def run(store: Store, task: Task, column: Column) -> Result:
    """Run a task in one column."""
    host = Host(column, {path: text() for path, text in task.files.items()})
    session = host_tools.Session(host, task.documents)
    conversation = Conversation(task, Hand(column), session)

    def open_stream(root: Process) -> None:
        if task.parts and column == "fdstore":
            conversation.stream = root.open_stream(source="make")

    script = {REPORTER: _report, "": conversation.reply}
    run_agent(store, script, _bundle(task, column), task.whole_question, session, open_stream)
    return _judged(task, column, conversation)


def run_agent(
    store: Store,
    script: dict[str, Any],
    bundle: Bundle,
    question: str,
    session: host_tools.Session,
    prepare: Callable[[Process], None] = lambda root: None,
) -> None:
    """Run an agent and its children, as workers would, to their ends."""
    host_tools.session = session
    try:
        with (
            ScriptedModel(script) as model,
            closing(AnthropicModel(api_key=model.api_key, base_url=model.base_url)) as client,
        ):
            root = launch_root(store, bundle, question)
            prepare(root)
            while ready := [each.id for each in store.tree(root.id).members if each.state == "ready"]:
                for process in ready:
                    run_process(
                        store,
                        process,
                        worker="bench",
                        model=lambda _: client,
                        wake=lambda _: None,
                        permissions=Permissions(),
                    )
        drop_with_numbers(store, root.id)
    finally:
        host_tools.session = None


def _bundle(task: Task, column: Column) -> Bundle:
    names = task.tools
    if column == "claude":
        names = tuple(dict.fromkeys((*names, "read_file", "search_file")))
    if column != "fdstore":
        tools: tuple[str, ...] = ()
        config = FDConfig(enabled=False)
    else:
        tools, config = READERS, FDConfig()
        if task.parts:
            names = ()  # the output is a stream of the process
        if task.reporters:
            tools, names = (*READERS, "spawn"), ()
    root = Program(
        name="task",
        model="any",
        system=SYSTEM,
        tools=tools,
        python=tuple(f"{host_tools.__name__}:{name}" for name in names),
        file_descriptor=config,
        deferred_tools=True,
        linked={"reporter": LinkedProgram(key="reporter")} if "spawn" in tools else {},
    )
    reporter = Program(name="reporter", model="any", system=REPORTER)
    return Bundle(root="task", programs={"task": root, "reporter": reporter})


def _judged(task: Task, column: Column, conversation: Conversation) -> Result:
    tokens = counting.count(conversation.requests)
    why = ""
    if tokens.longest > WINDOW_TOKENS:
        why = "too long for any model"
    elif not task.is_proved(counting.seen(conversation.requests)):
        why = "not shown"
    elif conversation.answer != task.truth():
        why = "wrong"
    return Result(
        task=task.name,
        kind=task.kind,
        column=column,
        tokens=tokens.sent,
        cached_tokens=tokens.cached,
        turns=len(conversation.requests),
        why=why,
    )


def measure_tasks(names: Collection[str] = ()) -> Iterator[Verdict]:
    """Run these tasks (default: all) in all columns, one task per iteration."""
    with stage(quick=True, own_processor=False) as made:
        for name, task in TASKS.items():
            if not names or name in names:
                yield judge(run(made.store, task, column) for column in COLUMNS)
