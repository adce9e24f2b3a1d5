"""Modules of this package that run in a process of their own, and what is said with them by lines."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager


def _command(module: str, arguments: tuple[object, ...]) -> list[str]:
    return [sys.executable, "-m", f"fdstore.bench.{module}", *map(str, arguments)]


def output_of(module: str, *arguments: object) -> str:
    """Run a module to its end, and return what it printed."""
    done = subprocess.run(_command(module, arguments), check=True, stdout=subprocess.PIPE, text=True)
    return done.stdout


class LineChild:
    """A running module that reads and prints lines."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._input, self._output = process.stdin, process.stdout

    def say(self, line: str) -> None:
        """Send a line."""
        self._input.write(f"{line}\n")
        self._input.flush()

    def hear(self) -> str:
        """Return its next line."""
        return self._output.readline().strip()


@contextmanager
def line_child(module: str, *arguments: object) -> Iterator[LineChild]:
    """Run a module for the block."""
    pipe = subprocess.PIPE
    with subprocess.Popen(_command(module, arguments), stdin=pipe, stdout=pipe, text=True) as process:
        try:
            yield LineChild(process)
        finally:
            process.kill()
