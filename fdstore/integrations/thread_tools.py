"""fdstore's tools for the threads of an agent framework: what its adapters share.

A framework runs many conversations: threads, sessions, runs. Each has a process of its own with the name that
`process_name_of_thread` makes of its id, or all share the one that the adapter was given. A process is opened
when the first text is stored or the model calls one of our tools; a thread with short results alone never
reaches the store.

A store that fails leaves a result as it was, and our tools answer with an `fd_error`. The first failure of an
outage is logged. An operation on a store that has stopped is retried for ten seconds. So after a failure of
the store `PAUSE_S` seconds pass without another, and the next one begins by connecting, once.

Every method is there for both colours. With the store of `fdstore.aio.connect` the awaited ones run on its
event loop; with that of `fdstore.connect` they run in a thread. The sequence of steps is written once, as a
generator of calls.
"""

from __future__ import annotations

import asyncio
import logging
import os
import secrets
from collections.abc import Callable, Generator, Sequence
from time import monotonic
from typing import Any, NamedTuple

import fdstore.aio
from fdstore.client import Store
from fdstore.errors import STORE_FAILURES, FDStoreError, InvalidArgument, NotFound, StoreUnavailable
from fdstore.integrations.named_process import AnyStore as AnyStore
from fdstore.integrations.process_name import process_name_of_thread
from fdstore.render import fd_error
from fdstore.store.keys import check_root
from fdstore.store.recent import Recent
from fdstore.text.layout import show_controls
from fdstore.tools.config import FDConfig
from fdstore.tools.context import Context
from fdstore.tools.definition_shapes import DefinitionShape, in_shape
from fdstore.tools.offloading import offload, offload_parts
from fdstore.tools.tool_names import READING_TOOLS, ToolName
from fdstore.tools.tool_outcome import Offloaded, ToolResult
from fdstore.tools.toolbox import Toolbox
from fdstore.tools.wrapping import wrap_input
from fdstore.toolset import Toolset
from fdstore.toolset.build import described_context
from fdstore.wire.operation import Operation

log = logging.getLogger("fdstore.integrations")

PAUSE_S = 5.0
"""For how long a failed store is not tried again."""

MAX_THREADS = 1024
"""Threads whose process is kept open."""

AnyToolset = Toolset | fdstore.aio.Toolset
Steps = Generator[Callable[[], Any], Any, Any]
"""Yields calls of the store, and receives what each returns or raises."""


class _Work(NamedTuple):
    """What is to be shown instead of a value: the method of a toolset that finds out, given a call id, and
    the operation behind it."""

    run: Callable[[AnyToolset, str | None], Any]
    operation: Callable[[Context], Operation[Any]]


