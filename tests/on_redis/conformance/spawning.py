"""Children started by calls of `spawn`."""

from __future__ import annotations

from typing import Any

from fdstore.client import Process, Store
from fdstore.results.context import Context
from fdstore.results.tool_outcome import Started
from fdstore.tools.toolbox import Toolbox


def started(store: Store, context: Context, call: str | None = None, **arguments: Any) -> Process:
    """Return the child started by a call of spawn."""
    outcome = store.run(Toolbox(context).start("spawn", arguments, call))
    assert isinstance(outcome, Started), outcome
    [child] = outcome.processes
    return store.process(child)
