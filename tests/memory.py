"""What a call takes of memory at once, as Python allocates it."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

ATTEMPTS = 3


def assert_takes_less(most_bytes: float, call: Callable[[int], object]) -> None:
    """Fail if a call takes this much memory at once, or more.

    What threads of earlier tests allocate meanwhile counts too, so that what the call takes is
    the least of three attempts. The call is given the number of its attempt.
    """
    peaks: list[int] = []
    for attempt in range(ATTEMPTS):
        tracemalloc.start()
        try:
            call(attempt)
            peaks.append(tracemalloc.get_traced_memory()[1])
        finally:
            tracemalloc.stop()
        if peaks[-1] < most_bytes:
            return
    raise AssertionError(f"a call takes {min(peaks)} bytes at once, not less than {most_bytes:.0f}")
