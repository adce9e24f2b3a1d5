"""The limits of one call of a program."""

from __future__ import annotations

import msgspec


class CallLimits(msgspec.Struct, frozen=True, kw_only=True):
    """The limits of one call, over all its snapshots. Code can catch none of them but `recursion`.

    seconds       processor time of the interpreter; waiting is not counted
    memory_bytes  of all variables
    recursion     depth of calls; beyond it a RecursionError, an ordinary exception
    max_output    characters printed; a longer value of the last expression is cut to as many
    calls         host calls, with those of clock and sleep
    """

    seconds: float = 60.0
    memory_bytes: int = 256 << 20
    recursion: int = 1000
    max_output: int = 1_000_000
    calls: int = 10_000
