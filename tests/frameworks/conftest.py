"""Fixtures of the tests of agent frameworks: a Redis of their own, and the results of their tools.

They run in the environments that `make test-frameworks` installs, with the real packages, their own models
for tests, and no network but loopback.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import redis

import fdstore
from fdstore.client import Store
from fdstore.local.redis_server import PrivateServer
from tests import examples
from tests.frameworks.conformance.testing import PROPERTY, table

EXAMPLES = examples.ROOT / "examples" / "frameworks"
MAX_EXAMPLE_LINES = 20
MAX_RECIPE_LINES = 30
"""Of a program for a framework without an adapter."""


def pytest_sessionstart(session: pytest.Session) -> None:
    session.config.pluginmanager.getplugin("temporary files").frameworks_run = True


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Print the table of the conformance set, if it was run."""
    reports = [
        (report, dict(report.user_properties)[PROPERTY])
        for kind in ("passed", "failed")
        for report in terminalreporter.stats.get(kind, ())
        if PROPERTY in dict(report.user_properties)
    ]
    if reports:
        terminalreporter.section("what every adapter holds")
        for line in table({tuple(cell): report.passed for report, cell in reports}):
            terminalreporter.write_line(line)


@pytest.fixture(scope="session")
def redis_server() -> Iterator[PrivateServer]:
    with PrivateServer() as server:
        yield server


@pytest.fixture
def redis_url(redis_server: PrivateServer, monkeypatch: pytest.MonkeyPatch) -> str:
    """The URL of a running, empty Redis, which the environment names too."""
    redis_server.start()  # a test may have stopped it
    with redis.Redis.from_url(redis_server.url) as client:
        client.flushall()
    monkeypatch.setenv("FDSTORE_URL", redis_server.url)
    return redis_server.url


@pytest.fixture
def store(redis_url: str) -> Iterator[Store]:
    """A connected store."""
    with fdstore.connect(redis_url) as connected:
        yield connected


@pytest.fixture
def failing_store(redis_server: PrivateServer, redis_url: str) -> Iterator[Store]:
    """A store that was connected, and whose server has stopped since."""
    with fdstore.connect(redis_url) as connected:
        redis_server.stop()
        yield connected


@pytest.fixture(scope="session")
def log_text() -> str:
    """A text that is always stored: 5000 lines."""
    return "".join(f"line {number} of the build\n" for number in range(1, 5001))


@pytest.fixture
def read_log(log_text: str) -> Callable[[], str]:
    """A function that returns a text that is always stored, to be a tool."""

    def read_log() -> str:
        """Return the log of the build."""
        return log_text

    return read_log


@pytest.fixture(scope="session")
def png() -> bytes:
    """An image of 1 x 1 pixels."""
    return bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010804000000b51c0c020000000b4944415478da63fcff1f"
        "0003030200efa2a75b0000000049454e44ae426082"
    )


@pytest.fixture
def run_example(redis_url: str, tmp_path: Path) -> Callable[[str], str]:
    """`run_example(name)` runs `NAME_example.py` and returns what it prints. (A script called as the package
    that it imports would import itself.)"""

    def run(name: str) -> str:
        path = EXAMPLES / f"{name}_example.py"
        code = [
            line
            for line in path.read_text("utf-8").splitlines()
            if line and not line.startswith(("#", '"""'))
        ]
        has_adapter = name in [adapter.stem for adapter in examples.adapters()]
        most = MAX_EXAMPLE_LINES if has_adapter else MAX_RECIPE_LINES
        assert len(code) <= most, f"{path} has {len(code)} lines of code"
        done = subprocess.run(
            [sys.executable, str(path)],
            cwd=tmp_path,
            env={**os.environ, "FDSTORE_URL": redis_url},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    return run


@pytest.fixture
def run_docstrings(store: Store) -> Callable[[str], None]:
    """`run_docstrings(module)` runs the examples in the docstrings of an adapter."""

    def run(module: str) -> None:
        found = list(examples.docstrings_of(module))
        assert found, f"{module} has no example"
        for docstring in found:
            names = {
                "fdstore": fdstore,
                "store": store,
                "proc": store.process(f"example-{len(docstring.name)}"),
            }
            examples.run(docstring, names)

    return run
