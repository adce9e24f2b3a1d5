"""fdstore's tools for the threads of an agent framework: what its adapters share.

A framework runs many conversations: threads, sessions, runs. Each has a process of its own with the name that
`process_name_of_thread` makes of its id, or all share the one that the adapter was given. A process is opened
when the first text is stored or the model calls one of our tools; a thread with short results alone never
reaches the store.

A framework may give a run the messages of another one, which had another process. So that no id in them comes
to mean another text, adapters show a history to `see`, and a process that is then made begins above its ids.
An agent that is run within a tool of another one shares its thread (`thread_of_tool`), so that an id that it
returns works there.

A store that fails leaves a result as it was, and our tools answer with an `fd_error`. The first failure of an
outage is logged. A store that was connected without patience is used with `HOST_PATIENCE_S`: an outage costs
one call that time, and the following ones nothing.

An adapter writes its work once, as steps (`steps`): `run` executes them and blocks, `run_async` awaits them.
"""

from __future__ import annotations

import logging
import os
import re
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from hashlib import sha256
from typing import Any, NamedTuple, TypedDict, TypeVar, Unpack

import msgspec

import fdstore.aio
from fdstore.client import Store
from fdstore.elements.render import fd_error
from fdstore.errors import FDStoreError, InvalidArgument, NotFound, QuotaExceeded
from fdstore.integrations.content_parts import shown_blocks
from fdstore.integrations.process_name import process_name_of_thread
from fdstore.integrations.room import FULL, KEEP_S, close_oldest
from fdstore.integrations.steps import AnyStore as AnyStore
from fdstore.integrations.steps import Steps as Steps
from fdstore.integrations.steps import check_store, run, run_async
from fdstore.model.records import TreeLimits
from fdstore.results.config import FDConfig
from fdstore.results.context import Context
from fdstore.results.offloading import offload, offload_parts
from fdstore.results.tool_outcome import Offloaded, ToolResult, tool_result
from fdstore.results.wrapping import exceeds_threshold, wrap_input
from fdstore.setup.settings import HOST_PATIENCE_S
from fdstore.store.keys import check_root
from fdstore.store.recent import Recent
from fdstore.text.layout import show_controls
from fdstore.tools.catalogue import READING_TOOLS
from fdstore.tools.definition_shapes import DefinitionShape, in_shape
from fdstore.tools.tool_names import ToolName
from fdstore.tools.toolbox import Toolbox
from fdstore.toolset import Toolset
from fdstore.toolset.build import described_context
from fdstore.wire.operation import Operation

log = logging.getLogger("fdstore.integrations")

MAX_THREADS = 1024
"""Threads whose process is kept open."""

_thread_of_tool: ContextVar[str | None] = ContextVar("fdstore_thread_of_tool", default=None)

_GENERATED = re.compile(r"thread-[0-9a-f]{16}")

_ID = re.compile(r"\bfd:([1-9][0-9]{0,8})\b")
"""The id of a descriptor, in an element or in what an agent said of one."""

MAX_CALLS = 10_000
"""Calls that an adapter remembers until their results are sent."""

AnyToolset = Toolset | fdstore.aio.Toolset
T = TypeVar("T")


class ThreadOptions(TypedDict, total=False):
    """The options of every adapter, by name.

    process      name of the process of all threads, or of the one that an adapter has. None: each has its own
    enabled      names of built-in tools that are offered to the model (default: read_fd search_fd list_fds);
                 also write_fd close_fd, and fd_to_file with an `export_root`
    config       sizes and switches, and policies for single tools (`FDConfig`). None: long JSON is indented
    export_root  directory below which `fd_to_file` writes
    meter        name under which `fdstore saved` counts. None: nothing is counted
    limits       of the trees that are made (`TreeLimits`): their size, and how long they are kept
    keep_s       where a tree is full, descriptors older than this are closed, the oldest first, in seconds
                 (default: a day)
    """

    process: str | None
    enabled: Sequence[ToolName]
    config: FDConfig | None
    export_root: str | os.PathLike[str] | None
    meter: str | None
    limits: TreeLimits | None
    keep_s: float


class _Work(NamedTuple):
    """The work that finds what is shown instead of a value: the method of a toolset that finds out, given a
    call id, and the operation behind it."""

    run: Callable[[AnyToolset, str | None], Any]
    operation: Callable[[Context], Operation[Any]]


