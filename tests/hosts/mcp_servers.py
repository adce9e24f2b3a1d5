"""`fdstore mcp` as a process, for hosts and official suites."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

FDSTORE = Path(sys.executable).parent / "fdstore"


def stdio_command(redis_url: str, *options: str) -> list[str]:
    """Return the command that a host starts."""
    return [str(FDSTORE), "mcp", "--process", "triage", "--url", redis_url, *options]


@contextmanager
def http_server(redis_url: str) -> Iterator[str]:
    """Run a server over HTTP and yield its URL."""
    with _running(stdio_command(redis_url)) as url:
        yield url


@contextmanager
def http_server_with_tokens(redis_url: str) -> Iterator[str]:
    """Run a server over HTTP whose callers need a token, and yield its URL."""
    with _running([str(FDSTORE), "mcp", "--url", redis_url, "--require-token"]) as url:
        yield url


@contextmanager
def _running(command: list[str]) -> Iterator[str]:
    with subprocess.Popen([*command, "--http", "127.0.0.1:0"], stderr=subprocess.PIPE, text=True) as server:
        try:
            assert server.stderr is not None
            said = server.stderr.readline()
            assert " at http://" in said, said + server.stderr.read()
            yield said.split()[-1]
        finally:
            server.terminate()
            server.communicate(timeout=30)
