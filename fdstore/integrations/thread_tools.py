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

An adapter writes its work once, as operations (see `fdstore.wire.operation`): `run` runs one and blocks,
`run_async` awaits it.
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
from typing import Any, TypeAlias, TypedDict, TypeVar, Unpack

import msgspec

from fdstore.elements.render import fd_error
from fdstore.errors import FDStoreError, InvalidArgument
from fdstore.integrations.process_name import process_name_of_thread
from fdstore.integrations.shared.any_store import AnyStore as AnyStore
from fdstore.integrations.shared.any_store import check_store, run, run_async, run_without
from fdstore.integrations.shared.close_oldest import KEEP_S, close_oldest
from fdstore.integrations.shared.content_parts import shown_blocks
from fdstore.integrations.shared.named_process import NamedProcess
from fdstore.model.flags import check_flag
from fdstore.model.records import Descriptor, TreeLimits
from fdstore.results.config import FDConfig
from fdstore.results.context import Context, FirstResult
from fdstore.results.offloading import offload, offload_parts
from fdstore.results.tool_outcome import Offloaded, ToolResult, tool_result
from fdstore.results.wrapping import exceeds_threshold, wrap_input
from fdstore.setup.settings import HOST_PATIENCE_S
from fdstore.store.keys import check_root
from fdstore.store.process_handle import ProcessHandle
from fdstore.store.read_only import traced
from fdstore.store.recent import Recent
from fdstore.text.layout import show_controls
from fdstore.tools.catalogue import HELD_BACK, READING_TOOLS
from fdstore.tools.definition_shapes import DefinitionShape, in_shape
from fdstore.tools.tool_names import ToolName
from fdstore.tools.toolbox import Toolbox
from fdstore.toolset.build import described_context, waker_for
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

T = TypeVar("T")
Work: TypeAlias = Callable[[Context, str | None], Operation[Offloaded]]
"""Finds what is shown instead of a value, under the id of a call or without one."""


