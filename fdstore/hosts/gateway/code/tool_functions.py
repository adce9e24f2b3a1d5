"""The tools of servers as functions of one running program: each call is a request to a server.

Several are under way at the same time, and a program that waits for some goes on when all of these have
answered. No call is made twice: of a program whose interpreter died and that is run again, the calls that
were made raise an exception.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from fdstore.errors import CallInterrupted, InvalidArgument
from fdstore.hosts.gateway.code.catalogue import Catalogue, CodeTool
from fdstore.hosts.gateway.code.checking import problem_with
from fdstore.hosts.gateway.code.program_journal import ProgramJournal
from fdstore.hosts.gateway.code.values import Shelf, outcome_of
from fdstore.hosts.gateway.own_requests import NoAnswer, OwnRequest, OwnRequests, ask
from fdstore.programs.refusals import NotForCode
from fdstore.results.context import Context
from fdstore.tools.functions.function_values import FunctionOutcome
from fdstore.tools.functions.python_tool import expand_placeholders
from fdstore.wire.operation import Disk, Operation

CANCELLED = "the program that made this call has ended"


class _Open(msgspec.Struct, frozen=True):
    """A call without its outcome."""

    tool: CodeTool
    arguments: dict[str, Any]
    request: OwnRequest[None]
    began: float


class ToolFunctions:
    """The functions of one program. `meta` is that of the host's request, `report` gets what servers say of
    calls that run."""

    def __init__(
        self,
        catalogue: Catalogue,
        calls: OwnRequests[None],
        meta: Mapping[str, Raw],
        context: Context,
        journal: ProgramJournal,
        report: Callable[[str], None] | None,
    ) -> None:
        self.names = catalogue.names
        self._tools = catalogue.tools
        self._calls, self._meta, self._report = calls, meta, report
        self._context, self._journal = context, journal
        self._open: dict[str, _Open] = {}
        self._made: set[str] = set()
        self._lock = threading.Lock()
        self._is_cancelled = False

    def begin(self, name: str, arguments: dict[str, Any], call_id: str) -> Operation[None]:
        """Send a call to its server. Raises `NotForCode`, `InvalidArgument`, `CallInterrupted`, and for the
        content of a Text `TooLarge`."""
        tool = self._tools[name]
        if not tool.allowed:
            raise NotForCode(name, tool.refusal)
        if problem := problem_with(tool, arguments):
            raise InvalidArgument("", problem)
        if call_id in self._made:
            raise CallInterrupted(f"this call of {name}")
        limit = self._context.config.max_expand_chars
        given, _ = yield from expand_placeholders(self._context.handle, arguments, limit)
        self._made.add(call_id)
        call = _Open(tool, arguments, self._send(tool, given), time.monotonic())
        with self._lock:
            self._open[call_id] = call
            is_cancelled = self._is_cancelled
        if is_cancelled:
            self._calls.cancel(call.request, CANCELLED)

    def _send(self, tool: CodeTool, arguments: dict[str, Any]) -> OwnRequest[None]:
        report = self._report
        on_progress = None if report is None else lambda said: report(f"{tool.name}: {said}".rstrip(": "))
        params = {"name": tool.tool, "arguments": arguments}
        return ask(self._calls, "tools/call", params, self._meta, on_progress)

    def end(self, call_id: str) -> Operation[FunctionOutcome]:
        """Wait for the answer to a call, and return what it is for code."""
        call = self._open[call_id]
        handle = self._context.handle
        shelf = Shelf(handle, call.tool.name, self._context.config.default_page_size, call_id)
        try:
            message = yield Disk(call.request.answer)
            outcome = yield from outcome_of(message, shelf, call.tool.field)
        except NoAnswer as error:
            outcome = FunctionOutcome(error=str(error), kind="RuntimeError")
        with self._lock:
            del self._open[call_id]
        yield from self._journal.note_call(
            call_id, call.tool.name, call.arguments, outcome, time.monotonic() - call.began
        )
        return outcome

    def cancel(self) -> None:
        """Take back the calls that are under way, from any thread: the program has ended, or is to end."""
        with self._lock:
            self._is_cancelled = True
            open_calls = list(self._open.values())
        for call in open_calls:
            self._calls.cancel(call.request, CANCELLED)
