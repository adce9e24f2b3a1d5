"""Run one task in one column: the real agent loop against a scripted model.

The agent runs in this process, as in `fdstore run`, on a private Redis; child agents run one after the other.
What is counted is the conversation of the root.
"""

from __future__ import annotations

from typing import Any

import msgspec

from fdstore.agent.launch import launch_root
from fdstore.agent.models.anthropic import AnthropicModel
from fdstore.agent.program_loader import Bundle, LinkedProgram, Program
from fdstore.bench.fresh_trees import drop_with_numbers
from fdstore.client import Process, Store
from fdstore.permissions import Permissions
from fdstore.results.config import FDConfig
from fdstore.runtime.run_process import run_process
from fdstore.testing import Request, ScriptedModel, Usage, say
from fdstore.testing.replies import Turn
from fdstore.testing.requests import blocks_of, text_of
from tests.bench.tasks import counting, host_tools, texts
from tests.bench.tasks.hosts import WINDOW_TOKENS, Column, Host
from tests.bench.tasks.plans import Hand
from tests.bench.tasks.results import Result
from tests.bench.tasks.task import Task

SYSTEM = "You are the assistant of a team of engineers. Answer from what your tools show, and quote exactly."
REPORTER = "You study a region and report on it."
READERS = ("read_fd", "search_fd")


class Conversation:
    """The model of one run: plays the plan, and lets the running build print before each answer."""

    def __init__(self, task: Task, hand: Hand, session: host_tools.Session) -> None:
        self._hand = hand
        self._steps = task.plan(hand)
        self._parts = iter(task.parts() if task.parts else ())
        self._session = session
        self.stream: Any = None
        self.answer = ""
        self.requests: list[tuple[counting.Part, ...]] = []

    def reply(self, request: Request) -> Turn:
        """Return the next message of the model."""
        parts = counting.parts_of(request)
        if not self.requests:
            self._hand.question = request.last_text()
        self.requests.append(parts)
        self._print()
        try:
            reply = self._steps.send(results_of(request)) if len(self.requests) > 1 else next(self._steps)
        except StopIteration as end:
            self.answer = end.value
            reply = say(self.answer or "I cannot tell.")
        usage = Usage(input_tokens=counting.total(parts), output_tokens=100)
        return msgspec.structs.replace(reply, usage=usage)

    def _print(self) -> None:
        part = next(self._parts, None)
        if part is None:
            return
        if self.stream is None:
            self._session.unread += part
        else:
            self.stream.write(part)
            self.stream.flush()


def results_of(request: Request) -> list[str]:
    """Return the results of the last calls."""
    last = request.messages[-1]["content"]
    return [text_of(block.get("content")) for block in blocks_of(last) if block.get("type") == "tool_result"]


def _report(request: Request) -> Turn:
    return say(texts.report(request.last_text()))


def run(store: Store, task: Task, column: Column) -> Result:
    """Run a task in one column."""
    host = Host(column, {path: text() for path, text in task.files.items()})
    session = host_tools.Session(host, task.documents)
    conversation = Conversation(task, Hand(column), session)
    host_tools.session = session
    bundle = _bundle(task, column)
    try:
        with ScriptedModel({REPORTER: _report, "": conversation.reply}) as model:
            client = AnthropicModel(api_key=model.api_key, base_url=model.base_url)
            try:
                root = launch_root(
                    store, bundle, f"{task.question}\n\n{task.pasted()}" if task.pasted else task.question
                )
                if task.parts and column == "fdstore":
                    conversation.stream = root.open_stream(source="make")
                run_all(store, root, client)
            finally:
                client.close()
        drop_with_numbers(store, root.id)
    finally:
        host_tools.session = None
    return _judged(task, column, conversation)


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
        linked={"reporter": LinkedProgram(key="reporter")} if "spawn" in tools else {},
    )
    reporter = Program(name="reporter", model="any", system=REPORTER)
    return Bundle(root="task", programs={"task": root, "reporter": reporter})


def run_all(store: Store, root: Process, client: AnthropicModel) -> None:
    """Run the ready processes of the tree, as workers would, until none is left."""
    while ready := [member.id for member in store.tree(root.id).members if member.state == "ready"]:
        for process in ready:
            run_process(
                store,
                process,
                worker="bench",
                model=lambda: client,
                wake=lambda _: None,
                permissions=Permissions(),
            )


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
        is_right=not why,
        why=why,
    )
