"""The demo's tools, which return megabytes."""

from __future__ import annotations

import re
import sysconfig
from pathlib import Path

from fdstore.errors import InvalidArgument


def search_source(pattern: str) -> str:
    """Search the source of Python's standard library for a regular expression; all lines that match,
    as path:line:text."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise InvalidArgument("pattern", str(error)) from error
    root = Path(sysconfig.get_path("stdlib"))
    found = []
    for path in sorted(root.rglob("*.py")):
        inside = path.relative_to(root)
        if "site-packages" in inside.parts:
            continue
        text = path.read_bytes().decode("utf-8", "backslashreplace")
        found += [
            f"{inside}:{number}:{line}\n"
            for number, line in enumerate(text.split("\n"), 1)
            if compiled.search(line)
        ]
    return "".join(found)


def load_file(path: str) -> str:
    """Return the whole text of a file."""
    try:
        return Path(path).read_bytes().decode("utf-8", "backslashreplace")
    except OSError as error:
        raise InvalidArgument("path", error.strerror or str(error)) from error
