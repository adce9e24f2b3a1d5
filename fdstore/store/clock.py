"""The clock of Redis: what every stamp in there is written with, and the only one to compare it with.

The machines of workers and clients have clocks of their own, which may be hours off. How long something
takes is measured by `time.monotonic`; when something was, or is to be, is said by Redis.
"""

from __future__ import annotations

from fdstore.wire.operation import Operation


def seconds_of(time: list[bytes]) -> float:
    """What TIME answered, in seconds since the epoch.

    >>> seconds_of([b"1700000000", b"250000"])
    1700000000.25
    """
    seconds, micros = time
    return int(seconds) + int(micros) / 1e6


def redis_now() -> Operation[float]:
    """The time now. One round trip; a batch that is sent anyway may ask for TIME itself."""
    [time] = yield [("TIME",)]
    return seconds_of(time)