class ThreadTools:
    """The tools of one adapter, for any number of threads.

    store    a connected store: blocking, or of asyncio for frameworks that await; see `connect(patience=...)`
    options  see `ThreadOptions`

    Raises `InvalidArgument`.

    >>> tools = ThreadTools(store, process="chats")
    >>> tools.run(tools.offload("Chat 7", "a long line\\n" * 1000, "grep")).content.partition(" pages")[0]
    '<fd_result fd="fd:1"'
    >>> tools.run(tools.call("Chat 7", "read_fd", {"fd": "fd:1#L2"})).is_error, tools.is_own("read_fd")
    (False, True)
    """

    def __init__(self, store: AnyStore, **options: Unpack[ThreadOptions]) -> None:
        self.store: AnyStore = check_store(store).with_patience(HOST_PATIENCE_S)
        process = options.pop("process", None)
        self._process = None if process is None else check_root(process)
        self._meter = options.pop("meter", None)
        self._limits = options.pop("limits", None)
        self._keep_s = options.pop("keep_s", KEEP_S)
        self._has_made_room = False
        config = options.pop("config", None) or FDConfig(json_pretty_print=True)
        # adapters do not take the passages out of answers, so the instructions must not promise it
        config = msgspec.structs.replace(config, enable_references=False)
        self._options: dict[str, Any] = {"enabled": READING_TOOLS, **options, "config": config}
        self._toolbox = Toolbox(described_context(**self._options))
        self._names = frozenset(definition["name"] for definition in self._toolbox.definitions)
        self._toolsets: Recent[str, AnyToolset] = Recent(MAX_THREADS)
        self._first_fds: Recent[str, int] = Recent(MAX_THREADS)
        """Of processes that may still have to be made."""
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

    def is_long(self, text: str, source: str) -> bool:
        """Return whether a text of a tool would be stored."""
        return exceeds_threshold(self._toolbox.context, text, source)

    def process_of(self, thread: str) -> str:
        """Return the name of the process of a thread."""
        return self._process or process_name_of_thread(thread)

    def see(self, thread: str, history: object) -> None:
        """Look for ids of descriptors in the messages that a run begins with: if the process of the thread
        is still to be made, its own begin above them, and those of the messages are `not_found`.

        history  messages of any framework, whose repr has their texts; without those of the system, whose
                 instructions name ids too

        >>> tools = ThreadTools(store)
        >>> tools.see("a new chat", [{"role": "tool", "content": '<fd_result fd="fd:7" pages="9">'}])
        >>> stored = tools.run(tools.offload("a new chat", "a long line\\n" * 1000, "grep"))
        >>> stored.content.partition(" pages")[0]
        '<fd_result fd="fd:8"'
        """
        name = self.process_of(thread)
        if name not in self._toolsets:
            seen = max(map(int, _ID.findall(repr(history))), default=0)
            self._first_fds.put(name, max(seen + 1, self._first_fds.get(name, 1)))

    def offload(
        self, thread: str, value: Any, source: str, call_id: str | None = None
    ) -> Steps[Offloaded | None]:
        """Return a tool's output as the model is to see it (see `Toolset.offload`); None if the store fails,
        and for one of our own tools: then the output stays as it is. Under a `call_id` the same value is
        stored once; another value is stored again."""
        work = _Work(
            lambda tools, call_id: tools.offload(value, source, call_id),
            lambda context: offload(context, value, source),
        )
        return None if self.is_own(source) else (yield from self._stored(thread, call_id, work))

    def offload_parts(
        self,
        thread: str,
        parts: Sequence[str | bytes | None],
        source: str,
        call_id: str | None = None,
        *,
        join_short: bool = True,
        is_input: bool = False,
    ) -> Steps[Offloaded | None]:
        """Return what to show for the parts of an output (see `Toolset.offload_parts`), or None as
        `offload`."""
        work = _Work(
            lambda tools, call_id: tools.offload_parts(
                parts, source, call_id, join_short=join_short, is_input=is_input
            ),
            lambda context: offload_parts(context, parts, source, join_short=join_short, is_input=is_input),
        )
        return None if self.is_own(source) else (yield from self._stored(thread, call_id, work))

    def offload_blocks(
        self,
        thread: str,
        blocks: Sequence[Any],
        parts: Sequence[str | bytes | None],
        text_block: Callable[[str], Any],
        source: str,
        call_id: str | None = None,
        *,
        is_input: bool = False,
    ) -> Steps[tuple[list[Any], str | None] | None]:
        """Return the blocks of an output as the model is to see them (see `shown_blocks`), and the first
        descriptor that was made; None if they stay as they are."""
        found = yield from self.offload_parts(thread, parts, source, call_id, is_input=is_input)
        if found is None:
            return None
        shown = shown_blocks(blocks, parts, found.content, text_block)
        if len(shown) == len(blocks) and all(new is old for new, old in zip(shown, blocks, strict=True)):
            return None
        return shown, None if found.descriptor is None else found.descriptor.fd

    def wrap_input(self, thread: str, given: Any) -> Steps[Any]:
        """Return a user's input, a text or content blocks, as the model is to see it; unchanged if the store
        fails."""
        work = _Work(lambda tools, _: tools.wrap_input(given), lambda context: _wrap_input(context, given))
        found = yield from self._stored(thread, None, work)
        return given if found is None else found

    def wrap_input_texts(self, thread: str, texts: Sequence[str | None]) -> Steps[list[str | None]]:
        """Return what to show for the blocks of a user's input that have a shape of their own: for a text the
        text to show, "" if it was stored with an earlier one; None for a block without a text. The texts are
        unchanged if the store fails."""
        found = yield from self.offload_parts(thread, texts, "user_input", is_input=True)
        return list(texts if found is None else found.content)

    def call(
        self, thread: str, name: str, arguments: dict[str, Any], call_id: str | None = None
    ) -> Steps[ToolResult]:
        """Run one of our tools. Raises no error of ours: a failing store is an `fd_error` for the model."""
        try:
            result: ToolResult = yield from self._with_toolset(
                thread, lambda tools: _once(lambda: tools.call(name, arguments, call_id))
            )
        except FDStoreError as error:
            self._failed(error)
            return tool_result(fd_error(error), is_error=True)
        self._is_reported = False
        return result

    def run(self, steps: Steps[T]) -> T:
        """Return what steps return, blocking. Raises `InvalidArgument` if the store is of asyncio."""
        return run(self.store, steps)

    async def run_async(self, steps: Steps[T]) -> T:
        """`run`, awaited; with a store of either kind."""
        return await run_async(self.store, steps)

    def _stored(self, thread: str, call_id: str | None, work: _Work) -> Steps[Any]:
        """Return the result of the work, or None if the store fails. A process that is not open yet is only
        opened if there is something to store."""
        if self.process_of(thread) not in self._toolsets:
            found = _without_store(work.operation(self._toolbox.context))
            if found is not None:
                return found
        try:
            result = yield from self._with_room(thread, lambda tools: _work_once(tools, call_id, work))
        except FDStoreError as error:
            self._failed(error)
            return None
        self._is_reported = False
        return result

    def _with_room(self, thread: str, work: Callable[[AnyToolset], Steps[Any]]) -> Steps[Any]:
        """Do some work with the toolset of a thread, and make room for it as often as its tree is full."""
        while True:
            try:
                return (yield from self._with_toolset(thread, work))
            except QuotaExceeded as error:
                if error.limit not in FULL or not (yield from self._make_room(thread)):
                    raise

    def _with_toolset(self, thread: str, work: Callable[[AnyToolset], Steps[Any]]) -> Steps[Any]:
        """Do some work with the toolset of a thread. A root process that was removed is created again; its
        toolset stays, so that no id of the removed one comes to mean another text."""
        name = self.process_of(thread)
        tools = self._toolsets.get(name)
        if tools is None:
            process = yield lambda: self._open(name)
            self._first_fds.forget(name)
            kind: Any = Toolset if isinstance(self.store, Store) else fdstore.aio.Toolset
            policies = self._toolbox.context.config.tool
            made = kind(process, **self._options, meter=self._meter, outside=list(policies))
            tools = self._toolsets.first(name, made)
        try:
            return (yield from work(tools))
        except NotFound:
            yield lambda: self._open(name)
            return (yield from work(tools))

    def _open(self, name: str) -> Any:
        """Open a process, or create it."""
        first_fd = self._first_fds.get(name, 1)
        return self.store.process(name, limits=self._limits, first_fd=first_fd)

    def _make_room(self, thread: str) -> Steps[bool]:
        """Close the oldest descriptors of a full process. Return whether there were any."""
        process = yield lambda: self._open(self.process_of(thread))
        released = yield from close_oldest(process, self._keep_s)
        if released and not self._has_made_room:
            self._has_made_room = True
            log.warning(
                "%s is full: its descriptors to %s were closed, and so are the oldest from now on",
                process.id,
                released[-1].fd,
            )
        return bool(released)

    def _failed(self, error: FDStoreError) -> None:
        if not self._is_reported:
            self._is_reported = True
            log.warning("%s: %s; outputs stay as they are", error.type, show_controls(str(error)))