class ThreadTools:
    """The tools of one adapter, for any number of threads.

    store        a connected store: blocking, or of asyncio for frameworks that await
    process      name of the process of all threads. None: each has its own
    enabled      names of built-in tools that are offered to the model
    config       sizes and switches (`FDConfig`)
    export_root  directory below which `fd_to_file` writes (required by it)
    meter        name under which `fdstore saved` counts; None: nothing is counted

    Raises `InvalidArgument`.

    >>> tools = ThreadTools(store)
    >>> tools.offload("Chat 7", "a long line\\n" * 1000, "grep").content.partition(" pages")[0]
    '<fd_result fd="fd:1"'
    >>> tools.call("Chat 7", "read_fd", {"fd": "fd:1#L2"}).is_error, tools.is_own("read_fd")
    (False, True)
    """

    def __init__(
        self,
        store: AnyStore,
        *,
        process: str | None = None,
        enabled: Sequence[ToolName] = READING_TOOLS,
        config: FDConfig | None = None,
        export_root: str | os.PathLike[str] | None = None,
        meter: str | None = None,
    ) -> None:
        if not isinstance(store, (Store, fdstore.aio.Store)):
            raise InvalidArgument("store", "a connected store is needed, as fdstore.connect() returns it")
        self.store = store
        self._process = None if process is None else check_root(process)
        self._options: dict[str, Any] = {
            "enabled": enabled,
            "config": config,
            "export_root": export_root,
        }
        self._meter = meter
        self._toolbox = Toolbox(described_context(**self._options))
        self._names = frozenset(definition["name"] for definition in self._toolbox.definitions)
        self._toolsets: Recent[str, AnyToolset] = Recent(MAX_THREADS)
        self._paused_until = 0.0
        self._is_trusted = False
        """Whether the last operation reached the store."""
        self._is_reported = False

    @property
    def instructions(self) -> str:
        """The section for the system prompt."""
        return self._toolbox.instructions

    def definitions_for(self, shape: DefinitionShape = "anthropic") -> list[Any]:
        """Return the tools as an API takes them, see `Toolset.definitions_for`. Needs no store."""
        return in_shape(self._toolbox.definitions, shape)

    def is_own(self, tool: str) -> bool:
        """Return whether a tool is one of ours, whose results are never offloaded."""
        return tool in self._names

    def process_of(self, thread: str) -> str:
        """Return the name of the process of a thread."""
        return self._process or process_name_of_thread(thread)

    def offload(self, thread: str, value: Any, source: str, call_id: str | None = None) -> Offloaded | None:
        """Return a tool's output as the model is to see it (see `Toolset.offload`); None if the store fails,
        and for one of our own tools: then the output stays as it is. Under a `call_id` the same value is
        stored once, another one anew."""
        found: Offloaded | None = self._run(self._offload(thread, source, call_id, _value(value, source)))
        return found

    async def offload_async(
        self, thread: str, value: Any, source: str, call_id: str | None = None
    ) -> Offloaded | None:
        """`offload`, awaited."""
        steps = self._offload(thread, source, call_id, _value(value, source))
        found: Offloaded | None = await self._run_async(steps)
        return found

    def offload_parts(
        self, thread: str, parts: Sequence[str | bytes | None], source: str, call_id: str | None = None
    ) -> Offloaded | None:
        """Return what to show for the parts of an output (see `Toolset.offload_parts`), or None as
        `offload`."""
        found: Offloaded | None = self._run(self._offload(thread, source, call_id, _parts(parts, source)))
        return found

    async def offload_parts_async(
        self, thread: str, parts: Sequence[str | bytes | None], source: str, call_id: str | None = None
    ) -> Offloaded | None:
        """`offload_parts`, awaited."""
        steps = self._offload(thread, source, call_id, _parts(parts, source))
        found: Offloaded | None = await self._run_async(steps)
        return found

    def wrap_input(self, thread: str, given: Any) -> Any:
        """Return a user's input, a text or content blocks, as the model is to see it; unchanged if the store
        fails."""
        found = self._run(self._stored(thread, None, _input(given)))
        return given if found is None else found

    async def wrap_input_async(self, thread: str, given: Any) -> Any:
        """`wrap_input`, awaited."""
        found = await self._run_async(self._stored(thread, None, _input(given)))
        return given if found is None else found

    def call(
        self, thread: str, name: str, arguments: dict[str, Any], call_id: str | None = None
    ) -> ToolResult:
        """Run one of our tools. Raises no error of ours: a failing store is an `fd_error` for the model."""
        found: ToolResult = self._run(self._called(thread, name, arguments, call_id))
        return found

    async def call_async(
        self, thread: str, name: str, arguments: dict[str, Any], call_id: str | None = None
    ) -> ToolResult:
        """`call`, awaited."""
        found: ToolResult = await self._run_async(self._called(thread, name, arguments, call_id))
        return found

    def _offload(self, thread: str, source: str, call_id: str | None, work: _Work) -> Steps:
        return None if self.is_own(source) else (yield from self._stored(thread, call_id, work))

    def _stored(self, thread: str, call_id: str | None, work: _Work) -> Steps:
        """Return the result of the work, or None if the store fails. A process that is not open yet is only
        opened if there is something to store."""
        is_paused = monotonic() < self._paused_until
        if is_paused or self.process_of(thread) not in self._toolsets:
            found = _without_store(work.operation(self._toolbox.context))
            if found is not None or is_paused:
                return found
        try:
            result = yield from self._with_toolset(thread, lambda tools: _work_once(tools, call_id, work))
        except FDStoreError as error:
            self._failed(error)
            return None
        self._worked()
        return result

    def _called(self, thread: str, name: str, arguments: dict[str, Any], call_id: str | None) -> Steps:
        error: FDStoreError = StoreUnavailable(self.store.where, "it failed a moment ago")
        if monotonic() >= self._paused_until:
            try:
                result = yield from self._with_toolset(
                    thread, lambda tools: _once(lambda: tools.call(name, arguments, call_id))
                )
            except FDStoreError as raised:
                self._failed(raised)
                error = raised
            else:
                self._worked()
                return result
        return ToolResult(fd_error(error), is_error=True)

    def _with_toolset(self, thread: str, work: Callable[[AnyToolset], Steps]) -> Steps:
        """Do some work with the toolset of a thread. A root process that was removed is created again; its
        toolset stays, so that no id of the removed one comes to mean another text."""
        name = self.process_of(thread)
        if not self._is_trusted:
            yield self.store.reach
        tools = self._toolsets.get(name)
        if tools is None:
            process = yield lambda: self.store.process(name)
            kind: Any = Toolset if isinstance(self.store, Store) else fdstore.aio.Toolset
            policies = self._toolbox.context.config.policies
            made = kind(process, **self._options, meter=self._meter, outside=list(policies))
            tools = self._toolsets.first(name, made)
        try:
            return (yield from work(tools))
        except NotFound:
            yield lambda: self.store.process(name)
            return (yield from work(tools))

    def _worked(self) -> None:
        self._is_trusted = True
        self._is_reported = False

    def _failed(self, error: FDStoreError) -> None:
        if isinstance(error, STORE_FAILURES):
            self._is_trusted = False
            self._paused_until = monotonic() + PAUSE_S
        if not self._is_reported:
            self._is_reported = True
            log.warning("%s: %s; outputs stay as they are", error.type, show_controls(str(error)))

    def _run(self, steps: Steps) -> Any:
        if not isinstance(self.store, Store):
            steps.close()
            problem = "it is of asyncio, and this call blocks; give the store of fdstore.connect()"
            raise InvalidArgument("store", problem)
        try:
            step = next(steps)
            while True:
                try:
                    result = step()
                except FDStoreError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value

    async def _run_async(self, steps: Steps) -> Any:
        if isinstance(self.store, Store):
            return await asyncio.to_thread(self._run, steps)
        try:
            step = next(steps)
            while True:
                try:
                    result = await step()
                except FDStoreError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration as end:
            return end.value


