"""The store of a gateway, connected in the background.

The server is started at once and the store is connected meanwhile. What needs the store waits for the first
attempt, but not for a store that hangs. A store out of reach changes nothing for the host: texts pass as they
are, stderr says so once, and a thread tries again when there is need, at most every `RETRY_S` seconds.

An operation on a store that has stopped would be retried for ten seconds. So after a pause a new connection
is tried first, once.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple

from fdstore.errors import FDStoreError, StoreUnavailable
from fdstore.tools.catalogue import READING_TOOLS

if TYPE_CHECKING:
    from fdstore.client._sync.process import Process
    from fdstore.client._sync.store import Store
    from fdstore.toolset._sync import Toolset

RETRY_S = 5.0
FIRST_TRY_S = 5.0
"""How long a message waits for the first connection: some hosts give a server ten seconds to start."""
END_S = 2.0
"""How long the program's end waits for the first connection."""
TRUSTED_S = 1.0
"""For how long after an operation the store counts as reachable."""
MAX_READ_CHARS = 45_000
"""What most hosts keep in a conversation; Claude Code writes 50 000 characters to a file."""


class Connected(NamedTuple):
    """A store, and the tools of the gateway's process in it."""

    store: Store
    process: Process
    tools: Toolset


class Descriptors:
    """The descriptors of one process of a store, as long as the store can be reached.

    limit            texts of more characters are stored
    max_read_chars   maximum result of one read
    report           called with one line for people
    session          name of the session under which `fdstore saved` counts
    """

    def __init__(
        self,
        url: str | None,
        prefix: str | None,
        process: str,
        limit: int,
        report: Callable[[str], None],
        *,
        max_read_chars: int = MAX_READ_CHARS,
        session: str | None = None,
    ) -> None:
        self._url, self._prefix, self._process = url, prefix, process
        self.limit = limit
        self._max_read_chars = max_read_chars
        self._session = session
        self._report = report
        self._connected: Connected | None = None
        self._tried = threading.Event()
        self._lock = threading.Lock()
        self._is_connecting = False
        self._is_reported = False
        self._retry_at = 0.0
        self._problem: FDStoreError = StoreUnavailable("the store", "it cannot be reached now")
        self._trusted_until = 0.0

    def start(self) -> None:
        """Begin to connect, on a thread."""
        with self._lock:
            if self._is_connecting:
                return
            self._is_connecting = True
        threading.Thread(target=self._connect, name="fdstore-connect", daemon=True).start()

    def finish(self) -> None:
        """Wait up to `END_S` for the first attempt to connect, if it is under way: it imports native modules,
        and an interpreter that exits meanwhile aborts."""
        with self._lock:
            is_connecting = self._is_connecting
        if is_connecting:
            self._tried.wait(END_S)

    def definitions(self) -> list[dict[str, Any]] | None:
        """Return our tools for a tool list of MCP; None if the store cannot be reached."""
        found = self._reachable()
        return None if found is None else found.tools.definitions_for("mcp")

    def offload(self, text: str, source: str) -> str | None:
        """Store a text and return its `fd_result`; None if it is not to be replaced."""
        found = self._reachable()
        if found is None:
            return None
        try:
            stored = found.tools.offload(text, source=source or "tool_result")
        except FDStoreError as error:
            self._lost(error)
            return None
        self._worked()
        return None if stored.descriptor is None else str(stored.content)

    def expand(self, texts: list[str]) -> list[str] | None:
        """Return the texts with the content that each `{{fd:3}}` names; None if the store cannot be reached.
        Raises the error of a wrong name, and `TooLarge`."""
        from fdstore.results.config import FDConfig
        from fdstore.tools.functions.python_tool import expand_placeholders
        from fdstore.tools.toolbox import STOPPING

        found = self._reachable()
        if found is None:
            return None
        bound = FDConfig().max_expand_chars
        try:
            expanded = found.store.run(expand_placeholders(found.process.handle, texts, bound))
        except FDStoreError as error:
            if error.type not in STOPPING:
                raise
            self._lost(error)
            return None
        self._worked()
        return [str(text) for text in expanded]

    def call(self, tool: str, arguments: dict[str, Any]) -> tuple[list[dict[str, Any]], bool]:
        """Run one of our tools. Return the content blocks of MCP, and whether it failed."""
        found = self._reachable()
        if found is None:
            return [{"type": "text", "text": error_element(self._problem)}], True
        try:
            result = found.tools.call(tool, arguments)
        except FDStoreError as error:
            self._lost(error)
            return [{"type": "text", "text": error_element(error)}], True
        self._worked()
        return mcp_blocks(result.content), result.is_error

    def _connect(self) -> None:
        import fdstore
        from fdstore.results.config import FDConfig

        try:
            store = fdstore.connect(self._url, self._prefix)
            process = store.process(self._process)
            config = FDConfig(
                max_direct_output_chars=self.limit,
                max_read_chars=self._max_read_chars,
                json_pretty_print=True,
            )
            tools = fdstore.Toolset(process, enabled=READING_TOOLS, config=config, meter=self._session)
        except FDStoreError as error:
            self._lost(error)
        else:
            self._trusted_until = monotonic() + TRUSTED_S
            self._connected = Connected(store, process, tools)
            if self._is_reported:
                self._is_reported = False
                self._report("the store answers again: long results become descriptors")
        finally:
            self._retry_at = monotonic() + RETRY_S
            with self._lock:
                self._is_connecting = False
            self._tried.set()

    def _reachable(self) -> Connected | None:
        """Return the store if it can be reached now; else begin to connect again, and return None."""
        self._tried.wait(FIRST_TRY_S)
        found = self._connected
        if found is not None and monotonic() > self._trusted_until:
            try:
                _probe(found.store)
            except FDStoreError as error:
                self._lost(error)
                found = None
        if found is None and monotonic() >= self._retry_at:
            self.start()
        return found

    def _lost(self, error: FDStoreError) -> None:
        """Note that an operation failed, and report it if it is the first in a row. After an error that only
        the next connection can end, connect again."""
        from fdstore.tools.toolbox import STOPPING

        if error.type in STOPPING or self._connected is None:
            self._connected = None
            self._problem = error
            self._retry_at = monotonic() + RETRY_S
        if not self._is_reported:
            self._is_reported = True
            self._report(f"{error.type}: {error}; results pass unchanged")

    def _worked(self) -> None:
        self._is_reported = False
        self._trusted_until = monotonic() + TRUSTED_S


def error_element(error: FDStoreError) -> str:
    """Return the `fd_error` of an error."""
    from fdstore.elements.render import fd_error

    return fd_error(error)


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


def _probe(store: Store) -> None:
    """Connect to a store once more, without retries. Raises `StoreUnavailable`."""
    from fdstore.client._sync.store import Store
    from fdstore.wire._sync.cluster import make_runner

    with Store(make_runner(store.url), store.prefix, store.url) as fresh:
        fresh.reach()
