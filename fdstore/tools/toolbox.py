"""The tools of one agent: what it is offered, and what becomes of its calls.

Everything is an operation, so the blocking and the awaiting `Toolset`, and the agent loop, share
it. A call ends in one of two ways: a `ToolResult`, or `Started` with the processes whose end is the
result; `finished` makes the result when they have ended.

A call with an id is done once: what it came to is kept under the id, if it made something. Where the
store cannot tell whether a lost attempt did it, and it must not be done twice, the model is told so.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from fdstore.errors import (
    CallInterrupted,
    FDStoreError,
    InvalidArgument,
    NotFound,
    PageOutOfRange,
    PositionOutOfRange,
    QuotaExceeded,
    StoreFull,
    StoreRefused,
    StreamBroken,
    StreamClosed,
    quoted,
)
from fdstore.lifecycle import ENDED
from fdstore.records import ProcessRecord
from fdstore.render import Rendered, fd_error, process_result
from fdstore.store import inspection, processes, tool_calls, unclaimed
from fdstore.store.clock import redis_now
from fdstore.store.decoding import decoding
from fdstore.text.selection import selector
from fdstore.tools import (
    close_fd,
    fd_to_file,
    fork,
    list_fds,
    pipe,
    read_fd,
    search_fd,
    spawn,
    wait,
    write_fd,
)
from fdstore.tools.config import FD_TOOLS, PROCESS_TOOLS
from fdstore.tools.instructions import instructions
from fdstore.tools.python_tool import PythonTool, call_function, expand_placeholders, python_tool
from fdstore.tools.tool import Context, Started, Tool, ToolResult, convert
from fdstore.tools.wrapping import render_fd, wrap, wrap_error
from fdstore.wire.operation import Disk, Operation

log = logging.getLogger("fdstore.tools")

BUILT_IN: dict[str, Tool] = {
    module.TOOL.name: module.TOOL
    for module in (read_fd, search_fd, list_fds, write_fd, fd_to_file, close_fd, spawn, fork, pipe)
} | {tool.name: tool for tool in (wait.WAIT, wait.KILL)}

STOPPING = frozenset(
    {
        *("fenced", "cancelled", "no_worker", "store_unavailable", "store_readonly", "unsafe_store"),
        "unknown_outcome",
    }
)
"""Errors that no model can do anything about: they end the call, not the conversation's turn."""


def check_enabled(enabled: Sequence[str]) -> frozenset[str]:
    """The names of built-in tools. Raises `InvalidArgument`, naming what there is."""
    if isinstance(enabled, str):
        raise InvalidArgument("enabled", 'a list of names is needed, as ["read_fd"]')
    for name in enabled:
        if name not in BUILT_IN:
            raise InvalidArgument(
                "enabled", f"there is no tool {quoted(name)}; there are: {', '.join(BUILT_IN)}"
            )
    return frozenset(enabled)


def usable(context: Context) -> frozenset[str]:
    """Of the enabled tools, those that can do something here."""
    names = context.enabled & BUILT_IN.keys()
    if not context.fds_on:
        names -= FD_TOOLS
    if context.export_root is None:
        names -= {"fd_to_file"}
    if not context.linked:
        names -= {"spawn"}
    if not context.itself.name:
        names -= {"fork"}
    if not context.commands:
        names -= {"pipe"}
    return names


