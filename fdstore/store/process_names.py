"""Names of root processes, made of directories."""

from __future__ import annotations

import re

from fdstore.store.keys import RESERVED

MAX_CHARS = 48
"""The longest name of a root process."""

FALLBACK = "work"


def process_name_of(directory: str) -> str:
    """Return the last component of a path as a name of a process.

    >>> process_name_of("/home/ada/My Project (2)"), process_name_of("/")
    ('my-project-2', 'work')
    """
    name = directory.rstrip("/").rpartition("/")[2].lower()
    name = re.sub(r"[^a-z0-9_]+", "-", name).strip("-_")[:MAX_CHARS].rstrip("-_") or FALLBACK
    return f"{name}-1" if name in RESERVED else name
