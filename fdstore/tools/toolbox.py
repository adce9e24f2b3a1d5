"""The tools of one agent: their definitions, and the execution of its calls.

Everything is an operation, so the blocking and the awaiting `Toolset` and the agent loop share it. A call
returns a `ToolResult`, or `Started` with the processes whose end is its result; `finished` builds the result
once they have ended.

A call with an id and an effect is done once: its result is stored under the id. If the store cannot tell
whether a lost attempt ran a call that must not run twice, the model gets an error that says so.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from fdstore.elements.build import Rendered
from fdstore.elements.facts import NO_FACTS, join_facts
from fdstore.elements.render import fd_error, process_result
from fdstore.elements.stored_message import advise
from fdstore.errors import (
    CallInterrupted,
    DamagedRecord,
    FDStoreError,
    InvalidArgument,
    NotFound,
    NotText,
    QuotaExceeded,
    StoreFull,
    quoted,
)
from fdstore.results.context import Context, Passed, Progress
from fdstore.results.fd_results import Display, render_fd
from fdstore.results.json_text import json_text
from fdstore.results.offloading import wrap_output
from fdstore.results.people_config import ASK_PERSON
from fdstore.results.tool_outcome import Started, ToolResult, has_failed, tool_result
from fdstore.results.tool_policy import NO_POLICY
from fdstore.results.wrapping import NO_OUTPUT, store_answer, wrap_error
from fdstore.store.contents import contents
from fdstore.store.keys import member_of
from fdstore.store.processes import process_records, processes, savings, tool_calls, waiting
from fdstore.store.record_format import decode_record, decoding
from fdstore.store.views import worker_check
from fdstore.telemetry.counts import count
from fdstore.text.selection import selector
from fdstore.tools.arguments import convert, named_fds, require_object, schema_of
from fdstore.tools.asking import (
    APPROVAL,
    FrozenCall,
    approve,
    ask_question,
    for_code,
    said_before,
    wait_for_answer,
    with_answer,
)
from fdstore.tools.catalogue import BUILT_IN, offers_of, usable_tools
from fdstore.tools.functions.function_values import FunctionOutcome, call_for_value
from fdstore.tools.functions.python_tool import PythonTool, call_function, expand_placeholders, python_tool
from fdstore.tools.instructions import instructions
from fdstore.tools.observed_call import UNKNOWN, ObservedCall, UnobservedCall, observed_call
from fdstore.tools.tool import Tool
from fdstore.tools.turn_calls import TurnCall
from fdstore.wire.operation import Batch, Disk, Operation, new_op

log = logging.getLogger("fdstore.tools")

MAX_ERROR_CHARS = 4000
"""The most characters of an error that are shown. Long errors of users' functions are stored."""


