"""The store of a gateway, connected in the background.

The server is started at once; the store is connected from its first answer on, since hosts give servers
little time for that one. Our tools are listed without a store. A long text waits for the first attempt, but
not for a store that is away, which changes nothing for the host: texts pass as they are, stderr says so once,
and a thread tries again until the store answers (see `wire.breaker`).
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from functools import cached_property
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from fdstore.errors import FDStoreError, StoreUnavailable, UnknownOutcome
from fdstore.hosts.gateway.options import GatewayOptions
from fdstore.hosts.gateway.tool_list import offered_tools
from fdstore.hosts.project import Project
from fdstore.setup.settings import HOST_PATIENCE_S

if TYPE_CHECKING:
    from fdstore.client._sync.process import Process
    from fdstore.client._sync.store import Connector, Store
    from fdstore.hosts.gateway.json_texts import Text
    from fdstore.results.config import FDConfig
    from fdstore.tools.tool_names import ToolName
    from fdstore.toolset._sync import Toolset

T = TypeVar("T")

FIRST_TRY_S = 5.0
"""The time that a message waits for the first connection: some hosts give a server ten seconds to start."""
END_S = 2.0
"""The time that the program's end waits for the first connection."""


_importing = threading.Lock()


def _import_library() -> None:
    """Import what descriptors need, one thread at a time: modules that import each other are half there for a
    second thread. The gateway begins without them, since they take longer than all else."""
    with _importing:
        import fdstore.client._sync.store
        import fdstore.tools.functions.python_tool
        import fdstore.toolset._sync
        import fdstore.toolset.build
        import fdstore.wire.breaker  # noqa: F401


class Connected(NamedTuple):
    """A store, and the tools of the gateway's process in it."""

    store: Store
    process: Process
    tools: Toolset


