"""The names of the built-in tools, for type checkers.

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