class Toolbox:
    """The tools of one agent: built-in ones that are usable in `context`, and the user's functions."""

    def __init__(self, context: Context, python: Sequence[Callable[..., Any]] = ()) -> None:
        self._tools = usable_tools(context)
        self.context = msgspec.structs.replace(
            context, enabled=frozenset(self._tools), offers=offers_of(self._tools)
        )
        self._python: dict[str, PythonTool] = {}
        for function in python:
            tool = python_tool(function)
            if tool.name in BUILT_IN or tool.name in self._python:
                raise InvalidArgument("python", f"there is a tool {tool.name} already; rename the function")
            self._python[tool.name] = tool
        configured = self.context.config.tool
        own = {name: tool.policy for name, tool in self._python.items()}
        merged = {
            name: own.get(name, NO_POLICY).under(configured.get(name, NO_POLICY)) for name in own | configured
        }
        self.context = msgspec.structs.replace(
            self.context,
            policies={name: policy for name, policy in merged.items() if policy != NO_POLICY},
            functions={name: partial(self._value_of, tool) for name, tool in self._python.items()},
            gate=self._gate,
        )

    def require_tools(self, others: Collection[str] = ()) -> None:
        """Raise `InvalidArgument` if the configuration has a policy for a tool that is neither a function nor
        one of these `others`."""
        if isinstance(others, str):
            raise InvalidArgument("outside", 'a list of names is needed, as ["run_tests"]')
        known = [*self._python, *others]
        for name in self.context.config.tool:
            if name in known:
                continue
            there_are = f"there are: {', '.join(known) or 'none'}"
            problem = f"there is no function {quoted(name)} among the tools; {there_are}"
            if name in BUILT_IN:
                problem = f"{name} is a built-in tool; name one of your functions"
            raise InvalidArgument("config.tool", problem)

    @property
    def built_in(self) -> list[Tool]:
        """The built-in tools that can be used, in their order."""
        return list(self._tools.values())

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """Messages API tool dicts."""
        built_in = [tool.definition(self.context) for tool in self._tools.values()]
        return built_in + [tool.definition() for tool in self._python.values()]

    @property
    def has_functions(self) -> bool:
        """Return whether there are functions of the user among the tools."""
        return bool(self._python)

    @property
    def instructions(self) -> str:
        """The section of the system prompt about descriptors and the enabled tools."""
        return instructions(self.context, self.built_in, [*self._python])

    def call(
        self,
        name: object,
        arguments: object,
        call_id: str | None = None,
        progress: Progress | None = None,
    ) -> Operation[ToolResult]:
        """Run a call to its end, and wait for the processes it starts. Raises as `start` does."""
        call_id = call_id or self._fresh_id(name)
        began = time.monotonic()
        outcome = yield from self.start(name, arguments, call_id, progress)
        return (yield from self.end(TurnCall(str(name), arguments, call_id or ""), outcome, began, progress))

    def end(
        self, call: TurnCall, outcome: ToolResult | Started, began: float, progress: Progress | None = None
    ) -> Operation[ToolResult]:
        """Wait for the processes of a call that was started at `began`, by `time.monotonic`, and return its
        result. Raises as `start` does."""
        while isinstance(outcome, Started):
            left_s = math.inf
            if outcome.seconds is not None:
                left_s = max(began + outcome.seconds - time.monotonic(), 0.0)
            if outcome.questions:
                yield from wait_for_answer(self.context, outcome.questions)
            else:
                yield from self._wait(list(outcome.processes), left_s)
            if not outcome.resumes:
                return (yield from self.finished(outcome))
            outcome = yield from self.start(call.name, call.arguments, call.id, progress)
        return outcome

    def _fresh_id(self, name: object) -> str | None:
        """Return an id for a call that has none and may have to be made again."""
        tool = self._tools.get(name) if isinstance(name, str) else None
        return new_op() if tool is not None and tool.resumes else None

    def _wait(self, started: list[str], left_s: float) -> Operation[None]:
        """Wait until all processes end or `left_s` pass. Log a warning if no worker claims them."""
        prefix, first_s = self.context.prefix, min(left_s, worker_check.PATIENCE_S)
        if (yield from waiting.wait_until_ended(prefix, started, first_s)) or left_s <= first_s:
            return
        if why := (yield from worker_check.why_unclaimed(prefix, started, self.context.servers_for)):
            log.warning("%s", why)
        yield from waiting.wait_until_ended(prefix, started, left_s - first_s)

    def start(
        self,
        name: object,
        arguments: object,
        call_id: str | None = None,
        progress: Progress | None = None,
        *,
        is_new: bool = False,
        unsent: Batch | None = None,
    ) -> Operation[ToolResult | Started]:
        """Run a call as far as possible without waiting for other processes. `is_new`: it cannot have begun
        before, so no earlier result is looked for. If there is a list `unsent`, the command that stores the
        result is added to it, for the caller to send with its next request.

        Raises errors that neither a model nor code can do anything about (`stops`); any other error is
        returned as a result.
        """
        handle, passed = self.context.handle, None
        try:
            if handle.must_touch():
                yield from processes.touch(handle)
            if self.wants_approval(name):
                asked = yield from self._approve(name, arguments, call_id, is_new=is_new)
                if isinstance(asked, Started):
                    return asked
                if asked.error:
                    assert asked.shown is not None
                    return tool_result(asked.shown, is_error=True)
                passed = asked
            work, makes = self._prepare(name, arguments, call_id, progress, is_new=is_new, passed=passed)
            if call_id is None or not makes:
                return (yield from work)
            if not is_new:
                request = tool_calls.request_of(str(name), arguments)
                before = yield from tool_calls.identify(handle, call_id, request)
                if before is not None:
                    return self._recalled(before)
            outcome = yield from work
            if isinstance(outcome, Started) and outcome.resumes:
                return outcome
            result = msgspec.json.encode(outcome).decode("utf-8")
            if unsent is None:
                yield from tool_calls.store_result(handle, call_id, result)
            else:
                unsent.append(tool_calls.result_command(handle, call_id, result))
            return outcome
        except FDStoreError as error:
            if error.stops:
                raise
            fd = _fd_of(error, arguments)
            if isinstance(error, NotText):
                advice = advise(error, self.context.offers)
                error = NotText(error.fd, error.media_type, error.size_bytes, error.problem, advice)
            failed = tool_result(fd_error(error, fd, MAX_ERROR_CHARS), is_error=True)
            return failed if passed is None else failed.behind(*said_before(passed))

    def _recalled(self, stored: str) -> ToolResult | Started:
        """Return the stored outcome of a call. Raises `DamagedRecord`, also if it waits for a process of
        another tree."""
        what, tree = f"the calls of process {self.context.handle.id}", self.context.handle.keys.tree
        outcome: ToolResult | Started = decode_record(stored, _Outcome, what)
        if isinstance(outcome, Started):
            for process in outcome.processes:
                if member_of(tree, process.encode()) is None:
                    raise DamagedRecord(what, "a call waits for a process of another tree")
        return outcome

    def finished(
        self, started: Started, read: Mapping[str, list[bytes]] | None = None
    ) -> Operation[ToolResult]:
        """Return the result of a call whose processes have ended: one `process_result` each, in order.
        `read`: their hashes, if they were read already."""
        parts: list[Rendered] = []
        failed = 0
        left = self.context.config.max_read_chars
        for ended in (yield from process_records.answers_of(self.context.prefix, started.processes, read)):
            failed += has_failed(ended.record)
            if ended.record.kind == "pipeline":
                parts.append(process_result(ended.record))
            elif ended.fd is not None:
                # answers of several processes are bounded together
                display = Display(may_be_whole=left >= self.context.config.whole_limit)
                inner = yield from render_fd(self.context, ended.fd, display)
                parts.append(process_result(ended.record, result=inner))
            elif len(ended.text) > left and self.context.fds_on:
                inner = yield from store_answer(self.context, ended.text, ended.record)
                parts.append(process_result(ended.record, result=inner))
            else:
                parts.append(process_result(ended.record, answer=ended.text))
            left -= len(parts[-1].text)
        text, facts = "\n".join(part.text for part in parts), join_facts(*(part.facts for part in parts))
        return ToolResult(text, failed == len(started.processes), facts).behind(started.before, started.facts)

    def observed(self, name: object, call_id: str | None) -> ObservedCall | UnobservedCall:
        """Return a context manager that reports the call that runs in its block."""
        known = isinstance(name, str) and (name in self._tools or name in self._python)
        label = name if known and isinstance(name, str) else UNKNOWN
        return observed_call(self.context.handle.id, label, call_id, is_function=label in self._python)

    def wants_approval(self, name: object) -> bool:
        """Return whether a call of this tool waits for a person's yes: as the program says, or in a loop of
        the user's own, which asks, whether it changes something."""
        if not isinstance(name, str) or not (name in self._tools or name in self._python):
            return False
        if self.context.approve is None:
            return self.context.people.wants_approval(name)
        tool = self._tools.get(name)
        return tool is None or (tool.effect != "reads" and name != ASK_PERSON)

    def asks_person(self, name: object) -> bool:
        """Return whether a call of this tool begins with a question to a person."""
        return (name == ASK_PERSON and name in self._tools) or self.wants_approval(name)

    def _approve(
        self, name: Any, arguments: object, call_id: str | None, *, is_new: bool, in_code: bool = False
    ) -> Operation[Passed | Started]:
        """Ask a person whether a call may run: one that could. Raises `InvalidArgument`, `NotFound`."""
        context = msgspec.structs.replace(self.context, is_new_call=is_new)
        slot = None if call_id is None else f"{call_id}{APPROVAL}"
        tool = self._python.get(name)
        if tool is not None:
            schema, freeze = tool.definition()["input_schema"], self._freeze(tool, arguments, in_code)
        else:
            built_in = self._built_in(name)
            schema = schema_of(built_in.arguments, context)
            freeze = _freeze_built_in(built_in, arguments)
        return (yield from approve(context, name, schema, freeze, slot, in_code=in_code))

    def _freeze(self, tool: PythonTool, arguments: object, in_code: bool) -> Operation[FrozenCall]:
        """Return what a call of a function will run with: references in its arguments replaced. Those of code
        are its values."""
        context = self.context
        if context.fds_on and not in_code:
            limit = context.config.max_expand_chars
            arguments, _ = yield from expand_placeholders(context.handle, arguments, limit)
        tool.convert(arguments)
        return FrozenCall(arguments)

    def _gate(self, name: str, arguments: dict[str, Any], slot: str) -> Operation[Passed | Started | None]:
        """Ask a person about a call of code: for approval, or what `ask_person` asks; None if nobody needs to
        be asked. Raises `InvalidArgument`, `NotFound`."""
        if name == ASK_PERSON and name in self._tools:
            asked = convert(self._tools[name].arguments, arguments)
            context = msgspec.structs.replace(self.context, is_new_call=False)
            found = yield from ask_question(
                context, asked.question, asked.choices, asked.fd, slot, in_code=True
            )
            return found if isinstance(found, Started) else for_code(context, found)
        if name in self._python and self.wants_approval(name):
            return (yield from self._approve(name, arguments, slot, is_new=False, in_code=True))
        if name not in self._python and self._covers_in_code(name):
            freeze = _freeze_values(arguments)
            return (yield from approve(self.context, name, {}, freeze, f"{slot}{APPROVAL}", in_code=True))
        return None

    def _covers_in_code(self, name: str) -> bool:
        """Return whether code that does what this tool does waits for a person's yes."""
        return self.context.approve is not None or self.context.people.wants_approval(name)

    def _built_in(self, name: object) -> Tool:
        """Return a built-in tool that may be called. Raises `InvalidArgument`."""
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            names = ", ".join([*self._tools, *self._python]) or "none"
            raise InvalidArgument("", f"there is no tool {quoted(name)}; there are: {names}")
        if tool.name in self.context.refused:
            problem = f"a copy cannot call {tool.name}; do its task with the other tools"
            raise InvalidArgument("", problem)
        return tool

    def _prepare(
        self,
        name: object,
        arguments: object,
        call_id: str | None,
        progress: Progress | None,
        *,
        is_new: bool,
        passed: Passed | None,
    ) -> tuple[Operation[ToolResult | Started], bool]:
        """Return the operation of a call, and whether it has an effect. `passed`: a person has approved it.
        Raises `InvalidArgument`."""
        given = arguments if passed is None else passed.arguments
        if isinstance(name, str) and name in self._python:
            work: Operation[ToolResult | Started] = self._run_python(
                self._python[name], given, call_id, passed
            )
            makes = True
        else:
            tool = self._built_in(name)
            checked = convert(tool.arguments, given)
            context = self.context
            if progress is not None or is_new:
                context = msgspec.structs.replace(context, progress=progress, is_new_call=is_new)
            work, makes = self._run(context, tool, checked, call_id), tool.makes(checked)
        return (work if passed is None else _with_answer(work, passed)), makes

    def _run(
        self, context: Context, tool: Tool, arguments: Any, call_id: str | None
    ) -> Operation[ToolResult | Started]:
        if tool.starts and not context.wait_for_workers:
            servers = context.servers_of(getattr(arguments, "program_name", None))
            agents = tool.starts == "agents"
            yield from worker_check.require_worker(context.prefix, for_agents=agents, servers=servers)
        outcome = yield from tool.run(context, arguments, call_id)
        if isinstance(outcome, Started):
            return outcome
        result = outcome if isinstance(outcome, ToolResult) else tool_result(outcome)
        if tool.works_on == "descriptors":
            count("fdstore_read_chars_total", by=len(result.text))
            if context.meter is not None:
                yield from savings.count_read(context.handle, context.meter, tool.name, result.text)
        return result

    def _value_of(
        self, tool: PythonTool, arguments: dict[str, Any], call_id: str, *, at_most_once: bool = False
    ) -> Operation[FunctionOutcome]:
        """Call a function for code. A call is run once, as those of models. Raises `InvalidArgument`,
        `CallInterrupted`."""
        handle = self.context.handle
        known = yield from tool_calls.identify(handle, call_id, tool_calls.request_of(tool.name, arguments))
        if known is not None:
            with decoding(f"the calls of process {handle.id}"):
                return FunctionOutcome.decode(known)
        values = tool.convert(arguments)
        yield from self._begin(tool, call_id, at_most_once=at_most_once)

        def run() -> FunctionOutcome:
            with self.context.user_code():
                return call_for_value(tool, values)

        outcome: FunctionOutcome = yield Disk(run)
        if (large := outcome.large_text) is not None:
            size = self.context.config.default_page_size
            stored = yield from contents.create(handle, large, tool.name, size, call_id=f"{call_id}/value")
            outcome = FunctionOutcome(fd=stored.fd)
        yield from tool_calls.store_result(handle, call_id, json_text(outcome))
        return outcome

    def _begin(self, tool: PythonTool, call_id: str | None, *, at_most_once: bool) -> Operation[None]:
        """Note that a call which must not run twice has begun; last before the function runs, so that refused
        arguments do not count as a started call. A yes of a person is one for one run. Raises
        `CallInterrupted` if it had begun before."""
        if call_id is None or (tool.repeatable and not at_most_once):
            return
        if not (yield from tool_calls.begin(self.context.handle, call_id)):
            raise CallInterrupted(f"this call of {tool.name}")

    def _run_python(
        self, tool: PythonTool, arguments: object, call_id: str | None, passed: Passed | None
    ) -> Operation[ToolResult]:
        context, expanded = self.context, NO_FACTS
        if context.fds_on and passed is None:  # what a person approved is what runs
            arguments, expanded = yield from expand_placeholders(
                context.handle, arguments, context.config.max_expand_chars
            )
        values = tool.convert(arguments)
        yield from self._begin(tool, call_id, at_most_once=passed is not None)

        def run() -> tuple[Any, bool]:
            with context.user_code():
                return call_function(tool, values)

        output, is_error = yield Disk(run)
        try:
            wrap = wrap_error if isinstance(output, FDStoreError) else wrap_output
            shown = yield from wrap(context, output, tool.name, call_id)
            # the API refuses an error that says nothing
            content = shown.content if shown.content or not is_error else NO_OUTPUT
            return ToolResult(content, is_error, join_facts(shown.facts, expanded))
        except (QuotaExceeded, StoreFull) as error:
            # the model must not conclude that the function did not run
            unstored = f"{tool.name} has run, and its output could not be stored\n{fd_error(error)}"
            return ToolResult(unstored, is_error=True)


_Outcome: Any = ToolResult | Started


def _freeze_built_in(tool: Tool, arguments: object) -> Operation[FrozenCall]:
    """Return what a call of a built-in tool will run with. Raises `InvalidArgument`."""
    convert(tool.arguments, arguments)
    values = require_object(arguments)
    return FrozenCall(values, named_fds(tool.arguments, values))
    yield  # makes this a generator


def _freeze_values(arguments: dict[str, Any]) -> Operation[FrozenCall]:
    return FrozenCall(arguments)
    yield


def _with_answer(work: Operation[ToolResult | Started], passed: Passed) -> Operation[ToolResult | Started]:
    return with_answer((yield from work), passed)


def _fd_of(error: FDStoreError, arguments: object) -> str | None:
    """Return the id of the descriptor that an error concerns, which it names itself or the call named; or
    None."""
    if isinstance(error, NotFound):
        named: object = error.what
    else:
        called = arguments.get("fd") if isinstance(arguments, dict) else None
        named = getattr(error, "fd", called)
    try:
        return selector(named).fd
    except InvalidArgument:
        return None