class Descriptors:
    """The descriptors of one process of a store, as long as the store can be reached.

    options   those of the gateway
    project   has the process and the size that the options leave open
    report    called with one line for people
    session   name of the session under which `fdstore saved` counts
    limit     texts of more characters are stored
    """

    def __init__(
        self,
        options: GatewayOptions,
        project: Project,
        report: Callable[[str], None],
        *,
        url: str | None = None,
        prefix: str | None = None,
        session: str | None = None,
    ) -> None:
        self.options, self.report = options, report
        self._url, self._prefix, self._process = url, prefix, options.process or project.process
        self.limit = options.max_direct_output_chars or project.config.direct_chars
        self._session = session
        self._connected: Connected | None = None
        self._tried = threading.Event()
        self._lock = threading.Lock()
        self._told: set[str] = set()
        self._connector: Connector | None = None
        self._ended = threading.Event()
        self._is_started = self._is_looking = False
        self._is_away = True
        self._is_reported = False
        self._problem: FDStoreError = StoreUnavailable("the store", "it was not reached yet")

    @cached_property
    def offered(self) -> Sequence[ToolName]:
        """The tools that the host is offered; without any, another gateway of the process offers those that
        read."""
        return offered_tools(self.options)

    def start(self) -> None:
        """Begin to look for the store, on a thread, unless that was begun: whatever needs it does so too."""
        if not self._is_started:
            self._is_started = True
            self._begin_to_look()

    def _begin_to_look(self) -> None:
        with self._lock:
            if self._is_looking:
                return
            self._is_looking = True
        threading.Thread(target=self._look, name="fdstore-look", daemon=True).start()

    def finish(self) -> None:
        """Look no more. Wait up to `END_S` for the first attempt to connect, if it is under way: it imports
        native modules, and an interpreter that exits meanwhile aborts."""
        self._ended.set()
        with self._lock:
            is_looking = self._is_looking
        if is_looking:
            self._tried.wait(END_S)

    def definitions(self) -> list[dict[str, Any]]:
        """Return our tools for a tool list of MCP, whether the store can be reached or not."""
        _import_library()
        from fdstore.tools.definition_shapes import in_shape
        from fdstore.tools.toolbox import Toolbox
        from fdstore.toolset.build import described_context

        described = Toolbox(described_context(enabled=self.offered, config=self.config()))
        return in_shape(described.definitions, "mcp")

    def tell(self, text: str) -> None:
        """Tell the operator something, once: what it says is one of a few kinds."""
        with self._lock:
            is_new = text not in self._told
            self._told.add(text)
        if is_new:
            self.report(text)

    def offload(self, content: Text, source: str) -> str | None:
        """Store a text and return its `fd_result`; None if it is not to be replaced."""
        found = self._reachable()
        if found is None:
            return None
        try:
            text = content.to_store()
            offload = found.tools.offload if isinstance(text, str) else found.tools.offload_file
            stored = offload(text, source=source or "tool_result")
        except FDStoreError as error:
            self._failed(error)
            return None
        except ValueError:
            self.tell("a long result passes unchanged: a string in it is no text")
            return None
        self._worked()
        return None if stored.descriptor is None else str(stored.content)

    def expand(self, texts: list[str]) -> list[str] | None:
        """Return the texts with the content that each `{{fd:3}}` names; None if the store cannot be reached.
        Raises the error of a wrong name, and `TooLarge`."""
        from fdstore.results.config import FDConfig
        from fdstore.tools.functions.python_tool import expand_placeholders

        found = self._reachable()
        if found is None:
            return None
        bound = FDConfig().max_expand_chars
        try:
            expanded, _ = found.store.run(expand_placeholders(found.process.handle, texts, bound))
        except FDStoreError as error:
            if not error.stops:
                raise
            self._failed(error)
            return None
        self._worked()
        return [str(text) for text in expanded]

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[list[dict[str, Any]], bool]:
        """Run one of our tools. Return the content blocks of MCP, and whether it failed."""
        try:
            result = self.work(lambda found: found.tools.call(tool, arguments))
        except FDStoreError as error:
            return error_blocks(error), True
        return mcp_blocks(result.content), result.is_error

    def work(self, body: Callable[[Connected], T]) -> T:
        """Return what `body` does with the store. Raises its errors, and `StoreUnavailable` if there was no
        connection yet."""
        self.start()
        self._tried.wait(FIRST_TRY_S)
        found = self._connected  # one that is away says since when
        if found is None:
            raise self._problem
        try:
            done = body(found)
        except FDStoreError as error:
            self._failed(error)
            raise
        if not self._is_away:  # else it may have failed without the store
            self._worked()
        return done

    def _look(self) -> None:
        """Try the store until it answers."""
        _import_library()
        from fdstore.wire.breaker import PAUSES_S

        for pause_s in chain(PAUSES_S, repeat(PAUSES_S[-1])):
            try:
                self._connect()
            except FDStoreError as error:
                self._problem = error
                self._report_failure(error)
            else:
                self._worked()
            finally:
                self._tried.set()
            with self._lock:
                self._is_looking = self._is_away
            if not self._is_looking or self._ended.wait(pause_s):
                return

    def _connect(self) -> None:
        """Connect, and open the process: a store that restarted may have lost it. Raises as `connect`."""
        import fdstore
        from fdstore.client._sync.store import Connector
        from fdstore.tools.catalogue import READING_TOOLS

        if self._connector is None:
            self._connector = Connector(self._url, self._prefix, patience=HOST_PATIENCE_S)
        store = self._connector.connect()
        process = store.process(self._process)
        enabled = self.offered or READING_TOOLS
        tools = fdstore.Toolset(process, enabled=enabled, config=self.config(), meter=self._session)
        self._connected = Connected(store, process, tools)

    def config(self) -> FDConfig:
        """Return the sizes and switches of our tools."""
        from fdstore.results.config import FDConfig

        return FDConfig(
            max_direct_output_chars=self.limit,
            max_read_chars=self.options.max_read_chars,
            json_pretty_print=True,
        )

    def _reachable(self) -> Connected | None:
        """Return the store unless it is away, which only the thread that looks for it waits for."""
        self.start()
        self._tried.wait(FIRST_TRY_S)
        return None if self._is_away else self._connected

    def _failed(self, error: FDStoreError) -> None:
        """Note that an operation failed, and look for the store if it did not answer."""
        self._report_failure(error)
        if isinstance(error, (StoreUnavailable, UnknownOutcome)):
            self._problem, self._is_away = error, True
            self._begin_to_look()

    def _worked(self) -> None:
        was_away, self._is_away = self._is_away, False
        was_reported, self._is_reported = self._is_reported, False
        if was_away and was_reported:
            self.report("the store answers again: long results become descriptors")

    def _report_failure(self, error: FDStoreError) -> None:
        """Report a failure if it is the first in a row."""
        if not self._is_reported:
            self._is_reported = True
            self.report(f"{error.type}: {error}; results pass unchanged")


def error_blocks(error: FDStoreError) -> list[dict[str, Any]]:
    """Return an error as a block of MCP, with its `fd_error`."""
    from fdstore.elements.render import fd_error

    return mcp_blocks(fd_error(error).text)


def mcp_blocks(content: str | Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return a result for the Messages API as blocks of MCP: pictures as images, PDFs as resources."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return [_mcp_block(block) for block in content]


def _mcp_block(block: dict[str, Any]) -> dict[str, Any]:
    source = block.get("source")
    if not isinstance(source, dict) or source.get("type") != "base64":
        return block
    media_type, data = source["media_type"], source["data"]
    if block["type"] == "image":
        return {"type": "image", "data": data, "mimeType": media_type}
    uri = f"fdstore://document/{block.get('title', 'document')}"
    return {"type": "resource", "resource": {"uri": uri, "mimeType": media_type, "blob": data}}
