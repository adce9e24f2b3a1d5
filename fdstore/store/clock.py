"""The Redis clock: all stored timestamps are written with it and must be compared with it.

The clocks of workers and clients may be hours off. Measure durations with `time.monotonic`; take points in
time from Redis.
"""

from __future__ import annotations

from fdstore.wire.operation import Operation


def seconds_of(time: list[bytes]) -> float:
    """Return the reply of TIME in seconds since the epoch.

    >>> seconds_of([b"1700000000", b"250000"])
    1700000000.25
    """
    seconds, micros = time
    return int(seconds) + int(micros) / 1e6


def redis_now() -> Operation[float]:
    """Return the Redis time. One round trip; to save it, add TIME to a batch that is sent anyway."""
    [time] = yield [("TIME",)]
    return seconds_of(time)