@contextmanager
def within_tool_of(thread: str) -> Iterator[None]:
    """While a tool runs: agents that it runs share the thread of the agent that called it.

    >>> with within_tool_of("chat-7"):
    ...     thread_of_tool()
    'chat-7'
    """
    before = _thread_of_tool.set(thread)
    try:
        yield
    finally:
        with suppress(ValueError):  # a generator that is closed in another context
            _thread_of_tool.reset(before)


def thread_of_tool() -> str | None:
    """Return the thread of the agent within whose tool this code runs; None outside of one."""
    return _thread_of_tool.get()


def new_thread(run: str | None = None) -> str:
    """Return a random thread id, or one derived from `run`, which must not be guessable.

    >>> new_thread("run 7") == new_thread("run 7") != new_thread()
    True
    """
    return f"thread-{secrets.token_hex(8) if run is None else sha256(run.encode()).hexdigest()[:16]}"


def is_generated(thread: str) -> bool:
    """Return whether `new_thread` made a thread id.

    >>> is_generated(new_thread()), is_generated("chat-7")
    (True, False)
    """
    return _GENERATED.fullmatch(thread) is not None


def _wrap_input(context: Context, given: Any) -> Operation[str | list[Any]]:
    return (yield from wrap_input(context, given)).content


def _once(call: Callable[[], Any]) -> Steps[Any]:
    return (yield call)


def _work_once(tools: AnyToolset, call_id: str | None, work: _Work) -> Steps[Any]:
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