def new_thread() -> str:
    """Return an id for a thread that has none."""
    return f"thread-{secrets.token_hex(8)}"


def _value(value: Any, source: str) -> _Work:
    return _Work(
        lambda tools, call_id: tools.offload(value, source, call_id),
        lambda context: offload(context, value, source),
    )


def _parts(parts: Sequence[str | bytes | None], source: str) -> _Work:
    return _Work(
        lambda tools, call_id: tools.offload_parts(parts, source, call_id),
        lambda context: offload_parts(context, parts, source),
    )


def _input(given: Any) -> _Work:
    return _Work(lambda tools, _: tools.wrap_input(given), lambda context: wrap_input(context, given))


def _once(call: Callable[[], Any]) -> Steps:
    return (yield call)


def _work_once(tools: AnyToolset, call_id: str | None, work: _Work) -> Steps:
    """Do the work under a call id, or without it if the framework gave that id to another call before."""
    try:
        return (yield lambda: work.run(tools, call_id))
    except InvalidArgument:
        if call_id is None:
            raise
        return (yield lambda: work.run(tools, None))


def _without_store(operation: Operation[Any]) -> Any:
    """Return the result of an operation that needs no store, None for another one."""
    try:
        next(operation)
    except StopIteration as end:
        return end.value
    except (
        InvalidArgument
    ):  # such as a value that is neither text nor JSON: reported when it is done in earnest
        return None
    operation.close()
    return None