class ThreadOptions(TypedDict, total=False):
    """The options of every adapter, by name.

    process      name of the process of all threads, or of the one that an adapter has. None: each has its own
    enabled      names of built-in tools that are offered to the model (default: all that only read); also
                 write_fd close_fd, and fd_to_file with an `export_root`
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


class TurnOptions(ThreadOptions, total=False):
    """The options of adapters whose frameworks ask for their tools in each turn: `ThreadOptions`, and

    hold_back  True: our tools, and the instructions that the adapter adds, are in the requests of a thread
               from its first descriptor on. The list of tools then changes once, and a provider's prompt
               cache is missed once. Tools that have a use without descriptors (write_fd, fd_to_file) are
               offered from the start, with all others (default: False)
    """

    hold_back: bool


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
        self._limits = options.pop("limits", None)
        self._keep_s = options.pop("keep_s", KEEP_S)
        self._has_made_room = False
        config = options.pop("config", None) or FDConfig(json_pretty_print=True)
        # adapters do not take the passages out of answers, so the instructions must not promise it
        config = msgspec.structs.replace(config, enable_references=False)
        offered: dict[str, Any] = {"enabled": READING_TOOLS, **options, "config": config}
        url, prefix = self.store.url, self.store.prefix
        wake = waker_for(offered["enabled"], url, prefix, code_starts=False)
        context = msgspec.structs.replace(described_context(**offered), prefix=prefix, wake=wake)
        self._toolbox = Toolbox(context)
        """Of no process yet."""
        self._names = frozenset(definition["name"] for definition in self._toolbox.definitions)
        self._processes: Recent[str, NamedProcess] = Recent(MAX_THREADS)
        self._toolboxes: Recent[str, Toolbox] = Recent(MAX_THREADS)
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
        process = self._named(thread)
        if process.handle is None or not process.handle.has_met:
            seen = max(map(int, _ID.findall(repr(history))), default=0)
            process.first_fd = max(seen + 1, process.first_fd)

    def has_met(self, thread: str) -> bool:
        """Return whether a descriptor of the thread was met here, or an id was seen in its messages."""
        process = self._named(thread)
        return process.first_fd > 1 or (process.handle is not None and process.handle.has_met)

    def offload(
        self, thread: str, value: Any, source: str, call_id: str | None = None
    ) -> Operation[Offloaded | None]:
        """Return a tool's output as the model is to see it (see `Toolset.offload`); None if the store fails,
        and for one of our own tools: then the output stays as it is. Under a `call_id` the same value is
        stored once; another value is stored again."""

        def work(context: Context, call_id: str | None) -> Operation[Offloaded]:
            return offload(context, value, source, call_id)

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
    ) -> Operation[Offloaded | None]:
        """Return what to show for the parts of an output (see `Toolset.offload_parts`), or None as
        `offload`."""

        def work(context: Context, call_id: str | None) -> Operation[Offloaded]:
            return offload_parts(context, parts, source, call_id, join_short=join_short, is_input=is_input)

        return None if self.is_own(source) else (yield from self._stored(thread, call_id, work))

    def offload_blocks(
        self,
        thread: str,
        blocks: Sequence[Any],
        part_of: Callable[[Any], str | bytes | None],
        text_block: Callable[[str], Any],
        source: str,
        call_id: str | None = None,
        *,
        is_input: bool = False,
    ) -> Operation[tuple[list[Any], str | None] | None]:
        """Return the blocks of an output, or of a user's input, as the model is to see them, and the first
        descriptor that was made; None if they stay as they are.

        part_of     returns of a block its text, the bytes of a picture, or None for a block that stays
        text_block  makes a block of a text
        """
        parts = [part_of(block) for block in blocks]
        if is_input:  # pictures of the user stay
            parts = [part if isinstance(part, str) else None for part in parts]
        found = yield from self.offload_parts(thread, parts, source, call_id, is_input=is_input)
        if found is None:
            return None
        shown = shown_blocks(blocks, parts, found.content, text_block)
        if len(shown) == len(blocks) and all(new is old for new, old in zip(shown, blocks, strict=True)):
            return None
        return shown, None if found.descriptor is None else found.descriptor.fd

    def wrap_input(self, thread: str, given: Any) -> Operation[Any]:
        """Return a user's input, a text or content blocks, as the model is to see it; unchanged if the store
        fails."""
        found = yield from self._stored(thread, None, lambda context, _: wrap_input(context, given))
        return given if found is None else found.content

    def wrap_input_texts(self, thread: str, texts: Sequence[str | None]) -> Operation[list[str | None]]:
        """Return what to show for the blocks of a user's input that have a shape of their own: for a text the
        text to show, "" if it was stored with an earlier one; None for a block without a text. The texts are
        unchanged if the store fails."""
        found = yield from self.offload_parts(thread, texts, "user_input", is_input=True)
        return list(texts if found is None else found.content)

    def call(
        self, thread: str, name: str, arguments: dict[str, Any], call_id: str | None = None
    ) -> Operation[ToolResult]:
        """Run one of our tools. Raises no error of ours: a failing store is an `fd_error` for the model."""

        def work(handle: ProcessHandle) -> Operation[ToolResult]:
            toolbox = self._toolbox_of(handle)
            with toolbox.observed(name, call_id or None) as seen:
                return seen((yield from traced(toolbox.call(name, arguments, call_id))), arguments)

        try:
            result = yield from self._named(thread).use(work)
        except FDStoreError as error:
            self._failed(error)
            return tool_result(fd_error(error), is_error=True)
        self._is_reported = False
        return result

    def run(self, operation: Operation[T]) -> T:
        """Run an operation, blocking. Raises `InvalidArgument` if the store is of asyncio."""
        return run(self.store, operation)

    async def run_async(self, operation: Operation[T]) -> T:
        """`run`, awaited; with a store of either kind."""
        return await run_async(self.store, operation)

    def _named(self, thread: str) -> NamedProcess:
        name = self.process_of(thread)
        made = self._processes.get(name)
        return made or self._processes.first(
            name, NamedProcess(self.store, name, self._limits, self._make_room)
        )

    def _toolbox_of(self, handle: ProcessHandle) -> Toolbox:
        made = self._toolboxes.get(handle.id)
        if made is None or made.context.handle is not handle:
            context = msgspec.structs.replace(
                self._toolbox.context, handle=handle, first_result=FirstResult()
            )
            made = self._toolboxes.put(handle.id, Toolbox(context))
        return made

    def _stored(self, thread: str, call_id: str | None, work: Work) -> Operation[Offloaded | None]:
        """Return the result of the work, or None if the store fails. A process that is not open yet is only
        opened if there is something to store."""
        process = self._named(thread)
        if process.handle is None:
            needed = InvalidArgument("store", "it is needed")
            with suppress(InvalidArgument):  # also raised for a wrong value, which is reported below
                return run_without(needed, work(self._toolbox.context, None))

        def once(handle: ProcessHandle) -> Operation[Offloaded]:
            """Do the work under the call id, or without it if the framework gave that id to another call
            before."""
            context = self._toolbox_of(handle).context
            try:
                return (yield from work(context, call_id or None))
            except InvalidArgument:
                if not call_id:
                    raise
                return (yield from work(context, None))

        try:
            found = yield from process.use(once)
        except FDStoreError as error:
            self._failed(error)
            return None
        self._is_reported = False
        return found

    def _make_room(self, handle: ProcessHandle) -> Operation[list[Descriptor]]:
        """Close the oldest descriptors of a full process, and return them."""
        released = yield from close_oldest(handle, self._keep_s)
        if released and not self._has_made_room:
            self._has_made_room = True
            log.warning(
                "%s is full: its descriptors to %s were closed, and so are the oldest from now on",
                handle.id,
                released[-1].fd,
            )
        return released

    def _failed(self, error: FDStoreError) -> None:
        if not self._is_reported:
            self._is_reported = True
            log.warning("%s: %s; outputs stay as they are", error.type, show_controls(str(error)))


class TurnTools(ThreadTools):
    """The tools of an adapter whose framework asks for its tools in each turn.

    What a request defines costs tokens, and a conversation without a descriptor needs none of it. The request
    itself decides: if its messages name a descriptor, it has the tools that read it, whoever made the
    descriptor, and in whichever program. It also has them if a descriptor of the thread was met here, which
    the framework may have left out of the messages. So the store is not asked.

    >>> tools = TurnTools(store, hold_back=True)
    >>> tools.offers("a chat", ["Why did it fail?"])
    False
    >>> shown = tools.run(tools.offload("a chat", "a long line\\n" * 1000, "grep"))
    >>> tools.offers("a chat", ["Why did it fail?", shown]), tools.offers("another chat", ["Hello."])
    (True, False)
    """

    def __init__(self, store: AnyStore, *, hold_back: bool = False, **options: Unpack[ThreadOptions]) -> None:
        super().__init__(store, **options)
        self.holds_back = check_flag("hold_back", hold_back) and self._names <= HELD_BACK
        """False: `offers` is always True."""

    def offers(self, thread: str, history: object) -> bool:
        """Return whether our tools and instructions belong in a request of a thread.

        history  the messages of the request, as `see` takes them
        """
        if self.holds_back and not self.has_met(thread):
            self.see(thread, history)
            return self.has_met(thread)
        return True


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
