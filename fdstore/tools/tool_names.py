"""The names of the built-in tools: for type checkers, and for hooks, which have no time to load the tools.

Generated from the tools by `make generate`: change fdstore/tools/built_in/.
"""

from __future__ import annotations

from typing import Literal

ToolName = Literal[
    "read_fd",
    "search_fd",
    "diff_fd",
    "sql_fd",
    "list_fds",
    "write_fd",
    "put_fd",
    "fd_to_file",
    "run_python",
    "close_fd",
    "ask_person",
    "spawn",
    "pipe",
    "wait",
    "kill",
]
"""The built-in tools for a user's own loop."""

BUILT_IN_NAMES: tuple[str, ...] = (
    "read_fd",
    "search_fd",
    "diff_fd",
    "sql_fd",
    "list_fds",
    "write_fd",
    "put_fd",
    "fd_to_file",
    "run_python",
    "close_fd",
    "ask_person",
    "spawn",
    "fork",
    "pipe",
    "wait",
    "kill",
)
"""All built-in tools, also those of agents alone."""

READING_NAMES: tuple[ToolName, ...] = (
    "read_fd",
    "search_fd",
    "list_fds",
)
"""`READING_TOOLS` of the catalogue."""
