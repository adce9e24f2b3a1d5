"""The functions that the agents of the bench call, the same in each column.

They are imported by name, as those of a program file, so what they work on is a value of this module: one
task runs at a time.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable
from typing import Annotated

from tests.bench.tasks.hosts import Host


class Session:
    """The host and documents that the functions work on during one run."""

    def __init__(self, host: Host, documents: dict[str, Callable[[], str]]) -> None:
        self.host = host
        self.documents = documents
        self.unread = ""
        """The text that a build printed since it was last asked for."""


session: Session | None = None


def _session() -> Session:
    assert session is not None, "no task is running"
    return session


def fetch(name: str) -> str:
    """Get a log, an export, a document or the report of an agent by its name."""
    now = _session()
    return now.host.show(now.documents[name]())


def read_file(
    path: str,
    start_line: Annotated[int, "The first line, from 1."] = 1,
    line_count: Annotated[int | None, "Default: to the end."] = None,
) -> str:
    """Read a text file, or some of its lines."""
    return _session().host.read(path, start_line, line_count)


def search_file(
    path: str,
    pattern: Annotated[str, "A regular expression."],
    context_lines: int = 0,
    only_count: Annotated[bool, "Only count the lines that match."] = False,
) -> str:
    """Find the lines of a text file that match a pattern, with their numbers."""
    return _session().host.search(path, pattern, context_lines, only_count=only_count)


def replace_in_file(path: str, old: str, new: str) -> str:
    """Replace a text that occurs once in a file."""
    files = _session().host.files
    if files[path].count(old) != 1:
        return f"Error: it occurs {files[path].count(old)} times."
    files[path] = files[path].replace(old, new)
    return "replaced"


def build_output() -> str:
    """Get what the running build has printed since the last call."""
    now = _session()
    text, now.unread = now.unread, ""
    return now.host.show(text, is_command=True)


def compare(old: str, new: str) -> str:
    """Compare two texts, or files by their paths, by lines; returns the differences."""
    host = _session().host
    before, after = (host.files.get(each, each).splitlines() for each in (old, new))
    return host.show("\n".join(difflib.unified_diff(before, after, "old", "new", n=1, lineterm="")))
