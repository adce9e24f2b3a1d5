"""The switches and sizes of an agent's descriptors: `[file_descriptor]` of a program file.

One frozen record serves three borders: the program file, `Toolset(config=...)` and the program
stored with a process. It checks itself when it is made, so no reader of it ever has to. The
names of the built-in tools live here too, because which of them are enabled decides whether
descriptors are on at all.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Literal

import msgspec

from fdstore.errors import InvalidArgument
from fdstore.text.numbers import MAX_INTEGER

FD_TOOLS: frozenset[str] = frozenset(
    {"read_fd", "search_fd", "list_fds", "fd_to_file", "write_fd", "close_fd"}
)
"""Tools on descriptors; enabling any of them turns descriptors on."""

PROCESS_TOOLS: frozenset[str] = frozenset({"spawn", "fork", "pipe", "wait", "kill"})
"""Tools on processes; they work with descriptors off too."""

ToolName = Literal[
    "read_fd",
    "search_fd",
    "list_fds",
    "write_fd",
    "fd_to_file",
    "close_fd",
    "spawn",
    "pipe",
    "wait",
    "kill",
]
"""The built-in tools of a loop of your own. `fork` is not among them: it copies a conversation, which is the
loop's."""

SIZES = (
    "max_direct_output_chars",
    "default_page_size",
    "max_input_chars",
    "max_read_chars",
    "max_expand_chars",
)
FLAGS = ("page_user_input", "enable_references", "json_pretty_print")


def has_descriptors(config: FDConfig, tools: Collection[str]) -> bool:
    """Return whether an agent has descriptors: as `config` says, else if one of its tools works on them."""
    return config.enabled if config.enabled is not None else not FD_TOOLS.isdisjoint(tools)


class FDConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How an agent's text becomes descriptors. All sizes are in characters.

    enabled                  None: on if any tool of `FD_TOOLS` is enabled
    max_direct_output_chars  a tool result longer than this becomes a descriptor
    default_page_size        of the descriptors made for the agent
    max_input_chars          user input longer than this becomes one, if `page_user_input`
    page_user_input          whether user input is paged at all
    enable_references        whether `<ref id="NAME">` passages of answers are stored
    json_pretty_print        whether a long JSON result is stored indented, so that it pages by lines
    max_read_chars           the most that one read shows
    max_expand_chars         the most that `{{fd:3}}` in arguments of a call may grow to

    Raises `InvalidArgument` with the name of the field for a flag that is not a bool and a size
    that is not an integer from 1 to 2**53.

    >>> FDConfig(default_page_size=2000).max_read_chars
    100000
    """

    enabled: bool | None = None
    max_direct_output_chars: int = 8000
    default_page_size: int = 4000
    max_input_chars: int = 8000
    page_user_input: bool = True
    enable_references: bool = True
    json_pretty_print: bool = False
    max_read_chars: int = 100_000
    max_expand_chars: int = 1_000_000

    def __post_init__(self) -> None:
        if self.enabled is not None and type(self.enabled) is not bool:
            raise InvalidArgument("enabled", "must be true or false, or left out")
        for name in FLAGS:
            if type(getattr(self, name)) is not bool:
                raise InvalidArgument(name, "must be true or false")
        for name in SIZES:
            size = getattr(self, name)
            # `type(...) is int`: True is an int to isinstance, and would be a size of 1
            if type(size) is not int or not 1 <= size <= MAX_INTEGER:
                raise InvalidArgument(name, f"must be an integer from 1 to {MAX_INTEGER}")
