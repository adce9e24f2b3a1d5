"""Types that msgspec knows before any thread uses them.

msgspec 0.22 looks at a Struct when it is first decoded or converted, in Python code and without a lock:
two threads that do so at the same time crash the interpreter. A worker whose first two agents arrive
together would die with both. So what is decoded is prepared when its module is imported.
"""

from __future__ import annotations

import threading
from typing import Any

import msgspec

_turn = threading.Lock()


def prepare(*kinds: Any) -> None:
    """Have msgspec look at these types, and all that they are made of, now."""
    with _turn:
        for kind in kinds:
            msgspec.json.Decoder(kind)