class Toolbox:
    """The tools that one agent has."""

    def __init__(self, context: Context, python: Sequence[Callable[..., Any]] = ()) -> None:
        self.context = msgspec.structs.replace(context, enabled=usable(context))
        self._tools = {name: tool for name, tool in BUILT_IN.items() if name in self.context.enabled}
        self._python: dict[str, PythonTool] = {}
        for function in python:
            made = python_tool(function)
            if made.name in FD_TOOLS | PROCESS_TOOLS or made.name in self._python:
                raise InvalidArgument("python", f"there is a tool {made.name} already; rename the function")
            self._python[made.name] = made

    @property
    def definitions(self) -> list[dict[str, Any]]:
        """Messages-API tool dicts."""
        built_in = [tool.definition(self.context) for tool in self._tools.values()]
        return built_in + [tool.definition() for tool in self._python.values()]

    @property
    def instructions(self) -> str:
        """What the system prompt says about descriptors, for just what is on."""
        return instructions(self.context, tuple(self._python))

    def call(self, name: object, arguments: object, call_id: str | None = None) -> Operation[ToolResult]:
        """Runs a call to its end, for who waits here for what it starts. Raises as `start`."""
        outcome = yield from self.start(name, arguments, call_id)
        if not isinstance(outcome, Started):
            return outcome
        left_s = math.inf if outcome.until_s is None else outcome.until_s - (yield from redis_now())
        yield from self._wait(list(outcome.processes), left_s)
        return (yield from self.finished(outcome))

    def _wait(self, started: list[str], left_s: float) -> Operation[None]:
        """Wait for ends, for at most so long; say so when no worker takes what was started."""
        prefix, first_s = self.context.prefix, min(left_s, unclaimed.PATIENCE_S)
        if (yield from inspection.wait_ended(prefix, started, first_s)) or left_s <= first_s:
            return
        if why := (yield from unclaimed.why_unclaimed(prefix, started)):
            log.warning("%s", why)
        yield from inspection.wait_ended(prefix, started, left_s - first_s)

    def start(
        self, name: object, arguments: object, call_id: str | None = None
    ) -> Operation[ToolResult | Started]:
        """Runs a call as far as it goes without waiting for other processes.

        Raises the errors of `STOPPING`; any other is a result that says what is wrong.
        """
        try:
            if self.context.handle.must_note():
                yield from processes.touch(self.context.handle)
            work, makes = self._work(name, arguments, call_id)
            if call_id is None or not makes:
                return (yield from work)
            request = tool_calls.request_of(str(name), arguments)
            before = yield from tool_calls.identify(self.context.handle, call_id, request)
            if before is not None:
                with decoding(f"the calls of process {self.context.handle.id}"):
                    return _decoder.decode(before)
            outcome = yield from work
            made = msgspec.json.encode(outcome).decode("utf-8")
            yield from tool_calls.store_result(self.context.handle, call_id, made)
            return outcome
        except FDStoreError as error:
            stops = error.type in STOPPING or isinstance(error, StoreRefused)
            if stops and not isinstance(error, CallInterrupted):
                raise
            return ToolResult(fd_error(error, _descriptor_of(error, arguments)), is_error=True)

    def finished(self, started: Started) -> Operation[ToolResult]:
        """The result of a call whose processes have ended; one `process_result` each, in order."""
        parts: list[Rendered] = []
        failed = 0
        for process in started.processes:
            ended = yield from inspection.answer_of(self.context.prefix, process)
            failed += _went_wrong(ended.record)
            if ended.record.kind == "pipeline":
                parts.append(process_result(ended.record))
            elif ended.fd is not None:
                inner = yield from render_fd(self.context, ended.fd)
                parts.append(process_result(ended.record, result=inner))
            else:
                parts.append(process_result(ended.record, answer=ended.text))
        return ToolResult("\n".join(parts), is_error=failed == len(started.processes))

    def _work(
        self, name: object, arguments: object, call_id: str | None
    ) -> tuple[Operation[ToolResult | Started], bool]:
        """What a call is to do, and whether it makes something. Raises `InvalidArgument`."""
        if isinstance(name, str) and name in self._python:
            return self._run_python(self._python[name], arguments, call_id), True
        tool = self._tools.get(name) if isinstance(name, str) else None
        if tool is None:
            names = ", ".join([*self._tools, *self._python]) or "none"
            raise InvalidArgument("", f"there is no tool {quoted(name)}; there are: {names}")
        checked = convert(tool.arguments, arguments)
        return self._run(tool, checked, call_id), tool.makes(checked)

    def _run(self, tool: Tool, arguments: Any, call_id: str | None) -> Operation[ToolResult | Started]:
        context = self.context
        if tool.name in ("spawn", "pipe") and not context.wait_for_workers:
            yield from unclaimed.require_worker(context.prefix, for_agents=tool.name == "spawn")
        outcome = yield from tool.run(context, arguments, call_id)
        return outcome if isinstance(outcome, Started) else ToolResult(outcome)

    def _run_python(self, tool: PythonTool, arguments: object, call_id: str | None) -> Operation[ToolResult]:
        context = self.context
        if context.fds_on:
            arguments = yield from expand_placeholders(
                context.handle, arguments, context.config.max_expand_chars
            )
        checked = convert(tool.arguments, arguments)
        values = {name: getattr(checked, name) for name in checked.__struct_fields__}
        # the last thing before it runs: an argument that is refused has begun nothing
        if (
            call_id is not None
            and not tool.repeatable
            and not (yield from tool_calls.begin(context.handle, call_id))
        ):
            raise CallInterrupted(f"this call of {tool.name}")
        said, is_error = yield Disk(lambda: call_function(tool, values))
        render = wrap_error if isinstance(said, FDStoreError) else wrap
        try:
            return ToolResult((yield from render(context, said, tool.name, call_id)), is_error)
        except (QuotaExceeded, StoreFull) as error:
            # the model must not take it for a call that did nothing
            unstored = f"{tool.name} has run, and its output could not be stored\n{fd_error(error)}"
            return ToolResult(unstored, is_error=True)


def _went_wrong(record: ProcessRecord) -> bool:
    """Whether a process ended badly. The exit code of a pipeline is the model's to judge, as grep's is."""
    if record.state not in ENDED:
        return False
    return record.state != "exited" or (record.exit_code != 0 and record.kind != "pipeline")


_decoder: msgspec.json.Decoder[ToolResult | Started] = msgspec.json.Decoder(ToolResult | Started)


def _descriptor_of(error: FDStoreError, arguments: object) -> str | None:
    """The descriptor that an error is about, in its shown form."""
    match error:
        case NotFound():
            named: object = error.what
        case PageOutOfRange() | PositionOutOfRange() | StreamBroken() | StreamClosed():
            named = error.fd
        case _:
            named = arguments.get("fd") if isinstance(arguments, dict) else None
    try:
        return selector(named).fd
    except InvalidArgument:
        return None
