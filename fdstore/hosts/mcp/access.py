"""The access of a caller: to which process, and with which permissions."""

from __future__ import annotations

from collections.abc import Iterable
from typing import cast

import msgspec

from fdstore.errors import InvalidArgument, quoted
from fdstore.setup.optional_packages import is_installed
from fdstore.store.keys import check_process
from fdstore.store.tokens import PERMISSIONS, Permission
from fdstore.tools.catalogue import BUILT_IN
from fdstore.tools.needs import SQL
from fdstore.tools.tool_names import ToolName

DEFAULT_PERMISSIONS: frozenset[Permission] = frozenset({"read", "write"})


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """The access of one caller.

    process      the process that its tools work on
    permissions  what it may do there
    whole_tree   whether it may also read the resources of the other processes of the tree
    """

    process: str
    permissions: frozenset[Permission] = DEFAULT_PERMISSIONS
    whole_tree: bool = False

    def may_read(self, process: str) -> bool:
        """Return whether the contents of `process` may be read."""
        if "read" not in self.permissions:
            return False
        return process == self.process or (self.whole_tree and _tree(process) == _tree(self.process))


def _tree(process: str) -> str:
    return process.partition(".")[0]


def tools_of(permissions: Iterable[Permission]) -> list[ToolName]:
    """Return the tools that some permissions offer. `sql_fd` is left out where DuckDB is not installed:
    nobody asked for it by name.

    >>> tools_of({"export", "pipe"})
    ['fd_to_file', 'pipe', 'wait', 'kill']
    """
    held = frozenset(permissions)
    found = [
        name
        for name, tool in BUILT_IN.items()
        if tool.permission in held and (tool.needs is not SQL or is_installed("duckdb"))
    ]
    return cast("list[ToolName]", found)


def parse_permissions(words: str) -> frozenset[Permission]:
    """Parse permissions as they are written in options. Raises `InvalidArgument`.

    >>> sorted(parse_permissions("read, write"))
    ['read', 'write']
    """
    names = [word.strip() for word in words.split(",")]
    for name in names:
        if name not in PERMISSIONS:
            raise InvalidArgument(
                "allow", f"{quoted(name)} is not a permission; there are: {', '.join(PERMISSIONS)}"
            )
    return frozenset(cast("list[Permission]", names))


def access_to(process: str, permissions: frozenset[Permission] = DEFAULT_PERMISSIONS) -> Access:
    """Return access to one process. Raises `InvalidArgument` for an invalid process id."""
    return Access(process=check_process(process), permissions=permissions)
