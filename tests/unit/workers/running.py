"""Pipelines that are run to their end, and what they leave."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from fdstore_workers.pipeline.poll_loop import PipelineResult, PipelineRun

ENVIRONMENT = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C.UTF-8"}
BLOCK = b"x" * 65536


class Run:
    """A run of a pipeline that collects `output`, and `errors` and `tees` by stage."""

    def __init__(
        self,
        *stages: str | list[str],
        tee: tuple[int, ...] = (),
        receivers: dict[int, Callable[[bytes], None]] | None = None,
        **options: Any,
    ) -> None:
        self.output = bytearray()
        self.errors = {number: bytearray() for number in range(1, len(stages) + 1)}
        self.tees = {number: bytearray() for number in tee}
        self.pipeline = PipelineRun(
            [stage.split() if isinstance(stage, str) else stage for stage in stages],
            **{
                "output": self.output.extend,
                "error": lambda number, piece: self.errors[number].extend(piece),
                "tee": receivers or {number: gathered.extend for number, gathered in self.tees.items()},
                "environment": ENVIRONMENT,
                **options,
            },
        )

    def end(self) -> PipelineResult:
        return self.pipeline.run()


def blocks(count: int) -> Iterator[bytes]:
    return (BLOCK for _ in range(count))


def shell(script: str) -> list[str]:
    return ["sh", "-c", script]


def pids_of(*argv: str) -> set[int]:
    """Return the processes with exactly this command line; that of one that has ended is empty."""
    wanted = b"".join(word.encode() + b"\0" for word in argv)
    found = set()
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with suppress(OSError):
            if path.read_bytes() == wanted:
                found.add(int(path.parent.name))
    return found
