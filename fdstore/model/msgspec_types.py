"""Prepare msgspec types before threads use them.

msgspec 0.22 inspects a Struct when it is first decoded or converted, in Python code and without a lock: two
threads that do so at the same time crash the interpreter. A worker whose first two agents start together
would crash. So types that are decoded are prepared when their module is imported.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

_lock = threading.Lock()


def prepare(*kinds: Any) -> None:
    """Make msgspec inspect these types and the types of their fields."""
    with _lock:
        for kind in kinds:
            msgspec.json.Decoder(kind)
