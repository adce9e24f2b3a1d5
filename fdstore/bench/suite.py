"""The table of measurements, and the function that runs them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator

from fdstore.bench import (
    agents,
    cold,
    growth,
    many_readers,
    memory,
    names,
    programs,
    reading,
    sharing,
    spawning,
    starting,
    streams,
    trips,
    windows,
    writing,
)
from fdstore.bench.measuring import BenchRow
from fdstore.bench.stage import BenchStage, stage

AREAS: dict[str, Callable[[BenchStage], Iterator[BenchRow]]] = {
    "reading": reading.rows,
    "bytes": windows.rows,
    "names": names.rows,
    "writing": writing.rows,
    "trips": trips.rows,
    "streams": streams.rows,
    "memory": memory.rows,
    "cold": cold.rows,
    "sharing": sharing.rows,
    "growth": growth.rows,
    "spawning": spawning.rows,
    "agents": agents.rows,
    "crowd": many_readers.rows,
    "programs": programs.rows,
    "starting": starting.rows,
}
"""Area -> its measurements."""

OPTIONS = {"streams": streams.OPTIONS}
"""Area -> options of its server."""

ON_ALL_PROCESSORS = frozenset({"spawning", "agents", "crowd", "programs"})
"""Areas with several client processes, which need all processors."""

LONG = frozenset({"agents", "growth", "programs"})
"""Areas that always take long: `quick` skips them unless they are named."""


def measure(areas: Collection[str] = (), *, quick: bool = False) -> Iterator[BenchRow]:
    """Run the measurements of these areas (default: all), one per iteration. `quick` skips contents larger
    than 10 MB and spends less time on each.

        for row in measure(["memory"], quick=True):
            print(row.case)
    """
    for name, rows in AREAS.items():
        if name in areas or (not areas and not (quick and name in LONG)):
            own_processor = name not in ON_ALL_PROCESSORS
            with stage(quick=quick, own_processor=own_processor, options=OPTIONS.get(name)) as fresh:
                yield from rows(fresh)


def left_out(areas: Collection[str]) -> Iterator[str]:
    """Return what these areas could not compare with here, and how it could be."""
    if "programs" in areas and not programs.peer():
        yield programs.PEER_MISSING
    if (not areas or "cold" in areas) and (why := cold.missing()):
        yield why
