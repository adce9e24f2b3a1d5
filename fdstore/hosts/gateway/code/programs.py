"""`run_python` and `find_tools` of a gateway: programs of the host's model that call the tools of its server.

A process has one session of variables, so programs run one after the other. A host takes a program back as
any call; then its code ends, and so do the calls that it has made.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from typing import Any, TypeAlias

import msgspec
from msgspec import Raw

from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.hosts.gateway.code.catalogue import Catalogue, read_tools, read_tools_of
from fdstore.hosts.gateway.code.checking import UnknownServer, check_code
from fdstore.hosts.gateway.code.program_journal import ProgramJournal
from fdstore.hosts.gateway.code.tool_functions import ToolFunctions
from fdstore.hosts.gateway.descriptors import Connected, Descriptors, error_blocks, mcp_blocks
from fdstore.hosts.gateway.json_parts import value_of
from fdstore.hosts.gateway.messages import Message
from fdstore.hosts.gateway.own_requests import OWN_REQUEST_S, CallCancelled, NoAnswer, OwnRequests
from fdstore.hosts.gateway.paged_list import whole_list
from fdstore.hosts.gateway.tool_list import CODE_TOOLS, FIND_TOOLS, RUN_PYTHON
from fdstore.programs.interpreter.events import UnreadableState
from fdstore.programs.python_call import abandon, check_size, open_session
from fdstore.results.context import Context
from fdstore.store.processes import python_state
from fdstore.tools.catalogue import READING_TOOLS
from fdstore.tools.functions.function_values import MAX_VALUE_CHARS
from fdstore.tools.toolbox import Toolbox
from fdstore.toolset.build import context_for, do_nothing
from fdstore.wire.operation import Disk, Operation, new_op

Content: TypeAlias = tuple[list[dict[str, Any]], bool]
"""The content blocks of a result, and whether it is an error."""

LIST_CHANGED = b"notifications/tools/list_changed"
MAX_NOTICE_BYTES = 4096

GROUP_S = 2.0
"""The further time for the list of several servers, of which each has that of one."""

LOOK_EVERY_S = 0.1

MAX_VARIABLES = 100_000

MAX_NAMES_CHARS = 2000
"""The characters of tool names that the description of run_python shows."""


class CodeCall:
    """One call of `run_python` or `find_tools` by a host. `meta` is that of its request; `report` gets, for
    people, how far it is."""

    def __init__(
        self, calls: OwnRequests[None], meta: Mapping[str, Raw], report: Callable[[str], None] | None = None
    ) -> None:
        self.calls, self.meta, self.report = calls, meta, report
        self.is_cancelled = threading.Event()
        self._enders: list[Callable[[], None]] = []
        self._lock = threading.Lock()

    def count(self, calls: int, _: int | None) -> None:
        """Report how many calls the code has made."""
        if self.report is not None:
            self.report(f"{calls} {'call' if calls == 1 else 'calls'}")

    def check(self) -> None:
        """Raise `CallCancelled` if it was cancelled."""
        if self.is_cancelled.is_set():
            raise CallCancelled("the host cancelled the call")

    def cancel(self) -> None:
        """End it, from any thread."""
        with self._lock:
            self.is_cancelled.set()
            enders = list(self._enders)
        for end in enders:
            end()

    @contextmanager
    def ended_by(self, end: Callable[[], None]) -> Iterator[None]:
        """In the block `cancel` calls `end`; now, if it was called before."""
        with self._lock:
            self._enders.append(end)
            is_cancelled = self.is_cancelled.is_set()
        if is_cancelled:
            end()
        try:
            yield
        finally:
            with self._lock:
                self._enders.remove(end)


class Programs:
    """The programs of a gateway before one server, or before those of a group, by their names in code."""

    tools = CODE_TOOLS

    def __init__(self, descriptors: Descriptors, group: Sequence[str] | None = None) -> None:
        self._descriptors, self._options = descriptors, descriptors.options
        self._servers = (self._options.name or "server",) if group is None else tuple(group)
        self._is_group = group is not None
        self._turn = threading.Condition()
        self._places: deque[CodeCall] = deque()
        self._lock = threading.Lock()
        self._listing: Future[Catalogue] | None = None
        self._catalogue: Catalogue | None = None
        self._version = 0

    def definitions(self) -> list[dict[str, Any]]:
        """Return our two tools for a tool list of MCP."""
        known = self._catalogue
        return [
            {
                "name": RUN_PYTHON,
                "description": _description(known, self._servers, is_group=self._is_group),
                "inputSchema": _CODE,
                "annotations": {
                    "readOnlyHint": False,
                    "destructiveHint": bool(self._options.code_allow),
                    "openWorldHint": True,
                },
            },
            {
                "name": FIND_TOOLS,
                "description": _FIND_DESCRIPTION,
                "inputSchema": _QUERY,
                "annotations": {"readOnlyHint": True, "destructiveHint": False, "openWorldHint": False},
            },
        ]

    def look_at(self, message: Message) -> None:
        """Look whether a server says that it has other tools now: they are asked for when they are needed."""
        if len(message.whole) < MAX_NOTICE_BYTES and message.has(LIST_CHANGED):
            self._version += 1
            self._catalogue = None

    def catalogue(self, call: CodeCall) -> Catalogue:
        """Return the tools of the server, which is asked once for all that want to know them at the same
        time. Raises `ServerGone`, `CallCancelled`, and ValueError if it gives no list."""
        while True:
            with self._lock:
                if self._catalogue is not None:
                    return self._catalogue
                under_way = self._listing
                if under_way is None:
                    mine = self._listing = Future[Catalogue]()
            if under_way is None:
                return self._list(call, mine)
            with suppress(CallCancelled):  # by the host of whoever has asked
                return _outcome_for(call, under_way)
            call.check()

    def _list(self, call: CodeCall, listing: Future[Catalogue]) -> Catalogue:
        """Ask the server for its tools, and tell the others that wait."""
        version = self._version
        try:
            known = self._read(self._tools_of(call))
            with self._lock:
                if version == self._version:
                    self._catalogue = known
            listing.set_result(known)
            return known
        except BaseException as error:
            listing.set_exception(error)
            raise
        finally:
            with self._lock:
                self._listing = None

    def _tools_of(self, call: CodeCall) -> list[dict[str, Any]]:
        limit_s = OWN_REQUEST_S + (GROUP_S if self._is_group else 0)
        listed = whole_list(call.calls, "tools/list", call.meta, call.ended_by, limit_s)
        if listed.problems and not listed.items:
            raise ValueError("; ".join(listed.problems))
        for problem in listed.problems:
            self._descriptors.tell(f"tools/list of the MCP server: {problem}")
        return [value for value in map(_value_or_none, listed.items.values()) if isinstance(value, dict)]

    def _read(self, tools: list[dict[str, Any]]) -> Catalogue:
        servers, allowed = self._servers, self._options.code_allow
        if self._is_group:
            return Catalogue(read_tools_of(servers, tools, allowed), servers)
        return Catalogue(read_tools(servers[0], tools, allowed), servers)

    def enter(self, tool: str, call: CodeCall) -> None:
        """Give a program its place among those that wait: they run in the order in which they came. Call it
        where requests are read, before the thread of `answer` begins."""
        if tool == RUN_PYTHON:
            with self._turn:
                self._places.append(call)

    def answer(self, tool: str, arguments: Mapping[str, Any], call: CodeCall) -> Content:
        """Run one of our tools to its end, after `enter`. What is wrong is a result, too."""
        try:
            found = self.catalogue(call)
            if tool == FIND_TOOLS:
                return mcp_blocks(found.find(_argument(arguments, "query", ""))), False
            code = _argument(arguments, "code", None)
            check_size(code)
            unknown = check_code(code, found)
            self._await_turn(call)
            return self._descriptors.work(lambda connected: self._run(connected, code, found, call, unknown))
        except FDStoreError as error:
            return error_blocks(error), True
        except (NoAnswer, ValueError) as error:
            return mcp_blocks(f"the tools of the server are not known: {error}"), True
        finally:
            with self._turn, suppress(ValueError):
                self._places.remove(call)
                self._turn.notify_all()

    def _await_turn(self, call: CodeCall) -> None:
        """Wait until no program that came earlier runs or waits."""
        with self._turn:
            while self._places[0] is not call:
                self._turn.wait(LOOK_EVERY_S)
                call.check()

    def _run(
        self,
        connected: Connected,
        code: str,
        catalogue: Catalogue,
        call: CodeCall,
        unknown: Sequence[UnknownServer],
    ) -> Content:
        store, run_id, began = connected.store, new_op(), time.monotonic()
        context = self._context(connected)
        journal = ProgramJournal(context.handle, run_id)
        functions = ToolFunctions(catalogue, call.calls, call.meta, context, journal, call.report)
        watched = msgspec.structs.replace(context, outside=functions, watch=call.ended_by)
        toolbox = Toolbox(watched)
        if unknown:
            variables = store.run(_variables(watched))
            for each in unknown:
                if variables is not None and each.name not in variables:
                    raise each.problem
        store.run(journal.begin(code))
        try:
            with call.ended_by(functions.cancel):
                result = store.run(toolbox.call(RUN_PYTHON, {"code": code}, run_id, call.count))
        except FDStoreError:
            with suppress(FDStoreError):
                store.run(abandon(watched, run_id))
            raise
        finally:
            functions.cancel()
        store.run(journal.end(result, time.monotonic() - began))
        return mcp_blocks(result.content), result.is_error

    def _context(self, connected: Connected) -> Context:
        handle = connected.process.handle
        read_elsewhere = READING_TOOLS if self._options.code == "also" else ()
        enabled = [*(self._descriptors.offered or read_elsewhere), RUN_PYTHON]
        return context_for(
            handle,
            connected.store.prefix,
            enabled=enabled,
            config=self._descriptors.config(),
            linked={},
            wake=do_nothing,
        )


def _variables(context: Context) -> Operation[set[str] | None]:
    """Return the names that earlier programs of the process have left; None if they cannot be known."""
    kept = (yield from python_state.read(context.handle, "")).session
    if kept is None:
        return set()

    def look() -> set[str] | None:
        limits = context.python.limits_under(context.handle.limits)
        with (
            suppress(UnreadableState),
            open_session(limits, context.names_for_code, kept, None, 0).session as session,
        ):
            return {name for name, _ in session.largest_variables(MAX_VARIABLES)} or None
        return None

    found: set[str] | None = yield Disk(look)
    return found


def _outcome_for(call: CodeCall, under_way: Future[Catalogue]) -> Catalogue:
    """Wait for what another call does, but no longer than this one is wanted. Raises its errors."""
    while True:
        call.check()
        with suppress(TimeoutError):
            return under_way.result(LOOK_EVERY_S)


def _value_or_none(tool: Raw) -> Any:
    """Return the value of a tool of a list; None for one that Python cannot read."""
    try:
        return value_of(tool)
    except ValueError:
        return None


def _argument(arguments: Mapping[str, Any], name: str, default: str | None) -> str:
    """Return the one argument of a tool. Raises `InvalidArgument`."""
    if unknown := [each for each in arguments if each != name]:
        raise InvalidArgument(unknown[0], f"there is no such argument; there is: {name}")
    value = arguments.get(name, default)
    if not isinstance(value, str):
        raise InvalidArgument(name, "a text is needed")
    return value


def _schema(name: str, description: str, required: Sequence[str]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {name: {"type": "string", "description": description}},
        "required": list(required),
        "additionalProperties": False,
    }


_CODE = _schema("code", "Python. What it prints, and its last value, come back.", ["code"])
_QUERY = _schema("query", "Words, or the name of one tool. Without it: all tools.", [])

_FIND_DESCRIPTION = (
    "Find functions for run_python. Words give those that fit, a signature and a line each; a name gives its "
    "whole documentation."
)


def _description(known: Catalogue | None, servers: Sequence[str], *, is_group: bool) -> str:
    server = "SERVER" if is_group else servers[0]
    parts = [
        "Run Python that calls the tools of MCP servers. Results stay in the program, and only what it "
        "prints comes back to you: for many calls, for long results, and where one result goes into the next "
        "call.\n"
        f"- await {server}.TOOL(name=value): each tool is an async function, with arguments by name. "
        "find_tools shows them. A structured result is a dict or a list, a text a str, one of more than "
        f"{MAX_VALUE_CHARS:,} characters a Text. A failed call raises. asyncio.gather(...) calls several at "
        "the same time.\n"
        '- fd("fd:1") is a stored text, a Text; fds() lists them; create(text) stores one. '
        'text.search(r"ERROR (\\d+)") gives hits with .line .text .groups; text.lines(1, 100), text.page(3), '
        "text.text(), text.split(chars=50_000). As an argument of a tool a Text is its content.\n"
        "- Variables, functions and imports stay for the next call. There are re, json, math, datetime, "
        "collections, asyncio and the like, no files, no network, no packages. Classes cannot inherit; there "
        "is no yield and no del."
    ]
    if is_group:
        parts.append(f"Servers: {', '.join(servers)}")
    if known is not None and known.tools:
        names = ", ".join(known.names)
        if len(names) > MAX_NAMES_CHARS:
            names = names[:MAX_NAMES_CHARS].rpartition(", ")[0] + ", ..."
        parts.append(f"Tools: {names}")
    return "\n".join(parts)
