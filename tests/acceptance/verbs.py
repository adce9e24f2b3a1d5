"""The verbs of this installation, and a URL that nothing answers."""

from __future__ import annotations

from importlib.util import find_spec

from fdstore.cli import VERBS

CLOSED_PORT_URL = "redis://:secret@127.0.0.1:1"
HERE = [
    name
    for section in VERBS.values()
    for name, (home, _) in section.items()
    if find_spec(home.partition(":")[0]) is not None
]
WITHOUT_STORE = {"redis-server"}
"""Its options are those of the server that takes its place."""
