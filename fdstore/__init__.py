"""fdstore: file descriptors for LLM agents. Large texts are stored once in Redis and read by reference.

    import fdstore

    store = fdstore.connect()                    # $FDSTORE_URL, or a Redis of your own on this machine
    proc = store.process("triage")
    d = proc.ingest("build.log")
    print(proc.read(d.fd, start=2).text)         # page 2: one round trip, whatever the size
    child = proc.child(share=[d.fd])             # another process that reads the same content

`fdstore.aio` is the asyncio version. Importing has no side effects; names are loaded when used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from fdstore import aio, errors
    from fdstore.client import Process, Store, StreamWriter, connect
    from fdstore.elements.facts import ResultFacts
    from fdstore.errors import FDStoreError
    from fdstore.model.lifecycle import ContentState, ProcessState
    from fdstore.model.people import PersonAnswer, Question
    from fdstore.model.records import (
        ContextLine,
        Descriptor,
        DroppedTree,
        Export,
        Hit,
        Mode,
        Origin,
        ProcessRecord,
        SearchResult,
        Slice,
        Survey,
        TokenUsage,
        TreeLimits,
        TreeRecord,
        Unreadable,
    )
    from fdstore.results.config import FDConfig
    from fdstore.results.python_config import AskConfig
    from fdstore.results.tool_outcome import Offloaded, ToolResult
    from fdstore.results.tool_policy import ToolPolicy
    from fdstore.store.contents.naming import ABSENT
    from fdstore.text.selection import FdLike
    from fdstore.tools.clearing import ClearingConfig
    from fdstore.tools.definition_shapes import DefinitionShape
    from fdstore.tools.functions.python_tool import tool
    from fdstore.tools.tool_names import ToolName
    from fdstore.toolset._sync import Toolset

__version__ = "0.1.0"

_HOMES = {
    "fdstore.client": ("Process", "Store", "StreamWriter", "connect"),
    "fdstore.errors": ("FDStoreError",),
    "fdstore.model.lifecycle": ("ContentState", "ProcessState"),
    "fdstore.model.people": ("PersonAnswer", "Question"),
    "fdstore.model.records": (
        *("ContextLine", "Descriptor", "DroppedTree", "Export", "Hit", "Mode", "Origin"),
        *(
            "ProcessRecord",
            "SearchResult",
            "Slice",
            "Survey",
            "TokenUsage",
            "TreeLimits",
            "TreeRecord",
            "Unreadable",
        ),
    ),
    "fdstore.elements.facts": ("ResultFacts",),
    "fdstore.store.contents.naming": ("ABSENT",),
    "fdstore.text.selection": ("FdLike",),
    "fdstore.tools.clearing": ("ClearingConfig",),
    "fdstore.results.config": ("FDConfig",),
    "fdstore.results.python_config": ("AskConfig",),
    "fdstore.tools.definition_shapes": ("DefinitionShape",),
    "fdstore.tools.tool_names": ("ToolName",),
    "fdstore.tools.functions.python_tool": ("tool",),
    "fdstore.results.tool_outcome": ("Offloaded", "ToolResult"),
    "fdstore.results.tool_policy": ("ToolPolicy",),
    "fdstore.toolset._sync": ("Toolset",),
}
_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}

__all__ = [
    "ABSENT",
    "AskConfig",
    "ClearingConfig",
    "ContentState",
    "ContextLine",
    "DefinitionShape",
    "Descriptor",
    "DroppedTree",
    "Export",
    "FDConfig",
    "FDStoreError",
    "FdLike",
    "Hit",
    "Mode",
    "Offloaded",
    "Origin",
    "PersonAnswer",
    "Process",
    "ProcessRecord",
    "ProcessState",
    "Question",
    "ResultFacts",
    "SearchResult",
    "Slice",
    "Store",
    "StreamWriter",
    "Survey",
    "TokenUsage",
    "ToolName",
    "ToolPolicy",
    "ToolResult",
    "Toolset",
    "TreeLimits",
    "TreeRecord",
    "Unreadable",
    "aio",
    "connect",
    "errors",
    "tool",
]


def __getattr__(name: str) -> object:
    # importing redis and msgspec takes several times as long as running a small command
    if name in ("aio", "errors"):
        return import_module(f"fdstore.{name}")
    if name not in _HOME_OF:
        raise AttributeError(f"module 'fdstore' has no attribute {name!r}")
    value = getattr(import_module(_HOME_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
