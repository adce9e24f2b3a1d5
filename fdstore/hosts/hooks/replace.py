"""Store the output in an event, and answer the host: `fdstore hook HOST`, a process for each call of a tool.

The answer of a host's hook must come in time, whatever the state of the store: the work runs on a thread
that is left behind at the deadline. The store is not connected for an output that stays as it is.
"""

from __future__ import annotations

import queue
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from fdstore.client import Store
from fdstore.errors import InvalidArgument, PathRefused, StoreUnavailable, TargetMissing
from fdstore.hosts.hooks.output import Answer, ToolOutput
from fdstore.hosts.hooks.persisted_file import whole_of
from fdstore.hosts.project import Project
from fdstore.results.tool_outcome import Offloaded
from fdstore.tools.catalogue import READING_TOOLS
from fdstore.toolset._sync import Toolset

DEADLINE_S = 20.0
"""The longest time that a host waits. Storing 100 MB takes some seconds; hosts themselves wait for 60."""


def replaced(
    output: ToolOutput,
    project: Project,
    connect: Callable[[], Store],
    claude_config: Path,
    deadline_s: float = DEADLINE_S,
) -> Answer | None:
    """Store an output and return the answer that replaces it; None leaves it as it is.

    Raises `StoreUnavailable`, also at the deadline, and other errors of the store; `InvalidArgument` if the
    file with the whole of it cannot be read. The output is to stay as it is then, too.
    """
    return _within(deadline_s, lambda: _store(output, project, connect, claude_config))


def _store(
    output: ToolOutput, project: Project, connect: Callable[[], Store], claude_config: Path
) -> Answer | None:
    with connect() as store:
        tools = Toolset(
            store.process(project.process),
            enabled=READING_TOOLS,
            config=project.config,
            meter=output.session or "host",
            outside=tuple(project.config.tool),
        )
        offloaded = _offload(tools, output, claude_config)
    return None if offloaded.descriptor is None else output.answer(offloaded.content)


def _offload(tools: Toolset, output: ToolOutput, claude_config: Path) -> Offloaded:
    try:
        with whole_of(output, claude_config) as whole:
            offload = tools.offload if isinstance(whole, (str, list)) else tools.offload_file
            return offload(whole, output.source, output.call_id)
    except (PathRefused, TargetMissing) as error:
        raise InvalidArgument("event", f"its persisted output cannot be read: {error}") from error


def _within(seconds: float, work: Callable[[], Answer | None]) -> Answer | None:
    """Run `work` on a thread. Raises `StoreUnavailable` if it takes longer; it ends with this program
    then."""
    results: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def run() -> None:
        try:
            results.put(work())
        except Exception as error:  # noqa: BLE001  raised again in the caller's thread
            results.put(error)

    threading.Thread(target=run, daemon=True).start()
    try:
        result = results.get(timeout=seconds)
    except queue.Empty:
        raise StoreUnavailable("the store", f"it took longer than {seconds:g} s") from None
    if isinstance(result, Exception):
        raise result
    found: Answer | None = result
    return found
