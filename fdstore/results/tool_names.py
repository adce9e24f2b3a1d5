"""The names of the built-in tools."""

from __future__ import annotations

from typing import Literal

FD_TOOLS: frozenset[str] = frozenset(
    {"read_fd", "search_fd", "list_fds", "fd_to_file", "write_fd", "put_fd", "close_fd"}
)
"""Tools on descriptors; enabling any of them turns descriptors on."""

PROCESS_TOOLS: frozenset[str] = frozenset({"spawn", "fork", "pipe", "wait", "kill"})
"""Tools on processes; they also work with descriptors off."""

ToolName = Literal[
    "read_fd",
    "search_fd",
    "list_fds",
    "write_fd",
    "put_fd",
    "fd_to_file",
    "close_fd",
    "spawn",
    "pipe",
    "wait",
    "kill",
]
"""The built-in tools for a user's own loop. Not `fork`: it copies a conversation, which that loop keeps."""

READING_TOOLS: tuple[ToolName, ...] = ("read_fd", "search_fd", "list_fds")
"""What a model needs to read what was stored; offered where another program runs its tools."""
